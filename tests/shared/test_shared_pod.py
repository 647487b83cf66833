"""Replicas that come and go on a pod that trains too: closed forms, directions, sums, invariants."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from sim.build import Setup
from sim.metrics.chip_hours import chip_us_by_use
from sim.metrics.ledger import job_ledgers
from sim.metrics.shared_pod import service_on_pod, stages_by_job, told_to_make_way
from sim.metrics.uses import Use
from sim.prices import PricesSection, machine_cost
from sim.studies.shared_machines import money_in_cubes
from sim.studies.shared_pod import SharedPodSample, play_shared_pod, sample_shared_pod
from sim.trace import FULL_SPEED_PPM, Stage, Verb
from tests.shared.cases import FAILING, NO_DELAYS, parts, rows_named, small
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS

HOUR_US = 3_600_000_000


def sampled(setup: Setup, kind: str = "shared", replication: int = 0) -> SharedPodSample:
    """One replication on one of the machines."""
    machines, curves = parts(setup)
    return sample_shared_pod(machines[kind], setup, curves, replication)


def up_at(setup: Setup, times_us: list[int], kind: str = "shared") -> list[float]:
    """Replicas up at instants of the first replication, every invariant checked after each transition."""
    machines, curves = parts(setup)
    replicas, _, trace = play_shared_pod(machines[kind], setup, curves, 0, checks=True)
    of = service_on_pod(
        trace, stages_by_job(trace), told_to_make_way(trace), replicas,
        rates_at=lambda at_s: np.zeros_like(at_s), served_at=lambda d, u, n: d, warmup_us=0,
    )  # fmt: skip
    return (of.up.at(np.array(times_us)) / FULL_SPEED_PPM).tolist()


def test_without_delays_and_failures_replicas_follow_demand_exactly() -> None:
    """Goal: what is up is what is wanted, at once, whoever is on the pod. Method: steps of 10, 35, 35, 20 requests/s
    over replicas of 10 each; a pod full of training that makes way without a delay; looks around every step."""
    setup = small(recovery=NO_DELAYS, service="{drain: 0 s, ready: 0 s}".strip("{}").replace(", ", "\n        "),
                  queue="{kind: priority, overtake: true}")  # fmt: skip
    looks = [hour * HOUR_US + shift for hour in range(4) for shift in (0, 1, HOUR_US - 1)]
    assert up_at(setup, looks) == [2.0] * 3 + [4.0] * 6 + [3.0] * 3
    one = sampled(setup)
    assert one.measures["chat", "pod_tokens_in_time"] == 1.0
    assert not any(one.wait_s.values())


def test_a_step_of_demand_arrives_after_the_sum_of_delays() -> None:
    """Goal: the delays of a start add up, on a free pod and on one whose jobs save and make way first. Method: the
    step at 1 h: circuits 10, preflight 180, ready 60, weights 64 GB over 16 hosts of 1 GB/s: 4 s; on the full pod a
    save of 60 s and an eviction of 30 s before that (one checkpoint interval is 1 h, so something is to be saved)."""
    service = "drain: 0 s\n        weights: 64 GB"
    start_us = (10 + 180 + 60 + 4) * 1_000_000
    free = small(service=service, jobs="none")
    assert up_at(free, [HOUR_US + start_us - 1, HOUR_US + start_us]) == [2.0, 4.0]
    full = small(service=service, jobs="{always: {4x4x4: 8}}")
    left_us = HOUR_US + (60 + 30) * 1_000_000
    assert up_at(full, [left_us + start_us - 1, left_us + start_us]) == [2.0, 4.0]
    waits = sampled(full).wait_s
    assert waits["chat", "drain"] * 4 / 24 == pytest.approx(2 * 90)
    assert waits["chat", "weights"] * 4 / 24 == pytest.approx(4 * 64)
    assert waits["chat", "no_cube"] == 0.0


def test_a_replica_drains_before_it_leaves() -> None:
    """Goal: the cube comes back after the drain, and the replica does not count meanwhile. Method: demand falls at
    3 h; the log of the replica's last stage."""
    setup = small(service="drain: 300 s", jobs="none")
    machines, curves = parts(setup)
    _, _, trace = play_shared_pod(machines["shared"], setup, curves, 0, checks=True)
    (leave,) = rows_named(trace.rows, Verb.LEAVE)
    assert leave[0] == 3 * HOUR_US + 300_000_000
    drained = [one for one in trace.stage_intervals() if one.job == leave[4] and one.stage is Stage.MIGRATING]
    assert [(one.start_us, one.end_us) for one in drained] == [(3 * HOUR_US, leave[0])]


def test_notice_saves_what_preemption_loses() -> None:
    """Goal: jobs that make way with notice lose nothing; preempted at once they lose what is not safe. Method: the
    same pod under both; chip-hours lost."""
    lost = {
        notice: sampled(
            small(jobs="{always: {4x4x4: 8}}", queue=f"{{kind: priority, notice: {notice}, overtake: true}}")
        ).chip_us[Use.LOST]
        for notice in ("true", "false")
    }
    assert lost["true"] == 0
    assert lost["false"] > 0


def test_parts_of_a_divided_pod_stay_apart() -> None:
    """Goal: on a divided pod no job sets foot in the other part, failures or not. Method: every placement of a week."""
    setup = small(failures=FAILING, horizon="7 d")
    machines, curves = parts(setup)
    for kind in ("fixed", "fixed_equal_money"):
        machine = machines[kind]
        replicas, training, trace = play_shared_pod(machine, setup, curves, 0)
        serving = {replica.job for replica in replicas}
        border = 16 * machine.serving_cubes
        assert len(trace.placements) > 10
        for placed in trace.placements:
            assert (max(placed.hosts) < border) if placed.job in serving else (min(placed.hosts) >= border)
        assert len(serving) == machine.always_on[0]
        assert training


def test_equal_money() -> None:
    """Goal: what light costs buys cubes. Method: v4 by the shipped prices (by hand, capital alone 66.6; energy of light
    a little more), light for nothing, light that costs as much as the chips, and a pod that has no light."""
    pod = POD_GENERATIONS["v4"]
    prices = PricesSection(electricity=0.0)
    by_hand = (48 * 20_000 + 64 * (96 * 130 + 64 * 10_000)) / (96 * 12 + 64 * 10_000)
    assert money_in_cubes(pod, Fabric.RECONFIGURABLE, prices) == math.floor(by_hand) == 66
    for switch, cubes in ((0.0, 64), (4096 * 10_000 / 48, 128)):
        changed = prices.model_copy(update={"switch": switch, "optical_end": 0.0, "fibre": 0.0, "electrical_end": 0.0})
        assert money_in_cubes(pod, Fabric.RECONFIGURABLE, changed) == cubes
    assert money_in_cubes(pod, Fabric.STATIC_CONTIGUOUS, prices) == 64


def test_chip_hours_and_waits_add_up() -> None:
    """Goal: nothing is left over. Method: all machines under failures for three days: uses against the pod, ledgers,
    and the waits by cause against the time for which a replica was wanted and not up (in replica-days); the money of
    tokens (100 each, 25 requests per second in the mean) and of training against that of the machine."""
    base = small(failures=FAILING, horizon="3 d")
    machines, curves = parts(base)
    curves = tuple(replace(curve, tokens_per_request=100.0) for curve in curves)
    for machine in machines.values():
        _, _, trace = play_shared_pod(machine, base, curves, 1)
        uses = chip_us_by_use(trace, 0)
        assert uses[Use.UNACCOUNTED] == 0
        assert sum(uses.values()) == machine.setup.pod.chips * trace.horizon_us
        assert min(uses.values()) >= 0
        assert all(ledger.unaccounted_us == 0 for ledger in job_ledgers(trace))
        one = sample_shared_pod(machine, base, curves, 1)
        short = one.measures["chat", "pod_replicas_wanted"] - one.measures["chat", "pod_replicas_up"]
        waits_s = sum(value for (service, _), value in one.wait_s.items() if service == "chat")
        assert waits_s / 86_400 == pytest.approx(short, abs=1e-9)
        in_time = one.measures["chat", "pod_tokens_in_time"]
        assert 0 < in_time <= 1.0
        prices = machine.setup.scenario.prices
        usd = in_time * 25 * 86_400 * 100 / 1e6 * one.measures["chat", "pod_usd_per_million_tokens"]
        usd += one.measures["", "training_chip_hours_per_day"] * one.measures["", "training_usd_per_chip_hour"]
        whole = machine_cost(prices, machine.setup.pod, machine.setup.fabric).usd_per_year
        assert usd == pytest.approx(whole / 365, rel=1e-3)


@pytest.mark.slow
def test_faster_circuits_never_lower_what_is_served() -> None:
    """Goal: a direction that must hold in the mean, paired. Method: circuits of 10 s and 20 min, six times four days of
    failures on the same draws; the mean difference of tokens in time is above zero, and no less than nothing in most
    replications."""

    def served(circuits: str) -> list[float]:
        setup = small(failures=FAILING, recovery=f"{{circuits: {circuits}}}", horizon="4 d")
        return [sampled(setup, replication=number).measures["chat", "pod_tokens_in_time"] for number in range(6)]

    gains = np.array(served("10 s")) - np.array(served("20 min"))
    assert gains.mean() > 0
    assert (gains >= 0).mean() >= 0.75


def test_machines_meet_the_same_luck() -> None:
    """Goal: machines are compared on the same draws. Method: the failures of the first eight cubes in the logs of the
    shared pod and of the divided one are the same rows."""
    setup = small(failures=FAILING, horizon="7 d")
    machines, curves = parts(setup)
    found = []
    for kind in ("shared", "fixed"):
        trace = play_shared_pod(machines[kind], setup, curves, 0)[2]
        found.append([row[:4] for row in rows_named(trace.rows, Verb.FAIL) if row[2] == "host"])
    assert len(found[0]) > 20
    assert found[0] == found[1]


def test_a_sample_is_the_same_again() -> None:
    """Goal: one replication is a function of scenario, seed and number. Method: twice, everything equal."""
    setup = small(failures=FAILING, horizon="3 d")
    first, again = sampled(setup), sampled(setup)
    assert first.measures == again.measures
    assert first.chip_us == again.chip_us
    assert first.wait_s == again.wait_s


@pytest.mark.parametrize("number", range(4))
def test_small_pods_in_any_trouble(number: int) -> None:
    """Goal: safety under anything. Method: random demand, drains, policies and failures; every invariant after each
    transition; chip-hours and ledgers add up exactly."""
    rng = np.random.default_rng(number)
    rates = ", ".join(f"{rate:.1f} requests/s" for rate in rng.uniform(0, 70, size=11))
    setup = small(
        failures=FAILING,
        demand=f"{{kind: steps, every: {rng.integers(5, 90)} min, rates: [{rates}]}}",
        service=f"drain: {rng.integers(0, 900)} s\n        least: {rng.integers(0, 3)}",
        queue=f"{{kind: priority, notice: {str(bool(rng.random() < 0.7)).lower()}, overtake: {str(bool(rng.random() < 0.5)).lower()}}}",  # noqa: E501
        jobs="{streams: [{name: mix, load: 120 %, slices: {kind: shares, shares: {2x2x4: 1, 4x4x4: 3, 4x4x8: 2, 4x8x8: 1}}, durations: {mean: 3 h, cv: 2}}]}",  # noqa: E501
        horizon="1 d",
        more="""spares: {kind: warm, cubes: 1}
maintenance: {cubes: {every: 1 d, length: 20 min, notice: 10 min}}""" if number % 2 else "",
    )  # fmt: skip
    machines, curves = parts(setup)
    for machine in machines.values():
        _, _, trace = play_shared_pod(machine, setup, curves, number, checks=True)
        assert chip_us_by_use(trace)[Use.UNACCOUNTED] == 0
        assert all(ledger.unaccounted_us == 0 for ledger in job_ledgers(trace))
