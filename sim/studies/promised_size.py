"""Cubes needed for a promise, by simulation: machines of growing size under the same bad luck.

Draw k of host h is the same in a machine of any size, so what is compared between sizes is the size alone. Where crews
are without limit and only single components fail, a larger machine of cubes that can be joined at will, or of fixed
blocks, holds the promise whenever a smaller one does; elsewhere that is true on the whole. Boxes on the torus of cubes
depend on the form of the grid: there every size is looked at in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sim.build import Setup, build_setup, seconds_to_us
from sim.condition import component_counts
from sim.histories import ComponentKind, Outages
from sim.job_policies import NoCheckpoints
from sim.metrics.intervals import Estimate
from sim.metrics.promise_months import slice_demands
from sim.metrics.replicas import ReplicaDemand, replicas_up
from sim.metrics.segments import segments_of
from sim.metrics.trace_outages import drained_cubes, outages_of_trace
from sim.policies import why_no_closed_form
from sim.scenario import Scenario
from sim.scenario_parts import PodSection
from sim.studies.job_plays import play_jobs
from sim.trace import Stage, Trace
from topology.boxes import standard_box
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE, CHIPS_PER_HOST, HOSTS_PER_CUBE, Pod, grid_nearest_cube
from topology.shape import Shape
from workloads.jobs.defragmentation import NoDefragmentation
from workloads.jobs.job import Job, make_job


class Held(StrEnum):
    """What it means that a slice is held: that it could be formed, or that a job runs on it."""

    POSSIBLE = "possible"
    RUNNING = "running"


@dataclass(frozen=True, kw_only=True)
class PromisedSize:
    """What is asked: which slices (shape -> how many), on a machine that lives as `scenario` says, and for how long."""

    scenario: Scenario
    slices: Mapping[Shape, int]
    held: Held = Held.POSSIBLE
    horizon_s: float = 365 * 86_400.0

    @property
    def is_drawn(self) -> bool:
        """Whether histories can be drawn beforehand: nobody waits, nothing is correlated, and no job is asked about."""
        scenario = self.scenario
        return self.held is Held.POSSIBLE and not why_no_closed_form(
            health=scenario.health,
            repair=scenario.repair,
            others=scenario.failures.others,
            maintenance=scenario.maintenance,
        )

    @property
    def demands(self) -> tuple[ReplicaDemand, ...]:
        """The slices by chips, largest first, which is the order in which they are dealt."""
        wanted: dict[int, int] = {}
        for shape, count in self.slices.items():
            wanted[shape.chips] = wanted.get(shape.chips, 0) + count
        return slice_demands(wanted)

    @property
    def chips(self) -> int:
        """Chips of all promised slices together."""
        return sum(demand.slice_chips * demand.replicas for demand in self.demands)

    @property
    def fewest_cubes(self) -> int:
        """Cubes without which the slices never fit: their hosts, whole cubes for slices of a cube or more."""
        hosts = sum(max(1, demand.slice_chips // CHIPS_PER_HOST) * demand.replicas for demand in self.demands)
        return -(-hosts // HOSTS_PER_CUBE)

    def unit(self, fabric: Fabric) -> int:
        """Only every so many cubes change anything: fixed blocks come whole."""
        if fabric is not Fabric.STATIC_ALIGNED:
            return 1
        return math.gcd(*(max(1, demand.slice_chips // CHIPS_PER_CUBE) for demand in self.demands))

    def setup(self, fabric: Fabric, cubes: int) -> Setup:
        """The parts of a machine of so many cubes, on the grid that is nearest to a cube.

        Slices have no work that could be saved, and each has its place: no checkpoints, nobody is moved to make room.
        """
        grid = "x".join(map(str, grid_nearest_cube(cubes)))
        pod = PodSection(cubes=cubes, grid=grid, fabric=fabric)
        scheduling = self.scenario.scheduling.model_copy(update={"defragmentation": NoDefragmentation()})
        settings = {"pod": pod, "checkpoint": NoCheckpoints(), "scheduling": scheduling}
        return build_setup(self.scenario.model_copy(update=settings))


def sample_share_held(question: PromisedSize, fabric: Fabric, cubes: int, replication: int) -> float:
    """Share of the time after the warm-up for which one machine in one replication holds all promised slices at once.

    `possible` asks what is up, as `expected` does; where crews, parts, common causes or drains decide that, the machine
    is played without jobs. `running` plays jobs without end in demand, with every stage of their recovery.
    """
    setup, horizon_us = question.setup(fabric, cubes), seconds_to_us(question.horizon_s)
    warmup_us = seconds_to_us(setup.scenario.run.warmup)
    if question.held is Held.RUNNING:
        trace = play_jobs(setup, promised_jobs(question, setup, replication), replication, horizon_us)
        return share_all_running(trace, sum(question.slices.values()), warmup_us)
    outages = (
        setup.histories(replication, horizon_us) if question.is_drawn else _outages(setup, replication, horizon_us)
    )
    segments = segments_of(setup.pod, outages, horizon_us, from_us=warmup_us)
    up = replicas_up(segments, setup.pod, fabric, question.demands)
    held = (up == [demand.replicas for demand in question.demands]).all(axis=1)
    return float(segments.duration_us[held].sum() / segments.total_us)


def promised_jobs(question: PromisedSize, setup: Setup, replication: int) -> list[Job]:
    """A job without end for every promised slice, the largest first."""
    shapes = [shape for shape, count in question.slices.items() for _ in range(count)]
    shapes.sort(key=lambda shape: -shape.chips)
    opt_in = setup.scenario.recovery.reroute_opt_in
    opted_in = (setup.streams(replication).uniforms("jobs.reroute_opt_in", 0, len(shapes)) < opt_in).tolist()
    return [
        make_job(number, setup.pod, shape.chips, shape=shape, reroute_opt_in=opted_in[number])
        for number, shape in enumerate(shapes)
    ]


def share_all_running(trace: Trace, jobs: int, warmup_us: int = 0) -> float:
    """Share of the time after the warm-up in which all jobs run at once (at whatever speed)."""
    steps: list[tuple[int, int]] = []
    for interval in trace.stage_intervals():
        if interval.stage is Stage.RUNNING and interval.end_us > warmup_us:
            steps += [(max(interval.start_us, warmup_us), 1), (interval.end_us, -1)]
    together_us = running = since_us = 0
    for time_us, step in sorted(steps):
        together_us += time_us - since_us if running == jobs else 0
        running, since_us = running + step, time_us
    return together_us / (trace.horizon_us - warmup_us)


def _outages(setup: Setup, replication: int, horizon_us: int) -> list[Outages]:
    """What is out when, on a machine that is played without jobs."""
    trace = play_jobs(setup, [], replication, horizon_us)
    return [*outages_of_trace(trace, component_counts(setup.pod), tuple(ComponentKind)), drained_cubes(trace)]


def fits_somewhere(question: PromisedSize, cubes: int) -> bool:
    """Whether the grid of so many cubes has room for a box of every promised size."""
    pod = Pod(cubes=cubes, grid=grid_nearest_cube(cubes))
    sizes = [max(1, demand.slice_chips // CHIPS_PER_CUBE) for demand in question.demands]
    return all(standard_box(pod.grid, size) is not None for size in sizes)


@dataclass(frozen=True, kw_only=True)
class LeastCubes:
    """The answer: the fewest cubes whose mean keeps the promise, and the share of time that these hold it.

    `low` is the least size whose upper 95 % limit keeps it (smaller machines can be ruled out), `high` the least whose
    lower limit does (from there on it can be relied on); None where no size that was tried is enough.
    """

    cubes: int | None
    low: int | None
    high: int | None
    share: Estimate | None


Keeps = Callable[[Estimate], bool]


def _rules(time_share: float) -> tuple[Keeps, Keeps, Keeps]:
    """Whether the upper limit, the mean, the lower limit keep the promise; without an interval the mean decides."""

    def of(limit: Callable[[Estimate], float]) -> Keeps:
        return lambda found: (found.value if math.isnan(limit(found)) else limit(found)) >= time_share

    return of(lambda found: found.ci_high), of(lambda found: found.value), of(lambda found: found.ci_low)


def least_by_halving(
    share_of: Callable[[int], Estimate], time_share: float, *, fewest: int, most: int, hint: int, unit: int = 1
) -> LeastCubes:
    """Search multiples of `unit` from `fewest` to `most`, from `hint` outwards in growing steps, then by halving.

    A share that falls twice in a row while the machine grows does not rise again (its crews can not keep up): the
    search ends there.
    """
    first, last = -(-fewest // unit), most // unit

    def search(keeps: Keeps, near: int) -> int | None:
        start = min(max(-(-near // unit), first), last)
        low, high, step = start - 1, start, 1
        if keeps(share_of(start * unit)):
            while low >= first and keeps(share_of(low * unit)):
                high, step = low, 2 * step
                low = max(low - step, first - 1)
        else:
            falls, before = 0, share_of(start * unit).value
            while falls < 2:
                if high == last:
                    return None
                low, high, step = high, min(high + step, last), 2 * step
                found = share_of(high * unit)
                if keeps(found):
                    break
                falls, before = falls + 1 if found.value < before else 0, found.value
            else:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if keeps(share_of(middle * unit)) else (middle, high)
        return high * unit

    upper, mean, lower = _rules(time_share)
    cubes = search(mean, hint)
    least, surest = (search(keeps, cubes or hint) for keeps in (upper, lower))
    return LeastCubes(cubes=cubes, low=least, high=surest, share=None if cubes is None else share_of(cubes))


def least_in_turn(share_of: Callable[[int], Estimate], time_share: float, sizes: Iterable[int]) -> LeastCubes:
    """Look at every size in turn until its lower limit keeps the promise."""
    upper, mean, lower = _rules(time_share)
    cubes = low = None
    share: Estimate | None = None
    for size in sizes:
        found = share_of(size)
        low = size if low is None and upper(found) else low
        if cubes is None and mean(found):
            cubes, share = size, found
        if lower(found):
            return LeastCubes(cubes=cubes, low=low, high=size, share=share)
    return LeastCubes(cubes=cubes, low=low, high=None, share=share)
