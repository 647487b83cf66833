"""Prefix sharing is exact: every way of running gives the same integers, the reference agrees, no block is lost."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from sim.streams import Streams
from tests.serving.prefix_cases import (
    blocks_of_slot,
    check_blocks,
    draw_affine_case,
    draw_central_prefix_case,
    draw_clients_prefix_case,
    draw_prefix_case,
    reserved_in_flight,
)
from tests.serving.test_exactness import ALL, check_cuts, check_workload, compiled_digests, digest, uncompiled_digests
from tests.shared_data import shared_file
from workloads.arrivals import arrival_times_ns, poisson_gaps
from workloads.kv_cache import Paged, PrefixSharing
from workloads.load.lengths import LognormalLengths
from workloads.pass_costs import synthetic_pass_costs
from workloads.prefixes import SharedPrefix, reusable_pieces, with_samples
from workloads.requests import Requests
from workloads.serving import fields as f
from workloads.serving.batching import ContinuousBatching
from workloads.serving.router import PrefixAffine, RoundRobin
from workloads.serving.service import Service, ServiceConfig

FAST = 60
check_seed = partial(
    check_workload,
    draw=draw_prefix_case,
    check=check_blocks,
    counts=("prefix_looked_for", "prefix_hits", "prefix_hit_tokens", "prefix_stored", "prefix_taken"),
)


def test_shared_prefixes_agree_in_every_way_of_running() -> None:
    """Goal: sharing changes nothing about exactness, and no block is lost. Method: random prefix trees under memory
    pressure, losses and slowdowns in macro steps, single steps, looked at 40 times with all blocks counted, and by the
    naive reference, counts of hits and of blocks taken included."""
    totals: Counter[str] = Counter()
    for seed in range(FAST):
        check_seed(seed, totals)
    assert totals["evictions"] >= FAST
    assert totals["losses"] >= FAST
    assert totals["prefix_hits"] >= 10 * FAST
    assert totals["prefix_taken"] >= FAST


@pytest.mark.slow
def test_shared_prefixes_agree_on_a_thousand_workloads() -> None:
    """Goal and method: as above, for 1,000 workloads."""
    totals: Counter[str] = Counter()
    for seed in range(ALL):
        check_seed(seed, totals)
    check_cuts(totals, ALL)
    assert totals["evictions"] >= ALL
    assert totals["losses"] >= ALL
    assert totals["prefix_hits"] >= 10 * ALL
    assert totals["prefix_taken"] >= ALL


def test_shared_prefixes_agree_in_plain_python() -> None:
    """Goal: the same code runs uncompiled with the same bits. Method: some workloads, without compilation."""
    assert uncompiled_digests(0, 30, draw="draw_prefix_case") == compiled_digests(0, 30, draw_prefix_case)
    assert uncompiled_digests(0, 20, draw="draw_affine_case") == compiled_digests(0, 20, draw_affine_case)


def test_affine_routing_agrees_in_every_way_of_running() -> None:
    """Goal: the prefix-affine router sees the same caches however the kernel runs. Method: as for shared prefixes, with
    two to four replicas."""
    totals: Counter[str] = Counter()
    for seed in range(FAST // 2):
        check_seed(seed, totals, draw=draw_affine_case)
    assert totals["losses"] >= FAST // 2
    assert totals["prefix_hits"] >= 5 * FAST


def test_clients_leave_their_prefixes() -> None:
    """Goal: patience, cancellations, retries, priorities and one queue do not undo that prefixes are exact. Method: as
    for shared prefixes, by the clients of the exactness tests, whose requests leave a replica in the middle."""
    totals: Counter[str] = Counter()
    for seed in range(FAST // 2):
        check_seed(seed, totals, draw=draw_clients_prefix_case)
    assert totals["losses"] >= FAST // 2
    assert totals["prefix_hits"] >= FAST


def test_one_queue_shares_prefixes() -> None:
    """Goal: a central queue hands requests to replicas that each keep prefixes of their own. Method: as for shared
    prefixes, with one queue for two to five replicas."""
    totals: Counter[str] = Counter()
    for seed in range(FAST // 3):
        check_seed(seed, totals, draw=draw_central_prefix_case)
    assert totals["losses"] >= FAST // 3
    assert totals["prefix_hits"] >= FAST


@pytest.mark.slow
def test_affine_routing_agrees_on_a_thousand_workloads() -> None:
    """Goal and method: as above, for 1,000 workloads."""
    totals: Counter[str] = Counter()
    for seed in range(ALL):
        check_seed(seed, totals, draw=draw_affine_case)
    check_cuts(totals, ALL)
    assert totals["losses"] >= ALL
    assert totals["prefix_hits"] >= 10 * ALL


def test_affine_routing_finds_more() -> None:
    """Goal: requests go where their prefix is, and the guard keeps replicas even. Method: the Mooncake cut on four
    replicas against round robin; the plug-in's own method on made-up numbers."""
    requests = mooncake_cut()
    config = replace(CONFIG, blocks=32 * 20_000, replicas=4, record_requests=requests.count)
    shares, spread = {}, {}
    for router in (RoundRobin(), PrefixAffine(), PrefixAffine(guard=10_000)):
        measures = Service(replace(config, router=router), requests).finish()
        assert measures.record is not None
        name = getattr(router, "guard", -1)
        shares[name] = measures.prefix_hit_share
        spread[name] = np.bincount(measures.record.replica, minlength=4).max() / requests.count
    assert shares[8] > 1.3 * shares[-1]
    assert spread[8] <= spread[10_000]
    assert PrefixAffine(guard=2).replica_of([True, True, True], [0, 3, 2], [0, 9, 4]) == 2
    assert PrefixAffine(guard=3).replica_of([True, True, True], [0, 3, 2], [0, 9, 4]) == 1
    assert PrefixAffine().replica_of([False, True, True], [0, 3, 3], [7, 1, 1]) == 1
    assert PrefixAffine().replica_of([False], [0], [0]) is None
    with pytest.raises(ValueError, match="guard"):
        PrefixAffine(guard=-1)
    with pytest.raises(ValueError, match="shares prefixes"):
        replace(CONFIG, kv=Paged(), router=PrefixAffine())


CONFIG = ServiceConfig(
    costs=synthetic_pass_costs(kv_read_s_per_token=1e-9, max_tokens=1 << 18), blocks=1 << 22, kv=PrefixSharing()
)


def mooncake_cut() -> Requests:
    """The first 20 minutes of Mooncake's conversations."""
    path = shared_file("llm_requests/mooncake_conversation_0000_1200s.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    columns = ([row[name] for row in rows] for name in ("timestamp", "input_length", "output_length"))
    arrival_ms, inputs, outputs = (np.array(column, dtype=np.int64) for column in columns)
    numbers = [row["hash_ids"] for row in rows]
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in numbers])]).astype(np.int64)
    ids = np.array([number for own in numbers for number in own], dtype=np.int64)
    return Requests(arrival_ms * 1_000_000, inputs, outputs, ids, offsets, 512)


def test_mooncake_with_an_unlimited_cache() -> None:
    """Goal: the kernel finds what the trace shares. Method: the README's check value, 30,998 of 97,495 blocks = 0.3179,
    by `reusable_pieces`; and one replica with all the memory it wants, whose hits are the same leading runs less the
    last piece of a prompt (partial, or with the last token, which is always computed)."""
    requests = mooncake_cut()
    assert requests.hash_ids is not None
    found = reusable_pieces(requests)
    assert (int(found.sum()), requests.hash_ids.size) == (30_998, 97_495)
    assert round(found.sum() / requests.hash_ids.size, 4) == 0.3179
    measures = Service(CONFIG, requests).finish()
    whole = (requests.input_tokens - 1) // 512
    assert measures.count("prefix_hits") == np.minimum(found, whole).sum()
    assert measures.count("prefix_looked_for") == whole.sum()
    assert measures.count("prefix_taken") == 0
    computed = requests.input_tokens.sum() - 512 * np.minimum(found, whole).sum()
    assert measures.count("prompt_tokens") == computed


def test_less_memory_finds_less() -> None:
    """Goal: blocks are taken when memory is short, and a larger cache finds more. Method: the same trace with memory
    for 1,000, 5,000 and 50,000 pieces (Mooncake reports some 30 % rising to 50 % from 1,000 to 50,000 blocks, on a
    longer trace)."""
    requests = mooncake_cut()
    shares = []
    for pieces in (1_000, 5_000, 50_000):
        measures = Service(replace(CONFIG, blocks=32 * pieces), requests).finish()
        assert measures.count("completed") == requests.count
        shares.append(measures.prefix_hit_share)
    assert shares[0] < shares[1] < shares[2]


def two_prompts(first: list[int], second: list[int], tokens: tuple[int, int], gap_ns: int = 10**12) -> Requests:
    """Two requests, far apart, with pieces of 16 tokens."""
    ids = np.array([*first, *second])
    offsets = np.array([0, len(first), len(first) + len(second)])
    return Requests(np.array([0, gap_ns]), np.array(tokens), np.array([5, 5]), ids, offsets, 16)


@pytest.mark.parametrize(
    ("first", "second", "tokens", "hits"),
    [
        ([1, 2, 3], [1, 2, 3], (48, 48), 2),  # the last token is computed, and with it its piece
        ([1, 2, 3], [1, 2, 3], (48, 49), 3),
        ([1, 2, 3], [1, 2, 3], (47, 60), 2),  # the third piece of the first prompt is not whole
        ([1, 2, 3], [1, 5, 3], (48, 60), 1),  # only a leading run
        ([1, 2, 3], [2, 3], (48, 60), 2),  # equal numbers are equal tokens after equal tokens: taken at its word
        ([1, 2, 3], [7, 2, 3], (48, 60), 0),
    ],
)
def test_what_is_reused(first: list[int], second: list[int], tokens: tuple[int, int], hits: int) -> None:
    """Goal: leading whole pieces are reused and not computed, the last token always is. Method: two prompts far apart,
    tokens computed by hand."""
    measures = Service(CONFIG, two_prompts(first, second, tokens)).finish()
    assert measures.count("prefix_hits") == hits
    assert measures.count("prompt_tokens") == sum(tokens) - 16 * hits
    assert measures.count("prefix_hit_tokens") == 16 * hits


def test_a_loss_clears_the_cache() -> None:
    """Goal: what a dead replica held is gone. Method: the same prompt before and after a loss."""
    requests = two_prompts([1, 2, 3], [1, 2, 3], (49, 49))
    service = Service(CONFIG, requests)
    service.lose(0, 10**11)
    service.up(0, 2 * 10**11)
    assert service.finish().count("prefix_hits") == 0


def test_requests_outlive_their_chunk() -> None:
    """Goal: numbers of requests in the system are kept when the next piece of requests is read. Method: pieces of many
    sizes against the whole, with a queue."""
    requests = mooncake_cut().first(600)
    assert requests.hash_offsets is not None
    cuts = [0, 1, 2, 200, 200, 599, 600]
    few = replace(CONFIG, blocks=40_000, record_requests=600, batching=ContinuousBatching(max_batch=4))
    parts = (requests.picked(np.arange(a, b), requests.arrival_ns[a:b]) for a, b in pairwise(cuts))
    assert digest(Service(few, parts).finish()) == digest(Service(few, requests).finish())


def test_what_can_not_be_shared_is_refused() -> None:
    """Goal: requests without numbers, or with pieces that are no whole blocks, say so. Method: one of each."""
    plain = Requests(np.array([0]), np.array([100]), np.array([5]))
    with pytest.raises(ValueError, match="name the blocks"):
        Service(CONFIG, plain)
    odd = Requests(np.array([0]), np.array([100]), np.array([5]), np.array([1]), np.array([0, 1]), 20)
    with pytest.raises(ValueError, match="whole blocks of 16"):
        Service(CONFIG, odd)
    mixed = iter([two_prompts([1], [1], (20, 20)), replace(odd, hash_block_tokens=32)])
    with pytest.raises(ValueError, match="same size"):
        Service(CONFIG, mixed).finish()


def test_drawn_prefixes() -> None:
    """Goal: a law of common beginnings shares what it says. Method: an unlimited cache computes each text once; what is
    found is counted by hand from the lengths and the groups."""
    law = SharedPrefix(groups=4, tokens=1000)
    rng = np.random.default_rng(5)
    plain = Requests(np.arange(500) * 10**9, rng.integers(1, 3000, size=500), np.full(500, 3))
    requests = law.on(plain, rng.random(500))
    longest = dict.fromkeys(range(4), 0)
    expected = 0
    assert requests.hash_ids is not None
    assert requests.hash_offsets is not None
    for i, prompt in enumerate(plain.input_tokens.tolist()):
        own = requests.hash_ids[requests.hash_offsets[i] : requests.hash_offsets[i + 1]]
        assert own.size == min(prompt // 16, 62)
        if own.size:
            group = int(own[0]) // 62
            expected += min(longest[group], (prompt - 1) // 16)
            longest[group] = max(longest[group], own.size)
    assert Service(CONFIG, requests).finish().count("prefix_hits") == expected
    for wrong in ({"groups": 0, "tokens": 100}, {"groups": 1, "tokens": 15}):
        with pytest.raises(ValueError, match="write a whole number"):
            SharedPrefix(**wrong)


def shared_share(lengths: tuple[float, float], samples: int, rate_per_s: float, prompts: int) -> float:
    """Share of the blocks of samples that sharing saves, over instants of a run; lognormal lengths of variation 1."""
    streams = Streams(17, 0)
    inputs, outputs = (
        LognormalLengths(mean=mean, cv=1, min=1, max=1024).lengths(streams.uniforms(name, 0, prompts))
        for mean, name in zip(lengths, ("input", "output"), strict=True)
    )
    arrivals = arrival_times_ns(poisson_gaps(streams.uniforms("arrivals", 0, prompts)), rate_per_s)
    requests = with_samples(Requests(arrivals, inputs, outputs), samples)
    service = Service(replace(CONFIG, blocks=1 << 15), requests)
    alone = saved = 0
    for look in range(1, 101):
        service.advance(int(arrivals[-1]) * look // 100)
        state = service._state
        i = int(state.replica[0, f.R_HEAD])
        while i != f.NO_SLOT:
            alone += blocks_of_slot(service, 0, i)
            saved += int(state.slot[i, f.S_SHARED])
            i = int(state.slot[i, f.S_NEXT])
        alone += reserved_in_flight(service, 0)
        saved -= int((state.entry[:, f.E_REFERENCES] > 0).sum())
    return saved / alone


@pytest.mark.parametrize(
    ("lengths", "rate_per_s", "prompts", "published", "within"),
    [
        ((19.31, 58.45), 20.0, 10_000, {2: 0.0609, 4: 0.0853, 6: 0.0979}, 0.3),
        ((161.31, 337.99), 5.0, 2000, {2: 0.162, 6: 0.305}, 0.25),
    ],
    ids=["Alpaca", "ShareGPT"],
)
def test_samples_save_what_vllm_saved(
    lengths: tuple[float, float], rate_per_s: float, prompts: int, published: dict[int, float], within: float
) -> None:
    """Goal: parallel samples save the share of the cache that Kwon et al. 2023 measured with vLLM (section 6.3, figure
    15 for Alpaca, in the text for ShareGPT: 16.2 to 30.5 %). Method: lengths of the published means (figure 11), their
    spread assumed; many prompts, blocks counted at 100 instants. n samples save 1 - 1/n of what prompts hold."""
    found = {samples: shared_share(lengths, samples, rate_per_s, prompts) for samples in published}
    for samples, share in published.items():
        assert found[samples] == pytest.approx(share, rel=within), samples
    assert found[6] / found[2] == pytest.approx((1 - 1 / 6) / (1 - 1 / 2), rel=0.1)
