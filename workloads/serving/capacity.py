"""What a service can do: the rate at which its limits are met, and the rate at which requests never run out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from workloads.requests import LATEST_NS, Requests
from workloads.serving.batching import Disaggregated
from workloads.serving.clients import Admission, Clients
from workloads.serving.router import RoundRobin
from workloads.serving.service import Service, ServiceConfig, Uniforms

IDLE_LOAD = 1e-3
"""Share of the saturated rate at which requests come far apart."""


def at_rate(requests: Requests, factor: float) -> Requests:
    """The same requests, arriving `factor` times as fast; of very slow ones only those that the clock can hold."""
    with np.errstate(over="ignore"):
        scaled = requests.arrival_ns / factor
    few = requests.first(max(1, int(np.searchsorted(scaled, LATEST_NS))))
    arrival_ns = np.rint(np.minimum(scaled[: few.count], LATEST_NS)).astype(np.int64)
    return few.arriving(arrival_ns)


def one_alone(config: ServiceConfig) -> ServiceConfig:
    """One replica of the service, whose clients wait for ever and are all let in: what it can do itself."""
    plain = replace(config, clients=Clients(), admission=Admission(), priorities=())
    replicas = config.replicas if isinstance(config.batching, Disaggregated) else 1  # prompts and answers: all of it
    return replace(plain, replicas=replicas, router=RoundRobin(), record_requests=0)


def capacity_requests_per_s(
    config: ServiceConfig,
    requests: Requests,
    attainment: float = 0.9,
    drawn_at: Callable[[float], Requests] | None = None,
    uniforms: Uniforms | None = None,
) -> float:
    """Greatest rate, in requests per second on one replica, at which a share `attainment` of `requests` is in time.

    The requests (20,000 by the design) are the same at every rate, only their arrivals are scaled: common random
    numbers; where a rate does more than that, `drawn_at` draws them. Bisection to 1 % on one replica; 0.0 when limits
    are not met at a thousandth of the saturated rate. It is never above the saturated rate: there the queue grows
    without end, however wide the limits are for the first `requests`. Turns of sessions come open loop here: users who
    wait for their answers would hide what is too much.
    """
    return goodput_requests_per_s(one_alone(config), requests, attainment, drawn_at, uniforms)


def goodput_requests_per_s(
    config: ServiceConfig,
    requests: Requests,
    attainment: float = 0.9,
    drawn_at: Callable[[float], Requests] | None = None,
    uniforms: Uniforms | None = None,
) -> float:
    """The goodput rate of a whole service: as `capacity_requests_per_s`, with all its replicas.

    `uniforms`: for what is drawn inside, the luck of speculation or of a random router.
    """
    whole = replace(config, record_requests=0, measures=True)
    drawn_per_s = requests.count / max(int(requests.arrival_ns[-1]), 1) * 1e9

    def keeps(rate_per_s: float) -> bool:
        offered = at_rate(requests, rate_per_s / drawn_per_s) if drawn_at is None else drawn_at(rate_per_s)
        return Service(whole, offered.open_loop, uniforms).finish().attainment >= attainment

    saturated = _rate_at_once(whole, requests, uniforms)
    if saturated == 0.0:
        return 0.0
    if keeps(saturated):
        return saturated
    if not keeps(IDLE_LOAD * saturated):
        return 0.0
    low, high = saturated / 2, saturated
    while low > IDLE_LOAD * saturated and not keeps(low):
        high, low = low, low / 2
    while high > 1.01 * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def saturated_requests_per_s(config: ServiceConfig, requests: Requests, uniforms: Uniforms | None = None) -> float:
    """Requests per second that one replica completes when all `requests` wait for it from the start."""
    return _rate_at_once(one_alone(config), requests, uniforms)


def _rate_at_once(config: ServiceConfig, requests: Requests, uniforms: Uniforms | None) -> float:
    at_once = requests.open_loop.arriving(np.zeros(requests.count, dtype=np.int64))
    return Service(replace(config, record_requests=0, measures=False), at_once, uniforms).finish().requests_per_s
