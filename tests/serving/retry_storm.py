"""A retry storm in numbers: a short slowdown of one replica, and what its clients make of it, second by second."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sim.streams import Streams
from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving.batching import ContinuousBatching
from workloads.serving.clients import Admission, Clients, Patience, Retries
from workloads.serving.service import Service, ServiceConfig

SECOND = 10**9
RATE_PER_S, SECONDS = 20.0, 160
SLOW_FROM_S, SLOW_UNTIL_S, SLOW_SPEED = 20, 30, 0.2
ONCE = Clients(patience=Patience(limit_s=2.0, until="answer"))
AGAIN = replace(ONCE, retries=Retries(attempts=5, backoff_s=0.5, jitter=0.5))
CONFIG = ServiceConfig(
    costs=synthetic_pass_costs(), blocks=4000, batching=ContinuousBatching(max_batch=16), record_requests=100_000
)
DOOR = Admission(max_queue=8)


def storm_requests() -> Requests:
    """Poisson arrivals at about two thirds of what the replica can serve."""
    count = int(RATE_PER_S * SECONDS)
    gaps = -np.log1p(-Streams(5, 0).uniforms("gaps", 0, count)) * (SECOND / RATE_PER_S)
    return Requests(np.cumsum(np.rint(gaps).astype(np.int64)), np.full(count, 256), np.full(count, 64))


def served_by_second(clients: Clients, admission: Admission, *, slow: bool) -> NDArray[np.float64]:
    """Share of the requests that arrive in each ten seconds which get their answer, with and without the slowdown."""
    requests = storm_requests()
    config = replace(CONFIG, clients=clients, admission=admission)
    service = Service(config, requests, Streams(5, 0).uniforms)
    if slow:
        service.set_speed(0, SLOW_SPEED, SLOW_FROM_S * SECOND)
        service.set_speed(0, 1.0, SLOW_UNTIL_S * SECOND)
    record = service.finish().record
    assert record is not None
    tens = record.arrival_ns // (10 * SECOND)
    done = np.bincount(tens, weights=record.status == 1, minlength=SECONDS // 10)
    return np.asarray(done / np.maximum(1, np.bincount(tens, minlength=SECONDS // 10)))[: SECONDS // 10]
