"""Static batching by hand: padding, slots held to the end, waits for a full batch, and the queue with batch service."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving.batching import ContinuousBatching, StaticBatching
from workloads.serving.service import Service, ServiceConfig

COSTS = synthetic_pass_costs(kv_read_s_per_token=1e-7, pair_s=1e-9)
CONFIG = ServiceConfig(
    costs=COSTS, blocks=4000, batching=StaticBatching(max_batch=3), ttft_limit_s=1.0, record_requests=100
)


def at_once(prompts: list[int], outputs: list[int], arrivals_ns: list[int] | None = None) -> Requests:
    """Requests that arrive together, or when told."""
    return Requests(np.array(arrivals_ns or [0] * len(prompts)), np.array(prompts), np.array(outputs))


def test_a_batch_is_padded_and_held() -> None:
    """Goal: padded tokens take time, and the next batch begins when the longest answer ends. Method: two batches, by
    the formulas of a pass."""
    record = Service(CONFIG, at_once([100, 40, 7, 50], [2, 5, 1, 1])).finish().record
    assert record is not None
    pairs = 3 * (100 * 101 // 2)
    prompt_s = COSTS.parts_s(300, prompt=True).sum() + 1e-9 * pairs
    steps_s = np.cumsum([COSTS.decode_s(3, 3 * (100 + k)) for k in range(4)])
    ends_s = prompt_s + np.array([steps_s[0], steps_s[3], 0.0])
    assert np.allclose(record.finish_ns[:3] * 1e-9, ends_s, rtol=0, atol=5e-9)
    assert np.allclose(record.first_token_ns[:3] * 1e-9, prompt_s, rtol=0, atol=2e-9)
    second_s = ends_s[1] + COSTS.prefill_s(50)
    assert record.finish_ns[3] * 1e-9 == pytest.approx(second_s, abs=8e-9)


def test_padding_is_counted() -> None:
    """Goal: what is computed for nothing is counted. Method: padded prompts, and places of ended answers per step."""
    measures = Service(CONFIG, at_once([100, 40, 7], [2, 5, 1])).finish()
    assert measures.count("padded_tokens") == (60 + 93) + (1 + 3 * 2)
    assert measures.count("prompt_tokens") == 147
    assert measures.count("tokens") == 8
    assert measures.count("most_decodes") == 3


def test_a_wait_fills_the_batch() -> None:
    """Goal: a batch begins when it is full, or when its head has waited long enough. Method: five arrivals, by hand."""
    config = replace(CONFIG, batching=StaticBatching(max_batch=3, wait_s=0.5))
    arrivals = [0, 100_000_000, 200_000_000, 10**10, 10**10 + 100_000_000]
    record = Service(config, at_once([10] * 5, [1] * 5, arrivals)).finish().record
    assert record is not None
    pass_ns = [round((COSTS.parts_s(10 * n, prompt=True).sum() + 1e-9 * n * 55) * 1e9) for n in (2, 3)]
    assert record.finish_ns[:3].tolist() == [200_000_000 + pass_ns[1]] * 3
    assert record.finish_ns[3:].tolist() == [10**10 + 500_000_000 + pass_ns[0]] * 2


def test_room_bounds_the_batch() -> None:
    """Goal: a batch has room for its whole padded life, so that nothing is evicted. Method: blocks for two of three."""
    config = replace(CONFIG, blocks=2 * 7)
    measures = Service(config, at_once([100, 20, 100], [10, 12, 3])).finish()
    assert measures.count("evictions") == 0
    assert measures.count("most_decodes") == 2
    assert measures.count("most_blocks") == 14
    assert measures.ledger_s_per_request()["kv_blocked"] > 0


def test_static_batches_waste_what_continuous_ones_use() -> None:
    """Goal: the reason for continuous batching. Method: answers of mixed lengths, all waiting: the rate at which static
    batches complete them is less than half that of continuous ones of the same greatest batch."""
    rng = np.random.default_rng(1)
    outputs = rng.geometric(1 / 60, size=600)
    requests = Requests(np.zeros(600, dtype=np.int64), np.full(600, 64), outputs)
    static = Service(replace(CONFIG, batching=StaticBatching(max_batch=16)), requests).finish()
    joined = Service(replace(CONFIG, batching=ContinuousBatching(max_batch=16)), requests).finish()
    assert static.requests_per_s < 0.5 * joined.requests_per_s


@pytest.mark.parametrize("wait_s", [-1.0, float("nan"), 1e10])
def test_a_wait_that_is_no_time_is_refused(wait_s: float) -> None:
    """Goal: bad settings say what is wrong. Method: one of each."""
    with pytest.raises(ValueError, match="wait_s"):
        StaticBatching(wait_s=wait_s)
    with pytest.raises(ValueError, match="max_batch"):
        StaticBatching(max_batch=0)
