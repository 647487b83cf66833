"""Bounds of collectives: the reference table exactly, and the same by following every route of every pair."""

from __future__ import annotations

from collections import Counter
from itertools import product

import networkx as nx
import numpy as np
import pytest

from topology.bounds import (
    LINK_OF_GENERATION,
    MEASURED_ALL_TO_ALL,
    Collective,
    all_to_all_bytes_per_s,
    measure_boxes,
    measure_slice,
    twist_gain,
)
from topology.measures import distances_from_origin, mean_hops_to_all
from topology.pod import POD_GENERATIONS
from topology.shape import Shape, parse_shape
from topology.torus import Wraps, slice_graph, torus_graph
from workloads.catalogue.tpus import TPU_V4
from workloads.collectives import SliceNetwork, all_gather_s, all_reduce_s, all_to_all_s, hops

# shape, diameter, mean hops over all chips, bound in GB/s: reference table of all-to-all at 50 GB/s links
TABLE = [
    ("4x4x4", 6, 3.0, 100.0),
    ("4x4x8", 8, 4.0, 50.0),
    ("4x4x8_twisted", 6, 3.4375, 87.3),
    ("4x8x8", 10, 5.0, 50.0),
    ("4x8x8_twisted", 6, 4.3125, 69.6),
    ("8x8x8", 12, 6.0, 50.0),
]


@pytest.mark.parametrize(("text", "diameter", "mean", "gb_per_s"), TABLE)
def test_reference_table(text: str, diameter: int, mean: float, gb_per_s: float) -> None:
    """Goal: the bounds are the derived ones, exactly. Method: the reference table, and mean hops over links."""
    shape = parse_shape(text)
    measures = measure_slice(shape)
    assert measures.diameter == diameter
    assert mean_hops_to_all(shape) == mean
    assert round(measures.all_to_all_bytes_per_s / 1e9, 1) == gb_per_s
    if len(set(shape.dimensions)) == 1 or shape.twisted:
        assert measures.all_to_all_bytes_per_s == pytest.approx(300e9 / mean, rel=1e-15)


def test_gains_of_the_twist_beside_the_measured_ones() -> None:
    """Goal: 1.745 and 1.39, of which 0.93 to 0.94 was measured. Method: both shapes, and the stated efficiencies."""
    gains = {str(shape): twist_gain(shape) for shape in (parse_shape("4x4x8"), parse_shape("4x8x8"))}
    assert round(gains["4x4x8"], 3) == 1.745
    assert round(gains["4x8x8"], 2) == 1.39
    measured = {each.shape: each for each in MEASURED_ALL_TO_ALL}
    assert measured["4x4x8_twisted"].twist_gain / gains["4x4x8"] == pytest.approx(0.934, abs=0.0005)
    assert measured["4x8x8_twisted"].twist_gain / gains["4x8x8"] == pytest.approx(0.942, abs=0.0005)
    for each in MEASURED_ALL_TO_ALL:
        if each.bytes_per_s == each.bytes_per_s:
            share = each.bytes_per_s / all_to_all_bytes_per_s(parse_shape(each.shape))
            assert 0.75 <= share <= 0.80
    assert 1.63 * 40e9 / all_to_all_bytes_per_s(parse_shape("4x4x8_twisted")) == pytest.approx(0.747, abs=0.0005)


WRAPS: list[Wraps] = [(x, y, z) for x in (False, True) for y in (False, True) for z in (False, True)]


def _greatest_load(lengths: tuple[int, int, int], wraps: Wraps) -> float:
    """Greatest load of a link, one way, where every chip sends 1 in all: follow x, then y, then z for every pair, half
    each way round where both are as short."""
    chips = list(product(*map(range, lengths)))
    load: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for start, end in product(chips, chips):
        at = list(start)
        for axis, length in enumerate(lengths):
            up, down = (end[axis] - start[axis]) % length, (start[axis] - end[axis]) % length
            closed = wraps[axis] and length > 2
            ways = [(1, up), (-1, down)] if closed else [(1, up) if end[axis] >= start[axis] else (-1, down)]
            shortest = min(count for _, count in ways)
            ways = [way for way in ways if way[1] == shortest]
            for step, count in ways:
                place = list(at)
                for _ in range(count):
                    before = tuple(place)
                    place[axis] = (place[axis] + step) % length
                    load[before, tuple(place)] += 1 / (len(ways) * len(chips))  # type: ignore[assignment]
            at[axis] = end[axis]
    return max(load.values(), default=0.0)


@pytest.mark.parametrize("lengths", [(1, 1, 2), (1, 2, 2), (2, 2, 2), (2, 4, 4), (1, 3, 5), (3, 4, 4), (2, 3, 4)])
def test_all_to_all_by_following_every_route(lengths: tuple[int, int, int]) -> None:
    """Goal: the closed form holds on meshes, tori and boxes that wrap on some axes, axes of 1 and 2 included.
    Method: every wrap pattern; send every pair along its routes and take the greatest load."""
    for wraps in WRAPS:
        rate = measure_boxes([lengths], [wraps]).all_to_all_bytes_per_s[0]
        assert rate == pytest.approx(50e9 / _greatest_load(lengths, wraps))


@pytest.mark.parametrize("text", ["4x4x4", "4x4x8_twisted", "4x8x8_twisted"])
def test_even_split_loads_all_links_alike(text: str) -> None:
    """Goal: mean hops over links is reached, not only a bound. Method: networkx's edge betweenness over all pairs."""
    shape = parse_shape(text)
    loads = nx.edge_betweenness_centrality(slice_graph(shape), normalized=False)
    assert min(loads.values()) == pytest.approx(max(loads.values()))
    assert 50e9 * shape.chips / max(loads.values()) == pytest.approx(all_to_all_bytes_per_s(shape))


@pytest.mark.parametrize("text", ["4x4x8", "4x4x8_twisted", "4x8x8_twisted", "8x8x16_twisted", "8x16x16_twisted"])
def test_distances_of_the_lattice(text: str) -> None:
    """Goal: distances from the lattice are those of the graph. Method: breadth-first search of networkx."""
    shape = parse_shape(text)
    far = nx.single_source_shortest_path_length(slice_graph(shape), (0, 0, 0))
    assert {at: int(hops) for at, hops in np.ndenumerate(distances_from_origin(shape))} == far


def test_many_boxes_at_once_are_the_graphs() -> None:
    """Goal: one vectorised call is right for every box. Method: all boxes up to 4x4x5, every wrap pattern, against
    networkx: diameter, mean hops, links across the middle, and links of the worst-placed chip."""
    boxes = [(x, y, z) for x, y, z in product((1, 2, 4), (2, 3), (1, 4, 5))]
    cases = [(box, wraps) for box in boxes for wraps in WRAPS]
    found = measure_boxes([box for box, _ in cases], [wraps for _, wraps in cases])
    for i, (box, wraps) in enumerate(cases):
        graph = torus_graph(box, wraps)
        assert found.diameter[i] == nx.diameter(graph)
        assert found.mean_hops[i] == pytest.approx(nx.average_shortest_path_length(graph))
        least = min(degree for _, degree in graph.degree)
        assert found.nearest_neighbour_bytes_per_s[i] == least * 50e9
        cuts = [
            sum((a[axis] < length // 2) != (b[axis] < length // 2) for a, b in graph.edges)
            for axis, length in enumerate(box)
            if length > 1
        ]
        assert found.bisection_links[i] == min(cuts)


@pytest.mark.parametrize("text", ["4x4x4", "4x4x8", "8x8x16", "2x4x4", "1x2x2"])
def test_the_token_kernel_counts_with_the_same_collectives(text: str) -> None:
    """Goal: two rooms agree. Method: times of the cost model at 45 GB/s links beside the bounds, whole and small."""
    shape = parse_shape(text)
    measures = measure_slice(shape, None, TPU_V4.link_bytes_per_s, TPU_V4.hop_s)
    network = SliceNetwork(shape.dimensions, shape.wraps)
    for size in (1e9, 8.0):
        bytes_ = np.array([size])
        assert all_gather_s(TPU_V4, network, bytes_)[0] == pytest.approx(measures.time_s(Collective.ALL_GATHER, size))
        assert all_reduce_s(TPU_V4, network, bytes_)[0] == pytest.approx(measures.time_s(Collective.ALL_REDUCE, size))
        own_part = np.array([size * shape.chips])
        assert all_to_all_s(TPU_V4, network, own_part)[0] == pytest.approx(measures.time_s(Collective.ALL_TO_ALL, size))
    assert hops(TPU_V4, network) == measures.diameter


def test_the_published_all_reduce_of_a_pod() -> None:
    """Goal: links in use are those of the cloud page: 1.1 PB/s for a v4 pod. Method: an all-reduce moves every byte
    twice over each chip's links at 45 GB/s."""
    measures = measure_slice(parse_shape("16x16x16"), link_bytes_per_s=45e9)
    busy = 2 * measures.ring_all_reduce_bytes_per_s * (4095 / 4096) * 4096
    assert busy / 1e15 == pytest.approx(1.1, abs=0.01)


def test_wraparound_doubles_rings_and_cuts() -> None:
    """Goal: what the paper says of wraparound. Method: 8x8x8 with and without; some axes only lie between."""
    torus, mesh, some = (
        measure_slice(parse_shape("8x8x8"), wraps) for wraps in (None, (False,) * 3, (True, False, False))
    )
    assert torus.ring_all_reduce_bytes_per_s == 2 * mesh.ring_all_reduce_bytes_per_s
    assert torus.bisection_links == 2 * mesh.bisection_links
    assert torus.all_to_all_bytes_per_s == 2 * mesh.all_to_all_bytes_per_s == 2 * some.all_to_all_bytes_per_s
    assert some.ring_all_reduce_bytes_per_s == pytest.approx(4 / 3 * mesh.ring_all_reduce_bytes_per_s)


def test_latency_floors_and_single_chips() -> None:
    """Goal: small messages cost hops, one chip costs nothing. Method: floors of 4x4x8, and 1x1x1."""
    measures = measure_slice(parse_shape("4x4x8"))
    floors = [measures.floor_s(each) for each in Collective]
    assert floors == pytest.approx([8e-6, 16e-6, 8e-6, 8e-6, 1e-6])
    assert measures.time_s(Collective.ALL_REDUCE, 8.0) == 16e-6
    assert measures.time_s(Collective.ALL_TO_ALL, 50e9) == 1.0
    assert measures.time_s(Collective.ALL_TO_ALL, 0.0) == 0.0
    alone = measure_slice(parse_shape("1x1x1"))
    assert (alone.diameter, alone.mean_hops, alone.bisection_links) == (0, 0.0, 0)
    assert all(alone.time_s(each, 1e9) == 0.0 for each in Collective)


def test_a_twist_needs_its_rings() -> None:
    """Goal: a twisted mesh does not exist. Method: open one axis."""
    with pytest.raises(ValueError, match="all three of its axes"):
        measure_slice(Shape(4, 4, 8, True), (True, True, False))


def test_every_generation_has_a_link() -> None:
    """Goal: pods and links name the same generations. Method: compare keys."""
    assert LINK_OF_GENERATION.keys() == POD_GENERATIONS.keys()
