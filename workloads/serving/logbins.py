"""Integer logarithmic histograms: bins narrower than 1 %, the same on every machine, merging by addition.

A value v in ns below 256 is its own bin. Above, a bin holds the values with the same eight leading bits, so its width
is at most 1/128 of its low end (0.78 %) and its middle is off by at most 0.4 %. No logarithm is taken: compiled and
plain Python runs agree on every bin.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from topology.compilation import kernel_part

BINS = 44 * 128 + 256
"""Bins for values up to 2^52 ns (52 days)."""


@kernel_part
def bin_of(value_ns: int) -> int:
    """Bin of a time of at least 0 ns (longer than 52 days: the last bin)."""
    if value_ns < 256:
        return value_ns
    shift = math.frexp(float(value_ns))[1] - 8
    return min(shift * 128 + (value_ns >> shift), BINS - 1)


@kernel_part
def bin_low(index: int) -> int:
    """The least value in ns of a bin."""
    if index < 256:
        return index
    shift = (index >> 7) - 1
    return ((index & 127) + 128) << shift


def bin_middles_ns() -> NDArray[np.float64]:
    """Middle of each bin (BINS,) in ns: the value that a percentile reports."""
    index = np.arange(BINS, dtype=np.int64)
    shift = np.where(index < 256, 0, (index >> 7) - 1)
    low = np.where(index < 256, index, ((index & 127) + 128) << shift)
    return low + ((np.int64(1) << shift) - 1) / 2.0


def percentile_s(counts: NDArray[np.int64], share: float, infinite: int = 0) -> float:
    """Value in seconds that a share of the counted values does not exceed (nearest rank; nan when nothing was counted).

    `infinite` more values are counted as above every bin: a time to first token that the horizon cut off.
    """
    total = int(counts.sum()) + infinite
    if total == 0:
        return math.nan
    rank = max(1, math.ceil(share * total))
    cumulative = np.cumsum(counts)
    if rank > cumulative[-1]:
        return math.inf
    return float(bin_middles_ns()[int(np.searchsorted(cumulative, rank))]) * 1e-9


def mean_s(counts: NDArray[np.int64]) -> float:
    """Mean of the counted values in seconds, each taken as the middle of its bin (nan when nothing was counted)."""
    total = int(counts.sum())
    return float(counts @ bin_middles_ns()) / total * 1e-9 if total else math.nan
