"""Random workloads of disaggregated services, and what must hold of their blocks at any time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from tests.serving.cases import Case, draw_case, draw_events, rows_of, rules_of, run_verbs
from tests.serving.naive_pools import PoolNaive
from workloads.kv_cache import Paged
from workloads.serving import fields as f
from workloads.serving.batching import Disaggregated
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


def run_naive_pools_on(case: Case) -> PoolNaive:
    """Run a workload with whole costs on the reference."""
    batching = case.config.batching
    assert isinstance(batching, Disaggregated)
    naive = PoolNaive(
        replace(rules_of(case), budget=batching.budget),
        rows_of(case),
        prefills=batching.prefill_replicas,
        decode_blocks=case.config.blocks if batching.decode_blocks is None else batching.decode_blocks,
        per_token=Fraction(round(batching.transfer_s_per_token * 1e9)),
        layers=batching.layers,
    )
    return run_verbs(naive, case)


def check_pools(service: Service) -> None:
    """free + held + reserved in flight + held for others = all blocks on each replica, each counted on its own."""
    state = service._state
    replicas, prefills = int(state.common[f.C_REPLICAS]), int(state.common[f.C_PREFILLS])
    held = [0] * replicas
    places = np.ones(state.slot.shape[0], dtype=bool)
    places[state.slot[: int(state.common[f.C_FREE_SLOTS]), f.S_FREE]] = False
    for i in np.nonzero(places)[0].tolist():
        slot = state.slot[i]
        if slot[f.S_SOURCE] > 0:
            held[int(slot[f.S_SOURCE]) - 1] += int(slot[f.S_SOURCE_BLOCKS])
    for r in range(replicas):
        i = int(state.replica[r, f.R_HEAD])
        while i != f.NO_SLOT:
            slot = state.slot[i]
            if slot[f.S_STATE] == f.DECODE:
                sent = slot[f.S_OUTPUT] - (slot[f.S_END_STEP] - state.replica[r, f.R_STEPS])
                held[r] += -(-int(slot[f.S_INPUT] + sent - 1) // 16)
            else:
                held[r] += int(slot[f.S_BLOCKS])
            i = int(slot[f.S_NEXT])
        i, coming = int(state.replica[r, f.R_COMING_HEAD]), int(state.replica[r, f.R_COMING])
        for _ in range(coming):
            assert r >= prefills
            held[r] += int(state.slot[i, f.S_BLOCKS])
            i = int(state.slot[i, f.S_NEXT])
        assert held[r] + state.replica[r, f.R_FREE] == state.replica[r, f.R_BLOCKS]
        assert state.replica[r, f.R_FREE] >= 0
