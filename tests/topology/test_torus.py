"""Graphs of slices against direct definitions, and the table of distances that nobody here produced."""

from __future__ import annotations

from itertools import combinations, product

import networkx as nx
import pytest

from topology.measures import bisection_links, hop_counts
from topology.shape import SUB_CUBE_SHAPES, Shape, parse_shape
from topology.torus import NO_WRAPS, slice_graph, torus_graph

# shape, mean hops over distinct pairs, diameter, bisection links (None: not published)
TABLE = [
    ("4x4x4", 3.0476, 6, 32),
    ("4x4x8", 4.0315, 8, 32),
    ("4x8x8", 5.0196, 10, 64),
    ("8x8x8", 6.0117, 12, 128),
    ("8x8x16", 8.0078, 16, 128),
    ("8x16x16", 10.0049, 20, 256),
    ("16x16x16", 12.0029, 24, 512),
    ("4x4x64", 18.0176, 36, 32),
    ("12x16x16", 11.0036, 22, 384),
    ("16x16x24", 14.0023, 28, 512),
    ("4x4x8_twisted", 3.4646, 6, None),
    ("4x8x8_twisted", 4.3294, 6, None),
    ("8x8x16_twisted", 6.9756, 12, None),
    ("8x16x16_twisted", 8.7230, 12, None),
]


@pytest.mark.parametrize(("text", "mean", "diameter", "bisection"), TABLE)
def test_published_table(text: str, mean: float, diameter: int, bisection: int | None) -> None:
    """Goal: distances and cuts are the independent ones. Method: the table of tori, to its four digits."""
    shape = parse_shape(text)
    hops = hop_counts(shape)
    assert round(hops.mean_hops, 4) == mean
    assert hops.diameter == diameter
    if bisection is not None:
        assert bisection_links(shape) == bisection


@pytest.mark.parametrize(
    "text", ["4x4x4", "4x4x8", "4x4x8_twisted", "4x8x8_twisted", "4x4x12", "2x4x4", "1x2x2", "1x1x1"]
)
def test_distances_by_all_pairs(text: str) -> None:
    """Goal: the shortcuts (sums over axes, one search) are exact. Method: networkx over all pairs of the graph."""
    shape = parse_shape(text)
    lengths = dict(nx.all_pairs_shortest_path_length(slice_graph(shape)))
    hops = [far for row in lengths.values() for far in row.values()]
    assert hop_counts(shape).diameter == max(hops)
    assert hop_counts(shape).mean_hops == pytest.approx(sum(hops) / max(1, shape.chips * (shape.chips - 1)))


def test_partly_wrapped_distances_by_all_pairs() -> None:
    """Goal: a slice of a static pod, with rings on some axes, is measured right. Method: all pairs of 4x4x8, z open."""
    shape, wraps = parse_shape("4x4x8"), (True, True, False)
    lengths = dict(nx.all_pairs_shortest_path_length(slice_graph(shape, wraps)))
    hops = [far for row in lengths.values() for far in row.values()]
    assert hop_counts(shape, wraps).mean_hops == pytest.approx(sum(hops) / (128 * 127))
    assert hop_counts(shape, wraps).diameter == max(hops) == 2 + 2 + 7
    assert bisection_links(shape, wraps) == 16


def _is_ring_neighbour(a: tuple[int, ...], b: tuple[int, ...], lengths: tuple[int, ...]) -> bool:
    """Definition of a torus: one coordinate differs, by one modulo the length."""
    apart = [(x - y) % n for x, y, n in zip(a, b, lengths, strict=True)]
    moved = [(d, n) for d, n in zip(apart, lengths, strict=True) if d]
    return len(moved) == 1 and moved[0][0] in (1, moved[0][1] - 1)


@pytest.mark.parametrize(
    "lengths", [(1, 1, 1), (1, 1, 2), (1, 2, 2), (2, 2, 2), (1, 3, 4), (2, 3, 5), (4, 4, 4), (1, 1, 5)]
)
def test_any_torus_by_its_definition(lengths: tuple[int, int, int]) -> None:
    """Goal: axes of 1 and 2 are right too. Method: test every pair of chips against the definition of a torus."""
    graph = torus_graph(lengths)
    for a, b in combinations(product(*map(range, lengths)), 2):
        assert graph.has_edge(a, b) == _is_ring_neighbour(a, b, lengths)
    assert nx.number_of_selfloops(graph) == 0


@pytest.mark.parametrize("dimensions", SUB_CUBE_SHAPES)
def test_less_than_a_cube_is_a_mesh(dimensions: tuple[int, int, int]) -> None:
    """Goal: no wraparound below a cube. Method: compare with networkx's grid graph."""
    mesh = nx.grid_graph(tuple(reversed(dimensions)))
    assert nx.utils.edges_equal(slice_graph(Shape(*dimensions)).edges, mesh.edges)
    assert nx.utils.graphs_equal(slice_graph(Shape(*dimensions)), slice_graph(Shape(*dimensions), NO_WRAPS))


@pytest.mark.parametrize("text", ["4x4x8_twisted", "4x8x8_twisted", "8x8x16_twisted", "8x16x16_twisted"])
def test_a_twist_by_another_shift_is_worse(text: str) -> None:
    """Goal: the shift is the right one. Method: any other whole-cube shift gives no smaller mean distance."""
    shape = parse_shape(text)
    best = hop_counts(shape).mean_hops
    k = shape.x
    for shift in range(0, 2 * k, 4):
        x_shift = (0, shift if shape.y > shape.x else 0, shift)
        y_shift = (0, 0, shift if shape.y == shape.x else 0)
        graph = torus_graph(shape.dimensions, shape.wraps, (x_shift, y_shift, (0, 0, 0)))
        lengths = nx.single_source_shortest_path_length(graph, (0, 0, 0))
        mean = sum(lengths.values()) / (shape.chips - 1)
        assert mean > best + 1e-9 if shift != k else mean == pytest.approx(best)


def test_links_of_a_torus_count_three_per_chip() -> None:
    """Goal: a slice has 3 links per chip, twisted or not. Method: count edges and degrees."""
    for text in ("4x4x4", "4x4x8", "4x4x8_twisted", "4x8x8_twisted", "8x8x16_twisted"):
        shape = parse_shape(text)
        graph = slice_graph(shape)
        assert graph.number_of_edges() == 3 * shape.chips
        assert {degree for _, degree in graph.degree} == {6}
