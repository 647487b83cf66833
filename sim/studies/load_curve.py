"""A service as requests come faster: windows at shares of its capacity, and the greatest rate within its limits."""

from __future__ import annotations

from collections.abc import Callable
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


def load_curve_points(
    scenario: Scenario, index: int, own: Calibration, executor: Executor | None, advance: Callable[[int, str], None]
) -> tuple[CurvePoint, ...]:
    """The points of service number `index`, rising in load, the knee among them where there is one.

    The knee lies between the last load that keeps the limits and the next, which does not; no such pair, no knee.
    Nothing without `serving.load_curve`, or where the service has no capacity of which a load could be a share.
    """
    assert scenario.serving is not None
    asked, section = scenario.serving.load_curve, scenario.serving.services[index]
    capacity = section.replicas * own.capacity_per_s
    if asked is None or capacity <= 0:
        return ()

    def tasks(rate_per_s: float) -> list[tuple[Scenario, WindowTask]]:
        return [
            (
                scenario,
                WindowTask(
                    service=index, rate_per_s=rate_per_s, saturated_per_s=own.saturated_per_s, repetition=repetition
                ),
            )
            for repetition in range(asked.replications)
        ]

    def at(load: float, windows: list[SteadyWindow]) -> CurvePoint:
        advance(1, f"{section.name}: load curve")
        return CurvePoint(load=load, rate_per_s=load * capacity, windows=tuple(windows))

    loads = sorted(asked.loads)
    found = map_tasks(executor, curve_window, [task for load in loads for task in tasks(load * capacity)])
    points = [at(load, [next(found) for _ in range(asked.replications)]) for load in loads]
    keeps = [point.attainment.value >= section.slo.attainment for point in points]
    last = next((place for place in range(len(points) - 1) if keeps[place] and not keeps[place + 1]), None)
    if last is None:
        return tuple(points)
    low, high = points[last], points[last + 1].load
    while high > KNEE_PRECISION * low.load:
        middle = (low.load * high) ** 0.5
        point = at(middle, list(map_tasks(executor, curve_window, tasks(middle * capacity))))
        if point.attainment.value >= section.slo.attainment:
            low = point
        else:
            high = middle
    knee = CurvePoint(load=low.load, rate_per_s=low.rate_per_s, windows=low.windows, is_knee=True)
    return (*points[: last + 1], knee, *points[last + 1 :])
