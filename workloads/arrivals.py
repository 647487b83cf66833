"""Gaps between arrivals, of mean 1, by inversion of uniforms; what laws of requests and of jobs share."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv

from workloads.requests import LATEST_NS

Uniforms: TypeAlias = Callable[[str, int, int], NDArray[np.float64]]
"""(stream name, block, count) -> uniforms in [0, 1)."""

_LOGIT_SPAN, _LOGIT_POINTS = 45.0, 8192
CV_RANGE = (0.01, 20.0)
"""Coefficients of variation that a table of gamma gaps covers."""


def poisson_gaps(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exponential gaps of mean 1."""
    return np.asarray(-np.log1p(-u))


@lru_cache(maxsize=32)
def _gamma_table(cv: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithm of the gamma quantile of mean 1 over a grid of logit(u), where it is smooth in both tails."""
    shape = 1.0 / cv**2
    logit = np.linspace(-_LOGIT_SPAN, _LOGIT_SPAN, _LOGIT_POINTS)
    tail = 1.0 / (1.0 + np.exp(np.abs(logit)))
    gap = np.where(logit < 0, gammaincinv(shape, tail), gammainccinv(shape, tail)) / shape
    return logit, np.log(np.maximum(gap, 1e-300))


def gamma_gaps(u: NDArray[np.float64], cv: float) -> NDArray[np.float64]:
    """Gamma gaps of mean 1 and coefficient of variation `cv`, from a table (relative error below 1e-4)."""
    logit, log_gap = _gamma_table(cv)
    inside = np.clip(u, 1e-19, 1 - 2**-53)
    return np.asarray(np.exp(np.interp(np.log(inside) - np.log1p(-inside), logit, log_gap)))


def renewal_gaps(u: NDArray[np.float64], cv: float) -> NDArray[np.float64]:
    """Gaps of mean 1 and coefficient of variation `cv`: exponential at 1, gamma otherwise."""
    return poisson_gaps(u) if cv == 1 else gamma_gaps(u, cv)


def check_cv(cv: float) -> None:
    """Raise ValueError for a variation that no gap can have."""
    low, high = CV_RANGE
    if not low <= cv <= high:
        raise ValueError(f"cv of {cv:g}: write a number between {low:g} and {high:g}")


def arrival_times_ns(gaps: NDArray[np.float64], rate_per_s: float) -> NDArray[np.int64]:
    """Arrival times in ns from gaps of mean 1: the first request arrives one gap after the start of the window.

    Gaps are cut where all of them together would pass `LATEST_NS`.
    """
    longest_ns = float(LATEST_NS // max(gaps.size, 1))
    return np.cumsum(np.rint(np.minimum(gaps * (1e9 / rate_per_s), longest_ns)).astype(np.int64))
