"""Laws of the lengths of prompts and answers: uniforms in, whole tokens out, by inversion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from workloads.load.figures import QuantileTable, quantile_table
from workloads.requests import MAX_TOKENS


@dataclass(frozen=True, kw_only=True)
class FixedLengths:
    """Every prompt or answer has `tokens` tokens."""

    kind: Literal["fixed"] = "fixed"
    tokens: int

    def __post_init__(self) -> None:
        """Refuse a length below one token."""
        if not 1 <= self.tokens <= MAX_TOKENS:
            raise ValueError(f"tokens of {self.tokens}: write a whole number of at least 1")

    @property
    def longest_tokens(self) -> int:
        """The longest length that can be drawn."""
        return self.tokens

    @property
    def mean_tokens(self) -> float:
        """Mean of what is drawn."""
        return float(self.tokens)

    def lengths(self, u: NDArray[np.float64]) -> NDArray[np.int64]:
        """One length per uniform."""
        return np.full(u.shape, self.tokens, dtype=np.int64)


LEAST_CV = 1e-6
"""Below it all lengths up to `MAX_TOKENS` are nearly one, and the square of a smaller one soon is 0."""


@dataclass(frozen=True, kw_only=True)
class LognormalLengths:
    """Lognormal lengths: `mean` and `cv` (deviation over mean) are those of the untruncated law.

    Values outside [min, max] are redrawn. Drawing by inversion on the truncated law's quantile, u -> F(min) +
    u (F(max) - F(min)), is the same law, and spends one uniform per length. Values are rounded to whole tokens.
    """

    kind: Literal["lognormal"] = "lognormal"
    mean: float
    cv: float
    min: int = 1
    max: int

    def __post_init__(self) -> None:
        """Refuse a law without mass between its bounds."""
        if not (math.isfinite(self.mean) and self.mean > 0 and math.isfinite(self.cv) and self.cv > 0):
            raise ValueError(
                f"mean and cv must be above 0, not {self.mean:g} and {self.cv:g}: write such as `mean: 1024, cv: 1`"
            )
        if self.mean > MAX_TOKENS or self.cv > 1000:
            raise ValueError(f"mean {self.mean:g} and cv {self.cv:g} are out of reach: write a cv of at most 1000")
        if self.cv < LEAST_CV:
            raise ValueError(f"cv {self.cv:g} spreads no lengths: write at least {LEAST_CV:g}, or `kind: fixed`")
        if not 1 <= self.min <= self.max <= MAX_TOKENS:
            raise ValueError(
                f"1 <= min <= max must hold, not min {self.min} and max {self.max}: write a max above the min"
            )
        low, high = self._share_bounds()
        if not high - low > 1e-6:
            raise ValueError(
                f"almost no value of mean {self.mean:g} and cv {self.cv:g} lies between {self.min} and {self.max}: "
                "write bounds nearer to the mean"
            )

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm."""
        return math.sqrt(math.log1p(self.cv**2))

    @property
    def mu(self) -> float:
        """Mean of the logarithm."""
        return math.log(self.mean) - self.sigma**2 / 2

    def _share_bounds(self) -> tuple[float, float]:
        low, high = ((math.log(bound) - self.mu) / self.sigma for bound in (self.min, self.max))
        return float(ndtr(low)), float(ndtr(high))

    @property
    def longest_tokens(self) -> int:
        """The longest length that can be drawn."""
        return self.max

    @property
    def mean_tokens(self) -> float:
        """Mean of the truncated law (before rounding), in closed form."""
        low, high = self._share_bounds()
        z_low, z_high = ((math.log(bound) - self.mu) / self.sigma - self.sigma for bound in (self.min, self.max))
        return self.mean * float(ndtr(z_high) - ndtr(z_low)) / (high - low)

    def lengths(self, u: NDArray[np.float64]) -> NDArray[np.int64]:
        """One length per uniform: the quantile of the truncated law, rounded to whole tokens."""
        low, high = self._share_bounds()
        values = np.exp(self.mu + self.sigma * ndtri(low + u * (high - low)))
        return np.clip(np.rint(values), self.min, self.max).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class EmpiricalLengths:
    """Lengths by the quantiles of a real trace, shipped as figures (`of` names them), or by one's own `quantiles`.

    Own `quantiles` belong to equally spaced shares of requests, the first to 0 and the last to 1. Between two of them
    lengths are uniform.
    """

    kind: Literal["empirical"] = "empirical"
    of: str | None = None
    quantiles: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse unknown figures, and quantiles that fall or are no lengths."""
        if (self.of is None) == (self.quantiles is None):
            raise ValueError("lengths come from one source: write `of` with the name of figures, or `quantiles`")
        own = self.quantiles
        if own is not None and not (len(own) >= 2 and all(1 <= value <= MAX_TOKENS for value in own)):
            raise ValueError("quantiles must be at least two lengths of at least 1: write such as `[10, 200, 4000]`")
        if own is not None and any(after < before for before, after in pairwise(own)):
            raise ValueError("quantiles must not fall: write them from the shortest to the longest")
        if self.of is not None:
            quantile_table(self.of)

    @property
    def table(self) -> QuantileTable:
        """Shares of requests and the lengths that belong to them."""
        if self.of is not None:
            return quantile_table(self.of)
        assert self.quantiles is not None
        return QuantileTable(np.linspace(0.0, 1.0, len(self.quantiles)), np.array(self.quantiles, dtype=np.float64))

    @property
    def longest_tokens(self) -> int:
        """The longest length that can be drawn."""
        return round(float(self.table.quantiles[-1]))

    @property
    def mean_tokens(self) -> float:
        """Mean of the law (before rounding): the area under its quantiles."""
        table = self.table
        between = (table.quantiles[1:] + table.quantiles[:-1]) / 2
        return float(between @ np.diff(table.shares))

    def lengths(self, u: NDArray[np.float64]) -> NDArray[np.int64]:
        """One length per uniform: the quantile, rounded to whole tokens."""
        table = self.table
        return np.maximum(np.rint(np.interp(u, table.shares, table.quantiles)), 1).astype(np.int64)


LengthLaw: TypeAlias = FixedLengths | LognormalLengths | EmpiricalLengths
"""The laws that a scenario can name for a prompt or an answer (`kind` tells them apart)."""
