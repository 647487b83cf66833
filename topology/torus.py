"""The graph of a slice from its shape alone: mesh, torus or twisted torus of chips.

Nodes are chip coordinates (x, y, z) in the slice. On an axis of 2 the neighbour and the wraparound are the same chip
and the graph has one edge; on an axis of 1 there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topology.pod import DIMENSIONS, Grid, places_of
from topology.shape import Shape

if TYPE_CHECKING:
    import networkx as nx

Wraps = tuple[bool, bool, bool]
Shifts = tuple[Grid, Grid, Grid]

ALL_WRAPS: Wraps = (True, True, True)
NO_WRAPS: Wraps = (False, False, False)
NO_SHIFTS: Shifts = ((0, 0, 0), (0, 0, 0), (0, 0, 0))


def step_plus(at: Grid, axis: int, dimensions: Grid, shifts: Shifts = NO_SHIFTS) -> Grid:
    """The place one step up `axis` from `at` on a (twisted) torus: past the end comes the start, moved by the axis's
    shift.

    Works in chips and, with shifts in cubes, in cubes.
    """
    to = list(at)
    to[axis] += 1
    if to[axis] == dimensions[axis]:
        to[axis] = 0
        for other in range(DIMENSIONS):
            to[other] = (to[other] + shifts[axis][other]) % dimensions[other]
    return to[0], to[1], to[2]


def torus_graph(dimensions: Grid, wraps: Wraps = ALL_WRAPS, shifts: Shifts = NO_SHIFTS) -> nx.Graph[Grid]:
    """The graph of any mesh or torus: `wraps` says which axes close to rings, `shifts` how these are twisted."""
    import networkx as nx  # here: a run needs shapes and placements, not graphs, and starts the sooner

    graph: nx.Graph[Grid] = nx.Graph()
    places = places_of(dimensions)
    graph.add_nodes_from(places)
    for at in places:
        for axis in range(DIMENSIONS):
            if at[axis] + 1 < dimensions[axis] or wraps[axis]:
                to = step_plus(at, axis, dimensions, shifts)
                if to != at:
                    graph.add_edge(at, to)
    return graph


def slice_graph(shape: Shape, wraps: Wraps | None = None) -> nx.Graph[Grid]:
    """The graph of a slice; `wraps` defaults to those of a slice formed by circuits (static wiring may lack some)."""
    return torus_graph(shape.dimensions, shape.wraps if wraps is None else wraps, shape.wrap_shifts)
