"""Bytes of one pass by memory level and kind, over all chips of a replica.

* HBM: weights once per pass; reads of the cache (replicated ones too); what is written to it; activations in and out of
  each product, of the stack's own kernels, and of attention over prompts (naive or tiled).
* Links: what each chip takes in of every collective. Beyond one node, one hop of a ring in n / nodes crosses, and of an
  all-to-all what goes to chips of other nodes.
* The memory next to the arithmetic (SM, VMEM): operands of products in tiles of 128, each weight once per tile of the
  rows that its chip multiplies with it, and all else that HBM gives or takes; the cache once per query head of a group
  where the stack reads it so. A last level (L2): all of HBM's traffic, and those repeated reads.
* CMEM (TPU v4): nothing is said. It is no cache: the compiler chooses what to put there and when, and no source tells
  what it chooses for these passes, nor the rate. Between nothing and all of HBM's traffic goes through it.
* Host link: token numbers, four bytes each, in and out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workloads.catalogue.chip import Interconnect
from workloads.catalogue.model import BF16_BYTES, Part
from workloads.collectives import crossing_share
from workloads.costs.attention_io import AttentionIo
from workloads.costs.layouts import Layout
from workloads.costs.replica import ReplicaCosts, Tokens, rows_of_a_copy
from workloads.costs.transfers import Carries, Floats, Move

Kinds = dict[str, Floats]
Bytes = dict[str, Kinds]

TILE = 128
"""Rows and columns of a tile of a matrix product: an MXU, or the usual tile of an SM."""
TOKEN_NUMBER_BYTES = 4.0


def times(traffic: Bytes, factor: Floats) -> Bytes:
    """The same traffic `factor` times."""
    return {level: {kind: value * factor for kind, value in kinds.items()} for level, kinds in traffic.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """What passes carry; arrays of one shape. `tokens` go through the layers, `logits` of them through the unembedding.

    `sequences` get a token. `cache_reads` tokens of cache come from HBM, `near_reads` from on-chip memory (more, where
    the stack reads them once per query head). `copied` tokens of cache are written beside those of `tokens`.
    `attention_bytes`: of attention over prompts, beside the cache.
    """

    tokens: Tokens
    logits: Tokens
    sequences: Tokens
    cache_reads: Floats
    near_reads: Floats
    copied: Floats
    attention_bytes: Floats


def traffic_of_pass(
    replica: ReplicaCosts, layout: Layout, sequences: Tokens, length: Tokens, attended: Floats, *, prompt: bool
) -> Bytes:
    """Bytes by level and kind of one pass; `attended`: tokens of cache that each sequence of a decode reads."""
    tokens = np.asarray(sequences * length if prompt else sequences)
    reads = tokens.astype(np.float64) if prompt else sequences * attended
    work = Work(
        tokens=tokens,
        logits=tokens if prompt and replica.constants.all_logits else sequences,
        sequences=sequences,
        cache_reads=reads,
        near_reads=reads * (1.0 if prompt else replica.kv_reads_per_value),
        copied=np.zeros(tokens.shape),
        attention_bytes=prompt_attention_bytes(replica, sequences, length) if prompt else np.zeros(tokens.shape),
    )
    return traffic_of_work(replica, layout, work, prompt=prompt)


def traffic_of_work(replica: ReplicaCosts, layout: Layout, work: Work, *, prompt: bool) -> Bytes:
    """Bytes by level and kind of passes; `prompt`: they carry prompt tokens, beside decodes perhaps."""
    tokens = work.tokens
    held = replica.model.kv_bytes_per_token(replica.kv_value_bytes) * replica.kv_replication
    written = held * (tokens + work.copied)
    hbm: Kinds = {
        "weights": np.zeros(tokens.shape),
        "kv_read": held * work.cache_reads,
        "kv_written": written,
        "activations": replica.chips * replica.elementwise_bytes(layout, tokens) + work.attention_bytes,
    }
    near: Kinds = {"weights": np.zeros(tokens.shape), "activations": hbm["activations"]}
    outer, inner = replica.shares(layout)
    copies = replica.copies(layout)
    for matrix in replica.model.matrices:
        rows = work.logits if matrix.part is Part.EMBEDDING else tokens
        read, tall = replica.read_bytes(matrix, rows), np.ceil(rows_of_a_copy(matrix, rows) / copies / TILE)
        hbm["weights"] = hbm["weights"] + read
        near["weights"] = near["weights"] + read * copies * np.maximum(tall, 1.0)
        into, out = (outer, inner) if matrix.outgoing else (inner, outer)
        values = BF16_BYTES * replica.chips * matrix.layers * matrix.used * rows.astype(np.float64)
        taken, given = values * (matrix.rows / into), values * (matrix.columns / out)
        hbm["activations"] = hbm["activations"] + taken + given
        wide = np.ceil(matrix.columns * copies / out / TILE)
        near["activations"] = near["activations"] + taken * wide + given
    repeated = held * work.near_reads
    found: Bytes = {"hbm": hbm, **_links(replica, layout, tokens, prompt=prompt)}
    levels = replica.chip.on_chip
    if levels:
        found[levels[0].name.lower()] = {**near, "kv_read": repeated, "kv_written": written}
    if len(levels) > 1 and replica.chip.interconnect is Interconnect.SWITCH:
        found[levels[-1].name.lower()] = {**hbm, "kv_read": repeated}
    numbers = TOKEN_NUMBER_BYTES * (tokens + work.sequences).astype(np.float64)
    return {**found, "host_link": {"activations": numbers}}


def prompt_attention_bytes(replica: ReplicaCosts, sequences: Tokens, length: Tokens) -> Floats:
    """Bytes of attention over prompts beside the cache: tiled by the on-chip size, or scores through HBM.

    Keys and values count as reads of the cache, not here, but those that latent attention makes out of it do.
    """
    model, constants = replica.model, replica.constants
    of_cache = 2 if model.latent is None else 0
    each = np.empty(length.shape)
    for index, tokens in np.ndenumerate(length):
        io = AttentionIo(tokens=int(tokens), head_dim=model.query_width // model.padded_heads)
        if not constants.tiled_attention:
            moved = io.naive_bytes()
        elif replica.chip.nearest is None:
            moved = 4 * io.strip_bytes
        else:
            moved = io.tiled_bytes(replica.chip)
        each[index] = moved - of_cache * io.strip_bytes
    return each * sequences * model.padded_heads * model.layers


def _links(replica: ReplicaCosts, layout: Layout, tokens: Tokens, *, prompt: bool) -> Bytes:
    """What chips take in over links, and over the network where a replica has several nodes."""
    chip = replica.chip
    inside: Kinds = {carries.value: np.zeros(tokens.shape) for carries in Carries}
    outside = dict(inside)
    for each in replica.transfers(layout, tokens, prompt=prompt):
        kind, moved = each.carries.value, each.bytes_per_chip * replica.chips
        crossing = crossing_share(chip, each.network, each.move is Move.ALL_TO_ALL)
        inside[kind] = inside[kind] + moved * (1.0 - crossing)
        outside[kind] = outside[kind] + moved * crossing
    if chip.interconnect is Interconnect.TORUS:
        return {"ici": inside, "network": {"activations": np.zeros(tokens.shape)}}
    return {"nvlink": inside, "network": outside}
