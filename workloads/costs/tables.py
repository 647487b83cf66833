"""From the costs of a replica to the tables that the token kernel eats."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from workloads.catalogue.chip import Chip
from workloads.catalogue.model import Model
from workloads.catalogue.stack import StackConstants
from workloads.catalogue.stacks import constants_of
from workloads.collectives import SliceNetwork
from workloads.costs.layouts import Attention, Layout, bytes_per_value
from workloads.costs.naive_attention import naive_prefill_pair_s, naive_read_s_per_token
from workloads.costs.replica import ReplicaCosts
from workloads.pass_costs import PassCosts, token_grid


@lru_cache(maxsize=64)
def replica_pass_costs(
    model: Model,
    chip: Chip,
    network: SliceNetwork,
    *,
    layout: Layout = Layout.WEIGHT_STATIONARY_2D,
    prefill_layout: Layout | None = None,
    attention: Attention = Attention.HEADS_X_BATCH,
    weights: str = "bf16",
    kv: str = "bf16",
    max_batch: int | None = 256,
    max_tokens: int = 2**20,
    constants: StackConstants | None = None,
    naive_attention: bool = False,
) -> PassCosts:
    """Tables for the token kernel. `prefill_layout` None takes the fastest of all layouts at every token count.

    `max_batch` None is unlimited: reads per token are constant once every chip has a sequence. `max_tokens`: the grid
    reaches at least so far. `constants` default to the stack with which the model was measured, else the usual one of
    the chip's family. Layers with a sliding window count as if they saw the whole context (an upper bound: the kernel's
    time is affine in it). `naive_attention`: scores go through memory, whatever the stack does. The tables of the last
    64 are kept, since every window of a service asks for the same: nobody writes into them.
    """
    replica = ReplicaCosts(
        model=model,
        chip=chip,
        network=network,
        attention=attention,
        weight_value_bytes=bytes_per_value(weights, "weights"),
        kv_value_bytes=bytes_per_value(kv, "kv"),
        constants=constants or constants_of(chip, model=model),
    )
    grid = token_grid(max_tokens)
    choices = tuple(Layout) if prefill_layout is None else (prefill_layout,)
    prefill = np.stack([replica.parts_s(choice, grid, prompt=True) for choice in choices])
    faster = np.argmin(prefill.sum(axis=2), axis=0)
    last_batch = max(1, replica.chips if max_batch is None else min(max_batch, math.prod(network.axes)))
    batches = np.arange(last_batch + 1, dtype=np.int64)
    reads = naive_read_s_per_token(replica, batches) if naive_attention else replica.kv_read_s_per_token(batches)
    return PassCosts(
        grid_tokens=grid,
        decode_parts_s=replica.parts_s(layout, grid, prompt=False),
        prefill_parts_s=prefill[faster, np.arange(grid.size)],
        kv_read_s_per_token=reads,
        prefill_pair_s=naive_prefill_pair_s(replica) if naive_attention else replica.prefill_pair_s(),
        prefill_context_s_per_token=replica.prefill_context_s_per_token(),
        model=model.key,
        chip=chip.key,
        shape=network.text,
        chips=replica.chips,
        weight_bytes=model.weight_bytes(replica.weight_value_bytes),
        kv_bytes_per_token=model.kv_bytes_per_token(replica.kv_value_bytes),
        kv_replication=replica.kv_replication,
    )
