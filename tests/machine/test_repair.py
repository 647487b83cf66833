"""Repair: crews by kind, spare parts, two stages, bad hosts, retirement; logs through the machine; directions."""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest
import simpy

from sim.failure_logs import FailureLog, placed_by_number, read_failure_logs
from sim.histories import US_PER_S, ComponentKind, FailureMode, Lives
from sim.lifetimes import Empirical, Exponential, LifeLaw, Lognormal, Mixture, MixturePart, Weibull
from sim.machine import Machine
from sim.metrics.jobs import delivered_share
from sim.other_failures import BadHosts, OtherFailures, SlowHosts
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy, why_no_closed_form
from sim.processes.failures import Source, start_failures
from sim.processes.operations import simulate_operations
from sim.repair_policies import (
    CrewsOf,
    FalseAlarms,
    MaintenancePolicy,
    Parts,
    PartsOf,
    Retirement,
    Rolling,
    Screening,
    TwoStage,
)
from sim.streams import Streams
from sim.trace import Row, Verb
from tests.machine.pods import DAY_US, HOUR_S, NO_DETECTION, draws
from tests.machine.test_failures import outages_in
from tests.shared_data import shared_file
from topology.fabric import Fabric
from topology.pod import AnyPod, FlatPod, Pod
from workloads.jobs.job import make_job

DAY_S = 24 * HOUR_S
HOST = ComponentKind.HOST
MINUTE_US = 60 * US_PER_S


def play(
    pod: AnyPod, sources: list[Source], horizon_us: int, repair: RepairPolicy, *, others: OtherFailures | None = None,
    health: HealthPolicy = NO_DETECTION, seed: int = 1,
) -> list[Row]:  # fmt: skip
    """The log of failures without jobs."""
    env = simpy.Environment()
    fabric = Fabric.ANY_HOST if isinstance(pod, FlatPod) else Fabric.RECONFIGURABLE
    machine = Machine(pod, fabric, env)
    start_failures(
        env, machine, sources, health=health, repair=repair, horizon_us=horizon_us, others=others,
        streams=Streams(seed, 0),
    )  # fmt: skip
    env.run(until=horizon_us)
    return machine.rows


def hosts(count: int, life: LifeLaw, repair: LifeLaw, *, seed: int = 1, stationary: bool = True) -> list[Source]:
    """Lives of hosts."""
    mode = FailureMode(kind=HOST, count=count, life=life, repair=repair, stationary=stationary)
    return [Lives(mode, Streams(seed, 0))]


def test_crews_of_a_kind_are_its_own() -> None:
    """Goal: a kind with crews of its own queues alone. Method: 64 hosts and 2 crews of their own, beside switches
    that fail too: M/M/2//64 (life 1000 h, repair 24 h) gives 0.955161872, within 4 standard errors of 10 batches."""
    pod = Pod(cubes=4)
    sources: list[Source] = list(draws(pod, 11, {HOST: (1000.0, 24.0), ComponentKind.OCS: (400.0, 100.0)}))
    horizon_us = 2100 * DAY_US
    rows = play(pod, sources, horizon_us, RepairPolicy(crews_of=CrewsOf(host=2)))
    down_us = np.zeros(10)
    for kind, _, start, end in outages_in(rows, horizon_us):
        if kind == HOST:
            for batch in range(10):
                low, high = (100 + 200 * batch) * DAY_US, (300 + 200 * batch) * DAY_US
                down_us[batch] += max(0, min(end, high) - max(start, low))
    up = 1 - down_us / (64 * 200 * DAY_US)
    assert abs(float(up.mean()) - 0.955161872) <= 4 * float(up.std(ddof=1)) / math.sqrt(10)


def test_spare_parts_run_out_as_theory_says() -> None:
    """Goal: base stock. Method: 400 hosts fail 0.05 times a day in all, lead time 20 d: parts on order are Poisson with
    mean 1.0 (Palm), so with 1 on the shelf a failure finds none with probability P(N >= 1) = 63.2 %. Share of repairs
    that wait, within 4 standard errors of a binomial whose neighbours hang together (3 times the variance)."""
    count, days = 400, 60_000
    life = Exponential(mean=count / 0.05 * DAY_S)
    repair = RepairPolicy(parts=PartsOf(host=Parts(stock=1, lead_time=20 * DAY_S)))
    sources = hosts(count, life, Empirical(values=(1.0,)), stationary=False)
    rows = play(FlatPod(hosts=count), sources, days * DAY_US, repair)
    lengths = [end - start for _, _, start, end in outages_in(rows, days * DAY_US)]
    waited = sum(1 for us in lengths if us > 2 * US_PER_S)
    share = 1 - math.exp(-0.05 * 20)
    assert len(lengths) > 2500
    assert abs(waited / len(lengths) - share) <= 4 * math.sqrt(3 * share * (1 - share) / len(lengths))
    assert max(lengths) <= 21 * DAY_US, "an order is placed when a part is taken, so nobody waits longer than it takes"


def test_two_stages_and_bad_hosts() -> None:
    """Goal: imperfect repair. Method: 4,000 hosts, 15 % bad, systematic failures five times as often as the others:
    lengths have the mean of the policy; a bad host fails 1 / (1 - q) times until it is good, q = 0.2 x 0.4 + 0.8 x 0.2
    = 0.24, five of six times for being bad; both kinds of failures within 4 standard errors of their counts."""
    policy = TwoStage()
    assert policy.leaves_bad == pytest.approx(0.24)
    assert policy.mean_s == pytest.approx(2 * HOUR_S + 0.8 * 2 * DAY_S)
    days, count = 2000, 4000
    life = Exponential(mean=1000 * DAY_S)
    rows = play(
        FlatPod(hosts=count), hosts(count, life, Exponential(mean=policy.mean_s), stationary=False), days * DAY_US,
        RepairPolicy(two_stage=policy), others=OtherFailures(bad_hosts=BadHosts()),
    )  # fmt: skip
    ended = [end - start for _, _, start, end in outages_in(rows, days * DAY_US) if end < days * DAY_US]
    hours = np.array(ended) / US_PER_S / HOUR_S
    assert abs(float(hours.mean()) - policy.mean_s / HOUR_S) <= 4 * float(hours.std(ddof=1)) / math.sqrt(len(hours))
    bad = int((Streams(1, 0).uniforms("failures.bad_hosts", 0, count) < 0.15).sum())
    systematic = sum(1 for row in rows if row[1] == Verb.FAIL and row[5] == "systematic")
    others = sum(1 for row in rows if row[1] == Verb.FAIL) - systematic
    assert abs(systematic - bad * 5 / 6 / 0.76) <= 4 * math.sqrt(bad * 2)
    expected = count * days / (1000 + policy.mean_s / DAY_S)
    assert abs(others - expected) <= 4 * math.sqrt(expected)


def test_repeat_offenders_are_retired() -> None:
    """Goal: retirement. Method: hosts with 3 failures within 30 days are retired at the third and never come back, or
    come back as new after a week; others are left alone: recounted from the log."""
    pod, days = FlatPod(hosts=64), 300
    sources = hosts(64, Exponential(mean=20 * DAY_S), Exponential(mean=HOUR_S))
    for after_s in (None, 7 * DAY_S):
        policy = Retirement(after=3, within=30 * DAY_S, replaced_after=after_s)
        rows = play(pod, sources, days * DAY_US, RepairPolicy(retire=policy))
        failures: dict[int, list[int]] = {}
        retired_at: dict[int, int] = {}
        for time_us, verb, _, host, *_ in rows:
            if verb == Verb.FAIL:
                assert after_s is not None or host not in retired_at
                if time_us > 0:
                    failures.setdefault(host, []).append(time_us)
            elif verb == Verb.RETIRE:
                own = failures.pop(host)
                assert own[-1] - own[-3] <= 30 * DAY_US
                retired_at[host] = time_us
            elif verb == Verb.REPAIR and host in retired_at:
                assert after_s is not None
                assert time_us - retired_at.pop(host) == 7 * DAY_US
            own = failures.get(host, [])
            assert not (verb == Verb.REPAIR and len(own) >= 3 and own[-1] - own[-3] <= 30 * DAY_US), "missed"
        assert any(row[1] == Verb.RETIRE for row in rows)


@pytest.mark.parametrize("life", [Weibull(shape=0.7, mean=240 * HOUR_S), Lognormal(cv=2.0, mean=240 * HOUR_S)])
def test_long_run_rates_hold_through_the_workshop(life: LifeLaw) -> None:
    """Goal: ages survive whatever repairs do. Method: 1,024 hosts with crews enough and polling, 200 days, stationary:
    failures within 4 standard errors (renewal theory) of N t / (mean + repair), for Weibull and lognormal lives."""
    rows = play(
        FlatPod(hosts=1024), hosts(1024, life, Exponential(mean=10 * HOUR_S)), 200 * DAY_US, RepairPolicy(crews=1024),
        health=HealthPolicy(detection=0.0, poll=60.0),
    )  # fmt: skip
    failures = sum(1 for row in rows if row[1] == Verb.FAIL and row[0] > 0)
    expected = 1024 * 200 * 24 / 250
    variation = math.gamma(1 + 2 / 0.7) / math.gamma(1 + 1 / 0.7) ** 2 - 1 if isinstance(life, Weibull) else 4.0
    variance_per_cycle = (variation * 240.0**2 + 10.0**2) / 250.0**2
    assert abs(failures - expected) <= 4 * math.sqrt(expected * variance_per_cycle)


def replayed(log: FailureLog, pod: AnyPod) -> tuple[int, int, int]:
    """A log through the machine: losses, us down, us that its rows count twice because outages of a node overlap."""
    count = log.components
    outages = log.outages(placed_by_number(log, count), count)
    rows = play(pod, [outages], log.window_us, RepairPolicy())
    down_us = sum(end - start for _, _, start, end in outages_in(rows, log.window_us))
    twice_us, until_us = 0, [0] * count
    for component, start, end in zip(
        outages.component.tolist(), outages.start_us.tolist(), outages.end_us.tolist(), strict=True
    ):
        stop = min(end, log.window_us)
        twice_us += max(0, min(until_us[component], stop) - start)
        until_us[component] = max(until_us[component], stop)
    return sum(1 for row in rows if row[1] == Verb.FAIL), down_us, twice_us


def minutes_by_csv() -> tuple[float, float]:
    """Sums over the rows of the Los Alamos file: its column of minutes, and end minus start."""
    written, between = 0.0, 0.0
    with gzip.open(shared_file("failures/lanl_system_18.csv.gz"), "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            start, end = (datetime.strptime(row[name], "%m/%d/%Y %H:%M") for name in ("Prob Started", "Prob Fixed"))
            written += float(row["Down Time"])
            between += (end - start).total_seconds() / 60
    return written, between


@pytest.mark.parametrize(("log_format", "minutes"), [("lanl_down_time", 716_641), ("lanl", 716_765)])
def test_lanl_through_the_machine(log_format: str, minutes: int) -> None:
    """Goal: the README's `Down Time`, 716,641 min, told apart from end minus start, 716,765 min (both added up from the
    file by the csv module). Method: replay all 3,997 outages on a v4 pod of 1,024 hosts; time down by the machine's
    log, plus what overlapping outages of a node count twice."""
    column = {"lanl_down_time": 0, "lanl": 1}[log_format]
    assert minutes_by_csv()[column] == minutes
    (log,) = read_failure_logs(
        shared_file("failures/lanl_system_18.csv.gz"), log_format=log_format, window=("2002-05-06T08:45", "2005-10-01")
    )
    assert len(log) == 3997
    losses, down_us, twice_us = replayed(log, Pod(cubes=64))
    total = (down_us + twice_us) / MINUTE_US
    by_rows = float((log.end_us - log.start_us).sum()) / MINUTE_US
    assert total == by_rows
    assert total == minutes
    assert 3900 < losses <= 3997, "overlapping outages of a node are one loss"


def test_gpu_trace_through_the_machine() -> None:
    """Goal: the README's mean number of servers down by paired outages of days 0 to 180, 11.105. Method: replay on a
    flat pod of 400; of 315 starts 14 have length zero and lose nothing, the 2 that stay open are taken off."""
    (log,) = read_failure_logs(
        shared_file("failures/gpu_fault_trace_day_000_180.json"), components=400, window=("0 d", "180 d")
    )
    losses, down_us, twice_us = replayed(log, FlatPod(hosts=400))
    open_us = int((log.end_us - log.start_us)[log.open_end].sum())
    assert (losses, twice_us) == (315 - 14, 0)
    assert (down_us - open_us) / log.window_us == pytest.approx(11.105, abs=5e-4)
    assert 400 * log.window_us / 315 / US_PER_S / HOUR_S == pytest.approx(5485.7, abs=0.05)


BASE = RepairPolicy(crews=2, parts=PartsOf(host=Parts(stock=1, lead_time=DAY_S)))
SLOW = HealthPolicy(detection=600.0, poll=1800.0, screening=Screening(every=4 * DAY_S))


@pytest.mark.parametrize(
    "better",
    [
        "poll",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("parts", "lead", "crews", "detection", "screening")),
    ],
)
def test_what_should_help_does_not_hurt(better: str) -> None:
    """Goal: directions are right. Method: 20 seeds, paired on the same draws: for more crews or parts, shorter lead
    time, faster detection, polls or screening the upper 95 % limit of the change in delivered is at least 0."""
    changes = []
    health = {
        "poll": replace(SLOW, poll=60.0), "detection": replace(SLOW, detection=30.0),
        "screening": replace(SLOW, screening=Screening(every=0.5 * DAY_S)),
    }  # fmt: skip
    repair = {
        "parts": replace(BASE, parts=PartsOf(host=Parts(stock=4, lead_time=DAY_S))),
        "lead": replace(BASE, parts=PartsOf(host=Parts(stock=1, lead_time=HOUR_S))), "crews": replace(BASE, crews=6),
    }  # fmt: skip
    pod = Pod(cubes=8)
    for seed in range(20):
        shares = []
        for health_policy, repair_policy in ((SLOW, BASE), (health.get(better, SLOW), repair.get(better, BASE))):
            lives: list[Source] = [
                Lives(
                    FailureMode(
                        kind=kind, count=n, life=Exponential(mean=life_h * HOUR_S), repair=Exponential(mean=6 * HOUR_S),
                        overhead_s=health_policy.rest_s(kind.value),
                    ),
                    Streams(seed, 0),
                )
                for kind, n, life_h in ((HOST, 128, 900.0), (ComponentKind.RACK, 8, 900.0))
            ]  # fmt: skip
            trace = simulate_operations(
                pod, Fabric.RECONFIGURABLE, [make_job(n, pod, 128) for n in range(4)], lives, health=health_policy,
                repair=repair_policy, recovery=RecoveryPolicy(), streams=Streams(seed, 0), horizon_us=20 * DAY_US,
                others=OtherFailures(slow_hosts=SlowHosts(rate=0.005 / DAY_S, speed=0.3)),
            )  # fmt: skip
            shares.append(delivered_share(trace) if better != "screening" else full_speed_share(trace.rows))
        changes.append(shares[1] - shares[0])
    mean, error = float(np.mean(changes)), float(np.std(changes, ddof=1)) / math.sqrt(20)
    assert mean + 2.093 * error >= 0


def full_speed_share(rows: list[Row]) -> float:
    """Mean running of 4 jobs over 20 days, weighted by speed, as a share."""
    done, since, speed = 0, [0] * 4, [0] * 4
    for time_us, verb, _, _, job, _, value in [*rows, *((20 * DAY_US, Verb.SPEED, "", -1, j, "", 0) for j in range(4))]:
        if verb in (Verb.STAGE, Verb.SPEED):
            done += (time_us - since[job]) * speed[job]
            since[job], speed[job] = time_us, value
    return done / (4 * 20 * DAY_US * 1e6)


def test_when_closed_forms_hold() -> None:
    """Goal: blank where a feature breaks them. Method: each feature alone gives a reason; the defaults, detection,
    preflight and screening of what is not there give none."""
    plain, mend = HealthPolicy(detection=5.0, poll=60.0, screening=Screening(every=DAY_S)), RepairPolicy()
    assert why_no_closed_form(health=plain, repair=mend) == ""
    assert "log" in why_no_closed_form(health=plain, repair=mend, replays_log=True)
    assert "new" in why_no_closed_form(health=plain, repair=mend, stationary=False)
    alarms = replace(plain, false_alarms=FalseAlarms(rate=1e-9))
    assert "false alarms" in why_no_closed_form(health=alarms, repair=mend)
    for scarce in (RepairPolicy(crews=1), RepairPolicy(two_stage=TwoStage()), RepairPolicy(crews_of=CrewsOf(ocs=1))):
        assert "repairs" in why_no_closed_form(health=plain, repair=scarce)
    assert "bad" in why_no_closed_form(health=plain, repair=mend, others=OtherFailures(bad_hosts=BadHosts()))
    drains = MaintenancePolicy(cubes=Rolling(every=9e6))
    assert "drained" in why_no_closed_form(health=plain, repair=mend, maintenance=drains)


def test_infant_mortality_and_wear_out_by_mixture() -> None:
    """Goal: a bathtub. Method: early deaths (Weibull 0.5) mixed with wear (Weibull 5): the failure rate -d ln S / dt
    falls, is low, and rises; played for 400 days from a stationary start, 1,024 hosts fail N t / (mean + repair) times,
    within 4 standard errors (renewal theory, variance of the mixture by numbers)."""
    law = Mixture(
        parts=(
            MixturePart(weight=0.2, law=Weibull(shape=0.5, mean=5 * DAY_S)),
            MixturePart(weight=0.8, law=Weibull(shape=5.0, mean=100 * DAY_S)),
        )
    )
    days = np.array([0.1, 20.0, 110.0])
    rate = [-float(np.diff(np.log(law.survival(np.array([day - 0.05, day + 0.05]) * DAY_S)))[0]) for day in days]
    assert rate[0] > 10 * rate[1]
    assert rate[2] > 10 * rate[1]
    rows = play(FlatPod(hosts=1024), hosts(1024, law, Exponential(mean=DAY_S)), 400 * DAY_US, RepairPolicy(crews=1024))
    failures = sum(1 for row in rows if row[1] == Verb.FAIL and row[0] > 0)
    cycle_d = law.mean_s / DAY_S + 1
    u = (np.arange(100_000) + 0.5) / 100_000
    variance = float(np.var(law.quantile_s(u) / DAY_S)) + 1
    expected = 1024 * 400 / cycle_d
    assert abs(failures - expected) <= 4 * math.sqrt(expected * variance / cycle_d**2)
