"""When jobs arrive: Poisson, gamma-renewal, by hour and weekday. By inversion of one uniform per job.

Every law stretches one line of gaps of mean 1, so a change of rate moves all arrivals and draws none anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from topology.units import ClosedShare, PerSecond
from workloads.arrivals import gamma_gaps, poisson_gaps

Floats = NDArray[np.float64]
Uniforms: TypeAlias = Callable[[str, int, int], Floats]
"""(stream name, block, count) -> uniforms in [0, 1); the first of a block are the same whatever the count."""

HOURS_PER_WEEK = 168
HOUR_S = 3600.0
MOST_ARRIVALS = 10_000_000
"""More jobs than a run can play."""


def _check_rate(rate: float) -> None:
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"rate of {rate:g} /s: write a rate above 0, such as `rate: 139 /day`")


def _check_cv(cv: float) -> None:
    if not 0.01 <= cv <= 20:
        raise ValueError(f"cv of {cv:g}: write a number between 0.01 and 20")


class ArrivalLaw(Protocol):
    """What every law of arrivals offers."""

    @property
    def rate(self) -> float:
        """Mean arrivals per second."""

    def times_s(self, u: Floats) -> Floats:
        """Arrival times in seconds from the start (a Monday, 0 h), one per uniform, not falling."""


@dataclass(frozen=True, kw_only=True)
class PoissonArrivals:
    """Independent arrivals at `rate` per second."""

    kind: Literal["poisson"] = "poisson"
    rate: PerSecond

    def __post_init__(self) -> None:
        """Refuse a rate that is none."""
        _check_rate(self.rate)

    def times_s(self, u: Floats) -> Floats:
        """Sums of exponential gaps."""
        return np.asarray(np.cumsum(poisson_gaps(u)) / self.rate)


@dataclass(frozen=True, kw_only=True)
class GammaArrivals:
    """Renewal arrivals with gamma gaps of coefficient of variation `cv` (1: Poisson; above: bursts)."""

    kind: Literal["gamma"] = "gamma"
    rate: PerSecond
    cv: float

    def __post_init__(self) -> None:
        """Refuse a rate or a variation that is none."""
        _check_rate(self.rate)
        _check_cv(self.cv)

    def times_s(self, u: Floats) -> Floats:
        """Sums of gamma gaps."""
        return np.asarray(np.cumsum(gamma_gaps(u, self.cv)) / self.rate)


@dataclass(frozen=True, kw_only=True)
class WeeklyArrivals:
    """Arrivals whose rate follows the hour and the weekday; `rate` is its mean over a week.

    The rate of an hour is in proportion to 1 + `swing` cos(2 pi (hour - `peak_hour`) / 24), on Saturday and Sunday
    times `weekend`. Gaps of mean 1 and variation `cv` run on the clock of expected arrivals (cv 1: a Poisson process of
    that rate). The run starts on a Monday, 0 h. Swing and weekend: assumption, to be set from one's own log.
    """

    kind: Literal["weekly"] = "weekly"
    rate: PerSecond
    swing: ClosedShare = 0.5
    peak_hour: float = 15.0
    weekend: ClosedShare = 0.5
    cv: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no rate, swing, hour or variation."""
        _check_rate(self.rate)
        _check_cv(self.cv)
        if not 0 <= self.swing <= 1:
            raise ValueError(f"swing of {self.swing:g}: write a share between 0 (none) and 1 (nothing at night)")
        if not 0 <= self.weekend <= 1:
            raise ValueError(f"weekend of {self.weekend:g}: write the share of a weekday's rate, between 0 and 1")
        if not 0 <= self.peak_hour < 24:
            raise ValueError(f"peak_hour of {self.peak_hour:g}: write an hour of at least 0 and below 24")

    def times_s(self, u: Floats) -> Floats:
        """Renewals on the clock of expected arrivals, read off against the expected number up to each hour."""
        gaps = poisson_gaps(u) if self.cv == 1 else gamma_gaps(u, self.cv)
        expected = np.cumsum(gaps)
        by_hour = _expected_by_hour(self.swing, self.peak_hour, self.weekend)
        per_week = self.rate * HOURS_PER_WEEK * HOUR_S
        weeks = np.floor(expected / per_week)
        hours = np.interp(expected / per_week - weeks, by_hour, np.arange(HOURS_PER_WEEK + 1))
        return np.asarray((weeks * HOURS_PER_WEEK + hours) * HOUR_S)


@lru_cache(maxsize=64)
def _expected_by_hour(swing: float, peak_hour: float, weekend: float) -> Floats:
    """(169,): share of a week's arrivals expected before each hour, the rate taken constant within an hour."""
    hour = np.arange(HOURS_PER_WEEK)
    rate = 1 + swing * np.cos(2 * np.pi * (hour % 24 + 0.5 - peak_hour) / 24)
    rate = np.where(hour >= 5 * 24, weekend, 1.0) * rate
    return np.concatenate([[0.0], np.cumsum(rate) / rate.sum()])


AnyArrivals: TypeAlias = PoissonArrivals | GammaArrivals | WeeklyArrivals
"""The laws that a scenario can name under `arrivals:` (`kind` tells them apart)."""


def arrivals_before(law: ArrivalLaw, horizon_s: float, uniforms: Uniforms, stream: str) -> Floats:
    """Arrival times in seconds of all jobs before the horizon. InputError where there are too many to play."""
    expected = law.rate * horizon_s
    if expected > MOST_ARRIVALS:
        what = f"{expected:.3g} arrivals are expected before the horizon"
        raise refuse(stream, what, "write a lower rate or a shorter horizon")
    count = 64 + math.ceil(expected + 6 * math.sqrt(expected))
    while True:
        times = law.times_s(uniforms(stream, 0, count))
        if times[-1] >= horizon_s:
            return times[: int(np.searchsorted(times, horizon_s, side="left"))]
        if count > 4 * MOST_ARRIVALS:
            raise refuse(stream, "the arrivals do not reach the horizon", "write a smaller cv")
        count *= 2
