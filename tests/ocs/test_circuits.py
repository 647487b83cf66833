"""Slices formed by circuits are the torus asked for; plans lead from old circuits to new ones over matchings only."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ocs.circuits import (
    Circuits,
    carry_out,
    circuits_of,
    dark_switches,
    no_circuits,
    plan_reconfiguration,
)
from ocs.slice_links import graph_of_circuits
from ocs.switch import DARK, Switch
from ocs.wiring import Side
from topology.fabric import Fabric
from topology.placement import Placement, hosts_of_cubes, joined, place
from topology.pod import POD_GENERATIONS
from topology.shape import Shape, parse_shape
from topology.torus import slice_graph

V4 = POD_GENERATIONS["v4"]


def shapes_up_to(cubes: int) -> list[Shape]:
    """All shapes of at most so many whole cubes, twisted ones included."""
    found = []
    for x, y, z in product(range(1, cubes + 1), repeat=3):
        if x <= y <= z and x * y * z <= cubes:
            plain = Shape(4 * x, 4 * y, 4 * z)
            found.append(plain)
            if plain.is_twistable:
                found.append(Shape(4 * x, 4 * y, 4 * z, True))
    return found


SMALL = shapes_up_to(8)
LARGE = [
    parse_shape(t) for t in ("8x8x12", "4x12x12", "8x8x16", "8x8x16_twisted", "4x4x64", "8x12x16", "8x16x16_twisted")
]


def torus_by_definition(shape: Shape) -> set[frozenset[tuple[int, int, int]]]:
    """The links of a slice by definition: +1 along an axis, modulo, with the shift of the twist on the wrap."""
    links = set()
    x_shift, y_shift = (0, 0), 0
    if shape.twisted:
        x_shift = (0, shape.x) if shape.y == shape.x else (shape.x, shape.x)
        y_shift = shape.x if shape.y == shape.x else 0
    for x, y, z in product(range(shape.x), range(shape.y), range(shape.z)):
        if x + 1 < shape.x:
            links.add(frozenset([(x, y, z), (x + 1, y, z)]))
        else:
            links.add(frozenset([(x, y, z), (0, (y + x_shift[0]) % shape.y, (z + x_shift[1]) % shape.z)]))
        if y + 1 < shape.y:
            links.add(frozenset([(x, y, z), (x, y + 1, z)]))
        else:
            links.add(frozenset([(x, y, z), (x, 0, (z + y_shift) % shape.z)]))
        links.add(frozenset([(x, y, z), (x, y, (z + 1) % shape.z)]))
    return links


def shuffled_placement(shape: Shape, seed: int) -> Placement:
    """A placement on cubes from anywhere in the pod, in any order."""
    return joined(shape, np.random.default_rng(seed).permutation(64)[: shape.cubes].tolist())


@pytest.mark.parametrize("shape", [*SMALL, *LARGE], ids=str)
def test_circuits_and_copper_make_the_torus_asked_for(shape: Shape) -> None:
    """Goal: a formed slice is the torus asked for. Method: build the graph from circuits and in-rack links on
    shuffled cubes; compare it with the graph of the shape and with the direct definition, edge by edge."""
    placement = shuffled_placement(shape, seed=shape.chips)
    circuits = circuits_of(placement)
    formed = graph_of_circuits(placement, circuits)
    assert nx.utils.graphs_equal(formed, slice_graph(shape))
    assert {frozenset(edge) for edge in formed.edges} == torus_by_definition(shape)
    assert len(circuits) == 48 * shape.cubes
    assert np.array_equal(np.bincount(circuits[:, 0], minlength=48), np.full(48, shape.cubes))


def test_small_shapes_are_all_there() -> None:
    """Goal: the exhaustive list is exhaustive. Method: count sorted factor triples of 1 to 8, and the twisted ones."""
    assert len([shape for shape in SMALL if not shape.twisted]) == 12
    assert [str(shape) for shape in SMALL if shape.twisted] == ["4x4x8_twisted", "4x8x8_twisted"]


def test_slices_without_light_have_no_circuits() -> None:
    """Goal: static slices and slices below a cube use no switch. Method: place each and count."""
    up = np.ones(1024, dtype=np.bool_)
    for fabric, text in product(Fabric, ("2x4x4", "8x8x8")):
        placement = place(fabric, V4, parse_shape(text), up)
        assert placement is not None
        lit = fabric is Fabric.RECONFIGURABLE and text == "8x8x8"
        assert len(circuits_of(placement)) == (48 * 8 if lit else 0)


def test_a_plan_keeps_what_stays() -> None:
    """Goal: only what changes is touched. Method: replace one cube of sixteen: its six faces change."""
    old = circuits_of(joined(parse_shape("8x8x16"), range(16)))
    new = circuits_of(joined(parse_shape("8x8x16"), [40, *range(1, 16)]))
    plan = plan_reconfiguration(old, new)
    assert (len(plan.cut), len(plan.make), len(plan.keep)) == (96, 96, 48 * 16 - 96)
    assert plan.changes_per_switch.tolist() == [4] * 48
    unchanged = plan_reconfiguration(old, old)
    assert (len(unchanged.cut), len(unchanged.make), len(unchanged.keep)) == (0, 0, 48 * 16)
    assert {tuple(r) for r in plan.keep.tolist()} == {tuple(r) for r in old.tolist()} & {tuple(r) for r in new.tolist()}


def test_plans_that_can_not_be_carried_out() -> None:
    """Goal: an end is never in two circuits. Method: plans that cut nothing there, or join ends that are taken."""
    one = np.array([[0, 1, 2]], dtype=np.int64)
    dark = dark_switches(4)
    lit = carry_out(plan_reconfiguration(no_circuits(), one), dark)
    assert (dark == DARK).all()
    assert lit[0, 1] == 2
    with pytest.raises(ValueError, match="cut a circuit that is not there"):
        carry_out(plan_reconfiguration(one, no_circuits()), dark)
    with pytest.raises(ValueError, match="keep a circuit that is not there"):
        carry_out(plan_reconfiguration(one, one), dark)
    for make, fault in (
        ([[0, 1, 3]], r"\+ end that"),
        ([[0, 3, 2]], "- end that"),
        ([[5, 0, 1], [5, 0, 2]], r"\+ end twice"),
    ):
        with pytest.raises(ValueError, match=fault):
            carry_out(plan_reconfiguration(no_circuits(), np.array(make, dtype=np.int64)), lit)


class PodOfCircuits(RuleBasedStateMachine):
    """Slices come, move and go on a pod of ten cubes; the switches must be matchings after each plan."""

    def __init__(self) -> None:
        super().__init__()
        self.matching = dark_switches(10)
        self.held: dict[int, tuple[Placement, Circuits]] = {}
        self.switches = [Switch(cubes=10, ports=28) for _ in range(48)]
        self.counter = 0

    def free_cubes(self) -> list[int]:
        held = {cube for placement, _ in self.held.values() for cube in placement.cubes}
        return [cube for cube in range(10) if cube not in held]

    def apply(self, old: Circuits, new: Circuits) -> None:
        plan = plan_reconfiguration(old, new)
        self.matching = carry_out(plan, self.matching)
        for switch, plus, _ in plan.cut.tolist():
            self.switches[switch] = self.switches[switch].disconnect(plus)
        for switch, plus, minus in plan.make.tolist():
            self.switches[switch] = self.switches[switch].connect((Side.MINUS, minus), (Side.PLUS, plus))

    @rule(data=st.data())
    @precondition(lambda self: len(self.free_cubes()) > 0)
    def start(self, data: st.DataObject) -> None:
        free = self.free_cubes()
        shape = data.draw(st.sampled_from([shape for shape in SMALL if shape.cubes <= len(free)]))
        placement = joined(shape, data.draw(st.permutations(free))[: shape.cubes])
        circuits = circuits_of(placement)
        self.apply(no_circuits(), circuits)
        self.held[self.counter] = (placement, circuits)
        self.counter += 1

    @rule(data=st.data())
    @precondition(lambda self: bool(self.held))
    def stop(self, data: st.DataObject) -> None:
        _, circuits = self.held.pop(data.draw(st.sampled_from(sorted(self.held))))
        self.apply(circuits, no_circuits())

    @rule(data=st.data())
    @precondition(lambda self: bool(self.held) and len(self.free_cubes()) > 0)
    def replace_a_cube(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.held)))
        placement, old = self.held[number]
        cubes = list(placement.cubes)
        cubes[data.draw(st.integers(0, len(cubes) - 1))] = data.draw(st.sampled_from(self.free_cubes()))
        moved = joined(placement.shape, cubes)
        assert moved.hosts == hosts_of_cubes(cubes)
        new = circuits_of(moved)
        self.apply(old, new)
        self.held[number] = (moved, new)

    @invariant()
    def switches_are_matchings(self) -> None:
        for switch, row in zip(self.switches, self.matching.tolist(), strict=True):
            lit = [minus for minus in row if minus != DARK]
            assert len(lit) == len(set(lit))
            assert list(switch.minus_of_plus) == row

    @invariant()
    def all_slices_stand_and_are_air_gapped(self) -> None:
        rows = [tuple(row) for _, circuits in self.held.values() for row in circuits.tolist()]
        assert np.count_nonzero(self.matching != DARK) == len(rows) == len(set(rows))
        for placement, circuits in self.held.values():
            assert (self.matching[circuits[:, 0], circuits[:, 1]] == circuits[:, 2]).all()
            assert set(circuits[:, 1:].ravel().tolist()) == set(placement.cubes)


TestPodOfCircuits = PodOfCircuits.TestCase
TestPodOfCircuits.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
