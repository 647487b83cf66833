"""How many jobs do something at a time: stretches of time, added up to a function of steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class StepCount(NamedTuple):
    """A number that changes at instants: `value[i]` from `time_us[i]` to `time_us[i + 1]` (K,); the first time is 0."""

    time_us: Ints
    value: Ints

    def at(self, time_us: Ints) -> Ints:
        """The number at each of these instants."""
        return self.value[np.searchsorted(self.time_us, time_us, side="right") - 1]


def step_count(stretches: Iterable[tuple[int, int, int]]) -> StepCount:
    """The sum over stretches [start_us, end_us), each with its amount, at every instant from 0 on."""
    found = np.array(list(stretches), dtype=np.int64).reshape(-1, 3)
    times = np.concatenate([[0], found[:, 0], found[:, 1]])
    changes = np.concatenate([[0], found[:, 2], -found[:, 2]])
    time_us, place = np.unique(times, return_inverse=True)
    change = np.zeros(len(time_us), dtype=np.int64)
    np.add.at(change, place, changes)
    return StepCount(time_us.astype(np.int64), np.cumsum(change))


def joined_edges(from_us: int, until_us: int, every_us: int, counts: Iterable[StepCount]) -> Ints:
    """Instants (E,) from `from_us` to `until_us` between which none of `counts` changes, at most `every_us` apart."""
    looks = np.arange(from_us, until_us, every_us, dtype=np.int64)
    changes = [count.time_us[(count.time_us > from_us) & (count.time_us < until_us)] for count in counts]
    return np.unique(np.concatenate([looks, *changes, [until_us]])).astype(np.int64)
