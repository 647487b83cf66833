"""Loads of dimension order and of the even split, against independent numbers and slow direct computations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from topology.pod import Grid
from topology.routing.channels import CHANNELS_PER_CHIP, Torus, channels_of_link, torus_of_shape
from topology.routing.faults import DeadLink, dead_links_of_switch, link_numbers
from topology.routing.healthy import best_healthy_load
from topology.routing.loads import _even_split, dimension_order_loads, even_split_loads
from topology.shape import parse_shape

NONE = np.empty(0, dtype=np.int64)
LINK_GB_PER_S = 50.0


def _numbers(text: str, links: Iterable[DeadLink | tuple[Grid, int]]) -> tuple[Torus, NDArray[np.int64]]:
    torus = torus_of_shape(parse_shape(text))
    return torus, link_numbers(torus, links)


@pytest.mark.parametrize(
    ("text", "bound"),
    [("4x4x4", 100.0), ("4x4x8", 50.0), ("4x4x8_twisted", 87.3), ("4x8x8", 50.0), ("4x8x8_twisted", 69.6)],
)
def test_published_bounds_of_all_to_all(text: str, bound: float) -> None:
    """Goal: healthy loads give the bounds of the reference table. Method: N / greatest load * 50 GB/s, even split."""
    torus = torus_of_shape(parse_shape(text))
    for greatest in (even_split_loads(torus, NONE).greatest, best_healthy_load(torus)):
        assert round(torus.chips / greatest * LINK_GB_PER_S, 1) == bound


@pytest.mark.parametrize(
    ("text", "ratio"), [("4x4x4", 1.109), ("8x8x8", 1.127), ("8x8x16", 1.015), ("16x16x16", 1.107)]
)
def test_even_split_with_a_dead_switch_of_x(text: str, ratio: float) -> None:
    """Goal: the independent ratios of results_to_reproduce. Method: greatest load, dead over healthy."""
    torus, links = _numbers(text, dead_links_of_switch(parse_shape(text), 0, 5))
    found = even_split_loads(torus, links)
    assert found.unserved_pairs == 0
    assert round(found.greatest / even_split_loads(torus, NONE).greatest, 3) == ratio


@pytest.mark.parametrize("text", ["4x4x4", "4x4x8_twisted", "2x4x4"])
def test_even_split_by_all_paths(text: str) -> None:
    """Goal: the counting of paths is exact. Method: networkx lists every shortest path of every pair (irregular fault:
    no symmetry to hide behind)."""
    torus, links = _numbers(text, [((0, 0, 0), 1), ((0, 2, 1), 2), ((0, 1, 1), 0)])
    graph = nx.DiGraph()
    for channel in np.flatnonzero(torus.alive(links)).tolist():
        graph.add_edge(channel // CHANNELS_PER_CHIP, int(torus.head[channel]), channel=channel)
    load, found = np.zeros(torus.head.size), np.zeros(torus.head.size)
    sources = np.arange(0, torus.chips, 9)
    for source, target in product(sources.tolist(), range(torus.chips)):
        if source != target:
            paths = list(nx.all_shortest_paths(graph, source, target))
            for path in paths:
                for a, b in pairwise(path):
                    load[graph.edges[a, b]["channel"]] += 1.0 / len(paths)
    _even_split(torus.head, torus.alive(links), sources, np.ones(sources.size), found)
    assert np.allclose(found, load)


@pytest.mark.parametrize("text", ["4x4x4", "4x4x8", "4x8x8", "8x8x16"])
def test_dimension_order_fills_a_healthy_torus_evenly(text: str) -> None:
    """Goal: each axis carries N L / 8 everywhere. Method: that closed form, channel by channel."""
    shape = parse_shape(text)
    torus = torus_of_shape(shape)
    load = dimension_order_loads(torus, NONE).load.reshape(-1, 3, 2)
    for axis, length in enumerate(shape.dimensions):
        assert np.allclose(load[:, axis], shape.chips * length / 8)


def test_dimension_order_takes_the_other_way_round() -> None:
    """Goal: a ring cut once is passed the other way round. Method: dead link of z on 4x4x4; hops and peak by hand.

    On that ring 4 pairs cross the link the short way by one hop and now take 3; pairs two apart lose their second way.
    Every ring of z is used by 16 sources of each place: 2 + 2 extra hops per such pair, and the line carries twice.
    """
    torus, links = _numbers("4x4x4", [((1, 2, 3), 2)])
    healthy, found = dimension_order_loads(torus, NONE), dimension_order_loads(torus, links)
    assert found.unserved_pairs == 0
    assert found.greatest == 2.0 * healthy.greatest
    assert found.load.sum() - healthy.load.sum() == pytest.approx(2 * 2 * 16)
    assert not found.load[list(channels_of_link(torus, int(links[0])))].any()


def test_dimension_order_has_no_way_on_a_ring_cut_twice() -> None:
    """Goal: pairs without a route are counted, not routed through dead links. Method: switch of z on 4x4x8: the 16
    sources of each place on the ring's two halves of 4 lose each other."""
    torus, links = _numbers("4x4x8", dead_links_of_switch(parse_shape("4x4x8"), 2, 5))
    found = dimension_order_loads(torus, links)
    assert found.unserved_pairs == 16 * 2 * 4 * 4
    assert not found.load[~torus.alive(links)].any()


def test_symmetry_changes_nothing() -> None:
    """Goal: reduced sources give the loads of all. Method: a fault with symmetry, against the sum over all sources."""
    torus, links = _numbers("4x4x8", dead_links_of_switch(parse_shape("4x4x8"), 1, 3))
    load = np.zeros(torus.head.size)
    everyone = np.arange(torus.chips)
    _even_split(torus.head, torus.alive(links), everyone, np.ones(torus.chips), load)
    assert np.allclose(even_split_loads(torus, links).load, load)


@pytest.mark.parametrize(("text", "axis_load"), [("2x4x4", 32.0), ("1x2x2", 2.0), ("1x1x2", 1.0)])
def test_best_healthy_load_of_meshes(text: str, axis_load: float) -> None:
    """Goal: meshes and short axes are right. Method: N L / 4 by hand, and dimension order reaches it."""
    torus = torus_of_shape(parse_shape(text))
    assert best_healthy_load(torus) == axis_load == dimension_order_loads(torus, NONE).greatest
