"""Windows of a service, simulated token by token: steady ones by number of replicas up, and ones around a loss.

Outages last days and requests seconds, so tokens are simulated in windows and weighted to the horizon (design:
serving, section 5). Each function here is a task: a scenario and numbers in, measures out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sim.measure_names import waste_is_measured
from sim.scenario import Scenario
from sim.streams import Streams
from sim.studies.service_parts import (
    Calibration,
    service_config,
    service_requests,
    with_saturation,
)
from topology.shape import parse_shape
from workloads.requests import Requests
from workloads.serving.measures import ServiceMeasures
from workloads.serving.pass_log import token_times_ns
from workloads.serving.service import Service, ServiceConfig

Ints = NDArray[np.int64]

WARM_SHARE = 0.05
"""Share of a steady window's requests that warm it up."""
LOSS_WARM_S = 60.0
"""Simulated before a loss, so that it meets a service at work."""
LOSS_REQUESTS_MAX = 2_000_000
LOSS_WINDOW_MAX_S = 1e8
"""A loss whose recovery takes more requests, or more seconds, is not simulated; the run warns of it."""
LOOKS_AT_LOSS, BACK_LOOKS, BACK_SHARE = 250, 10, 0.95
"""A window around a loss is looked at so often; throughput over so many looks is back at this share of what it was."""
TOLD_REQUESTS = 2_000
"""Recorded requests of which each token is told: those beyond would take minutes."""
IDLE_REQUESTS = 4_000
IDLE_LOAD = 1e-3
"""Load of a replica that is to be seen idle."""


@dataclass(frozen=True, kw_only=True)
class WindowTask:
    """One window of service number `service`: `rate_per_s` of requests, what one replica can do, which repetition.

    `let_in`: these are so large a share of those that arrive.
    """

    service: int
    rate_per_s: float
    saturated_per_s: float
    repetition: int
    let_in: float = 1.0


@dataclass(frozen=True, kw_only=True)
class SteadyWindow:
    """A window with `replicas` up all the time. Rates are over the time of arrivals: later the rest is finished.

    `let_in`: share of the requests that the service let in; the window holds these. `recorded` are the requests whose
    life is in `measures.record`, where the scenario asks for them; `token_ns` holds the instant of each token of the
    first of them.
    """

    replicas: int
    measures: ServiceMeasures
    tokens_per_s: float
    requests_per_s: float
    let_in: float = 1.0
    recorded: Requests | None = None
    token_ns: tuple[tuple[int, ...], ...] = ()

    @property
    def tokens_in_time(self) -> float:
        """Tokens in time over tokens offered, those of requests turned away included."""
        return self.let_in * self.measures.tokens_in_time

    @property
    def recomputed_per_request(self) -> float:
        """Tokens that were computed again, after an eviction or a loss, per request."""
        return self.measures.count("recomputed_tokens") / max(self.measures.offered, 1)

    @property
    def attainment(self) -> float:
        """Requests in time over requests offered, those turned away included."""
        return self.let_in * self.measures.attainment


@dataclass(frozen=True, kw_only=True)
class LossWindow:
    """What one loss costs: tokens in time that it takes, with a spare at hand and waiting for the repair.

    `caught` requests were at the lost replica; `recomputed_tokens` were computed twice; `caught_ledger_s` is the mean
    time of a caught request by category. `offered_tokens_per_s` is the rate of the window. `throughput_back_s`: from
    the loss until, with a spare, as many tokens come as would without it (`throughput_back_s`; NaN: not in the window).
    """

    tokens_missed_with_spare: int
    tokens_missed_beside_repair: int
    caught: int
    recomputed_tokens: int
    offered_tokens_per_s: float
    caught_ledger_s: dict[str, float]
    throughput_back_s: float


def steady_window(scenario: Scenario, task: WindowTask, replicas: int) -> SteadyWindow:
    """Simulate one steady window; the same requests meet every number of replicas."""
    assert scenario.serving is not None
    section, windows = scenario.serving.services[task.service], scenario.serving.windows
    keep = windows.record if replicas == section.replicas and task.repetition == 0 else 0
    return _window(scenario, task, replicas, windows.requests, "steady", keep, waste=waste_is_measured(section))


def curve_window(scenario: Scenario, task: WindowTask) -> SteadyWindow:
    """Simulate one window of the load curve, all replicas up; the same requests come at every rate."""
    assert scenario.serving is not None
    curve = scenario.serving.load_curve
    assert curve is not None
    return _window(scenario, task, scenario.serving.services[task.service].replicas, curve.requests, "curve", 0)


def steady_parts(scenario: Scenario, task: WindowTask) -> tuple[ServiceConfig, Requests, Streams]:
    """What the steady window with all replicas up is made of: the service, its requests, its draws."""
    assert scenario.serving is not None
    section = scenario.serving.services[task.service]
    return _parts(scenario, task, section.replicas, scenario.serving.windows.requests, "steady")


def _parts(
    scenario: Scenario, task: WindowTask, replicas: int, count: int, about: str
) -> tuple[ServiceConfig, Requests, Streams]:
    assert scenario.serving is not None
    section = scenario.serving.services[task.service]
    streams = Streams(scenario.run.seed, task.repetition)
    requests = service_requests(section, task.rate_per_s, count, streams, about)
    return _config(scenario, task, replicas), requests, streams


def _window(
    scenario: Scenario, task: WindowTask, replicas: int, count: int, about: str, keep: int, *, waste: bool = False
) -> SteadyWindow:
    config, requests, streams = _parts(scenario, task, replicas, count, about)
    config = replace(config, record_requests=keep, measure_waste=waste)
    service = Service(config, requests, streams.uniforms)
    service.measure_from(int(requests.arrival_ns[int(WARM_SHARE * requests.count)]))
    began_ns, end_ns = service.now_ns, int(requests.arrival_ns[-1])
    service.advance(end_ns)
    window_s = (end_ns - began_ns) * 1e-9
    tokens, answered = service.tokens_delivered, service.total("answered")
    return SteadyWindow(
        replicas=replicas,
        measures=service.finish(),
        tokens_per_s=tokens / window_s,
        requests_per_s=answered / window_s,
        let_in=task.let_in,
        recorded=requests.first(keep) if keep else None,
        token_ns=_token_times(config, requests, streams) if keep else (),
    )


def _token_times(config: ServiceConfig, requests: Requests, streams: Streams) -> tuple[tuple[int, ...], ...]:
    """The instants of the tokens of the first recorded requests: the same window again, pass by pass."""
    told = replace(config, record_requests=min(config.record_requests, TOLD_REQUESTS))
    return tuple(map(tuple, token_times_ns(Service(told, requests, streams.uniforms))))


def _config(scenario: Scenario, task: WindowTask, replicas: int) -> ServiceConfig:
    assert scenario.serving is not None
    section = scenario.serving.services[task.service]
    config = service_config(scenario, section, section.shape(), replicas)
    assert config is not None, "the scenario was checked: the model fits"
    return with_saturation(config, section, task.saturated_per_s)


@dataclass(frozen=True, kw_only=True)
class LossTimes:
    """Instants of a loss in ns: it happens, it is noticed, the cubes are empty, the replica serves again."""

    lost_ns: int
    detected_ns: int
    evicted_ns: int
    back_ns: int

    @classmethod
    def of(cls, scenario: Scenario, lost_s: float) -> LossTimes:
        """The delays of the scenario: detection of a host, then evict, circuits, preflight, restore."""
        detected_s = lost_s + scenario.health.detection_s("host")
        recovery = scenario.recovery
        evicted_s = detected_s + recovery.evict
        back_s = evicted_s + recovery.circuits + recovery.preflight + recovery.restore
        instants = (round(seconds * 1e9) for seconds in (lost_s, detected_s, evicted_s, back_s))
        return cls(**dict(zip(("lost_ns", "detected_ns", "evicted_ns", "back_ns"), instants, strict=True)))


def loss_window_s(scenario: Scenario) -> float:
    """Length of a window around a loss in seconds: before it, recovery, and a while after."""
    times = LossTimes.of(scenario, LOSS_WARM_S)
    return times.back_ns * 1e-9 + max(LOSS_WARM_S, 0.25 * (times.back_ns - times.lost_ns) * 1e-9)


def losses_fit(scenario: Scenario, rate_per_s: float) -> bool:
    """Whether windows around losses can be simulated at this rate: from before the loss until after the recovery."""
    length_s = loss_window_s(scenario)
    return length_s <= LOSS_WINDOW_MAX_S and rate_per_s * length_s <= LOSS_REQUESTS_MAX


def loss_window(scenario: Scenario, task: WindowTask) -> LossWindow:
    """Simulate the same requests without a loss, with one and a spare, and with a loss that is known at once.

    The weights of the steady windows already hold the time that a repair takes. What a loss costs beside them is, with
    a spare, the whole recovery (hit - base); without one, that the loss was not known at once and that the start takes
    its stages too (hit - known).
    """
    assert scenario.serving is not None
    section = scenario.serving.services[task.service]
    times = LossTimes.of(scenario, LOSS_WARM_S)
    count = int(max(16.0, task.rate_per_s * loss_window_s(scenario)))
    streams = Streams(scenario.run.seed, task.repetition)
    requests = service_requests(section, task.rate_per_s, count, streams, "loss")
    config = _config(scenario, task, section.replicas)
    lost_replica = int(streams.uniforms(f"serving.{section.name}.lost_replica", 0, 1)[0] * section.replicas)
    lost = section.members(lost_replica)
    looks_ns = np.linspace(0, int(requests.arrival_ns[-1]), LOOKS_AT_LOSS + 1).astype(np.int64)
    base, tokens_without = _with_loss(config, requests, streams, (), times, looks_ns.tolist())
    hit, tokens_with = _with_loss(config, requests, streams, lost, times, looks_ns.tolist())
    known = LossTimes(
        lost_ns=times.lost_ns, detected_ns=times.lost_ns, evicted_ns=times.evicted_ns, back_ns=times.evicted_ns
    )
    at_once, _ = _with_loss(config, requests, streams, lost, known)
    return LossWindow(
        tokens_missed_with_spare=base.count("in_time_tokens") - hit.count("in_time_tokens"),
        tokens_missed_beside_repair=at_once.count("in_time_tokens") - hit.count("in_time_tokens"),
        caught=hit.count("caught"),
        recomputed_tokens=hit.count("recomputed_tokens") - base.count("recomputed_tokens"),
        offered_tokens_per_s=base.count("offered_tokens") / (int(requests.arrival_ns[-1]) * 1e-9),
        caught_ledger_s=hit.ledger_s_per_request(caught=True),
        throughput_back_s=throughput_back_s(looks_ns, tokens_without, tokens_with, times.lost_ns),
    )


def throughput_back_s(looks_ns: Ints, without: Ints, with_loss: Ints, lost_ns: int) -> float:
    """Seconds from a loss until tokens come at `BACK_SHARE` of the rate at which they would come without it.

    `without`, `with_loss`: tokens delivered by each of the instants `looks_ns`, of the same requests. Rates are over
    stretches of `BACK_LOOKS` looks; the start of the first that is not below, after one that is, counts: a service that
    catches up is back. 0 where none is below, NaN where all are from the first such on.
    """
    rate, wanted = (tokens[BACK_LOOKS:] - tokens[:-BACK_LOOKS] for tokens in (with_loss, without))
    starts_ns = looks_ns[:-BACK_LOOKS]
    after = starts_ns >= lost_ns
    below = (rate < BACK_SHARE * wanted)[after]
    if not below.any():
        return 0.0
    back = ~below & (np.cumsum(below) > 0)
    return int(starts_ns[after][int(back.argmax())] - lost_ns) * 1e-9 if back.any() else math.nan


def _with_loss(
    config: ServiceConfig,
    requests: Requests,
    streams: Streams,
    lost: tuple[int, ...],
    times: LossTimes,
    looks_ns: Sequence[int] = (),
) -> tuple[ServiceMeasures, Ints]:
    """Measures with the loss of some replicas, and the tokens delivered by each look (looking changes nothing)."""
    service = Service(config, requests, streams.uniforms)
    acts = ((times.lost_ns, service.lose), (times.detected_ns, service.detect), (times.back_ns, service.up))
    ahead = deque((at_ns, act, replica) for at_ns, act in acts for replica in lost)
    delivered = []
    for look_ns in (*looks_ns, math.inf):
        while ahead and ahead[0][0] <= look_ns:
            at_ns, act, replica = ahead.popleft()
            act(replica, at_ns)
        if look_ns < math.inf:
            service.advance(int(look_ns))
            delivered.append(service.tokens_delivered)
    return service.finish(), np.array(delivered, dtype=np.int64)


def ladder_window(scenario: Scenario, service: int, calibration: Calibration) -> ServiceMeasures | None:
    """Latencies of an otherwise idle replica on a shape; None where the model does not fit.

    Requests come far apart: what a bigger slice buys is not hidden behind the load that each size can carry.
    """
    assert scenario.serving is not None
    section = scenario.serving.services[service]
    config = service_config(scenario, section, parse_shape(calibration.shape), 1)
    if config is None:
        return None
    rate = IDLE_LOAD * calibration.saturated_per_s
    streams = Streams(scenario.run.seed, 0)
    requests = service_requests(section, rate, IDLE_REQUESTS, streams, "capacity")
    return Service(config, requests, streams.uniforms).finish()
