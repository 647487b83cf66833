"""Measures of a pod in operation, by hand on small cases."""

from __future__ import annotations

from datetime import date

import pytest

from sim.condition import component_counts
from sim.histories import US_PER_S, ComponentKind
from sim.job_policies import FixedCheckpoints
from sim.metrics.ledger import job_ledgers
from sim.metrics.operations import (
    blast_radius,
    recovery_us_by_stage,
    reject_counts,
    summary_of,
)
from sim.metrics.promise_months import month_edges, months_held, share_of_months_kept, slice_demands
from sim.metrics.uses import OPERATOR_NAMES, Use
from sim.repair_policies import MaintenancePolicy, Rolling
from sim.trace import Stage
from tests.machine.pods import DAY_US
from tests.machine.test_jobs import HORIZON_S, down
from tests.machine.test_operations import HOST_DOWN, job, operate
from topology.pod import Pod

POD_CHIP_S = 5 * 64 * HORIZON_S


def test_the_summary_by_hand() -> None:
    """Goal: every measure on one small case. Method: five cubes; job 0 (two cubes, 3,000 s) is lost at 1,000 s, 160 s
    after its last commit, and runs again from 1,880 s to the end at 4,180 s; job 1 (four cubes, 1,000 s) arrives at
    100 s and waits for job 0 and for the host that is down until 5,000 s; job 2 is larger than the pod."""
    jobs = [job(work_s=3000), job(1, 256, work_s=1000, arrival_s=100, cubes=8), job(2, 512, work_s=1, cubes=8)]
    jobs.sort(key=lambda one: (one.arrival_us, one.id))
    trace = operate(jobs, [HOST_DOWN], checkpoint=FixedCheckpoints(interval=400, save=20))
    ledgers = job_ledgers(trace)
    summary = summary_of(trace, ledgers)
    first, second, third = ledgers
    assert (first.losses, first.us[Use.LOST], first.us[Use.CHECKPOINTING]) == (1, 160 * US_PER_S, 7 * 20 * US_PER_S)
    finished_s = 1880 + 2200 + 5 * 20
    assert first.finished_us == finished_s * US_PER_S
    assert first.ettr == pytest.approx(3000 / finished_s)
    assert first.slowdown == pytest.approx(finished_s / 3000)
    assert second.wait_us == (finished_s - 100) * US_PER_S, "four good cubes are free then"
    assert third.rejected == "resource"
    assert reject_counts(ledgers) == {"resource": 1}
    assert (summary.arrived, summary.rejected, summary.finished, summary.completion) == (3, 1, 2, 1.0)
    assert summary.losses == 1
    useful = 3000 * 128 + 1000 * 256
    started = 790 * 256 + 2 * 20 * 256 + (160 + 7 * 20 + 790) * 128
    out = 90 * 128
    goodput = summary.goodput
    assert goodput.scheduling == pytest.approx((useful + started) / POD_CHIP_S, rel=2e-3), "one host is down meanwhile"
    assert goodput.total == pytest.approx(useful / POD_CHIP_S, rel=1e-9)
    assert goodput.program == 1.0
    assert summary.utilisation == pytest.approx((useful + started + out) / POD_CHIP_S, rel=2e-3)
    assert sum(summary.chip_us.values()) == POD_CHIP_S * US_PER_S
    assert blast_radius(trace, ledgers)["host"].chips_per_failure == 128
    stages = recovery_us_by_stage(trace)
    assert stages[Stage.RESTORING] == 600 * US_PER_S
    assert stages[Stage.DETECTING] == 60 * US_PER_S


def test_months() -> None:
    """Goal: calendar months. Method: from 15 January 2024: 17 days, then a February of 29; without a date, 30 d."""
    assert month_edges(60 * DAY_US, date(2024, 1, 15)).tolist() == [0, 17 * DAY_US, 46 * DAY_US, 60 * DAY_US]
    assert month_edges(60 * DAY_US).tolist() == [0, 30 * DAY_US, 60 * DAY_US]
    assert month_edges(17 * DAY_US, date(2024, 1, 15)).tolist() == [0, 17 * DAY_US]


def test_a_promise_by_month() -> None:
    """Goal: share of months in which it held. Method: one cube of five down for 4,000 of 10,000 s: five slices held for
    60 % of the only month, four always."""
    pod = Pod(cubes=5)
    trace = operate([], [down(ComponentKind.HOST, (3, 1000, 5000))])
    counts = component_counts(pod)
    five, four = (months_held(trace, pod, counts, slice_demands({64: slices})) for slices in (5, 4))
    assert [month.share for month in five] == [0.6]
    assert share_of_months_kept(five, 0.6) == 1.0
    assert share_of_months_kept(five, 0.61) == 0.0
    dated = months_held(trace, pod, counts, slice_demands({64: 4}), start=date(2026, 3, 1))
    assert share_of_months_kept(dated, 1.0) == share_of_months_kept(four, 1.0) == 1.0
    late = months_held(trace, pod, counts, slice_demands({64: 5}), from_us=4000 * US_PER_S)
    assert [(month.start_us, month.share) for month in late] == [(4000 * US_PER_S, pytest.approx(5 / 6))]


def test_a_promise_of_two_sizes_and_a_drain() -> None:
    """Goal: sizes share the pod, drained cubes are not there. Method: four cubes and half a cube on five cubes, of
    which one misses a host for 4,000 of 10,000 s (its other half still serves) and is drained for the last 2,000 s."""
    pod = Pod(cubes=5)
    policy = MaintenancePolicy(cubes=Rolling(every=1e5, length=2000.0, notice=0.0, first=8000.0))
    trace = operate([], [down(ComponentKind.HOST, (3, 1000, 5000))], maintenance=policy)
    (month,) = months_held(trace, pod, component_counts(pod), slice_demands({64: 4, 32: 1}))
    assert month.share == pytest.approx(0.8)


def test_every_use_has_an_operators_name() -> None:
    """Goal: the column of names is complete. Method: all uses."""
    assert set(OPERATOR_NAMES) == set(Use)
