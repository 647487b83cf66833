"""Proofs that routes can not deadlock, and routes that can."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from topology.routing.channels import CHANNELS_PER_CHIP, torus_of_shape
from topology.routing.deadlock import MOST_VIRTUAL_CHANNELS, Dependencies, datelines, prove
from topology.routing.faults import dead_links_of_switch, link_numbers
from topology.routing.methods import Method
from topology.routing.symmetry import FaultSymmetry, channel_image, chip_image, normal_form, quotient
from topology.shape import SUB_CUBE_SHAPES, Shape, parse_shape

WHOLE_CUBES = [
    Shape(4 * a, 4 * b, 4 * c) for a, b, c in product(range(1, 9), repeat=3) if a <= b <= c and a * b * c <= 8
]
TWISTED = [parse_shape(text) for text in ("4x4x8_twisted", "4x8x8_twisted")]
SMALL = [Shape(*dimensions) for dimensions in SUB_CUBE_SHAPES if dimensions != (1, 1, 1)]


def fault_classes(shape: Shape) -> list[NDArray[np.int64]]:
    """One fault of each class of single dead links and single dead switches."""
    torus = torus_of_shape(shape)
    nothing = FaultSymmetry(torus=torus, links=np.empty(0, dtype=np.int64))
    upward = np.flatnonzero(torus.head >= 0)
    upward = upward[upward % 2 == 0]
    _, first = np.unique(quotient(nothing).channel_class[upward], return_index=True)
    singles = [np.array([c // CHANNELS_PER_CHIP * 3 + c % CHANNELS_PER_CHIP // 2]) for c in upward[first]]
    switches: dict[tuple[int, ...], NDArray[np.int64]] = {}
    for dimension, position in product(range(3), (0, 5, 15)):  # all 16 positions are alike: tests of faults
        links = link_numbers(torus, dead_links_of_switch(shape, dimension, position))
        if links.size > 1:
            switches.setdefault(normal_form(torus, links).links, links)
    return [*singles, *switches.values()]


def _check(shape: Shape, methods: tuple[Method, ...]) -> None:
    torus = torus_of_shape(shape)
    for links in fault_classes(shape):
        for method in methods:
            proof = prove(torus, links, method)
            assert proof.holds, (shape, method, links, proof.cycle)
            assert proof.virtual_channels <= (MOST_VIRTUAL_CHANNELS if method is Method.OPTIMAL else 10)


@pytest.mark.parametrize("shape", [*SMALL, *WHOLE_CUBES[:2], TWISTED[0]], ids=str)
def test_no_shipped_method_can_deadlock(shape: Shape) -> None:
    """Goal: acyclic dependencies for every method, each class of single link and switch fault. Method: small shapes;
    the slow test goes on to 512 chips."""
    with_cut_links = shape.chips <= 4  # a dead link may cut a mesh of 1x1x2 in two: no best routes there
    methods = tuple(m for m in Method if m is not Method.OPTIMAL or not with_cut_links)
    _check(shape, methods)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*WHOLE_CUBES[2:], TWISTED[1]], ids=str)
def test_the_fixed_methods_can_not_deadlock_up_to_512_chips(shape: Shape) -> None:
    """Goal: the same for dimension order, even split and wild-first on every shape. Method: every class of fault."""
    _check(shape, (Method.DIMENSION_ORDER, Method.EVEN_SPLIT, Method.WILD_FIRST))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*WHOLE_CUBES[2:], TWISTED[1]], ids=str)
def test_best_routes_can_not_deadlock_up_to_512_chips(shape: Shape) -> None:
    """Goal: the same for best routes. Method: linear program or mixing per class of fault, then the proof."""
    _check(shape, (Method.OPTIMAL,))


@pytest.mark.parametrize("method", [Method.DIMENSION_ORDER, Method.WILD_FIRST])
def test_rings_without_datelines_are_caught(method: Method) -> None:
    """Goal: wrong routes do not pass. Method: leave the datelines out; the cycle named must go round one ring."""
    torus = torus_of_shape(parse_shape("4x4x8"))
    proof = prove(torus, np.empty(0, dtype=np.int64), method, dateline=False)
    assert not proof.holds
    channels = [channel for channel, _ in proof.cycle]
    for one, following in zip(channels, [*channels[1:], channels[0]], strict=True):
        assert torus.head[one] == following // CHANNELS_PER_CHIP


def test_hops_on_the_channel_of_the_rides_are_caught() -> None:
    """Goal: the sandwich needs its own virtual channel for the hops. Method: put them on that of the rides by hand."""
    torus = torus_of_shape(parse_shape("4x4x4"))
    found = Dependencies(torus, 1)
    for channel in range(torus.head.size):
        for way in range(CHANNELS_PER_CHIP):
            if way // 2 != channel % CHANNELS_PER_CHIP // 2:
                found.table[channel, way] = True
    assert found.cycle()


def test_each_ring_has_one_dateline() -> None:
    """Goal: datelines lie once on each ring. Method: count them; a twist joins rings of x two by two."""
    assert datelines(torus_of_shape(parse_shape("4x4x8"))).sum() == 2 * (32 + 32 + 16)
    assert datelines(torus_of_shape(parse_shape("4x4x8_twisted"))).sum() == 2 * (16 + 16 + 16)
    assert not datelines(torus_of_shape(parse_shape("2x4x4"))).any()


def test_the_maps_of_a_whole_slice_reach_every_chip() -> None:
    """Goal: proofs of best routes without faults follow every source. Method: images of the chosen sources; each map
    leads links to links."""
    for text in ("4x4x4", "4x4x8_twisted", "2x4x4", "1x2x2"):
        torus = torus_of_shape(parse_shape(text))
        nothing = FaultSymmetry(torus=torus, links=np.empty(0, dtype=np.int64))
        reached, sources = set(), quotient(nothing).sources
        for by in nothing.elements:
            chips, channels = chip_image(torus, by), channel_image(torus, by)
            reached.update(chips[sources].tolist())
            there = torus.head >= 0
            assert (torus.head[channels[there]] == chips[torus.head[there]]).all()
        assert reached == set(range(torus.chips))
