"""How long a reconfiguration takes, part by part."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ocs.circuits import circuits_of, no_circuits, plan_reconfiguration
from ocs.reconfiguration import ReconfigurationTiming
from topology.placement import joined
from topology.shape import parse_shape

TIMING = ReconfigurationTiming()


def test_a_thousand_chips_take_about_ten_seconds() -> None:
    """Goal: the defaults give the told figure. Method: the median of forming 8x8x16."""
    plan = plan_reconfiguration(no_circuits(), circuits_of(joined(parse_shape("8x8x16"), range(16))))
    assert TIMING.time_s(plan, 0.5) == pytest.approx(10.0, abs=0.2)


def test_mirrors_move_in_parallel_over_switches() -> None:
    """Goal: mirrors cost what the busiest switch costs. Method: the published 1, 4, 16 pairs, on one or all."""
    for circuits, measured_s in ((1, 0.0414), (4, 0.0424), (16, 0.0468)):
        rows = np.array([[switch, cube, cube] for switch in range(48) for cube in range(circuits)], dtype=np.int64)
        everywhere = plan_reconfiguration(no_circuits(), rows)
        alone = plan_reconfiguration(no_circuits(), rows[:circuits])
        assert TIMING.mirrors_s(everywhere) == TIMING.mirrors_s(alone) == pytest.approx(measured_s, abs=0.0002)


def test_one_link_has_the_given_mean_and_tail() -> None:
    """Goal: the law of one link is the one named. Method: its 99 % quantile, and its mean by the midpoint rule."""
    assert TIMING.slowest_link_s(1, 0.99) == pytest.approx(6.33)
    mean = np.mean([TIMING.slowest_link_s(1, (k + 0.5) / 20_000) for k in range(20_000)])
    assert mean == pytest.approx(5.67, rel=1e-4)


def test_the_slowest_of_many_links() -> None:
    """Goal: the slice waits for its slowest link. Method: simulate 200 links; more links, longer."""
    draws = np.random.default_rng(1).random((4000, 200))
    simulated = np.quantile([TIMING.slowest_link_s(1, u) for u in draws.max(axis=1)], [0.1, 0.5, 0.9])
    exact = [TIMING.slowest_link_s(200, u) for u in (0.1, 0.5, 0.9)]
    assert simulated == pytest.approx(exact, rel=0.005)
    longer = [TIMING.slowest_link_s(links, 0.5) for links in (1, 48, 768, 2304)]
    assert longer == sorted(longer)


def test_nothing_to_change_takes_no_time() -> None:
    """Goal: an empty plan is free, a plan that only cuts waits for no link. Method: both."""
    rows = circuits_of(joined(parse_shape("4x4x4"), [3]))
    assert TIMING.time_s(plan_reconfiguration(rows, rows), 0.5) == 0.0
    assert TIMING.time_s(plan_reconfiguration(rows, no_circuits()), 0.5) < 0.05
    assert TIMING.slowest_link_s(0, 0.5) == 0.0


def test_constant_links_and_impossible_tails() -> None:
    """Goal: p99 = mean is a constant; a tail that no lognormal law has is refused. Method: both, and below the mean."""
    constant = ReconfigurationTiming(link_up_mean=5.0, link_up_p99=5.0)
    assert constant.slowest_link_s(100, 0.0) == constant.slowest_link_s(1, 0.99) == 5.0
    for tail in (4.9, 5.0 * math.exp(4)):
        with pytest.raises(ValueError, match="link_up_p99 must lie between"):
            ReconfigurationTiming(link_up_mean=5.0, link_up_p99=tail)
