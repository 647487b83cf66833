"""Means with intervals, agreement with closed forms, and the bootstrap of a single history.

`scipy.special` only: importing `scipy.stats` takes seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from sim.streams import Streams

AGREEMENT_FLOOR = 0.0005
AGREEMENT_LEVEL = 0.9995
BOOTSTRAP_SAMPLES = 1000


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over `n` replications with a 95 % interval; `deviation` is the sample deviation s.

    The interval is NaN where none can be given: n = 1, or no variation seen (s = 0).
    """

    value: float
    ci_low: float = math.nan
    ci_high: float = math.nan
    n: int = 1
    deviation: float = math.nan

    @property
    def half_width(self) -> float:
        """Half the width of the interval; NaN where there is none."""
        return 0.5 * (self.ci_high - self.ci_low)

    @property
    def no_variation_seen(self) -> bool:
        """Several replications, all alike: not an interval of width zero."""
        return self.n > 1 and self.deviation == 0.0

    @property
    def interval_text(self) -> str:
        """The interval for people, in percent."""
        if self.no_variation_seen:
            return "no variation seen"
        return "no interval" if math.isnan(self.ci_low) else f"{self.ci_low:.2%} to {self.ci_high:.2%}"


def t_quantile(level: float, degrees: int) -> float:
    """Quantile of Student's t."""
    return float(special.stdtrit(degrees, level))


def mean_estimate(samples: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Mean of independent replications with its t-interval."""
    values: NDArray[np.float64] = np.asarray(samples, dtype=np.float64)
    n, value = len(values), float(np.mean(values))
    if n < 2:
        return Estimate(value=value, n=n)
    # values that are all alike have a deviation of exactly zero, whatever rounding does to their mean
    deviation = 0.0 if np.all(values == values[0]) else float(np.std(values, ddof=1))
    if deviation == 0.0:
        return Estimate(value=float(values[0]), n=n, deviation=0.0)
    half = t_quantile(0.5 + level / 2.0, n - 1) * deviation / math.sqrt(n)
    return Estimate(value=value, ci_low=value - half, ci_high=value + half, n=n, deviation=deviation)


def agrees_with(estimate: Estimate, closed_form: float | None) -> bool | None:
    """Whether |value - closed form| <= max(t(0.9995, R - 1) s / sqrt(R), 0.0005).

    None without a closed form, or with less than two replications.
    """
    if closed_form is None or estimate.n < 2:
        return None
    error = t_quantile(AGREEMENT_LEVEL, estimate.n - 1) * estimate.deviation / math.sqrt(estimate.n)
    return abs(estimate.value - closed_form) <= max(error, AGREEMENT_FLOOR)


def summed(long: Estimate, differences: Estimate) -> Estimate:
    """The sum of two independent estimates: half-widths are added in quadrature (how `delivered` is estimated)."""
    value = long.value + differences.value
    halves = [0.0 if math.isnan(e.half_width) else e.half_width for e in (long, differences)]
    half, deviation = math.hypot(*halves), math.hypot(*(e.deviation for e in (long, differences)))
    if half == 0.0:
        return Estimate(value=value, n=differences.n, deviation=deviation)
    return Estimate(value=value, ci_low=value - half, ci_high=value + half, n=differences.n, deviation=deviation)


def moving_block_rows(rows: int, streams: Streams, *, samples: int = BOOTSTRAP_SAMPLES) -> NDArray[np.int64]:
    """Row numbers (samples, rows) of a moving-block bootstrap of a sequence of `rows` windows.

    Blocks are sqrt(rows) windows long, longer than the usual cube root: outages outlast a window. Drawn from the stream
    `bootstrap` of `streams`.
    """
    length = max(1, math.isqrt(rows))
    blocks = -(-rows // length)
    firsts = streams.generator("bootstrap").integers(0, rows - length + 1, size=(samples, blocks))
    numbers = firsts[:, :, None] + np.arange(length)
    return np.asarray(numbers.reshape(samples, -1)[:, :rows], dtype=np.int64)
