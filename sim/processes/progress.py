"""How far a job is: what it has done, what is safe, and what a loss undoes. Whole numbers, so sums are exact.

Work is counted in millionths of a microsecond at full speed: a job that runs d microseconds at a speed of s millionths
does d * s of it.
"""

from __future__ import annotations

from typing import NamedTuple

from sim.trace import FULL_SPEED_PPM


class Point(NamedTuple):
    """A state of a job that can be saved: the instant, the work done, and the time run (what was undone left out)."""

    time_us: int
    done: int
    run_us: int


class Progress:
    """The work of one job. `work_us` is what it takes at full speed, None for work without end."""

    def __init__(self, work_us: int | None, *, loses: bool = True) -> None:
        """Nothing done. A job that does not `lose` has no state: a loss undoes nothing."""
        self.needed = None if work_us is None else work_us * FULL_SPEED_PPM
        self.poisoned_us: int | None = None
        self._loses = loses
        self._done = 0
        self._run_us = 0
        self._speed = 0
        self._since_us = 0
        self._safe = [Point(0, 0, 0)]

    @property
    def is_done(self) -> bool:
        """Whether all the work is done."""
        return self.needed is not None and self._done >= self.needed

    @property
    def done_us(self) -> int:
        """Productive time so far, as of the instant last counted."""
        return self._done // FULL_SPEED_PPM

    @property
    def is_at_risk(self) -> bool:
        """Whether a loss would undo anything, as of the instant last counted."""
        return self._loses and self._run_us > self._safe[-1].run_us

    @property
    def safe_us(self) -> int:
        """Productive time that a loss can not undo."""
        return self._safe[-1].done // FULL_SPEED_PPM

    def run(self, now_us: int, speed_ppm: int) -> None:
        """Go on at a speed from now; 0 stops."""
        passed_us = now_us - self._since_us
        if self._speed:
            self._done += passed_us * self._speed
            self._run_us += passed_us
        self._since_us, self._speed = now_us, speed_ppm

    def advance(self, now_us: int) -> None:
        """Count what was done up to now."""
        self.run(now_us, self._speed)

    def finish_in_us(self) -> int | None:
        """Microseconds until the work is done at the speed of now, from the instant last counted."""
        return None if self.needed is None else max(0, -(-(self.needed - self._done) // self._speed))

    def point(self) -> Point:
        """The state at the instant last counted, to be saved."""
        return Point(self._since_us, self._done, self._run_us)

    def commit(self, point: Point) -> bool:
        """A saved state is safe from now on; whether that is more than was safe before."""
        more = point.run_us > self._safe[-1].run_us
        if more:
            self._safe.append(point)
        return more

    def lose(self, now_us: int) -> int:
        """Go back to the last safe state (before what poisoned the work, if anything did): running undone, in us."""
        self.run(now_us, 0)
        poisoned_us, self.poisoned_us = self.poisoned_us, None
        if not self._loses:
            return 0
        while poisoned_us is not None and len(self._safe) > 1 and self._safe[-1].time_us > poisoned_us:
            self._safe.pop()
        undone_us = self._run_us - self._safe[-1].run_us
        self._done, self._run_us = self._safe[-1].done, self._safe[-1].run_us
        return undone_us
