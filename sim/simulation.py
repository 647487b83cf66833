"""Load and run scenarios: tasks on an executor, tables point by point, a run folder, the report.

load   a scenario from a file or by name     run   a scenario -> Result
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from sim.build import build_setup
from sim.differences import difference_table
from sim.effective import effective_settings
from sim.effects import effect_table
from sim.executors import open_executor
from sim.ideal import ideal_table
from sim.input_files import input_digests
from sim.measure_names import SERVICE_LOWER
from sim.points import PointResult, PointRunner, history_groups, services_key
from sim.report.context import ReportContext, ServiceLimits
from sim.result import Result
from sim.run_folder import (
    RunFolder,
    is_finished,
    open_run_folder,
    read_manifest,
    read_tables,
    read_timeline,
    table_digest,
)
from sim.run_tables import SPECS
from sim.scenario import Point, Scenario, expand, load_scenario, resolved_yaml
from sim.studies.availability import replication_count
from sim.studies.delivered import delivered_count, delivered_sizes
from sim.studies.draws import streams_digest
from sim.studies.large_job import large_job_count
from sim.studies.operations import operations_count
from sim.studies.serving import serving_tasks
from sim.summary import judge_expectations
from sim.tables import text_of_setting
from sim.timeline import chrome_trace
from sim.warnings_of_run import run_warnings
from topology.compilation import load_compiler
from topology.errors import refuse
from topology.pod import Pod

Progress = Callable[[int, int, str], None]
"""Called with tasks done, tasks in all (0: not known), and what is being done."""

SAME_FOR_FABRICS = (
    "slice_sizes", "failure_story", "requests", "request_life", "traffic", "token_floor", "load_curve", "latencies",
    "disturbance", "measured_times", "errors_of_times", "passes",
)  # fmt: skip
"""Tables whose rows points that differ in their fabric have in common."""


def load(path_or_name: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Load a scenario file, or a shipped scenario by name, with overrides such as `["run.seed=7"]`.

    Raises InputError, with one fault per thing that is wrong.
    """
    return load_scenario(path_or_name, overrides)


def run(
    scenario: Scenario,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    ideal: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Run a scenario and return its `Result`; the result does not depend on `workers` or `executor`.

    `out` names the run folder to write; without it nothing is written. With `resume` an interrupted run in it goes on,
    and a finished one is read. Tasks run on `executor` (any `concurrent.futures.Executor`), else on `workers` processes
    (one per core; 1 means in this process). With `ideal` every point is played again without each avoidable cause
    (table `ideal`): some ten times the work.
    """
    if out is None:
        return _result(_simulated(scenario, None, workers, executor, progress, ideal=ideal))
    place, scenario_yaml = Path(out), resolved_yaml(scenario)
    if resume and is_finished(place, scenario_yaml):
        return stored_result(place, scenario, ideal=ideal)
    with open_run_folder(place, scenario.name, resume=resume, scenario_yaml=scenario_yaml) as folder:
        return run_into(folder, scenario, workers=workers, executor=executor, ideal=ideal, progress=progress)


def run_into(
    folder: RunFolder,
    scenario: Scenario,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    helper: Executor | None = None,
    ideal: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Run into an open folder: finished points are taken from it, tables, manifest and report are written to it.

    `helper` is a process that draws the pictures (see `start_pictures`).
    """
    from sim.report.write import start_pictures, write_report

    simulated = _simulated(scenario, folder, workers, executor, progress, ideal=ideal)
    if progress is not None:
        progress(0, 0, "pictures and report")
    pictures = start_pictures(
        simulated.tables, _limits(scenario), scenario.run.pictures, workers=workers, helper=helper
    )
    result = _result(simulated)
    folder.write_tables(result.tables)
    folder.write_timeline(result.timeline)
    write_report(folder.path, result.tables, result.context, pictures)
    folder.finish(result.manifest)
    return replace(result, folder=folder.path)


def stored_result(place: Path, scenario: Scenario, *, ideal: bool = False) -> Result:
    """The result of a finished run of `scenario`, read from its folder.

    Raises InputError where it can not be read, or is to be `ideal` and was run without that.
    """
    manifest, tables = read_manifest(place), read_tables(place)
    if ideal and "ideal" not in tables:
        what = "the run is finished, without --ideal, which can not be added to it"
        raise refuse(str(place), what, "run it with --ideal into another --out")
    hosts = {int(point["point"]): float(point["host_availability"]) for point in manifest["points"]}
    verdicts = tuple(judge_expectations(scenario.expect, tables["summary"], hosts))
    return Result(
        scenario=scenario,
        tables={name: tables[name] for name in SPECS if name in tables},
        context=context_of(manifest),
        manifest=manifest,
        timeline=read_timeline(place),
        verdicts=verdicts,
        folder=place,
    )


@dataclass(frozen=True, kw_only=True)
class _Simulated:
    """What the simulation of a scenario gave: its points with their results, the tables of all, the time it took."""

    scenario: Scenario
    points: Sequence[Point]
    results: Sequence[PointResult]
    tables: dict[str, pd.DataFrame]
    wall_time_s: float


def _simulated(
    scenario: Scenario,
    folder: RunFolder | None,
    workers: int | None,
    executor: Executor | None,
    progress: Progress | None,
    *,
    ideal: bool,
) -> _Simulated:
    began = time.monotonic()
    points = expand(scenario)
    counter = _Counter(progress, _tasks_of(points))
    load_compiler()
    with open_executor(workers, executor) as pool:
        runner = PointRunner(executor=pool, advance=counter.advance)
        results = _run_points(points, runner, folder)
        removed = ideal_table(points, pool, counter.advance) if ideal else None
    tables = _joined(scenario, results)
    if removed is not None:
        tables = {name: removed if name == "ideal" else tables[name] for name in SPECS if name in {*tables, "ideal"}}
    wall_time_s = time.monotonic() - began
    return _Simulated(scenario=scenario, points=points, results=results, tables=tables, wall_time_s=wall_time_s)


def _run_points(points: Sequence[Point], runner: PointRunner, folder: RunFolder | None) -> list[PointResult]:
    """All points in order; those that the folder holds are read, the others run and written as they finish."""
    found: dict[int, PointResult] = {}
    made_from = {"opticube": version("opticube"), **input_digests(points)} if folder is not None else {}
    for group in history_groups(points):
        waiting: list[Point] = []
        for point in group:
            part = folder.read_part(point.index, made_from) if folder is not None else None
            if part is None:
                waiting.append(point)
            else:
                found[point.index] = PointResult(index=point.index, tables=part[0], values=part[1])
        if not waiting:
            continue
        for result in runner.run_group(waiting):
            found[result.index] = result
            if folder is not None:
                folder.write_part(result.index, result.tables, result.values, made_from)
    return [found[point.index] for point in points]


def _tasks_of(points: Sequence[Point]) -> int:
    """About how many tasks there are, for the progress line."""
    services = {services_key(point.scenario): point.scenario for point in points}
    tasks = sum(serving_tasks(scenario) for scenario in services.values())
    for group in history_groups(points):
        scenario = group[0].scenario
        study, sizes = scenario.study, len(delivered_sizes(scenario))
        tasks += replication_count(scenario) + len(group) * delivered_count(scenario) * sizes
        tasks += len(group) * (operations_count(scenario) + large_job_count(scenario))
        if study.fleet is not None:
            tasks += len(group) * study.fleet.replications * (study.fleet.pods + (study.fleet.one_queue is not None))
        if study.shared_pod is not None:
            asked = study.shared_pod
            tasks += len(group) * len(asked.machines) * asked.replications + len(asked.services)
    return tasks


class _Counter:
    """Counts tasks and tells whoever wants to know."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def advance(self, tasks: int, about: str) -> None:
        self._done += tasks
        if self._progress is not None:
            self._progress(self._done, max(self._total, self._done), about)


def _joined(scenario: Scenario, results: Sequence[PointResult]) -> dict[str, pd.DataFrame]:
    """The tables of all points, one below the other, and the paired differences between them.

    What points that differ in their fabric have in common is there once.
    """
    tables: dict[str, pd.DataFrame] = {}
    for name in SPECS:
        parts = [result.tables[name] for result in results if name in result.tables]
        if parts:
            tables[name] = pd.concat(parts, ignore_index=True)
    for name in SAME_FOR_FABRICS:
        if name in tables:
            tables[name] = tables[name].drop_duplicates(ignore_index=True)
    if "replications" in tables:
        differences = difference_table(tables["replications"])
        if differences is not None:
            tables["differences"] = differences
    effects = None if scenario.serving is None else scenario.serving.effects
    if effects is not None and "service_replications" in tables:
        names = {name: {key: text_of_setting(value) for key, value in c.items()} for name, c in effects.names.items()}
        better = "lower" if effects.measure in SERVICE_LOWER else "higher"
        swept = {key: [text_of_setting(value) for value in values] for key, values in scenario.sweep.items()}
        tables["effects"] = effect_table(tables["service_replications"], swept, effects.measure, better, names)
    return tables


def _result(simulated: _Simulated) -> Result:
    scenario, points, results = simulated.scenario, simulated.points, simulated.results
    tables = simulated.tables
    hosts = {result.index: float(result.values["host_availability"]) for result in results}
    verdicts = tuple(judge_expectations(scenario.expect, tables["summary"], hosts)) if scenario.expect else ()
    warnings = [*run_warnings(scenario, points, results), *(verdict.text for verdict in verdicts if not verdict.met)]
    manifest = _manifest(simulated) | {"warnings": warnings}
    return Result(
        scenario=scenario,
        tables=tables,
        context=context_of(manifest),
        manifest=manifest,
        timeline=chrome_trace(
            points,
            stages={result.index: result.values["stages"] for result in results},
            moments={result.index: result.values["moments"] for result in results if "moments" in result.values},
            cubes={r.index: r.tables["cube_story"] for r in results if "cube_story" in r.tables},
            failure_story=tables.get("failure_story"),
        ),
        verdicts=verdicts,
    )


def context_of(manifest: Mapping[str, Any]) -> ReportContext:
    """What a report knows of a run beside its tables: it is all in the manifest, and needs no file of the user's."""
    return ReportContext(
        name=str(manifest["name"]),
        description=str(manifest["description"]),
        settings=[(label, value, mark) for label, value, mark in manifest["settings"]],
        warnings=list(manifest["warnings"]),
        limits={name: ServiceLimits(**limits) for name, limits in manifest["limits"].items()},
        version=str(manifest["version"]),
        seed=int(manifest["seed"]),
        wall_time_s=float(manifest["wall_time_s"]),
        hall=tuple(manifest["hall"]) if manifest.get("hall") else None,
        pictures=manifest.get("pictures"),
    )


def _manifest(simulated: _Simulated) -> dict[str, Any]:
    """Version, seed, platform, wall time, digests of inputs, tables and failure draws, and what a report prints."""
    scenario, points, results = simulated.scenario, simulated.points, simulated.results
    pod = points[0].scenario.pod.build()
    return {
        "name": scenario.name,
        "description": scenario.description,
        "version": version("opticube"),
        "seed": scenario.run.seed,
        "platform": {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()},
        "libraries": {name: version(name) for name in ("numpy", "scipy", "numba", "pandas", "pyarrow", "simpy")},
        "wall_time_s": round(simulated.wall_time_s, 3),
        "points": [
            {
                "point": point.index,
                "host_availability": result.values["host_availability"],
                **{key: text_of_setting(value) for key, value in point.settings.items()},
            }
            for point, result in zip(points, results, strict=True)
        ],
        "hall": list(pod.grid) if isinstance(pod, Pod) else None,
        "pictures": None if scenario.run.pictures is None else list(scenario.run.pictures),
        "inputs": input_digests(points),
        "tables": {name: table_digest(table) for name, table in simulated.tables.items()},
        "failure_draws": {str(result.index): result.values["failure_draws"] for result in results},
        "streams": streams_digest([build_setup(point.scenario) for point in points]),
        "settings": [list(setting) for setting in effective_settings(scenario)],
        "limits": {name: asdict(limits) for name, limits in _limits(scenario).items()},
    }


def _limits(scenario: Scenario) -> dict[str, ServiceLimits]:
    """What each service promises."""
    services = () if scenario.serving is None else scenario.serving.services
    return {
        service.name: ServiceLimits(ttft_s=service.slo.ttft, tpot_s=service.slo.tpot, attainment=service.slo.attainment)
        for service in services
    }
