"""Speculative decoding is exact, gives as many tokens per pass as the closed form says, in the time of its rule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from sim.streams import Streams
from tests.serving.draft_cases import check_ahead, draw_draft_case
from tests.serving.test_exactness import check_cuts, check_workload, compiled_digests, uncompiled_digests
from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving.batching import StaticBatching
from workloads.serving.capacity import saturated_requests_per_s
from workloads.serving.drafts import Speculation, speculative_costs
from workloads.serving.measures import ServiceMeasures
from workloads.serving.service import Service, ServiceConfig

FAST = 48
check_seed = partial(
    check_workload, draw=draw_draft_case, check=check_ahead, counts=("drafted", "accepted", "swap_ns", "tier_ns")
)


def check_totals(totals: Counter[str], workloads: int) -> None:
    """Much was drafted and accepted, under evictions and losses."""
    check_cuts(totals, workloads)
    assert totals["drafted"] > totals["accepted"] >= 50 * workloads
    assert totals["evictions"] >= workloads
    assert totals["losses"] >= workloads
    assert totals["completed"] >= 10 * workloads


def test_drafts_agree_in_every_way_of_running() -> None:
    """Goal: several tokens per pass change nothing about exactness, and no block is lost. Method: random workloads of
    every other kind (swap, prefixes, tiers, clients, a central queue) with speculation, in macro steps, single steps,
    looked at 40 times with blocks counted, and by the naive reference, accepted drafts included."""
    totals: Counter[str] = Counter()
    for seed in range(FAST):
        check_seed(seed, totals)
    check_totals(totals, FAST)


def test_drafts_agree_in_plain_python() -> None:
    """Goal: the same code runs uncompiled with the same bits. Method: some workloads, without compilation."""
    assert uncompiled_digests(0, 24, draw="draw_draft_case") == compiled_digests(0, 24, draw_draft_case)


LARGE = synthetic_pass_costs(kv_read_s_per_token=0.0)
SMALL = synthetic_pass_costs(fixed_s=4e-4, weights_s=1e-4, per_token_s=1e-7, kv_read_s_per_token=0.0)
PLAIN = ServiceConfig(costs=LARGE, blocks=100_000, record_requests=1000)


def uniforms(name: str, block: int, count: int) -> np.ndarray:
    """Draws of the requests."""
    return Streams(11, 0).uniforms(name, block, count)


def speculating(length: int, acceptance: float) -> ServiceConfig:
    """A service that drafts."""
    return replace(PLAIN, speculation=Speculation(length=length, acceptance=acceptance, draft=SMALL))


def served(config: ServiceConfig, requests: Requests) -> ServiceMeasures:
    """All requests, with their draws."""
    return Service(config, requests, uniforms).finish()


@pytest.mark.parametrize(("length", "acceptance"), [(1, 0.5), (4, 0.8), (4, 0.0), (3, 1.0), (8, 0.6)])
def test_tokens_per_pass(length: int, acceptance: float) -> None:
    """Goal: a sequence gets (1 - alpha^(k + 1)) / (1 - alpha) tokens per pass on average (Leviathan et al., equation
    1).

    Method: 200 answers of 2,001 tokens at once: tokens accepted per draft against the closed form, within four standard
    errors of the mean (variance of one pass by its law; false alarms below 1e-4 per case).
    """
    measures = served(
        speculating(length, acceptance), Requests(np.zeros(200, dtype=np.int64), *np.full((2, 200), 2001))
    )
    passes = measures.count("drafted") / length
    expected = sum(acceptance**k for k in range(length + 1))
    if acceptance < 1:
        assert expected == pytest.approx((1 - acceptance ** (length + 1)) / (1 - acceptance))
    shares = [acceptance**k * (1 - acceptance) for k in range(length)] + [acceptance**length]
    deviation = math.sqrt(sum(share * (1 + k - expected) ** 2 for k, share in enumerate(shares)))
    found = 1 + measures.count("accepted") / passes
    assert abs(found - expected) <= 4 * deviation / math.sqrt(passes)
    assert speculating(length, acceptance).speculation.tokens_per_pass == pytest.approx(expected)
    assert measures.count("tokens") == 200 * 2001


def test_time_of_an_answer_that_is_always_accepted() -> None:
    """Goal: a pass takes k steps of the draft model and one check of k + 1 tokens; prompts are computed by both.
    Method: one answer of 1 + 25 x 4 tokens with alpha 1 and k 3: its end to the nanosecond; TPOT; the share of gaps
    that are 0."""
    config = speculating(3, 1.0)
    measures = served(config, Requests(np.array([0]), np.array([500]), np.array([101])))
    record = measures.record
    assert record is not None
    first = round((LARGE.prefill_s(500) + SMALL.prefill_s(500)) * 1e9)
    one = LARGE.parts_s(4, prompt=False).sum() + 3 * SMALL.parts_s(1, prompt=False).sum()
    assert record.first_token_ns[0] == pytest.approx(first, abs=1)
    assert record.finish_ns[0] - record.first_token_ns[0] == pytest.approx(25 * one * 1e9, abs=25)
    assert measures.histograms[2, 0] == 75
    assert measures.count("steps") == 26


def test_draws_belong_to_requests() -> None:
    """Goal: which drafts are accepted does not depend on the batch or on evictions. Method: passes of each request
    alone and of all together in a tight cache, by the drafts of all."""
    rng = np.random.default_rng(3)
    prompts, outputs = rng.integers(1, 90, size=12), rng.integers(1, 60, size=12)
    together = Requests(np.zeros(12, dtype=np.int64), prompts, outputs)
    wide, tight = speculating(4, 0.7), replace(speculating(4, 0.7), blocks=12, watermark=0.0)
    free, squeezed = served(wide, together), served(tight, together)
    assert squeezed.count("evictions") > 0 == free.count("evictions")
    assert squeezed.count("tokens") == free.count("tokens") == outputs.sum()
    assert (
        abs(squeezed.count("accepted") / squeezed.count("drafted") - free.count("accepted") / free.count("drafted"))
        < 0.1
    )


def test_speculation_pays_for_few_sequences() -> None:
    """Goal: where a pass waits for weights, accepted drafts are won time; at the throughput of a full batch the check
    is what costs. Method: one answer against the same without drafts; the closed form of the gain."""
    one = Requests(np.array([0]), np.array([100]), np.array([4001]))
    plain, drafted = served(PLAIN, one).record, served(speculating(4, 0.8), one).record
    assert plain is not None
    assert drafted is not None
    gain = float(plain.finish_ns[0] / drafted.finish_ns[0])
    costs = speculative_costs(LARGE, Speculation(length=4, acceptance=0.8, draft=SMALL))
    expected = LARGE.decode_s(1, 0) * (1 - 0.8**5) / (1 - 0.8) / costs.decode_s(1, 0)
    assert gain == pytest.approx(expected, rel=0.03)
    assert gain > 2
    few = Requests(np.zeros(50, dtype=np.int64), np.full(50, 64), np.full(50, 64))
    assert saturated_requests_per_s(speculating(4, 0.8), few, uniforms) > 0


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Speculation(length=0, acceptance=0.5, draft=SMALL), "number of drafts"),
        (lambda: Speculation(length=4, acceptance=1.5, draft=SMALL), "share"),
        (lambda: replace(speculating(4, 0.5), batching=StaticBatching()), "continuous or chunked"),
        (lambda: replace(speculating(4, 0.5), measure_waste=True), "closed form"),
        (lambda: speculative_costs(synthetic_pass_costs(max_tokens=9000), speculating(1, 0.5).speculation), "grids"),
        (lambda: Service(speculating(4, 0.5), Requests(*np.ones((3, 1), dtype=np.int64))), "uniforms"),
    ],
)
def test_what_can_not_be_is_refused(make: Callable[[], object], match: str) -> None:
    """Goal: impossible settings say what is wrong. Method: one of each."""
    with pytest.raises(ValueError, match=match):
        make()
