"""Several pods behind one queue: exact waits, Erlang C, a pod alone, the same luck, nothing lost between pods."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict

import numpy as np
import pytest

from sim.build import Setup, build_setup, seconds_to_us
from sim.metrics.ledger import job_ledgers
from sim.metrics.uses import Use
from sim.processes.one_queue import FleetLog
from sim.run_tables import SPECS
from sim.scenario import expand, scenario_of
from sim.simulation import run
from sim.strict_yaml import parse_document
from sim.studies.fleet import jobs_by_pod, jobs_of_fleet, play_pod, sample_fleet, sample_one_queue
from sim.studies.job_plays import play_one_queue
from sim.trace import Stage, Trace, Verb
from tests.run.cases import bytes_of, differing, loaded
from topology.errors import InputError
from workloads.jobs.fleet import EmptiestPod, FirstPod, FullestPod
from workloads.jobs.job import Job

EQUAL = """\
name: equal
pod: {cubes: 2}
failures: {host: {failure_rate: 0.000001 %/day, repair: {mean: 1 h}}}
jobs:
  streams:
    - {load: 80 %, slices: {kind: shares, shares: {4x4x4: 1}}, durations: {kind: exponential, mean: 1 h}}
recovery: {circuits: 0 s, preflight: 0 s, restore: 0 s}
study: {fleet: {pods: 3, horizon: 3 d, one_queue: {}}}
run: {seed: 4}
"""
"""Jobs of one cube on three pods of two, never a failure and no delays: six servers."""
MIXED = """\
name: mixed
pod: {cubes: 4}
failures: {host: {availability: 97 %, repair: {kind: exponential, mean: 10 h}}}
jobs:
  streams:
    - {load: 50 %, slices: {kind: shares, shares: {4x4x4: 3, 4x4x8: 1}}, durations: {mean: 6 h, cv: 1}}
scheduling: {queue: {kind: easy}}
checkpoint: {kind: young, save: 60 s}
study: {fleet: {pods: 3, horizon: 6 d, replications: 2, one_queue: {}}}
run: {seed: 4, warmup: 12 h}
"""
"""Jobs of one and two cubes on pods where many hosts fail."""
HOUR_US = 3_600_000_000


def setup_of(text: str, *overrides: str) -> Setup:
    """The parts of the only point of a scenario."""
    return build_setup(expand(scenario_of(parse_document(text.encode(), "fleet.yaml"), overrides))[0].scenario)


def play(setup: Setup, replication: int = 0) -> tuple[tuple[Job, ...], list[Trace], FleetLog]:
    """The jobs of a replication, the logs of all pods behind one queue, and that of the queue."""
    study, jobs = setup.scenario.study.fleet, jobs_of_fleet(setup, replication)
    assert study is not None
    assert study.one_queue is not None
    horizon_us = seconds_to_us(study.horizon)
    return jobs, *play_one_queue(setup, jobs, replication, study.pods, study.one_queue, horizon_us)


def erlang_c_wait(servers: int, load: float) -> float:
    """Mean wait of M/M/c in units of the mean service time (Erlang, 1917), `load` = offered Erlangs / c."""
    offered = servers * load
    below = sum(offered**k / math.factorial(k) for k in range(servers))
    all_busy = offered**servers / math.factorial(servers) / (1 - load)
    return all_busy / (below + all_busy) / (servers * (1 - load))


@pytest.mark.parametrize("queue", ["fifo", "easy"])
def test_equal_jobs_start_when_a_server_is_free(queue: str) -> None:
    """Goal: pods x slots are the servers of one queue. Method: the start of every job, to the microsecond, against the
    recursion of Kiefer and Wolfowitz (1955) on the same arrivals and lengths, for two policies of choice."""
    for choice in ("first", "emptiest"):
        setup = setup_of(
            EQUAL, f"scheduling.queue={{kind: {queue}}}", f"study.fleet.one_queue.choice={{kind: {choice}}}"
        )
        jobs, _, log = play(setup)
        free_us, starts = [0] * 6, {}
        for job in jobs:
            starts[job.id] = max(job.arrival_us, heapq.heappop(free_us))
            heapq.heappush(free_us, starts[job.id] + (job.work_us or 0))
        horizon_us = 72 * HOUR_US
        assert len(jobs) > 200
        assert log.started_us == {job: at_us for job, at_us in starts.items() if at_us < horizon_us}


@pytest.mark.slow
def test_what_pooling_gains() -> None:
    """Goal: one queue for three pods gains over three queues what Erlang C says. Method: mean waits of M/M/6, and of
    M/M/2 for a pod with a queue and a third of the jobs, of six runs of 20 days each, within 5.9 standard errors
    (t(5), error rate 2e-3 over the two), and their ratio (4.1) within a quarter."""
    waits = {}
    for pods in (1, 3):
        text = ("run.warmup=2 d", "study.fleet.horizon=20 d", f"study.fleet.pods={pods}")
        setup = setup_of(EQUAL, *text)
        samples = [sample_one_queue(setup, number, jobs_of_fleet(setup, number)) for number in range(6)]
        means = [sample.waited_us / sample.arrived / HOUR_US for sample in samples]
        error = float(np.std(means, ddof=1)) / math.sqrt(len(means))
        waits[pods] = float(np.mean(means))
        assert abs(waits[pods] - erlang_c_wait(2 * pods, 0.8)) < 5.9 * error
    assert waits[1] / waits[3] == pytest.approx(erlang_c_wait(2, 0.8) / erlang_c_wait(6, 0.8), rel=0.25)


@pytest.mark.parametrize("queue", ["fifo", "easy"])
def test_one_pod_is_a_pod(queue: str) -> None:
    """Goal: one queue for one pod is the pod's own, reservations and backfill too. Method: without failures, the end of
    every job on both."""
    overrides = ("study.fleet.pods=1", "failures.host=null", f"scheduling.queue={{kind: {queue}}}", "run.seed=9")
    setup = setup_of(MIXED, *overrides, "failures.rack={failure_rate: 0.000001 %/day, repair: {mean: 1 h}}")
    jobs, (together,), _ = play(setup)
    alone = play_pod(setup, 0, 0, jobs)
    ends = [[(row[0], row[4]) for row in trace.rows if row[1] == Verb.FINISH] for trace in (alone, together)]
    assert len(ends[0]) > 20
    assert ends[0] == ends[1]


def test_pods_have_the_same_luck() -> None:
    """Goal: one queue and own queues are compared on the same draws. Method: failures of hosts in all logs."""
    setup = setup_of(MIXED)
    jobs, together, _ = play(setup)
    for pod, own in enumerate(jobs_by_pod(setup, jobs)):
        failed = [
            [(row[0], row[3]) for row in trace.rows if row[1] == Verb.FAIL]
            for trace in (play_pod(setup, 0, pod, own), together[pod])
        ]
        assert len(failed[0]) > 20
        assert failed[0] == failed[1]


def test_nothing_is_lost_between_pods() -> None:
    """Goal: a job that goes on elsewhere takes along what is safe, and reads it first. Method: the useful time of every
    finished job, over all pods, is its work; first stretches on another pod, where anything was safe."""
    jobs, traces, log = play(setup_of(MIXED, "study.fleet.one_queue.transfer=3 h", "run.seed=8"))
    useful_us: dict[int, int] = defaultdict(int)
    seen: dict[int, int] = defaultdict(int)
    ended = set()
    for trace in traces:
        for ledger in job_ledgers(trace):
            useful_us[ledger.job] += ledger.us[Use.USEFUL] + ledger.us[Use.SLOWED]
            seen[ledger.job] += 1
            assert ledger.unaccounted_us == 0
            if ledger.finished_us is not None:
                assert ledger.job not in ended
                ended.add(ledger.job)
    moved = [number for number, pods in seen.items() if pods > 1]
    assert sum(seen.values()) - len(seen) == len(log.moves_us) > 2
    slowed = 1 / 0.95
    for job in jobs:
        if job.id in ended:
            assert job.work_us is not None
            assert job.work_us - 2 * seen[job.id] <= useful_us[job.id] <= slowed * job.work_us + 2 * seen[job.id]
    fetched = [
        interval
        for trace in traces
        for interval in trace.stage_intervals()
        if interval.stage is Stage.RESTORING and interval.end_us - interval.start_us >= 3 * HOUR_US
    ]
    assert {interval.job for interval in fetched} <= set(moved)
    assert len(fetched) > 0


def test_choices_by_hand() -> None:
    """Goal: policies order pods as they say. Method: free chips of four pods, two of them equal."""
    free = np.array([128, 64, 256, 64])
    assert FirstPod().order(free).tolist() == [0, 1, 2, 3]
    assert EmptiestPod().order(free).tolist() == [2, 0, 1, 3]
    assert FullestPod().order(free).tolist() == [1, 3, 0, 2]


def test_jobs_can_stay_on_their_pods() -> None:
    """Goal: `elsewhere: false`. Method: nobody moves, and every job is on one pod at most; samples hold all jobs."""
    setup = setup_of(MIXED, "study.fleet.one_queue.elsewhere=false")
    jobs, traces, log = play(setup)
    assert not log.moves_us
    submitted = [row[4] for trace in traces for row in trace.rows if row[1] == Verb.SUBMIT]
    assert len(submitted) == len(set(submitted)) == len(log.started_us)
    one = sample_one_queue(setup, 0, jobs)
    own = [sample_fleet(setup, 0, pod, own) for pod, own in enumerate(jobs_by_pod(setup, jobs))]
    assert one.arrived == sum(sample.arrived for sample in own)
    assert {pod.chip_us for pod in one.pods} == {pod.chip_us for sample in own for pod in sample.pods}
    assert all(pod.unaccounted_us == 0 for pod in one.pods)


def test_tables_do_not_depend_on_workers() -> None:
    """Goal: declared tables, the same bytes whoever plays. Method: one process against two; differences."""
    text = MIXED.replace("6 d", "2 d")
    found = run(loaded(text), workers=1)
    assert differing(bytes_of(found), bytes_of(run(loaded(text), workers=2))) == []
    for name in ("fleet_queues", "fleet_waits"):
        SPECS[name].check(found.tables[name])
    values = found.tables["fleet_queues"].set_index(["queues", "measure"])["value"]
    for measure in ("fleet_wait_mean_s", "fleet_utilisation"):
        assert values["one_less_own", measure] == pytest.approx(values["one", measure] - values["own", measure])
    shares = found.tables["fleet_waits"].groupby("queues")["share"]
    assert shares.is_monotonic_decreasing.all()
    assert "Behind one queue" in found.sentence
    assert found.plot.fleet_waits() is not None


def test_orders_other_than_arrival_are_refused() -> None:
    """Goal: bad input. Method: a policy that is not in order of arrival, a choice that is none."""
    with pytest.raises(InputError, match=r"scheduling.queue: one queue for several pods is in order of arrival"):
        setup_of(MIXED, "scheduling.queue={kind: shortest_first}")
    with pytest.raises(InputError, match=r"study.fleet.one_queue.choice"):
        setup_of(MIXED, "study.fleet.one_queue.choice={kind: nearest}")
