"""Random workloads whose prompts share prefixes, and what must hold of a replica's blocks at any time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tests.serving.cases import Case, draw_case, draw_clients_case, draw_events
from workloads.kv_cache import PrefixSharing
from workloads.prefixes import SharedPrefix
from workloads.requests import Requests
from workloads.serving import fields as f
from workloads.serving.batching import ContinuousBatching, StaticBatching
from workloads.serving.router import CentralQueue, PrefixAffine
from workloads.serving.service import Service


def tree_numbers(rng: np.random.Generator, counts: NDArray[np.int64], wild: bool) -> list[list[int]]:
    """Numbers of leading pieces: walks down random trees (a node is a prefix), or `wild` numbers that lie about it."""
    children: dict[int, list[int]] = {}
    made, branching = 1, float(rng.choice([0.05, 0.3, 0.7]))
    walks = []
    for count in counts.tolist():
        node, walk = 0, []
        for _ in range(count):
            if wild:
                node = int(rng.integers(0, 12)) << int(rng.integers(0, 50))
            elif not children.get(node) or rng.random() < branching:
                children.setdefault(node, []).append(made)
                node, made = made, made + 1
            else:
                node = children[node][int(rng.integers(len(children[node])))]
            walk.append(node)
        walks.append(walk)
    return walks


def draw_prefix_case(seed: int, *, whole: bool = True, affine: bool = False) -> Case:
    """Workload number `seed` with shared prefixes in pieces of 16 to 64 tokens; some prompts name only a few."""
    base = draw_case(seed, whole=whole)
    rng = np.random.default_rng([seed, 1])
    count = base.requests.count
    tokens = int(rng.choice([16, 16, 32, 64]))
    prompts = rng.integers(1, int(rng.choice([50, 150, 250])), size=count)
    outputs = base.requests.output_tokens
    counts = -(-prompts // tokens)
    if rng.random() < 0.2:
        counts = rng.integers(0, counts + 1)
    walks = tree_numbers(rng, counts, wild=rng.random() < 0.1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    ids = np.array([number for walk in walks for number in walk], dtype=np.int64)
    requests = Requests(base.requests.arrival_ns, prompts.astype(np.int64), outputs, ids, offsets, tokens)
    longest = int((prompts + outputs).max())
    blocks = max(1, int(float(rng.choice([0.9, 1.1, 1.5, 2.5, 6.0])) * longest / 16) + int(rng.integers(0, 4)))
    config = replace(base.config, kv=PrefixSharing(), blocks=blocks)
    if affine:
        config = replace(
            config,
            router=PrefixAffine(guard=int(rng.choice([0, 1, 3, 100]))),
            replicas=max(2, base.config.replicas) + seed % 2,
        )
    return replace(base, config=config, requests=requests)


def draw_affine_case(seed: int, *, whole: bool = True) -> Case:
    """The same with two to four replicas behind the prefix-affine router."""
    return draw_prefix_case(seed, whole=whole, affine=True)


def draw_central_prefix_case(seed: int, *, whole: bool = True) -> Case:
    """One queue for two to five replicas, each with a cache of prefixes."""
    case, rng = draw_prefix_case(seed, whole=whole), np.random.default_rng([seed, 98])
    replicas = int(rng.integers(2, 6))
    span = int(case.requests.arrival_ns[-1]) + case.requests.count * 500
    config = replace(case.config, router=CentralQueue(), replicas=replicas)
    return replace(case, config=config, events=draw_events(rng, replicas, span))


def draw_clients_prefix_case(seed: int, *, whole: bool = True) -> Case:
    """Clients who give up, cancel and come back, with shared beginnings: what they leave of a prefix is left once."""
    case, rng = draw_clients_case(seed, whole=whole), np.random.default_rng([seed, 99])
    batching = case.config.batching
    if isinstance(batching, StaticBatching):
        batching = ContinuousBatching(max_batch=batching.max_batch)
    law = SharedPrefix(groups=int(rng.integers(1, 4)), tokens=int(rng.integers(16, 80)))
    router = PrefixAffine() if rng.random() < 0.3 else case.config.router
    requests = law.on(case.requests, rng.random(case.requests.count))
    config = replace(case.config, kv=PrefixSharing(), router=router, batching=batching)
    return replace(case, requests=requests, config=config)


def check_blocks(service: Service) -> None:
    """free + held + cached = all blocks on each replica, each counted on its own; the lists and tables agree."""
    state = service._state
    common, unit = state.common, int(state.common[f.C_UNIT])
    entries, buckets = int(common[f.C_ENTRIES]), int(common[f.C_BUCKETS])
    for r in range(int(common[f.C_REPLICAS])):
        replica = state.replica[r]
        found = state.bucket[r * buckets : (r + 1) * buckets]
        stored = found[found[:, f.HASH_ENTRY] != f.NO_SLOT, f.HASH_ENTRY]
        assert np.unique(stored).size == stored.size
        assert np.array_equal(state.entry[stored, f.E_ID], found[found[:, f.HASH_ENTRY] != f.NO_SLOT, f.HASH_ID])
        listed, e = [], int(replica[f.R_OLDEST])
        while e != f.NO_SLOT:
            listed.append(e)
            e = int(state.entry[e, f.E_NEWER])
        assert len(listed) == replica[f.R_KEPT]
        assert sorted(listed) == sorted(e for e in stored.tolist() if state.entry[e, f.E_REFERENCES] == 0)
        own, references, i = 0, 0, int(replica[f.R_HEAD])
        while i != f.NO_SLOT:
            own += blocks_of_slot(service, r, i) - unit * int(state.slot[i, f.S_SHARED])
            references += int(state.slot[i, f.S_SHARED])
            i = int(state.slot[i, f.S_NEXT])
        assert references == state.entry[stored, f.E_REFERENCES].sum()
        held = own + unit * (stored.size - len(listed)) - int(replica[f.R_COPIES])
        in_flight = reserved_in_flight(service, r)
        free = int(replica[f.R_FREE]) - in_flight - unit * len(listed)
        assert free >= 0
        assert free + held + in_flight + unit * len(listed) == int(common[f.C_BLOCKS])
        spare, e = 0, int(replica[f.R_SPARE])
        while e != f.NO_SLOT:
            spare, e = spare + 1, int(state.entry[e, f.E_NEWER])
        assert spare + stored.size == entries


def blocks_of_slot(service: Service, r: int, i: int) -> int:
    """Blocks of a running slot, from its tokens (a pass that carries prompts has taken its decodes' blocks already)."""
    replica, slot = service._state.replica[r], service._state.slot[i]
    if slot[f.S_STATE] != f.DECODE:
        return int(slot[f.S_BLOCKS])
    sent = slot[f.S_OUTPUT] - (slot[f.S_END_STEP] - replica[f.R_STEPS])
    tokens = int(slot[f.S_INPUT] + sent - 1)
    taken = replica[f.R_MODE] == f.PASS and replica[f.R_MIXED]
    return -(-tokens // 16) + int(bool(taken) and tokens % 16 == 0)


def reserved_in_flight(service: Service, r: int) -> int:
    """Blocks that the decode step in flight has reserved (they count as taken when it ends)."""
    state = service._state
    replica, count, i = state.replica[r], 0, int(state.replica[r, f.R_HEAD])
    if replica[f.R_MODE] != f.PASS or replica[f.R_MIXED]:
        return 0
    while i != f.NO_SLOT:
        if state.slot[i, f.S_STATE] == f.DECODE:
            sent = state.slot[i, f.S_OUTPUT] - (state.slot[i, f.S_END_STEP] - replica[f.R_STEPS])
            count += int((state.slot[i, f.S_INPUT] + sent - 1) % 16 == 0)
        i = int(state.slot[i, f.S_NEXT])
    return count
