"""Tables about the load of a service: single requests, distributions of latencies, what happens as the rate grows."""

from __future__ import annotations

from sim.tables import Column, DType, TableSpec

SERVICE = Column("service", DType.TEXT, "", "name of the service in the scenario")

REQUESTS = TableSpec(
    "requests",
    "request of the first window with all replicas up, as many as `serving.windows.record` says",
    (
        SERVICE,
        Column("request", DType.INT, "", "its number in order of arrival, from 0"),
        Column("arrival_ns", DType.INT, "ns", "arrival, from the start of the window"),
        Column("input_tokens", DType.INT, "tokens", "length of the prompt"),
        Column("output_tokens", DType.INT, "tokens", "length of the whole answer"),
        Column("first_token_ns", DType.INT_OR_NONE, "ns", "end of the pass that made token 1; blank where none came"),
        Column("last_token_ns", DType.INT_OR_NONE, "ns", "end of the pass that made the last; blank without"),
        Column("tokens", DType.INT, "tokens", "tokens that were delivered"),
        Column("status", DType.TEXT, "", "completed, unfinished or refused"),
        Column("replica", DType.INT, "", "replica that served it last; -1 where none did"),
        Column("evictions", DType.INT, "", "how often its cache was taken away"),
        Column("prefix_blocks", DType.TEXT, "", "numbers of the blocks of its prompt that others share"),
        Column("prefix_block_tokens", DType.INT_OR_NONE, "tokens", "tokens of such a block; blank without prefixes"),
    ),
)
