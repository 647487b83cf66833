"""Queue policies: published waits, closed forms, what EASY promises, who is preempted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from sim.streams import Streams
from tests.jobs.players import Player
from tests.shared_data import shared_file
from topology.fabric import Fabric
from topology.pod import FlatPod, Pod
from topology.policies import FirstFit
from workloads.jobs.job import Job, make_job
from workloads.jobs.job_plan import JobPlan, plan_from_log
from workloads.jobs.queue_policies import Easy, FairShare, Fifo, Priority, ShortestFirst, reservation_of
from workloads.jobs.queueing import Decision, Preempt, QueuePolicy, QueueView, Running, Start
from workloads.jobs.slice_rules import RoundUp
from workloads.jobs.swf import read_swf
from workloads.jobs.usage import Holding, Usage

S = 1_000_000
NASA = FlatPod(hosts=128)
"""A processor of the iPSC/860 stands for a host."""


def nasa_plan() -> JobPlan:
    """The NASA log on 128 hosts, submit times x 0.8 (its submits are its starts, so as it stands nobody waits)."""
    log = read_swf(shared_file("swf/nasa_ipsc_1993.swf.gz")).jobs()
    return plan_from_log(log, Fabric.ANY_HOST, NASA, RoundUp(chips_per_processor=4), FirstFit(), time_scale=0.8)


class EasyWatched:
    """EASY, and at every decision the head's reservation before and after it."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.reserved = 0
        self.backfilled = 0

    def decide(self, view: QueueView) -> Sequence[Decision]:
        """What EASY decides, checked: the head could start no later than without the backfill."""
        decisions = Easy().decide(view)
        started = [decision.job for decision in decisions if isinstance(decision, Start)]
        ahead = 0
        while ahead < min(len(started), len(view.waiting)) and started[ahead] is view.waiting[ahead].job:
            ahead += 1
        if ahead == len(view.waiting):
            return decisions
        head, room = view.waiting[ahead].job, view.room
        running = list(view.running)
        left = {one.job.id: one.remaining_us for one in view.waiting}
        before = None
        for place, job in enumerate(started):
            if place == ahead:
                before = reservation_of(head, room, running, view.now_us)
            after = room.after_start(job)
            assert after is not None
            room, remaining_us = after, left[job.id]
            assert remaining_us is not None
            end_us = view.now_us + remaining_us
            running.append(Running(job=job, started_us=view.now_us, expected_end_us=end_us))
        if before is not None:
            reserved = reservation_of(head, room, running, view.now_us)
            assert reserved is not None
            assert reserved.at_us <= before.at_us, "the head is delayed"
            self.reserved += 1
            self.backfilled += len(started) - ahead
        return decisions


@pytest.mark.slow
def test_waits_on_the_nasa_log() -> None:
    """Goal: waits that an independent program gives (results to reproduce: FIFO about 1,095 s, EASY about 515 s).
    Method: the whole log through the dispatcher; and at each of EASY's decisions the head's reservation is kept."""
    plan = nasa_plan()
    assert (len(plan.jobs), plan.rejected) == (18239, ())
    fifo = Player(NASA, Fabric.ANY_HOST, Fifo()).play(plan.jobs)
    assert fifo.mean() == pytest.approx(1095, abs=2)
    watched = EasyWatched()
    easy = Player(NASA, Fabric.ANY_HOST, watched).play(plan.jobs)
    assert easy.mean() == pytest.approx(515, abs=2)
    assert watched.reserved > 100
    assert watched.backfilled >= watched.reserved


def test_the_start_of_the_nasa_log() -> None:
    """Goal: the same in a second. Method: its first 2,500 jobs: the order of the policies' waits, EASY checked."""
    jobs = nasa_plan().jobs[:2500]
    mean = {policy.__class__: Player(NASA, Fabric.ANY_HOST, policy).play(jobs).mean()
            for policy in (Fifo(), EasyWatched(), ShortestFirst(overtake=True))}  # fmt: skip
    assert mean[ShortestFirst] < mean[EasyWatched] < mean[Fifo]


def random_jobs(count: int, seed: int, sizes: Sequence[int], *, load: float, pod: Pod, over: float = 1.0) -> list[Job]:
    """Jobs of random sizes and times at about this load of the pod."""
    u = Streams(seed, 0).uniforms("test.jobs", 0, 4 * count).reshape(4, count)
    chips = [sizes[int(place * len(sizes))] for place in u[0].tolist()]
    gap = 3600 * float(np.mean(sizes)) / pod.chips / load
    arrivals = np.cumsum(-np.log1p(-u[1]) * gap)
    work = -np.log1p(-u[2]) * 3600
    return [
        make_job(
            n, pod, chips[n], arrival_us=round(arrivals[n] * S), work_us=round(work[n] * S),
            requested_us=round(work[n] * (1 + over * u[3, n]) * S), priority=n % 3, owner=f"o{n % 4}",
        )
        for n in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("fabric", [Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED, Fabric.STATIC_CONTIGUOUS])
def test_easy_never_delays_the_head(fabric: Fabric) -> None:
    """Goal: the promise of EASY on real shapes, with owners who ask for too much. Method: slices of sub-cube to 16
    cubes on a pod of 27 cubes; the reservation of the head before and after every backfill; all jobs end."""
    pod = Pod(cubes=27)
    jobs = random_jobs(250, 7, [4, 16, 64, 128, 256, 512, 1024], load=1.1, pod=pod)
    if fabric is Fabric.STATIC_CONTIGUOUS:
        jobs = [job for job in jobs if job.chips <= 512]
    watched = EasyWatched()
    player = Player(pod, fabric, watched)
    player.play(jobs)
    assert len(player.ended_us) == len(jobs)
    assert watched.backfilled > 20


@pytest.mark.parametrize("policy", [Fifo(), Easy(), Easy(order="shortest"), ShortestFirst(), Priority(), FairShare()])
def test_every_policy_finishes_everything(policy: QueuePolicy) -> None:
    """Goal: no job is lost, started twice or held twice. Method: a busy small pod, invariants counted anew after each
    verb; everything ends and everything is free."""
    pod = Pod(cubes=4)
    jobs = random_jobs(60, 3, [1, 2, 4, 16, 64, 128, 256], load=0.9, pod=pod)
    player = Player(pod, Fabric.RECONFIGURABLE, policy, check_invariants=True)
    player.play(jobs)
    assert len(player.ended_us) == 60
    assert not player.machine.holdings
    assert player.machine.free_hosts().all()
    assert player.dispatcher.room().free_chips == pod.chips


def erlang_c_wait(servers: int, load: float) -> float:
    """Mean wait of M/M/c in units of the mean service time (Erlang C), `load` = offered Erlangs / c."""
    offered = servers * load
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    tail = offered**servers / math.factorial(servers) / (1 - load)
    return tail / (sum(terms) + tail) / (servers * (1 - load))


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (4, 0.7)])
def test_equal_slices_wait_as_in_m_m_c(servers: int, load: float) -> None:
    """Goal: the queue against a closed form. Method: one-cube jobs on c cubes, Poisson, exponential work: mean wait of
    20 runs of 800 jobs (the first 200 left out) within 4.2 standard errors of Erlang C (error rate 5e-4 by t(19))."""
    pod = Pod(cubes=servers)
    means = []
    for seed in range(20):
        jobs = random_jobs(800, seed, [64], load=load, pod=pod)
        means.append(Player(pod, Fabric.RECONFIGURABLE).play(jobs)[200:].mean() / 3600)
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    assert abs(np.mean(means) - erlang_c_wait(servers, load)) < 4.2 * error


def job(number: int, chips: int, arrival_s: int, work_s: int | None, pod: Pod, **more: object) -> Job:
    """A job in seconds."""
    work_us = None if work_s is None else work_s * S
    return make_job(number, pod, chips, arrival_us=arrival_s * S, work_us=work_us, **more)  # type: ignore[arg-type]


def starts(policy: QueuePolicy, jobs: Sequence[Job], pod: Pod, until_s: int = 10_000) -> dict[int, int]:
    """First starts in seconds by job."""
    player = Player(pod, Fabric.RECONFIGURABLE, policy, check_invariants=True)
    player.play(jobs, until_us=until_s * S)
    return {number: time // S for number, time in sorted(player.started_us.items())}


def test_a_case_by_hand() -> None:
    """Goal: who starts when, on two cubes. Method: a runs 100 s on one cube, b wants both, c (50 s), d (200 s) and e
    (40 s) want one each: FIFO makes all wait for b, EASY lets c and then e in, not d."""
    pod = Pod(cubes=2)
    jobs = [job(0, 64, 0, 100, pod), job(1, 128, 1, 10, pod), job(2, 64, 2, 50, pod), job(3, 64, 3, 200, pod),
            job(4, 64, 4, 40, pod)]  # fmt: skip
    assert starts(Fifo(), jobs, pod) == {0: 0, 1: 100, 2: 110, 3: 110, 4: 160}
    assert starts(Easy(), jobs, pod) == {0: 0, 1: 100, 2: 2, 3: 110, 4: 52}
    assert starts(ShortestFirst(), jobs, pod) == {0: 0, 1: 100, 2: 110, 3: 150, 4: 110}
    assert starts(ShortestFirst(overtake=True), jobs, pod) == {0: 0, 2: 2, 3: 92, 1: 292, 4: 52}


def test_a_head_that_fits_after_no_known_end_holds_nobody_up() -> None:
    """Goal: EASY where no reservation exists. Method: a job without end holds one of two cubes, the head wants both."""
    pod = Pod(cubes=2)
    jobs = [job(0, 64, 0, None, pod), job(1, 128, 1, 10, pod), job(2, 64, 2, 500, pod)]
    assert starts(Easy(), jobs, pod) == {0: 0, 2: 2}


def test_priority_preempts_the_lowest_and_latest_and_spares_the_others() -> None:
    """Goal: as few victims as need be. Method: on five cubes run a (one cube, priority 1), b (two) and c (one, later),
    both of priority 0. A job of priority 2 wants two cubes: c alone gives its cube, beside the free one, and goes on
    afterwards with what it has left. Without preemption it waits; equals do not preempt each other."""
    pod = Pod(cubes=5)
    jobs = [
        job(0, 64, 0, 1000, pod, priority=1), job(1, 128, 0, 1000, pod), job(2, 64, 1, 1000, pod),
        job(3, 128, 10, 100, pod, priority=2),
    ]  # fmt: skip
    player = Player(pod, Fabric.RECONFIGURABLE, Priority(), check_invariants=True)
    player.play(jobs)
    assert {number: time // S for number, time in player.ended_us.items()} == {3: 110, 0: 1000, 1: 1000, 2: 1101}
    without = Player(pod, Fabric.RECONFIGURABLE, Priority(preempt=False))
    without.play(jobs)
    assert without.started_us[3] == 1000 * S
    equal = [job(0, 64 * 5, 0, 100, pod, priority=2), job(1, 64, 1, 1, pod, priority=2)]
    assert starts(Priority(), equal, pod) == {0: 0, 1: 100}


def test_victims_that_are_not_needed_are_spared() -> None:
    """Goal: a large victim makes a small one needless. Method: the latest, small one is taken first, then the large one
    that suffices alone: only that is preempted."""
    pod = Pod(cubes=4)
    small, large, wants = job(0, 64, 0, 900, pod), job(1, 192, 0, 900, pod), job(2, 192, 0, 9, pod, priority=5)
    player = Player(pod, Fabric.RECONFIGURABLE, Priority())
    player.play([large, small], until_us=10 * S)
    view = QueueView(
        now_us=10 * S, waiting=(), room=player.dispatcher.room(),
        running_now=lambda: [Running(job=large, started_us=0, expected_end_us=None),
                             Running(job=small, started_us=S, expected_end_us=None)],
    )  # fmt: skip
    assert Priority()._victims(view.running, (), view.room, wants) == [large]


def test_fair_share_serves_who_has_used_least() -> None:
    """Goal: owners share. Method: a hog has run 100 s on the only cube; then both ask, the hog first: the other starts;
    with nine times the share the hog does (100 s / 9 is less than what the other has used by then)."""
    pod = Pod(cubes=1)
    jobs = [job(0, 64, 0, 100, pod, owner="hog"), job(1, 64, 1, 20, pod, owner="hog"),
            job(2, 64, 2, 20, pod, owner="other"), job(3, 64, 3, 20, pod, owner="other")]  # fmt: skip
    assert starts(FairShare(), jobs, pod) == {0: 0, 2: 100, 3: 120, 1: 140}
    assert starts(FairShare(shares={"hog": 9.0}), jobs, pod) == {0: 0, 2: 100, 1: 120, 3: 140}


def test_use_is_forgotten_by_half() -> None:
    """Goal: the formula of the half-life. Method: h = 100 s; 64 chips held for 100 s, ended 100 s ago, against the
    integral of 64 x 2^(-age / h) over those ages, summed in 1 ms steps; a job that still runs; and the owner who used
    much long ago goes before the one who used less just now, but not where nothing is forgotten."""
    usage = Usage(100.0)
    usage.ended(Holding("a", 64, 0), 100 * S)
    ages = np.arange(100, 200, 0.001) + 0.0005
    by_hand = 64 * np.sum(2 ** (-ages / 100)) * 0.001 * S
    assert usage.at(200 * S, [])["a"] == pytest.approx(by_hand, rel=1e-9)
    assert usage.at(200 * S, [])["a"] == pytest.approx(64 * 100 * S / math.log(2) * (0.5 - 0.25))
    usage.ended(Holding("a", 64, 150 * S), 200 * S)
    more = 64 * 100 * S / math.log(2) * (1 - 0.5**0.5)
    assert usage.at(200 * S, [Holding("b", 64, 150 * S)]) == pytest.approx({"a": by_hand + more, "b": more})
    forever = Usage()
    forever.ended(Holding("a", 64, 0), 100 * S)
    assert forever.at(900 * S, [Holding("a", 4, 899 * S)]) == {"a": 64 * 100 * S + 4 * S}
    pod = Pod(cubes=1)
    jobs = [job(0, 64, 0, 100, pod, owner="early"), job(1, 64, 900, 60, pod, owner="late"),
            job(2, 64, 901, 5, pod, owner="late"), job(3, 64, 902, 5, pod, owner="early")]  # fmt: skip
    assert starts(FairShare(), jobs, pod) == {0: 0, 1: 900, 2: 960, 3: 965}
    assert starts(FairShare(half_life=100.0), jobs, pod) == {0: 0, 1: 900, 3: 960, 2: 965}


def test_overdue_jobs_end_at_once_in_the_reckoning() -> None:
    """Goal: jobs that take longer than they asked stop nothing. Method: a asks for 10 s and runs 100; b wants both;
    at 50 s c may not start on the free cube, since b is expected now."""
    pod = Pod(cubes=2)
    jobs = [job(0, 64, 0, 100, pod, requested_us=10 * S), job(1, 128, 1, 10, pod), job(2, 64, 50, 20, pod)]
    assert starts(Easy(), jobs, pod) == {0: 0, 1: 100, 2: 110}


def test_a_policy_that_starts_what_does_not_fit_is_told() -> None:
    """Goal: a faulty policy is named. Method: one that starts everything."""

    class Reckless:
        def decide(self, view: QueueView) -> Sequence[Decision]:
            return [Start(job=one.job) for one in view.waiting]

    pod = Pod(cubes=1)
    with pytest.raises(ValueError, match=r"Reckless.* starts job 1, which does not fit"):
        starts(Reckless(), [job(0, 64, 0, 5, pod), job(1, 64, 0, 5, pod)], pod)


@pytest.mark.parametrize(
    "make",
    [lambda: Easy(order="longest"), lambda: FairShare(shares={"a": 0.0}), lambda: FairShare(shares={"a": math.nan}),
     lambda: FairShare(half_life=0.0), lambda: FairShare(half_life=math.inf),
     lambda: make_job(1, Pod(cubes=1), 64, work_us=-1), lambda: make_job(1, Pod(cubes=1), 64, arrival_us=-1)],
)  # fmt: skip
def test_impossible_policies_and_jobs_are_refused(make: Callable[[], object]) -> None:
    """Goal: nonsense stops early. Method: one bad value at a time."""
    with pytest.raises(ValueError, match=r"write|must be"):
        make()


def test_decisions_are_values() -> None:
    """Goal: decisions can be compared and kept. Method: equality."""
    one = make_job(1, Pod(cubes=1), 64)
    assert Start(job=one) == Start(job=one) != Preempt(job=one)
