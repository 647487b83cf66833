"""Rates that change with time: the instant at which the expected number of arrivals reaches a value, by inversion.

A process of gaps of mean 1 on the clock of expected arrivals, read off on the clock of the day, has the rate that is
asked for; with exponential gaps it is a Poisson process of that rate, exactly, at one uniform per arrival.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from workloads.arrivals import Uniforms, poisson_gaps

Floats = NDArray[np.float64]
SOJOURNS, START = "sojourns", "start"
CYCLES = 4096
"""Pairs of an on and an off time that are drawn at once."""
MOST_CYCLES = 1 << 22
_NEWTON_STEPS, _TABLE_POINTS = 4, 4097


class Clock(Protocol):
    """From expected arrivals since the start (rising) to seconds since the start."""

    def seconds(self, expected: Floats) -> Floats:
        """Instants at which so many arrivals are expected to have come."""
        ...


class SteadyClock:
    """The same `rate_per_s` all the time."""

    def __init__(self, rate_per_s: float) -> None:
        self.rate_per_s = rate_per_s

    def seconds(self, expected: Floats) -> Floats:
        """Expected arrivals over the rate."""
        return expected / self.rate_per_s


class DayClock:
    """Rate `rate_per_s` (1 + swing cos(2 pi (t - peak) / period)), of which `rate_per_s` is the mean over a period."""

    def __init__(self, rate_per_s: float, swing: float, peak_s: float, period_s: float) -> None:
        self.rate_per_s, self.swing, self.period_s = rate_per_s, swing, period_s
        self.phase = 2 * math.pi * peak_s / period_s

    def rate(self, seconds: Floats) -> Floats:
        """Arrivals per second at an instant."""
        return np.asarray(self.rate_per_s * (1 + self.swing * np.cos(self._turn(seconds) - self.phase)))

    def expected(self, seconds: Floats) -> Floats:
        """Arrivals expected until an instant: the integral of the rate."""
        wave = np.sin(self._turn(seconds) - self.phase) + math.sin(self.phase)
        return np.asarray(self.rate_per_s * (seconds + self.swing * self.period_s / (2 * math.pi) * wave))

    def seconds(self, expected: Floats) -> Floats:
        """The inverse of `expected` within each period: from a table, made exact by Newton's steps."""
        per_period = self.rate_per_s * self.period_s
        periods = np.floor(expected / per_period)
        wanted = expected - periods * per_period
        grid = np.linspace(0.0, self.period_s, _TABLE_POINTS)
        known = self.expected(grid)
        found = np.interp(wanted, known, grid)
        place = np.clip(np.searchsorted(known, wanted, side="right"), 1, _TABLE_POINTS - 1)
        for _ in range(_NEWTON_STEPS):  # never outside the two points of the table, where the rate may be almost 0
            slope = np.maximum(self.rate(found), 1e-9 * self.rate_per_s)
            found = np.clip(found - (self.expected(found) - wanted) / slope, grid[place - 1], grid[place])
        return np.asarray(periods * self.period_s + found)

    def _turn(self, seconds: Floats) -> Floats:
        return 2 * math.pi * seconds / self.period_s


class OnOffClock:
    """Two states in turn, each of exponential length: mean `on_s` at one rate, mean `off_s` at `off_share` of it.

    The start is stationary: in state on with probability on / (on + off). `rate_per_s` is the long-run mean.
    """

    def __init__(
        self, rate_per_s: float, on_s: float, off_s: float, off_share: float, uniforms: Uniforms, stream: str
    ) -> None:
        self.rate_per_s, self.on_s, self.off_s = rate_per_s, on_s, off_s
        self.on_rate_per_s = rate_per_s * (on_s + off_s) / (on_s + off_share * off_s)
        self.off_rate_per_s = off_share * self.on_rate_per_s
        self._uniforms, self._stream = uniforms, stream
        self._starts_off = float(uniforms(f"{stream}.{START}", 0, 1)[0]) >= on_s / (on_s + off_s)
        self.edges_s = np.zeros(1)
        self.edges_expected = np.zeros(1)
        self._blocks = 0

    def seconds(self, expected: Floats) -> Floats:
        """Read off between the ends of the states, drawn as far as they are needed."""
        while self.edges_expected[-1] <= expected[-1]:
            missing = (expected[-1] - self.edges_expected[-1]) / (self.rate_per_s * (self.on_s + self.off_s))
            self._draw_more(1 + int(min(missing, MOST_CYCLES) / CYCLES))
        return np.asarray(np.interp(expected, self.edges_expected, self.edges_s))

    def _draw_more(self, blocks: int) -> None:
        if (self._blocks + blocks) * CYCLES > MOST_CYCLES:
            what = f"more than {MOST_CYCLES:,} times on and off in one window"
            raise refuse(self._stream, what, "write longer `on_time` and `off_time`, or a higher rate")
        name, known = f"{self._stream}.{SOJOURNS}", self._blocks
        drawn = [self._uniforms(name, block, 2 * CYCLES) for block in range(known, known + blocks)]
        lengths = poisson_gaps(np.concatenate(drawn))
        lengths[0::2] *= self.on_s
        lengths[1::2] *= self.off_s
        if self._blocks == 0 and self._starts_off:
            lengths[0] = 0.0
        arrivals = lengths.copy()
        arrivals[0::2] *= self.on_rate_per_s
        arrivals[1::2] *= self.off_rate_per_s
        self.edges_s = np.concatenate([self.edges_s, self.edges_s[-1] + np.cumsum(lengths)])
        self.edges_expected = np.concatenate([self.edges_expected, self.edges_expected[-1] + np.cumsum(arrivals)])
        self._blocks += blocks
