"""What dead switches and dead ends touch."""

from __future__ import annotations

import numpy as np

from ocs.circuits import circuits_of
from ocs.faults import (
    circuits_on_end,
    circuits_on_switch,
    cubes_with_dead_ends,
    dead_circuits,
    ends_of_circuits,
    slices_on_end,
    slices_on_switch,
)
from ocs.slice_links import graph_of_circuits, link_of_circuit, slice_coordinates
from topology.fabric import Fabric
from topology.placement import joined, place
from topology.pod import POD_GENERATIONS
from topology.shape import parse_shape

V4 = POD_GENERATIONS["v4"]


def test_a_dead_switch_takes_one_circuit_per_cube() -> None:
    """Goal: every slice of n cubes loses n links of one dimension. Method: all 48 switches, on a twisted slice."""
    held = joined(parse_shape("4x8x8_twisted"), [9, 2, 60, 33])
    circuits = circuits_of(held)
    at = slice_coordinates(held)
    for switch in range(48):
        lost = circuits_on_switch(circuits, switch)
        assert len(lost) == 4
        chips = [(at[one], at[other]) for one, other in (link_of_circuit(*row) for row in lost.tolist())]
        graph = graph_of_circuits(held, circuits)
        assert all(graph.has_edge(*pair) for pair in chips)
        dead = np.zeros(48, dtype=np.bool_)
        dead[switch] = True
        assert np.array_equal(dead_circuits(circuits, dead, np.zeros(96 * 64, dtype=np.bool_)), lost)


def test_an_8x4x4_slice_shows_two_links_four_hops_apart() -> None:
    """Goal: the published look of one dead switch (MATE, section 5.4). Method: the two links that are cut."""
    held = joined(parse_shape("4x4x8"), [0, 1])
    at = slice_coordinates(held)
    lost = circuits_on_switch(circuits_of(held), 2 * 16 + 5)
    ends = sorted(at[link_of_circuit(*row)[1]] for row in lost.tolist())
    assert ends == [(1, 1, 0), (1, 1, 4)]


def test_each_end_carries_one_circuit() -> None:
    """Goal: an optical end takes one circuit, of the slice that holds its cube. Method: all ends of two cubes."""
    circuits = circuits_of(joined(parse_shape("4x4x8"), [3, 7]))
    used = ends_of_circuits(circuits)
    assert sorted(used.ravel().tolist()) == [*range(3 * 96, 4 * 96), *range(7 * 96, 8 * 96)]
    for row, numbers in zip(circuits.tolist(), used.tolist(), strict=True):
        for number in numbers:
            assert circuits_on_end(circuits, number).tolist() == [row]
    assert len(circuits_on_end(circuits, 0)) == 0
    dead = np.zeros(96 * 64, dtype=np.bool_)
    dead[[0, *used[5].tolist()]] = True
    assert dead_circuits(circuits, np.zeros(48, dtype=np.bool_), dead).tolist() == [circuits[5].tolist()]


def test_which_slices_are_touched() -> None:
    """Goal: a switch touches every slice with light, an end the one on its cube. Method: three slices."""
    free = np.ones(1024, dtype=np.bool_)
    small = place(Fabric.RECONFIGURABLE, V4, parse_shape("2x4x4"), free)
    static = place(Fabric.STATIC_ALIGNED, V4, parse_shape("4x4x8"), free)
    assert small is not None
    assert static is not None
    held = {
        4: joined(parse_shape("4x4x8"), [3, 7]),
        2: joined(parse_shape("4x4x4"), [5]),
        9: small,
    }
    assert slices_on_switch(held) == [2, 4]
    assert slices_on_end(held, 7 * 96 + 11) == [4]
    assert slices_on_end(held, 5 * 96) == [2]
    assert slices_on_end(held, 0) == []
    assert slices_on_switch({1: static}) == slices_on_end({1: static}, 0) == []


def test_cubes_to_avoid() -> None:
    """Goal: placement can avoid cubes with dead ends. Method: mark two ends and look at the mask."""
    assert np.flatnonzero(cubes_with_dead_ends(64, [5 * 96 + 95, 7 * 96])).tolist() == [5, 7]
    assert not cubes_with_dead_ends(64, []).any()
