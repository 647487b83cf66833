"""Capacity and placement by masks: how many slices of a size could be formed, and where one slice goes.

Everything here is pure: a boolean mask says which hosts are up (capacity) or free and usable (placement), and a
number or a frozen `Placement` comes back. Rules: design, machine 1 and measures 1.

Hosts within a cube: a host is a tray of 2x2x1 chips, so a cube is 2x2x4 hosts, and host h of a cube sits at
(h // 8, h // 4 % 2, h % 4) along x, y, z. An aligned block of 2, 4 or 8 hosts (2x2x2, 2x2x4, 2x4x4 chips) is
therefore a run of so many consecutive hosts from a multiple of their number: two trays on top of each other, a
column, half a cube.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topology.boxes import check_fabric, contiguous_table
from topology.errors import refuse
from topology.fabric import Fabric
from topology.packing import packed_boxes
from topology.pod import CHIPS_PER_CUBE, CHIPS_PER_HOST, HOSTS_PER_CUBE, AnyPod, FlatPod, Pod
from topology.shape import hosts_of_chips, shape_of_chips


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
