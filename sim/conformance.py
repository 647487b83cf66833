"""A public check of anyone's own queue and placement policies: what they decide is possible, pure and repeatable.

    assert not check_queue_policy(MyPolicy())
    assert not check_placement_policy(MyPlacement())

Each function plays the policy on seeded random pods of every fabric and returns what is wrong, one text per fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass

import numpy as np
from numpy.typing import NDArray

from sim.streams import Streams
from topology.fabric import Fabric
from topology.packing import boxes_on_grid
from topology.placement import Placement, usable_cubes
from topology.pod import CHIPS_PER_HOST, HOSTS_PER_CUBE, Pod
from topology.policies import FirstFit
from topology.shape import Shape, parse_shape
from workloads.jobs.fitting import Fitting, Held, PlacementPolicy
from workloads.jobs.job import Job, make_job
from workloads.jobs.queueing import Preempt, QueuePolicy, QueueView, Reserve, Running, Start, Waiting

MOST_FAULTS = 10
SHAPES = tuple(
    parse_shape(text) for text in ("1x1x1", "1x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "4x4x12")
)
POD = Pod(cubes=27)
US_PER_S = 1_000_000


def check_queue_policy(policy: QueuePolicy, *, views: int = 60, seed: int = 1) -> tuple[str, ...]:
    """What is wrong with a queue policy: nothing (an empty tuple), or texts that name the view and the fault.

    Checked on `views` random views: starts are of waiting jobs, once each, and fit in their order; preempted jobs run;
    the same view gets the same decisions; an empty queue gets none; the policy is a frozen dataclass with a `kind`.
    """
    faults = _plug_in_faults(policy)
    for number in range(views):
        view = random_view(number, seed)
        faults += [f"view {number} of seed {seed}: {what}" for what in _faults_on(policy, view)]
    empty = random_view(0, seed)
    if list(policy.decide(QueueView(now_us=0, waiting=(), room=empty.room))):
        faults.append("an empty queue gets decisions")
    return tuple(faults[:MOST_FAULTS])


def check_placement_policy(policy: PlacementPolicy, *, masks: int = 60, seed: int = 1) -> tuple[str, ...]:
    """What is wrong with a placement policy: nothing (an empty tuple), or texts that name the case and the fault.

    Checked on `masks` random pods under every fabric: the hosts are free and as many as the shape has; whole cubes are
    joined as the fabric can (a block, a box of the shape that is returned); smaller slices lie on an aligned block; the
    masks are left alone; the same question gets the same answer.
    """
    faults = _plug_in_faults(policy)
    for number in range(masks):
        u = Streams(seed, number).uniforms("conformance.masks", 0, POD.hosts + POD.cubes)
        free = u[: POD.hosts] < (0.5, 0.9, 0.99, 1.0)[number % 4]
        avoid = u[POD.hosts :] < 0.2
        for fabric in Fabric:
            shape = SHAPES[number % len(SHAPES)]
            faults += [
                f"mask {number} of seed {seed}, {fabric.value}, {shape}: {what}"
                for what in _placement_faults(policy, fabric, shape, free, avoid)
            ]
    return tuple(faults[:MOST_FAULTS])


def _plug_in_faults(policy: object) -> list[str]:
    """Whether a policy is what a scenario can name."""
    if not is_dataclass(policy) or isinstance(policy, type):
        return ["not a dataclass: write @dataclass(frozen=True, kw_only=True)"]
    faults = []
    if not type(policy).__dataclass_params__.frozen:  # type: ignore[attr-defined]
        faults.append("not frozen: write @dataclass(frozen=True, kw_only=True)")
    if not any(item.name == "kind" and isinstance(item.default, str) for item in fields(policy)):
        faults.append('no kind: write `kind: Literal["my_policy"] = "my_policy"`')
    return faults


def random_view(number: int, seed: int) -> QueueView:
    """A pod half full of random jobs, some hosts down, and a queue."""
    fabric = tuple(Fabric)[number % len(Fabric)]
    u = Streams(seed, number).uniforms("conformance.views", 0, 400)
    usable: NDArray[np.bool_] = np.ones(POD.hosts, dtype=np.bool_)
    usable[(u[:5] * POD.hosts).astype(np.int64)] = False
    held: dict[int, Held] = {}
    jobs = [_random_job(place, u[10 + 6 * place : 16 + 6 * place]) for place in range(60)]
    room = _room(fabric, np.full(POD.hosts, CHIPS_PER_HOST, dtype=np.uint8), usable, held.__getitem__)
    running: list[Running] = []
    for job in jobs[:40]:
        spot = room.spot(job)
        if spot is not None and len(running) < 25:
            room = room.with_job(job, spot)
            held[job.id] = room.held_by(job.id)
            end_us = None if job.id % 7 == 0 else job.id * 50 * US_PER_S
            running.append(Running(job=job, started_us=-job.id * US_PER_S, expected_end_us=end_us))
    free = np.asarray(CHIPS_PER_HOST - room.held_chips, dtype=np.uint8)
    waiting = [
        Waiting(job=job, asked_us=-100 * US_PER_S + job.id, remaining_us=None if job.id % 9 == 0 else job.requested_us)
        for job in jobs[40:]
    ]
    return QueueView(
        now_us=1000 * US_PER_S,
        waiting=tuple(waiting),
        room=_room(fabric, free, usable, held.__getitem__),
        running_now=lambda: tuple(running),
        used_now=lambda: {"a": 10**9, "b": 10**10},
    )


def _random_job(number: int, u: NDArray[np.float64]) -> Job:
    shape = SHAPES[int(u[0] * len(SHAPES))]
    return make_job(
        number,
        POD,
        shape.chips,
        shape=shape,
        work_us=1 + int(u[1] * 5000 * US_PER_S),
        priority=int(u[2] * 4),
        owner="abc"[int(u[3] * 3)],
        reroute_opt_in=bool(u[4] < 0.9),
    )


def _room(
    fabric: Fabric, free_chips: NDArray[np.uint8], usable: NDArray[np.bool_], held: Callable[[int], Held]
) -> Fitting:
    return Fitting(fabric=fabric, pod=POD, placement=FirstFit(), free_chips=free_chips, usable=usable, held=held)


def _faults_on(policy: QueuePolicy, view: QueueView) -> list[str]:
    """What is wrong with the decisions on one view."""
    decisions = list(policy.decide(view))
    faults = [] if decisions == list(policy.decide(view)) else ["the same view gets other decisions the second time"]
    room, waiting = view.room, [one.job for one in view.waiting]
    running = [one.job for one in view.running]
    for decision in decisions:
        if isinstance(decision, Start):
            if decision.job not in waiting:
                return [*faults, f"starts job {decision.job.id}, which does not wait (any more)"]
            after = room.after_start(decision.job)
            if after is None:
                return [*faults, f"starts job {decision.job.id}, which does not fit"]
            waiting.remove(decision.job)
            room = after
        elif isinstance(decision, Preempt):
            if decision.job not in running:
                return [*faults, f"preempts job {decision.job.id}, which does not run (any more)"]
            running.remove(decision.job)
            room = room.after_end([decision.job.id])
        elif not isinstance(decision, Reserve):
            return [*faults, f"{decision!r} is neither Start nor Preempt nor Reserve"]
        elif decision.job not in waiting or room.fits(decision.job) or decision is not decisions[-1]:
            return [*faults, f"reserves for job {decision.job.id}, which is not its last word on a job that waits"]
    return faults


def _placement_faults(
    policy: PlacementPolicy, fabric: Fabric, shape: Shape, free: NDArray[np.bool_], avoid: NDArray[np.bool_]
) -> list[str]:
    """What is wrong with the answer to one question."""
    asked_free, asked_avoid = free.copy(), avoid.copy()
    found = policy.choose(fabric, POD, shape, asked_free, asked_avoid)
    faults = []
    if (asked_free != free).any() or (asked_avoid != avoid).any():
        faults.append("the masks are changed")
    if found != policy.choose(fabric, POD, shape, free.copy(), avoid.copy()):
        faults.append("the same question gets another answer the second time")
    if found is None:
        return faults
    hosts = list(found.hosts)
    if len(hosts) != shape.hosts or len(dict.fromkeys(hosts)) != len(hosts):
        return [*faults, f"{len(dict.fromkeys(hosts))} hosts for a slice of {shape.hosts}"]
    if min(hosts) < 0 or max(hosts) >= POD.hosts or not free[hosts].all():
        return [*faults, "a host is not free"]
    if fabric is not Fabric.ANY_HOST and not _is_joined(fabric, shape, found, usable_cubes(free)):
        faults.append(f"cubes {found.cubes}, hosts {found.hosts[:4]}... can not be joined to {found.shape}")
    return faults


def _is_joined(fabric: Fabric, shape: Shape, found: Placement, free_cubes: NDArray[np.bool_]) -> bool:
    """Whether the fabric can make the slice: an aligned block of hosts, any cubes, a block of cubes, or a box."""
    if shape.is_sub_cube:
        return (
            not found.cubes
            and found.hosts == tuple(range(found.hosts[0], found.hosts[0] + shape.hosts))
            and (found.hosts[0] % shape.hosts == 0)
        )
    cubes: Sequence[int] = sorted(found.cubes)
    from_cubes = [cube * HOSTS_PER_CUBE + host for cube in cubes for host in range(HOSTS_PER_CUBE)]
    if sorted(found.hosts) != from_cubes or not free_cubes[list(cubes)].all() or found.shape.chips != shape.chips:
        return False
    if fabric is Fabric.STATIC_ALIGNED:
        return cubes == list(range(cubes[0], cubes[0] + len(cubes))) and cubes[0] % len(cubes) == 0
    if fabric is Fabric.STATIC_CONTIGUOUS:
        return any(sorted(box) == cubes for _, _, box in boxes_on_grid(POD.grid, found.shape.box))
    return found.shape.box == shape.box
