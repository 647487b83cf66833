"""Defragmentation: which running jobs to move so that one that waits for its shape fits, and what that costs.

A plan is data; nothing is moved here. The cost is the chip-time that the moved jobs do not run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, kw_only=True)
class Defragmentation:
    """When to move jobs for one that waits for its shape: it has waited `least_wait`, and the moves are worth it.

    A move costs every chip of the moved job `move` seconds. It is worth it when that is less than the chips of the
    waiting job times the wait that it would have otherwise, until its reservation (without one: always). The `tried`
    cheapest targets are looked at.
    """

    least_wait: Seconds = 600.0
    move: Seconds = 820.0
    tried: int = 16

    def __post_init__(self) -> None:
        """Refuse times and numbers that are none."""
        for name in ("least_wait", "move"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} of {value:g} s: write a time of at least 0 s, such as `{name}: 820 s`")
        if isinstance(self.tried, bool) or self.tried < 1:
            raise ValueError(f"tried of {self.tried}: write a whole number of at least 1")

    def plan(self, view: QueueView, waiting: Waiting) -> DefragmentationPlan | None:
        """The cheapest plan for a waiting job, or None where there is none or it is not worth it."""
        job = waiting.job
        waited_us = view.now_us - waiting.asked_us
        if waited_us < self.least_wait * US_PER_S or view.room.reason(job) is not RejectReason.SHAPE:
            return None
        found = cheapest_plan(job, view.room, view.running, move_us=round(self.move * US_PER_S), tried=self.tried)
        if found is None:
            return None
        reserved = reservation_of(job, view.room, view.running, view.now_us)
        if reserved is not None and found.cost_chip_us >= job.chips * (reserved.at_us - view.now_us):
            return None
        return found


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
    return np.asarray(hosts.reshape(len(sets), -1), dtype=np.int64)


def cheapest_plan(
    job: Job, room: Fitting, running: Sequence[Running], *, move_us: int, tried: int = 16
) -> DefragmentationPlan | None:
    """The cheapest of the plans for the `tried` targets on which fewest chips are held; None where none works.

    Jobs that are in the way go, the largest first, where the placement policy puts them.
    """
    targets = targets_of(job, room)
    held = room.held_chips.astype(np.int64)[targets].sum(axis=1)
    best: DefragmentationPlan | None = None
    for place in np.argsort(held, kind="stable")[:tried].tolist():
        plan = _plan_for(job, room, running, targets[place], move_us)
        if plan is not None and (best is None or plan.cost_chip_us < best.cost_chip_us):
            best = plan
    return best


def _plan_for(
    job: Job, room: Fitting, running: Sequence[Running], target: NDArray[np.int64], move_us: int
) -> DefragmentationPlan | None:
    """The plan that clears this target, or None where the jobs on it find no other place."""
    on_target = np.zeros(room.pod.hosts, dtype=np.bool_)
    on_target[target] = True
    in_the_way = [one.job for one in running if on_target[room.held_by(one.job.id)[0]].any()]
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
        if to.hosts != tuple(room.held_by(one.id)[0].tolist()):
            moves.append(Migration(job=one, to=to))
    cost = sum(move.job.chips for move in moves) * move_us
    return DefragmentationPlan(job=job, spot=spot, moves=tuple(moves), cost_chip_us=cost)
