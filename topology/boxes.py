"""Boxes of cubes under static wiring, and whether a slice fits a pod at all.

Design: machine, section 1 ("Static") and measures, section 1.
"""

from __future__ import annotations

from functools import cache

from topology.errors import refuse
from topology.fabric import Fabric
from topology.packing import BoxTable, box_table, orientations
from topology.pod import CUBE_EDGE_CHIPS, AnyPod, FlatPod, Grid, Pod
from topology.shape import Shape


def fits_grid(box: Grid, grid: Grid) -> bool:
    """Whether a box of these dimensions, not turned, fits a grid."""
    return all(side <= length for side, length in zip(box, grid, strict=True))


@cache
def standard_box(grid: Grid, cubes: int) -> Grid | None:
    """The one standard box of `cubes` cubes on a grid: the most cubic that fits in some orientation, sorted; None if
    none.

    Most cubic: of least surface, as for `grid_nearest_cube`; on grids that are thin along an axis (25 cubes: 5x5x1)
    the most cubic box that fits is flat.
    """
    sides = sorted(grid)
    fitting = [
        (x * y + y * z + x * z, (x, y, z))
        for x in range(1, sides[0] + 1)
        for y in range(x, sides[1] + 1)
        if cubes % (x * y) == 0 and y <= (z := cubes // (x * y)) <= sides[2]
    ]
    return min(fitting)[1] if fitting else None


@cache
def aligned_box(grid: Grid, cubes: int) -> Grid | None:
    """Dimensions along X, Y, Z of the box that a block of `cubes` consecutive cubes fills, or None if it fills none."""
    _, grid_y, grid_z = grid
    if grid_z % cubes == 0:
        return 1, 1, cubes
    if cubes % grid_z == 0 and grid_y % (cubes // grid_z) == 0:
        return 1, cubes // grid_z, grid_z
    if cubes % (grid_y * grid_z) == 0:
        return cubes // (grid_y * grid_z), grid_y, grid_z
    return None


def contiguous_table(pod: Pod, cubes: int) -> BoxTable:
    """The table for `packing.packed_boxes` of the standard box of `cubes` cubes on a pod (no box at all: no place)."""
    box = standard_box(pod.grid, cubes)
    return box_table(pod.grid, box if box is not None else (1, 1, cubes))


def shape_of_box(box: Grid) -> Shape:
    """The shape, sorted and not twisted, of a box of cubes."""
    x, y, z = sorted(box)
    return Shape(x * CUBE_EDGE_CHIPS, y * CUBE_EDGE_CHIPS, z * CUBE_EDGE_CHIPS)


def check_fabric(fabric: Fabric, pod: AnyPod, where: str = "pod.fabric") -> None:
    """Raise InputError where `pod` can not have `fabric`."""
    if isinstance(pod, FlatPod) and fabric is not Fabric.ANY_HOST:
        raise refuse(where, f"a flat pod has no cubes, so no fabric {fabric.value}", "write any_host")


def check_slice_fits(fabric: Fabric, pod: AnyPod, shape: Shape, where: str = "slice") -> None:
    """Raise InputError where no empty, healthy pod of this fabric could hold a slice of this shape."""
    check_fabric(fabric, pod)
    if shape.chips > pod.chips:
        what = f"{shape} needs {shape.chips} chips and the pod has {pod.chips}"
        raise refuse(where, what, f"write a shape of at most {pod.chips} chips, or a larger pod")
    if fabric is not Fabric.STATIC_CONTIGUOUS or shape.is_sub_cube or not isinstance(pod, Pod):
        return
    if not any(fits_grid(turned, pod.grid) for turned in orientations(shape.box)):
        box, grid = ("x".join(map(str, sides)) for sides in (shape.box, pod.grid))
        what = f"{shape} is a box of {box} cubes, which fits a grid of {grid} in no orientation"
        standard = standard_box(pod.grid, shape.cubes)
        raise refuse(where, what, f"write {shape_of_box(standard)}" if standard else "write another size")
