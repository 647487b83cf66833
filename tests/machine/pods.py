"""Helpers of the machine's tests: small pods, populations, a slow route to `expected`."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from sim.condition import component_counts
from sim.histories import US_PER_S, ComponentKind, FailureMode, Lives, Outages, draw_outages
from sim.lifetimes import Exponential
from sim.policies import HealthPolicy, RecoveryPolicy
from sim.swarm_cases import lives_of
from topology.fabric import Fabric
from topology.placement import capacity
from topology.pod import AnyPod, Pod

HOUR_S = 3600.0
HOUR_US = 3600 * US_PER_S
DAY_US = 24 * HOUR_US

NO_DETECTION = HealthPolicy(detection=0.0)
NO_DELAYS = RecoveryPolicy(evict=0.0, circuits=0.0, preflight=0.0, restore=0.0)


def mode(pod: AnyPod, kind: ComponentKind, life_h: float, repair_h: float, **more: object) -> FailureMode:
    """A population of all components of a kind, with exponential life and repair of these means."""
    return FailureMode(
        kind=kind,
        count=component_counts(pod)[kind],
        life=Exponential(mean=life_h * HOUR_S),
        repair=Exponential(mean=repair_h * HOUR_S),
        **more,  # type: ignore[arg-type]
    )


draws = lives_of
"""Lives of the named kinds: (mean life, mean repair) in hours."""


def hosts_up_at(pod: AnyPod, outages: list[Outages], time_us: int) -> NDArray[np.bool_]:
    """Which hosts work at an instant, looked up outage by outage."""
    up = np.ones(pod.hosts, dtype=np.bool_)
    per_host = {ComponentKind.HOST: 1, ComponentKind.RACK: 16, ComponentKind.IN_RACK_LINK: 16}
    for history in outages:
        if history.kind in per_host:
            width = per_host[history.kind]
            for component in history.component[(history.start_us <= time_us) & (time_us < history.end_us)].tolist():
                cube = component // 80 if history.kind is ComponentKind.IN_RACK_LINK else component
                up[cube * width : (cube + 1) * width] = False
    return up


def expected_by_hand(pod: AnyPod, fabric: Fabric, slice_chips: int, outages: list[Outages], horizon_us: int) -> float:
    """`expected` by asking for the capacity between any two transitions."""
    marks = {0, horizon_us}
    for history in outages:
        marks.update(np.clip(history.start_us, 0, horizon_us).tolist())
        marks.update(np.clip(history.end_us, 0, horizon_us).tolist())
    times = sorted(marks)
    slice_us = sum(
        (after - before) * capacity(fabric, pod, slice_chips, hosts_up_at(pod, outages, before))
        for before, after in itertools.pairwise(times)
    )
    return slice_us * slice_chips / (pod.chips * horizon_us)


def histories(lives: list[Lives], horizon_us: int) -> list[Outages]:
    """The outages of all populations up to the horizon."""
    return [draw_outages(one, horizon_us) for one in lives]


def small_pod(cubes: int = 8) -> Pod:
    """A pod of a few cubes."""
    return Pod(cubes=cubes)
