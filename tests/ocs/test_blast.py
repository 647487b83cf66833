"""Blast radius: every part of small pods against a slow graph whose links name what they depend on."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest

from ocs.blast import BlastRadius, Part, blast_radius, parts_of_pod
from ocs.circuits import circuits_of
from ocs.repatching import repatch_bad_ports, switches_of_pod
from ocs.slice_links import physical_graph, slice_coordinates
from ocs.wiring import Side, end_of_number
from topology.cube import host_of_chip, in_rack_links
from topology.errors import InputError
from topology.fabric import Fabric
from topology.placement import Placement, joined, place
from topology.pod import POD_GENERATIONS, Grid, Pod, places_of
from topology.routing.faults import DeadLink, dead_links_of_switch
from topology.shape import Shape, parse_shape
from topology.torus import slice_graph

Node = tuple[int, int, int, int]
Name = tuple[Part, int]


def parts_of_chip(node: Node, pod: Pod) -> set[Name]:
    """The parts whose failure takes a chip."""
    cube, *chip = node
    host = 16 * cube + host_of_chip((chip[0], chip[1], chip[2]))
    return {(Part.HOST, host), (Part.RACK, cube), (Part.POWER_DOMAIN, cube // 8)}


def parts_of_circuit(switch: int, plus: int, minus: int, pod: Pod) -> set[Name]:
    """Switch, both fibres, transceivers and ports of a circuit, by the stated numbering."""
    dimension, position = divmod(switch, 16)
    ends = (96 * plus + 32 * dimension + position, 96 * minus + 32 * dimension + 16 + position)
    names: set[Name] = {(Part.SWITCH, switch)}
    for end, port in zip(ends, (plus, pod.cubes + minus), strict=True):
        names |= {(Part.FIBRE, end), (Part.TRANSCEIVER, end), (Part.PORT, switch * pod.switch_ports + port)}
    return names


def labelled(placement: Placement, pod: Pod) -> tuple[nx.MultiGraph[Node], dict[Node, Grid]]:
    """The multigraph of a slice's chips; each link names the parts it depends on, a circuit also its row."""
    graph: nx.MultiGraph[Node] = nx.MultiGraph()
    circuits = circuits_of(placement)
    copper = physical_graph(placement.cubes, circuits[:0])
    cables = {(link.low, link.high): number for number, link in enumerate(in_rack_links())}
    for one, other in copper.edges:
        low, high = sorted([one, other])
        names = parts_of_chip(one, pod) | parts_of_chip(other, pod)
        cable = cables.get(((low[1], low[2], low[3]), (high[1], high[2], high[3])))
        if cable is not None:
            names.add((Part.IN_RACK_LINK, 80 * low[0] + cable))
        graph.add_edge(one, other, names=names, row=None)
    for row in circuits.tolist():
        single = physical_graph(placement.cubes, np.array([row]))
        (added,) = [edge for edge in single.edges if not copper.has_edge(*edge)]
        one, other = added
        names = parts_of_circuit(row[0], row[1], row[2], pod) | parts_of_chip(one, pod) | parts_of_chip(other, pod)
        graph.add_edge(one, other, names=names, row=tuple(row))
    return graph, slice_coordinates(placement)


def every_part(pod: Pod) -> Iterator[Name]:
    for part in Part:
        for number in range(parts_of_pod(pod, part)):
            yield part, number


def pair_of(link: DeadLink, shape: Shape) -> frozenset[Grid]:
    """The two chips of a dead link: the neighbour up the axis by the definition of the (twisted) torus."""
    to = list(link.chip)
    to[link.axis] += 1
    if to[link.axis] == shape.dimensions[link.axis]:
        to[link.axis] = 0
        to = [(a + s) % n for a, s, n in zip(to, shape.wrap_shifts[link.axis], shape.dimensions, strict=True)]
    return frozenset([link.chip, (to[0], to[1], to[2])])


SMALL: list[tuple[int, dict[int, Placement]]] = [
    (3, {7: joined(parse_shape("4x4x8"), [2, 0])}),
    (4, {1: joined(parse_shape("4x4x8_twisted"), [1, 3]), 0: joined(parse_shape("4x4x4"), [2])}),
    (10, {5: joined(parse_shape("4x8x8_twisted"), [9, 0, 8, 4]), 2: joined(parse_shape("4x4x4"), [1])}),
]


@pytest.mark.parametrize(("cubes", "placements"), SMALL, ids=["one", "twisted", "two_power_domains"])
def test_every_part_of_small_pods(cubes: int, placements: dict[int, Placement]) -> None:
    """Goal: exactly what depends on a part is lost. Method: label every link of every slice with its parts, by the
    stated numbering; for each of thousands of parts collect links, circuits, cubes, slices, chips from the labels."""
    pod = Pod(cubes=cubes, ports=2 * cubes + 2)
    graphs = {name: labelled(placement, pod) for name, placement in placements.items()}
    lost: dict[Name, dict[int, list[frozenset[Grid]]]] = {}
    dark: dict[Name, list[tuple[int, int, int]]] = {}
    for name, (graph, at) in graphs.items():
        for one, other, data in graph.edges(data=True):
            for part in sorted(data["names"]):
                lost.setdefault(part, {}).setdefault(name, []).append(frozenset([at[one], at[other]]))
                if data["row"] is not None:
                    dark.setdefault(part, []).append(data["row"])
    for part, number in every_part(pod):
        found = blast_radius(pod, placements, part, number)
        expected = lost.get((part, number), {})
        assert [hit.slice for hit in found.slices] == sorted(expected), (part, number)
        for hit in found.slices:
            shape = placements[hit.slice].shape
            assert hit.chips == shape.chips
            pairs = sorted((pair_of(link, shape) for link in hit.links), key=sorted)
            assert pairs == sorted(expected[hit.slice], key=sorted), (part, number)
        assert [tuple(row) for row in found.circuits.tolist()] == sorted(dark.get((part, number), []))
        check_cubes_and_chips(found, pod)


def check_cubes_and_chips(found: BlastRadius, pod: Pod) -> None:
    """Cubes: where the part sits, and both ends of dark circuits. Chips down: those without host or power."""
    part, number = found.part, found.number
    own: set[int] = set()
    if part in (Part.FIBRE, Part.TRANSCEIVER):
        own = {end_of_number(number).cube}
    elif part is Part.PORT and number % pod.switch_ports < 2 * pod.cubes:
        own = {number % pod.switch_ports % pod.cubes}
    elif part is Part.SWITCH:
        own = set(range(pod.cubes))
    elif part is Part.IN_RACK_LINK:
        own = {number // 80}
    elif part is Part.HOST:
        own = {number // 16}
    elif part is Part.RACK:
        own = {number}
    elif part is Part.POWER_DOMAIN:
        own = set(range(8 * number, min(8 * number + 8, pod.cubes)))
    assert set(found.cubes) == own | set(found.circuits[:, 1:].ravel().tolist())
    down = {Part.HOST: 4, Part.RACK: 64}.get(part, 64 * len(own) if part is Part.POWER_DOMAIN else 0)
    assert found.chips_down == down


def test_a_switch_takes_the_links_that_routing_is_told_of() -> None:
    """Goal: two rooms agree on a dead switch. Method: all 48 switches on a twisted slice and a long one."""
    pod = POD_GENERATIONS["v4"]
    for text, cubes in (("4x8x8_twisted", [9, 2, 60, 33]), ("4x8x12", [1, 2, 3, 4, 5, 6])):
        shape = parse_shape(text)
        for switch in range(48):
            found = blast_radius(pod, {0: joined(shape, cubes)}, Part.SWITCH, switch)
            assert sorted(found.slices[0].links) == sorted(dead_links_of_switch(shape, *divmod(switch, 16)))
            assert found.chips_hit == shape.chips


@pytest.mark.parametrize("text", ["1x1x1", "1x1x2", "1x2x2", "2x2x2", "2x2x4", "2x4x4"])
def test_slices_below_a_cube(text: str) -> None:
    """Goal: a small slice loses what its hosts lose, and stops with a cable of its cube. Method: each shape placed on
    the second free block of cube 1: its hosts, another host of the cube, a cable, and a switch."""
    pod, shape = Pod(cubes=2), parse_shape(text)
    free = np.zeros(32, dtype=np.bool_)
    free[16 + shape.hosts % 16 :] = True
    held = place(Fabric.RECONFIGURABLE, pod, shape, free)
    assert held is not None
    one = {3: held}
    every = set()
    for host in range(16, 32):
        found = blast_radius(pod, one, Part.HOST, host)
        assert bool(found.slices) == (host in held.hosts)
        for hit in found.slices:
            assert hit.chips_down == min(4, shape.chips)
            every |= {pair_of(link, shape) for link in hit.links}
    assert every == {frozenset(edge) for edge in slice_graph(shape).edges}
    cables = [blast_radius(pod, one, Part.IN_RACK_LINK, 80 + i).slices[0].links for i in range(80)]
    crossing = [link for link in slice_graph(shape).edges if shape.hosts > 1]
    assert sum(map(len, cables)) == len(crossing) - (4 * shape.hosts if shape.hosts > 1 else 0)
    assert blast_radius(pod, one, Part.IN_RACK_LINK, 0).slices == ()
    assert blast_radius(pod, one, Part.SWITCH, 0).slices == ()


def test_static_slices_have_no_light() -> None:
    """Goal: static wiring loses chips and copper only. Method: a switch, a fibre and a rack under 8x8x8."""
    pod = POD_GENERATIONS["v4"]
    held = place(Fabric.STATIC_CONTIGUOUS, pod, parse_shape("8x8x8"), np.ones(1024, dtype=np.bool_))
    assert held is not None
    assert blast_radius(pod, {0: held}, Part.SWITCH, 5).slices == ()
    assert blast_radius(pod, {0: held}, Part.FIBRE, 5).slices == ()
    (hit,) = blast_radius(pod, {0: held}, Part.RACK, held.cubes[0]).slices
    assert len(hit.links) == 144 + 3 * 16
    assert hit.chips_down == 64


def test_a_port_after_repatching() -> None:
    """Goal: a moved fibre is hit at its new port only. Method: fail the port of a + end, move it, ask both ports."""
    pod = Pod(cubes=4, ports=12)
    held = {0: joined(parse_shape("4x4x8"), [0, 1])}
    switches = list(switches_of_pod(pod))
    switches[17] = switches[17].fail_port(1)
    moved = repatch_bad_ports(switches)
    assert [(move.switch, move.from_port, move.to_port) for move in moved.moves] == [(17, 1, 8)]
    old, new = (blast_radius(pod, held, Part.PORT, 17 * 12 + port, moved.switches) for port in (1, 8))
    assert (len(old.circuits), len(new.circuits)) == (0, 1)
    assert new.circuits[0, 1] == 1
    assert moved.moves[0].side is Side.PLUS


def test_what_is_refused() -> None:
    """Goal: parts that do not exist are named. Method: one too many of each kind; a slice without cubes."""
    pod = POD_GENERATIONS["v4"]
    for part in Part:
        with pytest.raises(InputError, match=rf"has no {part.value} {parts_of_pod(pod, part)}; write 0 to"):
            blast_radius(pod, {}, part, parts_of_pod(pod, part))
    nowhere = place(Fabric.ANY_HOST, pod, parse_shape("4x4x4"), np.ones(1024, dtype=np.bool_))
    assert nowhere is not None
    with pytest.raises(ValueError, match="has no place in a cube"):
        blast_radius(pod, {0: nowhere}, Part.HOST, 0)


def test_every_chip_of_every_place_is_found() -> None:
    """Goal: numbers of chips within a cube are row-major. Method: each host of a cube takes its own four."""
    pod = Pod(cubes=1)
    shape = parse_shape("4x4x4")
    seen: list[Grid] = []
    for host in range(16):
        (hit,) = blast_radius(pod, {0: joined(shape, [0])}, Part.HOST, host).slices
        around = [chip for link in hit.links for chip in sorted(pair_of(link, shape))]
        mine = [chip for chip in places_of((4, 4, 4)) if around.count(chip) == 6]
        assert {host_of_chip(chip) for chip in mine} == {host}
        seen += mine
    assert sorted(seen) == places_of((4, 4, 4))
