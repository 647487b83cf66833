"""Placement policies: no place is missed, little is broken up, shapes are folded."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from sim.streams import Streams
from topology.fabric import Fabric
from topology.placement import Placement
from topology.pod import FlatPod, Grid, Pod, places_of
from topology.policies import BestFit, FirstFit, Folding, cubes_around, equivalent_shapes
from topology.shape import Shape, parse_shape

Mask = NDArray[np.bool_]
V4 = Pod(cubes=64)
POLICIES = (FirstFit(), BestFit(), Folding(), Folding(then=BestFit()))


def hosts_of(cubes_free: Mask) -> Mask:
    """All hosts of these cubes."""
    return np.repeat(cubes_free, 16)


def boxes_by_hand(grid: Grid, box: Grid) -> list[frozenset[int]]:
    """Every set of cubes that a box covers: all corners, all orders of its sides, over the edges of the torus."""
    found = []
    for sides in itertools.permutations(box):
        if any(side > length for side, length in zip(sides, grid, strict=True)):
            continue
        for corner in places_of(grid):
            cubes = set()
            for step in places_of((sides[0], sides[1], sides[2])):
                x, y, z = ((corner[a] + step[a]) % grid[a] for a in range(3))
                cubes.add((x * grid[1] + y) * grid[2] + z)
            found.append(frozenset(cubes))
    return found


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("grid", [(4, 4, 4), (3, 4, 5), (2, 3, 7)])
def test_no_box_is_missed(policy: FirstFit | BestFit | Folding, grid: Grid) -> None:
    """Goal: static_contiguous finds a box whenever one exists, in any orientation and offset. Method: brute force over
    the torus on 100 random masks per shape; what is found is one of those boxes and is free."""
    pod = Pod(cubes=grid[0] * grid[1] * grid[2], grid=grid)
    for text in ("4x4x4", "4x4x8", "4x8x8", "4x4x12", "8x8x8", "4x8x12"):
        shape = parse_shape(text)
        boxes = boxes_by_hand(grid, shape.box)
        folded = [box for one in equivalent_shapes(shape, 0.5) for box in boxes_by_hand(grid, one.box)]
        allowed = boxes + (folded if isinstance(policy, Folding) else [])
        for number in range(100):
            u = Streams(5, number).uniforms("test.cubes", 0, pod.cubes)
            free_cubes = u < (0.3, 0.6, 0.9)[number % 3]
            free = {int(cube) for cube in np.flatnonzero(free_cubes)}
            found = policy.choose(Fabric.STATIC_CONTIGUOUS, pod, shape, hosts_of(free_cubes))
            assert (found is not None) == any(box <= free for box in allowed), (text, number)
            if found is not None:
                assert frozenset(found.cubes) in allowed
                assert free.issuperset(found.cubes)


@pytest.mark.parametrize("fabric", list(Fabric))
def test_best_fit_finds_a_place_whenever_first_fit_does(fabric: Fabric) -> None:
    """Goal: the better place, not fewer places. Method: random masks of hosts, all sizes."""
    for number, text in itertools.product(range(40), ("1x1x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x8x8")):
        free = Streams(6, number).uniforms("test.hosts", 0, V4.hosts) < (0.6, 0.95, 0.995, 1.0)[number % 4]
        shape = parse_shape(text)
        first, best = (policy.choose(fabric, V4, shape, free) for policy in (FirstFit(), BestFit()))
        assert (first is None) == (best is None)
        if best is not None:
            assert free[list(best.hosts)].all()
            assert len(best.hosts) == shape.hosts


def only(*cubes: int, of: int = 64) -> Mask:
    """A mask of cubes."""
    mask = np.zeros(of, dtype=np.bool_)
    mask[list(cubes)] = True
    return mask


def placed(policy: FirstFit | BestFit | Folding, fabric: Fabric, text: str, free: Mask, avoid: Mask | None = None,
           pod: Pod = V4) -> Placement:  # fmt: skip
    """The place that a policy finds."""
    found = policy.choose(fabric, pod, parse_shape(text), free, avoid)
    assert found is not None
    return found


def test_small_slices_go_to_broken_cubes_and_tight_blocks_first() -> None:
    """Goal: whole cubes stay whole. Method: cube 0 is whole, cube 5 has a dead host, cube 7 is partly used and whole:
    the broken one is taken, in the block beside the dead host; without a broken one the used cube; else cube 0."""
    free = hosts_of(only(0, 5, 7))
    free[5 * 16 + 6] = False
    free[7 * 16 : 7 * 16 + 12] = False
    reconfigurable = Fabric.RECONFIGURABLE
    assert placed(FirstFit(), reconfigurable, "1x2x2", free, only(5)).hosts == (0,)
    assert placed(BestFit(), reconfigurable, "1x2x2", free, only(5)).hosts == (5 * 16 + 7,)
    assert placed(BestFit(), reconfigurable, "2x2x2", free, only(5)).hosts == (5 * 16 + 4, 5 * 16 + 5)
    assert placed(BestFit(), reconfigurable, "2x4x4", free, only(5)).hosts[0] == 5 * 16 + 8
    free[5 * 16 : 6 * 16] = False
    assert placed(BestFit(), reconfigurable, "1x2x2", free).hosts == (7 * 16 + 12,)
    assert placed(BestFit(), reconfigurable, "2x4x4", free).hosts[0] == 0


def test_blocks_and_boxes_break_up_least() -> None:
    """Goal: room for large slices is kept. Method: aligned: the single block beside a taken one goes first; contiguous:
    a lone free cube is taken before one of a free plane; any_host: the cubes that are nearly full give hosts."""
    free = hosts_of(np.ones(64, dtype=np.bool_) & ~only(5))
    assert placed(BestFit(), Fabric.STATIC_ALIGNED, "4x4x4", free).cubes == (4,)
    assert placed(FirstFit(), Fabric.STATIC_ALIGNED, "4x4x4", free).cubes == (0,)
    plane_and_one = hosts_of(only(*range(16), 42))
    assert placed(BestFit(), Fabric.STATIC_CONTIGUOUS, "4x4x4", plane_and_one).cubes == (42,)
    assert placed(FirstFit(), Fabric.STATIC_CONTIGUOUS, "4x4x4", plane_and_one).cubes == (0,)
    free = hosts_of(only(0, 9))
    free[9 * 16 : 9 * 16 + 10] = False
    assert placed(BestFit(), Fabric.ANY_HOST, "2x2x4", free).hosts == (154, 155, 156, 157)
    assert placed(BestFit(), Fabric.RECONFIGURABLE, "4x4x8", hosts_of(only(3, 9, 11)), only(3)).cubes == (9, 11)
    flat = BestFit().choose(Fabric.ANY_HOST, FlatPod(hosts=64), parse_shape("2x2x4"), np.ones(64, dtype=np.bool_))
    assert flat is not None
    assert flat.hosts == (0, 1, 2, 3)


def test_neighbours_of_boxes() -> None:
    """Goal: what best fit counts. Method: a single cube of a 4x4x4 torus has 6 neighbours, a box of 2x2x2 has 24, a
    plane of 4x4 that closes on itself two planes: 32; on an axis of 2 both neighbours are one cube."""
    assert set(cubes_around((4, 4, 4), (1, 1, 1)).sum(axis=1)) == {6}
    assert set(cubes_around((4, 4, 4), (2, 2, 2)).sum(axis=1)) == {24}
    assert set(cubes_around((4, 4, 4), (1, 4, 4)).sum(axis=1)) == {32}
    assert set(cubes_around((2, 4, 4), (1, 1, 1)).sum(axis=1)) == {5}


def test_a_shape_is_folded_where_it_does_not_fit_as_it_is() -> None:
    """Goal: an equivalent shape. Method: free are a row of four and, apart from it, a square: 4x4x16 takes the row, and
    with the row broken is folded to 4x8x8; 4x8x8 is folded to a row (half its bisection), unless more is due."""
    row, square = only(0, 1, 2, 3), only(40, 41, 44, 45)
    contiguous = Fabric.STATIC_CONTIGUOUS
    assert placed(Folding(), contiguous, "4x4x16", hosts_of(row | square)).shape == Shape(4, 4, 16)
    folded = placed(Folding(), contiguous, "4x4x16", hosts_of(square | only(0, 1, 2)))
    assert folded.shape == Shape(4, 8, 8)
    assert folded.cubes == (40, 41, 44, 45)
    assert FirstFit().choose(contiguous, V4, parse_shape("4x4x16"), hosts_of(square)) is None
    unfit = Folding(least_bisection=0.6).choose(contiguous, V4, parse_shape("4x8x8"), hosts_of(row))
    assert unfit is None
    assert placed(Folding(), contiguous, "4x8x8", hosts_of(row)).shape == Shape(4, 4, 16)
    assert placed(Folding(), Fabric.RECONFIGURABLE, "4x4x16", hosts_of(square)).shape == Shape(4, 4, 16)


def test_equivalent_shapes() -> None:
    """Goal: the list by hand. Method: 16 cubes are 1x1x16, 1x2x8, 1x4x4, 2x2x4; for 8x8x16 (bisection 64) at least half
    leaves 4x16x16 (64) and 4x8x32 (32)."""
    assert [str(one) for one in equivalent_shapes(parse_shape("8x8x16"), 0.0)] == ["4x16x16", "4x8x32", "4x4x64"]
    assert [str(one) for one in equivalent_shapes(parse_shape("8x8x16"), 0.5)] == ["4x16x16", "4x8x32"]
    assert equivalent_shapes(parse_shape("4x4x4"), 0.0) == ()
    with pytest.raises(ValueError, match="between 0 and 1"):
        Folding(least_bisection=1.5)
