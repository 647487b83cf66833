"""How long jobs work: any law with `quantile_s` will do; here is the one that ships with figures of a real cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topology.units import PositiveSeconds

PHILLY_QUANTILES_S: tuple[tuple[float, float], ...] = (
    (0, 1),
    (0.01, 16),
    (0.05, 39),
    (0.1, 57),
    (0.15, 62),
    (0.2, 67),
    (0.25, 72),
    (0.3, 91),
    (0.35, 160),
    (0.4, 214),
    (0.45, 307),
    (0.5, 452),
    (0.55, 611),
    (0.6, 877),
    (0.65, 1403),
    (0.7, 1941),
    (0.75, 3767),
    (0.8, 5590),
    (0.85, 8212),
    (0.9, 15663),
    (0.925, 27620),
    (0.95, 49476),
    (0.97, 95233),
    (0.98, 149679),
    (0.985, 182744),
    (0.99, 228313),
    (0.993, 286226),
    (0.996, 392788),
    (0.998, 570869),
    (0.999, 791196),
    (0.9995, 947352),
    (1, 1443363),
)
"""Quantiles of `duration`, rounded to seconds, of the 21,318 jobs of November 2017 in the Philly log (computed from the
log; Jeon et al., ATC 2019). Joined as below their mean is 11,899 s, the log's 11,718 s."""


class DurationLaw(Protocol):
    """A law of times; the laws of lives and repairs are such laws too."""

    def quantile_s(self, u: ArrayLike) -> NDArray[np.float64]:
        """The time in seconds that a share `u` of draws does not reach, in the shape of `u`."""


@dataclass(frozen=True, kw_only=True)
class PhillyDurations:
    """Run times as on the Philly cluster in November 2017, by its quantiles, the logarithm in between linear.

    No file is needed. `longest` cuts them off (a run of a month has no use for jobs of 17 days).
    """

    kind: Literal["philly_2017_11"] = "philly_2017_11"
    longest: PositiveSeconds | None = None

    def __post_init__(self) -> None:
        """Refuse a longest time that is none."""
        if self.longest is not None and not (math.isfinite(self.longest) and self.longest >= 1):
            raise ValueError(f"longest of {self.longest:g} s: write a time of at least 1 s")

    def quantile_s(self, u: ArrayLike) -> NDArray[np.float64]:
        """Quantiles in seconds."""
        share, seconds = np.array(PHILLY_QUANTILES_S).T
        times = np.exp(np.interp(np.asarray(u, dtype=np.float64), share, np.log(seconds)))
        return np.asarray(times if self.longest is None else np.minimum(times, self.longest))

    @property
    def mean_s(self) -> float:
        """Mean in seconds: that of `quantile_s` over 10^6 even shares (the file's own mean is 11,718 s)."""
        return float(self.quantile_s((np.arange(1_000_000) + 0.5) / 1_000_000).mean())
