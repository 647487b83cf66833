"""What a run gives back: its tables by name, the sentence that sums them up, pictures, and a page for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sim.report.context import ReportContext
from sim.request_files import export_text
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

        `service` and sweep `point` are needed where there are several; InputError says so.
        """
        settings: dict[str, str] = {}
        if point is not None:
            chosen = next((each for each in self.manifest["points"] if each["point"] == point), None)
            if chosen is None:
                raise refuse(
                    "point", f"the run has no point {point}", f"write one below {len(self.manifest['points'])}"
                )
            settings = {key: str(value) for key, value in chosen.items() if key not in ("point", "host_availability")}
        return export_text(self.tables, form, service=service, settings=settings, limits=self.context.limits)

    def _repr_html_(self) -> str:
        table = self.availability
        shown = table[table["form"] != "expected_with_light"] if not table.empty else self.summary
        body = shown.to_html(index=False, na_rep="", float_format=lambda value: f"{value:.4g}", max_rows=24)
        return f"<p><strong>{escape(self.context.name)}</strong>: {escape(self.sentence)}</p>{body}"
