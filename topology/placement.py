"""Capacity and placement by masks: how many slices of a size could be formed, and where one slice goes.

Everything here is pure: a boolean mask says which hosts are up (capacity) or free and usable (placement), and a
number or a frozen `Placement` comes back. Rules: design, machine 1 and measures 1.

Hosts within a cube: a host is a tray of 2x2x1 chips, so a cube is 2x2x4 hosts, and host h of a cube sits at
(h // 8, h // 4 % 2, h % 4) along x, y, z. An aligned block of 2, 4 or 8 hosts (2x2x2, 2x2x4, 2x4x4 chips) is
therefore a run of so many consecutive hosts from a multiple of their number: two trays on top of each other, a
column, half a cube.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from topology.boxes import aligned_box, check_fabric, contiguous_table, shape_of_box
from topology.errors import refuse
from topology.fabric import Fabric
from topology.packing import box_table, boxes_on_grid, packed_boxes
from topology.pod import (
    CHIPS_PER_CUBE,
    CHIPS_PER_HOST,
    DIMENSIONS,
    HOSTS_PER_CUBE,
    AnyPod,
    FlatPod,
    Grid,
    Pod,
)
from topology.shape import Shape, hosts_of_chips, shape_of_chips
from topology.torus import NO_WRAPS, Wraps


def slices_per_host(chips: int) -> int:
    """How many slices of `chips` chips share a host: 4 of 1 chip, 2 of 2 chips, else 1."""
    return max(1, CHIPS_PER_HOST // chips)


def usable_cubes(host_up: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Per cube (C,), whether all its 16 hosts are up in `host_up` (16 C,)."""
    return np.asarray(host_up.reshape(-1, HOSTS_PER_CUBE).all(axis=1), dtype=np.bool_)


def capacity(fabric: Fabric, pod: AnyPod, slice_chips: int, host_up: NDArray[np.bool_]) -> int:
    """Number of slices of `slice_chips` chips that could be formed from the hosts that are up (H,) on an empty pod.

    Whole cubes: reconfigurable floor(U / n) of U usable cubes; static_aligned the blocks of n consecutive cubes that
    are all usable; static_contiguous the largest packing of the standard box; any_host floor(hosts up / 16 n). Less
    than a cube: aligned blocks of hosts that are all up (any_host: any hosts); four slices of 1 chip and two of 2
    chips share a host, so that the share of the pod's chips is the share of hosts up. Raises InputError for a size
    that is no size and for a fabric that the pod does not have.
    """
    check_fabric(fabric, pod)
    hosts = hosts_of_slice(pod, slice_chips)
    together = slices_per_host(slice_chips)
    if fabric is Fabric.ANY_HOST:
        return int(np.count_nonzero(host_up)) // hosts * together
    assert isinstance(pod, Pod)
    if slice_chips < CHIPS_PER_CUBE:
        return int(np.count_nonzero(host_up.reshape(-1, hosts).all(axis=1))) * together
    cubes = slice_chips // CHIPS_PER_CUBE
    usable = usable_cubes(host_up)
    if fabric is Fabric.RECONFIGURABLE:
        return int(np.count_nonzero(usable)) // cubes
    if fabric is Fabric.STATIC_ALIGNED:
        blocks = pod.cubes // cubes
        return int(np.count_nonzero(usable[: blocks * cubes].reshape(blocks, cubes).all(axis=1)))
    return packed_boxes(usable, contiguous_table(pod, cubes))


def hosts_of_slice(pod: AnyPod, slice_chips: int) -> int:
    """Hosts of a slice of `slice_chips` chips; InputError for a size that is no size of this pod's slices."""
    if isinstance(pod, FlatPod):
        if slice_chips < 1:
            raise refuse("slice_chips", f"{slice_chips} chips are no slice", "write a whole number of at least 1")
        return -(-slice_chips // CHIPS_PER_HOST)
    shape_of_chips(slice_chips)
    return hosts_of_chips(slice_chips)


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Which cubes, in which order, or which hosts make a slice."""

    fabric: Fabric
    shape: Shape
    """The shape that is formed. Under static wiring it is the box that the slice fills, which has no twist."""
    cubes: tuple[int, ...]
    """Whole cubes along the shape's x, y, z (row-major, z fastest); empty for less than a cube and for `any_host`."""
    hosts: tuple[int, ...]
    """All hosts that the slice holds; one host may carry several slices of 1 or 2 chips."""
    wraps: Wraps
    """Which axes of the shape close to rings."""

    @property
    def has_light(self) -> bool:
        """Whether the slice is joined by circuits of optical switches."""
        return self.fabric.has_light and bool(self.cubes)


def hosts_of_cubes(cubes: Iterable[int]) -> tuple[int, ...]:
    """The 16 hosts of each cube, in the order of the cubes."""
    runs = (range(cube * HOSTS_PER_CUBE, (cube + 1) * HOSTS_PER_CUBE) for cube in cubes)
    return tuple(chain.from_iterable(runs))


def place(
    fabric: Fabric,
    pod: AnyPod,
    shape: Shape,
    free_hosts: NDArray[np.bool_],
    avoid_cubes: NDArray[np.bool_] | None = None,
) -> Placement | None:
    """First fit: where a slice of `shape` goes on the free and usable hosts (H,), or None.

    Reconfigurable: the free cubes in order of number, those of `avoid_cubes` (C,) last (cubes with a dead optical end
    or port). static_aligned: the first free block of that many cubes; a block that fills no box of the grid has no
    rings (assumption). static_contiguous: the first free box of that shape over corners X, Y, Z, then orientations.
    any_host: the first free hosts. Less than a cube: the first aligned block of free hosts; for shapes of 1 and 2
    chips `free_hosts` names the hosts with room. Raises InputError for a fabric that the pod does not have.
    """
    check_fabric(fabric, pod)
    if fabric is Fabric.ANY_HOST:
        found = np.flatnonzero(free_hosts)[: shape.hosts]
        if len(found) < shape.hosts:
            return None
        return Placement(fabric=fabric, shape=shape, cubes=(), hosts=tuple(found.tolist()), wraps=shape.wraps)
    assert isinstance(pod, Pod)
    if shape.is_sub_cube:
        return _place_in_cube(fabric, shape, free_hosts)
    free_cubes = usable_cubes(free_hosts)
    if fabric is Fabric.RECONFIGURABLE:
        taken = _first_cubes(free_cubes, shape.cubes, avoid_cubes)
        return None if taken is None else joined(shape, taken)
    if fabric is Fabric.STATIC_ALIGNED:
        return _place_aligned(pod, shape, free_cubes)
    return _place_contiguous(pod, shape, free_cubes)


def joined(shape: Shape, cubes: Sequence[int]) -> Placement:
    """The placement of a reconfigurable slice on these cubes, in this order along x, y, z."""
    return Placement(
        fabric=Fabric.RECONFIGURABLE,
        shape=shape,
        cubes=tuple(cubes),
        hosts=hosts_of_cubes(cubes),
        wraps=shape.wraps,
    )


def replace_cubes(
    placement: Placement,
    lost_cubes: NDArray[np.bool_],
    free_hosts: NDArray[np.bool_],
    avoid_cubes: NDArray[np.bool_] | None = None,
) -> Placement | None:
    """Keep the good cubes of a reconfigurable slice and put free cubes in the places of the lost ones (C,), or None."""
    if not placement.has_light:
        raise ValueError("only a slice that is joined by circuits can have cubes replaced")
    missing = [position for position, cube in enumerate(placement.cubes) if lost_cubes[cube]]
    free_cubes = usable_cubes(free_hosts)
    free_cubes[list(placement.cubes)] = False
    taken = _first_cubes(free_cubes, len(missing), avoid_cubes)
    if taken is None:
        return None
    cubes = list(placement.cubes)
    for position, cube in zip(missing, taken, strict=True):
        cubes[position] = cube
    return joined(placement.shape, cubes)


def _first_cubes(free: NDArray[np.bool_], count: int, avoid: NDArray[np.bool_] | None) -> list[int] | None:
    """The first `count` free cubes, in rising order; cubes to avoid are taken only where others do not suffice."""
    numbers = np.flatnonzero(free)
    if len(numbers) < count:
        return None
    if avoid is not None:
        numbers = np.concatenate([numbers[~avoid[numbers]], numbers[avoid[numbers]]])
    return sorted(numbers[:count].tolist())


def _place_in_cube(fabric: Fabric, shape: Shape, free_hosts: NDArray[np.bool_]) -> Placement | None:
    """The first aligned block of free hosts for a shape of less than a cube."""
    blocks = np.flatnonzero(free_hosts.reshape(-1, shape.hosts).all(axis=1))
    return place_in_cube(fabric, shape, int(blocks[0])) if len(blocks) else None


def place_in_cube(fabric: Fabric, shape: Shape, block: int) -> Placement:
    """The placement of less than a cube on an aligned block of hosts, by its number on the pod."""
    first = block * shape.hosts
    return Placement(
        fabric=fabric, shape=shape, cubes=(), hosts=tuple(range(first, first + shape.hosts)), wraps=shape.wraps
    )


def _place_aligned(pod: Pod, shape: Shape, free_cubes: NDArray[np.bool_]) -> Placement | None:
    """The first block of consecutive cubes that are all free."""
    count = shape.cubes
    blocks = pod.cubes // count
    free = np.flatnonzero(free_cubes[: blocks * count].reshape(blocks, count).all(axis=1))
    return place_in_block(pod, shape, int(free[0])) if len(free) else None


def place_in_block(pod: Pod, shape: Shape, block: int) -> Placement:
    """The placement under static_aligned on a block of consecutive cubes, by its number."""
    count = shape.cubes
    cubes = range(block * count, (block + 1) * count)
    box = aligned_box(pod.grid, count)
    if box is None:
        plain = Shape(*shape.dimensions)
        hosts = hosts_of_cubes(cubes)
        return Placement(fabric=Fabric.STATIC_ALIGNED, shape=plain, cubes=tuple(cubes), hosts=hosts, wraps=NO_WRAPS)
    return _boxed(Fabric.STATIC_ALIGNED, pod.grid, box, np.array(cubes))


def _place_contiguous(pod: Pod, shape: Shape, free_cubes: NDArray[np.bool_]) -> Placement | None:
    """The first box of the shape, in any orientation, whose cubes are all free."""
    for_each = box_table(pod.grid, shape.box).cubes
    free = np.flatnonzero(free_cubes[for_each].all(axis=1))
    return place_in_box(pod, shape, int(free[0])) if len(free) else None


def place_in_box(pod: Pod, shape: Shape, box: int) -> Placement:
    """The placement under static_contiguous on a box, by its number in `boxes_on_grid`."""
    _, orientation, cubes = boxes_on_grid(pod.grid, shape.box)[box]
    return _boxed(Fabric.STATIC_CONTIGUOUS, pod.grid, orientation, np.array(cubes))


def _boxed(fabric: Fabric, grid: Grid, box: Grid, cubes: NDArray[np.int64]) -> Placement:
    """The placement of a box of cubes, given row-major along the grid's axes, turned so that its sides rise."""
    axes = sorted(range(DIMENSIONS), key=lambda axis: box[axis])
    in_order = cubes.reshape(box).transpose(axes).ravel().tolist()
    return Placement(
        fabric=fabric,
        shape=shape_of_box(box),
        cubes=tuple(in_order),
        hosts=hosts_of_cubes(in_order),
        wraps=(box[axes[0]] == grid[axes[0]], box[axes[1]] == grid[axes[1]], box[axes[2]] == grid[axes[2]]),
    )
