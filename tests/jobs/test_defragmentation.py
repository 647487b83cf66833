"""Defragmentation: the plan makes the job fit, moves no more than need be, and is worth its cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sim.conformance import random_view
from tests.jobs.players import Player
from topology.fabric import Fabric
from topology.pod import Pod
from topology.policies import FirstFit
from workloads.jobs.defragmentation import MakeRoom, cheapest_plan
from workloads.jobs.fitting import Fitting, RejectReason
from workloads.jobs.job import Job, make_job
from workloads.jobs.queueing import QueueView, Running, Waiting

S = 1_000_000


def scattered(fabric: Fabric) -> tuple[Fitting, list[Running]]:
    """Four cubes: 2-host jobs in cubes 0, 1 and 3 (two in 3), nothing in cube 2."""
    pod, held, running = Pod(cubes=4), {}, []
    free = np.full(64, 4, dtype=np.uint8)
    for number, first in enumerate((0, 16, 48, 50)):
        hosts = np.arange(first, first + 2)
        held[number] = (hosts, 4)
        free[hosts] = 0
        job = make_job(number, pod, 8, work_us=10_000 * S)
        running.append(Running(job=job, started_us=0, expected_end_us=10_000 * S))
    room = Fitting(fabric=fabric, pod=pod, placement=FirstFit(), free_chips=free,
                   usable=np.ones(64, dtype=np.bool_), held=held.__getitem__)  # fmt: skip
    return room, running


def wants(chips: int) -> Job:
    """The job that waits."""
    return make_job(9, Pod(cubes=4), chips, work_us=S)


@pytest.mark.parametrize("fabric", [Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED, Fabric.STATIC_CONTIGUOUS])
def test_the_cheapest_moves_are_found(fabric: Fabric) -> None:
    """Goal: the least cost. Method: two cubes are wanted, one is free: one job of 8 chips has to move, out of a cube
    that can be joined to the free one: 8 chips x 100 s (fixed blocks: the two jobs of cube 3 make way for the block of
    cubes 2 and 3, or those of cubes 0 and 1 for theirs). All four cubes: no plan, there is no other place."""
    room, running = scattered(fabric)
    assert room.reason(wants(128)) is RejectReason.SHAPE
    plan = cheapest_plan(wants(128), room, running, move_us=lambda job: 100 * S)
    assert plan is not None
    expected_moves, expected_cost = (2, 1600) if fabric is Fabric.STATIC_ALIGNED else (1, 800)
    assert (len(plan.moves), plan.cost_chip_us) == (expected_moves, expected_cost * S)
    assert cheapest_plan(wants(256), room, running, move_us=lambda job: S) is None


def test_a_plan_is_made_when_it_is_worth_it() -> None:
    """Goal: the rule. Method: not before `least_wait`; not for a job that fits; not when the wait that is saved costs
    less than the moves."""
    room, running = scattered(Fabric.RECONFIGURABLE)
    view = QueueView(now_us=1000 * S, waiting=(), room=room, running_now=lambda: running)
    asked = Waiting(job=wants(128), asked_us=0, remaining_us=S)

    def planned(policy: MakeRoom, move_s: float = 820, waiting: Waiting = asked) -> bool:
        return policy.plan(view, waiting, running, lambda job: round(move_s * S)) is not None

    assert planned(MakeRoom())
    assert not planned(MakeRoom(least_wait=1001))
    assert not planned(MakeRoom(), waiting=Waiting(job=wants(64), asked_us=0, remaining_us=S))
    assert not planned(MakeRoom(), 9000 * 128 / 8 + 1)
    assert planned(MakeRoom(), 9000 * 128 / 8 - 1)
    assert not planned(MakeRoom(least_gain=2), 9000 * 128 / 8 / 2 + 1)
    assert MakeRoom().plan(view, asked, running[2:], lambda job: S) is not None
    assert MakeRoom().plan(view, asked, running[:0], lambda job: S) is None, "nobody may be moved"


def test_plans_on_random_pods_are_possible() -> None:
    """Goal: a plan can be carried out. Method: random pods of every fabric: the moved jobs end, then all spots are free
    together, and the cost is that of the moves."""
    made = 0
    for number in range(120):
        view = random_view(number, 3)
        for waiting in view.waiting[:6]:
            if view.room.reason(waiting.job) is not RejectReason.SHAPE:
                continue
            plan = cheapest_plan(waiting.job, view.room, view.running, move_us=lambda job: S)
            if plan is None:
                continue
            made += 1
            room = view.room.after_end([move.job.id for move in plan.moves]).with_job(plan.job, plan.spot)
            for move in plan.moves:
                room = room.with_job(move.job, move.to)
            assert plan.cost_chip_us == sum(move.job.chips for move in plan.moves) * S
    assert made > 10


def test_impossible_numbers_are_refused() -> None:
    """Goal: nonsense stops early. Method: one bad value at a time."""
    bad: list[dict[str, Any]] = [
        {"least_wait": -1.0}, {"least_gain": float("nan")}, {"least_gain": -1.0}, {"tried": 0}, {"tried": True},
    ]  # fmt: skip
    for values in bad:
        with pytest.raises(ValueError, match="write a"):
            MakeRoom(**values)


def test_a_fitting_is_a_picture() -> None:
    """Goal: trying out changes nothing. Method: starts and ends on copies, refused where they contradict it."""
    room, _ = scattered(Fabric.RECONFIGURABLE)
    one = wants(64)
    after = room.after_start(one)
    assert after is not None
    assert (room.free_chips, after.free_chips) == (224, 160)
    assert after.after_end([one.id]).free_chips == 224
    assert after.held_by(one.id)[0].tolist() == list(range(32, 48))
    spot = room.spot(one)
    assert spot is not None
    with pytest.raises(ValueError, match="some are taken"):
        after.with_job(one, spot)
    with pytest.raises(ValueError, match="given back"):
        room.after_end([0]).after_end([0])
    with pytest.raises(KeyError):
        room.held_by(77)


def test_reject_reasons() -> None:
    """Goal: shape or resource. Method: larger than the pod; a row that no box of the grid holds; what fits."""
    pod = Pod(cubes=64)
    dispatcher = Player(pod, Fabric.STATIC_CONTIGUOUS).dispatcher
    reasons = [dispatcher.reject_reason(make_job(1, pod, 64 * cubes)) for cubes in (65, 5, 16)]
    assert reasons == [RejectReason.RESOURCE, RejectReason.SHAPE, None]
