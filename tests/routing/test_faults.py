"""Dead links: what a switch takes, bad input, and faults that are alike."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology.errors import InputError
from topology.routing.channels import CHANNELS_PER_CHIP, channels_of_link, torus_of_shape
from topology.routing.degraded import is_connected
from topology.routing.faults import dead_links_of_switch, link_numbers, links_of_numbers
from topology.routing.symmetry import FaultSymmetry, channel_image, chip_image, linear_maps, normal_form
from topology.shape import SUB_CUBE_SHAPES, Shape, parse_shape
from topology.torus import slice_graph

SHAPES = ("4x4x4", "4x4x8", "4x8x8", "4x4x8_twisted", "4x8x8_twisted", "2x4x4", "2x2x2", "1x1x2", "1x1x1")


@pytest.mark.parametrize("text", SHAPES)
def test_channels_are_the_links_of_the_graph_both_ways(text: str) -> None:
    """Goal: channels are right for every kind of slice. Method: against the graph built from the shape."""
    shape = parse_shape(text)
    torus = torus_of_shape(shape)
    channels = np.flatnonzero(torus.head >= 0)
    pairs = {(int(c) // CHANNELS_PER_CHIP, int(torus.head[c])) for c in channels}
    links = [(torus.chip_number(a), torus.chip_number(b)) for a, b in slice_graph(shape).edges]
    assert pairs == {*links, *((b, a) for a, b in links)}
    assert len(channels) == 2 * len(links)


@pytest.mark.parametrize("dimension", [0, 1, 2])
@pytest.mark.parametrize("text", ["4x4x4", "4x4x8", "8x8x8", "4x8x8_twisted"])
def test_a_dead_switch_takes_a_link_of_every_cube(text: str, dimension: int) -> None:
    """Goal: a switch of one dimension cuts a ring of A cubes in A places. Method: count by ring, all one axis."""
    shape = parse_shape(text)
    links = dead_links_of_switch(shape, dimension, 7)
    assert len(set(links)) == shape.cubes
    assert {link.axis for link in links} == {dimension}
    assert all(link.chip[dimension] % 4 == 3 for link in links)
    across = {tuple(np.delete(link.chip, dimension).tolist()) for link in links}
    assert len(links) == len(across) * shape.box[dimension]
    graph = slice_graph(shape)
    torus = torus_of_shape(shape)
    for link in link_numbers(torus, links).tolist():
        up, _ = channels_of_link(torus, link)
        graph.remove_edge(torus.coordinates(up // CHANNELS_PER_CHIP), torus.coordinates(int(torus.head[up])))
    assert nx.is_connected(graph)


def test_faults_that_do_not_exist_are_refused() -> None:
    """Goal: clear errors. Method: wrong dimension, position, chip, axis, and a link that a mesh does not have."""
    shape = parse_shape("4x4x4")
    for dimension, position in ((3, 0), (-1, 0), (0, 16), (0, -1)):
        with pytest.raises(InputError, match="no switch"):
            dead_links_of_switch(shape, dimension, position)
    for link in (((4, 0, 0), 0), ((0, 0, 0), 3), ((0, -1, 0), 1)):
        with pytest.raises(InputError, match="no link"):
            link_numbers(torus_of_shape(shape), [link])
    with pytest.raises(InputError, match="no link"):
        link_numbers(torus_of_shape(parse_shape("2x4x4")), [((1, 0, 0), 0)])


def test_slices_of_less_than_a_cube_see_no_switch() -> None:
    """Goal: sub-cube slices never see light. Method: no switch takes a link of them."""
    assert not any(dead_links_of_switch(Shape(*dimensions), 0, 0) for dimensions in SUB_CUBE_SHAPES)


@pytest.mark.parametrize("text", ["4x4x4", "4x4x8", "4x8x8_twisted", "4x4x8_twisted", "2x4x4"])
def test_symmetries_keep_channels_and_faults(text: str) -> None:
    """Goal: every map found is one. Method: images of channels must join the images of chips, and dead stay dead."""
    shape = parse_shape(text)
    torus = torus_of_shape(shape)
    links = dead_links_of_switch(shape, 1, 6) or (((0, 1, 1), 2),)
    symmetry = FaultSymmetry(torus=torus, links=link_numbers(torus, links))
    alive = torus.alive(symmetry.links)
    assert len(symmetry.elements) >= max(1, shape.cubes)
    for by in symmetry.elements:
        chips, channels = chip_image(torus, by), channel_image(torus, by)
        assert sorted(chips.tolist()) == list(range(torus.chips))
        there = torus.head >= 0
        assert (torus.head[channels[there]] == chips[torus.head[there]]).all()
        assert (alive[channels] == alive).all()


def test_the_cube_has_all_48_turns() -> None:
    """Goal: no symmetry is missed. Method: the counts that are known (48, 16, and 16 or less with a twist)."""
    assert len(linear_maps(torus_of_shape(parse_shape("4x4x4")))) == 48
    assert len(linear_maps(torus_of_shape(parse_shape("4x4x8")))) == 16
    assert len(linear_maps(torus_of_shape(parse_shape("4x8x12")))) == 8


def test_all_switches_of_a_cube_are_alike() -> None:
    """Goal: one fault, one normal form. Method: all 48 switches on 8x8x8; the 48 of 4x4x8 fall into two kinds."""
    for text, kinds in (("8x8x8", 1), ("4x4x8", 2), ("4x8x12", 3)):
        shape = parse_shape(text)
        torus = torus_of_shape(shape)
        forms = {
            normal_form(torus, link_numbers(torus, dead_links_of_switch(shape, dimension, position))).links
            for dimension in range(3)
            for position in range(16)
        }
        assert len(forms) == kinds


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_moved_faults_have_one_normal_form(data: st.DataObject) -> None:
    """Goal: faults that are alike are seen to be. Method: random faults, moved by random symmetries of the torus."""
    torus = torus_of_shape(parse_shape(data.draw(st.sampled_from(["4x4x4", "4x4x8", "4x8x8_twisted"]))))
    count = 3 * torus.chips
    links = np.unique(data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=4)))
    matrix = data.draw(st.sampled_from(linear_maps(torus)))
    move = np.array(data.draw(st.tuples(*[st.integers(0, 7)] * 3)))
    image = channel_image(torus, (matrix, move))
    moved = []
    for link in links.tolist():
        ends = sorted(int(image[channel]) for channel in channels_of_link(torus, link))
        up = next(channel for channel in ends if channel % 2 == 0)
        moved.append(up // CHANNELS_PER_CHIP * 3 + up % CHANNELS_PER_CHIP // 2)
    one, other = normal_form(torus, links), normal_form(torus, np.unique(moved))
    assert one.links == other.links
    assert links_of_numbers(torus, np.array(one.links)) == links_of_numbers(torus, np.array(other.links))


def test_a_slice_cut_in_two_is_seen() -> None:
    """Goal: cuts are noticed. Method: all six links of a chip dead, then five."""
    torus = torus_of_shape(parse_shape("4x4x4"))
    six = [((0, 0, 0), 0), ((0, 0, 0), 1), ((0, 0, 0), 2), ((3, 0, 0), 0), ((0, 3, 0), 1), ((0, 0, 3), 2)]
    assert not is_connected(torus, link_numbers(torus, six))
    assert is_connected(torus, link_numbers(torus, six[1:]))
