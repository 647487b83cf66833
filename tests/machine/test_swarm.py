"""Random small pods with all invariants on: first anything may fail, then failures stop and every job must run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from sim.condition import KINDS
from sim.histories import ComponentKind, Lives, draw_outages
from sim.metrics.chip_hours import Use, chip_us_by_use
from sim.metrics.jobs import delivered_chip_us, delivered_share, losses
from sim.policies import DetectionOf, HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.delivered import simulate_delivered
from sim.processes.failures import Source
from sim.streams import Streams
from sim.trace import Stage, Trace, Verb
from tests.machine.pods import DAY_US, draws, mode
from topology.fabric import Fabric
from topology.placement import capacity
from topology.pod import Pod

LIFE_H = {
    ComponentKind.HOST: (60.0, 6.0),
    ComponentKind.RACK: (80.0, 6.0),
    ComponentKind.IN_RACK_LINK: (4000.0, 6.0),
    ComponentKind.OPTICAL_END: (4000.0, 6.0),
    ComponentKind.OCS: (400.0, 6.0),
}

pods = st.sampled_from([1, 2, 3, 4, 6, 8]).map(lambda cubes: Pod(cubes=cubes))
healths = st.builds(
    HealthPolicy,
    detection=st.sampled_from([0.0, 60.0, 3600.0]),
    detection_of=st.builds(DetectionOf, ocs=st.sampled_from([None, 5.0])),
    diagnosis=st.sampled_from([0.0, 300.0]),
    burn_in=st.sampled_from([0.0, 900.0]),
)
recoveries = st.builds(
    RecoveryPolicy,
    evict=st.sampled_from([0.0, 30.0]),
    circuits=st.sampled_from([0.0, 10.0]),
    preflight=st.sampled_from([0.0, 180.0]),
    restore=st.sampled_from([0.0, 600.0, 7200.0]),
    replace=st.sampled_from(["replace_one", "move_all"]),
    reroute_opt_in=st.sampled_from([0.0, 0.5, 1.0]),
)
kinds = st.sets(st.sampled_from(KINDS), min_size=1).map(lambda chosen: [kind for kind in KINDS if kind in chosen])


def check_sums(trace: Trace) -> None:
    """Chip-hours add up to the pod, nothing is negative, and running is what was delivered."""
    uses = chip_us_by_use(trace)
    assert uses[Use.UNACCOUNTED] == 0
    assert min(uses.values()) >= 0
    assert uses[Use.USEFUL] + uses[Use.SLOWED] == delivered_chip_us(trace)
    half_us = trace.horizon_us // 2
    later = chip_us_by_use(trace, half_us)
    assert later[Use.UNACCOUNTED] == 0
    assert later[Use.USEFUL] + later[Use.SLOWED] == delivered_chip_us(trace, half_us)


def last_stage(trace: Trace) -> dict[int, str]:
    """The stage of every job at the horizon."""
    return {row[4]: row[5] for row in trace.rows if row[1] == Verb.STAGE}


cases = {
    "seed": st.integers(0, 10**6),
    "pod": pods,
    "fabric": st.sampled_from(list(Fabric)),
    "chips": st.sampled_from([2, 4, 16, 32, 64, 128, 192, 256]),
    "health": healths,
    "recovery": recoveries,
    "failing": kinds,
}


def fail_then_recover(
    seed: int, pod: Pod, fabric: Fabric, chips: int, health: HealthPolicy, recovery: RecoveryPolicy,
    failing: list[ComponentKind],
) -> None:  # fmt: skip
    """Four days of failures that stop at once, each outage cut at that day; all invariants after each verb; a day later
    everything is up and as many jobs run as the pod holds."""
    quiet_us, horizon_us = 4 * DAY_US, 5 * DAY_US
    sources: list[Source] = []
    for lives in draws(pod, seed, {kind: LIFE_H[kind] for kind in failing}):
        drawn = draw_outages(lives, quiet_us)
        sources.append(replace(drawn, horizon_us=horizon_us, end_us=np.minimum(drawn.end_us, quiet_us)))
    trace = simulate_delivered(
        pod, fabric, chips, sources, health=health, repair=RepairPolicy(), recovery=recovery, streams=Streams(seed, 0),
        horizon_us=horizon_us, jobs=min(12, pod.hosts * 4 // chips), check_invariants=True,
    )  # fmt: skip
    check_sums(trace)
    running = sum(stage == Stage.RUNNING for stage in last_stage(trace).values())
    if fabric is Fabric.STATIC_CONTIGUOUS:
        assert running >= min(trace.jobs, 1) * (capacity(fabric, pod, chips, np.ones(pod.hosts, dtype=np.bool_)) > 0)
    else:
        assert running == trace.jobs
    for loss in losses(trace):
        assert loss.stages == () or loss.stages[0].start_us == loss.lost_us


@settings(deadline=None, max_examples=15)
@given(**cases)
def test_swarm_with_recovery(**case: Any) -> None:
    """Goal: safety under any faults, then liveness. Method: `fail_then_recover` on random settings."""
    fail_then_recover(**case)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(**cases)
def test_large_swarm_with_recovery(**case: Any) -> None:
    """Goal: the same, 200 times. Method: as above."""
    fail_then_recover(**case)


@settings(deadline=None, max_examples=10)
@given(
    seed=st.integers(0, 10**6),
    pod=pods,
    fabric=st.sampled_from(list(Fabric)),
    chips=st.sampled_from([16, 64, 128, 256]),
    health=healths,
    recovery=recoveries,
    crews=st.sampled_from([1, 2, 5]),
)
def test_swarm_with_scarce_crews(
    seed: int, pod: Pod, fabric: Fabric, chips: int, health: HealthPolicy, recovery: RecoveryPolicy, crews: int
) -> None:
    """Goal: the same with queues for crews. Method: every kind fails, few crews repair; invariants on, sums exact."""
    sources: list[Source] = list(draws(pod, seed, LIFE_H))
    trace = simulate_delivered(
        pod, fabric, chips, sources, health=health, repair=RepairPolicy(crews=crews), recovery=recovery,
        streams=Streams(seed, 0), horizon_us=3 * DAY_US, jobs=min(12, pod.hosts * 4 // chips), check_invariants=True,
    )  # fmt: skip
    check_sums(trace)


def delivered(seed: int, health: HealthPolicy, recovery: RecoveryPolicy, crews: int | None, repair_h: float) -> float:
    """Delivered on a small pod with every kind failing; detection comes before the repair that was drawn."""
    pod = Pod(cubes=8)
    sources: list[Source] = [
        Lives(mode(pod, kind, life * 10, repair_h, overhead_s=health.detection), Streams(seed, 0))
        for kind, (life, _) in LIFE_H.items()
    ]
    trace = simulate_delivered(
        pod, Fabric.RECONFIGURABLE, 128, sources, health=health,
        repair=RepairPolicy(crews=crews), recovery=recovery, streams=Streams(seed, 0), horizon_us=20 * DAY_US,
    )  # fmt: skip
    return delivered_share(trace)


@pytest.mark.parametrize(
    "better",
    ["repair", *(pytest.param(name, marks=pytest.mark.slow) for name in ("crews", "detection", "restore", "opt_in"))],
)
def test_what_should_help_does_not_hurt(better: str) -> None:
    """Goal: directions are right. Method: 20 seeds, paired on the same draws: for faster repair, more crews, faster
    detection, faster restore, more jobs that reroute, the upper 95 % limit of the change in delivered is at least 0."""
    health, recovery = HealthPolicy(detection=600.0), RecoveryPolicy(restore=1800.0, reroute_opt_in=0.0)
    changes = []
    for seed in range(20):
        before = delivered(seed, health, recovery, 4, 8.0)
        after = delivered(
            seed,
            replace(health, detection=30.0) if better == "detection" else health,
            replace(recovery, restore=300.0) if better == "restore"
            else replace(recovery, reroute_opt_in=1.0) if better == "opt_in" else recovery,
            8 if better == "crews" else 4,
            4.0 if better == "repair" else 8.0,
        )  # fmt: skip
        changes.append(after - before)
    mean, error = float(np.mean(changes)), float(np.std(changes, ddof=1)) / np.sqrt(20)
    assert mean + 2.093 * error >= 0
    assert mean > 0, "and on these seeds it does help"


def test_the_same_seed_gives_the_same_log() -> None:
    """Goal: determinism. Method: the same run twice, rows and placements equal; another seed differs."""

    def run(seed: int) -> Trace:
        pod = Pod(cubes=8)
        return simulate_delivered(
            pod, Fabric.RECONFIGURABLE, 128, list(draws(pod, seed, LIFE_H)), health=HealthPolicy(),
            repair=RepairPolicy(crews=3), recovery=RecoveryPolicy(), streams=Streams(seed, 0), horizon_us=5 * DAY_US,
        )  # fmt: skip

    one, again, other = run(1), run(1), run(2)
    assert one.rows == again.rows
    assert one.placements == again.placements
    assert one.rows != other.rows


def test_fabrics_see_the_same_bad_luck() -> None:
    """Goal: designs are compared on the same draws. Method: the failures and repairs of hosts in the logs of all four
    fabrics are the same rows; eight more cubes change nothing for the cubes that were there before."""

    def host_rows(fabric: Fabric, cubes: int) -> list[tuple[int, str, int]]:
        pod = Pod(cubes=cubes)
        trace = simulate_delivered(
            pod, fabric, 64, list(draws(pod, 4, {ComponentKind.HOST: (100.0, 5.0)})), health=HealthPolicy(),
            repair=RepairPolicy(), recovery=RecoveryPolicy(), streams=Streams(4, 0), horizon_us=5 * DAY_US,
        )  # fmt: skip
        return [(row[0], row[1], row[3]) for row in trace.rows if row[2] == "host" and row[3] < 56 * 16]

    reference = host_rows(Fabric.RECONFIGURABLE, 56)
    assert all(host_rows(fabric, 56) == reference for fabric in Fabric)
    assert host_rows(Fabric.ANY_HOST, 64) == reference
