"""Preemption by swap is exact: every way of running gives the same integers, and the reference agrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.serving.swap_cases import check_hosts, draw_swap_case
from tests.serving.test_exactness import check_cuts, check_workload, compiled_digests, uncompiled_digests
from workloads.kv_cache import Contiguous
from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving.batching import Disaggregated, StaticBatching
from workloads.serving.preemption import Recompute, Swap
from workloads.serving.service import Service, ServiceConfig

FAST = 40
check_seed = partial(
    check_workload,
    draw=draw_swap_case,
    check=check_hosts,
    counts=("swaps_out", "swaps_in", "swap_blocks_out", "swap_blocks_in", "swap_ns", "host_full"),
)


def test_swap_agrees_in_every_way_of_running() -> None:
    """Goal: swap changes nothing about exactness, and no block of host memory is lost. Method: random workloads (alone,
    shared prefixes, a central queue, clients, both) in macro steps, single steps, looked at 40 times with all hosts
    counted, and by the naive reference, counts of swaps included."""
    totals: Counter[str] = Counter()
    for seed in range(FAST):
        check_seed(seed, totals)
    check_totals(totals, FAST)


def check_totals(totals: Counter[str], workloads: int) -> None:
    """Much was swapped, out and in, hosts were full, replicas were lost."""
    check_cuts(totals, workloads)
    assert totals["swaps_out"] >= 2 * workloads
    assert totals["swaps_in"] >= workloads
    assert totals["host_full"] >= workloads // 2
    assert totals["losses"] >= workloads
    assert totals["recomputed_tokens"] >= workloads


def test_swap_agrees_in_plain_python() -> None:
    """Goal: the same code runs uncompiled with the same bits. Method: some workloads, without compilation."""
    assert uncompiled_digests(0, 30, draw="draw_swap_case") == compiled_digests(0, 30, draw_swap_case)


COSTS = synthetic_pass_costs(kv_read_s_per_token=0.0)
BLOCK_NS = 1_000_000
TIGHT = ServiceConfig(
    costs=COSTS,
    blocks=8,
    watermark=0.0,
    record_requests=2,
    preemption=Swap(host_blocks=100, s_per_block=BLOCK_NS * 1e-9),
)
TWO = Requests(np.array([0, 1]), np.array([48, 48]), np.array([40, 40]))
"""Each needs 6 blocks at its end; both together have 8."""


def test_a_swap_by_hand() -> None:
    """Goal: blocks and time of a swap are those of the rules. Method: two requests that outgrow eight blocks together.

    The second prompt is computed in the second pass. Both decode until each asks for a fifth block (65 tokens in the
    cache); the second is written out with the four blocks that it has, and read back when the first has gone. The pass
    that writes delays the first, the one that reads the second: nothing is computed twice.
    """
    measures = Service(TIGHT, TWO).finish()
    assert (measures.count("swaps_out"), measures.count("swaps_in"), measures.count("evictions")) == (1, 1, 1)
    assert measures.count("swap_blocks_out") == measures.count("swap_blocks_in") == 4
    assert measures.count("swap_ns") == 8 * BLOCK_NS
    assert measures.count("prompt_tokens") == 96
    assert measures.count("recomputed_tokens") == 0
    assert measures.ledger_s_per_request()["swap"] * 2 == pytest.approx(8 * BLOCK_NS * 1e-9)
    again = Service(replace(TIGHT, preemption=Recompute()), TWO).finish()
    assert (again.count("recomputed_tokens"), again.count("prompt_tokens")) == (63, 96 + 64)
    assert again.count("swap_ns") == 0


def test_a_full_host_falls_back() -> None:
    """Goal: without room at the host the request is computed again, and that is counted. Method: three blocks for the
    four of the request above."""
    small = replace(TIGHT, preemption=Swap(host_blocks=3, s_per_block=1e-3))
    measures = Service(small, TWO).finish()
    again = Service(replace(TIGHT, preemption=Recompute()), TWO).finish()
    assert (measures.count("host_full"), measures.count("swaps_out")) == (1, 0)
    assert measures.count("recomputed_tokens") == again.count("recomputed_tokens")
    assert measures.count("time_ns") == again.count("time_ns")


def test_a_loss_takes_the_host_too() -> None:
    """Goal: what lay at the host of a lost replica is computed again. Method: a loss while the second one waits."""
    service = Service(TIGHT, TWO)
    while service.total("swaps_out") == 0:
        service.advance(service.now_ns + BLOCK_NS)
    assert service.total("swaps_in") == 0
    at_ns = service.now_ns + 20 * BLOCK_NS
    service.lose(0, at_ns)
    service.up(0, at_ns + 1)
    measures = service.finish()
    assert measures.count("swaps_in") == measures.count("swaps_out") - 1
    assert measures.count("recomputed_tokens") > 64
    assert measures.count("completed") == 2


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Swap(host_blocks=0, s_per_block=1e-3), "host_blocks"),
        (lambda: Swap(host_blocks=1, s_per_block=float("inf")), "s_per_block"),
        (lambda: replace(TIGHT, kv=Contiguous()), "nothing to do"),
        (lambda: replace(TIGHT, batching=StaticBatching()), "nothing to do"),
        (
            lambda: replace(TIGHT, replicas=2, batching=Disaggregated(prefill_replicas=1, transfer_s_per_token=0.0)),
            "send back",
        ),
    ],
)
def test_what_can_not_be_is_refused(make: Callable[[], object], match: str) -> None:
    """Goal: impossible settings say what is wrong. Method: one of each."""
    with pytest.raises(ValueError, match=match):
        make()
