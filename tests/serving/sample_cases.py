"""Random workloads of parallel samples, and what must hold of the blocks that they share at any time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from tests.serving.cases import Case, draw_case, draw_central_case, draw_clients_case, draw_events, draw_slo_aware_case
from tests.serving.prefix_cases import blocks_of_slot, reserved_in_flight
from workloads.kv_cache import PrefixSharing
from workloads.prefixes import SharedPrefix, with_samples
from workloads.serving import fields as f
from workloads.serving.batching import ContinuousBatching, StaticBatching
from workloads.serving.drafts import Speculation
from workloads.serving.preemption import Swap, Tiers
from workloads.serving.router import PrefixAffine
from workloads.serving.service import Service

DRAWS = (draw_case, draw_clients_case, draw_central_case, draw_slo_aware_case, draw_case)


def draw_sample_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed` with two to five samples of each prompt, on top of every other kind in turn.

    Answers of one prompt differ in length; some prompts share a beginning, and some fill their last block. In some
    there are swap, tiers below the cache, drafts, or the prefix-affine router.
    """
    case, rng = DRAWS[seed % len(DRAWS)](seed, whole=whole), np.random.default_rng([seed, 31])
    config, samples = case.config, int(rng.integers(2, 6))
    requests = case.requests.first(max(1, case.requests.count // samples))
    if rng.random() < 0.5:
        prompts = np.where(
            rng.random(requests.count) < 0.3, 16 * (1 + requests.input_tokens // 16), requests.input_tokens
        )
        requests = replace(requests, input_tokens=prompts)
    if rng.random() < 0.4:
        law = SharedPrefix(groups=int(rng.integers(1, 4)), tokens=int(rng.integers(16, 80)))
        requests = law.on(requests, rng.random(requests.count))
    requests = with_samples(requests, samples)
    outputs = rng.integers(1, 1 + int(rng.integers(1, 60)), size=requests.count)
    requests = replace(requests, output_tokens=outputs.astype(np.int64))
    batching = config.batching
    if isinstance(batching, StaticBatching):
        batching = ContinuousBatching(max_batch=batching.max_batch)
    longest = int((requests.input_tokens + requests.output_tokens).max())
    blocks = max(1, int(float(rng.choice([0.9, 1.1, 1.5, 2.5, 6.0])) * longest / 16) + int(rng.integers(0, 4)))
    config = replace(config, batching=batching, kv=PrefixSharing(), blocks=blocks)
    kinds = rng.random(4)
    if kinds[0] < 0.25:
        config = replace(config, preemption=Swap(host_blocks=int(rng.integers(1, 30)), s_per_block=20e-9))
    if kinds[1] < 0.15:
        tiers = Tiers(
            host_blocks=int(rng.integers(1, 12)), host_s_per_block=5e-9, remote_blocks=int(rng.integers(0, 9))
        )
        config = replace(config, tiers=tiers)
    if kinds[2] < 0.2 and seed % len(DRAWS) == 0:
        config = replace(config, router=PrefixAffine(guard=int(rng.choice([0, 1, 100]))))
    case = replace(case, config=config, requests=requests)
    if rng.random() < 0.5:
        span = int(requests.arrival_ns[-1]) + requests.count * 500
        case = replace(case, events=draw_events(rng, config.replicas, span))
    if kinds[3] < 0.2:
        other = draw_case(seed + 100_000, whole=whole)
        speculation = Speculation(
            length=int(rng.integers(1, 5)), acceptance=float(rng.choice([0.3, 0.8, 1.0])), draft=other.config.costs
        )
        case = replace(case, config=replace(config, speculation=speculation), draft_costs=other.whole_costs)
    return case


def check_tails(service: Service) -> None:
    """free + held + cached = all blocks on each replica, each block that several refer to counted once.

    Counted from tokens and from the lists, whatever the kernel keeps; tails in common by who stands beside whom.
    """
    state, paged = service._state, service._state.replica
    common = state.common
    assert common[f.C_UNIT] == 1
    for r in range(int(common[f.C_REPLICAS])):
        held, tails, i = set[int](), Counter[int](), int(paged[r, f.R_HEAD])
        own = 0
        while i != f.NO_SLOT:
            at, shared = int(state.slot[i, f.S_HASH_AT]), int(state.slot[i, f.S_SHARED])
            held |= set(state.hashes[at : at + shared, f.HASH_ENTRY].tolist())
            own += blocks_of_slot(service, r, i) - shared
            if state.slot[i, f.S_TAIL] > paged[r, f.R_TAILS]:
                tails[int(state.slot[i, f.S_TAIL])] += 1
            i = int(state.slot[i, f.S_NEXT])
        copies = sum(tails.values()) - len(tails)
        assert copies == paged[r, f.R_COPIES]
        in_flight = reserved_in_flight(service, r)
        free = int(paged[r, f.R_FREE]) - in_flight - int(paged[r, f.R_KEPT])
        assert free >= 0
        if common[f.C_DRAFTS] == 0 or paged[r, f.R_MODE] != f.PASS:
            assert free + own - copies + len(held) + in_flight + paged[r, f.R_KEPT] == common[f.C_BLOCKS]
