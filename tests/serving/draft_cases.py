"""Random workloads of services that speculate, and what must hold of their blocks at any time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.serving.cases import Case, draw_case, draw_central_case, draw_clients_case, draw_slo_aware_case
from tests.serving.prefix_cases import draw_clients_prefix_case, draw_prefix_case
from tests.serving.swap_cases import draw_swap_case, draw_tier_case
from workloads.serving import fields as f
from workloads.serving.batching import ContinuousBatching, StaticBatching
from workloads.serving.drafts import Speculation
from workloads.serving.service import Service

DRAWS = (
    draw_case, draw_swap_case, draw_prefix_case, draw_central_case, draw_clients_case, draw_tier_case,
    draw_slo_aware_case, draw_clients_prefix_case,
)  # fmt: skip


def draw_draft_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed` with speculation, on top of every other kind in turn; the draft model has other costs."""
    case, rng = DRAWS[seed % len(DRAWS)](seed, whole=whole), np.random.default_rng([seed, 9])
    other = draw_case(seed + 100_000, whole=whole)
    batching = case.config.batching
    if isinstance(batching, StaticBatching):
        batching = ContinuousBatching(max_batch=batching.max_batch)
    speculation = Speculation(
        length=int(rng.integers(1, 6)),
        acceptance=float(rng.choice([0.0, 0.3, 0.7, 0.9, 1.0])),
        draft=other.config.costs,
    )
    config = replace(case.config, batching=batching, speculation=speculation)
    return replace(case, config=config, draft_costs=other.whole_costs)


def check_ahead(service: Service) -> None:
    """Blocks that are free, held, or reserved for drafts in flight are all blocks of a paged cache without sharing."""
    state, common = service._state, service._state.common
    if not common[f.C_PAGED] or common[f.C_UNIT]:
        return
    for r in range(int(common[f.C_REPLICAS])):
        replica, held, i = state.replica[r], 0, int(state.replica[r, f.R_HEAD])
        while i != f.NO_SLOT:
            slot = state.slot[i]
            sent = slot[f.S_OUTPUT] - (slot[f.S_END_STEP] - replica[f.R_STEPS])
            decodes = slot[f.S_STATE] == f.DECODE
            held += -(-int(slot[f.S_INPUT] + sent - 1) // 16) if decodes else int(slot[f.S_BLOCKS])
            i = int(slot[f.S_NEXT])
        in_flight = int(replica[f.R_RESERVED]) if replica[f.R_MODE] == f.PASS else 0
        assert replica[f.R_FREE] + held + in_flight == replica[f.R_BLOCKS]
        assert replica[f.R_FREE] >= 0
