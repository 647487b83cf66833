"""Blast radius: what the failure of one part takes from a pod: circuits, cubes, slices, chips, links of each torus.

Parts and their numbers. Port: switch * ports per switch + port. Fibre, transceiver: the optical end they serve. Switch,
in-rack link, host, rack (= cube): as everywhere. Power domain d: racks 8 d to 8 d + 7 (assumption). A host takes its
four chips, with their links; a rack or a power domain its hosts. A dead in-rack link stops every slice on its cube,
also one whose mesh does not use it (design: machine, section 3). Slices on static wiring have no light to lose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ocs.circuits import Circuits, circuits_of, no_circuits
from ocs.faults import dead_circuits
from ocs.switch import Switch
from ocs.wiring import OpticalEnd, Side, end_of_number, face_chip, switch_number
from topology.cube import host_of_chip, in_rack_links
from topology.errors import refuse
from topology.placement import Placement
from topology.pod import (
    CHIPS_PER_CUBE,
    CUBE_EDGE_CHIPS,
    DIMENSIONS,
    HOSTS_PER_CUBE,
    IN_RACK_LINKS_PER_CUBE,
    OPTICAL_ENDS_PER_CUBE,
    POSITIONS_PER_FACE,
    SWITCHES_PER_POD,
    Grid,
    Pod,
    places_of,
)
from topology.routing.faults import DeadLink, DeadLinks
from topology.shape import Shape
from topology.torus import Wraps, step_plus

RACKS_PER_POWER_DOMAIN = 8
"""Assumption."""


class Part(StrEnum):
    """What can fail."""

    PORT = "port"
    FIBRE = "fibre"
    TRANSCEIVER = "transceiver"
    SWITCH = "ocs"
    IN_RACK_LINK = "in_rack_link"
    HOST = "host"
    RACK = "rack"
    POWER_DOMAIN = "power_domain"


@dataclass(frozen=True, kw_only=True, slots=True)
class SliceHit:
    """What one slice loses: links of its torus, in its own coordinates, and how many of its chips are down."""

    slice: int
    links: DeadLinks
    chips: int
    chips_down: int


@dataclass(frozen=True, kw_only=True, eq=False)
class BlastRadius:
    """What one failure takes: dark `circuits`, sorted; `cubes` that lost a part or a circuit, rising; slices by number.

    `chips_down` counts chips without host or power, also those of no slice; `chips_hit` all chips of the slices hit.
    """

    part: Part
    number: int
    circuits: Circuits
    cubes: tuple[int, ...]
    slices: tuple[SliceHit, ...]
    chips_down: int

    @property
    def chips_hit(self) -> int:
        """Chips of all slices that are hit."""
        return sum(hit.chips for hit in self.slices)


def parts_of_pod(pod: Pod, part: Part) -> int:
    """How many parts of a kind a pod has."""
    return {
        Part.PORT: SWITCHES_PER_POD * pod.switch_ports,
        Part.FIBRE: pod.cubes * OPTICAL_ENDS_PER_CUBE,
        Part.TRANSCEIVER: pod.cubes * OPTICAL_ENDS_PER_CUBE,
        Part.SWITCH: SWITCHES_PER_POD,
        Part.IN_RACK_LINK: pod.cubes * IN_RACK_LINKS_PER_CUBE,
        Part.HOST: pod.hosts,
        Part.RACK: pod.cubes,
        Part.POWER_DOMAIN: -(-pod.cubes // RACKS_PER_POWER_DOMAIN),
    }[part]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Dead:
    """Dead switches (48,), optical ends (96 C,), chips (C, 64), inner links (C, 64, 3) from their lower chip, and cubes
    whose every slice stops (C,)."""

    switches: NDArray[np.bool_]
    ends: NDArray[np.bool_]
    chips: NDArray[np.bool_]
    inner: NDArray[np.bool_]
    stopped: NDArray[np.bool_]


def blast_radius(
    pod: Pod,
    placements: Mapping[int, Placement],
    part: Part,
    number: int,
    switches: Sequence[Switch] | None = None,
) -> BlastRadius:
    """What the failure of part `number` takes from the slices of a pod, given by number.

    `switches` says which end sits at which port (left out: as first plugged in). InputError for a part that the pod
    does not have.
    """
    if not 0 <= number < parts_of_pod(pod, part):
        raise refuse(
            "fail", f"pod {pod.name} has no {part.value} {number}", f"write 0 to {parts_of_pod(pod, part) - 1}"
        )
    dead = _dead_parts(pod, part, number, switches)
    touched: NDArray[np.bool_] = np.full(pod.cubes, bool(dead.switches.any()))
    touched |= dead.chips.any(axis=1) | dead.inner.any(axis=(1, 2)) | dead.ends.reshape(pod.cubes, -1).any(axis=1)
    hits, dark = [], [no_circuits()]
    for name in sorted(placements):
        placement = placements[name]
        lost = dead_circuits(circuits_of(placement), dead.switches, dead.ends)
        hit = _slice_hit(name, placement, dead, lost)
        if hit is not None:
            hits.append(hit)
            dark.append(lost)
            touched[lost[:, 1:].ravel()] = True
    rows = np.concatenate(dark)
    return BlastRadius(
        part=part,
        number=number,
        circuits=rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))],
        cubes=tuple(np.flatnonzero(touched).tolist()),
        slices=tuple(hits),
        chips_down=int(dead.chips.sum()),
    )


def _dead_parts(pod: Pod, part: Part, number: int, switches: Sequence[Switch] | None) -> _Dead:
    """All that is dead when one part is."""
    dead = _Dead(
        switches=np.zeros(SWITCHES_PER_POD, dtype=np.bool_),
        ends=np.zeros(pod.cubes * OPTICAL_ENDS_PER_CUBE, dtype=np.bool_),
        chips=np.zeros((pod.cubes, CHIPS_PER_CUBE), dtype=np.bool_),
        inner=np.zeros((pod.cubes, CHIPS_PER_CUBE, DIMENSIONS), dtype=np.bool_),
        stopped=np.zeros(pod.cubes, dtype=np.bool_),
    )
    if part is Part.PORT:
        end = _end_at_port(pod, number, switches)
        if end is not None:
            dead.ends[end] = True
    elif part in (Part.FIBRE, Part.TRANSCEIVER):
        dead.ends[number] = True
    elif part is Part.SWITCH:
        dead.switches[number] = True
    elif part is Part.IN_RACK_LINK:
        cube, index = divmod(number, IN_RACK_LINKS_PER_CUBE)
        link = in_rack_links()[index]
        axis = next(a for a in range(DIMENSIONS) if link.low[a] != link.high[a])
        dead.inner[cube, _local(link.low), axis] = True
        dead.stopped[cube] = True
    else:
        _take_hosts(dead, _hosts(pod, part, number))
    return dead


def _end_at_port(pod: Pod, number: int, switches: Sequence[Switch] | None) -> int | None:
    """Number of the optical end at a port, or None for a port without fibre."""
    switch, port = divmod(number, pod.switch_ports)
    state = Switch(cubes=pod.cubes, ports=pod.switch_ports) if switches is None else switches[switch]
    end = state.end_at_port(port)
    if end is None:
        return None
    dimension, position = divmod(switch, POSITIONS_PER_FACE)
    return OpticalEnd(end[1], dimension, end[0], position).number


def _hosts(pod: Pod, part: Part, number: int) -> range:
    """Hosts that a host, rack or power domain takes down."""
    per_part = {Part.HOST: 1, Part.RACK: HOSTS_PER_CUBE}.get(part, HOSTS_PER_CUBE * RACKS_PER_POWER_DOMAIN)
    return range(number * per_part, min((number + 1) * per_part, pod.hosts))


def _take_hosts(dead: _Dead, hosts: range) -> None:
    """Mark the chips of hosts, and the optical ends at these chips, as dead."""
    for host in hosts:
        cube, within = divmod(host, HOSTS_PER_CUBE)
        dead.chips[cube] |= within == _HOST_OF_CHIP
    for cube in sorted({host // HOSTS_PER_CUBE for host in hosts}):
        first = cube * OPTICAL_ENDS_PER_CUBE
        dead.ends[first : first + OPTICAL_ENDS_PER_CUBE] |= dead.chips[cube, _CHIP_OF_END]


def _local(chip: Grid) -> int:
    """Number of a chip within its cube."""
    return (chip[0] * CUBE_EDGE_CHIPS + chip[1]) * CUBE_EDGE_CHIPS + chip[2]


_CUBE_PLACES = places_of((CUBE_EDGE_CHIPS, CUBE_EDGE_CHIPS, CUBE_EDGE_CHIPS))
_HOST_OF_CHIP = np.array([host_of_chip(chip) for chip in _CUBE_PLACES])
_CHIP_OF_END = np.array([_local(end_of_number(number).chip) for number in range(OPTICAL_ENDS_PER_CUBE)])


def _slice_hit(name: int, placement: Placement, dead: _Dead, lost: Circuits) -> SliceHit | None:
    """What a slice loses, or None where it loses nothing."""
    chips = chips_of_placement(placement)
    down = dead.chips[chips[:, 0], chips[:, 1]]
    stopped = bool(dead.stopped[chips[:, 0]].any())
    if not (down.any() or stopped or len(lost)):
        return None
    links = _links_of(placement.shape, placement.wraps)
    tails, heads, axes = links.T
    turned = _cube_axes(placement)[axes]
    inside = (chips[tails, 0] == chips[heads, 0]) & (chips[heads, 1] - chips[tails, 1] == _STEPS[turned])
    gone = down[tails] | down[heads] | (inside & dead.inner[chips[tails, 0], chips[tails, 1], turned])
    if len(lost):
        dark = np.zeros((SWITCHES_PER_POD, len(dead.chips)), dtype=np.bool_)
        dark[lost[:, 0], lost[:, 1]] = True
        outside = np.flatnonzero(~inside)
        switch = _SWITCH_OF_FACE[axes[outside], chips[tails[outside], 1]]
        gone[outside] |= dark[switch, chips[tails[outside], 0]]
    coordinates = places_of(placement.shape.dimensions)
    found = (DeadLink(coordinates[tail], axis) for tail, _, axis in links[gone].tolist())
    return SliceHit(slice=name, links=tuple(found), chips=placement.shape.chips, chips_down=int(down.sum()))


_STEPS = np.array([CUBE_EDGE_CHIPS**2, CUBE_EDGE_CHIPS, 1])
"""How much the number of a chip within its cube grows by one step along x, y, z."""


def _switches_of_faces() -> NDArray[np.int64]:
    """(3, 64): per dimension, the switch at which the + link of a chip ends, -1 for chips off the + face."""
    found = np.full((DIMENSIONS, CHIPS_PER_CUBE), -1, dtype=np.int64)
    for dimension in range(DIMENSIONS):
        for position in range(POSITIONS_PER_FACE):
            chip = _local(face_chip(dimension, Side.PLUS, position))
            found[dimension, chip] = switch_number(dimension, position)
    return found


_SWITCH_OF_FACE = _switches_of_faces()


@lru_cache(maxsize=64)
def _links_of(shape: Shape, wraps: Wraps) -> NDArray[np.int64]:
    """Rows (chip, chip above it, axis) of all links of a slice, by chip, then axis."""
    order = {at: number for number, at in enumerate(places_of(shape.dimensions))}
    rows = []
    for at, number in order.items():
        for axis, length in enumerate(shape.dimensions):
            if at[axis] + 1 < length or (wraps[axis] and length > 2):
                rows.append((number, order[step_plus(at, axis, shape.dimensions, shape.wrap_shifts)], axis))
    found = np.array(rows, dtype=np.int64).reshape(-1, 3)
    found.setflags(write=False)
    return found


def _cube_axes(placement: Placement) -> NDArray[np.int64]:
    """For each axis of a slice, the axis of the cube along which it lies; they differ only inside one tray of 2x2x1."""
    return np.array([2, 0, 1] if placement.shape.chips < 2 * 4 and not placement.cubes else [0, 1, 2])


def chips_of_placement(placement: Placement) -> NDArray[np.int64]:
    """Rows (cube, chip within it) of the chips of a slice, along its x, y, z.

    Slices of 1 and 2 chips are taken to sit on the first chips of their host. Raises ValueError for `any_host`, which
    knows no cubes.
    """
    shape = placement.shape
    at = np.array(places_of(shape.dimensions), dtype=np.int64)
    if placement.cubes:
        box = at // CUBE_EDGE_CHIPS
        place = (box[:, 0] * shape.box[1] + box[:, 1]) * shape.box[2] + box[:, 2]
        return np.stack([np.array(placement.cubes)[place], (at % CUBE_EDGE_CHIPS) @ _STEPS], axis=1)
    if not shape.is_sub_cube or not placement.hosts:
        raise ValueError(f"a slice on fabric {placement.fabric.value} has no place in a cube")
    cube, first = divmod(placement.hosts[0], HOSTS_PER_CUBE)
    inside = np.empty_like(at)
    inside[:, _cube_axes(placement)] = at
    corner = int(np.flatnonzero(first == _HOST_OF_CHIP)[0])
    return np.stack([np.full(len(at), cube), corner + inside @ _STEPS], axis=1)
