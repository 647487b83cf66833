"""What more chips can not take away from a decode step: the floor of the time per token.

Arithmetic, weights and activations are shared by all chips and vanish. What stays: a fixed time per layer and pass,
sampling, the hops and the fixed time of every collective (which grow with the slice), and the reads of the cache, which
are split by K heads and by sequences but by no more chips than that.
"""

from __future__ import annotations

import numpy as np

from workloads.costs.layouts import Attention, Layout
from workloads.costs.passes import PARTS_OF_PASS, Phase, attended_tokens, pass_cost
from workloads.costs.replica import PassPart, ReplicaCosts


def step_parts_s(replica: ReplicaCosts, batch: int, context: int, layout: Layout, stages: int = 1) -> dict[str, float]:
    """Seconds by part of a decode step of `batch` sequences that read `context` tokens each."""
    cost = pass_cost(replica, Phase.DECODE, batch, context, layout, stages)
    return {part: float(seconds) for part, seconds in cost.breakdown_s.items()}


def step_floor_s(replica: ReplicaCosts, batch: int, context: int, layout: Layout) -> dict[str, float]:
    """Of these seconds those that stay on a slice of this size however fast its memory, arithmetic and links are.

    Of reads of the cache: those of as many chips as could share them. Parts of one pipeline stage.
    """
    tokens = np.array([batch], dtype=np.int64)
    parts = replica.breakdown_s(layout, tokens, prompt=False)
    floor = dict.fromkeys(PARTS_OF_PASS, 0.0)
    for part in (PassPart.FIXED, PassPart.SAMPLING):
        floor[part] = float(parts[part][0])
    transfers = replica.transfers(layout, tokens, prompt=False)
    moved = sum(float(each.bandwidth_s(replica.chip)[0]) for each in transfers) / replica.constants.network_efficiency
    floor[PassPart.COLLECTIVES] = max(0.0, float(parts[PassPart.COLLECTIVES][0]) - moved)
    reads = float(attended_tokens(replica, tokens * 0 + context)[0]) * batch
    floor["kv_read"] = reads * _least_read_s_per_token(replica, batch)
    return floor


def _least_read_s_per_token(replica: ReplicaCosts, batch: int) -> float:
    """Seconds per context token of a decode whose cache is on as many chips as can share it; at most the present."""
    now = float(replica.kv_read_s_per_token(np.array([batch], dtype=np.int64))[0])
    if replica.attention is Attention.CONTEXT:
        return 0.0
    by_heads = 1 if replica.attention is Attention.BATCH else replica.model.kv_shards
    ways = by_heads * (1 if replica.attention is Attention.HEADS else batch)
    present = {
        Attention.HEADS: min(replica.chips, by_heads),
        Attention.BATCH: min(replica.chips, batch),
    }.get(replica.attention, replica.kv_ways * min(batch, max(1, replica.chips // replica.kv_ways)))
    return now * present / max(ways, present)
