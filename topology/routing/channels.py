"""The directed channels of a slice's torus: each link is two, one per direction.

A channel has the number chip * 6 + axis * 2 + side: from that chip along `axis`, upwards for side 0, downwards for
side 1. A link has the number chip * 3 + axis: between that chip and the next one up `axis`. Chips are numbered
row-major. On an axis of 2 the neighbour and the wraparound are the same chip: one link, from the lower chip; on an axis
of 1 there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from topology.pod import DIMENSIONS, Grid
from topology.shape import Shape
from topology.torus import ALL_WRAPS, NO_SHIFTS, Shifts, Wraps, step_plus

CHANNELS_PER_CHIP = 2 * DIMENSIONS
NO_CHIP = -1


@dataclass(frozen=True, kw_only=True)
class Torus:
    """A mesh, torus or twisted torus of chips: `wraps` says which axes close to rings, `shifts` how they are twisted.

    `head` (N * 6,) holds the chip at which each channel ends, -1 where there is no such channel.
    """

    dimensions: Grid
    wraps: Wraps = ALL_WRAPS
    shifts: Shifts = NO_SHIFTS
    head: NDArray[np.int32] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Lay the channels."""
        head = _heads(self.dimensions, self.wraps, self.shifts)
        head.flags.writeable = False
        object.__setattr__(self, "head", head)

    @property
    def chips(self) -> int:
        """Number of chips, N."""
        return self.dimensions[0] * self.dimensions[1] * self.dimensions[2]

    @property
    def rings(self) -> Wraps:
        """Which axes close to rings of their own: those that wrap and are longer than 2."""
        x, y, z = (wraps and length > 2 for wraps, length in zip(self.wraps, self.dimensions, strict=True))
        return x, y, z

    @property
    def is_twisted(self) -> bool:
        """Whether a wraparound link is shifted."""
        return self.shifts != NO_SHIFTS

    @property
    def is_vertex_transitive(self) -> bool:
        """Whether it looks the same from every chip: all axes longer than 2 close to rings."""
        return all(wraps or length <= 2 for wraps, length in zip(self.wraps, self.dimensions, strict=True))

    def chip_number(self, at: Grid) -> int:
        """Row-major number of the chip at these coordinates."""
        return (at[0] * self.dimensions[1] + at[1]) * self.dimensions[2] + at[2]

    def coordinates(self, chip: int) -> Grid:
        """Coordinates of the chip with this number."""
        rest, z = divmod(chip, self.dimensions[2])
        x, y = divmod(rest, self.dimensions[1])
        return x, y, z

    def reduced(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Chip numbers (...,) of any whole coordinates (..., 3), brought back into the slice round its rings."""
        at = np.moveaxis(np.array(places, dtype=np.int64), -1, 0)
        for axis in range(DIMENSIONS):
            rounds = at[axis] // self.dimensions[axis]
            at[axis] -= rounds * self.dimensions[axis]
            for other in range(axis + 1, DIMENSIONS):
                at[other] += rounds * self.shifts[axis][other]
        numbers: NDArray[np.int64] = (at[0] * self.dimensions[1] + at[1]) * self.dimensions[2] + at[2]
        return numbers

    def all_coordinates(self) -> NDArray[np.int64]:
        """Coordinates (N, 3) of all chips in the order of their numbers."""
        return np.stack(np.unravel_index(np.arange(self.chips), self.dimensions), axis=1).astype(np.int64)

    def alive(self, dead_links: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each channel (N * 6,) exists and lives when the links with these numbers are dead."""
        living = self.head >= 0
        for link in dead_links.tolist():
            up = channels_of_link(self, link)
            living[list(up)] = False
        return living


def channels_of_link(torus: Torus, link: int) -> tuple[int, int]:
    """The two channels of a link: up from its chip, and down from the chip above."""
    chip, axis = divmod(link, DIMENSIONS)
    up = chip * CHANNELS_PER_CHIP + 2 * axis
    return up, int(torus.head[up]) * CHANNELS_PER_CHIP + 2 * axis + 1


def _heads(dimensions: Grid, wraps: Wraps, shifts: Shifts) -> NDArray[np.int32]:
    """Chip at which each channel (N * 6,) ends, -1 where there is none."""
    x, y, z = dimensions
    head = np.full((x * y * z, CHANNELS_PER_CHIP), NO_CHIP, dtype=np.int32)
    for chip in range(x * y * z):
        at = (chip // (y * z), chip // z % y, chip % z)
        for axis in range(DIMENSIONS):
            is_last = at[axis] + 1 == dimensions[axis]
            if is_last and (not wraps[axis] or dimensions[axis] <= 2):
                continue
            to = step_plus(at, axis, dimensions, shifts)
            above = (to[0] * y + to[1]) * z + to[2]
            head[chip, 2 * axis] = above
            head[above, 2 * axis + 1] = chip
    return head.reshape(-1)


@cache
def torus_of_shape(shape: Shape, wraps: Wraps | None = None) -> Torus:
    """The torus of a slice; `wraps` defaults to those of a slice formed by circuits (static wiring may lack some)."""
    return Torus(dimensions=shape.dimensions, wraps=shape.wraps if wraps is None else wraps, shifts=shape.wrap_shifts)
