"""Rerouted slices at the speed that the routing room finds: the values of the page of dead switches, and in a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sim.histories import US_PER_S, ComponentKind
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.operations import simulate_operations
from sim.reroute_speeds import kept_share, mean_rerouted_speed, rerouted_speed
from sim.streams import Streams
from sim.trace import Stage
from tests.machine.test_jobs import HORIZON_S, down
from topology.fabric import Fabric
from topology.pod import Pod
from topology.shape import parse_shape
from workloads.jobs.job import make_job

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dead_switch.md"
ALL_TO_ALL = RecoveryPolicy(reroute_traffic="all_to_all")


@pytest.mark.parametrize("shape", ["4x4x4", "4x4x8", "8x8x8"])
def test_shares_are_those_of_the_page(shape: str) -> None:
    """Goal: one set of numbers. Method: wild-first rows of the generated page, all-to-all by dimension and rings."""
    row = re.search(rf"^\| {shape} \| wild_first \| (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None
    cells = [float(cell) for cell in row.group(1).split("|")[:7]]
    for dimension in range(3):
        kept = kept_share(parse_shape(shape), dimension, "all_to_all")
        assert 100 * kept == pytest.approx(cells[dimension], abs=0.051)
        assert 100 * kept_share(parse_shape(shape), dimension, "rings") == pytest.approx(
            cells[4 + dimension], abs=0.051
        )


def test_speeds_follow_the_formula() -> None:
    """Goal: 1 / (1 + w (1 / k - 1)). Method: 31/32 on a cube; a third of a step; two dead switches; the stated speed;
    4x4x8 loses nothing along x and y and 1/16 along z, on average over the dimensions."""
    cube = parse_shape("4x4x4")
    assert rerouted_speed(ALL_TO_ALL, cube, (1, 0, 0)) == pytest.approx(31 / 32)
    third = RecoveryPolicy(reroute_traffic="all_to_all", reroute_network_share=1 / 3)
    assert rerouted_speed(third, cube, (0, 0, 1)) == pytest.approx(1 / (1 + (32 / 31 - 1) / 3))
    assert rerouted_speed(ALL_TO_ALL, cube, (1, 0, 1)) == pytest.approx((31 / 32) ** 2)
    assert rerouted_speed(RecoveryPolicy(reroute_traffic="rings"), cube, (0, 1, 0)) == 0.5
    assert rerouted_speed(RecoveryPolicy(), cube, (1, 1, 1)) == 0.95
    assert mean_rerouted_speed(ALL_TO_ALL, 128, 1) == pytest.approx((1 + 1 + 15 / 16) / 3, rel=1e-4)
    assert mean_rerouted_speed(ALL_TO_ALL, 128, 2) == pytest.approx(((1 + 1 + 15 / 16) / 3) ** 2, rel=1e-4)
    assert mean_rerouted_speed(RecoveryPolicy(), 128, 2) == 0.95


def test_a_job_runs_at_the_speed_of_its_routes() -> None:
    """Goal: runs use it. Method: a job on 4x4x8 and a dead switch along x (nothing is lost), then another along z, then
    that one alone: full speed, 15/16, 15/16; an end of the cube along z is dead as well for a while: the product."""
    ocs = down(ComponentKind.OCS, (7, 1000, 5000), (40, 3000, 8000))
    end = down(ComponentKind.OPTICAL_END, (5 * 16 + 3, 6000, 7000))
    trace = simulate_operations(
        Pod(cubes=2), Fabric.RECONFIGURABLE, [make_job(0, Pod(cubes=2), 128)], [ocs, end],
        health=HealthPolicy(detection=0), repair=RepairPolicy(),
        recovery=RecoveryPolicy(evict=0, circuits=0, preflight=0, restore=0, reroute_traffic="all_to_all"),
        streams=Streams(1, 0), horizon_us=HORIZON_S * US_PER_S, runs_at_start=True, check_invariants=True,
    )  # fmt: skip
    ran = [
        (one.end_us // US_PER_S, one.way_round, one.speed_ppm / 1e6)
        for one in trace.stage_intervals()
        if one.stage is Stage.RUNNING
    ]
    slow = pytest.approx(15 / 16, abs=1e-4)
    assert ran == [
        (1000, "", 1.0), (3000, "ocs", 1.0), (6000, "ocs", slow),
        (7000, "ocs", pytest.approx((15 / 16) ** 2, abs=1e-4)), (8000, "ocs", slow), (HORIZON_S, "", 1.0),
    ]  # fmt: skip


def test_traffic_that_is_none_is_refused() -> None:
    """Goal: helpful words. Method: an unknown traffic; a share above 1."""
    traffic: Any = "mail"
    with pytest.raises(ValueError, match="must be none, all_to_all or rings"):
        RecoveryPolicy(reroute_traffic=traffic)
    with pytest.raises(ValueError, match="reroute_network_share"):
        RecoveryPolicy(reroute_network_share=1.5)
