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
