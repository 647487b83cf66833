"""Light paths of a pod: which cube's + face is joined to which cube's - face, per dimension, in whole rings.

The 16 switches of a dimension always carry the same matching (one circuit for each face position), since slices are
made of whole cubes and twists shift by whole cubes. So three arrays over cubes hold what 48 switches do. The rings of a
shape come from the `ocs` room, once per shape.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ocs.circuits import circuits_of
from topology.placement import joined
from topology.pod import DIMENSIONS, POSITIONS_PER_FACE, SWITCHES_PER_POD, Pod
from topology.shape import Shape

Join = tuple[int, int, int]
"""(dimension, cube of the + end, cube of the - end): 16 circuits."""

_DARK = -1


@lru_cache(maxsize=256)
def ring_neighbours(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Per dimension, for each position of a cube in the slice (row-major), the position that its + face is joined to.

    Taken from the circuits of the shape on cubes 0 to n - 1; asserts that all 16 switches of a dimension agree.
    """
    rows = circuits_of(joined(shape, range(shape.cubes)))
    following = np.empty((SWITCHES_PER_POD, shape.cubes), dtype=np.int64)
    following[rows[:, 0], rows[:, 1]] = rows[:, 2]
    by_dimension = following.reshape(DIMENSIONS, POSITIONS_PER_FACE, shape.cubes)
    assert (by_dimension == by_dimension[:, :1]).all(), "the switches of a dimension carry different matchings"
    return tuple(tuple(by_dimension[dimension, 0].tolist()) for dimension in range(DIMENSIONS))


def joins_of(cubes: tuple[int, ...], shape: Shape) -> list[Join]:
    """The joins that make a slice of `shape` out of `cubes` in order along x, y, z (48 circuits per cube)."""
    return [
        (dimension, cubes[position], cubes[after])
        for dimension, neighbours in enumerate(ring_neighbours(shape))
        for position, after in enumerate(neighbours)
    ]


class Light:
    """The matching of + and - faces of all cubes of a pod, by job."""

    def __init__(self, pod: Pod) -> None:
        """All is dark."""
        self._next = [[_DARK] * pod.cubes for _ in range(DIMENSIONS)]
        self._before = [[_DARK] * pod.cubes for _ in range(DIMENSIONS)]
        self._joins: dict[int, list[Join]] = {}

    def holds(self, job: int) -> bool:
        """Whether a job has circuits."""
        return job in self._joins

    def joins(self, job: int) -> list[Join]:
        """The joins of a job's slice."""
        return self._joins.get(job, [])

    def connect(self, job: int, cubes: tuple[int, ...], shape: Shape) -> tuple[int, int]:
        """Bring a job's circuits to those of its slice and return how many were cut and how many made."""
        old, new = self._joins.get(job, []), joins_of(cubes, shape)
        kept = set(old).intersection(new)
        cut = [join for join in old if join not in kept]
        make = [join for join in new if join not in kept]
        self._cut(cut)
        for dimension, plus, minus in make:
            assert self._next[dimension][plus] == _DARK, f"+ face {dimension} of cube {plus} is in use"
            assert self._before[dimension][minus] == _DARK, f"- face {dimension} of cube {minus} is in use"
            self._next[dimension][plus] = minus
            self._before[dimension][minus] = plus
        self._joins[job] = new
        return POSITIONS_PER_FACE * len(cut), POSITIONS_PER_FACE * len(make)

    def disconnect(self, job: int) -> int:
        """Cut all circuits of a job and return how many there were."""
        joins = self._joins.pop(job)
        self._cut(joins)
        return POSITIONS_PER_FACE * len(joins)

    def _cut(self, joins: list[Join]) -> None:
        for dimension, plus, minus in joins:
            self._next[dimension][plus] = _DARK
            self._before[dimension][minus] = _DARK

    def check(self, cubes_of_job: dict[int, tuple[int, ...]]) -> None:
        """Assert that faces are matched one to one, and that circuits stay inside the slice of their job."""
        lit = 0
        for job, joins in sorted(self._joins.items()):
            cubes = cubes_of_job[job]
            assert len(joins) == DIMENSIONS * len(cubes), f"job {job} has {len(joins)} joins"
            for dimension, plus, minus in joins:
                assert plus in cubes, f"job {job} uses a face of cube {plus}, which it does not hold"
                assert self._next[dimension][plus] == minus, "the + face leads where the join says"
                assert self._before[dimension][minus] == plus, "the - face leads where the join says"
            lit += len(joins)
        used = sum(face != _DARK for faces in (*self._next, *self._before) for face in faces)
        assert used == 2 * lit, "no face is lit without a job"
