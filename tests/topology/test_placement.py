"""Placement by masks: first fit, honest boxes, nothing mutated."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from topology.boxes import aligned_box, check_slice_fits
from topology.errors import InputError
from topology.fabric import Fabric
from topology.placement import capacity, hosts_of_cubes, place, replace_cubes, usable_cubes
from topology.pod import POD_GENERATIONS, FlatPod, Pod
from topology.policies import FirstFit
from topology.shape import Shape, parse_shape, shape_of_chips
from topology.torus import slice_graph, torus_graph

V4 = POD_GENERATIONS["v4"]
ALL_UP = np.ones(1024, dtype=np.bool_)


def mask(seed: int, share: float, hosts: int = 1024) -> NDArray[np.bool_]:
    """A random, read-only host mask: placement must not write to it."""
    up = np.random.default_rng(seed).random(hosts) < share
    up.setflags(write=False)
    return up


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.9, 0.99, 0.998]),
    st.sampled_from([1, 4, 8, 32, 64, 128, 512, 1024, 3072]),
)
def test_a_place_is_found_exactly_where_capacity_says_so(seed: int, share: float, chips: int) -> None:
    """Goal: placement and capacity agree. Method: on random masks both say whether a slice fits."""
    up, shape = mask(seed, share), shape_of_chips(chips)
    for fabric in Fabric:
        found = place(fabric, V4, shape, up)
        assert (found is not None) == (capacity(fabric, V4, chips, up) > 0)
        if found is not None:
            assert up[list(found.hosts)].all()
            assert len(set(found.hosts)) == shape.hosts
            assert found.cubes == () or found.hosts == hosts_of_cubes(found.cubes)
            assert found.shape.chips == chips


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([64, 128, 256, 512, 1024]))
def test_placing_until_full_gives_the_capacity(seed: int, chips: int) -> None:
    """Goal: FIFO jobs without end fill what could be formed. Method: place again and again on what is left."""
    up = mask(seed, 0.995)
    for fabric in (Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED, Fabric.ANY_HOST):
        free, placed = up.copy(), 0
        while (found := place(fabric, V4, shape_of_chips(chips), free)) is not None:
            free[list(found.hosts)] = False
            placed += 1
        assert placed == capacity(fabric, V4, chips, up)


def test_first_fit_of_boxes_fills_what_capacity_says_below_16_cubes() -> None:
    """Goal: the lower bound of small sizes is what first-fit placement does. Method: place until full, compare."""
    for seed in range(15):
        up = mask(seed, 0.99)
        for chips in (64, 128, 256, 512):
            free, placed = up.copy(), 0
            while (found := place(Fabric.STATIC_CONTIGUOUS, V4, shape_of_chips(chips), free)) is not None:
                free[list(found.hosts)] = False
                placed += 1
            assert placed == capacity(Fabric.STATIC_CONTIGUOUS, V4, chips, up)


@pytest.mark.parametrize("name", sorted(POD_GENERATIONS))
@pytest.mark.parametrize("text", ["4x4x8", "4x8x8", "4x8x16", "8x8x8", "8x8x16", "12x16x16"])
def test_a_static_slice_is_a_part_of_the_torus_of_cubes(name: str, text: str) -> None:
    """Goal: order and rings of a static placement are right. Method: each link between cubes that the shape has is
    one of the pod's fixed torus of cubes, for boxes that cross edges too (masks push them there)."""
    pod, shape = POD_GENERATIONS[name], parse_shape(text)
    pod_links = torus_graph(pod.grid)
    for seed in range(8):
        up = mask(seed, 0.995, pod.hosts)
        for fabric in (Fabric.STATIC_ALIGNED, Fabric.STATIC_CONTIGUOUS):
            found = place(fabric, pod, shape, up)
            if found is None or (fabric is Fabric.STATIC_ALIGNED and aligned_box(pod.grid, shape.cubes) is None):
                continue
            box = found.shape.box
            assert tuple(sorted(box)) == box
            links = torus_graph(box, found.wraps)
            at = dict(zip(links.nodes, found.cubes, strict=True))
            for one, other in links.edges:
                assert pod_links.has_edge(pod.cube_coordinates(at[one]), pod.cube_coordinates(at[other]))


def test_a_box_may_cross_the_edge() -> None:
    """Goal: the torus of cubes has no edge. Method: leave only a box that crosses it in all three axes."""
    cubes = [V4.cube_at(x, y, z) for x in (3, 4) for y in (3, 4) for z in (3, 4)]
    up = np.zeros(1024, dtype=np.bool_)
    up[list(hosts_of_cubes(cubes))] = True
    found = place(Fabric.STATIC_CONTIGUOUS, V4, parse_shape("8x8x8"), up)
    assert found is not None
    assert found.cubes == tuple(cubes)
    assert found.wraps == (False, False, False)


def test_static_1024_is_the_box_it_fills() -> None:
    """Goal: static_aligned 1024 chips are 4x16x16, with rings on the axes that span the pod. Method: look."""
    found = place(Fabric.STATIC_ALIGNED, V4, parse_shape("8x8x16_twisted"), ALL_UP)
    assert found is not None
    assert str(found.shape) == "4x16x16"
    assert found.wraps == (False, True, True)
    assert found.cubes == tuple(range(16))
    contiguous = place(Fabric.STATIC_CONTIGUOUS, V4, parse_shape("8x8x16_twisted"), ALL_UP)
    assert contiguous is not None
    assert str(contiguous.shape) == "8x8x16"
    assert contiguous.wraps == (False, False, True)
    assert not contiguous.has_light


def test_blocks_that_fill_no_box_have_no_rings() -> None:
    """Goal: sizes that fit a grid badly still count as slices. Method: 16 cubes on the 4x6x6 grid."""
    found = place(Fabric.STATIC_ALIGNED, POD_GENERATIONS["tpu7x"], parse_shape("8x8x16"), np.ones(2304, dtype=np.bool_))
    assert found is not None
    assert (found.cubes, found.wraps) == (tuple(range(16)), (False, False, False))


def test_reconfigurable_avoids_marked_cubes() -> None:
    """Goal: cubes with a dead optical end are taken last. Method: mark cubes and place with and without need."""
    avoid = np.zeros(64, dtype=np.bool_)
    avoid[:60] = True
    found = place(Fabric.RECONFIGURABLE, V4, parse_shape("4x8x8"), ALL_UP, avoid)
    assert found is not None
    assert found.cubes == (60, 61, 62, 63)
    more = place(Fabric.RECONFIGURABLE, V4, parse_shape("8x8x8"), ALL_UP, avoid)
    assert more is not None
    assert more.cubes == (0, 1, 2, 3, 60, 61, 62, 63)


def test_replace_one_keeps_the_good_cubes_in_place() -> None:
    """Goal: n - 1 good cubes stay where they are in the torus. Method: lose one cube, then too many."""
    held = place(Fabric.RECONFIGURABLE, V4, parse_shape("8x8x16_twisted"), ALL_UP)
    assert held is not None
    free, lost = np.zeros(1024, dtype=np.bool_), np.zeros(64, dtype=np.bool_)
    free[list(hosts_of_cubes([40, 41]))] = True
    lost[[5, 50]] = True
    moved = replace_cubes(held, lost, free)
    assert moved is not None
    assert [(a, b) for a, b in zip(held.cubes, moved.cubes, strict=True) if a != b] == [(5, 40)]
    assert moved.shape == held.shape
    lost[:4] = True
    assert replace_cubes(held, lost, free) is None
    static = place(Fabric.STATIC_ALIGNED, V4, parse_shape("8x8x16"), ALL_UP)
    assert static is not None
    with pytest.raises(ValueError, match="joined by circuits"):
        replace_cubes(static, lost, free)


def test_a_cube_with_a_dead_host_takes_small_slices() -> None:
    """Goal: small slices use broken cubes; a partly used cube is not free for whole ones. Method: example."""
    pod, up = Pod(cubes=1), np.ones(16, dtype=np.bool_)
    up[1] = False
    found = place(Fabric.RECONFIGURABLE, pod, parse_shape("2x2x4"), up)
    assert found is not None
    assert (found.hosts, found.cubes, found.wraps) == ((4, 5, 6, 7), (), (False, False, False))
    assert place(Fabric.RECONFIGURABLE, pod, parse_shape("4x4x4"), up) is None
    assert not usable_cubes(up).any()
    pair = place(Fabric.STATIC_CONTIGUOUS, pod, parse_shape("2x2x2"), up)
    assert pair is not None
    assert pair.hosts == (2, 3)
    assert place(Fabric.RECONFIGURABLE, pod, parse_shape("1x1x1"), np.zeros(16, dtype=np.bool_)) is None


def test_slices_that_can_not_fit_are_refused() -> None:
    """Goal: the impossible is refused with what to write. Method: too large, too thick, a flat pod."""
    thin = Pod(cubes=25)
    with pytest.raises(InputError, match="at most 4096 chips"):
        check_slice_fits(Fabric.RECONFIGURABLE, V4, parse_shape("16x16x24"))
    with pytest.raises(InputError, match="fits a grid of 5x5x1 in no orientation; write 4x8x16"):
        check_slice_fits(Fabric.STATIC_CONTIGUOUS, thin, parse_shape("8x8x8"))
    with pytest.raises(InputError, match="write another size"):
        check_slice_fits(Fabric.STATIC_CONTIGUOUS, thin, Shape(4, 4, 28))
    with pytest.raises(InputError, match="any_host"):
        place(Fabric.RECONFIGURABLE, FlatPod(hosts=16), parse_shape("4x4x4"), np.ones(16, dtype=np.bool_))
    for fabric in Fabric:
        check_slice_fits(fabric, V4, parse_shape("12x16x16"))
        check_slice_fits(fabric, V4, parse_shape("2x2x4"))
    check_slice_fits(Fabric.RECONFIGURABLE, thin, parse_shape("8x8x8"))
    assert place(Fabric.STATIC_CONTIGUOUS, thin, parse_shape("8x8x8"), np.ones(400, dtype=np.bool_)) is None


def test_flat_pod_places_any_hosts() -> None:
    """Goal: any hosts make a slice. Method: every second host up."""
    up = np.arange(64) % 2 == 0
    found = place(Fabric.ANY_HOST, FlatPod(hosts=64), parse_shape("4x4x4"), up)
    assert found is not None
    assert found.hosts == tuple(range(0, 32, 2))
    assert nx.is_connected(slice_graph(found.shape, found.wraps))


def test_policies() -> None:
    """Goal: FIFO lets only the head start; first fit is `place`. Method: small examples."""
    shape = parse_shape("8x8x16")
    assert FirstFit().choose(Fabric.RECONFIGURABLE, V4, shape, ALL_UP) == place(
        Fabric.RECONFIGURABLE, V4, shape, ALL_UP
    )
