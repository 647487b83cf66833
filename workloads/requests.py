"""Requests of a service, and the laws of their lengths: uniforms in, tokens out, by inversion."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from topology.errors import Fault, InputError, refuse

MAX_TOKENS = 2**40
"""Above any request: keeps sums of lengths far from the end of int64."""
LATEST_NS = 2**60
"""No request arrives later (36 years): the token kernel's clock ends at twice that."""


@dataclass(frozen=True)
class Requests:
    """Requests in order of arrival: `arrival_ns` from the start of the window, lengths in tokens (int64).

    Arrivals do not fall (equal times keep their order); prompts and answers have at least one token.

    Where prompts share prefixes, request i names the blocks of its prompt, each of `hash_block_tokens` tokens, by the
    numbers `hash_ids[hash_offsets[i] : hash_offsets[i + 1]]`: equal leading numbers are equal leading tokens. The last
    block may be partial; blocks past the last number are shared with nobody. All three are None without prefixes.
    """

    arrival_ns: NDArray[np.int64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    hash_ids: NDArray[np.int64] | None = None
    hash_offsets: NDArray[np.int64] | None = None
    hash_block_tokens: int | None = None

    def __post_init__(self) -> None:
        """Check lengths, order, signs and hashes; raise InputError naming the first request that is wrong."""
        sizes = {self.arrival_ns.size, self.input_tokens.size, self.output_tokens.size}
        if len(sizes) != 1:
            raise InputError(Fault("requests", "arrivals and lengths differ in number", "give one of each per request"))
        early = np.diff(self.arrival_ns, prepend=self.arrival_ns[:1]) < 0
        checks = (
            (self.arrival_ns < 0, "arrives before the window starts", "count arrivals from the start"),
            (early, "arrives before the one ahead of it", "sort by arrival"),
            (self.input_tokens < 1, "has an empty prompt", "leave it out"),
            (self.output_tokens < 1, "has an empty answer (a failed request)", "leave it out"),
        )
        faults = [Fault(f"request {int(np.argmax(bad))}", what, write) for bad, what, write in checks if np.any(bad)]
        if faults:
            raise InputError(faults)
        self._check_hashes()

    def _check_hashes(self) -> None:
        ids, offsets, block = self.hash_ids, self.hash_offsets, self.hash_block_tokens
        if ids is None or offsets is None or block is None:
            if not (ids is None and offsets is None and block is None):
                what = "prefix hashes come with their offsets and the tokens of a block"
                raise refuse("requests", what, "give all three or none")
            return
        if block < 1:
            raise refuse("requests", f"{block} tokens in a block of a prefix", "give at least 1")
        counts = np.diff(offsets)
        if offsets.size != self.count + 1 or offsets[0] != 0 or offsets[-1] != ids.size or np.any(counts < 0):
            what = "offsets of prefix hashes do not cut them into one piece per request"
            raise refuse("requests", what, "give the running sum of their numbers, from 0")
        many = counts > -(-self.input_tokens // block)
        if np.any(many):
            where = f"request {int(np.argmax(many))}"
            raise refuse(where, "has more prefix hashes than blocks of its prompt", "give one per block")
        if np.any(ids < 0):
            where = f"request {int(np.searchsorted(offsets, np.argmax(ids < 0), side='right')) - 1}"
            raise refuse(where, "has a prefix hash below 0", "number blocks from 0")

    @property
    def count(self) -> int:
        """Number of requests."""
        return int(self.arrival_ns.size)

    @property
    def rate_per_s(self) -> float:
        """Mean arrival rate: gaps over the time from the first to the last arrival (0 below two requests)."""
        if self.count < 2 or self.arrival_ns[-1] == self.arrival_ns[0]:
            return 0.0
        return (self.count - 1) / (float(self.arrival_ns[-1] - self.arrival_ns[0]) * 1e-9)

    def first(self, count: int) -> Requests:
        """The first `count` requests."""
        return self.picked(np.arange(min(count, self.count)), self.arrival_ns[:count])

    def picked(self, places: NDArray[np.int64], arrival_ns: NDArray[np.int64]) -> Requests:
        """The requests at `places` (some perhaps often, some never), arriving at `arrival_ns`."""
        lengths = self.input_tokens[places], self.output_tokens[places]
        if self.hash_ids is None or self.hash_offsets is None:
            return Requests(arrival_ns, *lengths)
        starts = self.hash_offsets[places]
        counts = self.hash_offsets[places + 1] - starts
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        ids = self.hash_ids[np.repeat(starts, counts) + within]
        return Requests(arrival_ns, *lengths, ids, offsets, self.hash_block_tokens)

    def arriving(self, arrival_ns: NDArray[np.int64]) -> Requests:
        """The same requests at other times, one for each."""
        return replace(self, arrival_ns=arrival_ns)


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


LengthLaw: TypeAlias = FixedLengths | LognormalLengths
"""The laws that a scenario can name for a prompt or an answer (`kind` tells them apart)."""
