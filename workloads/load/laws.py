"""Whole request laws: the plug-ins behind `requests:` of a service.

A law draws requests from named streams of uniforms by the number of the request: arrivals, prompts, answers, and what
else it has. So two designs see the same requests, one law never shifts the draws of another, and a change of rate moves
arrivals alone. Request i is number i % BLOCK of block i // BLOCK of its streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from topology.units import ClosedShare, PositiveSeconds, Seconds
from workloads.arrivals import Uniforms, arrival_times_ns, check_cv, gamma_gaps, renewal_gaps
from workloads.load.azure_2023 import (
    AZURE_2023_CONV_CV,
    AZURE_2023_CONV_RATE_PER_S,
    answer_probabilities,
    answer_quantiles,
    prompt_probabilities,
    prompt_quantiles,
)
from workloads.load.clocks import Clock, DayClock, OnOffClock
from workloads.load.lengths import LengthLaw
from workloads.load.pairing import LengthPairs, check_lengths, tied_by_rank
from workloads.load.sessions import Sessions, session_requests
from workloads.requests import LATEST_NS, Requests, joined

Floats = NDArray[np.float64]
Tokens = NDArray[np.int64]
ARRIVALS, PROMPTS, ANSWERS = "arrivals", "prompts", "answers"
BLOCK = 1 << 20
"""Requests of one block of a stream, and of one piece."""


class RequestLaw(Protocol):
    """What a scenario can name under `requests:`; `kind` tells laws apart."""

    @property
    def kind(self) -> str:
        """Its name."""
        ...

    @property
    def longest_tokens(self) -> int:
        """The most tokens that the cache of one request can hold: prompt + answer - 1."""
        ...

    @property
    def natural_rate_per_s(self) -> float | None:
        """Requests per second where the law has a rate of its own."""
        ...

    @property
    def scales(self) -> bool:
        """Whether another rate only stretches the time between arrivals; bursts and returns have times of their own."""
        ...

    @property
    def steady(self) -> RequestLaw:
        """The same law at a rate that does not change with the hour: by it the capacity of a service is found."""
        ...

    def pieces(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Iterator[Requests]:
        """`count` requests at mean rate `rate_per_s`, piece by piece."""
        ...

    def draw(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Requests:
        """`count` requests at mean rate `rate_per_s`."""
        ...


@dataclass(frozen=True, kw_only=True)
class DrawnRequests:
    """What drawn requests share: their lengths, how prompt and answer belong together, and who comes back."""

    kind: str
    input: LengthLaw | None = None
    output: LengthLaw | None = None
    pairs: LengthPairs | None = None
    rank_correlation: float = 0.0
    sessions: Sessions | None = None

    def __post_init__(self) -> None:
        """Refuse requests without lengths, and arrivals that can not be."""
        check_lengths(self.input, self.output, self.pairs, self.rank_correlation)
        self.check_arrivals()

    def check_arrivals(self) -> None:
        """Refuse arrivals that can not be, by ValueError."""

    @property
    def longest_tokens(self) -> int:
        """The most tokens that the cache of one request can hold: prompt + answer - 1."""
        if self.pairs is not None:
            longest = self.pairs.longest_tokens
        else:
            assert self.input is not None
            assert self.output is not None
            longest = self.input.longest_tokens + self.output.longest_tokens - 1
        if self.sessions is None:
            return longest
        return max(longest + self.sessions.system_prompt, self.sessions.max_context)

    @property
    def natural_rate_per_s(self) -> float | None:
        """The law has no rate of its own."""
        return None

    @property
    def steady(self) -> DrawnRequests:
        """The same law at a rate that does not change with the hour: by it the capacity of a service is found."""
        return self

    @property
    def scales(self) -> bool:
        """Whether another rate only stretches the time between arrivals."""
        return self.sessions is None

    def gaps(self, u: Floats) -> Floats:
        """Gaps of mean 1 between arrivals on the clock of expected arrivals."""
        return renewal_gaps(u, 1.0)

    def clock(self, rate_per_s: float, uniforms: Uniforms, stream: str) -> Clock | None:
        """The clock of expected arrivals; None where the rate is the same all the time."""
        return None

    def lengths(self, block: int, count: int, uniforms: Uniforms, stream: str) -> tuple[Tokens, Tokens]:
        """Prompts and answers of `count` requests of a block."""
        u_prompt = uniforms(f"{stream}.{PROMPTS}", block, count)
        if self.pairs is not None:
            return self.pairs.drawn(u_prompt)
        assert self.input is not None
        assert self.output is not None
        u_answer = tied_by_rank(u_prompt, uniforms(f"{stream}.{ANSWERS}", block, count), self.rank_correlation)
        return self.input.lengths(u_prompt), self.output.lengths(u_answer)

    def times_ns(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Iterator[NDArray[np.int64]]:
        """Arrivals of `count` requests, block by block."""
        clock = self.clock(rate_per_s, uniforms, stream)
        done_ns, expected = 0, 0.0
        for block, size in blocks_of(count):
            gaps = self.gaps(uniforms(f"{stream}.{ARRIVALS}", block, size))
            if clock is None:
                times_ns = np.minimum(done_ns + arrival_times_ns(gaps, rate_per_s), LATEST_NS)
                done_ns = int(times_ns[-1])
            else:
                clocked = expected + np.cumsum(gaps)
                expected = float(clocked[-1])
                times_ns = np.rint(np.minimum(clock.seconds(clocked) * 1e9, LATEST_NS)).astype(np.int64)
            yield times_ns

    def pieces(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Iterator[Requests]:
        """`count` requests at mean rate `rate_per_s`, at most BLOCK at once (those of sessions all at once)."""
        if self.sessions is not None:
            yield self._session_requests(self.sessions, rate_per_s, count, uniforms, stream)
            return
        times = self.times_ns(rate_per_s, count, uniforms, stream)
        for (block, size), times_ns in zip(blocks_of(count), times, strict=True):
            yield Requests(times_ns, *self.lengths(block, size, uniforms, stream))

    def draw(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Requests:
        """`count` requests at mean rate `rate_per_s`."""
        return joined(list(self.pieces(rate_per_s, count, uniforms, stream)))

    def _session_requests(
        self, sessions: Sessions, rate_per_s: float, count: int, uniforms: Uniforms, stream: str
    ) -> Requests:
        def starts_s(many: int) -> Floats:
            of_sessions = self.times_ns(rate_per_s / sessions.mean_turns, many, uniforms, stream)
            return np.concatenate(list(of_sessions)) * 1e-9

        def lengths(turn: int, many: int) -> tuple[Tokens, Tokens]:
            return self.lengths(turn, many, uniforms, stream)

        return session_requests(sessions, starts_s, rate_per_s, count, lengths, uniforms, stream)


@dataclass(frozen=True, kw_only=True)
class PoissonRequests(DrawnRequests):
    """Poisson arrivals, prompts of law `input`, answers of law `output`."""

    kind: Literal["poisson"] = "poisson"


@dataclass(frozen=True, kw_only=True)
class GammaRequests(DrawnRequests):
    """Renewal arrivals with gamma gaps of coefficient of variation `cv` (1: Poisson; above: bursts)."""

    kind: Literal["gamma"] = "gamma"
    cv: float

    def check_arrivals(self) -> None:
        """Refuse a variation that no gap can have."""
        check_cv(self.cv)

    def gaps(self, u: Floats) -> Floats:
        """Gamma gaps."""
        return gamma_gaps(u, self.cv)


@dataclass(frozen=True, kw_only=True)
class DiurnalRequests(DrawnRequests):
    """Arrivals whose rate follows the hour: the mean times 1 + `swing` cos(2 pi (t - `peak`) / `period`).

    A window starts at hour 0. Gaps of variation `cv` run on the clock of expected arrivals (cv 1: a Poisson process of
    that rate, exactly). `load` is a share of the capacity at a steady rate.
    """

    kind: Literal["diurnal"] = "diurnal"
    swing: ClosedShare
    peak: Seconds = 14 * 3600.0
    period: PositiveSeconds = 24 * 3600.0
    cv: float = 1.0

    def check_arrivals(self) -> None:
        """Refuse what is no swing, hour, period or variation."""
        check_cv(self.cv)
        if not 0 <= self.swing <= 1:
            raise ValueError(f"swing of {self.swing:g}: write a share between 0 (none) and 1 (nothing at night)")
        if not (1e-3 <= self.period <= 1e9 and 0 <= self.peak <= self.period):
            what = f"a peak at {self.peak:g} s in a period of {self.period:g} s"
            raise ValueError(f"{what}: write a period of at least 1 ms and a peak within it")

    @property
    def steady(self) -> DrawnRequests:
        """The same gaps, lengths and sessions without the hour."""
        return GammaRequests(
            cv=self.cv,
            input=self.input,
            output=self.output,
            pairs=self.pairs,
            rank_correlation=self.rank_correlation,
            sessions=self.sessions,
        )

    def gaps(self, u: Floats) -> Floats:
        """Gaps on the clock of expected arrivals."""
        return renewal_gaps(u, self.cv)

    def clock(self, rate_per_s: float, uniforms: Uniforms, stream: str) -> Clock:
        """The clock of the day."""
        return DayClock(rate_per_s, self.swing, self.peak, self.period)


@dataclass(frozen=True, kw_only=True)
class OnOffRequests(DrawnRequests):
    """Bursts: Poisson arrivals at one rate for exponential times of mean `on_time`, then at `off_share` of it.

    The rate of the service is the long-run mean of both; a window starts in either state, as often as it lasts. (A
    Markov-modulated Poisson process of two states; with `off_share` 0 an interrupted one.)
    """

    kind: Literal["on_off"] = "on_off"
    on_time: PositiveSeconds
    off_time: PositiveSeconds
    off_share: ClosedShare = 0.0

    def check_arrivals(self) -> None:
        """Refuse what is no time or share."""
        if not (1e-3 <= self.on_time <= 1e9 and 1e-3 <= self.off_time <= 1e9):
            what = f"on_time of {self.on_time:g} s and off_time of {self.off_time:g} s"
            raise ValueError(f"{what}: write times of at least 1 ms, such as `20 s`")
        if not 0 <= self.off_share <= 1:
            raise ValueError(f"off_share of {self.off_share:g}: write a share between 0 (silence) and 1 (no bursts)")

    @property
    def scales(self) -> bool:
        """Bursts last as long at any rate."""
        return False

    def clock(self, rate_per_s: float, uniforms: Uniforms, stream: str) -> Clock:
        """The clock of both states."""
        return OnOffClock(rate_per_s, self.on_time, self.off_time, self.off_share, uniforms, stream)


@dataclass(frozen=True, kw_only=True)
class AzureConversation:
    """Requests as in the Azure conversation trace of 2023, from shipped quantiles: no file needed.

    Gamma gaps of the trace's coefficient of variation (not its bursts over minutes: their variance over mean is 16
    in windows of 60 s); prompts by their quantiles; answers by their quantiles among prompts of about that length.
    """

    kind: Literal["azure_2023_conv"] = "azure_2023_conv"

    @property
    def longest_tokens(self) -> int:
        """The most tokens that the cache of one request can hold: prompt + answer - 1."""
        return int(prompt_quantiles()[-1] + answer_quantiles().max()) - 1

    @property
    def natural_rate_per_s(self) -> float | None:
        """The trace's mean rate."""
        return AZURE_2023_CONV_RATE_PER_S

    @property
    def steady(self) -> AzureConversation:
        """The law itself."""
        return self

    @property
    def scales(self) -> bool:
        """Another rate only stretches the time between arrivals."""
        return True

    def pieces(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Iterator[Requests]:
        """`count` requests at mean rate `rate_per_s`, at most BLOCK at once."""
        done_ns = 0
        for block, size in blocks_of(count):
            gaps = gamma_gaps(uniforms(f"{stream}.{ARRIVALS}", block, size), AZURE_2023_CONV_CV)
            u_prompt = uniforms(f"{stream}.{PROMPTS}", block, size)
            u_answer = uniforms(f"{stream}.{ANSWERS}", block, size)
            prompts = np.interp(u_prompt, prompt_probabilities(), prompt_quantiles())
            answers = _table_answers(u_prompt, u_answer)
            inputs, outputs = (np.maximum(np.rint(values), 1).astype(np.int64) for values in (prompts, answers))
            times_ns = np.minimum(done_ns + arrival_times_ns(gaps, rate_per_s), LATEST_NS)
            done_ns = int(times_ns[-1])
            yield Requests(times_ns, inputs, outputs)

    def draw(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Requests:
        """`count` requests at mean rate `rate_per_s`."""
        return joined(list(self.pieces(rate_per_s, count, uniforms, stream)))


def blocks_of(count: int) -> Iterator[tuple[int, int]]:
    """(number, size) of the blocks that hold `count` requests."""
    for block in range(-(-count // BLOCK)):
        yield block, min(BLOCK, count - block * BLOCK)


def request_pieces(
    law: RequestLaw, rate_per_s: float | None, count: int, uniforms: Uniforms, stream: str = "requests"
) -> Iterator[Requests]:
    """`draw_requests` piece by piece, at most BLOCK requests at once, for long runs in little memory."""
    yield from law.pieces(_checked_rate(law, rate_per_s, count), count, uniforms, stream)


def draw_requests(
    law: RequestLaw, rate_per_s: float | None, count: int, uniforms: Uniforms, stream: str = "requests"
) -> Requests:
    """`count` requests of `law`; `rate_per_s` None takes the law's own rate (a trace: as it was).

    `uniforms(name, block, count)` are asked for under `stream`.arrivals, `stream`.prompts, `stream`.answers. InputError
    where no rate is known or a rate is not positive.
    """
    return law.draw(_checked_rate(law, rate_per_s, count), count, uniforms, stream)


def _checked_rate(law: RequestLaw, rate_per_s: float | None, count: int) -> float:
    rate = law.natural_rate_per_s if rate_per_s is None else rate_per_s
    if rate is None:
        raise refuse("rate", f"requests of kind {law.kind} have no rate of their own", "write a rate or a load")
    if not 0 < rate < 1e9:
        raise refuse("rate", f"{rate:g} requests per second are out of range", "write a positive rate, below 1e9")
    if count < 1:
        raise refuse("requests", f"{count} requests can not be drawn", "write at least 1")
    return rate


def _table_answers(u_prompt: Floats, u_answer: Floats) -> Floats:
    """Answers by linear interpolation in the row of the prompt's class."""
    table, probabilities = answer_quantiles(), answer_probabilities()
    row = np.minimum((u_prompt * len(table)).astype(np.int64), len(table) - 1)
    answers = np.empty(u_answer.shape)
    for index, quantiles in enumerate(table):
        members = row == index
        answers[members] = np.interp(u_answer[members], probabilities, quantiles)
    return answers
