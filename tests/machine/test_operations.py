"""Jobs with work: small cases microsecond by microsecond, closed forms, and random pods in operation."""

from __future__ import annotations

import numpy as np
import pytest

from sim.histories import US_PER_S, ComponentKind
from sim.job_policies import FixedCheckpoints, NoCheckpoints, SparesPolicy, YoungCheckpoints
from sim.metrics.chip_hours import Use, chip_us_by_use
from sim.metrics.ledger import job_ledgers
from sim.metrics.profiles import profile_counts, profile_rows
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.failures import Source
from sim.processes.operations import simulate_operations
from sim.profile_delays import checkpoint_in, recovery_in
from sim.streams import Streams
from sim.trace import Trace, Verb
from tests.machine.test_jobs import HORIZON_S, down, story
from topology.fabric import Fabric
from topology.pod import Pod
from workloads.jobs.job import Job, make_job

HOST_DOWN = down(ComponentKind.HOST, (3, 1000, 5000))


def operate(jobs: list[Job], sources: list[Source], *, cubes: int = 5, recovery: RecoveryPolicy | None = None,
            **more: object) -> Trace:  # fmt: skip
    """A run of 10,000 s on a small pod with the default delays and slices that run when they are got at time 0."""
    return simulate_operations(
        Pod(cubes=cubes), Fabric.RECONFIGURABLE, jobs, sources, health=HealthPolicy(), repair=RepairPolicy(),
        recovery=recovery or RecoveryPolicy(), streams=Streams(1, 0), horizon_us=HORIZON_S * US_PER_S,
        check_invariants=True, **({"runs_at_start": True} | more),  # type: ignore[arg-type]
    )  # fmt: skip


def job(number: int = 0, chips: int = 128, *, work_s: float | None = None, arrival_s: float = 0, cubes: int = 5) -> Job:
    """A job on a small pod."""
    return make_job(
        number, Pod(cubes=cubes), chips, arrival_us=round(arrival_s * US_PER_S),
        work_us=None if work_s is None else round(work_s * US_PER_S),
    )  # fmt: skip


def events(trace: Trace, *verbs: Verb) -> list[tuple[str, float, int]]:
    """Rows of the named verbs: verb, second, value in seconds."""
    return [(row[1], row[0] / US_PER_S, row[6] // US_PER_S) for row in trace.rows if row[1] in verbs]


ENDS = (Verb.FINISH, Verb.COMMIT, Verb.LOSE)


def test_a_job_runs_and_finishes() -> None:
    """Goal: work ends when it is done. Method: 500 s of work on two cubes, and a second job of all five cubes that
    arrives at 100 s and starts when the first has finished; chip-hours add up."""
    trace = operate([job(work_s=500), job(1, 256, work_s=100, arrival_s=100, cubes=8)], [], cubes=5)
    assert events(trace, *ENDS) == [("finish", 500.0, 0), ("finish", 500.0 + 790 + 100, 0)]
    assert story(trace, 1)[0] == ("waiting", 100, 500)
    uses = chip_us_by_use(trace)
    assert uses[Use.UNACCOUNTED] == 0
    assert uses[Use.USEFUL] == (500 * 128 + 100 * 256) * US_PER_S
    assert uses[Use.FRAGMENTED] == 400 * 192 * US_PER_S


def test_a_loss_without_checkpoints_undoes_all() -> None:
    """Goal: redo from the start. Method: 3,000 s of work, lost at 1,000 s, running again at 1,880 s."""
    trace = operate([job(work_s=3000)], [HOST_DOWN])
    assert events(trace, *ENDS) == [("lose", 1000.0, 1000), ("finish", 4880.0, 0)]
    uses = chip_us_by_use(trace)
    assert (uses[Use.LOST], uses[Use.USEFUL]) == (1000 * 128 * US_PER_S, 3000 * 128 * US_PER_S)
    assert chip_us_by_use(trace, 400 * US_PER_S)[Use.LOST] == 600 * 128 * US_PER_S


def test_blocking_checkpoints() -> None:
    """Goal: commits and redo. Method: 400 s of running, 20 s of saving: commits at 420 and 840 s, lost at 1,000 s with
    160 s undone; 2,200 s left from 1,880 s: five saves of 20 s; what is done needs no save."""
    trace = operate([job(work_s=3000)], [HOST_DOWN], checkpoint=FixedCheckpoints(interval=400, save=20))
    assert events(trace, *ENDS)[:3] == [("commit", 420.0, 400), ("commit", 840.0, 800), ("lose", 1000.0, 160)]
    assert events(trace, *ENDS)[-2:] == [("commit", 1880.0 + 5 * 420, 2800), ("finish", 1880.0 + 2200 + 100, 0)]
    assert chip_us_by_use(trace)[Use.CHECKPOINTING] == 7 * 20 * 128 * US_PER_S


def test_asynchronous_checkpoints() -> None:
    """Goal: what is saved is the state at the start of the save. Method: every 400 s, written in 100 s of which 10 s
    stop the job: saves start at 400 and 810 s, the second is complete at 910 s; lost at 1,000 s: 790 s are safe."""
    policy = FixedCheckpoints(interval=400, save=100, stall=10, mode="asynchronous")
    trace = operate([job(work_s=3000)], [HOST_DOWN], checkpoint=policy)
    assert events(trace, *ENDS)[:3] == [("commit", 500.0, 400), ("commit", 910.0, 800), ("lose", 1000.0, 180)]


def test_slowed_running_takes_longer() -> None:
    """Goal: work is done at the speed of the slice. Method: a switch is dead from 1,000 s to 5,000 s: 670 s of
    detection, routes and restore, then 95 % until the repair; a checkpoint right before the loss; sums exact."""
    ocs = down(ComponentKind.OCS, (7, 1000, 5000))
    trace = operate([job(work_s=6000)], [ocs], checkpoint=FixedCheckpoints(interval=999, save=0))
    done_s = 999 + (5000 - 1670) * 0.95
    assert events(trace, Verb.LOSE) == [("lose", 1000.0, 1)]
    (_, finished_s, _) = events(trace, Verb.FINISH)[0]
    assert finished_s == pytest.approx(5000 + 6000 - done_s, abs=1e-5)
    uses = chip_us_by_use(trace)
    assert uses[Use.SLOWED] == pytest.approx((5000 - 1670) * 0.05 * 128 * US_PER_S, rel=1e-9)
    assert uses[Use.UNACCOUNTED] == 0


def test_jobs_that_can_never_run_are_rejected() -> None:
    """Goal: reasons. Method: a job of 8 cubes on a pod of 5."""
    trace = operate([job(0, 512, work_s=10)], [])
    assert [(row[1], row[5]) for row in trace.rows] == [("submit", ""), ("reject", "resource")]
    assert chip_us_by_use(trace)[Use.EMPTY] == 5 * 64 * HORIZON_S * US_PER_S


def test_a_job_may_wait_on_its_slice() -> None:
    """Goal: `hold`. Method: a host is down for 200 s; the job stays, idle, and starts again where it was; with a
    repair that comes too late it leaves when its patience ends."""
    short = down(ComponentKind.HOST, (3, 1000, 1200))
    trace = operate([job()], [short], recovery=RecoveryPolicy(hold=600))
    assert story(trace)[1:5] == [
        ("detecting", 1000, 1060), ("held_idle", 1060, 1200), ("preflight", 1200, 1380), ("restoring", 1380, 1980),
    ]  # fmt: skip
    late = operate([job()], [HOST_DOWN], recovery=RecoveryPolicy(hold=600))
    assert story(late)[2:4] == [("held_idle", 1060, 1660), ("evicting", 1660, 1690)]


def test_starts_that_fail_start_over() -> None:
    """Goal: recovery itself can fail. Method: half of all starts fail: the starts of 2,000 jobs take 790 s as often as
    a geometric law says (mean 2, within 5 standard errors)."""
    jobs = [job(number, 64, work_s=1, cubes=512) for number in range(500)]
    trace = simulate_operations(
        Pod(cubes=512), Fabric.RECONFIGURABLE, jobs, [], health=HealthPolicy(), repair=RepairPolicy(),
        recovery=RecoveryPolicy(failure=0.5), streams=Streams(3, 0), horizon_us=30_000 * US_PER_S,
    )  # fmt: skip
    starts = [(second - 1) / 790 for _, second, _ in events(trace, Verb.FINISH)]
    assert len(starts) == 500
    assert set(starts) <= set(range(1, 40))
    assert abs(np.mean(starts) - 2) < 5 * 2**0.5 / 500**0.5


def test_policies_refuse_what_is_no_policy() -> None:
    """Goal: helpful words. Method: impossible values."""
    for make in (
        lambda: FixedCheckpoints(interval=0),
        lambda: FixedCheckpoints(save=-1),
        lambda: FixedCheckpoints(save=1, stall=2, mode="asynchronous"),
        lambda: YoungCheckpoints(save=0),
        lambda: RecoveryPolicy(failure=1.0),
    ):
        with pytest.raises(ValueError, match=r"must|longer|above"):
            make()
    assert YoungCheckpoints().interval_s(float("inf")) is None
    assert NoCheckpoints().interval_s(1.0) is None


@pytest.mark.parametrize(
    ("kind", "back", "lost"),
    [("cold", ["evicting", "reconfiguring", "preflight", "restoring"], 1000),
     ("warm", ["evicting", "reconfiguring", "restoring"], 1000),
     ("hot", ["evicting", "reconfiguring", "restoring"], 0)],
)  # fmt: skip
def test_spares_shorten_the_way_back(kind: str, back: list[str], lost: int) -> None:
    """Goal: what each kind of spare saves. Method: a loss with one spare cube: warm ones need no preflight, hot ones no
    restore either, and undo nothing; the queue's third job of one cube may not take the spare."""
    jobs = [job(), job(1), job(2, 64, work_s=100)]
    trace = operate(jobs, [HOST_DOWN], spares=SparesPolicy(kind=kind, cubes=1))  # type: ignore[arg-type]
    stages = [stage for stage, start, _ in story(trace) if start >= 1060]
    assert stages == [*back, "running"]
    assert sum(value for _, _, value in events(trace, Verb.LOSE)) == lost
    assert story(trace, 2) == [("waiting", 0, HORIZON_S)]
    uses = chip_us_by_use(trace)
    assert uses[Use.UNACCOUNTED] == 0
    # cube 4 until it is taken at 1,090 s, then cube 0 from its repair at 5,000 s
    assert uses[Use.SPARE] == (1090 + 5000) * 64 * US_PER_S


def test_a_hot_spare_that_is_gone_undoes_after_all() -> None:
    """Goal: state is lost where no spare holds it. Method: two losses of one job, the second before the first repair;
    one spare: the second time the job waits, and its running since 1,000 s is undone."""
    twice = down(ComponentKind.HOST, (3, 1000, 9000), (17, 3000, 8000))
    trace = operate([job(), job(1)], [twice], spares=SparesPolicy(kind="hot", cubes=1))
    assert events(trace, Verb.LOSE) == [("lose", 8000.0, 3000 - (1160 - 1000))]


def test_spares_leave_something() -> None:
    """Goal: helpful refusals. Method: as many spares as cubes; a kind without cubes; a job of the whole pod beside a
    spare is rejected."""
    with pytest.raises(ValueError, match="leave nothing"):
        operate([], [], spares=SparesPolicy(kind="cold", cubes=5))
    with pytest.raises(ValueError, match="name both"):
        SparesPolicy(kind="hot")
    trace = operate([job(0, 256, work_s=1, cubes=4)], [], cubes=4, spares=SparesPolicy(kind="cold", cubes=1))
    assert [row[5] for row in trace.rows if row[1] == Verb.REJECT] == ["resource"]


def test_profiles_have_their_own_delays() -> None:
    """Goal: jobs of several profiles share one pod, each with its own delays. Method: a job without a profile, a tight
    and a quick one lose a host each at 1,000 s; start stages, saves and what is lost follow `PROFILES`."""
    pod = Pod(cubes=20)
    profiles = (("", 128), ("tight", 512), ("quick", 64))
    jobs = [
        make_job(number, pod, chips, work_us=6000 * US_PER_S, profile=profile)
        for number, (profile, chips) in enumerate(profiles)
    ]
    hosts = down(ComponentKind.HOST, (0, 1000, 9000), (32, 1000, 9000), (160, 1000, 9000))
    trace = operate(jobs, [hosts], cubes=20, checkpoint=FixedCheckpoints(interval=400, save=20))
    delays = {0: (180, 600, 20), 1: (180, 600, 60), 2: (30, 60, 5)}
    for number, (preflight_s, restore_s, save_s) in delays.items():
        back = {stage: (start, end) for stage, start, end in story(trace, number) if 1090 <= start < 2000}
        assert back["preflight"] == (1100, 1100 + preflight_s)
        assert back["restoring"][1] - back["restoring"][0] == restore_s
        saves = [(start, end) for stage, start, end in story(trace, number) if stage == "checkpointing"]
        assert saves[0] == (400, 400 + save_s)
        lost = [row[6] // US_PER_S for row in trace.rows if row[1] == Verb.LOSE and row[4] == number]
        assert lost == [1000 - 2 * (400 + save_s)]
    assert chip_us_by_use(trace)[Use.UNACCOUNTED] == 0
    rows = {row["profile"]: row for row in profile_rows([profile_counts(jobs, job_ledgers(trace), trace, 0)])}
    assert [(name, row["losses"], row["lost_s_per_loss"], row["back_s_per_loss"]) for name, row in rows.items()] == [
        ("none", 1, 1000 - 2 * 420, 880), ("quick", 1, 1000 - 2 * 405, 190), ("tight", 1, 1000 - 2 * 460, 880),
    ]  # fmt: skip
    assert rows["quick"]["ettr"] > rows["tight"]["ettr"]
    assert profile_counts(jobs[:1], job_ledgers(trace), trace, 0) == {}


def test_an_asynchronous_save_of_a_profile() -> None:
    """Goal: a stall fits its save. Method: a stall of 10 s where the quick profile saves in 5 s: it stops for 5 s."""
    policy = FixedCheckpoints(interval=400, save=100, stall=10, mode="asynchronous")
    quick = make_job(0, Pod(cubes=5), 64, work_us=1000 * US_PER_S, profile="quick")
    trace = operate([quick], [], checkpoint=policy)
    assert story(trace)[:2] == [("running", 0, 400), ("checkpointing", 400, 405)]
    assert checkpoint_in(NoCheckpoints(), "quick") == NoCheckpoints()
    assert recovery_in(RecoveryPolicy(), "unknown") == RecoveryPolicy()
