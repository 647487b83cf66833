"""Dead links of a slice: what a dead switch takes, checks, and the same fault seen from elsewhere.

A dead link is (chip, axis): the link from that chip, in the slice's coordinates, one step up the axis. A dead switch
(dimension, position) takes one link from every cube of a slice: A links from a ring of A cubes (ISCA 2023, section 2.2;
design: machine, section 2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from topology.pod import CUBE_EDGE_CHIPS, DIMENSIONS, POSITIONS_PER_FACE, Grid, places_of
from topology.routing.channels import CHANNELS_PER_CHIP, NO_CHIP, Torus
from topology.shape import Shape

AXES = "xyz"


class DeadLink(NamedTuple):
    """A link that carries nothing, either way: from `chip` one step up `axis` (0, 1, 2 for x, y, z)."""

    chip: Grid
    axis: int


DeadLinks = tuple[DeadLink, ...]


def dead_links_of_switch(shape: Shape, dimension: int, position: int) -> DeadLinks:
    """The links that one dead switch takes from a slice: one per cube, from the chip at that position of its + face.

    `position` is 4 a + b with a and b the coordinates, within the cube, along the other two dimensions in order.
    Slices of less than a cube have no light: none. InputError for a switch that does not exist.
    """
    if not 0 <= dimension < DIMENSIONS or not 0 <= position < POSITIONS_PER_FACE:
        raise refuse(
            "fail",
            f"there is no switch of dimension {dimension} and position {position}",
            f"dimensions are 0 to {DIMENSIONS - 1} (x, y, z), positions 0 to {POSITIONS_PER_FACE - 1}",
        )
    within = list(divmod(position, CUBE_EDGE_CHIPS))
    within.insert(dimension, CUBE_EDGE_CHIPS - 1)
    return tuple(
        DeadLink(
            (
                CUBE_EDGE_CHIPS * cube[0] + within[0],
                CUBE_EDGE_CHIPS * cube[1] + within[1],
                CUBE_EDGE_CHIPS * cube[2] + within[2],
            ),
            dimension,
        )
        for cube in places_of(shape.box)
    )


def link_numbers(torus: Torus, dead_links: Iterable[DeadLink | tuple[Grid, int]]) -> NDArray[np.int64]:
    """Numbers of dead links, rising, each once. InputError for a link that the slice does not have."""
    numbers = []
    for chip, axis in dead_links:
        inside = 0 <= axis < DIMENSIONS and len(chip) == DIMENSIONS
        inside = inside and all(0 <= at < length for at, length in zip(chip, torus.dimensions, strict=True))
        number = torus.chip_number(chip) if inside else NO_CHIP
        if not inside or torus.head[number * CHANNELS_PER_CHIP + 2 * axis] == NO_CHIP:
            size = "x".join(map(str, torus.dimensions))
            raise refuse(
                "dead_links",
                f"a slice of {size} has no link from chip {tuple(chip)} up axis {axis}",
                "write ((x, y, z), axis) with a chip of the slice and an axis 0, 1 or 2 that has a neighbour there",
            )
        numbers.append(number * DIMENSIONS + axis)
    return np.unique(np.array(numbers, dtype=np.int64))


def links_of_numbers(torus: Torus, numbers: NDArray[np.int64]) -> DeadLinks:
    """The dead links with these numbers."""
    return tuple(DeadLink(torus.coordinates(n // DIMENSIONS), n % DIMENSIONS) for n in numbers.tolist())
