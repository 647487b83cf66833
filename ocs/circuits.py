"""The circuits of a slice, and the plan that leads from old circuits to new ones.

Circuits are rows (switch, cube of the + end, cube of the - end) of an int64 array, sorted. A dimension of A cubes is a
ring: + of each cube to - of the next, the last to the first, on all 16 switches of the dimension; one cube closes on
itself. So n cubes use 48 n circuits. A twist shifts a wraparound by whole cubes: another matching of the same ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ocs.switch import DARK
from topology.placement import Placement
from topology.pod import CUBE_EDGE_CHIPS, DIMENSIONS, POSITIONS_PER_FACE, SWITCHES_PER_POD, Grid, places_of
from topology.shape import Shape
from topology.torus import Shifts, step_plus

Circuits = NDArray[np.int64]
"""Rows (switch, cube of the + end, cube of the - end), shape (K, 3), sorted by row."""


def no_circuits() -> Circuits:
    """An empty list of circuits."""
    return np.empty((0, 3), dtype=np.int64)


def circuits_of(placement: Placement) -> Circuits:
    """The 48 n circuits that join the n cubes of a placement; none for static wiring and for less than a cube."""
    if not placement.has_light:
        return no_circuits()
    following = _following(placement.shape)
    cubes = np.array(placement.cubes, dtype=np.int64)
    rows = np.empty((DIMENSIONS, POSITIONS_PER_FACE, len(cubes), 3), dtype=np.int64)
    for dimension in range(DIMENSIONS):
        rows[dimension, :, :, 0] = dimension * POSITIONS_PER_FACE + np.arange(POSITIONS_PER_FACE)[:, None]
        rows[dimension, :, :, 1] = cubes
        rows[dimension, :, :, 2] = cubes[following[dimension]]
    return _sorted(rows.reshape(-1, 3))


@lru_cache(maxsize=256)
def _following(shape: Shape) -> NDArray[np.int64]:
    """(3, n): per dimension, for each cube of a slice in order along x, y, z, the one that follows it on its ring."""
    box, shifts = shape.box, _in_cubes(shape.wrap_shifts)
    order = {at: number for number, at in enumerate(places_of(box))}
    rings = [[order[step_plus(at, dimension, box, shifts)] for at in order] for dimension in range(DIMENSIONS)]
    following = np.array(rings, dtype=np.int64)
    following.setflags(write=False)
    return following


def _in_cubes(shifts: Shifts) -> Shifts:
    """Shifts of wraparounds in cubes, from chips."""
    x, y, z = (_grid_in_cubes(shift) for shift in shifts)
    return x, y, z


def _grid_in_cubes(shift: Grid) -> Grid:
    """One shift in cubes; it is a whole number of them, else it could not be made by circuits."""
    assert not any(chips % CUBE_EDGE_CHIPS for chips in shift)
    return shift[0] // CUBE_EDGE_CHIPS, shift[1] // CUBE_EDGE_CHIPS, shift[2] // CUBE_EDGE_CHIPS


def _sorted(rows: Circuits) -> Circuits:
    """Rows in lexical order."""
    return rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReconfigurationPlan:
    """What has to change at the switches: circuits to cut, to make and to keep, each sorted."""

    cut: Circuits
    make: Circuits
    keep: Circuits

    @property
    def changes_per_switch(self) -> NDArray[np.int64]:
        """Circuits cut and made on each of the 48 switches."""
        switches = np.concatenate([self.cut[:, 0], self.make[:, 0]])
        return np.bincount(switches, minlength=SWITCHES_PER_POD).astype(np.int64)


def plan_reconfiguration(old: Circuits, new: Circuits) -> ReconfigurationPlan:
    """The plan that turns the circuits `old` into `new`; circuits in both are kept and stay lit."""
    size = int(max(old.max(initial=0), new.max(initial=0))) + 1
    old_keys, new_keys = _keys(old, size), _keys(new, size)
    stays = np.isin(old_keys, new_keys)
    return ReconfigurationPlan(
        cut=_sorted(old[~stays]), make=_sorted(new[~np.isin(new_keys, old_keys)]), keep=_sorted(old[stays])
    )


def _keys(rows: Circuits, size: int) -> NDArray[np.int64]:
    """One number per row, for comparing rows."""
    return (rows[:, 0] * size + rows[:, 1]) * size + rows[:, 2]


def dark_switches(cubes: int) -> NDArray[np.int64]:
    """The matching of all 48 switches of a pod without circuits: (48, C), the - end's cube for each + end, or DARK."""
    return np.full((SWITCHES_PER_POD, cubes), DARK, dtype=np.int64)


def carry_out(plan: ReconfigurationPlan, minus_of_plus: NDArray[np.int64]) -> NDArray[np.int64]:
    """The matching (48, C) of all switches after a plan: first every cut, then every make.

    Raises ValueError where a circuit to cut or to keep is not there, or an end to join is taken already.
    """
    after = minus_of_plus.copy()
    for rows, verb in ((plan.cut, "cut"), (plan.keep, "keep")):
        if not np.array_equal(after[rows[:, 0], rows[:, 1]], rows[:, 2]):
            raise ValueError(f"the plan would {verb} a circuit that is not there")
    after[plan.cut[:, 0], plan.cut[:, 1]] = DARK
    switch, plus, minus = plan.make.T
    if (after[switch, plus] != DARK).any():
        raise ValueError("the plan would join a + end that is in a circuit already")
    after[switch, plus] = minus
    if len(np.unique(switch * after.shape[1] + plus)) != len(switch):
        raise ValueError("the plan would join a + end twice")
    lit = np.sort(after, axis=1)
    if ((lit[:, 1:] == lit[:, :-1]) & (lit[:, 1:] != DARK)).any():
        raise ValueError("the plan would join a - end that is in a circuit already")
    return after
