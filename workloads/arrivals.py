"""Arrivals and whole request laws: the plug-ins behind `requests:` of a service, all by inversion of named uniforms.

A law draws `count` requests from three blocks of uniforms, one each for arrivals, prompts and answers, so that two
designs see the same requests and a change of rate moves all arrivals in proportion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv

from topology.errors import refuse
from workloads.azure_2023 import (
    AZURE_2023_CONV_CV,
    AZURE_2023_CONV_RATE_PER_S,
    answer_probabilities,
    answer_quantiles,
    prompt_probabilities,
    prompt_quantiles,
)
from workloads.requests import LATEST_NS, LengthLaw, Requests
from workloads.traces import cached_azure_2023

Uniforms: TypeAlias = Callable[[str, int, int], NDArray[np.float64]]
"""(stream name, block, count) -> uniforms in [0, 1)."""

ARRIVALS, PROMPTS, ANSWERS = "arrivals", "prompts", "answers"
_LOGIT_SPAN, _LOGIT_POINTS = 45.0, 8192


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


def arrival_times_ns(gaps: NDArray[np.float64], rate_per_s: float) -> NDArray[np.int64]:
    """Arrival times in ns from gaps of mean 1: the first request arrives one gap after the start of the window.

    Gaps are cut where all of them together would pass `LATEST_NS`.
    """
    longest_ns = float(LATEST_NS // max(gaps.size, 1))
    return np.cumsum(np.rint(np.minimum(gaps * (1e9 / rate_per_s), longest_ns)).astype(np.int64))


@dataclass(frozen=True, kw_only=True)
class PoissonRequests:
    """Poisson arrivals, prompts of law `input`, answers of law `output`."""

    kind: Literal["poisson"] = "poisson"
    input: LengthLaw
    output: LengthLaw

    @property
    def longest_tokens(self) -> int:
        """The most tokens that the cache of one request can hold: prompt + answer - 1."""
        return self.input.longest_tokens + self.output.longest_tokens - 1

    @property
    def natural_rate_per_s(self) -> float | None:
        """The law has no rate of its own."""
        return None

    def draw(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Requests:
        """`count` requests at mean rate `rate_per_s`."""
        gaps = poisson_gaps(uniforms(f"{stream}.{ARRIVALS}", 0, count))
        return _with_lengths(self.input, self.output, arrival_times_ns(gaps, rate_per_s), uniforms, stream)


@dataclass(frozen=True, kw_only=True)
class GammaRequests:
    """Renewal arrivals with gamma gaps of coefficient of variation `cv` (1: Poisson; above: bursts)."""

    kind: Literal["gamma"] = "gamma"
    cv: float
    input: LengthLaw
    output: LengthLaw

    def __post_init__(self) -> None:
        """Refuse a variation that no gap can have."""
        if not 0.01 <= self.cv <= 20:
            raise ValueError(f"cv of {self.cv:g}: write a number between 0.01 and 20")

    @property
    def longest_tokens(self) -> int:
        """The most tokens that the cache of one request can hold: prompt + answer - 1."""
        return self.input.longest_tokens + self.output.longest_tokens - 1

    @property
    def natural_rate_per_s(self) -> float | None:
        """The law has no rate of its own."""
        return None

    def draw(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Requests:
        """`count` requests at mean rate `rate_per_s`."""
        gaps = gamma_gaps(uniforms(f"{stream}.{ARRIVALS}", 0, count), self.cv)
        return _with_lengths(self.input, self.output, arrival_times_ns(gaps, rate_per_s), uniforms, stream)


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

    def draw(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Requests:
        """`count` requests at mean rate `rate_per_s`."""
        gaps = gamma_gaps(uniforms(f"{stream}.{ARRIVALS}", 0, count), AZURE_2023_CONV_CV)
        u_prompt = uniforms(f"{stream}.{PROMPTS}", 0, count)
        u_answer = uniforms(f"{stream}.{ANSWERS}", 0, count)
        prompts = np.interp(u_prompt, prompt_probabilities(), prompt_quantiles())
        answers = _table_answers(u_prompt, u_answer)
        inputs, outputs = (np.maximum(np.rint(values), 1).astype(np.int64) for values in (prompts, answers))
        return Requests(arrival_times_ns(gaps, rate_per_s), inputs, outputs)


@dataclass(frozen=True, kw_only=True)
class TraceRequests:
    """Replay of a trace file by `path`: its own arrivals and lengths, stretched in time where a rate is asked for."""

    kind: Literal["trace"] = "trace"
    path: str
    format: Literal["azure_2023"] = "azure_2023"

    @property
    def longest_tokens(self) -> int:
        """The most tokens that the cache of one request can hold: prompt + answer - 1."""
        requests = cached_azure_2023(self.path)
        return int((requests.input_tokens + requests.output_tokens).max()) - 1

    @property
    def natural_rate_per_s(self) -> float | None:
        """The trace's mean rate."""
        return cached_azure_2023(self.path).rate_per_s

    def draw(self, rate_per_s: float, count: int, uniforms: Uniforms, stream: str) -> Requests:
        """The first `count` requests, time scaled to `rate_per_s`; past its end it starts again, a mean gap later."""
        requests = cached_azure_2023(self.path)
        own = requests.rate_per_s
        if own <= 0:
            raise refuse(
                self.path, "all requests arrive at one instant", "give a trace with at least two arrival times"
            )
        same = rate_per_s == own
        stretched = np.minimum(requests.arrival_ns * (own / rate_per_s), LATEST_NS)
        scaled = requests.arrival_ns if same else np.rint(stretched).astype(np.int64)
        rounds, places = np.divmod(np.arange(count, dtype=np.int64), requests.count)
        period_ns = int(scaled[-1]) + round(1e9 / rate_per_s)
        arrivals = scaled[places] + rounds * period_ns
        return requests.picked(places, arrivals)


RequestLaw: TypeAlias = PoissonRequests | GammaRequests | AzureConversation | TraceRequests
"""The laws that a scenario can name under `requests:` (`kind` tells them apart)."""


def draw_requests(
    law: RequestLaw, rate_per_s: float | None, count: int, uniforms: Uniforms, stream: str = "requests"
) -> Requests:
    """`count` requests of `law`; `rate_per_s` None takes the law's own rate (a trace: as it was).

    `uniforms(name, block, count)` are asked for under `stream`.arrivals, `stream`.prompts, `stream`.answers. InputError
    where no rate is known or a rate is not positive.
    """
    rate = law.natural_rate_per_s if rate_per_s is None else rate_per_s
    if rate is None:
        raise refuse("rate", f"requests of kind {law.kind} have no rate of their own", "write a rate or a load")
    if not 0 < rate < 1e9:
        raise refuse("rate", f"{rate:g} requests per second are out of range", "write a positive rate, below 1e9")
    if count < 1:
        raise refuse("requests", f"{count} requests can not be drawn", "write at least 1")
    return law.draw(rate, count, uniforms, stream)


def _with_lengths(
    prompt_law: LengthLaw, answer_law: LengthLaw, arrival_ns: NDArray[np.int64], uniforms: Uniforms, stream: str
) -> Requests:
    prompts = prompt_law.lengths(uniforms(f"{stream}.{PROMPTS}", 0, arrival_ns.size))
    answers = answer_law.lengths(uniforms(f"{stream}.{ANSWERS}", 0, arrival_ns.size))
    return Requests(arrival_ns, prompts, answers)


def _table_answers(u_prompt: NDArray[np.float64], u_answer: NDArray[np.float64]) -> NDArray[np.float64]:
    """Answers by linear interpolation in the row of the prompt's class."""
    table, probabilities = answer_quantiles(), answer_probabilities()
    row = np.minimum((u_prompt * len(table)).astype(np.int64), len(table) - 1)
    answers = np.empty(u_answer.shape)
    for index, quantiles in enumerate(table):
        members = row == index
        answers[members] = np.interp(u_answer[members], probabilities, quantiles)
    return answers
