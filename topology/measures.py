"""Distances and cuts of a slice: diameter, mean hops, bisection; exact."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx

from topology.pod import Grid
from topology.shape import Shape
from topology.torus import Wraps, slice_graph


@dataclass(frozen=True, kw_only=True, slots=True)
class HopCounts:
    """Shortest paths of a slice: `diameter` in hops and `mean_hops` over distinct pairs of chips (0 for one chip)."""

    diameter: int
    mean_hops: float


def hop_counts(shape: Shape, wraps: Wraps | None = None) -> HopCounts:
    """Diameter and mean hops over distinct pairs.

    Without a twist the distance is a sum over axes, so both follow from one axis at a time. A twisted torus looks the
    same from every chip, so one breadth-first search is enough.
    """
    if shape.twisted:
        lengths = nx.single_source_shortest_path_length(slice_graph(shape, wraps), (0, 0, 0))
        return HopCounts(diameter=max(lengths.values()), mean_hops=sum(lengths.values()) / (shape.chips - 1))
    diameter, mean_over_all = 0, 0.0
    for length, ring in zip(shape.dimensions, shape.wraps if wraps is None else wraps, strict=True):
        hops = [_axis_hops(length, ring, a, b) for a in range(length) for b in range(length)]
        diameter += max(hops)
        mean_over_all += sum(hops) / length**2
    return HopCounts(
        diameter=diameter, mean_hops=mean_over_all * shape.chips / (shape.chips - 1) if shape.chips > 1 else 0.0
    )


def _axis_hops(length: int, ring: bool, a: int, b: int) -> int:
    """Hops between two places of one axis."""
    along = abs(a - b)
    return min(along, length - along) if ring else along


def bisection_links(shape: Shape, wraps: Wraps | None = None) -> int:
    """Fewest links that a plane across one axis cuts when it halves the slice (an axis of odd length: as nearly as it
    goes).

    Links count once, whatever their two directions carry; 0 for a single chip. For a twisted torus the wraparound
    links that the twist carries across the plane count too, and the figure is an upper bound of the least cut over
    all halvings.
    """
    graph = slice_graph(shape, wraps)
    cuts = [_plane_cut(graph, axis, length // 2) for axis, length in enumerate(shape.dimensions) if length > 1]
    return min(cuts, default=0)


def _plane_cut(graph: nx.Graph[Grid], axis: int, half: int) -> int:
    """Links between chips below and not below `half` along `axis`."""
    return sum((a[axis] < half) != (b[axis] < half) for a, b in graph.edges)
