"""Random workloads whose evicted requests are written to host memory, and what must hold of that memory at any time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.serving.cases import Case, draw_case, draw_central_case, draw_clients_case
from tests.serving.prefix_cases import draw_clients_prefix_case, draw_prefix_case
from workloads.kv_cache import Contiguous, Paged
from workloads.serving import fields as f
from workloads.serving.batching import ContinuousBatching, StaticBatching
from workloads.serving.preemption import Swap
from workloads.serving.service import Service

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
