"""Defragmentation: which running jobs to move so that one that waits for its shape fits, and what that costs.

A plan is data; nothing is moved here (the dispatcher does). The cost is the chip-time for which moved jobs do not run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topology.fabric import Fabric
from topology.packing import box_table
from topology.placement import usable_cubes
from topology.pod import HOSTS_PER_CUBE, Pod
from topology.units import Seconds
from workloads.jobs.fitting import Fitting, RejectReason, Spot
from workloads.jobs.job import Job
from workloads.jobs.queue_policies import reservation_of
from workloads.jobs.queueing import QueueView, Running, Waiting

US_PER_S = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Migration:
    """One running job goes to another spot."""

    job: Job
    to: Spot


@dataclass(frozen=True, kw_only=True)
class DefragmentationPlan:
    """Moves, in this order, all at one instant, after which `job` fits at `spot`; `cost_chip_us` is what they cost."""

    job: Job
    spot: Spot
    moves: tuple[Migration, ...]
    cost_chip_us: int


MoveTime = Callable[[Job], int]
"""Microseconds for which a job does not run when it is moved: save, evict, circuits, preflight, restore."""


@dataclass(frozen=True, kw_only=True)
class NoDefragmentation:
    """Running jobs stay where they are."""

    kind: Literal["none"] = "none"


@dataclass(frozen=True, kw_only=True)
class MakeRoom:
    """Move running jobs for one that has waited `least_wait` for its shape, where the moves are worth it.

    A move costs each chip of the moved job the time for which it does not run. The moves are worth it when
    `least_gain` times their cost is less than the chips of the waiting job times the wait that it would have
    otherwise, until its reservation (without one, since it waits for repairs or for jobs without end: always). Of the
    places that it could have, the `tried` on which fewest chips are held are looked at.
    """

    kind: Literal["make_room"] = "make_room"
    least_wait: Seconds = 600.0
    least_gain: float = 1.0
    tried: int = 16

    def __post_init__(self) -> None:
        """Refuse times and numbers that are none."""
        if not (math.isfinite(self.least_wait) and self.least_wait >= 0):
            raise ValueError(f"least_wait of {self.least_wait:g} s: write a time of at least 0 s, such as `10 min`")
        if not (math.isfinite(self.least_gain) and self.least_gain >= 0):
            raise ValueError(f"least_gain of {self.least_gain:g}: write a number of at least 0, such as `1`")
        if isinstance(self.tried, bool) or self.tried < 1:
            raise ValueError(f"tried of {self.tried}: write a whole number of at least 1")

    def plan(
        self, view: QueueView, waiting: Waiting, movable: Sequence[Running], move_us: MoveTime
    ) -> DefragmentationPlan | None:
        """The cheapest plan for a waiting job that moves none but `movable`; None where none is worth it."""
        job = waiting.job
        waited_us = view.now_us - waiting.asked_us
        if waited_us < self.least_wait * US_PER_S or view.room.reason(job) is not RejectReason.SHAPE:
            return None
        found = cheapest_plan(job, view.room, movable, move_us=move_us, tried=self.tried)
        if found is None:
            return None
        reserved = reservation_of(job, view.room, view.running, view.now_us)
        gain = math.inf if reserved is None else job.chips * (reserved.at_us - view.now_us)
        return found if self.least_gain * found.cost_chip_us < gain else None


Defragmentation = NoDefragmentation | MakeRoom
"""The policies that a scenario can name under `scheduling.defragmentation:` (`kind` tells them apart)."""


def targets_of(job: Job, room: Fitting) -> NDArray[np.int64]:
    """(T, hosts): the sets of hosts that the job could run on if nobody else were there."""
    usable, pod, shape = room.usable_hosts, room.pod, job.shape
    if shape is None or not isinstance(pod, Pod) or room.fabric is Fabric.ANY_HOST:
        return np.empty((0, job.hosts), dtype=np.int64)
    if shape.is_sub_cube:
        blocks = np.flatnonzero(usable.reshape(-1, job.hosts).all(axis=1))
        return np.asarray(blocks[:, None] * job.hosts + np.arange(job.hosts), dtype=np.int64)
    whole = usable_cubes(usable)
    if room.fabric is Fabric.STATIC_CONTIGUOUS:
        sets = box_table(pod.grid, shape.box).cubes
    elif room.fabric is Fabric.STATIC_ALIGNED:
        count = pod.cubes // shape.cubes
        sets = np.arange(count * shape.cubes, dtype=np.int64).reshape(count, shape.cubes)
    else:
        held = room.held_chips.reshape(-1, HOSTS_PER_CUBE).sum(axis=1)
        cubes = np.flatnonzero(whole)
        cheapest = np.sort(cubes[np.argsort(held[cubes], kind="stable")[: shape.cubes]])
        sets = cheapest[None, :] if len(cheapest) == shape.cubes else np.empty((0, shape.cubes), dtype=np.int64)
    sets = sets[whole[sets].all(axis=1)]
    hosts = sets[:, :, None] * HOSTS_PER_CUBE + np.arange(HOSTS_PER_CUBE)
    return np.asarray(hosts.reshape(len(sets), job.hosts), dtype=np.int64)


def cheapest_plan(
    job: Job, room: Fitting, movable: Sequence[Running], *, move_us: MoveTime, tried: int = 16
) -> DefragmentationPlan | None:
    """The cheapest of the plans for the `tried` targets on which fewest chips are held; None where none works.

    Jobs that are in the way go, the largest first, where the placement policy puts them; targets on which another job
    than those of `movable` is are out of the question.
    """
    places, stuck = [], room.held_chips.astype(np.int64)
    for one in movable:
        hosts, chips = room.held_by(one.job.id)
        places.append((one.job, hosts))
        stuck[hosts] -= chips
    targets = targets_of(job, room.without(stuck > 0))
    held = room.held_chips.astype(np.int64)[targets].sum(axis=1)
    best: DefragmentationPlan | None = None
    for place in np.argsort(held, kind="stable")[:tried].tolist():
        on_target = np.zeros(room.pod.hosts, dtype=np.bool_)
        on_target[targets[place]] = True
        in_the_way = [one for one, hosts in places if on_target[hosts].any()]
        if best is None or sum(one.chips * move_us(one) for one in in_the_way) < best.cost_chip_us:
            best = _plan_for(job, room, in_the_way, targets[place], move_us) or best
    return best


def _plan_for(
    job: Job, room: Fitting, in_the_way: Sequence[Job], target: NDArray[np.int64], move_us: MoveTime
) -> DefragmentationPlan | None:
    """The plan that clears this target, or None where the jobs on it find no other place."""
    cleared = room.after_end([one.id for one in in_the_way])
    spot = cleared.spot_within(job, target)
    if spot is None:
        return None
    after, moves = cleared.with_job(job, spot), []
    for one in sorted(in_the_way, key=lambda one: (-one.chips, one.id)):
        to = after.spot(one)
        if to is None:
            return None
        after = after.with_job(one, to)
        moves.append(Migration(job=one, to=to))
    cost = sum(move.job.chips * move_us(move.job) for move in moves)
    return DefragmentationPlan(job=job, spot=spot, moves=tuple(moves), cost_chip_us=cost)
