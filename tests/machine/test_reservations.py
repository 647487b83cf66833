"""What is held for the head of the queue: in the log, and as `blocked` in the books of chips."""

from __future__ import annotations

import pytest

from sim.histories import US_PER_S
from sim.metrics.chip_hours import Use, chip_us_by_use
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.operations import simulate_operations
from sim.streams import Streams
from sim.trace import Trace, Verb
from tests.machine.test_making_room import MOVE, holes
from tests.machine.test_making_room import play as play_moves
from topology.fabric import Fabric
from topology.pod import Pod
from workloads.jobs.job import make_job
from workloads.jobs.queue_policies import Easy, FairShare, Fifo, Priority, ShortestFirst
from workloads.jobs.queueing import QueuePolicy

POD = Pod(cubes=4)
JOBS = ((128, 0, 1000), (256, 100, 10), (64, 200, 50), (64, 300, 5000), (64, 400, 50))
"""Chips, arrival and work in seconds: two cubes are taken, the next job wants all four, then come three of one cube."""


def operated(queue: QueuePolicy) -> Trace:
    """2,000 s of a pod of four cubes; starts take no time."""
    jobs = [
        make_job(number, POD, chips, arrival_us=at_s * US_PER_S, work_us=work_s * US_PER_S)
        for number, (chips, at_s, work_s) in enumerate(JOBS)
    ]
    return simulate_operations(
        POD, Fabric.RECONFIGURABLE, jobs, [], health=HealthPolicy(), repair=RepairPolicy(),
        recovery=RecoveryPolicy(circuits=0, preflight=0, restore=0), streams=Streams(1, 0), queue=queue,
        horizon_us=2000 * US_PER_S, check_invariants=True,
    )  # fmt: skip


def reserved(trace: Trace) -> list[tuple[int, int, int, int]]:
    """Reservations: second, job, chips held, second by which the job fits (-1: nobody knows)."""
    return [
        (row[0] // US_PER_S, row[4], row[3], row[6] // US_PER_S if row[6] >= 0 else -1)
        for row in trace.rows
        if row[1] == Verb.RESERVE.value
    ]


def used(trace: Trace) -> dict[str, int]:
    """Chip-seconds of the free uses; all uses add up."""
    uses = chip_us_by_use(trace)
    assert uses[Use.UNACCOUNTED] == 0
    return {use.value: uses[use] // US_PER_S for use in (Use.BLOCKED, Use.FRAGMENTED, Use.EMPTY)}


@pytest.mark.parametrize("queue", [Fifo(), Priority(), ShortestFirst()])
def test_blocked_by_hand(queue: QueuePolicy) -> None:
    """Goal: chips that others could use and may not are `blocked`. Method: first in first out on four cubes. 128 chips
    are empty for 100 s, then fragments for 100 s (only the job of four cubes waits); from 200 s a job of one cube could
    run, from 300 s two could: 64 x 100 + 128 x 700 chip-seconds blocked; at 1,000 s the head starts, at 1,010 s all
    others, and 64 chips are empty, then 192. By priority and shortest first it is the same here."""
    trace = operated(queue)
    held = [(100, 1, 0, -1), (200, 1, 64, -1), (300, 1, 128, -1)]
    assert reserved(trace) == [*held, (1000, 2, 0, -1), (1010, -1, 0, -1)]
    assert used(trace) == {
        "blocked": 64 * 100 + 128 * 700,
        "fragmented": 128 * 100 + 64 * 100,
        "empty": 128 * 100 + 64 * 50 + 192 * (2000 - 1060),
    }


def test_what_backfill_leaves_blocked() -> None:
    """Goal: EASY blocks less. Method: the same jobs: those of 50 s end before 1,000 s and start at once; the one of
    5,000 s would delay the head, which is to start at 1,000 s: its cube is blocked from 300 s until then. Fragments:
    128 chips, but for the 50 s of the first short job, until 300 s; then 64, none during the second short one."""
    trace = operated(Easy())
    assert reserved(trace) == [(200, 1, 0, 1000), (250, -1, 0, -1), (300, 1, 64, 1000), (1000, -1, 0, -1)]
    assert used(trace)["blocked"] == 64 * 700
    assert used(trace)["fragmented"] == 128 * 200 - 64 * 50 + 64 * (700 - 50)


def test_policies_that_let_all_overtake_hold_nothing() -> None:
    """Goal: no reservation, nothing blocked. Method: fair share, which passes by what does not fit."""
    trace = operated(FairShare())
    assert reserved(trace) == []
    assert used(trace)["blocked"] == 0


def test_what_moves_need_is_blocked() -> None:
    """Goal: chips kept free for moves under way are in the books. Method: the two free cubes of a plan, from the order
    to leave at 800 s until all go at 890 s; the head's own wait before is no block, since nobody else waits."""
    trace = play_moves(holes(), MOVE)
    assert reserved(trace) == [(200, 4, 0, -1), (800, 4, 128, -1), (890, -1, 0, -1)]
    uses = chip_us_by_use(trace)
    assert uses[Use.UNACCOUNTED] == 0
    assert uses[Use.BLOCKED] == 128 * 90 * US_PER_S
