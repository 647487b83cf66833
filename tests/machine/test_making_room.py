"""Defragmentation carried out: moves stage by stage, given up when something fails, worth it in a suited case only."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sim.build import build_setup
from sim.histories import US_PER_S, ComponentKind
from sim.job_policies import FixedCheckpoints
from sim.metrics.chip_hours import Use, chip_us_by_use
from sim.metrics.ledger import job_ledgers
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.failures import Source
from sim.processes.operations import simulate_operations
from sim.scenario import expand, load_scenario
from sim.streams import Streams
from sim.studies.operations import sample_operations
from sim.trace import Trace, Verb
from tests.machine.pods import DAY_US
from tests.machine.test_jobs import HORIZON_S, cubes_of, down, story
from topology.fabric import Fabric
from topology.pod import Pod
from topology.shape import parse_shape
from workloads.jobs.defragmentation import Defragmentation, MakeRoom, NoDefragmentation
from workloads.jobs.job import Job, make_job
from workloads.jobs.queue_policies import Easy, Priority
from workloads.jobs.queueing import QueuePolicy

ROW = Pod(cubes=4, grid=(1, 1, 4))
STAY, MOVE = NoDefragmentation(), MakeRoom()


def play(jobs: list[Job], policy: Defragmentation, *, fabric: Fabric = Fabric.STATIC_CONTIGUOUS, pod: Pod = ROW,
         sources: list[Source] | None = None, queue: QueuePolicy | None = None,
         horizon_us: int = HORIZON_S * US_PER_S) -> Trace:  # fmt: skip
    """A run with default delays; a save takes 60 s, and none is made but before a move."""
    return simulate_operations(
        pod, fabric, jobs, sources or [], health=HealthPolicy(), repair=RepairPolicy(), recovery=RecoveryPolicy(),
        checkpoint=FixedCheckpoints(interval=10**6, save=60), queue=queue, defragmentation=policy, runs_at_start=True,
        streams=Streams(1, 0), horizon_us=horizon_us, check_invariants=True,
    )  # fmt: skip


def job(number: int, chips: int, work_s: float, arrival_s: float = 0, priority: int = 0) -> Job:
    """A job of the row of cubes."""
    return make_job(number, ROW, chips, work_us=round(work_s * US_PER_S), arrival_us=round(arrival_s * US_PER_S),
                    priority=priority)  # fmt: skip


def holes() -> list[Job]:
    """One job in each cube of a row; those of cubes 1 and 3 end at 100 s; at 200 s a job of two cubes arrives."""
    return [job(number, 64, 100 if number % 2 else 9000) for number in range(4)] + [job(4, 128, 500, arrival_s=200)]


def moves(trace: Trace) -> list[tuple[int, int, int, int]]:
    """Moves: second, job that moves, job for which, cost in chip-seconds."""
    return [(row[0] // US_PER_S, row[4], row[3], row[6] // US_PER_S) for row in trace.rows if row[1] == Verb.MOVE.value]


def adds_up(trace: Trace) -> dict[Use, int]:
    """Chip-time by use, once that and the ledgers are found to be complete."""
    uses = chip_us_by_use(trace)
    assert uses[Use.UNACCOUNTED] == 0
    assert min(uses.values()) >= 0
    assert all(ledger.unaccounted_us == 0 for ledger in job_ledgers(trace))
    return uses


def test_a_move_second_by_second() -> None:
    """Goal: the head that waits for its shape is served, at a price that is in the books. Method: two free cubes that
    do not touch; after 600 s in the queue one of the two jobs in between is asked to leave: 60 s save, 30 s eviction,
    then both start: 780 s (no circuits here). The moved job's work is kept: it ends 60 + 30 + 780 s late. Without
    the policy the job of two cubes waits until 9,000 s."""
    trace = play(holes(), MOVE)
    assert moves(trace) == [(800, 0, 4, 64 * (60 + 30 + 180 + 600))]
    assert story(trace, 0) == [
        ("running", 0, 800), ("checkpointing", 800, 860),
        ("migrating", 860, 890), ("migrating", 890, 1070), ("migrating", 1070, 1670),
        ("running", 1670, 9870),
    ]  # fmt: skip
    assert story(trace, 4)[:2] == [("waiting", 200, 890), ("preflight", 890, 1070)]
    assert cubes_of(trace, 0) == [(0,), (3,)]
    assert cubes_of(trace, 4) == [(0, 1)]
    assert story(play(holes(), STAY), 4)[0] == ("waiting", 200, 9000)
    uses = adds_up(trace)
    assert uses[Use.MIGRATING] == 64 * 810 * US_PER_S
    assert uses[Use.CHECKPOINTING] == 64 * 60 * US_PER_S
    assert (uses[Use.LOST], uses[Use.USEFUL]) == (0, 64 * (9000 + 9000 + 200 + 2 * 500) * US_PER_S)


@pytest.mark.parametrize("failed_s", [820, 870, 900, 2000])
def test_a_job_that_is_lost_on_the_way(failed_s: int) -> None:
    """Goal: a plan that fails hurts nobody else. Method: a host of the moved job fails in its save (the plan is given
    up at once, and the other job starts when cube 0 comes back), in its eviction (its state is safe: it moves all the
    same), or when it has left (the loss is the other job's)."""
    failure = down(ComponentKind.HOST, (0, failed_s, failed_s + 3000))
    trace = play(holes(), MOVE, sources=[failure], horizon_us=4 * HORIZON_S * US_PER_S)
    uses = adds_up(trace)
    assert uses[Use.LOST] == {820: 64 * 800, 870: 0, 900: 0, 2000: 128 * 330}[failed_s] * US_PER_S
    assert all(ledger.finished_us is not None for ledger in job_ledgers(trace))
    assert len(moves(trace)) >= 1
    if failed_s == 870:
        assert cubes_of(trace, 0) == [(0,), (3,)]


def test_a_preempted_mover_queues() -> None:
    """Goal: moves and preemption at once. Method: jobs of higher priority take the whole pod while the job of cube 0
    saves its state, is evicted, or has just gone; all finish, and the sums are exact."""
    for at_s in (810, 870, 889, 890, 891):
        urgent = [job(5 + place, 64, 50, arrival_s=at_s, priority=2) for place in range(4)]
        trace = play([*holes(), *urgent], MOVE, queue=Priority(), horizon_us=4 * HORIZON_S * US_PER_S)
        adds_up(trace)
        assert all(ledger.finished_us is not None for ledger in job_ledgers(trace))


@pytest.mark.parametrize("fabric", [Fabric.RECONFIGURABLE, Fabric.ANY_HOST])
def test_it_does_nothing_where_it_can_not_help(fabric: Fabric) -> None:
    """Goal: where any cubes or hosts make a slice, nobody is ever moved. Method: random jobs of whole cubes: the log
    is the same, row by row."""
    pod = Pod(cubes=16)
    jobs = random_jobs(pod, 1, 60)
    ran = [play(jobs, policy, fabric=fabric, pod=pod, queue=Easy(), horizon_us=20 * DAY_US) for policy in (STAY, MOVE)]
    assert ran[0].rows == ran[1].rows
    assert any(row[1] == Verb.FINISH.value for row in ran[0].rows)


def test_shared_cubes_are_emptied_for_a_whole_one() -> None:
    """Goal: sub-cube jobs make room too. Method: a light pod of two cubes, jobs of half a cube: one is left in each
    cube; for a job of a cube one of them moves to the other cube."""
    pod = Pod(cubes=2)
    jobs = [make_job(number, pod, 32, work_us=(100 if number % 2 else 9000) * US_PER_S) for number in range(4)]
    jobs.append(make_job(4, pod, 64, work_us=500 * US_PER_S, arrival_us=200 * US_PER_S))
    trace = play(jobs, MOVE, fabric=Fabric.RECONFIGURABLE, pod=pod)
    assert [row[:3] for row in moves(trace)] == [(800, 0, 4)]
    assert story(trace, 4)[:2] == [("waiting", 200, 890), ("reconfiguring", 890, 900)]
    adds_up(trace)


def random_jobs(pod: Pod, seed: int, count: int) -> list[Job]:
    """Jobs of one to eight cubes, a day long on average: four a day, which is about four fifths of 16 cubes."""
    rng = np.random.default_rng(seed)
    shapes = [parse_shape(text) for text in ("4x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8")]
    arrivals = np.sort(rng.uniform(0, count / 4, size=count))
    chosen = rng.integers(len(shapes), size=count)
    days = rng.lognormal(-0.8, 1.2, size=count)
    return [
        make_job(
            number, pod, shapes[chosen[number]].chips, shape=shapes[chosen[number]],
            work_us=round(days[number] * DAY_US), arrival_us=round(arrivals[number] * DAY_US),
        )
        for number in range(count)
    ]  # fmt: skip


def test_it_is_worth_it_in_a_suited_case() -> None:
    """Goal: less waiting and more of the pod used. Method: the shipped scenario on seven of its seeds, 20 days, first
    in first out, paired: the wait falls, utilisation and goodput rise, fragments get fewer (paired t of logarithms,
    one-sided, error rate 1 % each)."""
    ran: dict[str, list[dict[str, float]]] = {}
    for point in expand(
        load_scenario("defragmentation", ["study.operations.horizon=20 d", "scheduling.queue.kind=fifo"])
    ):
        setup = build_setup(point.scenario)
        own = [dict(sample_operations(setup, replication).measures) for replication in range(7)]
        ran[point.scenario.scheduling.defragmentation.kind] = own
    assert sum(sample["moves_per_day"] for sample in ran["none"]) == 0
    for measure, better in {"wait_mean_s": "less", "fragmentation": "less", "utilisation": "greater",
                            "goodput": "greater"}.items():  # fmt: skip
        pairs = zip(ran["none"], ran["make_room"], strict=True)
        gain = [np.log(move[measure] / stay[measure]) for stay, move in pairs]
        assert stats.ttest_1samp(gain, 0, alternative=better).pvalue < 0.01, measure


def test_a_lost_job_keeps_its_place() -> None:
    """Goal: who lost the slice is not sent to the end of the queue. Method: a full pod; at 500 s and at 600 s jobs of a
    cube arrive; a host of job 0 fails at 1,000 s and is repaired at 3,000 s: job 0 is the first to get a cube again,
    although two have waited for longer; one that is preempted keeps its place, too."""
    jobs = [job(number, 64, 50_000) for number in range(4)] + [job(4, 64, 10, 500), job(5, 64, 10, 600)]
    failure = down(ComponentKind.HOST, (0, 1000, 3000))
    trace = play(jobs, STAY, sources=[failure], horizon_us=2 * HORIZON_S * US_PER_S)
    assert story(trace, 0)[1:5] == [
        ("detecting", 1000, 1060), ("evicting", 1060, 1090), ("waiting", 1090, 3000), ("preflight", 3000, 3180),
    ]  # fmt: skip
    assert story(trace, 4) == [("waiting", 500, 20_000)]
    urgent = [job(6, 64, 100, arrival_s=2000, priority=1)]
    taken = play([*jobs, *urgent], STAY, queue=Priority(), horizon_us=2 * HORIZON_S * US_PER_S)
    assert story(taken, 3)[1] == ("waiting", 2000, 2000 + 780 + 100)
