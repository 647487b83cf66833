"""One failure followed second by second: tokens, stages of the lost replica, and the ledger of the requests caught."""

from __future__ import annotations

import math
from dataclasses import dataclass

import simpy

from sim.build import seconds_to_us
from sim.processes.serving import Look, ReplicaStage, lose_and_recover, watch
from sim.scenario import Scenario
from sim.streams import Streams
from sim.studies.service_parts import service_config, service_requests, with_saturation
from sim.studies.windows import LOSS_REQUESTS_MAX, LOSS_WARM_S, LOSS_WINDOW_MAX_S, WindowTask
from sim.trace import Stage
from topology.fabric import Fabric
from workloads.serving.service import Service

AFTER_S = 240.0
"""Followed after the replica of the reconfigurable pod is back."""
LOOK_S = 1.0
LOOKS_MAX = 7_200
"""A long recovery is looked at less often, so that the story has about this many rows at most."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """What was seen on one fabric: looks (times from the loss in s), mean seconds of a caught request by category."""

    fabric: Fabric
    service: str
    lost_us: int
    looks: tuple[Look, ...]
    caught: int
    caught_ledger_s: dict[str, float]


def stages_of(scenario: Scenario, fabric: Fabric) -> list[tuple[Stage, int | None]]:
    """The stages of a replica after the loss of a host (design: machine, section 5).

    Where cubes can be joined anew a spare is at hand; under static wiring the replica waits for the repair, which takes
    far longer than the story is told.
    """
    recovery = scenario.recovery
    known: list[tuple[Stage, int | None]] = [
        (Stage.DETECTING, seconds_to_us(scenario.health.detection_s("host"))),
        (Stage.EVICTING, seconds_to_us(recovery.evict)),
    ]
    if fabric in (Fabric.STATIC_ALIGNED, Fabric.STATIC_CONTIGUOUS):
        return [*known, (Stage.WAITING, None)]
    circuits: list[tuple[Stage, int | None]] = [(Stage.RECONFIGURING, seconds_to_us(recovery.circuits))]
    return [
        *known,
        *(circuits if fabric.has_light else []),
        (Stage.PREFLIGHT, seconds_to_us(recovery.preflight)),
        (Stage.RESTORING, seconds_to_us(recovery.restore)),
    ]


def tell_story(scenario: Scenario, task: WindowTask, fabric: Fabric) -> Story:
    """Play the loss of one replica on a fabric (a task); every fabric meets the same requests and the same loss."""
    assert scenario.serving is not None
    section = scenario.serving.services[task.service]
    lost_us = seconds_to_us(LOSS_WARM_S)
    back = stages_of(scenario, Fabric.RECONFIGURABLE)
    horizon_us = lost_us + sum(length or 0 for _, length in back) + seconds_to_us(AFTER_S)
    horizon_us = min(horizon_us, seconds_to_us(LOSS_WINDOW_MAX_S))
    look_us = seconds_to_us(max(LOOK_S, math.ceil(horizon_us * 1e-6 / LOOKS_MAX)))
    streams = Streams(scenario.run.seed, task.repetition)
    wanted = max(16.0, 1.1 * task.rate_per_s * horizon_us * 1e-6)
    requests = service_requests(section, task.rate_per_s, int(min(wanted, LOSS_REQUESTS_MAX)), streams, "loss")
    if wanted > LOSS_REQUESTS_MAX:  # told for as long as requests come
        horizon_us = min(horizon_us, int(requests.arrival_ns[-1]) // 1_000)
    config = service_config(scenario, section, section.shape(), section.replicas)
    assert config is not None, "the scenario was checked: the model fits"
    service = Service(with_saturation(config, section, task.saturated_per_s), requests, streams.uniforms)
    replica = int(streams.uniforms(f"serving.{section.name}.lost_replica", 0, 1)[0] * section.replicas)
    env, current, looks = simpy.Environment(), ReplicaStage(), list[Look]()
    env.process(lose_and_recover(env, service, section.members(replica), lost_us, stages_of(scenario, fabric), current))
    env.process(watch(env, service, look_us, current, looks, section.parts))
    env.run(until=horizon_us)
    measures = service.finish(horizon_us * 1_000)
    return Story(
        fabric=fabric,
        service=section.name,
        lost_us=lost_us,
        looks=tuple(looks),
        caught=measures.count("caught"),
        caught_ledger_s=measures.ledger_s_per_request(caught=True),
    )
