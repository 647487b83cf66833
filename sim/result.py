"""What a run gives back: its tables by name, the sentence that sums them up, pictures, and a page for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sim.gke import GKE
from sim.report.context import ReportContext
from sim.request_files import export_note, export_text
from sim.run_tables import SPECS
from topology.errors import refuse

if TYPE_CHECKING:
    from sim.report.figures import Plots
    from sim.report.replay import Replay
    from sim.scenario import Scenario
    from sim.summary import Verdict


@dataclass(frozen=True)
class Result:
    """One finished run. `tables` holds pandas tables by name; `folder` is where it was written, or None.

    `timeline` is a Chrome trace of jobs and of one failure, as in `timeline.json`.

    `result.availability` is short for `result.tables["availability"]`, and so on for every declared table;
    `result.plot.availability()` and the like return matplotlib axes.
    """

    scenario: Scenario
    tables: Mapping[str, pd.DataFrame]
    context: ReportContext
    manifest: Mapping[str, Any]
    timeline: Mapping[str, Any] = field(default_factory=dict, repr=False)
    verdicts: tuple[Verdict, ...] = ()
    folder: Path | None = None

    def __getattr__(self, name: str) -> pd.DataFrame:
        """A table by its name; an empty one where the scenario does not ask for it."""
        if name in SPECS:
            return self.tables[name] if name in self.tables else SPECS[name].make([])
        raise AttributeError(f"a result has no table {name!r}; tables: {', '.join(SPECS)}")

    @property
    def sentence(self) -> str:
        """The answer in plain words, computed from the tables."""
        from sim.report.sentences import sentence

        return sentence(self.tables)

    @property
    def plot(self) -> Plots:
        """Pictures of this run, each a method that returns matplotlib axes."""
        from sim.report.figures import Plots

        return Plots(self.tables, self.context)

    def save_report(self, path: str | Path) -> Path:
        """Write the report as one file, whole or not at all, and return its path: its name ends in .html or .pdf."""
        from sim.report.write import write_one_file

        return write_one_file(Path(path), self.tables, self.context)

    def replay(self) -> Replay:
        """The pod played back, and the light of its slices: HTML that a notebook shows.

        The pod in operation, else slices of one size of `study.delivered`; empty where the run has neither.
        """
        from sim.report.replay import Replay, replay_html
        from sim.report.variants import variants_of

        return Replay(replay_html(variants_of(self.tables)[0].tables, self.context.hall))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the run warns about, in words."""
        return tuple(self.context.warnings)

    @property
    def met_expectations(self) -> bool:
        """Whether every bound of the scenario's `expect:` was met."""
        return all(verdict.met for verdict in self.verdicts)

    def export(self, form: str, *, service: str | None = None, point: int | None = None) -> str:
        """The recorded requests as the text of a file: `form` is vllm, vidur or mooncake (see `sim.request_files`).
        Or slices: for `form` gke, manifests of the services and of the slices that jobs hold (see `sim.gke`).

        `service` and sweep `point` are needed where there are several; InputError says so.
        """
        if form == GKE:
            return self._slices_text(service, point)
        settings = self._settings(point)
        return export_text(self.tables, form, service=service, settings=settings, limits=self.context.limits)

    def export_note(self, form: str, *, service: str | None = None, point: int | None = None) -> str:
        """What an exported file can not tell of its requests; empty where there is nothing."""
        return "" if form == GKE else export_note(self.tables, form, service=service, settings=self._settings(point))

    def _settings(self, point: int | None) -> dict[str, str]:
        """The swept keys of a point."""
        chosen = {} if point is None else self._point(point)
        return {key: str(value) for key, value in chosen.items() if key not in ("point", "host_availability")}

    def _point(self, point: int) -> Mapping[str, Any]:
        """A point as the manifest has it."""
        chosen = next((each for each in self.manifest["points"] if each["point"] == point), None)
        if chosen is None:
            raise refuse("point", f"the run has no point {point}", f"write one below {len(self.manifest['points'])}")
        return dict(chosen)

    def _slices_text(self, service: str | None, point: int | None) -> str:
        """The slices of one point for GKE."""
        from sim.gke import CHIPS_OF_PODS, WantedSlices, gke_text, held_slices
        from sim.scenario import expand

        if service is not None:
            raise refuse("--service", "slices of the whole run are written", "leave it out")
        points = expand(self.scenario)
        if point is None and len(points) > 1:
            raise refuse("--point", f"the run has points 0 to {len(points) - 1}", "name one by its number")
        told, own = self._point(point or 0), points[point or 0].scenario
        sections = () if own.serving is None else own.serving.services
        wanted = [
            WantedSlices(name=each.name, chip=each.chip, shape=each.shape(), replicas=each.replicas)
            for each in sections
        ]
        story = self.slice_story
        for key, value in {**told, "fabric": own.pod.fabric.value}.items():
            if key in story and key != "point":
                story = story[story[key].isna() if value != value else story[key] == value]
        chips = list(dict.fromkeys(each.chip for each in sections))
        generation = own.pod.generation or (None if own.pod.cubes else "v4")
        chip = CHIPS_OF_PODS[generation] if generation else chips[0] if len(chips) == 1 else ""
        if not chip and not story.empty:
            what = "the pod is of no generation, so nobody knows its chips"
            raise refuse("pod.generation", what, f"run it with one of {', '.join(CHIPS_OF_PODS)}")
        return gke_text(self.context.name, [*wanted, *held_slices(story, chip)])

    def _repr_html_(self) -> str:
        table = self.availability
        shown = table[table["form"] != "expected_with_light"] if not table.empty else self.summary
        body = shown.to_html(index=False, na_rep="", float_format=lambda value: f"{value:.4g}", max_rows=24)
        return f"<p><strong>{escape(self.context.name)}</strong>: {escape(self.sentence)}</p>{body}"
