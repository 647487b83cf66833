"""Replay of a trace file: its own arrivals and lengths, faster or slower, thinned out, over and over again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from topology.units import ClosedShare
from workloads.arrivals import Uniforms
from workloads.requests import LATEST_NS, Requests, joined
from workloads.traces.reading import cached_trace
from workloads.traces.trace import Trace, TraceFormat

KEPT = "kept"
"""Stream of the requests that a thinned trace keeps: number i of block r is request i of round r."""


@dataclass(frozen=True, kw_only=True)
class TraceRequests:
    """Replay of a trace file by `path`: its own arrivals and lengths, stretched in time where a rate is asked for.

    `rate_factor` times as fast; each request is kept with probability `share`. Past its end the trace starts again, a
    mean gap later, with prefixes of its own, unless `loop` is off.
    """

    kind: Literal["trace"] = "trace"
    path: str
    format: TraceFormat | None = None
    rate_factor: float = 1.0
    share: ClosedShare = 1.0
    loop: bool = True

    def __post_init__(self) -> None:
        """Refuse what is no factor or share."""
        if not (math.isfinite(self.rate_factor) and 1e-6 <= self.rate_factor <= 1e6):
            raise ValueError(
                f"rate_factor of {self.rate_factor:g}: write a number above 0, such as 2 for twice as fast"
            )
        if not 1e-6 <= self.share <= 1:
            raise ValueError(f"share of {self.share:g}: write a share of the requests above 0, such as `50 %`")

    @property
    def trace(self) -> Trace:
        """What the file holds."""
        return cached_trace(self.path, self.format)

    @property
    def longest_tokens(self) -> int:
        """The most tokens that the cache of one request can hold: prompt + answer - 1."""
        requests = self.trace.requests
        return int((requests.input_tokens + requests.output_tokens).max()) - 1

    @property
    def natural_rate_per_s(self) -> float | None:
        """The trace's mean rate, times its factor and share."""
        return self.trace.requests.rate_per_s * self.rate_factor * self.share

    @property
    def steady(self) -> TraceRequests:
        """The trace itself."""
        return self

    @property
    def scales(self) -> bool:
        """Another rate only stretches the time between arrivals."""
        return True

    def pieces(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Iterator[Requests]:
        """The first `count` requests at mean rate `rate_per_s`, one round of the trace at once."""
        requests = self.trace.requests
        own = requests.rate_per_s
        if own <= 0:
            what, advice = "all requests arrive at one instant", "give a trace with at least two arrival times"
            raise refuse(self.path, what, advice)
        if self.share * requests.count < 1:
            raise refuse(self.path, f"a share of {self.share:g} leaves no request", "write a larger `share`")
        stretch = own * self.share / rate_per_s
        stretched = np.minimum(requests.arrival_ns * stretch, LATEST_NS)
        times_ns = requests.arrival_ns if stretch == 1.0 else np.rint(stretched).astype(np.int64)
        period_ns = int(times_ns[-1]) + round(1e9 * self.share / rate_per_s)
        round_number, left = 0, count
        while left > 0 and (self.loop or round_number == 0):
            places = self._kept(round_number, requests.count, uniforms, stream)[:left]
            if places.size:
                later_ns = min(round_number * period_ns, LATEST_NS)
                piece = requests.picked(places, np.minimum(times_ns[places] + later_ns, LATEST_NS))
                yield _with_own_prefixes(piece, requests, round_number)
            left -= places.size
            round_number += 1

    def draw(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Requests:
        """The first `count` requests at mean rate `rate_per_s`; fewer where the trace ends and does not start again."""
        return joined(list(self.pieces(rate_per_s, count, uniforms, stream)))

    def _kept(self, round_number: int, count: int, uniforms: Uniforms, stream: str) -> NDArray[np.int64]:
        if self.share == 1.0:
            return np.arange(count)
        return np.flatnonzero(uniforms(f"{stream}.{KEPT}", round_number, count) < self.share)


def _with_own_prefixes(piece: Requests, trace: Requests, round_number: int) -> Requests:
    """A later round is another day: its prompts share prefixes with each other, not with those of the day before."""
    if piece.hash_ids is None or trace.hash_ids is None or round_number == 0 or trace.hash_ids.size == 0:
        return piece
    ids = piece.hash_ids + round_number * (int(trace.hash_ids.max()) + 1)
    lengths = piece.input_tokens, piece.output_tokens
    return Requests(piece.arrival_ns, *lengths, ids, piece.hash_offsets, piece.hash_block_tokens)
