"""Load: rates that change, bursts, lengths from figures, ties of prompt and answer, traces made faster and thinner."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, spearmanr

from sim.streams import Streams
from tests.shared_data import shared_file
from topology.errors import InputError
from workloads.arrivals import poisson_gaps
from workloads.load import laws
from workloads.load.clocks import DayClock, OnOffClock
from workloads.load.figures import FIGURES, quantile_table
from workloads.load.laws import (
    DiurnalRequests,
    DrawnRequests,
    GammaRequests,
    OnOffRequests,
    PoissonRequests,
    draw_requests,
    request_pieces,
)
from workloads.load.lengths import EmpiricalLengths, FixedLengths, LognormalLengths
from workloads.load.pairing import LengthPairs
from workloads.load.replay import TraceRequests
from workloads.load.sessions import Sessions
from workloads.requests import Requests
from workloads.traces.reading import read_trace

STREAMS = Streams(11, 0)
IN = LognormalLengths(mean=1000, cv=1, max=8000)
OUT = LognormalLengths(mean=200, cv=0.7, min=2, max=2000)
DAY_S = 86_400.0


def drawn(law: laws.RequestLaw, count: int = 20_000, rate: float | None = 2.0) -> Requests:
    """`count` requests of a law."""
    return draw_requests(law, rate, count, STREAMS.uniforms)


@settings(deadline=None, max_examples=60)
@given(
    swing=st.floats(0.0, 1.0),
    peak=st.floats(0.0, 1.0),
    period_s=st.floats(1.0, 1e6),
    rate=st.floats(1e-3, 1e3),
    expected=st.floats(0.0, 1e5),
)
def test_the_clock_of_the_day_is_inverted_exactly(
    swing: float, peak: float, period_s: float, rate: float, expected: float
) -> None:
    """Goal: the integral of the rate up to an arrival is its gaps. Method: the closed form of the integral."""
    clock = DayClock(rate, swing, peak * period_s, period_s)
    at_s = clock.seconds(np.array([expected, expected + 0.5]))
    assert clock.expected(at_s) == pytest.approx([expected, expected + 0.5], rel=1e-7, abs=1e-6)
    assert at_s[0] <= at_s[1]


def test_diurnal_arrivals_follow_the_hour() -> None:
    """Goal: a Poisson process of the stated rate, whose mean is the rate of the service. Method: 30 days: counts by
    hour of the day against the integral of the rate, chi-square at 1e-3; the mean rate within four standard errors."""
    law = DiurnalRequests(input=IN, output=OUT, swing=0.8, peak=15 * 3600.0)
    count = round(0.05 * 30 * DAY_S)
    seconds = drawn(law, count, 0.05).arrival_ns * 1e-9
    assert count / seconds[-1] == pytest.approx(0.05, rel=4 / count**0.5)
    seconds = seconds[seconds < 29 * DAY_S]
    edges = np.arange(25) * 3600.0
    shares = np.diff(DayClock(1.0, 0.8, 15 * 3600.0, DAY_S).expected(edges)) / DAY_S
    counts = np.bincount((seconds % DAY_S // 3600).astype(int), minlength=24)
    assert chisquare(counts, shares * counts.sum()).pvalue > 1e-3
    assert counts[15] > 5 * counts[3]


def test_no_swing_is_a_steady_rate() -> None:
    """Goal: swing 0 is the law without hours, and that law calibrates. Method: the same luck."""
    for cv in (1.0, 2.0):
        law = DiurnalRequests(input=IN, output=OUT, swing=0.0, cv=cv)
        steady = drawn(GammaRequests(cv=cv, input=IN, output=OUT))
        assert drawn(law).arrival_ns == pytest.approx(steady.arrival_ns, rel=1e-4)
        assert np.array_equal(drawn(law.steady).arrival_ns, steady.arrival_ns)


@pytest.mark.parametrize("off_share", [0.0, 0.2])
def test_bursts_have_the_variance_of_two_states(off_share: float) -> None:
    """Goal: a Poisson process modulated by two states, stationary from its start. Method: counts in windows of 30 s
    over 200 independent runs against the closed form Var N(t) = m t + 2 (a - b)^2 p q (t - (1 - exp(-s t)) / s) / s
    (Fischer and Meier-Hellstern, 1993), mean within 4 standard errors, variance within 25 % (2.5 standard errors)."""
    on_s, off_s, rate, window_s = 8.0, 12.0, 5.0, 30.0
    law = OnOffRequests(input=IN, output=OUT, on_time=on_s, off_time=off_s, off_share=off_share)
    counts = []
    for run in range(200):
        requests = draw_requests(law, rate, 4000, Streams(5, run).uniforms)
        counts.append(int(np.count_nonzero(requests.arrival_ns < window_s * 1e9)))
    high = rate * (on_s + off_s) / (on_s + off_share * off_s)
    s, p = 1 / on_s + 1 / off_s, on_s / (on_s + off_s)
    spread = 2 * (high - off_share * high) ** 2 * p * (1 - p) * (window_s - (1 - np.exp(-s * window_s)) / s) / s
    variance = rate * window_s + spread
    assert np.mean(counts) == pytest.approx(rate * window_s, abs=4 * (variance / 200) ** 0.5)
    assert np.var(counts, ddof=1) == pytest.approx(variance, rel=0.25)


def test_bursts_without_difference_are_none() -> None:
    """Goal: at off_share 1 the states do not matter. Method: Poisson arrivals of the same luck."""
    law = OnOffRequests(input=IN, output=OUT, on_time=3.0, off_time=5.0, off_share=1.0)
    poisson = drawn(PoissonRequests(input=IN, output=OUT))
    assert drawn(law).arrival_ns == pytest.approx(poisson.arrival_ns, abs=20_000)


def test_times_on_and_off_do_not_depend_on_the_rate() -> None:
    """Goal: bursts last as long at any rate, so such a law does not scale. Method: edges at two rates."""
    clocks = [OnOffClock(rate, 8.0, 12.0, 0.0, STREAMS.uniforms, "x") for rate in (1.0, 7.0)]
    for clock in clocks:
        clock.seconds(np.array([100.0]))
    assert clocks[0].edges_s == pytest.approx(clocks[1].edges_s)
    assert not OnOffRequests(input=IN, output=OUT, on_time=1.0, off_time=1.0).scales
    assert PoissonRequests(input=IN, output=OUT).scales


EVERY_LAW: dict[str, DrawnRequests] = {
    "poisson": PoissonRequests(input=IN, output=OUT),
    "gamma": GammaRequests(cv=2, input=IN, output=OUT),
    "diurnal": DiurnalRequests(swing=0.5, input=IN, output=OUT),
    "on_off": OnOffRequests(on_time=10.0, off_time=30.0, input=IN, output=OUT),
    "sessions": PoissonRequests(input=IN, output=OUT, sessions=Sessions(turns=3, return_mean=60.0, max_context=16_384)),
}


@pytest.mark.parametrize("name", EVERY_LAW)
def test_no_law_shifts_the_draws_of_another(name: str) -> None:
    """Goal: paired comparisons. Method: change one law at a time and compare what must stay; draw more requests."""
    law = EVERY_LAW[name]
    base = drawn(law, 3000)
    fields = {"input": law.input, "output": law.output, "sessions": law.sessions}
    rest = {key: getattr(law, key) for key in ("cv", "swing", "on_time", "off_time") if hasattr(law, key)}
    short = drawn(type(law)(**(fields | rest | {"input": FixedLengths(tokens=7)})), 3000)
    assert np.array_equal(short.arrival_ns, base.arrival_ns)
    assert np.array_equal(short.output_tokens, base.output_tokens)
    tied = drawn(type(law)(**(fields | rest | {"rank_correlation": 0.5})), 3000)
    assert np.array_equal(tied.arrival_ns, base.arrival_ns)
    if law.sessions is None:
        assert np.array_equal(tied.input_tokens, base.input_tokens)
    longer = drawn(law, 5000).first(3000)
    for field in ("arrival_ns", "input_tokens", "output_tokens"):
        assert np.array_equal(getattr(longer, field), getattr(base, field))


@pytest.mark.parametrize("name", sorted(set(EVERY_LAW) - {"sessions"}))
def test_pieces_are_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: long runs draw piece by piece in little memory. Method: blocks of 500; pieces against all at once; arrivals
    never fall from piece to piece and have the mean rate."""
    monkeypatch.setattr(laws, "BLOCK", 500)
    pieces = list(request_pieces(EVERY_LAW[name], 2.0, 4300, STREAMS.uniforms))
    whole = drawn(EVERY_LAW[name], 4300)
    assert [piece.count for piece in pieces] == [500] * 8 + [300]
    for field in ("arrival_ns", "input_tokens", "output_tokens"):
        assert np.array_equal(np.concatenate([getattr(piece, field) for piece in pieces]), getattr(whole, field))
    assert np.all(np.diff(whole.arrival_ns) >= 0)


def test_figures_have_the_quantiles_of_their_traces() -> None:
    """Goal: shipped figures are those of the files. Method: the percentiles of the data's README; means within 1 %."""
    known = {
        "mooncake_conversation_prompts": ([891, 980, 2652, 7888, 16984, 29091, 43574, 94862, 123192], 13403.12),
        "mooncake_conversation_answers": ([1, 24, 155, 358, 479, 606, 701, 1161, 2000], 348.50),
        "azure_2023_conv_prompts": ([2, 207, 396, 1020, 1189, 2734, 4083, 4142, 14050], 1154.70),
        "azure_2023_conv_answers": ([7, 54, 85, 129, 395, 424, 451, 601, 1000], 211.13),
    }
    assert set(known) == set(FIGURES)
    for name, (lengths, mean) in known.items():
        table, law = quantile_table(name), EmpiricalLengths(of=name)
        shares = [0, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1]
        assert np.interp(shares, table.shares, table.quantiles) == pytest.approx(lengths, abs=1)
        assert law.mean_tokens == pytest.approx(mean, rel=0.01)
        assert law.lengths(STREAMS.uniforms(name, 0, 100_000)).mean() == pytest.approx(mean, rel=0.02)
        assert law.lengths(np.array([0.0, 1 - 2**-53])).tolist() == [lengths[0], law.longest_tokens]


def test_own_quantiles() -> None:
    """Goal: people write their own figures. Method: a uniform law, and what is refused."""
    law = EmpiricalLengths(quantiles=(100, 300))
    assert law.lengths(np.array([0.0, 0.5, 0.999])).tolist() == [100, 200, 300]
    assert (law.mean_tokens, law.longest_tokens) == (200.0, 300)
    for bad in ((5,), (0, 5), (9, 5)):
        with pytest.raises(ValueError, match="quantiles must"):
            EmpiricalLengths(quantiles=bad)
    with pytest.raises(ValueError, match="one source"):
        EmpiricalLengths()
    with pytest.raises(ValueError, match="write one of azure_2023_conv_prompts"):
        EmpiricalLengths(of="azure")


@pytest.mark.parametrize("correlation", [-0.8, 0.3, 0.9])
def test_answers_are_tied_to_prompts_by_rank(correlation: float) -> None:
    """Goal: the rank correlation is the one that is asked for, lengths keep their laws. Method: 50,000 requests:
    Spearman within 0.015 (over four standard errors), Kolmogorov-Smirnov of the answers at 1e-3."""
    requests = drawn(PoissonRequests(input=IN, output=OUT, rank_correlation=correlation), 50_000)
    found = spearmanr(requests.input_tokens, requests.output_tokens).statistic
    assert float(found) == pytest.approx(correlation, abs=0.015)
    free = OUT.lengths(STREAMS.uniforms("elsewhere", 0, 50_000))
    assert kstest(requests.output_tokens, free).pvalue > 1e-3


def test_pairs_of_a_file_stay_together() -> None:
    """Goal: prompt and answer of one request. Method: every drawn pair is one of the file; means."""
    path = shared_file("llm_requests/azure_2023_conv.csv")
    law = PoissonRequests(pairs=LengthPairs(path=str(path)))
    real, requests = read_trace(path).requests, drawn(law, 50_000)
    known = set(zip(real.input_tokens.tolist(), real.output_tokens.tolist(), strict=True))
    assert set(zip(requests.input_tokens.tolist(), requests.output_tokens.tolist(), strict=True)) <= known
    assert requests.input_tokens.mean() == pytest.approx(1154.70, rel=0.02)
    assert law.longest_tokens == int((real.input_tokens + real.output_tokens).max()) - 1


def test_lengths_have_one_source() -> None:
    """Goal: helpful refusals. Method: none, both, ties without laws, ties out of range."""
    with pytest.raises(ValueError, match="write `input` and `output`, or `pairs`"):
        PoissonRequests(input=IN)
    pairs = LengthPairs(path="x")
    with pytest.raises(ValueError, match="either `pairs`"):
        PoissonRequests(input=IN, output=OUT, pairs=pairs)
    with pytest.raises(ValueError, match="with laws only"):
        PoissonRequests(pairs=pairs, rank_correlation=0.1)
    with pytest.raises(ValueError, match=r"between -0\.999 and 0\.999"):
        PoissonRequests(input=IN, output=OUT, rank_correlation=1.0)
    with pytest.raises(ValueError, match="swing"):
        DiurnalRequests(input=IN, output=OUT, swing=1.5)
    with pytest.raises(ValueError, match="a peak within it"):
        DiurnalRequests(input=IN, output=OUT, swing=0.5, peak=50.0, period=10.0)
    with pytest.raises(ValueError, match="at least 1 ms"):
        OnOffRequests(input=IN, output=OUT, on_time=0.0, off_time=1.0)
    with pytest.raises(InputError, match="times on and off in one window"):
        OnOffClock(1e-3, 1e-3, 1e-3, 0.0, STREAMS.uniforms, "x").seconds(np.array([1e9]))


def trace_law(folder: Path, **changed: object) -> TraceRequests:
    """A trace of 1,000 requests, one a second, with prefixes of one block each."""
    rows = [f'{{"timestamp": {1000 * n}, "input_length": 600, "output_length": {1 + n}, "hash_ids": [{n}]}}'
            for n in range(1000)]  # fmt: skip
    path = folder / "trace.jsonl"
    path.write_text("\n".join(rows))
    return TraceRequests(**({"path": str(path)} | changed))


def test_a_trace_runs_faster_and_thinner(tmp_path: Path) -> None:
    """Goal: scaling keeps all requests, thinning a random share of them, the same one at any rate. Method: factor 4,
    share 25 %: kept requests keep their time, and 4 sigma of a binomial."""
    plain = trace_law(tmp_path)
    faster = drawn(trace_law(tmp_path, rate_factor=4.0), 1000, None)
    assert faster.arrival_ns == pytest.approx(drawn(plain, 1000, None).arrival_ns / 4)
    thin = trace_law(tmp_path, share=0.25, loop=False)
    assert thin.natural_rate_per_s == pytest.approx(0.25)
    kept = drawn(thin, 1000, None)
    assert kept.count == pytest.approx(250, abs=4 * (1000 * 0.25 * 0.75) ** 0.5)
    assert (kept.arrival_ns // 10**9).tolist() == (kept.output_tokens - 1).tolist()
    twice = drawn(thin, 1000, 0.5)
    assert np.array_equal(twice.output_tokens, kept.output_tokens)
    assert twice.arrival_ns == pytest.approx(kept.arrival_ns / 2, abs=1)


def test_a_trace_repeats_with_other_prefixes(tmp_path: Path) -> None:
    """Goal: past its end a trace starts again, a mean gap later, and meets no prefix of the day before; or it ends.
    Method: 2,500 requests, with and without the loop."""
    requests = drawn(trace_law(tmp_path), 2500, None)
    assert requests.count == 2500
    assert np.all(np.diff(requests.arrival_ns) == 10**9)
    assert requests.output_tokens[2000:].tolist() == list(range(1, 501))
    assert requests.hash_ids is not None
    assert np.unique(requests.hash_ids).size == 2500
    assert drawn(trace_law(tmp_path, loop=False), 2500, None).count == 1000
    thin = drawn(trace_law(tmp_path, share=0.5), 2500, None)
    first, second = (thin.output_tokens[part] for part in (thin.arrival_ns < 10**12, thin.arrival_ns >= 10**12))
    assert thin.count == 2500
    assert set(first.tolist()) != set(second[: first.size].tolist())
    with pytest.raises(InputError, match="leaves no request"):
        drawn(trace_law(tmp_path, share=1e-4), 10, None)
    with pytest.raises(ValueError, match="share of 0"):
        trace_law(tmp_path, share=0.0)
    with pytest.raises(ValueError, match="rate_factor"):
        trace_law(tmp_path, rate_factor=0.0)


def test_gaps_are_those_of_the_streams() -> None:
    """Goal: arrivals by inversion of `requests.arrivals`. Method: the first gap by hand."""
    gap = float(poisson_gaps(STREAMS.uniforms("requests.arrivals", 0, 1))[0])
    assert drawn(EVERY_LAW["poisson"], 5).arrival_ns[0] == round(gap / 2 * 1e9)
