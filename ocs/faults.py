"""What a dead switch or a dead optical end takes from slices: circuits, and which slices are hit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ocs.circuits import Circuits
from ocs.wiring import SIDES, Side, end_of_number
from topology.placement import Placement
from topology.pod import OPTICAL_ENDS_PER_CUBE, POSITIONS_PER_FACE


def circuits_on_switch(circuits: Circuits, switch: int) -> Circuits:
    """The circuits that run through a switch: n of a slice of n cubes, whichever switch it is."""
    through: Circuits = circuits[circuits[:, 0] == switch]
    return through


def circuits_on_end(circuits: Circuits, end: int) -> Circuits:
    """The circuit, one row or none, that uses the optical end of this number."""
    at = end_of_number(end)
    column = 1 if at.side is Side.PLUS else 2
    using: Circuits = circuits[(circuits[:, 0] == at.switch) & (circuits[:, column] == at.cube)]
    return using


def ends_of_circuits(circuits: Circuits) -> NDArray[np.int64]:
    """Numbers (K, 2) of the optical ends, + and -, that each circuit uses."""
    dimension, position = np.divmod(circuits[:, 0], POSITIONS_PER_FACE)
    within = dimension * len(SIDES) * POSITIONS_PER_FACE + position
    plus = circuits[:, 1] * OPTICAL_ENDS_PER_CUBE + within
    minus = circuits[:, 2] * OPTICAL_ENDS_PER_CUBE + within + POSITIONS_PER_FACE
    return np.stack([plus, minus], axis=1)


def dead_circuits(circuits: Circuits, switch_dead: NDArray[np.bool_], end_dead: NDArray[np.bool_]) -> Circuits:
    """The circuits that carry no light: through a dead switch (48,) or with a dead optical end (96 C,)."""
    return circuits[switch_dead[circuits[:, 0]] | end_dead[ends_of_circuits(circuits)].any(axis=1)]


def slices_on_switch(placements: Mapping[int, Placement]) -> list[int]:
    """The slices, of those by number, that any one switch touches: all that are joined by circuits, in rising order."""
    return sorted(number for number, placement in placements.items() if placement.has_light)


def slices_on_end(placements: Mapping[int, Placement], end: int) -> list[int]:
    """The slices that use the optical end of this number: the one, or none, with light on the end's cube."""
    cube = end // OPTICAL_ENDS_PER_CUBE
    return sorted(number for number, held in placements.items() if held.has_light and cube in held.cubes)


def cubes_with_dead_ends(cubes: int, dead_ends: Iterable[int]) -> NDArray[np.bool_]:
    """Per cube (C,), whether an optical end of it is among the dead ones: placement takes these cubes last."""
    marked = np.zeros(cubes, dtype=np.bool_)
    for end in dead_ends:
        marked[end // OPTICAL_ENDS_PER_CUBE] = True
    return marked
