"""Faults of light and links as people name them, and the links of a slice that they take.

`ocs:x:0`: the switch of dimension x and position 0. `port:x:0:3:+`: the port of one end on that switch, of cube 3 of
the slice (numbered along x, y, z) on its + side; `fibre:` and `transceiver:` the same. `link:0,0,3:x`: the link from
chip (0, 0, 3) one step up x, of light or copper.
"""

from __future__ import annotations

from collections.abc import Iterable

from ocs.wiring import SIDES, OpticalEnd, Side
from topology.errors import Fault, InputError
from topology.pod import CUBE_EDGE_CHIPS, DIMENSIONS, POSITIONS_PER_FACE, Grid, places_of
from topology.routing.channels import torus_of_shape
from topology.routing.faults import DeadLink, DeadLinks, dead_links_of_switch, link_numbers, links_of_numbers
from topology.shape import Shape
from topology.torus import Wraps, step_plus

AXES = "xyz"
END_KINDS = ("port", "fibre", "transceiver")
LONGEST_NAME = 60
WRITE = "write ocs:x:0 (a switch), port:x:0:3:+ (one end, of cube 3) or link:0,0,3:x (from a chip up an axis)"


def dead_links_of_names(
    shape: Shape, names: Iterable[str], where: str = "--fail", wraps: Wraps | None = None
) -> DeadLinks:
    """The links of a slice that these faults take, each once, by chip and axis.

    `wraps`: the slice is on static wiring, closes only along these axes and has no light. Raises InputError with one
    fault for each name that is no fault or is not there on this slice.
    """
    faults: list[Fault] = []
    found: list[DeadLink] = []
    for name in names:
        try:
            found.extend(_links_of_name(shape, name.strip(), where, wraps))
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    torus = torus_of_shape(shape, wraps)
    return links_of_numbers(torus, link_numbers(torus, found))


def _links_of_name(shape: Shape, name: str, where: str, wraps: Wraps | None) -> list[DeadLink]:
    """The links that one fault takes."""
    if len(name) > LONGEST_NAME:
        raise InputError(Fault(where, f"`{name[:LONGEST_NAME]}...` is no fault", WRITE))
    kind, *parts = name.split(":")
    if kind in ("host", "rack", "chip", "power_domain", "in_rack_link"):
        why = f"`{name}`: a dead {kind} takes its cube out of the slice, which no route goes around"
        raise InputError(Fault(where, why, "name light or a link: ocs:, port:, fibre:, transceiver: or link:"))
    if kind == "link" and len(parts) == 2:
        return [_link(shape, name, parts, where, wraps)]
    wanted = {"ocs": 2, **dict.fromkeys(END_KINDS, 4)}.get(kind)
    if wanted != len(parts):
        raise InputError(Fault(where, f"`{name}` is no fault", WRITE))
    if wraps is not None:
        raise InputError(Fault(where, f"`{name}`: static wiring has no switches", "write link:X,Y,Z:AXIS"))
    if shape.is_sub_cube:
        what = f"`{name}`: {shape} is less than a cube and has no light"
        raise InputError(Fault(where, what, "write link:X,Y,Z:AXIS, or a shape of whole cubes"))
    dimension, position = _switch(name, parts, where)
    links = dead_links_of_switch(shape, dimension, position)
    if kind == "ocs":
        return list(links)
    cube, side = _end(shape, name, parts, where)
    place = places_of(shape.box)[cube]
    chip = OpticalEnd(cube, dimension, side, position).chip
    at = tuple(CUBE_EDGE_CHIPS * p + c for p, c in zip(place, chip, strict=True))
    if side is Side.PLUS:
        return [link for link in links if link.chip == at]
    return [link for link in links if step_plus(link.chip, dimension, shape.dimensions, shape.wrap_shifts) == at]


def _switch(name: str, parts: list[str], where: str) -> tuple[int, int]:
    """Dimension and position of a switch."""
    position = _number(parts[1])
    if len(parts[0]) != 1 or parts[0] not in AXES or position is None or position >= POSITIONS_PER_FACE:
        what = f"`{name}`: there is no switch {parts[0]}:{parts[1]}"
        raise InputError(Fault(where, what, f"write x, y or z and a position from 0 to {POSITIONS_PER_FACE - 1}"))
    return AXES.index(parts[0]), position


def _end(shape: Shape, name: str, parts: list[str], where: str) -> tuple[int, Side]:
    """Cube within the slice, and side, of an end."""
    cube = _number(parts[2])
    if cube is None or cube >= shape.cubes:
        what = f"`{name}`: {shape} has no cube {parts[2]}"
        raise InputError(Fault(where, what, f"write a number from 0 to {shape.cubes - 1}"))
    if parts[3] not in {side.value for side in SIDES}:
        raise InputError(Fault(where, f"`{name}`: `{parts[3]}` is no side of a cube", "write + or -"))
    return cube, Side(parts[3])


def _link(shape: Shape, name: str, parts: list[str], where: str, wraps: Wraps | None) -> DeadLink:
    """A link from a chip up an axis."""
    numbers = [_number(part) for part in parts[0].split(",")]
    known = [number for number in numbers if number is not None]
    if len(numbers) != DIMENSIONS or len(known) != DIMENSIONS or len(parts[1]) != 1 or parts[1] not in AXES:
        raise InputError(Fault(where, f"`{name}` is no link", "write for example link:0,0,3:x"))
    chip: Grid = (known[0], known[1], known[2])
    link = DeadLink(chip, AXES.index(parts[1]))
    try:
        link_numbers(torus_of_shape(shape, wraps), [link])
    except InputError:
        what = f"`{name}`: {shape} has no link from chip {parts[0]} up {parts[1]}"
        write = "write a chip of the slice, numbered from 0, and an axis with a neighbour there"
        raise InputError(Fault(where, what, write)) from None
    return link


def _number(text: str) -> int | None:
    """A whole number from 0, or None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None
