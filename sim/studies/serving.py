"""The services of a scenario: calibrated, simulated in windows, weighted by the time in each number of replicas up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.executors import map_tasks
from sim.scenario import Scenario
from sim.scenario_services import ServiceSection
from sim.studies.disturbance import Disturbance, disturbed_window
from sim.studies.lives import RequestLife, request_life, request_of_longest_gap
from sim.studies.load_curve import LoadCurve, load_curve_of
from sim.studies.service_parts import Calibration, calibrate, ladder_shapes, let_in_per_s, offered_rate_per_s
from sim.studies.story import Story, tell_story
from sim.studies.token_costs import TRAFFIC_WINDOWS, TokenCosts, costs_of_tokens, traffic_window
from sim.studies.windows import (
    LossWindow,
    SteadyWindow,
    WindowTask,
    ladder_window,
    loss_window,
    losses_fit,
    steady_window,
)
from topology.errors import refuse
from topology.fabric import Fabric
from workloads.serving.measures import ServiceMeasures

Floats = NDArray[np.float64]
STORY_FABRICS = (Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED)


@dataclass(frozen=True, kw_only=True)
class ServiceOutcome:
    """All that was simulated of one service, whatever the fabric.

    `steady[m - 1]` holds the windows with m replicas up, one per repetition; `ladder` the calibrations by slice size;
    `life` the recorded request with the longest gap between two tokens, where requests are recorded; `tokens` what a
    token moves through each memory.
    """

    section: ServiceSection
    own: Calibration
    ladder: tuple[Calibration, ...]
    ladder_windows: tuple[ServiceMeasures | None, ...]
    rate_per_s: float
    steady: tuple[tuple[SteadyWindow, ...], ...]
    losses: tuple[LossWindow, ...]
    curve: LoadCurve
    disturbance: Disturbance | None
    stories: tuple[Story, ...]
    life: RequestLife | None = None
    tokens: TokenCosts | None = None

    def let_in_per_s(self, replicas: int) -> float:
        """Requests per second that are let in with so many replicas up."""
        return let_in_per_s(self.section, self.own, self.rate_per_s, replicas)

    def pooled(self, replicas: int) -> ServiceMeasures:
        """Measures of all windows with `replicas` (at least 1) up."""
        parts = [window.measures for window in self.steady[replicas - 1]]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def values(self, of: Callable[[SteadyWindow], float], nothing: float = 0.0) -> Floats:
        """`of` each window, (repetitions, replicas + 1); with no replica up it is `nothing`."""
        rows = [[nothing] * len(self.steady[0])] + [[of(window) for window in windows] for windows in self.steady]
        return np.array(rows, dtype=np.float64).T


@dataclass(frozen=True, kw_only=True)
class ServingOutcome:
    """The outcomes of all services, in the order of the scenario."""

    services: tuple[ServiceOutcome, ...]


def serving_study(scenario: Scenario, executor: Executor | None, advance: Callable[[int, str], None]) -> ServingOutcome:
    """Calibrate and simulate every service. Raises InputError where the limits of one can not be met at all."""
    serving = scenario.serving
    assert serving is not None
    shapes = [(index, str(shape)) for index, each in enumerate(serving.services) for shape in ladder_shapes(each)]
    found: list[list[Calibration]] = [[] for _ in serving.services]
    results = map_tasks(executor, calibrate, [(scenario, index, shape) for index, shape in shapes])
    for (index, _), calibration in zip(shapes, results, strict=True):
        found[index].append(calibration)
        advance(1, "services over slice sizes")
    outcomes = []
    for index, section in enumerate(serving.services):
        own = next(each for each in found[index] if each.shape == str(section.shape()))
        _check_possible(section, index, own, found[index])
        outcomes.append(_simulate(scenario, index, own, found[index], executor, advance))
    return ServingOutcome(services=tuple(outcomes))


def serving_tasks(scenario: Scenario) -> int:
    """About how many tasks `serving_study` tells: knees and losses that turn out impossible are not known before."""
    serving = scenario.serving
    if serving is None:
        return 0
    loads = 0 if serving.load_curve is None else len(serving.load_curve.loads)
    each = serving.windows.losses + loads
    return sum(len(ladder_shapes(s)) + s.replicas * serving.windows.replications + each for s in serving.services)


def _check_possible(section: ServiceSection, index: int, own: Calibration, ladder: Sequence[Calibration]) -> None:
    within = section.admission.within_capacity
    if own.meets or (section.load is None and not within):
        return
    meets = [each.shape for each in ladder if each.meets]
    advice = f"write `slice: {meets[0]}`, or wider limits" if meets else "write wider limits under `slo`"
    what = f"no rate of requests meets the limits of {section.name} on {own.shape}, so "
    if section.load is not None:
        raise refuse(f"serving.services.{index}.load", f"{what}a load means nothing", advice)
    raise refuse(f"serving.services.{index}.admission.within_capacity", f"{what}none could be let in", advice)


def _simulate(
    scenario: Scenario,
    index: int,
    own: Calibration,
    ladder: Sequence[Calibration],
    executor: Executor | None,
    advance: Callable[[int, str], None],
) -> ServiceOutcome:
    serving = scenario.serving
    assert serving is not None
    section, windows = serving.services[index], serving.windows
    rate = offered_rate_per_s(section, own)
    fault = section.rate_fault(rate, windows.requests)
    if fault is not None:
        raise refuse(f"serving.services.{index}.{'load' if section.load is not None else 'requests'}", *fault)

    def task(repetition: int, replicas: int = section.replicas) -> WindowTask:
        let_in = let_in_per_s(section, own, rate, replicas)
        return WindowTask(
            service=index,
            rate_per_s=let_in,
            saturated_per_s=own.saturated_per_s,
            repetition=repetition,
            let_in=let_in / rate,
        )

    steady_tasks = [
        (scenario, task(repetition, replicas), replicas)
        for replicas in range(1, section.replicas + 1)
        for repetition in range(windows.replications)
    ]
    steady: list[list[SteadyWindow]] = [[] for _ in range(section.replicas)]
    for window in map_tasks(executor, steady_window, steady_tasks):
        steady[window.replicas - 1].append(window)
        advance(1, f"{section.name}: steady windows")
    losses: list[LossWindow] = []
    count = windows.losses if losses_fit(scenario, let_in_per_s(section, own, rate, section.replicas)) else 0
    for loss in map_tasks(executor, loss_window, [(scenario, task(number)) for number in range(count)]):
        losses.append(loss)
        advance(1, f"{section.name}: windows around losses")
    told = request_of_longest_gap(steady[-1][0].token_ns)
    lives = list(map_tasks(executor, request_life, [] if told is None else [(scenario, task(0), told)]))
    most = 0 if section.speculation is not None else TRAFFIC_WINDOWS  # passes of several tokens are not told
    repetitions = range(min(windows.replications, most))
    traffic = list(map_tasks(executor, traffic_window, [(scenario, task(number)) for number in repetitions]))
    disturbance = None
    if serving.disturbance is not None:
        tasks = [(scenario, task(number)) for number in range(windows.replications)]
        disturbed = tuple(map_tasks(executor, disturbed_window, tasks))
        disturbance = Disturbance(asked=serving.disturbance, repetitions=disturbed)
    stories = list(map_tasks(executor, tell_story, [(scenario, task(0), fabric) for fabric in STORY_FABRICS]))
    at_capacity = list(map_tasks(executor, ladder_window, [(scenario, index, each) for each in ladder]))
    return ServiceOutcome(
        section=section,
        own=own,
        ladder=tuple(ladder),
        ladder_windows=tuple(at_capacity),
        rate_per_s=rate,
        steady=tuple(map(tuple, steady)),
        losses=tuple(losses),
        curve=load_curve_of(scenario, index, own, executor, advance),
        disturbance=disturbance,
        stories=tuple(stories),
        life=lives[0] if lives else None,
        tokens=costs_of_tokens(scenario, section, ladder, traffic),
    )
