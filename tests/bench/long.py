"""`make bench-long`: hundreds of millions of requests in one run of the token kernel, drawn while it simulates.

One replica of Llama-3 70B on a cube serves Poisson arrivals, with lognormal prompts of 512 and answers of 256 tokens in
the mean, at 0.7 of the rate that it completes when requests never lack; 300 million take it half a year. All
measures are on. Requests are drawn piece by piece in a thread beside the simulation, which leaves Python's lock alone;
no more than a few pieces exist at once, so the memory does not depend on the number of requests.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from sim.streams import Streams
from tests.bench.token_kernel import MAX_BATCH, service_config
from workloads.load.laws import PoissonRequests, request_pieces
from workloads.load.lengths import LognormalLengths
from workloads.requests import Requests
from workloads.serving.batching import ContinuousBatching
from workloads.serving.capacity import saturated_requests_per_s
from workloads.serving.service import Service, ServiceConfig

GROWTH = tuple(10**power for power in range(4, 9))
"""Numbers of requests over which the time must grow in proportion."""
MOST = 300_000_000
LOAD = 0.7
LAW = PoissonRequests(
    input=LognormalLengths(mean=512, cv=1.0, max=8192), output=LognormalLengths(mean=256, cv=1.0, max=4096)
)


def drawn_ahead(pieces: Iterable[Requests]) -> Iterator[Requests]:
    """The same pieces; while one is in use, a thread draws the next."""
    source = iter(pieces)
    with ThreadPoolExecutor(1) as helper:
        ahead = helper.submit(next, source, None)
        while (piece := ahead.result()) is not None:
            ahead = helper.submit(next, source, None)
            yield piece


def long_config() -> ServiceConfig:
    """One replica, with the rate at which it never lacks requests."""
    config = service_config(ContinuousBatching(max_batch=MAX_BATCH))
    few = LAW.draw(1.0, 20_000, Streams(1, 0).uniforms, "bench.capacity")
    return replace(config, saturated_requests_per_s=saturated_requests_per_s(config, few))


def long_run(count: int, config: ServiceConfig) -> dict[str, Any]:
    """Draw and simulate `count` requests; wall and CPU seconds, and the most memory that this process has taken so far.

    `per_request_ns` is the wall time of one.
    """
    assert config.saturated_requests_per_s is not None
    began_s, cpu_s = time.perf_counter(), time.process_time()
    pieces = request_pieces(LAW, LOAD * config.saturated_requests_per_s, count, Streams(1, 0).uniforms)
    measures = Service(config, drawn_ahead(pieces)).finish()
    wall_s = time.perf_counter() - began_s
    assert measures.count("completed") == count
    return {
        "requests": count,
        "wall_s": wall_s,
        "cpu_s": time.process_time() - cpu_s,
        "per_request_ns": wall_s / count * 1e9,
        "simulated_days": measures.window_ns / 86_400e9,
        "memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20),
    }


def main(arguments: Sequence[str]) -> None:
    """Run all numbers of requests (or those that are named) and print one JSON object for each as it ends."""
    config = long_config()
    long_run(1000, config)
    for count in [int(float(word)) for word in arguments] or [*GROWTH, MOST]:
        json.dump(long_run(count, config), sys.stdout)
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
