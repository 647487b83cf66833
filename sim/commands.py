"""What the commands `run`, `replay` and `report` do."""

from __future__ import annotations

import math
import shlex
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from sim.build import build_setup
from sim.cli_output import say, say_json
from sim.exit_codes import ExitStatus
from sim.files import write_whole
from sim.interruptions import when_interrupted
from sim.result import Result
from sim.run_folder import (
    SCENARIO,
    blame_changed_tables,
    check_usable,
    is_finished,
    open_run_folder,
    read_manifest,
    read_tables,
)
from sim.scenario import Point, Scenario, expand, load_scenario, resolved_yaml
from sim.simulation import Progress, context_of, run_into, stored_result
from sim.studies.availability import replication_count, replication_rows, sample_histories
from sim.studies.delivered import delivered_count, delivered_sizes, sample_delivered
from sim.studies.large_job import large_job_count, large_job_rows, sample_large_job
from sim.studies.operations import operations_count, operations_rows, sample_operations
from sim.tables import text_of_setting
from topology.errors import refuse

OPENMETRICS = "openmetrics"
QUIET_S = 10.0
"""After so long without a line of progress, one tells that the run is at work."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How `run` runs: on `workers` processes (None: one per core) or on `cluster`, where there is one.

    `helper` is a process that draws the pictures; with `ideal` every point is played without each avoidable cause too.
    """

    workers: int | None = None
    cluster: Executor | None = None
    helper: Executor | None = None
    resume: bool = False
    ideal: bool = False
    as_json: bool = False


def run_command(
    named: Sequence[tuple[str, Scenario]], overrides: Sequence[str], out: Path | None, options: RunOptions
) -> int:
    """Run scenarios, each into its folder; status 1 where an expectation is missed. All are checked before any runs.

    `named`: each under the name that was typed, which with the `overrides` tells how to go on after an interruption.
    """
    names, scenarios = [name for name, _ in named], [scenario for _, scenario in named]
    places = _places(scenarios, out, options.resume)
    for scenario in scenarios:
        for point in expand(scenario):
            build_setup(point.scenario)
    results = []
    for name, scenario, place in zip(names, scenarios, places, strict=True):
        finished = place is not None and options.resume and is_finished(place, resolved_yaml(scenario))
        result = (
            stored_result(place, scenario, ideal=options.ideal)
            if place is not None and finished
            else _run_one(scenario, place, options, ["opticube", "run", name, *_repeated("--set", overrides)])
        )
        results.append(result)
        if finished and not options.as_json:
            say(f"{place}: finished already, nothing to do")
        if not options.as_json:
            _print_result(result)
    if options.as_json:
        documents = [_document(result) for result in results]
        say_json(documents[0] if len(documents) == 1 else {"runs": documents})
    return ExitStatus.DONE if all(result.met_expectations for result in results) else ExitStatus.FAILED


def _places(scenarios: Sequence[Scenario], out: Path | None, resume: bool) -> list[Path | None]:
    """The folder of every run (None: the next free one); refuses those that can not be used before any runs."""
    if out is None:
        return [None] * len(scenarios)
    if len(scenarios) == 1:
        places = [out]
    else:
        names = [scenario.name for scenario in scenarios]
        for name in names:
            if names.count(name) > 1:
                raise refuse(
                    "--out", f"two scenarios are called {name}, so both want {out / name}", "run one at a time"
                )
        places = [out / name for name in names]
    for place, scenario in zip(places, scenarios, strict=True):
        check_usable(place, resume=resume, scenario_yaml=resolved_yaml(scenario))
    return list(places)


def _repeated(option: str, values: Sequence[str]) -> Iterator[str]:
    for value in values:
        yield from (option, value)


def _how_to_resume(command: Sequence[str], folder: Path, options: RunOptions) -> str:
    """What an interruption of a run says: the folder, and the command that goes on."""
    more = ["--ideal"] if options.ideal else []
    workers = [] if options.workers is None else ["--workers", str(options.workers)]
    line = shlex.join([*command, *more, *workers, "--out", str(folder), "--resume"])
    return f"interrupted: finished sweep points are kept in {folder}; go on with `{line}`"


def _run_one(scenario: Scenario, place: Path | None, options: RunOptions, command: Sequence[str]) -> Result:
    if not options.as_json:
        _print_configuration(scenario)
    with (
        open_run_folder(place, scenario.name, resume=options.resume, scenario_yaml=resolved_yaml(scenario)) as folder,
        shown_progress(options.as_json) as progress,
    ):
        when_interrupted(_how_to_resume(command, folder.path, options))
        result = run_into(
            folder,
            scenario,
            workers=options.workers,
            executor=options.cluster,
            helper=options.helper,
            ideal=options.ideal,
            progress=progress,
        )
        when_interrupted(f"interrupted: the run is finished, in {folder.path}")
        return result


def _print_configuration(scenario: Scenario) -> None:
    from sim.effective import effective_settings

    say(f"{scenario.name}: {scenario.description}" if scenario.description else scenario.name)
    settings = effective_settings(scenario)
    width = max(len(label) for label, _, _ in settings)
    for label, value, mark in settings:
        say(f"  {label.ljust(width)}  {value}" + (f"  [{mark}]" if mark else ""))
    say()


def _print_result(result: Result) -> None:
    from sim.report.terminal import answer_text, table_texts

    for text in table_texts(result.tables):
        say(text)
        say()
    say(answer_text(result.tables))
    for warning in result.warnings:
        say(f"warning: {warning}")
    say()
    say(f"report: {result.folder}/report.html   tables: {result.folder}/tables   summary: {result.folder}/summary.csv")


def _document(result: Result) -> dict[str, Any]:
    """One run for programs."""
    summary = result.tables["summary"]
    return {
        "scenario": result.scenario.name,
        "folder": str(result.folder),
        "sentence": result.sentence,
        "warnings": list(result.warnings),
        "expectations": [{"met": verdict.met, "text": verdict.text} for verdict in result.verdicts],
        "manifest": dict(result.manifest),
        "summary": summary.astype(object).where(summary.notna(), None).to_dict("records"),
    }


@contextmanager
def shown_progress(quiet: bool) -> Iterator[Progress | None]:
    """Progress with an estimate of the time left on a terminal, a plain line now and then elsewhere."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        with _PlainProgress() as plain:
            yield plain
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(done: int, total: int, about: str) -> None:
            bar.update(task, completed=done, total=total or None, description=about)

        yield show


class _PlainProgress:
    """A line on standard error when what is done changes, each further quarter of the tasks, and when neither happens
    for `QUIET_S`: one task may take minutes."""

    def __init__(self) -> None:
        self._lock, self._over = threading.Lock(), threading.Event()
        self._began_s = self._said_s = time.monotonic()
        self._said: tuple[str, int] | None = None
        self._state = "the first task"
        self._watch = threading.Thread(target=self._tell_of_life, daemon=True)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._watch.join()

    def __call__(self, done: int, total: int, about: str) -> None:
        quarter = 4 * done // max(total, 1)
        with self._lock:
            self._state = f"{about}: {done} of {total} tasks" if total else about
            if self._said != (about, quarter):
                self._said = (about, quarter)
                self._say(self._state)

    def _tell_of_life(self) -> None:
        while not self._over.wait(max(0.1, self._said_s + QUIET_S - time.monotonic())):
            with self._lock:
                if time.monotonic() >= self._said_s + QUIET_S:
                    self._say(f"{self._state}, at work for {time.monotonic() - self._began_s:.0f} s")

    def _say(self, text: str) -> None:
        self._said_s = time.monotonic()
        sys.stderr.write(f"{text}\n")


def report_command(run: Path, form: str) -> int:
    """Write the report of a finished run again, from its tables."""
    from sim.report.write import REPORT_FORMS, start_pictures, write_report

    if form not in REPORT_FORMS:
        raise refuse("--format", f"`{form}` is no format of a report", f"write one of {', '.join(REPORT_FORMS)}")
    context, tables = context_of(read_manifest(run)), read_tables(run)
    with blame_changed_tables(run):
        pictures = start_pictures(tables, context.limits, context.pictures)
        written = write_report(run, tables, context, pictures, form=form)
    say(str(written))
    return ExitStatus.DONE


def export_command(run: Path, form: str, service: str | None, point: int | None, out: Path | None) -> int:
    """Write a finished run in the format of others: what it recorded of single requests, or its summary."""
    from sim.gke import GKE
    from sim.request_files import SUFFIXES

    known = [*SUFFIXES, GKE, OPENMETRICS]
    if form not in known:
        raise refuse("--format", f"`{form:.40}` is no format", f"write one of {', '.join(known)}")
    with blame_changed_tables(run):
        if form == OPENMETRICS:
            text, suffix, note = _summary_text(run, service, point), "txt", ""
        else:
            text, note = _exported_text(run, form, service, point)
            suffix = "yaml" if form == GKE else SUFFIXES[form]
    if note:
        sys.stderr.write(f"{note}\n")
    if out == Path("-"):
        sys.stdout.write(text)
        return ExitStatus.DONE
    named = "_".join(part for part in (form, service or "", "" if point is None else f"point{point}") if part)
    place = run / "export" / f"{named}.{suffix}" if out is None else out
    write_whole(place, text)
    say(str(place))
    return ExitStatus.DONE


def _exported_text(run: Path, form: str, service: str | None, point: int | None) -> tuple[str, str]:
    """The text of the file, and what it can not tell."""
    points = len(read_manifest(run)["points"])
    result = stored_result(run, load_scenario(str((run / SCENARIO).resolve())))
    if point is not None and point >= points:
        raise refuse("--point", f"the run has points 0 to {points - 1}", "write one of them")
    return result.export(form, service=service, point=point), result.export_note(form, service=service, point=point)


def _summary_text(run: Path, service: str | None, point: int | None) -> str:
    from sim.openmetrics import openmetrics_text

    for option, given in (("--service", service), ("--point", point)):
        if given is not None:
            raise refuse(option, f"{OPENMETRICS} has the whole summary", "leave it out")
    return openmetrics_text(read_tables(run)["summary"])


def replay_command(run: Path, point: int, replication: int, as_json: bool) -> int:
    """Simulate one replication of one point again; status 1 where it differs from what the run stored."""
    tables = read_tables(run)
    scenario = load_scenario(str((run / SCENARIO).resolve()))
    points = expand(scenario)
    if point >= len(points):
        raise refuse("--point", f"the run has points 0 to {len(points) - 1}", "write one of them")
    if "replications" not in tables:
        what = "the run has no replications to be replayed: no availability, delivered, operations or large job"
        raise refuse(
            str(run), what, "name a run with `study.availability`, `.delivered`, `.operations` or `.large_job`"
        )
    rows = replayed_rows(points[point].scenario, replication)
    with blame_changed_tables(run):
        stored = _rows_of_point(tables["replications"], points[point])
        matches = [_is_as_stored(row, stored) for row in rows]
    same = all(matches)
    document = {"run": str(run), "point": point, "replication": replication, "same": same, "values": rows}
    if as_json:
        say_json(document)
    else:
        for row in rows:
            verdict = "same" if row["same"] else f"stored: {row['stored']}"
            size = "" if row["slice_chips"] is None else f"{row['slice_chips']:5} chips"
            say(f"{row['form']:20} {size:11}  {row['value']:.9f}  {verdict}")
        say("replayed: equal to the stored run" if same else "replayed: NOT equal to the stored run")
    return ExitStatus.DONE if same else ExitStatus.FAILED


def _is_as_stored(row: dict[str, Any], stored: pd.DataFrame) -> bool:
    """Whether a replayed value is the stored one, which is noted beside it."""
    match = stored
    for key in ("fabric", "host_availability", "slice_chips", "form", "replication"):
        match = match[match[key].isna() if row[key] is None else match[key] == row[key]]
    value = float(match["value"].iloc[0]) if len(match) == 1 else None
    # a replication with nothing to measure has no value, then and now
    same = value is not None and (value == row["value"] or (math.isnan(value) and math.isnan(row["value"])))
    row |= {"stored": value, "same": same}
    return same


def _rows_of_point(table: pd.DataFrame, point: Point) -> pd.DataFrame:
    """Rows whose columns of swept keys say that they belong to a point."""
    for key, value in point.settings.items():
        if key in table.columns:
            table = table[table[key] == text_of_setting(value)]
    return table


def replayed_rows(scenario: Scenario, replication: int) -> list[dict[str, Any]]:
    """Rows of the table `replications` of one replication of a point, simulated anew in this process."""
    from sim.points import delivered_replications, host_availability_of

    setup = build_setup(scenario)
    rows: list[dict[str, Any]] = []
    samples = []
    if replication < replication_count(scenario):
        samples = [sample_histories(setup, [setup.fabric], replication)]
        rows += replication_rows(setup, samples, host_availability_of(setup, samples))
    if replication < delivered_count(scenario):
        for chips in delivered_sizes(scenario):
            own = [sample_delivered(setup, chips, replication)]
            rows += delivered_replications(setup, chips, own, host_availability_of(setup, samples))
    if replication < operations_count(scenario):
        months = [sample_operations(setup, replication)]
        rows += operations_rows(setup, months, host_availability_of(setup, samples))["replications"]
    if replication < large_job_count(scenario):
        one = [sample_large_job(setup, replication)]
        rows += large_job_rows(setup, one, host_availability_of(setup, samples), replication)["replications"]
    if not rows:
        raise refuse("--replication", f"the point has no replication {replication}", "write a smaller number")
    return rows
