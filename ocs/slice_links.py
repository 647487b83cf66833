"""The chip links that circuits make, and the graph of a slice from its circuits and the copper inside its cubes."""

from __future__ import annotations

import networkx as nx

from ocs.circuits import Circuits
from ocs.wiring import Side, dimension_of_switch, face_chip
from topology.cube import CUBE_CHIPS, inner_links
from topology.placement import Placement
from topology.pod import CUBE_EDGE_CHIPS, POSITIONS_PER_FACE, Grid, places_of

Chip = tuple[int, int, int, int]
"""A chip of the pod: (cube, x, y, z), coordinates within the cube."""


def link_of_circuit(switch: int, plus: int, minus: int) -> tuple[Chip, Chip]:
    """The two chips that a circuit joins."""
    dimension, position = dimension_of_switch(switch), switch % POSITIONS_PER_FACE
    return (plus, *face_chip(dimension, Side.PLUS, position)), (minus, *face_chip(dimension, Side.MINUS, position))


def physical_graph(cubes: tuple[int, ...], circuits: Circuits) -> nx.Graph[Chip]:
    """The graph of all chips of these cubes, joined by the links inside each cube and by the circuits."""
    graph: nx.Graph[Chip] = nx.Graph()
    for cube in cubes:
        graph.add_nodes_from((cube, x, y, z) for x, y, z in places_of(CUBE_CHIPS))
        graph.add_edges_from(((cube, *link.low), (cube, *link.high)) for link in inner_links())
    graph.add_edges_from(link_of_circuit(*row) for row in circuits.tolist())
    return graph


def slice_coordinates(placement: Placement) -> dict[Chip, Grid]:
    """For every chip of a placement of whole cubes, its coordinates in the slice."""
    places = places_of(placement.shape.box)
    return {
        (cube, x, y, z): (
            CUBE_EDGE_CHIPS * place[0] + x,
            CUBE_EDGE_CHIPS * place[1] + y,
            CUBE_EDGE_CHIPS * place[2] + z,
        )
        for cube, place in zip(placement.cubes, places, strict=True)
        for x, y, z in places_of(CUBE_CHIPS)
    }


def graph_of_circuits(placement: Placement, circuits: Circuits) -> nx.Graph[Grid]:
    """The graph of a slice in its own coordinates, from its circuits and the links inside its cubes."""
    at = slice_coordinates(placement)
    graph: nx.Graph[Grid] = nx.Graph()
    graph.add_nodes_from(at.values())
    graph.add_edges_from((at[one], at[other]) for one, other in physical_graph(placement.cubes, circuits).edges)
    return graph
