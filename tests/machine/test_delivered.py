"""`delivered` through SimPy against `expected` from the same histories."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from sim.histories import ComponentKind
from sim.metrics.jobs import delivered_share
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.delivered import simulate_delivered
from sim.streams import Streams
from sim.trace import Trace
from tests.machine.pods import DAY_US, NO_DELAYS, NO_DETECTION, draws, expected_by_hand, histories
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS, AnyPod, FlatPod, Pod

EXACT = (Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED, Fabric.ANY_HOST)
RATES = {
    ComponentKind.HOST: (400.0, 10.0),
    ComponentKind.RACK: (900.0, 12.0),
    ComponentKind.IN_RACK_LINK: (30000.0, 15.0),
}


def run(pod: AnyPod, fabric: Fabric, chips: int, seed: int, horizon_us: int, **options: object) -> Trace:
    """A run over the rates above, without delays unless given."""
    settings_: dict[str, object] = {
        "health": NO_DETECTION,
        "repair": RepairPolicy(),
        "recovery": NO_DELAYS,
        "streams": Streams(seed, 0),
        "horizon_us": horizon_us,
        "check_invariants": True,
    }
    rates = options.pop("rates", RATES)
    settings_.update(options)
    return simulate_delivered(pod, fabric, chips, draws(pod, seed, rates), **settings_)  # type: ignore[arg-type]


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    cubes=st.sampled_from([1, 2, 4, 6, 8, 12]),
    fabric=st.sampled_from(EXACT),
    chips=st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512]),
    move_all=st.booleans(),
)
def test_delivered_equals_expected_without_delays(
    seed: int, cubes: int, fabric: Fabric, chips: int, move_all: bool
) -> None:
    """Goal: two routes to one number. Method: with all delays zero and light that never fails, the share of time that
    SimPy's jobs run equals the capacity of the same failure histories, looked up interval by interval."""
    pod, horizon_us = Pod(cubes=cubes), 4 * DAY_US
    recovery = RecoveryPolicy(
        evict=0.0, circuits=0.0, preflight=0.0, restore=0.0, replace="move_all" if move_all else "replace_one"
    )
    trace = run(pod, fabric, chips, seed, horizon_us, recovery=recovery, check_invariants=chips >= 64)
    expected = expected_by_hand(pod, fabric, chips, histories(draws(pod, seed, RATES), horizon_us), horizon_us)
    assert delivered_share(trace) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("fabric", EXACT)
@pytest.mark.parametrize("chips", [4, 16, 64, 256, 1024, 3072, 4096])
def test_delivered_equals_expected_on_a_v4_pod(fabric: Fabric, chips: int) -> None:
    """Goal: the same on a real pod, hosts only, at 99 %. Method: as above, one fixed seed."""
    pod, horizon_us = POD_GENERATIONS["v4"], 5 * DAY_US
    rates = {ComponentKind.HOST: (1500.0, 15.0)}
    trace = run(pod, fabric, chips, 7, horizon_us, rates=rates, check_invariants=False)
    expected = expected_by_hand(pod, fabric, chips, histories(draws(pod, 7, rates), horizon_us), horizon_us)
    assert delivered_share(trace) == pytest.approx(expected, abs=1e-12)


def test_flat_pods_deliver_what_they_have() -> None:
    """Goal: pods without cubes work. Method: 50 hosts, slices of 20 chips, delivered against the slow route."""
    pod, horizon_us = FlatPod(hosts=50), 10 * DAY_US
    rates = {ComponentKind.HOST: (200.0, 10.0)}
    trace = run(pod, Fabric.ANY_HOST, 20, 3, horizon_us, rates=rates)
    expected = expected_by_hand(pod, Fabric.ANY_HOST, 20, histories(draws(pod, 3, rates), horizon_us), horizon_us)
    assert delivered_share(trace) == pytest.approx(expected, abs=1e-12)


def test_delays_cost_and_light_costs() -> None:
    """Goal: each cause of loss takes its share. Method: the same failures without delays, with the default delays, and
    with switches that fail too; each delivers less than the one before."""
    pod, horizon_us = Pod(cubes=8), 30 * DAY_US
    with_light = {**RATES, ComponentKind.OCS: (500.0, 24.0), ComponentKind.OPTICAL_END: (20000.0, 10.0)}
    delays: dict[str, object] = {"health": HealthPolicy(), "recovery": RecoveryPolicy()}
    shares = [
        delivered_share(run(pod, Fabric.RECONFIGURABLE, 128, 5, horizon_us, **options))
        for options in ({}, delays, {**delays, "rates": with_light})
    ]
    assert shares[0] > shares[1] > shares[2] > 0.5
