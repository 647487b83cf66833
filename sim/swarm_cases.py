"""Random small pods in operation, each drawn from two numbers: anything may be there, and anything may fail.

A case is the set of arguments of `sim.processes.operations.simulate_operations`. Draws are wild on purpose (rates a
thousand times the published ones, delays of nothing or of an hour, jobs of a millisecond): what breaks is found sooner.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sim.condition import KINDS, component_counts
from sim.histories import US_PER_S, ComponentKind, FailureMode, Lives, draw_outages
from sim.job_policies import CheckpointPolicy, FixedCheckpoints, NoCheckpoints, SparesPolicy, YoungCheckpoints
from sim.lifetimes import Exponential
from sim.other_failures import (
    BadHosts,
    FlappingLinks,
    OtherFailures,
    PodEvents,
    PowerDomainEvents,
    SilentCorruption,
    SlowHosts,
)
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.failures import Source
from sim.repair_policies import (
    FalseAlarms,
    MaintenancePolicy,
    Parts,
    PartsOf,
    Preflight,
    PreflightTest,
    Retirement,
    Rolling,
    Screening,
    TwoStage,
)
from sim.streams import Streams
from topology.fabric import Fabric
from topology.pod import AnyPod, FlatPod, Pod
from workloads.jobs.defragmentation import MakeRoom, NoDefragmentation
from workloads.jobs.job import JobKind, make_job
from workloads.jobs.queue_policies import Easy, FairShare, Fifo, Priority, ShortestFirst
from workloads.jobs.queueing import QueuePolicy

HOUR_S = 3600.0
DAY_US = 24 * 3600 * US_PER_S
LIFE_H = {
    ComponentKind.HOST: (90.0, 6.0),
    ComponentKind.RACK: (120.0, 6.0),
    ComponentKind.IN_RACK_LINK: (6000.0, 6.0),
    ComponentKind.OPTICAL_END: (6000.0, 6.0),
    ComponentKind.OCS: (400.0, 6.0),
}
"""Mean life and mean repair in hours: far more failures than any pod has (assumption of ours)."""
PROFILES_DRAWN = ("", "", "tight", "wide", "quick")
CHECKPOINTS: tuple[CheckpointPolicy, ...] = (
    NoCheckpoints(),
    FixedCheckpoints(interval=900, save=30),
    FixedCheckpoints(interval=900, save=300, stall=5, mode="asynchronous"),
    FixedCheckpoints(interval=60, save=0),
    YoungCheckpoints(save=45),
    YoungCheckpoints(save=100, stall=0, mode="asynchronous"),
)
QUEUES: tuple[QueuePolicy, ...] = (Fifo(), ShortestFirst(), Priority(), FairShare(), Easy())
SPARES = (SparesPolicy(), SparesPolicy(kind="cold", cubes=1), SparesPolicy(kind="warm", cubes=1),
          SparesPolicy(kind="hot", cubes=1))  # fmt: skip
DEFRAGMENTATION = (NoDefragmentation(), MakeRoom(), MakeRoom(least_wait=0, least_gain=0))
QUIET_US, HORIZON_US = 2 * DAY_US, 40 * DAY_US
"""When failures stop, and by when every job must have finished."""


def lives_of(pod: AnyPod, seed: int, hours: dict[ComponentKind, tuple[float, float]]) -> list[Lives]:
    """Lives of all components of the named kinds, exponential: (mean life, mean repair) in hours."""
    streams, counts = Streams(seed, 0), component_counts(pod)
    return [
        Lives(
            FailureMode(
                kind=kind,
                count=counts[kind],
                life=Exponential(mean=hours[kind][0] * HOUR_S),
                repair=Exponential(mean=hours[kind][1] * HOUR_S),
            ),
            streams,
        )
        for kind in KINDS
        if kind in hours
    ]


def finite_case(number: int) -> dict[str, Any]:
    """Failures stop after two days, and every job that fits has the time to finish."""
    rng = Streams(number, 0).generator("swarm")

    def one(*of: Any) -> Any:
        return of[int(rng.integers(len(of)))]

    cubes = one(1, 2, 3, 4, 6, 8)
    pod: AnyPod = FlatPod(hosts=16 * cubes) if rng.random() < 0.1 else Pod(cubes=cubes)
    fabric = Fabric.ANY_HOST if isinstance(pod, FlatPod) else one(*Fabric)
    failing = {ComponentKind.HOST: LIFE_H[ComponentKind.HOST]}
    if isinstance(pod, Pod):
        failing = {kind: LIFE_H[kind] for kind in KINDS if rng.random() < 0.6}
    sources: list[Source] = []
    for lives in lives_of(pod, number, failing):
        drawn = draw_outages(lives, QUIET_US)
        sources.append(replace(drawn, horizon_us=HORIZON_US, end_us=np.minimum(drawn.end_us, QUIET_US)))
    sizes = [chips for chips in (2, 4, 16, 32, 64, 64, 128, 128, 192, 256, 512) if chips <= pod.hosts * 4]
    arrivals = np.sort(rng.integers(0, DAY_US, size=int(rng.integers(1, 20))))
    jobs = [
        make_job(
            identity, pod, one(*sizes), reroute_opt_in=bool(rng.random() < 0.7), kind=one(*JobKind),
            arrival_us=int(arrival_us) if rng.random() < 0.9 else int(arrivals[0]), priority=one(0, 0, 1, 2),
            work_us=round(one(0.001, 600, 7200, 40_000, 90_000) * US_PER_S), owner=one("a", "b"),
            profile=PROFILES_DRAWN[(number + identity) % len(PROFILES_DRAWN)],
        )
        for identity, arrival_us in enumerate(arrivals.tolist())
    ]  # fmt: skip
    return {
        "pod": pod,
        "fabric": fabric,
        "jobs": sorted(jobs, key=lambda job: (job.arrival_us, job.id)),
        "sources": sources,
        "health": HealthPolicy(detection=one(0.0, 60.0, 3600.0)),
        "repair": RepairPolicy(),
        "recovery": RecoveryPolicy(
            evict=one(0.0, 30.0), circuits=one(0.0, 10.0), preflight=one(0.0, 180.0), restore=one(0.0, 600.0, 3600.0),
            replace=one("replace_one", "move_all"), failure=one(0.0, 0.0, 0.4), hold=one(0.0, 0.0, 1800.0),
        ),
        "checkpoint": one(*CHECKPOINTS),
        "spares": one(*SPARES) if cubes > 2 else SparesPolicy(),
        "queue": one(*QUEUES),
        "runs_at_start": one(False, True),
        "defragmentation": one(*DEFRAGMENTATION),
        "streams": Streams(number, 0),
        "horizon_us": HORIZON_US,
        "check_invariants": True,
    }  # fmt: skip


def all_troubles(number: int, pod: Pod) -> dict[str, Any]:
    """Arguments that put all that can go wrong into a case of three days."""
    rng = Streams(number, 0).generator("swarm troubles")
    often = 1 / (200 * 3600)

    def maybe(what: Any) -> Any:
        return what if rng.random() < 0.5 else None

    preflight = Preflight(end_to_end=PreflightTest(time=120, coverage=0.7, false_alarms=0.05))
    cubes, switches = Rolling(every=2 * 86400, length=1800, notice=600), Rolling(every=2 * 86400, length=900, notice=60)
    return {
        "horizon_us": 3 * DAY_US,
        "sources": lives_of(pod, number, {kind: LIFE_H[kind] for kind in KINDS if rng.random() < 0.6}),
        "health": HealthPolicy(
            false_alarms=maybe(FalseAlarms(rate=often)), preflight=maybe(preflight),
            screening=maybe(Screening(every=7200)),
            accept_degraded=bool(rng.random() < 0.5),
        ),
        "repair": RepairPolicy(
            crews=maybe(2), two_stage=maybe(TwoStage()), retire=maybe(Retirement(replaced_after=3600)),
            parts=maybe(PartsOf(host=Parts(stock=1, lead_time=7200))) or PartsOf(),
        ),
        "others": OtherFailures(
            bad_hosts=maybe(BadHosts()), power_domain=maybe(PowerDomainEvents(rate=often, racks=2)),
            pod=maybe(PodEvents(rate=often)), slow_hosts=maybe(SlowHosts(rate=often)),
            corruption=maybe(SilentCorruption(rate=often, noticed_after=Exponential(mean=4 * 3600))),
            flapping_in_rack_links=maybe(FlappingLinks(rate=often / 20)),
            flapping_optical_ends=maybe(FlappingLinks(rate=often / 20)),
        ),
        "maintenance": MaintenancePolicy(cubes=maybe(cubes), switches=maybe(switches)),
    }  # fmt: skip


def crowded_case(number: int) -> dict[str, Any]:
    """A case on a cabled pod of eight cubes with thirty jobs at once, moved for each other at the first occasion."""
    pod = Pod(cubes=8, grid=(1, 2, 4))
    rng = Streams(number, 0).generator("swarm crowd")
    sizes = (16, 32, 64, 64, 64, 128, 128, 256)
    jobs = [
        make_job(
            identity, pod, sizes[int(rng.integers(len(sizes)))], arrival_us=int(rng.integers(0, DAY_US)),
            work_us=round(rng.lognormal(9, 1.5) * US_PER_S), priority=int(rng.integers(3)),
            reroute_opt_in=bool(rng.random() < 0.7),
        )
        for identity in range(30)
    ]  # fmt: skip
    kinds = (ComponentKind.HOST, ComponentKind.RACK, ComponentKind.IN_RACK_LINK)
    return finite_case(number) | {
        "pod": pod,
        "fabric": (Fabric.STATIC_CONTIGUOUS, Fabric.STATIC_ALIGNED)[number % 2],
        "jobs": sorted(jobs, key=lambda job: (job.arrival_us, job.id)),
        "sources": lives_of(pod, number, {kind: LIFE_H[kind] for kind in kinds}),
        "spares": SPARES[number % 3 % 2],
        "defragmentation": MakeRoom(least_wait=0, least_gain=0),
        "checkpoint": FixedCheckpoints(interval=3600, save=300),
        "horizon_us": 4 * DAY_US,
    }
