"""A cache of int8: half the bytes per token, in memory, in reads, over links, and in what the kernel makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sim.scenario_memory import SwapSection
from workloads.catalogue.model_table import LLAMA3_70B
from workloads.catalogue.tpus import TPU_V4
from workloads.collectives import circuit_slice
from workloads.costs.tables import replica_pass_costs
from workloads.kv_cache import MemorySettings, kv_memory
from workloads.pass_costs import PassCosts
from workloads.requests import Requests
from workloads.serving.measures import ServiceMeasures
from workloads.serving.preemption import Swap
from workloads.serving.service import Service, ServiceConfig

NETWORK = circuit_slice((2, 2, 4))
ROUNDING_NS = 200


def costs_of(kv: str) -> PassCosts:
    """A replica of Llama-3 70B on sixteen chips with this cache."""
    return replica_pass_costs(LLAMA3_70B, TPU_V4, NETWORK, kv=kv, max_tokens=4096)


@pytest.fixture(scope="module")
def both() -> dict[str, PassCosts]:
    """bf16 and int8."""
    return {kv: costs_of(kv) for kv in ("bf16", "int8")}


def served(costs: PassCosts, blocks: int, requests: Requests, swap: Swap | None = None) -> ServiceMeasures:
    """All requests served by one replica."""
    config = ServiceConfig(costs=costs, blocks=blocks, watermark=0.0, record_requests=requests.count)
    return Service(config if swap is None else replace(config, preemption=swap), requests).finish()


def test_memory_holds_twice_the_tokens(both: dict[str, PassCosts]) -> None:
    """Goal: a request takes the same number of blocks, each of half the bytes: twice as many blocks fit. Method: bytes
    of a token in the reference table (327,680 in bf16), blocks of a replica in both formats."""
    assert both["bf16"].kv_bytes_per_token == 2 * both["int8"].kv_bytes_per_token == 327_680
    blocks = {kv: kv_memory(LLAMA3_70B, TPU_V4, NETWORK, MemorySettings(kv=kv)).blocks for kv in both}
    assert blocks["int8"] - 2 * blocks["bf16"] in (0, 1)


def test_the_kernel_waits_half_as_long_for_reads(both: dict[str, PassCosts]) -> None:
    """Goal: in the ledger of requests the reads of the cache are halved, all else stays. Method: eight requests of
    2,000 tokens that run together with room for all, in both formats; the sums of each category."""
    requests = Requests(np.zeros(8, dtype=np.int64), np.full(8, 2000), np.full(8, 200))
    spent = {kv: served(costs, 10_000, requests).ledger_s_per_request() for kv, costs in both.items()}
    for name, seconds in spent["bf16"].items():
        half = 0.5 if name in ("own_kv_reads", "others_kv_reads") else 1.0
        assert spent["int8"][name] == pytest.approx(half * seconds, abs=ROUNDING_NS * 1e-9), name
    assert spent["bf16"]["own_kv_reads"] > 0


def test_fewer_are_evicted(both: dict[str, PassCosts]) -> None:
    """Goal: in the same bytes of memory more answers run at once. Method: forty requests that outgrow what bf16 leaves
    room for; int8 has twice the blocks."""
    requests = Requests(np.zeros(40, dtype=np.int64), np.full(40, 100), np.full(40, 300))
    few, many = served(both["bf16"], 500, requests), served(both["int8"], 1000, requests)
    assert few.count("evictions") > 0 == many.count("evictions")
    assert few.count("most_blocks") <= 500 < many.count("most_blocks") <= 1000
    assert few.count("tokens") == many.count("tokens") == 12_000


def test_swaps_move_half_the_bytes(both: dict[str, PassCosts]) -> None:
    """Goal: a swap of the same blocks takes half the time, and a host holds twice the blocks. Method: the rule of a
    scenario in both formats, and a replica that swaps by it."""
    rules = {kv: SwapSection(host_memory=2.0**30).rule(TPU_V4, costs) for kv, costs in both.items()}
    assert isinstance(rules["bf16"], Swap)
    assert isinstance(rules["int8"], Swap)
    assert rules["int8"].host_blocks - 2 * rules["bf16"].host_blocks in (0, 1)
    assert rules["int8"].s_per_block == pytest.approx(rules["bf16"].s_per_block / 2)
    requests = Requests(np.zeros(2, dtype=np.int64), np.full(2, 48), np.full(2, 40))
    ways = {kv: served(costs, 8, requests, rules[kv]) for kv, costs in both.items()}
    assert ways["bf16"].count("swap_blocks_out") == ways["int8"].count("swap_blocks_out") == 4
    assert ways["bf16"].count("swap_ns") == pytest.approx(2 * ways["int8"].count("swap_ns"), abs=4)
    assert ways["bf16"].host_link_bytes_per_token == pytest.approx(2 * ways["int8"].host_link_bytes_per_token)
