"""Capacity against independent brute force, on small pods exhaustively and on v4 by example."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from topology.boxes import aligned_box, standard_box
from topology.errors import InputError
from topology.fabric import Fabric
from topology.placement import capacity, usable_cubes
from topology.pod import POD_GENERATIONS, FlatPod, Pod

V4 = POD_GENERATIONS["v4"]
SIZES = (64, 128, 256, 512, 1024, 2048, 3072, 4096)


def hosts_of(cube_up: list[int]) -> NDArray[np.bool_]:
    """Host mask in which whole cubes are up or down."""
    return np.repeat(np.array(cube_up, dtype=np.bool_), 16)


def most_disjoint(candidates: list[frozenset[int]]) -> int:
    """Greatest number of pairwise disjoint sets, by trying all choices from the greatest number down."""
    for number in range(len(candidates), 0, -1):
        for chosen in combinations(candidates, number):
            if sum(map(len, chosen)) == len(frozenset().union(*chosen)):
                return number
    return 0


@pytest.mark.parametrize("cubes", [1, 2, 3, 4, 5, 6, 7])
def test_every_pattern_of_small_pods(cubes: int) -> None:
    """Goal: capacity is the most slices that could be formed. Method: all masks and sizes, in plain loops."""
    pod = Pod(cubes=cubes)
    for pattern in range(1 << cubes):
        up = [pattern >> cube & 1 for cube in range(cubes)]
        free = [cube for cube in range(cubes) if up[cube]]
        for size in range(1, cubes + 1):
            blocks = [range(start, start + size) for start in range(0, cubes - size + 1, size)]
            expected = {
                Fabric.RECONFIGURABLE: len(free) // size,
                Fabric.STATIC_ALIGNED: sum(all(up[cube] for cube in block) for block in blocks),
                Fabric.ANY_HOST: 16 * len(free) // (16 * size),
            }
            for fabric, slices in expected.items():
                assert capacity(fabric, pod, 64 * size, hosts_of(up)) == slices


def test_any_cubes_is_what_reconfigurable_means() -> None:
    """Goal: floor(U / n) is the most disjoint sets of n usable cubes. Method: choose among all sets on 6 cubes."""
    for size, most in ((1, 6), (2, 6), (3, 5)):
        for usable in range(most + 1):
            sets = [frozenset(chosen) for chosen in combinations(range(usable), size)]
            host_up = hosts_of([1] * usable + [0] * (6 - usable))
            assert capacity(Fabric.RECONFIGURABLE, Pod(cubes=6), 64 * size, host_up) == most_disjoint(sets)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.9, 0.99, 0.999]))
def test_orders_between_fabrics(seed: int, share: float) -> None:
    """Goal: no static fabric beats circuits, none beats any host. Method: random host masks, all sizes."""
    host_up = np.random.default_rng(seed).random(1024) < share
    for chips in (1, 2, 4, 8, 16, 32, *SIZES):
        slices = {fabric: capacity(fabric, V4, chips, host_up) for fabric in Fabric}
        assert slices[Fabric.STATIC_ALIGNED] <= slices[Fabric.RECONFIGURABLE] <= slices[Fabric.ANY_HOST]
        assert slices[Fabric.STATIC_CONTIGUOUS] <= slices[Fabric.RECONFIGURABLE]
        assert slices[Fabric.ANY_HOST] * chips <= 4 * np.count_nonzero(host_up)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_less_than_a_cube_counts_aligned_blocks(seed: int) -> None:
    """Goal: blocks of 1, 1, 1, 2, 4, 8 hosts; small slices share a host. Method: count in plain loops."""
    host_up = np.random.default_rng(seed).random(64) < 0.8
    pod = Pod(cubes=4)
    for chips, hosts, together in ((1, 1, 4), (2, 1, 2), (4, 1, 1), (8, 2, 1), (16, 4, 1), (32, 8, 1)):
        blocks = sum(all(host_up[first : first + hosts]) for first in range(0, 64, hosts))
        for fabric in (Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED, Fabric.STATIC_CONTIGUOUS):
            assert capacity(fabric, pod, chips, host_up) == blocks * together
        assert capacity(Fabric.ANY_HOST, pod, chips, host_up) == np.count_nonzero(host_up) // hosts * together


def test_one_dead_host_takes_its_cube() -> None:
    """Goal: the story of the main job on one failure. Method: one host of v4 down, slices of 1024 chips."""
    host_up = np.ones(1024, dtype=np.bool_)
    host_up[16 * 20 + 3] = False
    assert np.flatnonzero(~usable_cubes(host_up)).tolist() == [20]
    counts = {fabric: capacity(fabric, V4, 1024, host_up) for fabric in Fabric}
    assert set(counts.values()) == {3}
    assert capacity(Fabric.STATIC_ALIGNED, V4, 3072, host_up) == 0
    assert capacity(Fabric.RECONFIGURABLE, V4, 3072, host_up) == 1
    assert capacity(Fabric.STATIC_CONTIGUOUS, V4, 3072, host_up) == 1
    host_up[[16 * 36, 16 * 52]] = False
    assert capacity(Fabric.STATIC_ALIGNED, V4, 1024, host_up) == 1
    assert capacity(Fabric.RECONFIGURABLE, V4, 1024, host_up) == 3


def test_static_3072_uses_cubes_0_to_47() -> None:
    """Goal: the sixteen cubes beyond the block are unused. Method: all of them down, then one inside the block."""
    host_up = np.ones(1024, dtype=np.bool_)
    host_up[48 * 16 :] = False
    assert capacity(Fabric.STATIC_ALIGNED, V4, 3072, host_up) == 1
    host_up[:] = True
    host_up[47 * 16] = False
    assert capacity(Fabric.STATIC_ALIGNED, V4, 3072, host_up) == 0


@pytest.mark.parametrize("name", sorted(POD_GENERATIONS))
def test_a_healthy_pod_is_full(name: str) -> None:
    """Goal: with all hosts up, capacity is floor(C / n). Method: all sizes on all generations, contiguous by volume."""
    pod = POD_GENERATIONS[name]
    host_up = np.ones(pod.hosts, dtype=np.bool_)
    for chips in SIZES:
        for fabric in (Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED, Fabric.ANY_HOST):
            assert capacity(fabric, pod, chips, host_up) == pod.chips // chips
    if name == "v4":
        assert [capacity(Fabric.STATIC_CONTIGUOUS, pod, c, host_up) for c in SIZES] == [64, 32, 16, 8, 4, 2, 1, 1]


def test_flat_pods_and_what_is_refused() -> None:
    """Goal: a flat pod has any_host only, and sizes are checked. Method: one case per refusal."""
    flat, host_up = FlatPod(hosts=400), np.ones(400, dtype=np.bool_)
    assert capacity(Fabric.ANY_HOST, flat, 64, host_up) == 25
    assert capacity(Fabric.ANY_HOST, flat, 72, host_up) == 22
    for fabric in (Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED, Fabric.STATIC_CONTIGUOUS):
        with pytest.raises(InputError, match="write any_host"):
            capacity(fabric, flat, 64, host_up)
    with pytest.raises(InputError, match="multiple of 64"):
        capacity(Fabric.RECONFIGURABLE, V4, 100, np.ones(1024, dtype=np.bool_))
    with pytest.raises(InputError, match="at least 1"):
        capacity(Fabric.ANY_HOST, flat, 0, host_up)


def test_boxes_of_static_wiring() -> None:
    """Goal: which box a size has. Method: the design's examples, and grids on which no box fits."""
    assert aligned_box((4, 4, 4), 16) == (1, 4, 4)
    assert aligned_box((4, 4, 4), 48) == (3, 4, 4)
    assert aligned_box((4, 4, 4), 2) == (1, 1, 2)
    assert aligned_box((4, 4, 4), 3) is None
    assert aligned_box((4, 6, 6), 16) is None
    assert standard_box((4, 4, 4), 16) == (2, 2, 4)
    assert standard_box((5, 5, 1), 16) == (1, 4, 4)
    assert standard_box((5, 5, 1), 7) is None
