"""Sweep points of a run, one group of a shared history after the other: tasks out, rows of the tables back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pandas as pd

from sim.build import Setup, build_setup
from sim.executors import map_tasks
from sim.histories import ComponentKind
from sim.metrics.intervals import Estimate
from sim.metrics.pod_story import story_rows
from sim.metrics.replicas import ReplicaTimes, stacked_replicas
from sim.run_tables import make_table
from sim.scenario import Point, Scenario, asks_passes_alone
from sim.studies.availability import (
    AvailabilitySample,
    availability_rows,
    estimate_row,
    replication_count,
    replication_rows,
    sample_histories,
)
from sim.studies.delivered import (
    DeliveredSample,
    chip_hour_rows,
    delivered_count,
    delivered_estimate,
    delivered_sizes,
    logged_hosts_up,
    sample_delivered,
)
from sim.studies.draws import failures_digest
from sim.studies.fleet import rows_of_fleet
from sim.studies.flows import flow_rows
from sim.studies.large_job import large_job_count, large_job_rows, sample_large_job
from sim.studies.operations import operations_count, operations_rows, sample_operations
from sim.studies.passes import passes_rows
from sim.studies.promise import cliff_row, promise_rows
from sim.studies.service_replications import service_replication_rows
from sim.studies.service_rows import serving_rows
from sim.studies.serving import ServingOutcome, serving_study
from sim.studies.shared_pod import curves_of_services, shared_pod_tables
from sim.studies.waterfall import waterfall_rows
from sim.summary import summary_rows

Row = dict[str, Any]
R = TypeVar("R")
Advance = Callable[[int, str], None]
"""Called with the number of tasks that have finished and what they were about."""


@dataclass(frozen=True, kw_only=True)
class PointResult:
    """One finished sweep point: its tables, and values for the page, the manifest and later tables."""

    index: int
    tables: dict[str, pd.DataFrame]
    values: dict[str, Any]


@dataclass(kw_only=True)
class PointRunner:
    """Runs sweep points; keeps the outcomes of services, which points with other fabrics share."""

    executor: Executor | None
    advance: Advance
    _services: dict[str, ServingOutcome] = field(default_factory=dict)

    def run_group(self, points: Sequence[Point]) -> Iterator[PointResult]:
        """Run points that share their failure histories (see `history_groups`), in order."""
        setups = [build_setup(point.scenario) for point in points]
        first, fabrics = setups[0], list(dict.fromkeys(setup.fabric for setup in setups))
        samples: list[AvailabilitySample] = []
        tasks = [(first, fabrics, replication) for replication in range(replication_count(first.scenario))]
        for sample in map_tasks(self.executor, sample_histories, tasks):
            samples.append(sample)
            self.advance(1, "failure histories")
        hosts = [host_availability_of(setup, samples) for setup in setups]
        tasks_of_promises = list(zip(setups, hosts, strict=True))
        promised = list(map_tasks(self.executor, promise_rows, tasks_of_promises))
        delivered = self._delivered(setups)
        counts = [operations_count(setup.scenario) for setup in setups]
        operated = self._replications(setups, counts, sample_operations, "the pod in operation")
        counts = [large_job_count(setup.scenario) for setup in setups]
        large = self._replications(setups, counts, sample_large_job, "the very large job")
        serving = self._serving(first.scenario)
        curves = curves_of_services(first.scenario, serving, self.executor, self.advance)
        for number, (point, setup) in enumerate(zip(points, setups, strict=True)):
            before: dict[str, list[Row]] = {"promise": promised[number], **passes_rows(setup)}
            if operated[number]:
                before |= operations_rows(setup, operated[number], hosts[number])
            before |= shared_pod_tables(setup, curves, self.executor, self.advance, hosts[number])
            before |= rows_of_fleet(setup, self.executor, self.advance, hosts[number])
            if large[number]:
                rows = large_job_rows(setup, large[number], hosts[number])
                before["large_job"] = rows["large_job"]
                before["replications"] = before.get("replications", []) + rows["replications"]
            stages = [[0, *stage] for sample in operated[number][:1] for stage in sample.stages]
            result = _point_result(point, setup, samples, hosts[number], before, delivered[number], serving, stages)
            if operated[number]:
                result.values["left_out"] = dict(operated[number][0].left_out)
                result.values["moments"] = operated[number][0].moments
            yield result

    def _delivered(self, setups: Sequence[Setup]) -> list[dict[int, list[DeliveredSample]]]:
        """Per setup and slice size, the replications of the study `delivered`."""
        found: list[dict[int, list[DeliveredSample]]] = [{} for _ in setups]
        tasks = [
            (number, (setup, chips, replication))
            for number, setup in enumerate(setups)
            for chips in delivered_sizes(setup.scenario)
            for replication in range(delivered_count(setup.scenario))
        ]
        results = map_tasks(self.executor, sample_delivered, [given for _, given in tasks])
        for (number, (_, chips, _)), sample in zip(tasks, results, strict=True):
            found[number].setdefault(chips, []).append(sample)
            self.advance(1, "slices through failures")
        return found

    def _replications(
        self, setups: Sequence[Setup], counts: Sequence[int], sample: Callable[[Setup, int], R], about: str
    ) -> list[list[R]]:
        """Per setup so many replications of a study, all of them as tasks at once."""
        tasks = [
            (number, (setup, replication))
            for number, (setup, count) in enumerate(zip(setups, counts, strict=True))
            for replication in range(count)
        ]
        found: list[list[R]] = [[] for _ in setups]
        results = map_tasks(self.executor, sample, [given for _, given in tasks])
        for (number, _), one in zip(tasks, results, strict=True):
            found[number].append(one)
            self.advance(1, about)
        return found

    def _serving(self, scenario: Scenario) -> ServingOutcome | None:
        """The services token by token; shared by all points that differ in nothing that a service sees."""
        if scenario.serving is None:
            return None
        key = services_key(scenario)
        if key not in self._services:
            self._services[key] = serving_study(scenario, self.executor, self.advance)
        return self._services[key]


def services_key(scenario: Scenario) -> str:
    """All that services see of a scenario: points that have it in common share their services."""
    parts = scenario.model_dump(mode="json", include={"serving", "chips", "models", "run", "recovery", "health"})
    return json.dumps(parts, sort_keys=True)


def history_groups(points: Sequence[Point]) -> list[list[Point]]:
    """Points that differ in their fabric alone, together, in order of their first point."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        parts = point.scenario.model_dump(mode="json")
        parts["pod"].pop("fabric")
        groups.setdefault(json.dumps(parts, sort_keys=True), []).append(point)
    return list(groups.values())


def host_availability_of(setup: Setup, samples: Sequence[AvailabilitySample]) -> float:
    """Availability of hosts: of their law, or as the log has it."""
    if ComponentKind.HOST not in [log.kind for log in setup.logs]:
        return setup.odds.host
    return samples[0].hosts_up if samples else logged_hosts_up(setup)


def _point_result(
    point: Point,
    setup: Setup,
    samples: Sequence[AvailabilitySample],
    host: float,
    before: dict[str, list[Row]],
    delivered: dict[int, list[DeliveredSample]],
    serving: ServingOutcome | None,
    stages: list[list[Any]],
) -> PointResult:
    """All tables of one point; `before` holds the rows that are there already, `stages` those for the timeline.

    `host`: availability of hosts.
    """
    rows: dict[str, list[Row]] = {"replications": []} | before | {"availability": [], "chip_hours": []}
    expected: dict[int, Estimate] = {}
    if samples:
        rows["availability"] = availability_rows(setup, samples, host)
        rows["replications"] = replication_rows(setup, samples, host) + rows["replications"]
        expected = _expected(rows["availability"])
        rows["cliff"] = [cliff_row(setup, {chips: estimate.value for chips, estimate in expected.items()}, host)]
    for chips, own in delivered.items():
        estimate = delivered_estimate(own, expected.get(chips))
        rows["availability"].append(estimate_row(setup, chips, "delivered", estimate, host))
        rows["chip_hours"] += chip_hour_rows(setup, chips, own, host)
        rows |= _story(setup, chips, own[0], host)
        rows["replications"] += delivered_replications(setup, chips, own, host)
    if serving is not None:
        replicas = _replicas(setup, samples)
        for name, more in serving_rows(setup, serving, replicas, host).items():
            rows.setdefault(name, []).extend(more)
        rows.setdefault("service_replications", []).extend(service_replication_rows(setup, serving, replicas, host))
    rows["waterfall"] = waterfall_rows(setup, rows, host)
    if not asks_passes_alone(point.scenario):
        rows["flows"] = flow_rows(setup, rows, delivered, host)
    rows["summary"] = summary_rows(point.scenario.name, point.index, setup.fabric.value, rows)
    settings = dict(point.settings)
    tables = {name: make_table(name, found, settings) for name, found in rows.items() if found}
    draws = hashlib.sha256("".join(sample.failure_draws for sample in samples).encode()).hexdigest()[:16]
    if not samples:
        draws = failures_digest(setup)
    stages = [[chips, *stage] for chips, own in delivered.items() for stage in own[0].stages] + stages
    values = {"host_availability": host, "failure_draws": draws, "stages": stages}
    return PointResult(index=point.index, tables=tables, values=values)


def _story(setup: Setup, chips: int, first: DeliveredSample, host_availability: float) -> dict[str, list[Row]]:
    """What the replay shows, of the one size that it shows."""
    if first.story is None:
        return {}
    place = {"fabric": setup.fabric.value, "host_availability": host_availability}
    return {name: [place | row for row in rows] for name, rows in story_rows(first.story, chips).items()}


def _expected(rows: Sequence[Row]) -> dict[int, Estimate]:
    """`expected` by size as the table has it: of a log, the whole history with its bootstrap interval."""
    return {
        row["slice_chips"]: Estimate(value=row["value"], ci_low=_or_nan(row["ci_low"]), ci_high=_or_nan(row["ci_high"]))
        for row in rows
        if row["form"] == "expected"
    }


def _or_nan(bound: float | None) -> float:
    return math.nan if bound is None else bound


def _replicas(setup: Setup, samples: Sequence[AvailabilitySample]) -> ReplicaTimes | None:
    parts = [sample.replicas[setup.fabric] for sample in samples if setup.fabric in sample.replicas]
    return stacked_replicas(parts) if parts else None


def delivered_replications(
    setup: Setup, chips: int, samples: Sequence[DeliveredSample], host_availability: float
) -> list[Row]:
    """Rows of the table `replications`: `delivered` of every replication at one size."""
    return [
        {
            "fabric": setup.fabric.value,
            "host_availability": host_availability,
            "slice_chips": chips,
            "form": "delivered",
            "replication": sample.replication,
            "value": sample.delivered,
        }
        for sample in samples
    ]
