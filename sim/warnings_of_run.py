"""What a run warns about: swept keys that changed nothing, queues that can not keep up, disagreement with theory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from sim.build import build_setup
from sim.condition import component_counts
from sim.run_tables import SPECS
from workloads.load.laws import DiurnalRequests

if TYPE_CHECKING:
    from sim.points import PointResult
    from sim.scenario import Point, Scenario

SHORT_RATE = 0.8
"""Windows are told of whose requests per second are less than this share of those that arrive."""
SHORT_WINDOW = 100
"""Requests of a window per request in flight that leave little of filling and draining."""


def run_warnings(scenario: Scenario, points: Sequence[Point], results: Sequence[PointResult]) -> list[str]:
    """All warnings of a run, in words."""
    return [
        *_idle_keys(scenario, points, results),
        *_hosts_up(scenario),
        *_places_guessed(points[0].scenario),
        *_jobs_left_out(results),
        *_queues(points, results),
        *_part_of_a_day(points, results),
        *_short_windows(points, results),
        *_losses_left_out(points, results),
        *_disagreements(results),
    ]


def _values_of(result: PointResult) -> dict[str, pd.DataFrame]:
    """The tables of a point without the columns that name it."""
    named = ["fabric", "point", "host_availability"]
    return {
        name: table[[column for column in SPECS[name].names if column not in named]]
        for name, table in sorted(result.tables.items())
    }


def _are_equal(one: Mapping[str, pd.DataFrame], other: Mapping[str, pd.DataFrame]) -> bool:
    """Whether two points have the same tables with the same values."""
    return one.keys() == other.keys() and all(
        table.reset_index(drop=True).equals(other[name].reset_index(drop=True)) for name, table in one.items()
    )


def _idle_keys(scenario: Scenario, points: Sequence[Point], results: Sequence[PointResult]) -> Iterator[str]:
    """A swept key that changes nothing, whatever the other keys are, is probably a mistake."""
    if len(points) < 2:
        return
    values = {point.index: _values_of(result) for point, result in zip(points, results, strict=True)}
    for key in scenario.sweep:
        groups: dict[str, list[dict[str, pd.DataFrame]]] = {}
        for point in points:
            others = repr(sorted((name, str(value)) for name, value in point.settings.items() if name != key))
            groups.setdefault(others, []).append(values[point.index])
        if all(len(found) > 1 and all(_are_equal(found[0], each) for each in found[1:]) for found in groups.values()):
            yield f"sweeping {key} changed no number: is it the key you meant?"


def _hosts_up(scenario: Scenario) -> Iterator[str]:
    """The availability of hosts that is printed is that of their law alone."""
    repair = scenario.repair
    waits = repair.crews is not None or repair.retire is not None
    if scenario.study.operations is not None and (waits or repair.parts != type(repair.parts)()):
        yield "hosts up is by their law alone: waits for crews and parts, and retirement, come on top"


def _places_guessed(scenario: Scenario) -> Iterator[str]:
    """Names of a log that say nothing of the place: some of them side by side would look like one bad cube."""
    section = scenario.failures.log
    if section is None or section.place != "by_number":
        return
    setup = build_setup(scenario)
    for log in setup.logs:
        named = len(log.names)
        if log.is_numbered or log.has_cubes or named == component_counts(setup.pod)[log.kind]:
            continue
        what = f"names of kind {log.kind} in the log ({named}, such as {log.names[0]}) are no numbers"
        yield f"{what}, and stand side by side from 0 on: write `place: shuffled`, or a column cube into the log"


_LEFT_OUT = {
    "no_size": "the log does not know their processors",
    "no_run_time": "the log does not know their run time",
    "no_slice": "the rule has no slice for them",
    "shape": "the pod has no such shape",
    "resource": "the pod is too small",
}


def _jobs_left_out(results: Sequence[PointResult]) -> Iterator[str]:
    """Jobs of a log that never reach the pod, by reason, each text once."""
    texts = {
        f"jobs of the log left out: {count:,}, {_LEFT_OUT[reason]}": None
        for result in results
        for reason, count in result.values.get("left_out", {}).items()
    }
    yield from texts


def _queues(points: Sequence[Point], results: Sequence[PointResult]) -> Iterator[str]:
    """Services whose queue grows even with all replicas up; not those that turn away what they can not serve."""
    seen: dict[str, None] = {}
    for point, result in zip(points, results, strict=True):
        services = () if point.scenario.serving is None else point.scenario.serving.services
        sheds = [service.name for service in services if service.admission.within_capacity]
        table = result.tables.get("service", pd.DataFrame())
        if table.empty:
            continue
        loads = table[table["measure"] == "load_of_capacity"]
        for _, row in loads.iterrows():
            value: Any = row["value"]
            if value >= 1.0 and row["service"] not in sheds:
                seen[f"{row['service']}: overloaded, requests arrive at {value:.0%} of what it could serve"] = None
    yield from seen


def _part_of_a_day(points: Sequence[Point], results: Sequence[PointResult]) -> Iterator[str]:
    """Services whose rate follows the hour, seen for less than a whole period: their windows begin at hour 0."""
    seen: dict[str, None] = {}
    for point, result in zip(points, results, strict=True):
        serving, table = point.scenario.serving, result.tables.get("service", pd.DataFrame())
        if serving is None or table.empty:
            continue
        rates = table[table["measure"] == "offered_requests_per_s"].set_index("service")["value"]
        for service in serving.services:
            law = service.requests
            if isinstance(law, DiurnalRequests):
                wanted = math.ceil(float(rates.loc[[service.name]].iloc[0]) * law.period)
                if serving.windows.requests < wanted:
                    share = serving.windows.requests / wanted
                    what = f"{service.name}: the windows last {share:.0%} of a period, from its hour 0"
                    seen[f"{what}; {wanted:,} requests would see it whole"] = None
    yield from seen


def _short_windows(points: Sequence[Point], results: Sequence[PointResult]) -> Iterator[str]:
    """Services that keep up, but whose windows are so short that filling and draining decides their rates."""
    seen: dict[str, None] = {}
    for point, result in zip(points, results, strict=True):
        serving, table = point.scenario.serving, result.tables.get("service", pd.DataFrame())
        if serving is None or table.empty:
            continue
        for name, rows in table.groupby("service", sort=False):
            values = {str(row["measure"]): float(row["value"]) for _, row in rows.iterrows()}
            unknown = float("nan")
            offered, served = values.get("offered_requests_per_s", unknown), values.get("requests_per_s", unknown)
            in_flight = offered * values.get("request_mean_s", unknown)  # Little's law
            keeps_up = values.get("load_of_capacity", unknown) < 1 and not (
                values.get("queue_overloaded", 0.0) > 0 or values.get("queue_backlogged", 0.0) > 0
            )
            if keeps_up and served < SHORT_RATE * offered and serving.windows.requests < SHORT_WINDOW * in_flight:
                wanted = math.ceil(SHORT_WINDOW * in_flight / 1000) * 1000
                what = f"{name}: its windows of {serving.windows.requests:,} requests mostly fill and drain, since"
                told = f"{served:.3g} of {offered:.3g} requests per second"
                seen[
                    f"{what} {in_flight:,.0f} are served at a time: `requests_per_s` and `tokens_per_s` are too low "
                    f"({told}); write `serving.windows.requests: {wanted}` or more"
                ] = None
    yield from seen


def _losses_left_out(points: Sequence[Point], results: Sequence[PointResult]) -> Iterator[str]:
    """Services whose recoveries take too long, or meet too many requests, to be simulated token by token."""
    seen: dict[str, None] = {}
    for point, result in zip(points, results, strict=True):
        serving, table = point.scenario.serving, result.tables.get("service", pd.DataFrame())
        if serving is None or serving.windows.losses == 0 or table.empty:
            continue
        told = set(table.loc[table["measure"] == "tokens_missed_per_loss", "service"])
        for service in serving.services:
            if service.name not in told:
                seen[
                    f"{service.name}: a recovery meets too many requests to be simulated; what losses cost is left out"
                ] = None
    yield from seen


def _disagreements(results: Sequence[PointResult]) -> Iterator[str]:
    """Values that differ from a closed form by more than chance explains (once in 1,000 they do by chance)."""
    for result in results:
        table = result.tables.get("availability", pd.DataFrame())
        if table.empty:
            continue
        wrong = table[(table["agrees"].fillna(True) == False) & (table["form"] == "expected")]  # noqa: E712
        for _, row in wrong.iterrows():
            yield (
                f"{row['form']} of {row['slice_chips']} chips on {row['fabric']} is {row['value']:.4f}, "
                f"the closed form {row['closed_form']:.4f}: more than chance explains"
            )
