"""Where a slice goes: placement policies as plug-ins.

A policy is pure: it is shown what is free and returns a `Placement` or None. `avoid_cubes` names, for slices of whole
cubes, those to take last (a dead optical end); for smaller slices those that are of no use to whole-cube slices (a host
is down, an end is dead), which best fit takes first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.boxes import check_fabric
from topology.fabric import Fabric
from topology.packing import box_table
from topology.placement import Placement, place, place_in_block, place_in_box, place_in_cube, usable_cubes
from topology.pod import CUBE_EDGE_CHIPS, HOSTS_PER_CUBE, AnyPod, Grid, Pod
from topology.shape import Shape
from topology.units import ClosedShare

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class FirstFit:
    """The first place that fits, in the order that `placement.place` states for each fabric."""

    kind: Literal["first_fit"] = "first_fit"

    def choose(
        self, fabric: Fabric, pod: AnyPod, shape: Shape, free_hosts: Mask, avoid_cubes: Mask | None = None
    ) -> Placement | None:
        """Where a slice of `shape` goes on the free and usable hosts (H,), or None where it does not fit."""
        return place(fabric, pod, shape, free_hosts, avoid_cubes)


@dataclass(frozen=True, kw_only=True)
class BestFit:
    """The place that breaks up least of what is free; it finds one whenever first fit does.

    Less than a cube: in a cube that is of no use to whole cubes first, then where the aligned free block around the
    place is smallest, then in the cube with the fewest free hosts. static_contiguous: of all boxes that are free that
    with the fewest free cubes around it. static_aligned: the block with the fewest free cubes in the block of twice its
    size. any_host: hosts of the cubes with the fewest free ones. reconfigurable: as first fit, since any cubes do.
    Equals in the order of first fit.
    """

    kind: Literal["best_fit"] = "best_fit"

    def choose(
        self, fabric: Fabric, pod: AnyPod, shape: Shape, free_hosts: Mask, avoid_cubes: Mask | None = None
    ) -> Placement | None:
        """Where a slice of `shape` goes on the free and usable hosts (H,), or None where it does not fit."""
        check_fabric(fabric, pod)
        if not isinstance(pod, Pod):
            return place(fabric, pod, shape, free_hosts, avoid_cubes)
        if fabric is Fabric.ANY_HOST:
            return _in_fullest_cubes(shape, free_hosts)
        if shape.is_sub_cube:
            return _in_tightest_block(fabric, shape, free_hosts, avoid_cubes)
        if fabric is Fabric.STATIC_ALIGNED:
            return _beside_taken_block(pod, shape, usable_cubes(free_hosts))
        if fabric is Fabric.STATIC_CONTIGUOUS:
            return _in_snuggest_box(pod, shape, usable_cubes(free_hosts))
        return place(fabric, pod, shape, free_hosts, avoid_cubes)


def _in_fullest_cubes(shape: Shape, free_hosts: Mask) -> Placement | None:
    """The free hosts of the cubes with the fewest free ones."""
    hosts = np.flatnonzero(free_hosts)
    if len(hosts) < shape.hosts:
        return None
    free_beside = free_hosts.reshape(-1, HOSTS_PER_CUBE).sum(axis=1)[hosts // HOSTS_PER_CUBE]
    taken = hosts[np.argsort(free_beside, kind="stable")[: shape.hosts]]
    return Placement(
        fabric=Fabric.ANY_HOST, shape=shape, cubes=(), hosts=tuple(sorted(taken.tolist())), wraps=shape.wraps
    )


def _in_tightest_block(fabric: Fabric, shape: Shape, free_hosts: Mask, of_no_use: Mask | None) -> Placement | None:
    """The free aligned block of a slice of less than a cube that breaks up least."""
    size = shape.hosts
    blocks = np.flatnonzero(free_hosts.reshape(-1, size).all(axis=1))
    if not len(blocks):
        return None
    around = np.full(len(blocks), size)
    wider = 2 * size
    while wider <= HOSTS_PER_CUBE:
        whole = np.asarray(free_hosts.reshape(-1, wider).all(axis=1))[blocks * size // wider]
        around = np.where(whole, wider, around)
        wider *= 2
    cubes = blocks * size // HOSTS_PER_CUBE
    free_in_cube = free_hosts.reshape(-1, HOSTS_PER_CUBE).sum(axis=1)[cubes]
    useful = np.zeros(len(blocks)) if of_no_use is None else 1.0 - of_no_use[cubes]
    best = np.lexsort((blocks, free_in_cube, around, useful))[0]
    return place_in_cube(fabric, shape, int(blocks[best]))


def _beside_taken_block(pod: Pod, shape: Shape, free_cubes: Mask) -> Placement | None:
    """The free block of consecutive cubes with the fewest free cubes in the block of twice its size."""
    count = shape.cubes
    blocks = pod.cubes // count
    free = np.flatnonzero(free_cubes[: blocks * count].reshape(blocks, count).all(axis=1))
    if not len(free):
        return None
    sums = np.concatenate([[0], np.cumsum(free_cubes)])
    low = free // 2 * 2 * count
    around = sums[np.minimum(low + 2 * count, pod.cubes)] - sums[low]
    return place_in_block(pod, shape, int(free[np.argmin(around)]))


def _in_snuggest_box(pod: Pod, shape: Shape, free_cubes: Mask) -> Placement | None:
    """The free box with the fewest free cubes around it."""
    table = box_table(pod.grid, shape.box)
    free = np.flatnonzero(free_cubes[table.cubes].all(axis=1))
    if not len(free):
        return None
    around = cubes_around(pod.grid, shape.box)[free] @ free_cubes.astype(np.int64)
    return place_in_box(pod, shape, int(free[np.argmin(around)]))


@lru_cache(maxsize=64)
def cubes_around(grid: Grid, box: Grid) -> NDArray[np.int64]:
    """(B, C): 1 where a cube is a neighbour, on the torus of cubes, of a box of `box_table` and not in it."""
    _, grid_y, grid_z = grid
    number = np.arange(grid[0] * grid_y * grid_z).reshape(grid)
    beside = np.stack([np.roll(number, step, axis).ravel() for axis in range(3) for step in (1, -1)], axis=1)
    boxes = box_table(grid, box).cubes
    around = np.zeros((len(boxes), number.size), dtype=np.int64)
    rows = np.arange(len(boxes))[:, None]
    around[rows, beside[boxes].reshape(len(boxes), -1)] = 1
    around[rows, boxes] = 0
    around.setflags(write=False)
    return around


@dataclass(frozen=True, kw_only=True)
class Folding:
    """Another policy, and where the shape itself does not fit, other shapes of as many cubes: the most cubic first.

    A shape is equivalent (assumption) when its bisection is at least `least_bisection` of that of the one asked for;
    both taken as tori. Where the fabric joins any cubes, or below a cube, there is nothing to fold.
    """

    kind: Literal["folding"] = "folding"
    then: FirstFit | BestFit = field(default_factory=FirstFit)
    least_bisection: ClosedShare = 0.5

    def __post_init__(self) -> None:
        """Refuse a share that is none."""
        if not 0 <= self.least_bisection <= 1:
            raise ValueError(f"least_bisection of {self.least_bisection:g}: write a share between 0 and 1")

    def choose(
        self, fabric: Fabric, pod: AnyPod, shape: Shape, free_hosts: Mask, avoid_cubes: Mask | None = None
    ) -> Placement | None:
        """Where a slice of `shape`, or of one that is equivalent, goes on the free hosts (H,), or None."""
        found = self.then.choose(fabric, pod, shape, free_hosts, avoid_cubes)
        if found is not None or fabric is not Fabric.STATIC_CONTIGUOUS or shape.is_sub_cube:
            return found
        if np.count_nonzero(usable_cubes(free_hosts)) < shape.cubes:
            return None
        for folded in equivalent_shapes(shape, self.least_bisection):
            found = self.then.choose(fabric, pod, folded, free_hosts, avoid_cubes)
            if found is not None:
                return found
        return None


@lru_cache(maxsize=512)
def equivalent_shapes(shape: Shape, least_bisection: float) -> tuple[Shape, ...]:
    """Other shapes of as many whole cubes, not twisted, of enough bisection (x y links for x <= y <= z, both ways)."""
    wanted = least_bisection * shape.x * shape.y
    cubes = shape.cubes
    sides = [
        (x, y, cubes // (x * y))
        for x in range(1, cubes + 1)
        if cubes % x == 0 and x**3 <= cubes
        for y in range(x, cubes // x + 1)
        if cubes % (x * y) == 0 and y <= cubes // (x * y)
    ]
    shapes = [Shape(x * CUBE_EDGE_CHIPS, y * CUBE_EDGE_CHIPS, z * CUBE_EDGE_CHIPS) for x, y, z in sides]
    fitting = [one for one in shapes if one.x * one.y >= wanted and one.dimensions != shape.dimensions]
    return tuple(sorted(fitting, key=lambda one: (one.x * one.y + one.y * one.z + one.x * one.z, one.dimensions)))


AnyPlacementPolicy: TypeAlias = FirstFit | BestFit | Folding
"""The policies that a scenario can name under `scheduling.placement:` (`kind` tells them apart)."""
