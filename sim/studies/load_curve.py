"""A service as requests come faster: windows at shares of its capacity, and the greatest rate within its limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from sim.executors import map_tasks
from sim.metrics.intervals import Estimate, mean_estimate
from sim.scenario import Scenario
from sim.studies.service_parts import Calibration
from sim.studies.windows import SteadyWindow, WindowTask, curve_window
from workloads.serving.measures import ServiceMeasures

KNEE_PRECISION = 1.01
"""The goodput rate is found by bisection to 1 %."""
MOST_STEPS = 8
"""So often a load is halved, or doubled, to find where a repetition begins to keep its limits, or to miss them."""


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """Windows at one rate, one per repetition. `is_knee`: the greatest rate found at which the limits are kept."""

    load: float
    rate_per_s: float
    windows: tuple[SteadyWindow, ...]
    is_knee: bool = False

    @property
    def attainment(self) -> Estimate:
        """Share of offered requests within both limits, over repetitions."""
        return mean_estimate([window.measures.attainment for window in self.windows])

    @property
    def pooled(self) -> ServiceMeasures:
        """Measures of all repetitions together."""
        total = self.windows[0].measures
        for window in self.windows[1:]:
            total = total + window.measures
        return total


@dataclass(frozen=True, kw_only=True)
class LoadCurve:
    """The points of a service's load curve, rising in load, and the goodput rate of each repetition by itself.

    The knee among the points is that of all repetitions together. `goodput_rates_per_s` is empty where there is no such
    rate, or some repetition has none within `MOST_STEPS` halvings or doublings of the loads.
    """

    points: tuple[CurvePoint, ...] = ()
    goodput_rates_per_s: tuple[float, ...] = ()

    @property
    def goodput_rate(self) -> Estimate | None:
        """That of all repetitions together, with the interval of the single ones; None where there is none."""
        singles = mean_estimate(self.goodput_rates_per_s) if self.goodput_rates_per_s else None
        for point in self.points:
            if point.is_knee:
                rate, half = point.rate_per_s, singles.half_width if singles is not None else math.nan
                return Estimate(value=rate, ci_low=rate - half, ci_high=rate + half, n=len(point.windows))
        return singles

    def of_repetitions(self, number: int, groups: int) -> LoadCurve:
        """The rates of the repetitions `number`, `number` + `groups`, ... alone: nothing where there are none."""
        return LoadCurve(goodput_rates_per_s=self.goodput_rates_per_s[number::groups])


def load_curve_of(
    scenario: Scenario, index: int, own: Calibration, executor: Executor | None, advance: Callable[[int, str], None]
) -> LoadCurve:
    """The load curve of service number `index`, the knee among its points where there is one.

    The knee lies between the last load that keeps the limits and the next, which does not; no such pair, no knee.
    Nothing without `serving.load_curve`, or where the service has no capacity of which a load could be a share.
    """
    assert scenario.serving is not None
    asked, section = scenario.serving.load_curve, scenario.serving.services[index]
    capacity = section.replicas * own.capacity_per_s
    if asked is None or capacity <= 0:
        return LoadCurve()

    def task(rate_per_s: float, repetition: int) -> tuple[Scenario, WindowTask]:
        window = WindowTask(
            service=index, rate_per_s=rate_per_s, saturated_per_s=own.saturated_per_s, repetition=repetition
        )
        return scenario, window

    def tasks(rate_per_s: float) -> list[tuple[Scenario, WindowTask]]:
        return [task(rate_per_s, repetition) for repetition in range(asked.replications)]

    def at(load: float, windows: list[SteadyWindow]) -> CurvePoint:
        advance(1, f"{section.name}: load curve")
        return CurvePoint(load=load, rate_per_s=load * capacity, windows=tuple(windows))

    loads = sorted(asked.loads)
    found = map_tasks(executor, curve_window, [task for load in loads for task in tasks(load * capacity)])
    points = [at(load, [next(found) for _ in range(asked.replications)]) for load in loads]
    last = _last_that_keeps([point.attainment.value for point in points], section.slo.attainment)
    if last is None:
        return LoadCurve(points=tuple(points))
    low, high = points[last], points[last + 1].load
    while high > KNEE_PRECISION * low.load:
        middle = (low.load * high) ** 0.5
        point = at(middle, list(map_tasks(executor, curve_window, tasks(middle * capacity))))
        if point.attainment.value >= section.slo.attainment:
            low = point
        else:
            high = middle
    knee = CurvePoint(load=low.load, rate_per_s=low.rate_per_s, windows=low.windows, is_knee=True)

    def attained(loads: Sequence[tuple[int, float]]) -> list[float]:
        wanted = [task(load * capacity, repetition) for repetition, load in loads]
        return [window.measures.attainment for window in map_tasks(executor, curve_window, wanted)]

    own_loads = knees_by_repetition(points, section.slo.attainment, attained)
    return LoadCurve(
        points=(*points[: last + 1], knee, *points[last + 1 :]),
        goodput_rates_per_s=tuple(load * capacity for load in own_loads),
    )


def knees_by_repetition(
    points: Sequence[CurvePoint], attainment: float, attained: Callable[[Sequence[tuple[int, float]]], list[float]]
) -> list[float]:
    """Per repetition the greatest load at which its own window keeps the limits, by bisection to 1 %, all at once.

    `attained` gives attainments for pairs of repetition and load. A repetition that misses its limits at all loads
    is asked at half of the least, one that keeps them at twice the greatest, and so on. Empty where that finds nothing.
    """
    loads = [point.load for point in points]
    brackets: list[list[float]] = []
    for repetition in range(len(points[0].windows)):
        shares = [point.windows[repetition].measures.attainment for point in points]
        last = _last_that_keeps(shares, attainment)
        if last is not None:
            brackets.append(loads[last : last + 2])
            continue
        keeps = shares[0] >= attainment
        edge, factor = (loads[-1], 2.0) if keeps else (loads[0], 0.5)
        for _ in range(MOST_STEPS):
            edge *= factor
            if (attained([(repetition, edge)])[0] >= attainment) != keeps:
                break
        else:
            return []
        brackets.append(sorted((edge, edge / factor)))
    while wide := [number for number, (low, high) in enumerate(brackets) if high > KNEE_PRECISION * low]:
        middles = [(brackets[number][0] * brackets[number][1]) ** 0.5 for number in wide]
        for number, middle, share in zip(wide, middles, attained(list(zip(wide, middles, strict=True))), strict=True):
            brackets[number][0 if share >= attainment else 1] = middle
    return [low for low, _ in brackets]


def _last_that_keeps(shares: Sequence[float], attainment: float) -> int | None:
    """Place of the first share that keeps `attainment` before one that does not; None where there is no such pair."""
    keeps = [share >= attainment for share in shares]
    return next((place for place in range(len(keeps) - 1) if keeps[place] and not keeps[place + 1]), None)
