"""Shapes of slices: parsing, checking, default shapes, wraparound.

Shapes are sorted, x <= y <= z. Below one cube there are six (meshes); from one cube on, every dimension is a multiple
of 4. Twistable are k x k x 2k and k x 2k x 2k (Jouppi et al., ISCA 2023, sections 2.5, 2.8, 2.9 and Table 2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from topology.errors import refuse
from topology.pod import CHIPS_PER_CUBE, CHIPS_PER_HOST, CUBE_EDGE_CHIPS, HOSTS_PER_CUBE, Grid, grid_nearest_cube

SUB_CUBE_SHAPES: tuple[Grid, ...] = ((1, 1, 1), (1, 1, 2), (1, 2, 2), (2, 2, 2), (2, 2, 4), (2, 4, 4))
"""Shapes of less than one cube: meshes of 1, 2, 4, 8, 16 and 32 chips."""

TWIST_SUFFIX = "_twisted"
CORES_PER_CHIP = 2
_SHAPE = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})x([1-9][0-9]{0,5})(_twisted)?")
_CORES = re.compile(r"(v4|v5p)-([1-9][0-9]{0,6})")


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimensions of a slice in chips, x <= y <= z. Raises InputError for a shape that no slice can have."""

    x: int
    y: int
    z: int
    twisted: bool = False

    def __post_init__(self) -> None:
        """Check the dimensions."""
        _check(self.dimensions, self.twisted, "slice")

    def __str__(self) -> str:
        """The text that `parse_shape` reads, such as 4x4x8_twisted."""
        return f"{self.x}x{self.y}x{self.z}{TWIST_SUFFIX if self.twisted else ''}"

    @property
    def dimensions(self) -> Grid:
        """The three dimensions, in chips."""
        return self.x, self.y, self.z

    @property
    def chips(self) -> int:
        """Number of chips."""
        return self.x * self.y * self.z

    @property
    def is_sub_cube(self) -> bool:
        """Whether the slice is less than one cube: a mesh on some hosts of one cube."""
        return self.dimensions in SUB_CUBE_SHAPES

    @property
    def cubes(self) -> int:
        """Number of whole cubes (0 for less than a cube)."""
        return self.chips // CHIPS_PER_CUBE

    @property
    def hosts(self) -> int:
        """Hosts that the slice touches: at least one, four chips each."""
        return -(-self.chips // CHIPS_PER_HOST)

    @property
    def box(self) -> Grid:
        """Dimensions in cubes, (0, 0, 0) for less than a cube."""
        if self.is_sub_cube:
            return 0, 0, 0
        return self.x // CUBE_EDGE_CHIPS, self.y // CUBE_EDGE_CHIPS, self.z // CUBE_EDGE_CHIPS

    @property
    def wraps(self) -> tuple[bool, bool, bool]:
        """Which axes close to rings when formed by circuits: all for whole cubes, none below."""
        ring = not self.is_sub_cube
        return ring, ring, ring

    @property
    def is_twistable(self) -> bool:
        """Whether the dimensions are k x k x 2k or k x 2k x 2k with whole cubes."""
        return _twistable(self.dimensions)

    @property
    def wrap_shifts(self) -> tuple[Grid, Grid, Grid]:
        """Per axis, by how many chips its wraparound link shifts (x, y, z); zero everywhere unless twisted.

        k x k x 2k: the x wrap and the y wrap shift z by k. k x 2k x 2k: the x wrap shifts y and z by k
        (the lattice of Camarero et al. that the ISCA paper names).
        """
        none, k = (0, 0, 0), self.x
        if not self.twisted:
            return none, none, none
        if self.y == self.x:
            return (0, 0, k), (0, 0, k), none
        return (0, k, k), none, none


def _twistable(dimensions: Grid) -> bool:
    """Whether dimensions are k x k x 2k or k x 2k x 2k chips of whole cubes."""
    x, y, z = dimensions
    return dimensions not in SUB_CUBE_SHAPES and z == 2 * x and y in (x, z)


def _check(dimensions: Grid, twisted: bool, where: str) -> None:
    """Raise InputError with the remedy where these dimensions are no shape of a slice."""
    text = "x".join(map(str, dimensions))
    if any(not isinstance(d, int) or isinstance(d, bool) or d < 1 for d in dimensions):
        raise refuse(where, f"{text} is no shape", "write three whole numbers of chips, such as 8x8x16")
    if dimensions != tuple(sorted(dimensions)):
        in_order = "x".join(map(str, sorted(dimensions)))
        raise refuse(where, f"the dimensions of {text} are not in rising order", f"write {in_order}")
    if dimensions not in SUB_CUBE_SHAPES and any(d % CUBE_EDGE_CHIPS for d in dimensions):
        near = "x".join(str(max(1, round(d / CUBE_EDGE_CHIPS)) * CUBE_EDGE_CHIPS) for d in dimensions)
        below = ", ".join("x".join(map(str, d)) for d in SUB_CUBE_SHAPES)
        raise refuse(
            where,
            f"{text} is not made of whole cubes of 4x4x4 chips",
            f"write multiples of 4, for example {near}, or for less than a cube one of {below}",
        )
    if twisted and not _twistable(dimensions):
        raise refuse(
            where,
            f"{text} can not be twisted: only k x k x 2k and k x 2k x 2k can, with k a multiple of 4",
            f"write {text}, or for example 4x4x8_twisted or 8x16x16_twisted",
        )


def parse_shape(text: object, where: str = "slice") -> Shape:
    """Read `8x8x16`, `4x4x8_twisted`, or cores as in `v4-2048` and `v5p-2048`; InputError at `where` otherwise."""
    if not isinstance(text, str):
        raise refuse(where, f"{text!r} is no shape", "write a text of three numbers of chips, such as 8x8x16")
    stripped = text.strip()
    if match := _CORES.fullmatch(stripped):
        return _shape_of_cores(stripped, int(match[2]), where)
    match = _SHAPE.fullmatch(stripped)
    if match is None:
        shown = repr(text if len(text) <= 60 else text[:57] + "...")
        raise refuse(where, f"{shown} is no shape", "write chips along x, y and z, such as 8x8x16 or 4x4x8_twisted")
    dimensions, twisted = (int(match[1]), int(match[2]), int(match[3])), match[4] is not None
    _check(dimensions, twisted, where)
    return Shape(*dimensions, twisted)


def _shape_of_cores(text: str, cores: int, where: str) -> Shape:
    """The default shape of a name that counts cores, such as v4-2048."""
    if cores % CORES_PER_CHIP:
        raise refuse(
            where, f"{text} names an odd number of cores, two per chip", "write for example v4-2048, or 8x8x16"
        )
    return shape_of_chips(cores // CORES_PER_CHIP, where)


def shape_of_chips(chips: int, where: str = "slice_chips") -> Shape:
    """The stated default shape of a size: the most cubic, sorted, not twisted (1024 -> 8x8x16, 3072 -> 12x16x16)."""
    for dimensions in SUB_CUBE_SHAPES:
        if dimensions[0] * dimensions[1] * dimensions[2] == chips:
            return Shape(*dimensions)
    if not isinstance(chips, int) or isinstance(chips, bool) or chips < 1 or chips % CHIPS_PER_CUBE:
        raise refuse(
            where,
            f"{chips!r} chips are no whole number of cubes",
            f"write a multiple of {CHIPS_PER_CUBE}, or 1, 2, 4, 8, 16 or 32 for less than a cube",
        )
    x, y, z = grid_nearest_cube(chips // CHIPS_PER_CUBE)
    return Shape(x * CUBE_EDGE_CHIPS, y * CUBE_EDGE_CHIPS, z * CUBE_EDGE_CHIPS)


def hosts_of_chips(chips: int) -> int:
    """Hosts that a slice of `chips` chips takes: one for 1, 2 and 4 chips, 16 per cube."""
    return max(1, chips * HOSTS_PER_CUBE // CHIPS_PER_CUBE)
