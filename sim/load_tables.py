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
        Column("gaps_ns", DType.TEXT, "ns", "gaps between its tokens in order; blank beyond the first 2,000 requests"),
        Column("status", DType.TEXT, "", "completed, unfinished, refused, rejected, timed_out, cancelled, or failed"),
        Column("attempts", DType.INT, "", "how often its client sent it; times are those of the last attempt"),
        Column("replica", DType.INT, "", "replica that served it last; -1 where none did"),
        Column("evictions", DType.INT, "", "how often its cache was taken away"),
        Column("prefix_blocks", DType.TEXT, "", "numbers of the blocks of its prompt that others share"),
        Column("prefix_block_tokens", DType.INT_OR_NONE, "tokens", "tokens of such a block; blank without prefixes"),
    ),
)
LOAD_CURVE = TableSpec(
    "load_curve",
    "load of a service with all replicas up, rising; one row more for the goodput rate",
    (
        SERVICE,
        Column("load", DType.FLOAT, "1", "share of the service's capacity"),
        Column("offered_requests_per_s", DType.FLOAT, "1/s", "requests that arrive"),
        Column("slo_attainment", DType.FLOAT, "1", "share of offered requests within both limits"),
        Column("ci_low", DType.FLOAT, "1", "lower end of its 95 % interval; blank where no variation was seen"),
        Column("ci_high", DType.FLOAT, "1", "upper end of its 95 % interval"),
        Column("goodput_requests_per_s", DType.FLOAT, "1/s", "requests that arrive and are in time"),
        Column("tokens_in_time_per_s", DType.FLOAT, "1/s", "tokens of requests in time"),
        Column("ttft_p50_s", DType.FLOAT, "s", "median time to first token"),
        Column("ttft_p99_s", DType.FLOAT, "s", "99th percentile of the time to first token"),
        Column("tpot_p50_s", DType.FLOAT, "s", "median of the mean time per later token"),
        Column("tpot_p99_s", DType.FLOAT, "s", "99th percentile of the mean time per later token"),
        Column("itl_p99_s", DType.FLOAT, "s", "99th percentile of the gap between two tokens"),
        Column("queue", DType.TEXT, "", "stable, backlogged or overloaded"),
        Column("is_goodput_rate", DType.BOOL, "", "the greatest rate at which `slo.attainment` is kept, to 1 %"),
        Column("n", DType.INT, "", "windows behind the row"),
    ),
)
DISTURBANCE = TableSpec(
    "disturbance",
    "service, with or without the slowdown, and step of arrival",
    (
        SERVICE,
        Column("slowed", DType.BOOL, "", "with the slowdown, or the same requests without it"),
        Column("t_s", DType.FLOAT, "s", "start of the step in which requests arrive"),
        Column("arrived", DType.FLOAT, "requests", "requests that arrive, mean over repetitions"),
        Column("answered", DType.FLOAT, "1", "of them those that get their whole answer before they give up"),
        Column("ci_low", DType.FLOAT, "1", "lower end of its 95 % interval; blank where no variation was seen"),
        Column("ci_high", DType.FLOAT, "1", "upper end"),
        Column("attempts", DType.FLOAT, "1", "how often each of them is sent"),
        Column("n", DType.INT, "", "repetitions"),
    ),
)
LATENCIES = TableSpec(
    "latencies",
    "service, load, kind of latency and share",
    (
        SERVICE,
        Column("load", DType.FLOAT, "1", "share of the service's capacity; blank where it has none"),
        Column("measure", DType.TEXT, "", "ttft, tpot, itl (over tokens) or end_to_end"),
        Column("share", DType.FLOAT, "1", "share of requests (of tokens for itl)"),
        Column("seconds", DType.FLOAT, "s", "what this share does not exceed"),
    ),
)
