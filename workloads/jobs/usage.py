"""What owners have used: chip-time that their jobs have held, in full or with a half-life.

With a half-life h, chip-time held at s counts 2^(-(t - s) / h) at t. A job that held c chips from a to b so counts, at
t >= b, c h / ln 2 (2^(-(t - b) / h) - 2^(-(t - a) / h)): the decay of Slurm's multifactor priority
(`PriorityDecayHalfLife`), without its steps. Without a half-life it counts c (b - a).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True)
class Holding:
    """An owner's job that has held `chips` chips since `start_us`."""

    owner: str
    chips: int
    start_us: int


class Usage:
    """The books of all owners, in chip-microseconds; read and written in order of time."""

    def __init__(self, half_life_s: float | None = None) -> None:
        """Nothing used. None: nothing is forgotten."""
        self._half_life_us = None if half_life_s is None else half_life_s * US_PER_S
        self._used: dict[str, float] = {}
        self._as_of_us: dict[str, int] = {}

    def ended(self, held: Holding, now_us: int) -> None:
        """A job gives back what it held."""
        self._used[held.owner] = self._of(held.owner, now_us) + self._held_for(held, now_us)
        self._as_of_us[held.owner] = now_us

    def at(self, now_us: int, running: Iterable[Holding]) -> dict[str, float]:
        """Chip-microseconds of each owner as they count now, with those of jobs that run."""
        used = {owner: self._of(owner, now_us) for owner in self._used}
        for held in running:
            used[held.owner] = used.get(held.owner, 0) + self._held_for(held, now_us)
        return used

    def _of(self, owner: str, now_us: int) -> float:
        """What is booked for an owner, as it counts now."""
        used = self._used.get(owner, 0)
        if self._half_life_us is None or not used:
            return used
        return used * math.exp2(-(now_us - self._as_of_us[owner]) / self._half_life_us)

    def _held_for(self, held: Holding, now_us: int) -> float:
        passed_us, half_life_us = now_us - held.start_us, self._half_life_us
        if half_life_us is None:
            return held.chips * passed_us
        return held.chips * half_life_us / math.log(2) * -math.expm1(-math.log(2) * passed_us / half_life_us)
