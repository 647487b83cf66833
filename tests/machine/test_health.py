"""What fails beside single components, what finds it, and planned drains: small cases, theory, and random pods."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import simpy
from hypothesis import given, settings

from sim.histories import US_PER_S, ComponentKind
from sim.job_policies import FixedCheckpoints
from sim.lifetimes import Exponential
from sim.machine import Machine
from sim.metrics.chip_hours import Use, chip_us_by_use
from sim.metrics.operations import reroute_share
from sim.other_failures import (
    BadHosts,
    FlappingLinks,
    OtherFailures,
    PodEvents,
    PowerDomainEvents,
    SilentCorruption,
    SlowHosts,
)
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy, with_detections
from sim.processes.dispatch import Dispatcher
from sim.processes.failures import start_failures
from sim.processes.job_events import JobEvents
from sim.processes.jobs import run_job
from sim.processes.operations import simulate_operations
from sim.repair_policies import (
    CrewsOf,
    FalseAlarms,
    MaintenancePolicy,
    Parts,
    PartsOf,
    Preflight,
    PreflightTest,
    Retirement,
    Rolling,
    Screening,
    TwoStage,
)
from sim.streams import Streams
from sim.trace import Row, Stage, Trace, Verb
from tests.machine.pods import DAY_US, HOUR_S, draws
from topology.fabric import Fabric
from topology.pod import AnyPod, FlatPod, Pod
from workloads.jobs.job import make_job

DAY_S = 24 * HOUR_S
PER_DAY = 1 / DAY_S


def quiet(
    pod: AnyPod, horizon_us: int, others: OtherFailures | None = None, *, health: HealthPolicy | None = None,
    maintenance: MaintenancePolicy | None = None, seed: int = 1, check_invariants: bool = False,
) -> list[Row]:  # fmt: skip
    """The log of a pod without jobs and without renewals of single components."""
    env = simpy.Environment()
    fabric = Fabric.ANY_HOST if isinstance(pod, FlatPod) else Fabric.RECONFIGURABLE
    machine = Machine(pod, fabric, env, check_invariants=check_invariants)
    start_failures(
        env, machine, [], health=health or HealthPolicy(), repair=RepairPolicy(), horizon_us=horizon_us,
        others=others, maintenance=maintenance, streams=Streams(seed, 0),
    )  # fmt: skip
    env.run(until=horizon_us)
    return machine.rows


def count(rows: list[Row], verb: Verb, cause: str | None = None) -> int:
    """Rows of a verb, with a cause where one is named."""
    return sum(1 for row in rows if row[1] == verb and cause in (None, row[5]))


def agrees_with_poisson(found: int, expected: float) -> bool:
    """Within 4 standard deviations of a Poisson count: wrong by chance once in 16,000."""
    return abs(found - expected) <= 4 * math.sqrt(expected)


def test_false_alarms_come_at_their_rate_and_take_a_check() -> None:
    """Goal: healthy hosts are taken out as often as stated. Method: 1,000 hosts for 100 days at 0.05 a day each; count
    against a Poisson one, thinned by the time out; each is out for exactly the check."""
    rows = quiet(
        FlatPod(hosts=1000), 100 * DAY_US,
        health=HealthPolicy(false_alarms=FalseAlarms(rate=0.05 * PER_DAY, check=1800)),
    )  # fmt: skip
    down = {row[3]: row[0] for row in rows if row[1] == Verb.FAIL}
    assert agrees_with_poisson(count(rows, Verb.FAIL, "false_alarm"), 1000 * 100 * 0.05 / (1 + 0.05 / 48))
    since: dict[int, int] = {}
    for time_us, verb, _, host, *_ in rows:
        if verb == Verb.FAIL:
            since[host] = time_us
        elif verb == Verb.REPAIR:
            assert time_us - since.pop(host) == 1800 * US_PER_S
    assert len(down) > 900, "all hosts are blamed alike"


def test_a_power_domain_takes_its_racks_at_one_instant() -> None:
    """Goal: common causes. Method: 64 racks in 8 domains, 0.02 events a day each, 4 h: whole domains fail and come back
    together, as often as stated; pod events take all 64."""
    policy = PowerDomainEvents(rate=0.02 * PER_DAY)
    rows = quiet(Pod(cubes=64), 2000 * DAY_US, OtherFailures(power_domain=policy), check_invariants=False)
    at: dict[int, list[int]] = {}
    for time_us, verb, kind, rack, *_ in rows:
        if verb == Verb.FAIL:
            assert kind == "rack"
            at.setdefault(time_us, []).append(rack)
    assert all(racks == list(range(racks[0], racks[0] + 8)) and racks[0] % 8 == 0 for racks in at.values())
    assert agrees_with_poisson(len(at), 8 * 2000 * 0.02 / (1 + 0.02 / 6))
    rows = quiet(Pod(cubes=64), 300 * DAY_US, OtherFailures(pod=PodEvents(rate=0.02 * PER_DAY)))
    assert count(rows, Verb.FAIL) > 0
    assert count(rows, Verb.FAIL, "pod") % 64 == 0


def test_overlapping_reasons_are_one_outage() -> None:
    """Goal: a rack that is out for two reasons is down until both have ended. Method: racks that fail by themselves,
    domains and pods on one path; invariants are checked after each verb, and the time down of independent causes
    multiplies: availability is the product of three, within 4 standard errors over 20 seeds."""
    pod, days = Pod(cubes=16), 200
    others = OtherFailures(
        power_domain=PowerDomainEvents(rate=0.2 * PER_DAY, outage=Exponential(mean=6 * HOUR_S)),
        pod=PodEvents(rate=0.1 * PER_DAY, outage=Exponential(mean=3 * HOUR_S)),
    )
    up = []
    for seed in range(20):
        env = simpy.Environment()
        machine = Machine(pod, Fabric.RECONFIGURABLE, env, check_invariants=seed == 0)
        sources = list(draws(pod, seed, {ComponentKind.RACK: (100.0, 10.0)}))
        start_failures(
            env, machine, sources, health=HealthPolicy(), repair=RepairPolicy(), horizon_us=days * DAY_US,
            others=others, streams=Streams(seed, 0),
        )  # fmt: skip
        env.run(until=days * DAY_US)
        since: dict[int, int] = {}
        down_us = 0
        for time_us, verb, _, rack, *_ in machine.rows:
            if verb == Verb.FAIL:
                since[rack] = time_us
            elif verb == Verb.REPAIR:
                down_us += time_us - since.pop(rack)
        down_us += sum(days * DAY_US - start for start in since.values())
        up.append(1 - down_us / (16 * days * DAY_US))
    product = (100 / 110) * (1 / (1 + 0.2 * 6 / 24)) * (1 / (1 + 0.1 * 3 / 24))
    assert abs(float(np.mean(up)) - product) <= 4 * float(np.std(up, ddof=1)) / math.sqrt(20)


@pytest.mark.parametrize(("coverage", "hours"), [(1.0, 12.0), (0.5, 36.0)])
def test_screening_finds_hidden_faults_in_its_time(coverage: float, hours: float) -> None:
    """Goal: latency of periodic tests. Method: onsets fall anywhere in the period of 24 h, so the first test is 12 h
    away in the mean, and a test that misses half adds one period: the mean of thousands within 4 standard errors."""
    rows = quiet(
        FlatPod(hosts=2000), 200 * DAY_US, OtherFailures(corruption=SilentCorruption(rate=0.01 * PER_DAY)),
        health=HealthPolicy(screening=Screening(every=DAY_S, coverage=coverage)),
    )  # fmt: skip
    onset = {}
    waits = []
    for time_us, verb, _, host, *_ in rows:
        if verb == Verb.ONSET:
            onset[host] = time_us
        elif verb == Verb.FAIL:
            waits.append((time_us - onset.pop(host)) / US_PER_S / HOUR_S)
    assert len(waits) > 3000
    assert abs(float(np.mean(waits)) - hours) <= 4 * float(np.std(waits, ddof=1)) / math.sqrt(len(waits))


def test_polling_adds_half_a_period() -> None:
    """Goal: detection by polls. Method: instants and delays by hand; the mean that availability counts with."""
    health = HealthPolicy(detection=5.0, poll=60.0)
    assert [health.detected_after_us("host", s * US_PER_S) // US_PER_S for s in (0, 55, 56, 60)] == [60, 5, 64, 60]
    assert health.detection_s("host") == 35.0


def run_jobs(
    others: OtherFailures, *, health: HealthPolicy, jobs: int = 1, days: int = 2, seed: int = 3, restore_s: float = 600
) -> Trace:
    """Jobs of 2 cubes without end, with checkpoints once an hour, on a pod of 6 cubes."""
    pod = Pod(cubes=6)
    return simulate_operations(
        pod, Fabric.RECONFIGURABLE, [make_job(n, pod, 128) for n in range(jobs)], [], health=health,
        repair=RepairPolicy(), recovery=RecoveryPolicy(restore=restore_s), streams=Streams(seed, 0),
        horizon_us=days * DAY_US, checkpoint=FixedCheckpoints(interval=HOUR_S, save=0.0), others=others,
        runs_at_start=True, check_invariants=True,
    )  # fmt: skip


def test_a_slow_host_slows_its_slice_until_it_is_found() -> None:
    """Goal: the pace of the slowest. Method: slow hosts at 0.5, never found: once one is under the job, it runs at half
    speed to the end; with screening the speed is whole again."""
    slow = OtherFailures(slow_hosts=SlowHosts(rate=0.05 * PER_DAY, speed=0.5))
    trace = run_jobs(slow, health=HealthPolicy())
    speeds = [row[6] for row in trace.rows if row[1] == Verb.SPEED]
    assert set(speeds) == {500_000}
    uses = chip_us_by_use(trace)
    assert uses[Use.SLOWED] > 0
    assert uses[Use.UNACCOUNTED] == 0
    screened = run_jobs(slow, health=HealthPolicy(screening=Screening(every=2 * HOUR_S)))
    assert count(screened.rows, Verb.FAIL, "slow") > 0
    assert chip_us_by_use(screened)[Use.SLOWED] < uses[Use.SLOWED]


def test_corruption_poisons_work_since_its_onset() -> None:
    """Goal: what was computed on a corrupt host is lost back to the onset, past later checkpoints. Method: checkpoints
    once an hour, screening once in 8 h: a loss undoes more than an hour, never more than since the onset + one hour."""
    corruption = OtherFailures(corruption=SilentCorruption(rate=0.05 * PER_DAY))
    trace = run_jobs(corruption, health=HealthPolicy(screening=Screening(every=8 * HOUR_S, coverage=1.0)), days=4)
    lost = [(row[0], row[6]) for row in trace.rows if row[1] == Verb.LOSE]
    assert max(us for _, us in lost) > HOUR_S * US_PER_S, "past the last checkpoint"
    assert max(us for _, us in lost) <= 9 * HOUR_S * US_PER_S
    assert chip_us_by_use(trace)[Use.UNACCOUNTED] == 0


def test_preflight_finds_what_is_hidden_and_moves_the_job() -> None:
    """Goal: a failed preflight moves the job. Method: many slow hosts, a perfect test, no time from it to the start:
    no job starts slow. A test that refuses every other good slice: twice as many preflights (geometric law)."""
    perfect = Preflight(end_to_end=PreflightTest(time=60.0, coverage=1.0))
    trace = run_jobs(
        OtherFailures(slow_hosts=SlowHosts(rate=0.3 * PER_DAY, noticed_after=Exponential(mean=DAY_S))),
        health=HealthPolicy(preflight=perfect), jobs=2, days=10, restore_s=0,
    )  # fmt: skip
    begun = [row[6] for row in trace.rows if row[1] == Verb.STAGE and row[5] == "running"]
    assert len(begun) > 10
    assert all(speed == 1_000_000 for speed in begun if speed), "slow hosts are found before the start"
    pod = Pod(cubes=64)
    refusing = HealthPolicy(preflight=Preflight(intent_driven=PreflightTest(time=60.0, false_alarms=0.5)))
    trace = simulate_operations(
        pod, Fabric.RECONFIGURABLE, [make_job(n, pod, 64, work_us=US_PER_S) for n in range(400)], [], health=refusing,
        repair=RepairPolicy(), recovery=RecoveryPolicy(), streams=Streams(3, 0), horizon_us=30 * DAY_US,
    )  # fmt: skip
    tests = sum(1 for row in trace.rows if row[1] == Verb.STAGE and row[5] == "preflight")
    assert count(trace.rows, Verb.FINISH) == 400
    assert abs(tests - 800) <= 4 * math.sqrt(400 * 2), "geometric: mean 2, variance 2"


def test_flapping_links_flap_until_they_are_known_to() -> None:
    """Goal: flaps. Method: each onset is 3 outages of 2 s, 10 min apart, the last prolonged by its repair."""
    policy = FlappingLinks(rate=0.001 * PER_DAY)
    rows = quiet(Pod(cubes=4), 100 * DAY_US, OtherFailures(flapping_in_rack_links=policy), check_invariants=True)
    fails = [(row[3], row[0]) for row in rows if row[1] == Verb.FAIL]
    known = count(rows, Verb.DEGRADE, "flapping")
    assert agrees_with_poisson(known, 320 * 100 * 0.001)
    assert len(fails) - 3 * known in range(3), "an onset near the horizon is cut off"
    first = sorted(t for link, t in fails if link == fails[0][0])[:3]
    assert np.diff(first).tolist() == [600 * US_PER_S] * 2


def test_rolling_maintenance_keeps_its_limit_and_its_calendar() -> None:
    """Goal: planned drains. Method: 6 cubes, two at once, 4 h each, a round in 10 days with a day of notice; jobs hold
    all cubes but two and never lose work; switches roll too, one at once, and slow jobs that reroute."""
    pod = Pod(cubes=6)
    maintenance = MaintenancePolicy(
        cubes=Rolling(every=10 * DAY_S, at_once=2, first=2 * DAY_S),
        switches=Rolling(every=10 * DAY_S, length=HOUR_S, notice=HOUR_S, first=5 * DAY_S),
    )
    trace = simulate_operations(
        pod, Fabric.RECONFIGURABLE, [make_job(n, pod, 128) for n in range(2)], [], health=HealthPolicy(),
        repair=RepairPolicy(), recovery=RecoveryPolicy(), streams=Streams(3, 0), horizon_us=10 * DAY_US,
        checkpoint=FixedCheckpoints(interval=HOUR_S, save=10.0), maintenance=maintenance, runs_at_start=True,
        check_invariants=True,
    )  # fmt: skip
    out: dict[str, set[int]] = {"": set(), "ocs": set()}
    most = {"": 0, "ocs": 0}
    for _, verb, kind, component, *_ in trace.rows:
        if verb == Verb.DRAIN:
            out[kind].add(component)
            most[kind] = max(most[kind], len(out[kind]))
        elif verb == Verb.UNDRAIN:
            out[kind].remove(component)
    assert most == {"": 2, "ocs": 1}
    assert count(trace.rows, Verb.DRAIN) == 6 + 48
    assert count(trace.rows, Verb.LOSE) == 0, "with notice nothing is lost"
    assert count(trace.rows, Verb.COMMIT) > 0
    uses = chip_us_by_use(trace)
    assert uses[Use.UNACCOUNTED] == 0
    late_us = abs(uses[Use.DRAINED] - 6 * 64 * 4 * HOUR_S * US_PER_S)
    assert late_us < 64 * HOUR_S * US_PER_S, "late by what leaving takes"
    assert uses[Use.SLOWED] > 0


def test_a_round_that_does_not_fit_is_refused() -> None:
    """Goal: impossible calendars are told. Method: 64 drains of a day in a week."""
    with pytest.raises(ValueError, match="a round of 64 drains"):
        quiet(Pod(cubes=64), DAY_US, maintenance=MaintenancePolicy(cubes=Rolling(every=7 * DAY_S, length=DAY_S)))


OTHERS = OtherFailures(
    bad_hosts=BadHosts(), power_domain=PowerDomainEvents(rate=0.02 * PER_DAY, racks=2),
    pod=PodEvents(rate=0.05 * PER_DAY, outage=Exponential(mean=HOUR_S)),
    slow_hosts=SlowHosts(rate=0.02 * PER_DAY, noticed_after=Exponential(mean=DAY_S), when_found="keep"),
    corruption=SilentCorruption(rate=0.02 * PER_DAY),
    flapping_in_rack_links=FlappingLinks(rate=0.002 * PER_DAY),
    flapping_optical_ends=FlappingLinks(rate=0.002 * PER_DAY, length=90.0),
)  # fmt: skip


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 10**6), fabric=st.sampled_from(list(Fabric)), chips=st.sampled_from([16, 64, 128, 256]),
    accept=st.booleans(), hold=st.sampled_from([0.0, 7200.0]), poll=st.sampled_from([0.0, 300.0]),
)  # fmt: skip
def test_chip_hours_add_up_with_everything_on(
    seed: int, fabric: Fabric, chips: int, accept: bool, hold: float, poll: float
) -> None:
    """Goal: no feature breaks another. Method: random pods in operation with all failures, tests, drains, crews, parts
    and stages at once, invariants on; chip-hours are the pod's, exactly, and the same seed gives the same log."""
    pod = Pod(cubes=8)
    life_h = {ComponentKind.HOST: (300.0, 8.0), ComponentKind.RACK: (900.0, 5.0), ComponentKind.OCS: (3000.0, 24.0)}
    health = HealthPolicy(
        poll=poll, diagnosis=600.0, burn_in=600.0, false_alarms=FalseAlarms(rate=0.02 * PER_DAY),
        preflight=Preflight(end_to_end=PreflightTest(time=120.0, coverage=0.5, false_alarms=0.05)),
        screening=Screening(every=DAY_S, false_alarms=0.001), accept_degraded=accept,
    )  # fmt: skip
    repair = RepairPolicy(
        crews=3, crews_of=CrewsOf(ocs=1), parts=PartsOf(host=Parts(stock=2, lead_time=DAY_S)), two_stage=TwoStage(),
        retire=Retirement(after=2, replaced_after=DAY_S),
    )  # fmt: skip
    maintenance = MaintenancePolicy(
        cubes=Rolling(every=4 * DAY_S, notice=HOUR_S, first=HOUR_S), switches=Rolling(every=9 * DAY_S, first=0.0)
    )
    logs = []
    for _ in range(2):
        trace = simulate_operations(
            pod, fabric, [make_job(n, pod, chips, reroute_opt_in=n % 2 == 0) for n in range(4)],
            list(draws(pod, seed, life_h)), health=health, repair=repair, recovery=RecoveryPolicy(hold=hold),
            streams=Streams(seed, 0), horizon_us=8 * DAY_US, checkpoint=FixedCheckpoints(interval=HOUR_S, save=30.0),
            others=OTHERS, maintenance=maintenance, check_invariants=not logs,
        )  # fmt: skip
        logs.append(trace.rows)
    uses = chip_us_by_use(trace)
    assert uses[Use.UNACCOUNTED] == 0
    assert sum(uses.values()) == pod.chips * 8 * DAY_US
    assert min(uses.values()) >= 0
    assert logs[0] == logs[1]


def test_cubes_that_are_known_to_be_slow_are_taken_last() -> None:
    """Goal: degraded ones last, whatever the flaw. Method: cube 0 of four is known to be slow: a job of two cubes takes
    1 and 2, whether it may run around dead light or not; one of all four takes it too; a sub-cube job as ever."""
    for opted_in in (True, False):
        machine = Machine(Pod(cubes=4), Fabric.RECONFIGURABLE, simpy.Environment())
        machine.degrade(ComponentKind.HOST, 3, "slow")
        room = Dispatcher(simpy.Environment(), machine, RecoveryPolicy()).room()
        cubes = []
        for chips in (128, 256, 4):
            spot = room.spot(make_job(0, Pod(cubes=4), chips, reroute_opt_in=opted_in))
            assert spot is not None
            cubes.append(sorted(spot.cubes))
        assert cubes == [[1, 2], [0, 1, 2, 3], []]
        machine.clear(ComponentKind.HOST, 3)
        assert machine.flaws.flawed_cubes(4) is None


def test_the_share_of_reroutes_knows_slow_hosts_from_dead_light() -> None:
    """Goal: reroutes only. Method: a slow host for all of 1,000 s, a switch dead for 250 s of it, no delays, rerouted
    at full speed or at 95 %: a quarter of the time, either way; the log says what is run around."""
    for speed in (1.0, 0.95):
        env = simpy.Environment()
        machine = Machine(Pod(cubes=1), Fabric.RECONFIGURABLE, env, check_invariants=True)
        recovery = RecoveryPolicy(evict=0, circuits=0, preflight=0, restore=0, rerouted_speed=speed)
        dispatcher = Dispatcher(env, machine, recovery)
        events = JobEvents(env, machine, dispatcher, recovery)
        job = make_job(0, Pod(cubes=1), 64)
        env.process(run_job(env, job, machine, dispatcher, events, recovery, runs_at_start=True))
        env.run(until=1)
        machine.onset(5, "slow", 500_000)
        env.run(until=500)
        machine.fail(ComponentKind.OCS, 7)
        machine.detect(ComponentKind.OCS, 7)
        env.run(until=750)
        machine.repair(ComponentKind.OCS, 7)
        env.run(until=1000)
        trace = Trace(fabric=Fabric.RECONFIGURABLE, hosts=16, horizon_us=1000, slice_chips=64, jobs=1,
                      rows=machine.rows, placements=machine.placements)  # fmt: skip
        assert reroute_share(trace) == 0.25
        around = [(one.way_round, one.end_us) for one in trace.stage_intervals() if one.stage is Stage.RUNNING]
        assert around == [("", 1), ("", 500), ("ocs", 750), ("", 1000)]


def test_polls_do_not_delay_what_a_log_has_detected() -> None:
    """Goal: a log of detections is taken at its word. Method: with polls, kinds of the log are known at once, also on
    average; others as ever."""
    health = with_detections(HealthPolicy(detection=5.0, poll=60.0, diagnosis=30.0), ["host"])
    assert health.detected_after_us("host", 7 * US_PER_S) == 0
    assert (health.detection_s("host"), health.rest_s("host")) == (0, 30)
    assert health.detected_after_us("ocs", 7 * US_PER_S) == 53 * US_PER_S
    assert health.detection_s("ocs") == 35
