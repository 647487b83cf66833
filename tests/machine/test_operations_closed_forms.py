"""Jobs in operation against closed forms: ETTR, Young's interval, losses by size, spares, reroutes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sim.condition import component_counts
from sim.histories import US_PER_S, ComponentKind, FailureMode, Lives
from sim.job_policies import (
    CheckpointPolicy,
    FixedCheckpoints,
    NoCheckpoints,
    SparesPolicy,
    YoungCheckpoints,
    young_interval_s,
)
from sim.lifetimes import Exponential
from sim.metrics.jobs import losses
from sim.metrics.ledger import job_ledgers
from sim.metrics.operations import reroute_share
from sim.metrics.uses import Use
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.operations import simulate_operations
from sim.processes.upkeep import loss_rate_per_s
from sim.streams import Streams
from sim.trace import Trace
from tests.machine.pods import DAY_US, HOUR_S, NO_DELAYS, NO_DETECTION
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS, AnyPod, FlatPod, Pod
from workloads.jobs.job import make_job

DAY_S = 86_400.0


def ettr_closed_form(loss_rate: float, restart: float, interval: float, save: float) -> float:
    """ETTR of exponential losses at a rate, also in restart and save (design: measures, section 2)."""
    return interval / (math.exp(loss_rate * restart) * (math.exp(loss_rate * (interval + save)) - 1) / loss_rate)


def mode(pod: AnyPod, kind: ComponentKind, life_s: float, repair_s: float) -> FailureMode:
    """All components of a kind, exponential."""
    return FailureMode(
        kind=kind, count=component_counts(pod)[kind], life=Exponential(mean=life_s), repair=Exponential(mean=repair_s)
    )


def ettr_of_one_job(
    seed: int, policy: CheckpointPolicy, life_s: float, *, hosts: int, days: float, more: int = 24
) -> float:
    """ETTR of an endless job on a flat pod with hosts to spare, 300 s of restart after each loss."""
    pod = FlatPod(hosts=hosts + more)
    streams = Streams(seed, 0)
    trace = simulate_operations(
        pod, Fabric.ANY_HOST, [make_job(0, pod, hosts * 4)],
        [Lives(mode(pod, ComponentKind.HOST, life_s, 600.0), streams)],
        health=NO_DETECTION, repair=RepairPolicy(), streams=streams, horizon_us=round(days * DAY_US),
        recovery=RecoveryPolicy(evict=0, circuits=0, preflight=0, restore=300), checkpoint=policy, runs_at_start=True,
    )  # fmt: skip
    (ledger,) = job_ledgers(trace)
    assert ledger.unaccounted_us == 0
    ettr = ledger.ettr
    assert ettr is not None
    return ettr


@pytest.mark.parametrize(
    ("hosts", "life_h", "interval_s", "save_s"),
    [(8, 40.0, 1800.0, 60.0), (32, 100.0, 1200.0, 120.0), (32, 400.0, 7200.0, 300.0), (64, 128.0, 600.0, 0.0)],
)
def test_ettr_is_the_closed_form(hosts: int, life_h: float, interval_s: float, save_s: float) -> None:
    """Goal: ETTR over sizes and rates. Method: 20 runs of 20 days against dt / (e^(l u)(e^(l (dt + w)) - 1) / l):
    within the half-width of a t-interval at 99.9 % (and at most 0.015 of it)."""
    policy = FixedCheckpoints(interval=interval_s, save=save_s)
    samples = [ettr_of_one_job(seed, policy, life_h * HOUR_S, hosts=hosts, days=20) for seed in range(20)]
    expected = ettr_closed_form(hosts / (life_h * HOUR_S), 300.0, interval_s, save_s)
    half = 3.883 * float(np.std(samples, ddof=1)) / math.sqrt(20)
    assert half < 0.015
    assert abs(float(np.mean(samples)) - expected) < half


def check_young(runs: int, days: float, factors: tuple[float, ...]) -> None:
    """ETTR at Young's interval, a loss every 3 h and 60 s to save, against a sweep on the same draws."""
    hosts, life_s = 8, 24 * HOUR_S
    young_s = young_interval_s(life_s / hosts, 60.0)
    assert young_s == pytest.approx(math.sqrt(2 * 3 * HOUR_S * 60))

    def mean(policy: CheckpointPolicy) -> float:
        samples = [ettr_of_one_job(seed, policy, life_s, hosts=hosts, days=days, more=8) for seed in range(runs)]
        return float(np.mean(samples))

    sweep = [mean(FixedCheckpoints(interval=young_s * factor, save=60)) for factor in factors]
    young = mean(YoungCheckpoints(save=60))
    assert young > max(sweep) - 0.002
    assert young > min(sweep) + 0.005, "and the sweep is not flat"


def test_youngs_interval_is_near_the_best() -> None:
    """Goal: Young is good enough. Method: within 0.002 of the best of a sweep, paired, 6 runs of 20 days."""
    check_young(6, 20, (1 / 3, 0.7, 1.4))


@pytest.mark.slow
def test_youngs_interval_is_near_the_best_of_many() -> None:
    """Goal: the same. Method: a finer sweep of factors from 1/3 to 3, 16 runs of 60 days."""
    check_young(16, 60, (1 / 3, 0.6, 0.8, 0.9, 1.1, 1.2, 1.6, 3.0))


def test_youngs_interval_in_published_cases() -> None:
    """Goal: the formula. Method: minutes between losses and to save -> minutes (results to reproduce, section 1)."""
    for between, save, interval in ((474, 5, 68.9), (33.07, 2, 11.5), (1440, 5, 120)):
        assert young_interval_s(between, save) == pytest.approx(interval, abs=0.06)


def test_how_often_a_job_is_lost() -> None:
    """Goal: a job of n cubes is lost every 1 / (n (16 x 0.0008 + 48 x 0.00005)) days when hosts and optical ends fail
    (96 ends at half a link's rate each). Method: the formula; and counted: 16 jobs of 4 cubes without delays for 100
    days, within 4 standard errors of Poisson, and losses of light are counted too (everybody opted in)."""
    pod = POD_GENERATIONS["v4"]
    lives = {ComponentKind.HOST: DAY_S / 0.0008, ComponentKind.OPTICAL_END: DAY_S / 0.000025}
    streams = Streams(7, 0)
    sources = [Lives(mode(pod, kind, life_s, 10.0), streams) for kind, life_s in lives.items()]
    for cubes in (1, 4, 16, 64):
        rate = loss_rate_per_s(sources, pod, make_job(0, pod, 64 * cubes), light=True)
        assert 1 / (rate * DAY_S) == pytest.approx(1 / (cubes * (16 * 0.0008 + 48 * 0.00005)), rel=1e-12)
    trace = simulate_operations(
        pod, Fabric.RECONFIGURABLE, [make_job(number, pod, 256) for number in range(16)], sources, health=NO_DETECTION,
        repair=RepairPolicy(), recovery=NO_DELAYS, streams=streams, horizon_us=100 * DAY_US, runs_at_start=True,
    )  # fmt: skip
    expected = 100 * 64 * (16 * 0.0008 + 48 * 0.00005)
    assert abs(len(losses(trace)) - expected) < 4 * math.sqrt(expected)


def runs_share(trace: Trace, job: int = 0) -> float:
    """Share of the run in which a job runs."""
    ledger = job_ledgers(trace)[job]
    return sum(ledger.us[use] for use in (Use.USEFUL, Use.SLOWED, Use.LOST)) / trace.horizon_us


@pytest.mark.parametrize(
    ("needed", "spare"), [(4, 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((4, 0), (4, 2), (6, 3)))]
)
def test_spares_are_k_of_n(needed: int, spare: int) -> None:
    """Goal: a job of k cubes on n of which n - k are spare runs while at least k are usable. Method: hosts of 97 %, no
    delays, 20 runs of 60 days against the binomial of cubes at 0.97^16, within a t-interval at 99.9 %."""
    pod, usable = Pod(cubes=needed + spare), 0.97**16
    expected = sum(
        math.comb(pod.cubes, up) * usable**up * (1 - usable) ** (pod.cubes - up) for up in range(needed, pod.cubes + 1)
    )
    samples = []
    for seed in range(20):
        streams = Streams(seed, 0)
        trace = simulate_operations(
            pod, Fabric.RECONFIGURABLE, [make_job(0, pod, 64 * needed)],
            [Lives(mode(pod, ComponentKind.HOST, 97 * HOUR_S, 3 * HOUR_S), streams)], health=NO_DETECTION,
            repair=RepairPolicy(), recovery=NO_DELAYS, streams=streams, horizon_us=60 * DAY_US, runs_at_start=True,
            spares=SparesPolicy(kind="cold", cubes=spare) if spare else SparesPolicy(),
        )  # fmt: skip
        samples.append(runs_share(trace))
    half = 3.883 * float(np.std(samples, ddof=1)) / math.sqrt(20)
    assert half < 0.04
    assert abs(float(np.mean(samples)) - expected) < half


def test_spares_help_a_fixed_number_of_jobs() -> None:
    """Goal: directions. Method: two jobs of two cubes on 4 + k cubes, k of them spare; the same draws for the
    cubes that are common: on 10 seeds the mean share that runs rises with k, and with better spares."""

    def mean(policy: SparesPolicy) -> float:
        shares = []
        for seed in range(10):
            pod, streams = Pod(cubes=4 + policy.cubes), Streams(seed, 0)
            trace = simulate_operations(
                pod, Fabric.RECONFIGURABLE, [make_job(number, pod, 128) for number in range(2)],
                [Lives(mode(pod, ComponentKind.HOST, 200 * HOUR_S, 8 * HOUR_S), streams)], health=HealthPolicy(),
                repair=RepairPolicy(), recovery=RecoveryPolicy(), streams=streams, horizon_us=20 * DAY_US,
                checkpoint=FixedCheckpoints(interval=3600, save=60), runs_at_start=True, spares=policy,
            )  # fmt: skip
            shares.append(sum(ledger.us[Use.USEFUL] for ledger in job_ledgers(trace)) / (2 * trace.horizon_us))
        return float(np.mean(shares))

    policies = [SparesPolicy(), *(SparesPolicy(kind=kind, cubes=1) for kind in ("cold", "warm", "hot"))]  # type: ignore[arg-type]
    shares = [mean(policy) for policy in (*policies, SparesPolicy(kind="hot", cubes=2))]
    assert shares == sorted(shares)
    assert shares[-1] > shares[0] + 0.1


def test_time_on_reroutes() -> None:
    """Goal: the share of job time on reroutes. Method: 48 switches at 0.04 %/day, repaired in 24 h, 95 % of 20 jobs
    opted in, no delays: a job that runs does so slowed when a switch is out; opted-out jobs do not run then. With q the
    probability that all 48 are up: 0.95 (1 - q) / (0.95 + 0.05 q), about 1.8 %; 60 runs of a year, in a t-interval at
    99.9 %."""
    pod = Pod(cubes=20)
    all_up = (1 / (1 + 0.0004)) ** 48
    samples = []
    for seed in range(60):
        streams = Streams(seed, 0)
        jobs = [make_job(number, pod, 64, reroute_opt_in=number != 7) for number in range(20)]
        trace = simulate_operations(
            pod, Fabric.RECONFIGURABLE, jobs, [Lives(mode(pod, ComponentKind.OCS, DAY_S / 0.0004, DAY_S), streams)],
            health=NO_DETECTION, repair=RepairPolicy(), recovery=NO_DELAYS, streams=streams, horizon_us=365 * DAY_US,
            checkpoint=NoCheckpoints(), runs_at_start=True,
        )  # fmt: skip
        samples.append(reroute_share(trace))
    expected = 0.95 * (1 - all_up) / (0.95 + 0.05 * all_up)
    assert expected == pytest.approx(0.018, abs=0.0005)
    half = 3.463 * float(np.std(samples, ddof=1)) / math.sqrt(60)
    assert abs(float(np.mean(samples)) - expected) < half
    assert half < 0.005


def test_work_is_useful_time() -> None:
    """Goal: a job of work W, losses and all, has W of useful time in the end. Method: 40 jobs of 4 h on a bad pod."""
    pod, streams = Pod(cubes=4), Streams(5, 0)
    jobs = [make_job(number, pod, 64, work_us=4 * 3600 * US_PER_S) for number in range(40)]
    trace = simulate_operations(
        pod, Fabric.RECONFIGURABLE, jobs, [Lives(mode(pod, ComponentKind.HOST, 200 * HOUR_S, HOUR_S), streams)],
        health=HealthPolicy(), repair=RepairPolicy(), recovery=RecoveryPolicy(), streams=streams,
        horizon_us=20 * DAY_US, checkpoint=YoungCheckpoints(save=30),
    )  # fmt: skip
    ledgers = job_ledgers(trace)
    assert sum(ledger.losses for ledger in ledgers) > 5
    assert {ledger.us[Use.USEFUL] for ledger in ledgers} == {4 * 3600 * US_PER_S}
