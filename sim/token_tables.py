"""Tables about single tokens of a service: one request's life, bytes by memory level, time over chips."""

from __future__ import annotations

from sim.load_tables import SERVICE
from sim.tables import Column, DType, TableSpec
from workloads.serving.fields import LEDGER

REQUEST_LIFE = TableSpec(
    "request_life",
    "token of one recorded request: the one with the longest gap between two tokens",
    (
        SERVICE,
        Column("request", DType.INT, "", "its number in order of arrival, as in the table `requests`"),
        Column("token", DType.INT_OR_NONE, "", "number of the token, from 1; blank where it left without it"),
        Column("at_ns", DType.INT, "ns", "when it came, from the arrival of the request"),
        Column("gap_ns", DType.INT, "ns", "time since the token before it, or since the arrival"),
        Column("replica", DType.INT, "", "replica that made it"),
        Column("sequences", DType.INT, "", "sequences that decoded in the pass that made it"),
        Column("prompt_tokens", DType.INT, "tokens", "prompt tokens that this pass computed too"),
        Column("reason", DType.TEXT, "", "what made it late; `step` and `prompt` where nothing did"),
        *(Column(f"{name}_ns", DType.INT, "ns", f"of the gap: {name.replace('_', ' ')}") for name in LEDGER),
    ),
)
TRAFFIC = TableSpec(
    "traffic",
    "service, level of memory (nearest to the arithmetic first) and kind of data",
    (
        SERVICE,
        Column("level", DType.TEXT, "", "sm, l2, vmem, cmem, hbm, ici, nvlink, network or host_link"),
        Column("kind", DType.TEXT, "", "weights, kv_read, kv_written, activations; kv_moved (parts, swap, tiers)"),
        Column("bytes_per_token", DType.FLOAT, "B", "per token sent, over all chips; blank for cmem: no source tells"),
        Column("seconds_per_token", DType.FLOAT, "s", "the same at the full rate of all chips; blank where not known"),
        Column("busy_share", DType.FLOAT, "1", "that time as a share of the time of the passes"),
    ),
)
TOKEN_FLOOR = TableSpec(
    "token_floor",
    "service, slice shape and part of a decode step, at the mean batch and context of the service",
    (
        SERVICE,
        Column("shape", DType.TEXT, "chips", "slice of one replica"),
        Column("chips", DType.INT, "chips", "chips of one replica"),
        Column("fits", DType.BOOL, "", "weights and one longest request fit its memory"),
        Column("part", DType.TEXT, "", "compute, weights, activations, collectives, fixed, sampling, kv_read, ..."),
        Column("seconds_per_token", DType.FLOAT, "s", "of a step, so of each token of a sequence"),
        Column("floor_s", DType.FLOAT, "s", "of it what no number of chips takes away"),
    ),
)
