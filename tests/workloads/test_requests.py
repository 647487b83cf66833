"""Requests: laws of lengths and arrivals by inversion of named uniforms."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import gammaincinv
from scipy.stats import kstest, lognorm

from sim.streams import Streams
from tests.shared_data import shared_file
from topology.errors import InputError
from workloads.arrivals import gamma_gaps, poisson_gaps
from workloads.load.laws import AzureConversation, GammaRequests, PoissonRequests, draw_requests
from workloads.load.lengths import FixedLengths, LognormalLengths
from workloads.load.replay import TraceRequests
from workloads.prefixes import with_samples
from workloads.requests import Requests, joined
from workloads.traces.reading import read_trace

STREAMS = Streams(7, 0)
PROMPTS = LognormalLengths(mean=65536, cv=1, max=122880)
ANSWERS = LognormalLengths(mean=1024, cv=1, min=2, max=8192)


def test_lengths_follow_the_law_redrawn_outside_its_bounds() -> None:
    """Goal: inversion on the truncated quantile is the law with redraws. Method: Kolmogorov-Smirnov against redrawn
    scipy draws, at a stated error of 1e-3; mean against its closed form."""
    drawn = PROMPTS.lengths(STREAMS.uniforms("x", 0, 20_000))
    free = lognorm(s=PROMPTS.sigma, scale=np.exp(PROMPTS.mu)).ppf(STREAMS.uniforms("y", 0, 60_000))
    kept = free[free <= 122880][:20_000]
    assert kstest(drawn, kept).pvalue > 1e-3
    assert drawn.mean() == pytest.approx(PROMPTS.mean_tokens, rel=0.01)
    assert free.mean() == pytest.approx(65536, rel=0.03)
    assert drawn.max() <= PROMPTS.longest_tokens == 122880


@settings(deadline=None, max_examples=80)
@given(
    mean=st.floats(1.0, 1e6),
    cv=st.floats(0.05, 4.0),
    low=st.integers(1, 10),
    factor=st.integers(2, 100),
    u=st.floats(0.0, 1.0, exclude_max=True),
)
def test_lengths_stay_within_bounds_and_rise_with_luck(mean: float, cv: float, low: int, factor: int, u: float) -> None:
    """Goal: whole tokens within [min, max], monotone in u. Method: random laws, or a refusal where no mass is left."""
    try:
        law = LognormalLengths(mean=mean, cv=cv, min=low, max=max(low, int(mean)) * factor)
    except ValueError:
        return
    pair = law.lengths(np.array([u / 2, u]))
    assert law.min <= pair[0] <= pair[1] <= law.max
    assert law.min * (1 - 1e-6) <= law.mean_tokens <= law.max * (1 + 1e-6)


def test_impossible_laws_are_refused() -> None:
    """Goal: helpful texts. Method: one bad field each."""
    with pytest.raises(ValueError, match="at least 1"):
        FixedLengths(tokens=0)
    with pytest.raises(ValueError, match="above 0"):
        LognormalLengths(mean=-1, cv=1, max=10)
    with pytest.raises(ValueError, match="above 0"):
        LognormalLengths(mean=float("nan"), cv=1, max=10)
    with pytest.raises(ValueError, match="min <= max"):
        LognormalLengths(mean=10, cv=1, min=20, max=10)
    with pytest.raises(ValueError, match="bounds nearer to the mean"):
        LognormalLengths(mean=1e6, cv=0.1, max=10)
    for cv in (1e-300, 1e-170, 1e-9):
        with pytest.raises(ValueError, match="kind: fixed"):
            LognormalLengths(mean=100, cv=cv, max=200)
    narrow = LognormalLengths(mean=100.2, cv=1e-6, max=200)
    assert narrow.mean_tokens == pytest.approx(100.2)
    assert narrow.lengths(np.array([1e-9, 0.5, 1 - 1e-9])).tolist() == [100] * 3
    with pytest.raises(ValueError, match="cv"):
        GammaRequests(cv=0, input=FixedLengths(tokens=1), output=FixedLengths(tokens=1))


@pytest.mark.parametrize("cv", [0.3, 1.0, 1.0942, 2.0, 5.0])
def test_gamma_gaps_equal_the_exact_quantile(cv: float) -> None:
    """Goal: the table of the gamma quantile is good to 1e-4. Method: against scipy, tails included."""
    u = np.concatenate([[1e-12, 1 - 1e-12, 1 - 2**-53], STREAMS.uniforms("gamma", 0, 5000)])
    exact = gammaincinv(1 / cv**2, u) * cv**2
    kept = exact > 1e-200
    assert gamma_gaps(u, cv)[kept] == pytest.approx(exact[kept], rel=1e-4)
    assert gamma_gaps(np.array([0.0]), cv)[0] >= 0


def test_gamma_of_cv_one_is_poisson() -> None:
    """Goal: cv 1 is exponential. Method: same uniforms, both laws."""
    u = STREAMS.uniforms("gaps", 0, 1000)
    assert gamma_gaps(u, 1.0) == pytest.approx(poisson_gaps(u), rel=1e-5)


@pytest.mark.parametrize("cv", [1.0, 2.0])
def test_rate_and_variation_of_arrivals(cv: float) -> None:
    """Goal: mean rate and CV of the gaps as asked for. Method: 200,000 requests, 2 % (over four standard errors)."""
    law = GammaRequests(cv=cv, input=PROMPTS, output=ANSWERS)
    requests = draw_requests(law, 3.0, 200_000, STREAMS.uniforms)
    gaps = np.diff(requests.arrival_ns)
    assert requests.rate_per_s == pytest.approx(3.0, rel=0.02)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.02)
    assert law.longest_tokens == 122880 + 8192 - 1


def test_designs_share_luck() -> None:
    """Goal: a rate moves arrivals in proportion and no length; more requests change none of the first; other streams
    differ. Method: draw again."""
    law = PoissonRequests(input=PROMPTS, output=ANSWERS)
    base = draw_requests(law, 2.0, 1000, STREAMS.uniforms)
    faster = draw_requests(law, 4.0, 1000, STREAMS.uniforms)
    longer = draw_requests(law, 2.0, 2000, STREAMS.uniforms)
    other = draw_requests(law, 2.0, 1000, STREAMS.uniforms, stream="other")
    assert faster.arrival_ns == pytest.approx(base.arrival_ns / 2, abs=1000)
    assert np.array_equal(faster.input_tokens, base.input_tokens)
    for field in ("arrival_ns", "input_tokens", "output_tokens"):
        assert np.array_equal(getattr(longer.first(1000), field), getattr(base, field))
        assert not np.array_equal(getattr(other, field), getattr(base, field))


def test_a_million_requests_take_well_under_a_second() -> None:
    """Goal: drawing is cheap. Method: best of two, generous bar of 1.5 s for a busy machine."""
    for law in (GammaRequests(cv=2, input=PROMPTS, output=ANSWERS), AzureConversation()):
        took = []
        for _ in range(2):
            start = time.perf_counter()
            draw_requests(law, 5.0, 1_000_000, STREAMS.uniforms)
            took.append(time.perf_counter() - start)
        assert min(took) < 1.5


def test_rates_are_asked_for_where_a_law_has_none() -> None:
    """Goal: refusals say what to write. Method: no rate, bad rate, no requests; a law with its own rate needs none."""
    law = PoissonRequests(input=FixedLengths(tokens=5), output=FixedLengths(tokens=3))
    with pytest.raises(InputError, match="write a rate or a load"):
        draw_requests(law, None, 10, STREAMS.uniforms)
    for rate in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="out of range"):
            draw_requests(law, rate, 10, STREAMS.uniforms)
    with pytest.raises(InputError, match="at least 1"):
        draw_requests(law, 1.0, 0, STREAMS.uniforms)
    assert draw_requests(AzureConversation(), None, 50_000, STREAMS.uniforms).rate_per_s == pytest.approx(
        5.53, rel=0.03
    )
    assert set(draw_requests(law, 1.0, 10, STREAMS.uniforms).output_tokens) == {3}


def _quantiles(values: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.quantile(values, [0.01, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99])


def test_shipped_figures_reproduce_the_azure_trace() -> None:
    """Goal: lengths like the trace's (README table), means, variation. Method: 400,000 draws: quantiles within 3 % or 4
    tokens, means within 1 %."""
    drawn = draw_requests(AzureConversation(), None, 400_000, STREAMS.uniforms)
    prompts = [29, 207, 396, 1020, 1189, 2734, 4083, 4142]
    answers = [16, 54, 85, 129, 395, 424, 451, 601]
    assert _quantiles(drawn.input_tokens) == pytest.approx(prompts, rel=0.03, abs=4)
    assert _quantiles(drawn.output_tokens) == pytest.approx(answers, rel=0.03, abs=4)
    assert drawn.input_tokens.mean() == pytest.approx(1154.70, rel=0.01)
    assert drawn.output_tokens.mean() == pytest.approx(211.13, rel=0.01)
    gaps = np.diff(drawn.arrival_ns)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0942, rel=0.01)
    assert drawn.input_tokens.max() + drawn.output_tokens.max() <= AzureConversation().longest_tokens + 1


def test_shipped_figures_keep_how_answers_depend_on_prompts() -> None:
    """Goal: answers are longest for prompts of middle length, as in the file. Method: mean answer by tenth of prompts,
    drawn against real, within 8 %."""
    real = read_trace(shared_file("llm_requests/azure_2023_conv.csv")).requests
    drawn = draw_requests(AzureConversation(), None, 400_000, STREAMS.uniforms)

    def by_tenth(requests: Requests) -> list[float]:
        order = np.argsort(requests.input_tokens, kind="stable")
        return [float(requests.output_tokens[part].mean()) for part in np.array_split(order, 10)]

    assert by_tenth(drawn) == pytest.approx(by_tenth(real), rel=0.08)


def test_replay_of_a_trace_file() -> None:
    """Goal: a trace is replayed as it is, scaled to a rate, started again past its end. Method: the Azure hour."""
    path = shared_file("llm_requests/azure_2023_conv.csv")
    law, real = TraceRequests(path=str(path)), read_trace(path).requests
    same = draw_requests(law, None, real.count, STREAMS.uniforms)
    assert np.array_equal(same.arrival_ns, real.arrival_ns)
    assert np.array_equal(same.output_tokens, real.output_tokens)
    twice = draw_requests(law, 2 * real.rate_per_s, real.count, STREAMS.uniforms)
    assert twice.rate_per_s == pytest.approx(2 * real.rate_per_s)
    longer = draw_requests(law, None, real.count + 5, STREAMS.uniforms)
    assert np.array_equal(longer.input_tokens[real.count :], real.input_tokens[:5])
    assert longer.arrival_ns[real.count] > longer.arrival_ns[real.count - 1]
    assert law.longest_tokens == int((real.input_tokens + real.output_tokens).max()) - 1


def test_broken_requests_are_refused() -> None:
    """Goal: a wrong array never reaches the kernel. Method: one fault each, the request named."""
    good = np.array([1, 2, 3])
    with pytest.raises(InputError, match="differ in number"):
        Requests(good, good, good[:2])
    with pytest.raises(InputError, match="request 1: arrives before"):
        Requests(np.array([5, 4, 6]), good, good)
    with pytest.raises(InputError, match="request 0: arrives before the window"):
        Requests(np.array([-5, 4, 6]), good, good)
    with pytest.raises(InputError, match="request 2: has an empty prompt"):
        Requests(good, np.array([1, 1, 0]), good)
    with pytest.raises(InputError, match="request 0: has an empty answer"):
        Requests(good, good, np.array([0, 1, 1]))
    assert Requests(good[:1], good[:1], good[:1]).rate_per_s == 0.0
    with pytest.raises(InputError, match="request 2: arrives later"):
        Requests(np.array([0, 1, 2**61]), good, good)
    with pytest.raises(InputError, match="request 1: has a prompt of more"):
        Requests(good, np.array([1, 2**41, 1]), good)
    with pytest.raises(InputError, match="request 0: has an answer of more"):
        Requests(good, good, np.array([2**62, 1, 1]))


@pytest.mark.parametrize(
    "name", ["arrival_ns", "input_tokens", "output_tokens", "hash_ids", "hash_offsets", "previous"]
)
def test_arrays_of_another_kind_are_refused(name: str) -> None:
    """Goal: nothing is cut to whole numbers, or wraps, in silence. Method: in place of each array, seven others."""
    good = np.array([1, 2])
    columns: dict[str, Any] = {
        "arrival_ns": good,
        "input_tokens": good,
        "output_tokens": good,
        "previous": np.array([-1, -1]),
    }
    pieces = {"hash_ids": good, "hash_offsets": np.array([0, 1, 2])}
    if name in pieces:
        columns |= pieces
    block = 16 if name in pieces else None
    Requests(**columns, hash_block_tokens=block)
    column = columns[name]
    others: list[Any] = [column.astype(kind) for kind in (np.float64, np.uint64, np.int32, np.bool_, object)]
    for other in (*others, column[:, None], column.tolist()):
        with pytest.raises(InputError, match=f"`{name}` is a .* not an array of int64 of one dimension"):
            Requests(**columns | {name: other}, hash_block_tokens=block)


def test_numbers_that_are_not_whole_are_refused() -> None:
    """Goal: half a sample, or a block of half a token, is no number. Method: several of each."""
    good, offsets = np.array([1, 1]), np.array([0, 1, 2])
    numbers: tuple[Any, ...] = (1.5, 2.0, True, math.nan, "2")
    for number in numbers:
        with pytest.raises(InputError, match=r"`samples` is .* not a whole number"):
            Requests(good, good, good, samples=number)
        with pytest.raises(InputError, match=r"`hash_block_tokens` is .* not a whole number"):
            Requests(good, good, good, good, offsets, number)
        with pytest.raises(ValueError, match="samples of a prompt: write a whole number"):
            with_samples(Requests(good, good, good), number)
    with pytest.raises(InputError, match="at most 2"):
        Requests(good, good, good, good, offsets, 2**70)


def test_joined_parts_keep_their_samples() -> None:
    """Goal: samples of a prompt stay samples of it. Method: two parts of two samples, with hashes and without; one of
    three beside them is refused."""
    good = np.array([1, 2])
    plain = Requests(good, good, good)
    two, later = with_samples(plain, 2), with_samples(plain.arriving(good + 5), 2)
    both = joined([two, later])
    assert (both.samples, both.count, both.hash_block_tokens) == (2, 8, 16)
    bare = [replace(part, hash_ids=None, hash_offsets=None, hash_block_tokens=None) for part in (two, later)]
    assert joined(bare).samples == 2
    with pytest.raises(InputError, match="some prompts have more samples"):
        joined([two, with_samples(plain.arriving(good + 5), 3)])


def test_prefix_hashes_go_with_their_requests() -> None:
    """Goal: who picks, repeats or cuts requests keeps each one's hashes. Method: three requests of 2, 0, 3 hashes."""
    times, tokens, ids = np.array([1, 2, 3]), np.array([9, 9, 9]), np.array([7, 8, 7, 9, 4])
    requests = Requests(times, tokens, tokens, ids, np.array([0, 2, 2, 5]), 4)
    again = requests.picked(np.array([2, 1, 0, 2]), np.array([1, 1, 2, 5]))
    assert again.hash_ids is not None
    assert again.hash_offsets is not None
    assert again.hash_ids.tolist() == [7, 9, 4, 7, 8, 7, 9, 4]
    assert again.hash_offsets.tolist() == [0, 3, 3, 5, 8]
    assert again.hash_block_tokens == 4
    two = requests.first(2)
    assert two.hash_ids is not None
    assert two.hash_ids.tolist() == [7, 8]
    assert requests.arriving(times + 1).hash_ids is ids


def test_broken_hashes_are_refused() -> None:
    """Goal: wrong hashes never reach a cache. Method: one fault each."""
    good, ids, offsets = np.array([1, 2]), np.array([0, 1]), np.array([0, 1, 2])
    with pytest.raises(InputError, match="all three or none"):
        Requests(good, good, good, ids)
    with pytest.raises(InputError, match="0 tokens in a block"):
        Requests(good, good, good, ids, offsets, 0)
    for bad in ([0, 1], [1, 1, 2], [0, 1, 1], [0, 3, 2]):
        with pytest.raises(InputError, match="one piece per request"):
            Requests(good, good, good, ids, np.array(bad), 16)
    with pytest.raises(InputError, match="request 0: has more prefix hashes than blocks"):
        Requests(good, good, good, ids, np.array([0, 2, 2]), 16)
    with pytest.raises(InputError, match="request 1: has a prefix hash below 0"):
        Requests(good, good, good, np.array([0, -1]), offsets, 16)
