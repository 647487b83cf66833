"""What a slice with dead links keeps: rings, all-to-all, steps, cuts, and the cache."""

from __future__ import annotations

import json
import time
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topology.routing.degraded
from topology.errors import InputError
from topology.routing.channels import torus_of_shape
from topology.routing.deadlock import prove
from topology.routing.degraded import STATED_MIXES, StepMix, degradation
from topology.routing.faults import dead_links_of_switch, link_numbers
from topology.routing.loads import dimension_order_loads, even_split_loads
from topology.routing.methods import Method
from topology.shape import parse_shape

FAST_METHODS = (Method.DIMENSION_ORDER, Method.EVEN_SPLIT, Method.WILD_FIRST)


@pytest.mark.parametrize("method", list(Method))
def test_without_faults_all_is_kept(method: Method) -> None:
    """Goal: shares are relative to the best healthy routes. Method: no dead links keep exactly 1 (no ring loses)."""
    for text in ("4x4x4", "4x4x8", "4x4x8_twisted", "2x2x4", "1x1x1"):
        found = degradation(parse_shape(text), (), method)
        assert found.all_to_all_kept == pytest.approx(1.0)
        assert found.ring_kept == found.ring_kept_alone == (1.0, 1.0, 1.0)
        assert found.routed


def test_a_ring_that_lost_a_link() -> None:
    """Goal: half by dimension order and wild-first, at least 0.83 with split detours and three axes busy. Method: one
    dead link on 4x4x4 and a dead switch on 8x8x8; 5/6 is the bound of a chip with five links left."""
    cube = parse_shape("4x4x4")
    for method in (Method.DIMENSION_ORDER, Method.WILD_FIRST):
        assert degradation(cube, dead_links_of_switch(cube, 1, 0), method).ring_kept == (1.0, 0.5, 1.0)
    assert degradation(cube, dead_links_of_switch(cube, 1, 0), Method.EVEN_SPLIT).ring_kept[1] == pytest.approx(0.8)
    for dimension in range(3):
        found = degradation(cube, dead_links_of_switch(cube, dimension, 3), Method.OPTIMAL)
        assert found.ring_kept[dimension] == pytest.approx(5 / 6)
        assert found.ring_kept_alone[dimension] > 0.9
    large = parse_shape("8x8x8")
    assert degradation(large, dead_links_of_switch(large, 0, 0), Method.WILD_FIRST).ring_kept[0] == 0.5


@pytest.mark.parametrize("text", ["4x4x4", "4x4x8", "8x8x8", "8x8x16"])
def test_one_dead_switch_stays_in_the_published_range(text: str) -> None:
    """Goal: 92.2 to 101.7 % as published, by wild-first. Method: every dimension's switch."""
    shape = parse_shape(text)
    cache: dict[str, dict[str, Any]] = {}
    for dimension in range(3):
        found = degradation(shape, dead_links_of_switch(shape, dimension, 9), cache=cache)
        assert 0.922 <= found.all_to_all_kept <= 1.017
        assert found.routed


@pytest.mark.parametrize(("mix", "published"), list(zip(STATED_MIXES, (0.005, 0.012, 0.026, 0.086), strict=True)))
def test_steps_slow_down_as_published(mix: StepMix, published: float) -> None:
    """Goal: four stated mixes within 0.5 to 8.6 %. Method: 8x8x8, one dead switch, wild-first; near the published."""
    shape = parse_shape("8x8x8")
    slowdown = degradation(shape, dead_links_of_switch(shape, 0, 5)).step_slowdown(mix)
    assert 0.005 <= slowdown <= 0.086
    assert slowdown == pytest.approx(published, rel=0.15)


def test_a_mix_of_more_than_a_step_is_refused() -> None:
    """Goal: bad mixes do not pass. Method: shares over 1 and below 0."""
    for rings in ((0.5, 0.4, 0.2), (-0.1, 0.0, 0.0)):
        with pytest.raises(ValueError, match="shares of too much"):
            StepMix(name="too much", rings=rings)


def test_a_slice_cut_in_two_is_said_to_be_so() -> None:
    """Goal: a cut slice keeps nothing and says why. Method: all six links of a chip dead; a mesh of two chips."""
    six = [((0, 0, 0), 0), ((0, 0, 0), 1), ((0, 0, 0), 2), ((3, 0, 0), 0), ((0, 3, 0), 1), ((0, 0, 3), 2)]
    for shape, links in ((parse_shape("4x4x4"), six), (parse_shape("1x1x2"), [((0, 0, 0), 2)])):
        for method in Method:
            found = degradation(shape, links, method)
            assert not found.connected
            assert not found.routed
            assert found.all_to_all_kept == 0.0
            assert found.step_slowdown(STATED_MIXES[0]) == float("inf")


def test_dimension_order_says_where_it_has_no_route() -> None:
    """Goal: a ring cut twice stops dimension order, not the slice. Method: switch of z on 4x4x8."""
    shape = parse_shape("4x4x8")
    found = degradation(shape, dead_links_of_switch(shape, 2, 5), "dimension_order")
    assert found.connected
    assert not found.routed
    assert found.unserved_pairs == 512
    assert found.all_to_all_kept == 0.0


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2), st.integers(0, 15), st.integers(0, 15), st.sampled_from(FAST_METHODS[1:]))
def test_symmetric_faults_degrade_equally(dimension: int, one: int, other: int, method: Method) -> None:
    """Goal: symmetric faults give equal degradation. Method: two positions of a switch, exactly equal answers."""
    shape = parse_shape("4x4x8")
    first = degradation(shape, dead_links_of_switch(shape, dimension, one), method)
    assert first == degradation(shape, dead_links_of_switch(shape, dimension, other), method)


def test_the_cache_answers_at_once_and_turns_axes_back() -> None:
    """Goal: faults that are alike share an entry, also from a file. Method: x, y, z on 4x4x4 through JSON text."""
    shape = parse_shape("4x4x4")
    cache: dict[str, dict[str, Any]] = {}
    for dimension in range(3):
        found = degradation(shape, dead_links_of_switch(shape, dimension, dimension), cache=cache)
        assert [kept == 0.5 for kept in found.ring_kept] == [axis == dimension for axis in range(3)]
    assert len(cache) == 1
    stored = json.loads(json.dumps(cache))
    again = degradation(shape, dead_links_of_switch(shape, 2, 2), cache=stored)
    assert again == found


@pytest.mark.parametrize("method", list(Method))
def test_routes_tell_their_virtual_channels_and_proof(method: Method) -> None:
    """Goal: every route set is proved free of deadlock under a stated number of virtual channels. Method: one switch of
    x on 4x4x4; without routes there is nothing to prove."""
    shape = parse_shape("4x4x4")
    found = degradation(shape, dead_links_of_switch(shape, 0, 5), method)
    assert found.deadlock_free is True
    stated = {Method.DIMENSION_ORDER: 2, Method.WILD_FIRST: 3}
    assert found.virtual_channels == stated.get(method, found.virtual_channels)
    assert found.virtual_channels is not None
    assert 2 <= found.virtual_channels <= 10
    cut = degradation(parse_shape("1x1x2"), [((0, 0, 0), 2)], method)
    assert (cut.virtual_channels, cut.deadlock_free) == (None, None)


def test_routes_that_may_deadlock_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: no share is told for routes that wait in a circle. Method: leave the datelines out on purpose."""
    monkeypatch.setattr(topology.routing.degraded, "prove", partial(prove, dateline=False))
    shape = parse_shape("4x4x8")
    found = degradation(shape, dead_links_of_switch(shape, 0, 5), Method.WILD_FIRST)
    assert found.deadlock_free is False
    assert not found.routed
    assert found.all_to_all_kept == 0.0


def test_unknown_methods_and_links_are_refused() -> None:
    """Goal: bad input is named. Method: a method and a link that do not exist."""
    with pytest.raises(InputError, match="no routing method"):
        degradation(parse_shape("4x4x4"), (), "shortest")
    with pytest.raises(InputError, match="no link"):
        degradation(parse_shape("4x4x4"), [((9, 0, 0), 0)])


@pytest.mark.slow
@pytest.mark.parametrize(("text", "limit_s"), [("16x16x16", 2.0), ("12x24x32", 12.0)])
def test_loads_of_large_slices_in_time(text: str, limit_s: float) -> None:
    """Goal: one dead switch: 4,096 chips in 2 s, 9,216 in 12 s. Method: the clock, once compiled, best of two."""
    shape = parse_shape(text)
    torus = torus_of_shape(shape)
    links = link_numbers(torus, dead_links_of_switch(shape, 2, 5))
    for loads in (even_split_loads, dimension_order_loads):
        taken = []
        for _ in range(2):
            began = time.perf_counter()
            loads(torus, links)
            taken.append(time.perf_counter() - began)
        assert min(taken) <= limit_s


@pytest.mark.slow
def test_16x16x16_then_from_the_cache() -> None:
    """Goal: best routes of 16x16x16 in 5 minutes, then at once. Method: every dimension, wild-first and best routes."""
    shape = parse_shape("16x16x16")
    cache: dict[str, dict[str, Any]] = {}
    for method, dimension in product((Method.WILD_FIRST, Method.OPTIMAL), range(3)):
        began = time.perf_counter()
        found = degradation(shape, dead_links_of_switch(shape, dimension, 5), method, cache=cache)
        taken = time.perf_counter() - began
        assert taken < (300.0 if dimension == 0 else 2.0)
        assert 0.922 <= found.all_to_all_kept <= 1.0
        assert found.gap <= 0.02
