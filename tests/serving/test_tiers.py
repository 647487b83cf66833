"""Tiers below the cache are exact, and what is found in them is what the rules say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.serving.swap_cases import check_tiers, draw_tier_case
from tests.serving.test_exactness import check_cuts, check_workload, compiled_digests, uncompiled_digests
from workloads.kv_cache import Paged, PrefixSharing
from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving.preemption import Tiers
from workloads.serving.service import Service, ServiceConfig

FAST = 40
COUNTS = (
    "prefix_hits", "prefix_taken", "host_hits", "remote_hits", "pieces_to_host", "pieces_to_remote", "pieces_dropped",
    "tier_ns", "swap_ns",
)  # fmt: skip
check_seed = partial(check_workload, draw=draw_tier_case, check=check_tiers, counts=COUNTS)


def test_tiers_agree_in_every_way_of_running() -> None:
    """Goal: tiers change nothing about exactness, and no piece is lost. Method: random workloads with common beginnings
    in tight caches (clients, routers, swap among them) in macro steps, single steps, looked at 40 times with all lists
    counted, and by the naive reference, hits by tier included."""
    totals: Counter[str] = Counter()
    for seed in range(FAST):
        check_seed(seed, totals)
    check_totals(totals, FAST)


def check_totals(totals: Counter[str], workloads: int) -> None:
    """Much moved, down and up, in both tiers, and some out of them."""
    check_cuts(totals, workloads)
    assert totals["host_hits"] >= 2 * workloads
    assert totals["remote_hits"] >= workloads // 2
    assert totals["pieces_dropped"] >= workloads
    assert totals["losses"] >= workloads
    assert totals["evictions"] >= workloads


def test_tiers_agree_in_plain_python() -> None:
    """Goal: the same code runs uncompiled with the same bits. Method: some workloads, without compilation."""
    assert uncompiled_digests(0, 20, draw="draw_tier_case") == compiled_digests(0, 20, draw_tier_case)


PIECE_NS = {"host": 1_000_000, "remote": 7_000_000}
TIERS = Tiers(host_blocks=3, host_s_per_block=1e-3, remote_blocks=3, remote_s_per_block=7e-3)
SMALL = ServiceConfig(
    costs=synthetic_pass_costs(), blocks=4, watermark=0.0, kv=PrefixSharing(), tiers=TIERS, record_requests=100
)


def one_after_the_other(prompts: list[list[int]]) -> Requests:
    """Requests far apart, a token longer than their pieces of 16 tokens, two tokens of answer."""
    counts = [len(own) for own in prompts]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    arrivals = 10**12 * np.arange(len(prompts))
    ids = np.array([number for own in prompts for number in own])
    return Requests(arrivals, 16 * np.array(counts) + 1, np.full(len(prompts), 2), ids, offsets, 16)


@pytest.mark.parametrize(
    ("between", "where"),
    [
        ([], "cache"),
        ([[4, 5, 6]], "host"),
        ([[4, 5, 6], [7, 8, 9]], "remote"),
        ([[4, 5, 6], [7, 8, 9], [10, 11, 12]], "nowhere"),
    ],
)
def test_where_a_prefix_is_found(between: list[list[int]], where: str) -> None:
    """Goal: a prefix sinks from the cache to the host, the remote store and out, as others come; what is found costs
    its tier's time and is not computed. Method: a cache, a host and a store for one prompt of three pieces each; the
    first token of the last prompt, by hand."""
    requests = one_after_the_other([[1, 2, 3], *between, [1, 2, 3]])
    measures = Service(SMALL, requests).finish()
    hits = {name: 3 * (name == where) for name in ("host", "remote")}
    assert (measures.count("host_hits"), measures.count("remote_hits")) == (hits["host"], hits["remote"])
    found = where != "nowhere"
    assert measures.count("prompt_tokens") == 49 * requests.count - 48 * found
    record = measures.record
    assert record is not None
    alone = round(SMALL.costs.prefill_s(1 if found else 49) * 1e9)
    read = sum(hits[name] * PIECE_NS[name] for name in hits)
    assert record.ttft_ns[-1] == alone + read
    assert measures.count("tier_ns") == read == round(measures.ledger_s_per_request()["swap"] * requests.count * 1e9)
    assert measures.host_link_bytes_per_token == 0.0, "synthetic costs tell no bytes"


def test_a_loss_keeps_the_remote_store() -> None:
    """Goal: a loss clears cache and host, not the remote store. Method: two prompts, a loss, both again."""
    requests = one_after_the_other([[1, 2, 3], [4, 5, 6], [7, 8, 9], [4, 5, 6], [1, 2, 3]])
    service = Service(SMALL, requests)
    service.lose(0, 5 * 10**11 + 2 * 10**12)
    service.up(0, 6 * 10**11 + 2 * 10**12)
    measures = service.finish()
    assert (measures.count("host_hits"), measures.count("remote_hits")) == (0, 3)


def test_traffic_by_level() -> None:
    """Goal: bytes by level are tokens that moved times bytes of a token. Method: the prompt that sank to the remote
    store and came back: nine pieces went to the host, six on to the store, three came up."""
    costs = replace(SMALL.costs, kv_bytes_per_token=1000.0, kv_replication=2.0)
    requests = one_after_the_other([[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 2, 3]])
    measures = Service(replace(SMALL, costs=costs), requests).finish()
    down = (measures.count("pieces_to_host"), measures.count("pieces_to_remote"), measures.count("pieces_dropped"))
    assert down == (9, 6, 0)
    assert measures.host_link_bytes_per_token == pytest.approx((9 + 3) * 16 * 2000 / 8)
    assert measures.remote_bytes_per_token == pytest.approx((6 + 3) * 16 * 2000 / 8)
    assert measures.lower_hit_share("remote") == pytest.approx(3 / 12)


def test_what_can_not_be_is_refused() -> None:
    """Goal: tiers of nothing, and tiers without shared prefixes, say so. Method: one of each."""
    with pytest.raises(ValueError, match="at least one block"):
        Tiers(host_blocks=0, host_s_per_block=1e-3)
    with pytest.raises(ValueError, match="seconds of at least 0"):
        Tiers(host_blocks=1, host_s_per_block=-1.0)
    with pytest.raises(ValueError, match="a cache that shares them"):
        replace(SMALL, kv=Paged())
