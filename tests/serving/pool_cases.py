"""Random workloads of disaggregated services, and what must hold of their blocks at any time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from tests.serving.cases import (
    Case,
    draw_case,
    draw_clients_case,
    draw_events,
    hashes_of,
    rows_of,
    rules_of,
    run_verbs,
    tell_requests,
    tell_tiers,
    tells_clients,
)
from tests.serving.naive_pools import ClientPoolNaive, PoolNaive
from tests.serving.naive_tiers import TierNaive
from workloads.kv_cache import Paged, PrefixSharing
from workloads.prefixes import SharedPrefix
from workloads.serving import fields as f
from workloads.serving.batching import Disaggregated
from workloads.serving.preemption import Tiers
from workloads.serving.router import PrefixAffine
from workloads.serving.service import Service


def draw_pool_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed` on one or two prefill and one to three decode replicas, with slow and fast links."""
    base = draw_case(seed, whole=whole)
    rng = np.random.default_rng([seed, 2])
    prefills, decodes = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    requests = base.requests
    longest = int((requests.input_tokens + requests.output_tokens).max())
    blocks, decode_blocks = (
        max(1, int(float(rng.choice([0.9, 1.1, 1.5, 3.0])) * longest / 16) + int(rng.integers(0, 4))) for _ in range(2)
    )
    per_token = int(rng.choice([0, 1, 10, 100]))
    batching = Disaggregated(
        prefill_replicas=prefills,
        transfer_s_per_token=per_token * 1e-9,
        layers=int(rng.choice([1, 2, 4])),
        decode_blocks=None if rng.random() < 0.2 else decode_blocks,
        budget=None if rng.random() < 0.5 else int(rng.integers(1, 60)),
        max_batch=None if rng.random() < 0.3 else int(rng.integers(1, 12)),
    )
    config = replace(base.config, batching=batching, kv=Paged(), blocks=blocks, replicas=prefills + decodes)
    span = int(requests.arrival_ns[-1]) + requests.count * 1000
    return replace(base, config=config, events=draw_events(rng, config.replicas, span))


def draw_clients_pool_case(seed: int, *, whole: bool = True) -> Case:
    """The same with clients who lose patience, cancel and come back, limits at the door, and classes in half."""
    pools, clients = draw_pool_case(seed, whole=whole), draw_clients_case(5 * seed, whole=whole)
    rules = {name: getattr(clients.config, name) for name in ("clients", "admission", "priorities")}
    return replace(pools, config=replace(pools.config, **rules))


def draw_prefix_pool_case(seed: int, *, whole: bool = True) -> Case:
    """Disaggregated replicas whose prompts share prefixes; some with clients, tiers, or the affine router."""
    draw = draw_clients_pool_case if seed % 3 == 2 else draw_pool_case
    case, rng = draw(seed, whole=whole), np.random.default_rng([seed, 10])
    law = SharedPrefix(groups=int(rng.integers(1, 6)), tokens=int(rng.integers(16, 100)))
    requests = law.on(case.requests, rng.random(case.requests.count))
    config = replace(case.config, kv=PrefixSharing())
    if rng.random() < 0.4:
        config = replace(config, router=PrefixAffine(guard=int(rng.choice([0, 2, 100]))))
    if rng.random() < 0.4:
        tiers = Tiers(host_blocks=4, host_s_per_block=9e-9, remote_blocks=6, remote_s_per_block=50e-9)
        config = replace(config, tiers=tiers)
    return replace(case, config=config, requests=requests)


def run_naive_pools_on(case: Case) -> PoolNaive:
    """Run a workload with whole costs on the reference."""
    batching = case.config.batching
    assert isinstance(batching, Disaggregated)
    rules = replace(rules_of(case), budget=batching.budget)
    kind: type[PoolNaive] = ClientPoolNaive if tells_clients(case.config, rules) else PoolNaive
    if case.config.tiers is not None:
        kind = type("Mixed", (TierNaive, kind), {})
    naive = kind(
        rules,
        rows_of(case),
        hashes_of(case.requests) if rules.hash_tokens else None,
        prefills=batching.prefill_replicas,
        decode_blocks=case.config.blocks if batching.decode_blocks is None else batching.decode_blocks,
        per_token=Fraction(round(batching.transfer_s_per_token * 1e9)),
        layers=batching.layers,
    )
    tell_requests(naive, case)
    if case.config.tiers is not None:
        tell_tiers(rules, case.config.tiers)
    run_verbs(naive, case)
    check_links(naive)
    return naive


def check_links(naive: PoolNaive) -> None:
    """Each link carries one thing at a time: so in any window at most as much as fits into it."""
    for carried in naive.carried:
        pieces = sorted(carried)
        assert all(end <= start for (_, end), (start, _) in pairwise(pieces))


def check_pools(service: Service) -> None:
    """free + held + reserved in flight + held for others = all blocks on each replica, each counted on its own."""
    state = service._state
    replicas, prefills = int(state.common[f.C_REPLICAS]), int(state.common[f.C_PREFILLS])
    unit = int(state.common[f.C_UNIT])
    held = [0] * replicas
    if unit:
        held = [unit * shared_pieces(service, r) for r in range(replicas)]
    places = np.ones(state.slot.shape[0], dtype=bool)
    places[state.slot[: int(state.common[f.C_FREE_SLOTS]), f.S_FREE]] = False
    for i in np.nonzero(places)[0].tolist():
        slot = state.slot[i]
        if slot[f.S_SOURCE] > 0:
            held[int(slot[f.S_SOURCE]) - 1] += int(slot[f.S_SOURCE_BLOCKS]) - unit * int(slot[f.S_SHARED])
    for r in range(replicas):
        i = int(state.replica[r, f.R_HEAD])
        while i != f.NO_SLOT:
            slot = state.slot[i]
            if slot[f.S_STATE] == f.DECODE:
                sent = slot[f.S_OUTPUT] - (slot[f.S_END_STEP] - state.replica[r, f.R_STEPS])
                held[r] += -(-int(slot[f.S_INPUT] + sent - 1) // 16)
            else:
                held[r] += int(slot[f.S_BLOCKS]) - unit * int(slot[f.S_SHARED])
            i = int(slot[f.S_NEXT])
        i, coming = int(state.replica[r, f.R_COMING_HEAD]), int(state.replica[r, f.R_COMING])
        for _ in range(coming):
            assert r >= prefills
            held[r] += int(state.slot[i, f.S_BLOCKS])
            i = int(state.slot[i, f.S_NEXT])
        assert held[r] + state.replica[r, f.R_FREE] == state.replica[r, f.R_BLOCKS]
        assert state.replica[r, f.R_FREE] >= 0


def shared_pieces(service: Service, r: int) -> int:
    """Pieces of the cache of replica r to which somebody refers."""
    state, size = service._state, int(service._state.common[f.C_BUCKETS])
    found = state.bucket[r * size : (r + 1) * size, f.HASH_ENTRY]
    return int((state.entry[found[found != f.NO_SLOT], f.E_REFERENCES] > 0).sum())
