"""The workload that needs its slice: long prompts, first token within 10 s, over slice sizes."""

from __future__ import annotations

import pytest

from sim.streams import Streams
from workloads.catalogue.model_table import LLAMA3_1_405B
from workloads.catalogue.tpus import TPU_V4
from workloads.collectives import circuit_slice
from workloads.costs.tables import replica_pass_costs
from workloads.kv_cache import kv_memory
from workloads.load.laws import GammaRequests, draw_requests
from workloads.load.lengths import LognormalLengths
from workloads.requests import Requests
from workloads.serving.batching import ContinuousBatching
from workloads.serving.capacity import capacity_requests_per_s
from workloads.serving.service import ServiceConfig


def capacity(axes: tuple[int, int, int], requests: Requests) -> float:
    """Requests per second of one replica of 405B at which 99 % meet 10 s to the first token and 100 ms per token."""
    network = circuit_slice(axes)
    config = ServiceConfig(
        costs=replica_pass_costs(LLAMA3_1_405B, TPU_V4, network),
        blocks=kv_memory(LLAMA3_1_405B, TPU_V4, network).blocks,
        batching=ContinuousBatching(max_batch=256),
        ttft_limit_s=10.0,
        tpot_limit_s=0.1,
    )
    return capacity_requests_per_s(config, requests, 0.99)


@pytest.mark.slow
def test_what_slices_serve_of_long_documents() -> None:
    """Goal: within the limits 1,024 chips serve less than two slices of 512 do, and far more than four of 256; 128
    chips serve nothing. Method: capacities on the same 4,000 requests.

    Prompts gather weights along one or two axes where that is faster, which lets 512 chips serve four times what they
    did when weights stayed or were gathered along all three: one large slice served 1.65 times what two halves did.
    """
    law = GammaRequests(
        cv=2,
        input=LognormalLengths(mean=65536, cv=1, max=122880),
        output=LognormalLengths(mean=1024, cv=1, min=2, max=8192),
    )
    requests = draw_requests(law, 1.0, 4000, Streams(1, 0).uniforms)
    large, half = capacity((8, 8, 16), requests), capacity((8, 8, 8), requests)
    assert 0.7 < large / (2 * half) < 0.85
    assert 0.2 < 4 * capacity((4, 8, 8), requests) / large < 0.5
    assert capacity((4, 4, 8), requests) < 0.002 * large
