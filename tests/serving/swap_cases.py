"""Random workloads whose evicted requests are written to host memory, and what must hold of that memory at any time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.serving.cases import Case, draw_case, draw_central_case, draw_clients_case
from tests.serving.prefix_cases import check_blocks, draw_affine_case, draw_clients_prefix_case, draw_prefix_case
from workloads.kv_cache import Contiguous, Paged
from workloads.prefixes import SharedPrefix
from workloads.serving import fields as f
from workloads.serving.batching import ContinuousBatching, StaticBatching
from workloads.serving.preemption import Swap, Tiers
from workloads.serving.service import Service
from workloads.serving.tiers import HOST, REMOTE

DRAWS = (draw_case, draw_prefix_case, draw_central_case, draw_clients_case, draw_clients_prefix_case)


def draw_swap_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed` with swap: alone, with shared prefixes, a central queue, clients, or clients and prefixes.

    Caches are tight, hosts small and large, links slow and fast.
    """
    case, rng = DRAWS[seed % len(DRAWS)](seed, whole=whole), np.random.default_rng([seed, 7])
    config, requests = case.config, case.requests
    batching = config.batching
    if isinstance(batching, StaticBatching):
        batching = ContinuousBatching(max_batch=batching.max_batch)
    longest = int((requests.input_tokens + requests.output_tokens).max())
    blocks = max(1, int(float(rng.choice([1.0, 1.2, 1.6])) * longest / 16) + int(rng.integers(0, 3)))
    ns_per_block = int(rng.choice([0, 3, 50, 700]))
    swap = Swap(host_blocks=int(rng.choice([1, blocks // 2 + 1, 10 * blocks])), s_per_block=ns_per_block * 1e-9)
    kv = Paged() if isinstance(config.kv, Contiguous) else config.kv
    return replace(case, config=replace(config, batching=batching, kv=kv, blocks=blocks, preemption=swap))


def check_hosts(service: Service) -> None:
    """Each host holds the blocks of those whose KV lies there, each counted on its own, and never more than it has."""
    state = service._state
    live = np.ones(state.slot.shape[0], dtype=bool)
    live[state.slot[: int(state.common[f.C_FREE_SLOTS]), f.S_FREE]] = False
    for r in range(int(state.common[f.C_REPLICAS])):
        theirs = live & (state.slot[:, f.S_HOST] == r + 1)
        held = int((-(-state.slot[theirs, f.S_HOST_TOKENS] // 16)).sum())
        assert held == state.replica[r, f.R_HOST] <= state.common[f.C_HOST_BLOCKS]
        assert (state.slot[theirs, f.S_STATE] == f.WAITING).all()


def draw_tier_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed` with shared prefixes and tiers below a tight cache; some with clients, routers, swap.

    A host or a remote store may be missing, have room for one piece, or for all.
    """
    draws = (draw_prefix_case, draw_affine_case, draw_clients_prefix_case, draw_prefix_case)
    case, rng = draws[seed % 4](seed, whole=whole), np.random.default_rng([seed, 8])
    config, requests = case.config, case.requests
    if seed % 4 != 1:
        law = SharedPrefix(groups=int(rng.integers(2, 9)), tokens=int(rng.integers(16, 160)))
        plain = replace(requests, hash_ids=None, hash_offsets=None, hash_block_tokens=None)
        requests = law.on(plain, rng.random(requests.count))
    unit = (requests.hash_block_tokens or 16) // 16
    longest = int((requests.input_tokens + requests.output_tokens).max())
    blocks = max(1, int(float(rng.choice([1.0, 1.3, 2.0])) * longest / 16) + int(rng.integers(0, 3)))
    host, remote = (unit * int(rng.choice([0, 1, 3, 12, 1000])) for _ in range(2))
    tiers = Tiers(
        host_blocks=host or unit * int(remote == 0),
        remote_blocks=remote,
        host_s_per_block=int(rng.choice([0, 5, 60])) * 1e-9,
        remote_s_per_block=int(rng.choice([0, 20, 300])) * 1e-9,
    )
    config = replace(config, blocks=blocks, tiers=tiers)
    case = replace(case, requests=requests)
    if rng.random() < 0.3:
        config = replace(config, preemption=Swap(host_blocks=int(rng.integers(1, 30)), s_per_block=20e-9))
    return replace(case, config=config)


def check_tiers(service: Service) -> None:
    """The lists of the tiers are as long as they say and no longer than they may be; the tables agree with them."""
    check_blocks(service)
    check_hosts(service)
    state, common = service._state, service._state.common
    buckets = int(common[f.C_LOWER_BUCKETS])
    for r in range(int(common[f.C_REPLICAS])):
        replica, listed, tiers = state.replica[r], [], []
        e = int(replica[f.R_LOWER_OLDEST])
        while e != f.NO_SLOT:
            listed.append(e)
            tiers.append(int(state.lower[e, f.E_REFERENCES]))
            e = int(state.lower[e, f.E_NEWER])
        assert tiers == [REMOTE] * int(replica[f.R_LOWER_REMOTE]) + [HOST] * int(replica[f.R_LOWER_HOST])
        assert replica[f.R_LOWER_HOST] <= common[f.C_HOST_PIECES]
        assert replica[f.R_LOWER_REMOTE] <= common[f.C_REMOTE_PIECES]
        found = state.lower_bucket[r * buckets : (r + 1) * buckets]
        stored = found[found[:, f.HASH_ENTRY] != f.NO_SLOT]
        assert sorted(listed) == sorted(stored[:, f.HASH_ENTRY].tolist())
        assert np.array_equal(state.lower[stored[:, f.HASH_ENTRY], f.E_ID], stored[:, f.HASH_ID])
