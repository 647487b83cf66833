"""How the faces of cubes reach the 48 switches.

Per dimension there is one switch for each of the 16 positions of a face; the + link and the - link of one dimension and
position of a cube end on the same switch (ISCA 2023, Figure 1). Numbers: switch = dimension * 16 + position; optical
end = cube * 96 + dimension * 32 + side * 16 + position, where side 0 is + and 1 is -.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from topology.pod import CUBE_EDGE_CHIPS, DIMENSIONS, OPTICAL_ENDS_PER_CUBE, POSITIONS_PER_FACE, Grid


class Side(StrEnum):
    """The two ends of a cube's links along a dimension."""

    PLUS = "+"
    MINUS = "-"


SIDES = (Side.PLUS, Side.MINUS)


@dataclass(frozen=True, slots=True)
class OpticalEnd:
    """The end of one optical link at a cube: fibre and transceiver of one face position."""

    cube: int
    dimension: int
    side: Side
    position: int

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.cube < 0 or not 0 <= self.dimension < DIMENSIONS or not 0 <= self.position < POSITIONS_PER_FACE:
            where = f"cube {self.cube}, dimension {self.dimension}, position {self.position}"
            ranges = f"dimensions are 0 to {DIMENSIONS - 1}, positions 0 to {POSITIONS_PER_FACE - 1}"
            raise ValueError(f"no optical end at {where}: {ranges}")

    @property
    def number(self) -> int:
        """Number of this end among all of the pod."""
        within = self.dimension * 2 * POSITIONS_PER_FACE + SIDES.index(self.side) * POSITIONS_PER_FACE + self.position
        return self.cube * OPTICAL_ENDS_PER_CUBE + within

    @property
    def switch(self) -> int:
        """Number of the switch on which this end lands."""
        return switch_number(self.dimension, self.position)

    @property
    def chip(self) -> Grid:
        """Coordinates, within the cube, of the chip at this end."""
        return face_chip(self.dimension, self.side, self.position)


def end_of_number(number: int) -> OpticalEnd:
    """The optical end with this number."""
    cube, within = divmod(number, OPTICAL_ENDS_PER_CUBE)
    dimension, rest = divmod(within, 2 * POSITIONS_PER_FACE)
    side, position = divmod(rest, POSITIONS_PER_FACE)
    return OpticalEnd(cube, dimension, SIDES[side], position)


def switch_number(dimension: int, position: int) -> int:
    """Number of the switch of a dimension and a face position."""
    return dimension * POSITIONS_PER_FACE + position


def dimension_of_switch(switch: int) -> int:
    """The dimension that a switch serves."""
    return switch // POSITIONS_PER_FACE


def face_chip(dimension: int, side: Side, position: int) -> Grid:
    """Coordinates, within the cube, of the chip at a face position.

    The position is 4 a + b, with a and b the coordinates along the other two dimensions, in order.
    """
    across = list(divmod(position, CUBE_EDGE_CHIPS))
    across.insert(dimension, CUBE_EDGE_CHIPS - 1 if side is Side.PLUS else 0)
    return across[0], across[1], across[2]
