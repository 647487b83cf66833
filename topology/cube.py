"""Inside a cube: where its chips and hosts sit, and its 144 inner links.

A cube is 4x4x4 chips; chip c sits at (c // 16, c // 4 % 4, c % 4). A host is a tray of 2x2x1 chips, so a cube is 2x2x4
hosts; host h sits at (h // 8, h // 4 % 2, h % 4). The 64 links between chips of one tray are board traces and belong to
the host; the other 80 are copper cables, the in-rack links (ISCA 2023, section 2.2; counts derived).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from topology.pod import CUBE_EDGE_CHIPS, DIMENSIONS, Grid, places_of

CUBE_CHIPS: Grid = (CUBE_EDGE_CHIPS, CUBE_EDGE_CHIPS, CUBE_EDGE_CHIPS)
HOST_CHIPS: Grid = (2, 2, 1)
"""Chips of a host's tray along x, y, z."""
CUBE_HOSTS: Grid = (2, 2, 4)
"""Hosts of a cube along x, y, z."""


@dataclass(frozen=True, slots=True)
class InnerLink:
    """A link inside a cube between two neighbouring chips, `low` before `high` along their axis."""

    low: Grid
    high: Grid


def host_of_chip(chip: Grid) -> int:
    """Number, within the cube, of the host that carries the chip at these coordinates."""
    x, y, z = (at // tray for at, tray in zip(chip, HOST_CHIPS, strict=True))
    return (x * CUBE_HOSTS[1] + y) * CUBE_HOSTS[2] + z


@cache
def inner_links() -> tuple[InnerLink, ...]:
    """All 144 links inside a cube: axis x first, then y, z; within an axis by coordinates."""
    links = []
    for axis in range(DIMENSIONS):
        for x, y, z in places_of(CUBE_CHIPS):
            high = [x, y, z]
            high[axis] += 1
            if high[axis] < CUBE_EDGE_CHIPS:
                links.append(InnerLink((x, y, z), (high[0], high[1], high[2])))
    return tuple(links)


@cache
def in_rack_links() -> tuple[InnerLink, ...]:
    """The 80 copper cables of a cube, in the order of their numbers; in-rack link i of cube c is number 80 c + i."""
    return tuple(link for link in inner_links() if host_of_chip(link.low) != host_of_chip(link.high))


@cache
def board_traces() -> tuple[InnerLink, ...]:
    """The 64 links of a cube that run on the boards of its hosts."""
    return tuple(link for link in inner_links() if host_of_chip(link.low) == host_of_chip(link.high))
