"""What prompts in chunks are worth to the requests beside them: the longest gap between tokens, and what it costs.

Published: Sarathi-Serve (Agrawal et al., OSDI 2024, arXiv:2403.02310; as quoted in a second text, V2). Whole prompts
beside decodes stretch an iteration up to 28.3 times; chunks of 512 tokens add at most some 25 % to a prefill.
"""

from __future__ import annotations

import numpy as np
import pytest

from workloads.catalogue.gpus import A100_80GB
from workloads.catalogue.model_table import LLAMA2_70B
from workloads.collectives import SliceNetwork
from workloads.costs.layouts import Layout
from workloads.costs.tables import replica_pass_costs
from workloads.pass_costs import PassCosts
from workloads.requests import Requests
from workloads.serving.batching import ChunkedPrefill, ContinuousBatching
from workloads.serving.service import Service, ServiceConfig

DECODES, CONTEXT, PROMPT, CHUNK = 32, 1024, 4096, 512


def llama_costs() -> PassCosts:
    """Llama-2 70B on four A100s, as its published rows were met."""
    network = SliceNetwork((4,), (False,))
    return replica_pass_costs(LLAMA2_70B, A100_80GB, network, prefill_layout=Layout.WEIGHT_STATIONARY_2D)


def in_chunks_s(costs: PassCosts, chunk: int) -> float:
    """Seconds of a prompt of 4,096 tokens alone: each chunk reads the weights again, and the cache of those before."""
    pairs = chunk * (chunk + 1) / 2
    return sum(
        float(costs.parts_s(chunk, prompt=True).sum())
        + costs.prefill_pair_s * (pairs + chunk * chunk * before)
        + costs.prefill_context_s_per_token * chunk * before
        for before in range(PROMPT // chunk)
    )


@pytest.fixture(scope="module")
def costs() -> PassCosts:
    """The costs, once."""
    return llama_costs()


def stretched(costs: PassCosts, batching: ContinuousBatching | ChunkedPrefill) -> tuple[float, float]:
    """Longest and usual gap between tokens of 32 answers, in whose midst one prompt of 4,096 tokens arrives."""
    arrivals = np.append(np.zeros(DECODES, dtype=np.int64), 30 * 10**9)
    prompts = np.append(np.full(DECODES, CONTEXT), PROMPT)
    outputs = np.append(np.full(DECODES, 1000), 1)
    config = ServiceConfig(costs=costs, blocks=8000, batching=batching)
    measures = Service(config, Requests(arrivals, prompts, outputs)).finish()
    assert measures.count("completed") == DECODES + 1
    return measures.itl_s(1.0), measures.itl_s(0.5)


def test_chunks_cut_the_longest_gap(costs: PassCosts) -> None:
    """Goal: a whole prompt stretches the gap between tokens by tens of times (28.3 at most is published), a chunk by a
    few: the longest gap is cut to less than a fifth. Method: the kernel, 32 decodes and one prompt; the gap by hand."""
    whole, usual = stretched(costs, ContinuousBatching())
    chunked, _ = stretched(costs, ChunkedPrefill(budget=CHUNK + DECODES, max_batch=64))
    assert 15 < whole / usual < 28.3
    assert 2 < chunked / usual < 5
    assert chunked < whole / 5
    reads = costs.kv_read_s_per_token[-1] * DECODES * (CONTEXT + 800)
    by_hand = costs.parts_s(PROMPT + DECODES, prompt=True).sum() + costs.prefill_pair_s * PROMPT * (PROMPT + 1) / 2
    assert whole == pytest.approx(by_hand + reads, rel=0.02)


@pytest.mark.parametrize(("chunk", "most"), [(512, 0.25), (2048, 0.05)])
def test_chunks_cost_little_prefill(costs: PassCosts, chunk: int, most: float) -> None:
    """Goal: chunks of 512 add some per cent to a prefill (at most 25 % published), larger ones hardly any. Method:
    chunk by chunk, against the whole."""
    assert 0 < in_chunks_s(costs, chunk) / costs.prefill_s(PROMPT) - 1 < most
