"""Colours of the project: inks, the looks of fabrics, and what the page makes of them in dark mode.

Colours are chosen to stay apart for colour-blind readers (light is blue, wires are warm, the ideal is grey), and every
fabric also has its own marker and dash.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

INK = "#1f2328"
MUTED = "#646c76"
GRID = "#dfe3e8"
PAPER = "#ffffff"
ON_DARK_FILL = "#fefefe"
ON_LIGHT_FILL = "#111418"


class FabricLook(NamedTuple):
    """Colour, marker and dash of a fabric; together they tell it apart without colour."""

    colour: str
    marker: str
    dash: Literal["-"] | tuple[float, tuple[float, ...]]


FABRIC_LOOKS = {
    "reconfigurable": FabricLook("#0067a5", "o", "-"),
    "static_aligned": FabricLook("#c24a05", "s", "-"),
    "static_contiguous": FabricLook("#9a7200", "^", (0, (5, 1.5))),
    "any_host": FabricLook("#5f6770", "d", (0, (1.5, 1.5))),
}
OTHER_LOOK = FabricLook("#7a3e8e", "v", (0, (4, 1, 1, 1)))

FLOOR = "#b4400c"
"""What can not be made faster: lines and words."""

# Colours that the page replaces in dark mode; fills that carry their own text stay as they are.
PAGE_COLOURS = {
    INK: ("ink", "#e7eaee"),
    MUTED: ("muted", "#a3abb5"),
    GRID: ("grid", "#343a42"),
    PAPER: ("paper", "#15181c"),
    FABRIC_LOOKS["reconfigurable"].colour: ("reconfigurable", "#58b4f0"),
    FABRIC_LOOKS["static_aligned"].colour: ("static-aligned", "#ff8d4d"),
    FABRIC_LOOKS["static_contiguous"].colour: ("static-contiguous", "#e3bd4a"),
    FABRIC_LOOKS["any_host"].colour: ("any-host", "#b4bcc6"),
    OTHER_LOOK.colour: ("other-fabric", "#cf9be0"),
    FLOOR: ("floor", "#ff9a5e"),
}


def fabric_look(fabric: str) -> FabricLook:
    """The look of a fabric; one more for a fabric that a plug-in brings."""
    return FABRIC_LOOKS.get(fabric, OTHER_LOOK)
