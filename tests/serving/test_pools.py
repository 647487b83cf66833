"""Disaggregated serving is exact: every way of running gives the same integers, and the reference agrees."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from tests.serving.pool_cases import (
    check_pools,
    draw_clients_pool_case,
    draw_pool_case,
    draw_prefix_pool_case,
    run_naive_pools_on,
)
from tests.serving.test_exactness import ALL, check_cuts, check_workload, compiled_digests, uncompiled_digests

FAST = 80
COUNTS = (
    "kv_transfers", "kv_transfer_tokens", "kv_transfer_ns", "prefix_hits", "prefix_taken", "host_hits", "remote_hits",
    "tier_ns",
)  # fmt: skip
check_seed = partial(
    check_workload, draw=draw_pool_case, check=check_pools, reference=run_naive_pools_on, counts=COUNTS
)


def test_disaggregated_replicas_agree_in_every_way_of_running() -> None:
    """Goal: hand-overs, links and losses at either end change nothing about exactness, and no block is lost. Method:
    random workloads in macro steps, single steps, looked at 40 times with all blocks counted, and by the reference."""
    totals: Counter[str] = Counter()
    for seed in range(FAST):
        check_seed(seed, totals)
    assert totals["evictions"] >= FAST
    assert totals["losses"] >= FAST
    assert totals["caught"] >= FAST
    assert totals["completed"] > 10 * FAST
    assert totals["kv_transfers"] > 10 * FAST
    assert totals["refused"] > 0


def test_clients_of_disaggregated_replicas_agree() -> None:
    """Goal: patience, cancellations, retries, limits at the door and priorities change nothing about that, be a request
    waiting for its prompt, for its transfer, on a link, or decoding. Method: as above."""
    totals: Counter[str] = Counter()
    for seed in range(FAST // 2):
        check_seed(seed, totals, draw=draw_clients_pool_case)
    for name in ("timed_out", "cancelled", "rejected", "losses", "kv_transfers", "discarded_tokens"):
        assert totals[name] >= FAST // 2, name


def test_prefixes_of_disaggregated_replicas_agree() -> None:
    """Goal: prefill replicas share prefixes, with tiers below, and hold them until their blocks are moved. Method: as
    above."""
    totals: Counter[str] = Counter()
    for seed in range(FAST // 2):
        check_seed(seed, totals, draw=draw_prefix_pool_case)
    for name in ("prefix_hits", "losses", "kv_transfers"):
        assert totals[name] >= FAST // 2, name
    assert totals["host_hits"] >= FAST // 8


@pytest.mark.slow
def test_disaggregated_replicas_agree_on_a_thousand_workloads() -> None:
    """Goal and method: as above, for 1,000 workloads."""
    totals: Counter[str] = Counter()
    for seed in range(ALL):
        check_seed(seed, totals)
    check_cuts(totals, ALL)
    assert totals["evictions"] >= ALL
    assert totals["losses"] >= ALL
    assert totals["kv_transfers"] > 10 * ALL


def test_disaggregated_replicas_agree_in_plain_python() -> None:
    """Goal: the same code runs uncompiled with the same bits. Method: some workloads, without compilation."""
    assert uncompiled_digests(0, 20, draw="draw_pool_case") == compiled_digests(0, 20, draw_pool_case)
    expected = compiled_digests(0, 10, draw_clients_pool_case)
    assert uncompiled_digests(0, 10, draw="draw_clients_pool_case") == expected
