"""A pod that serves and trains, from its log alone: what is served in time, what trains, who waits for what.

Replicas are jobs: `ReplicaJob` says which job is which replica of which service, and for how long it is wanted. While
it is wanted and not up, it waits, and every microsecond of that has one cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from sim.histories import ComponentKind
from sim.metrics.ledger import JobLedger
from sim.metrics.step_counts import Ints, StepCount, joined_edges, step_count
from sim.metrics.trace_outages import outages_of_trace
from sim.metrics.uses import Use
from sim.trace import FULL_SPEED_PPM, Stage, StageInterval, Trace, Verb
from topology.pod import HOSTS_PER_CUBE, IN_RACK_LINKS_PER_CUBE

Floats = NDArray[np.float64]
US_PER_S = 1_000_000
US_PER_HOUR = 3_600_000_000
EVERY_US = 60 * US_PER_S
"""Between two changes the demand is taken in the middle of stretches of at most so long."""


class WaitCause(StrEnum):
    """Why a replica that is wanted is not up."""

    NO_CUBE = "no_cube"
    DRAIN = "drain"
    CIRCUITS = "circuits"
    PREFLIGHT = "preflight"
    WEIGHTS = "weights"
    MOVE = "move"
    DETECTING = "detecting"
    EVICTING = "evicting"


CAUSE_OF_STAGE = {
    Stage.WAITING: WaitCause.NO_CUBE,
    Stage.RECONFIGURING: WaitCause.CIRCUITS,
    Stage.PREFLIGHT: WaitCause.PREFLIGHT,
    Stage.RESTORING: WaitCause.WEIGHTS,
    Stage.MIGRATING: WaitCause.MOVE,
    Stage.CHECKPOINTING: WaitCause.MOVE,
    Stage.DETECTING: WaitCause.DETECTING,
    Stage.EVICTING: WaitCause.EVICTING,
    Stage.HELD_IDLE: WaitCause.NO_CUBE,
}
"""Cause of the wait in each stage but running.

A replica that queues waits for a cube; once a job has been told to make way for it, for that to save and go (`drain`).
"""


@dataclass(frozen=True, kw_only=True)
class ReplicaJob:
    """Job number `job` is a replica of service number `service`, wanted in [from_us, until_us)."""

    job: int
    service: int
    from_us: int
    until_us: int


@dataclass(frozen=True, kw_only=True)
class ServiceOnPod:
    """One service on the pod: demand and what of it is served in time (requests), and counts of replicas over time.

    `up` is in millionths of a replica at full speed. `wait_us` by cause adds up to the time for which a replica was
    wanted and not up. `starts` are the terms of replicas that began after the warm-up, `start_us` what they waited
    until they first ran, or were not wanted any more.
    """

    offered: float
    in_time: float
    wanted: StepCount
    up: StepCount
    unnoticed: StepCount
    wanted_us: int
    up_us: int
    wait_us: Mapping[WaitCause, int]
    starts: int
    start_us: int


RatesAt = Callable[[Floats], Floats]
ServedAt = Callable[[Floats, Floats, Floats], Floats]
"""Requests per second in time, of demand, replicas up, and replicas down that nobody has noticed (T,)."""


def stages_by_job(trace: Trace) -> dict[int, list[StageInterval]]:
    """Every stretch of every stage, by job."""
    found: dict[int, list[StageInterval]] = {}
    for interval in trace.stage_intervals():
        found.setdefault(interval.job, []).append(interval)
    return found


def told_to_make_way(trace: Trace) -> dict[int, list[int]]:
    """By waiting job the instants at which a job was told to make way for it."""
    found: dict[int, list[int]] = {}
    for time_us, verb, _, component, _, _, _ in trace.rows:
        if verb == Verb.MAKE_WAY:
            found.setdefault(component, []).append(time_us)
    return found


def service_on_pod(
    trace: Trace,
    stages: Mapping[int, Sequence[StageInterval]],
    way: Mapping[int, Sequence[int]],
    replicas: Sequence[ReplicaJob],
    *,
    rates_at: RatesAt,
    served_at: ServedAt,
    warmup_us: int,
) -> ServiceOnPod:
    """What the log says of the replicas of one service after the warm-up."""
    wait_us = dict.fromkeys(WaitCause, 0)
    up: list[tuple[int, int, int]] = []
    unnoticed: list[tuple[int, int, int]] = []
    starts = start_us = wanted_us = up_us = 0
    for replica in replicas:
        until_us = min(replica.until_us, trace.horizon_us)
        wanted_us += max(0, until_us - max(replica.from_us, warmup_us))
        first_us = until_us
        for interval in stages.get(replica.job, ()):
            end_us = min(interval.end_us, until_us)
            if interval.start_us >= end_us:
                continue
            counted_us = max(0, end_us - max(interval.start_us, warmup_us))
            if interval.stage is Stage.RUNNING:
                up.append((interval.start_us, end_us, interval.speed_ppm))
                up_us += counted_us
                first_us = min(first_us, interval.start_us)
                continue
            if interval.stage is Stage.DETECTING:
                unnoticed.append((interval.start_us, end_us, FULL_SPEED_PPM))
            for cause, part_us in _causes(interval, end_us, warmup_us, way.get(replica.job, ())):
                wait_us[cause] += part_us
        if replica.from_us >= warmup_us:
            starts += 1
            start_us += first_us - replica.from_us
    counts = [step_count(stretches) for stretches in (_wanted(replicas, trace.horizon_us), up, unnoticed)]
    offered, in_time = _served(counts, rates_at, served_at, warmup_us, trace.horizon_us)
    return ServiceOnPod(
        offered=offered, in_time=in_time, wanted=counts[0], up=counts[1], unnoticed=counts[2],
        wanted_us=wanted_us, up_us=up_us, wait_us=wait_us, starts=starts, start_us=start_us,
    )  # fmt: skip


def _wanted(replicas: Sequence[ReplicaJob], horizon_us: int) -> Iterator[tuple[int, int, int]]:
    for replica in replicas:
        if replica.from_us < horizon_us:
            yield replica.from_us, min(replica.until_us, horizon_us), 1


def _causes(
    interval: StageInterval, end_us: int, warmup_us: int, told_us: Sequence[int]
) -> Iterator[tuple[WaitCause, int]]:
    """The causes of one stretch of waiting and their lengths; queueing is cut at the first job told to make way."""
    start_us, cause = max(interval.start_us, warmup_us), CAUSE_OF_STAGE[interval.stage]
    if start_us >= end_us:
        return
    cut_us = end_us
    if interval.stage is Stage.WAITING:
        cut_us = min((max(told, start_us) for told in told_us if interval.start_us <= told < end_us), default=end_us)
    yield cause, cut_us - start_us
    yield WaitCause.DRAIN, end_us - cut_us


def _served(
    counts: Sequence[StepCount], rates_at: RatesAt, served_at: ServedAt, warmup_us: int, horizon_us: int
) -> tuple[float, float]:
    """Requests offered and served in time from the warm-up to the horizon, stretch by stretch."""
    _, up, unnoticed = counts
    edges = joined_edges(warmup_us, horizon_us, EVERY_US, counts)
    lengths = np.diff(edges) / US_PER_S
    demand = rates_at((edges[:-1] + edges[1:]) / (2 * US_PER_S))
    counted = [count.at(edges[:-1]) / FULL_SPEED_PPM for count in (up, unnoticed)]
    served = np.minimum(served_at(demand, *counted), demand)
    return float(demand @ lengths), float(served @ lengths)


def cubes_moved(trace: Trace, serving: Sequence[ReplicaJob], warmup_us: int) -> int:
    """How often after the warm-up a cube was given to serving after training had it, or the other way round."""
    replicas = {replica.job for replica in serving}
    last: dict[int, bool] = {}
    moved = 0
    for time_us, verb, _, _, job, _, value in trace.rows:
        if verb != Verb.OCCUPY:
            continue
        placed, serves = trace.placements[value], job in replicas
        for cube in placed.cubes or tuple(sorted({host // HOSTS_PER_CUBE for host in placed.hosts})):
            moved += cube in last and last[cube] is not serves and time_us >= warmup_us
            last[cube] = serves
    return moved


def training_chip_us(ledgers: Sequence[JobLedger], serving: Sequence[ReplicaJob]) -> tuple[int, int]:
    """Chip-microseconds of useful training, and of all that the jobs of training held or lost beside it."""
    replicas = {replica.job for replica in serving}
    own = [ledger for ledger in ledgers if ledger.job not in replicas and not ledger.rejected]
    useful = sum(ledger.chips * ledger.us[Use.USEFUL] for ledger in own)
    held = sum(ledger.chips * (sum(ledger.us.values()) - ledger.us[Use.WAITING]) for ledger in own)
    return useful, held


def held_chips(stages: Mapping[int, Sequence[StageInterval]], chips: Mapping[int, int]) -> StepCount:
    """Chips on which these jobs run, over time; `chips` by job."""
    return step_count(
        (interval.start_us, interval.end_us, count)
        for job, count in chips.items()
        for interval in stages.get(job, ())
        if interval.stage is Stage.RUNNING
    )


def cubes_out(trace: Trace, counts: dict[ComponentKind, int]) -> StepCount:
    """Cubes of which a host, the rack or an in-rack link is down, over time; `counts` of components by kind."""
    per_cube = {
        ComponentKind.HOST: HOSTS_PER_CUBE, ComponentKind.RACK: 1, ComponentKind.IN_RACK_LINK: IN_RACK_LINKS_PER_CUBE
    }  # fmt: skip
    by_cube: dict[int, list[tuple[int, int]]] = {}
    for outages in outages_of_trace(trace, counts, list(per_cube)):
        cubes = (outages.component // per_cube[outages.kind]).tolist()
        for cube, start_us, end_us in zip(cubes, outages.start_us.tolist(), outages.end_us.tolist(), strict=True):
            by_cube.setdefault(cube, []).append((start_us, end_us))
    stretches: list[tuple[int, int, int]] = []
    for _, own in sorted(by_cube.items()):
        until_us = 0
        for start_us, end_us in sorted(own):
            if end_us > until_us:
                stretches.append((max(start_us, until_us), end_us, 1))
                until_us = end_us
    return step_count(stretches)


def losses_at(stages: Mapping[int, Sequence[StageInterval]], jobs: Sequence[int]) -> Ints:
    """Instants (L,), sorted, at which one of these jobs lost something that it needs."""
    found = [interval.start_us for job in jobs for interval in stages.get(job, ()) if interval.stage is Stage.DETECTING]
    return np.sort(np.array(found, dtype=np.int64))
