"""Drawn orders in which switches die: nested, the same for all methods and runs, and never better than whole."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sim.dead_switches import all_to_all_slowdown, slowdown_by_dead_switches
from topology.errors import InputError
from topology.routing.degraded import Degradation
from topology.routing.methods import Method
from topology.shape import parse_shape

METHODS = ("even_split", "wild_first")


def test_orders_of_dying() -> None:
    """Goal: repeatable, nested sets. Method: 4x4x4 twice by two methods; none dead costs nothing; orders are orders."""
    shape, cache = parse_shape("4x4x4"), dict[str, dict[str, object]]()
    first, second = (slowdown_by_dead_switches(shape, (0, 1, 2), METHODS, orders=2, cache=cache) for _ in range(2))
    assert np.array_equal(first.orders, second.orders)
    assert [sorted(order.tolist()) for order in first.orders] == [list(range(48))] * 2
    for name in METHODS:
        values = first.by_method[name]
        assert np.array_equal(values, second.by_method[name])
        assert (values[0] == 1.0).all()
        assert (values[1:] > 1.0).all()
    other = slowdown_by_dead_switches(shape, (1,), ("even_split",), orders=2, seed=2, cache=cache)
    assert not np.array_equal(first.orders, other.orders)


def test_any_measure_of_a_degradation_can_be_drawn() -> None:
    """Goal: a step's own mix can take the place of all-to-all. Method: count what is asked; no dead switch, no call."""
    seen: list[Degradation] = []

    def measure(left: Degradation) -> float:
        seen.append(left)
        return 2.0

    found = slowdown_by_dead_switches(parse_shape("4x4x4"), (0, 1), ("even_split",), orders=3, slowdown=measure)
    assert found.by_method["even_split"].tolist() == [[1.0] * 3, [2.0] * 3]
    assert len(seen) == 3
    assert {left.method for left in seen} == {Method.EVEN_SPLIT}


def test_all_switches_of_a_dimension() -> None:
    """Goal: no light left is told. Method: all 48 dead on one cube: a mesh, slower but whole; two fall apart."""
    found = slowdown_by_dead_switches(parse_shape("4x4x4"), (48,), ("even_split",), orders=1)
    assert 1.5 < found.by_method["even_split"][0, 0] < 4.0
    two = slowdown_by_dead_switches(parse_shape("4x4x8"), (48,), ("even_split",), orders=1)
    assert two.by_method["even_split"][0, 0] == math.inf


def test_what_is_refused() -> None:
    """Goal: slices without light and switches that are none are refused. Method: one of each."""
    with pytest.raises(InputError, match="has no light"):
        slowdown_by_dead_switches(parse_shape("2x2x2"), (1,), METHODS)
    for dead in ((), (49,), (-1,)):
        with pytest.raises(InputError, match="from 0 to 48"):
            slowdown_by_dead_switches(parse_shape("4x4x4"), dead, METHODS)


def test_infinite_where_nothing_is_routed() -> None:
    """Goal: a cut slice is not merely slow. Method: the measure of a cut and of an unrouted one."""
    common = {"method": Method.EVEN_SPLIT, "gap": 0.0, "ring_kept": (1.0,) * 3, "ring_kept_alone": (1.0,) * 3}
    cut = Degradation(connected=False, unserved_pairs=0, all_to_all_kept=0.0, **common)  # type: ignore[arg-type]
    unrouted = Degradation(connected=True, unserved_pairs=2, all_to_all_kept=0.0, **common)  # type: ignore[arg-type]
    assert all_to_all_slowdown(cut) == all_to_all_slowdown(unrouted) == math.inf
