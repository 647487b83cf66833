"""A pod in operation: jobs arrive, run, are lost and recover, finish; the log of it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Required, TypedDict, Unpack

import numpy as np
import simpy

from sim.job_policies import CheckpointPolicy, NoCheckpoints, SparesPolicy
from sim.machine import Machine
from sim.other_failures import OtherFailures
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy, with_preflight
from sim.processes.dispatch import Dispatcher
from sim.processes.failures import Source, start_failures
from sim.processes.health import to_us
from sim.processes.job_events import JobEvents
from sim.processes.jobs import JobProcess, run_job
from sim.processes.moves import Moves
from sim.processes.order import Order, Timer, priority
from sim.processes.spares import Spares
from sim.processes.upkeep import Upkeep, loss_rate_per_s
from sim.profile_delays import move_s
from sim.repair_policies import MaintenancePolicy
from sim.streams import Streams
from sim.trace import Trace
from topology.boxes import check_fabric
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE, HOSTS_PER_CUBE, AnyPod
from topology.shape import Shape
from workloads.jobs.defragmentation import Defragmentation, NoDefragmentation
from workloads.jobs.fitting import Mask, PlacementPolicy
from workloads.jobs.job import Job, JobKind
from workloads.jobs.queueing import QueuePolicy


@dataclass(frozen=True, kw_only=True)
class ReplicaDelays:
    """What replicas of a service take in place of jobs: to load their weights, and to drain when they leave."""

    weights_s: float
    drain_s: float


class PodPolicies(TypedDict, total=False):
    """How a pod is run; what is left out is as in `start_pod`."""

    health: Required[HealthPolicy]
    repair: Required[RepairPolicy]
    recovery: Required[RecoveryPolicy]
    streams: Required[Streams]
    checkpoint: CheckpointPolicy | None
    spares: SparesPolicy | None
    queue: QueuePolicy | None
    placement: PlacementPolicy | None
    defragmentation: Defragmentation | None
    others: OtherFailures | None
    maintenance: MaintenancePolicy | None
    services: Mapping[str, ReplicaDelays] | None
    serving_cubes: int
    runs_at_start: bool
    check_invariants: bool


def simulate_operations(
    pod: AnyPod,
    fabric: Fabric,
    jobs: Sequence[Job],
    sources: Sequence[Source],
    *,
    horizon_us: int,
    **policies: Unpack[PodPolicies],
) -> Trace:
    """Play jobs, in order of arrival, and failures on a pod up to the horizon; see `start_pod`."""
    env = simpy.Environment()
    started = start_pod(env, pod, fabric, jobs, sources, horizon_us=horizon_us, **policies)
    env.process(started.arrivals([job for job in jobs if job.arrival_us < horizon_us]))
    env.run(until=horizon_us)
    return started.trace(jobs, horizon_us)


def start_pod(
    env: simpy.Environment,
    pod: AnyPod,
    fabric: Fabric,
    jobs: Sequence[Job],
    sources: Sequence[Source],
    *,
    horizon_us: int,
    **policies: Unpack[PodPolicies],
) -> OperatedPod:
    """A pod on the clock of `env` with all that fails on it; `jobs` are those that may arrive.

    `sources` are the populations that fail; those that a fabric does not have are left out. With `runs_at_start` the
    slices got at time 0 run at once. `services` by name are the owners of replicas. The first `serving_cubes` cubes are
    for serving jobs alone, and they for these; with 0 the pod is shared. Raises InputError for a fabric that the pod
    does not have, ValueError for populations larger than the pod and for spares that leave nothing of it.
    """
    check_fabric(fabric, pod)
    streams, health = policies["streams"], policies["health"]
    recovery = with_preflight(policies["recovery"], health)
    spares, saving = policies.get("spares") or SparesPolicy(), policies.get("checkpoint") or NoCheckpoints()
    machine = Machine(pod, fabric, env, check_invariants=policies.get("check_invariants", False))
    reserve = Spares(pod, spares.cubes, by_host=fabric is Fabric.ANY_HOST)
    moves = Moves(
        policies.get("defragmentation") or NoDefragmentation(),
        lambda job: to_us(move_s(recovery, saving, job, light=fabric.has_light)),
    )
    serving_cubes = policies.get("serving_cubes", 0)
    part = _part_of(pod, serving_cubes) if serving_cubes else None
    dispatcher = Dispatcher(
        env, machine, recovery, policies.get("queue"), policies.get("placement"), reserve, moves, part
    )
    events = JobEvents(env, machine, dispatcher, recovery)
    upkeep = Upkeep(
        saving,
        lambda job: loss_rate_per_s(sources, pod, job, light=fabric.has_light),
        start_failure=recovery.failure,
        streams=streams,
        jobs=max((job.id for job in jobs), default=-1) + 1,
        spares=spares,
    )
    clinic = start_failures(
        env, machine, sources, health=health, repair=policies["repair"], horizon_us=horizon_us,
        others=policies.get("others"), maintenance=policies.get("maintenance"), streams=streams,
    )  # fmt: skip
    events.preflight = clinic.preflight
    at_start, services = policies.get("runs_at_start", False), policies.get("services") or {}
    return OperatedPod(env, machine, dispatcher, events, recovery, upkeep, at_start, services)


def _part_of(pod: AnyPod, cubes: int) -> Mask:
    """The hosts (H,) of the first cubes."""
    return np.asarray(np.arange(pod.hosts) < cubes * HOSTS_PER_CUBE, dtype=np.bool_)


class OperatedPod:
    """A pod on a clock: starts the life of each job when it arrives."""

    def __init__(
        self,
        env: simpy.Environment,
        machine: Machine,
        dispatcher: Dispatcher,
        events: JobEvents,
        recovery: RecoveryPolicy,
        upkeep: Upkeep,
        runs_at_start: bool,
        services: Mapping[str, ReplicaDelays],
    ) -> None:
        """Nobody has arrived. `machine`, `dispatcher` and `events` are those that jobs share."""
        self._services = services
        self._env = env
        self.machine = machine
        self.dispatcher = dispatcher
        self.events = events
        self._recovery = recovery
        self._upkeep = upkeep
        self._runs_at_start = runs_at_start
        self._reasons: dict[tuple[int, Shape | None], str | None] = {}

    def arrivals(self, jobs: Sequence[Job]) -> JobProcess:
        """All jobs, which are in order of arrival."""
        for job in jobs:
            delay_us = job.arrival_us - int(self._env.now)
            if delay_us:
                yield Timer(self._env, delay_us, priority(Order.ARRIVAL, 0, job.id))
            self.arrive(job)

    def reject_reason(self, job: Job) -> str | None:
        """Why the pod could never hold the job; None where it could."""
        if (job.hosts, job.shape) not in self._reasons:
            self._reasons[job.hosts, job.shape] = self.dispatcher.reject_reason(job)
        return self._reasons[job.hosts, job.shape]

    def arrive(self, job: Job, fetch_us: int = 0) -> None:
        """A job arrives now, whose state takes `fetch_us` to get here; one that can never run is rejected."""
        self.machine.submit(job.id, job.chips, job.work_us)
        reason = self.reject_reason(job)
        if reason is not None:
            self.machine.reject(job.id, job.chips, reason)
            return
        recovery, drain_us = self._recovery, 0
        if job.kind is JobKind.SERVING and job.owner in self._services:
            delays = self._services[job.owner]
            recovery, drain_us = replace(recovery, restore=delays.weights_s), to_us(delays.drain_s)
        self._env.process(
            run_job(
                self._env, job, self.machine, self.dispatcher, self.events, recovery,
                runs_at_start=self._runs_at_start, upkeep=self._upkeep, drain_us=drain_us, fetch_us=fetch_us,
            )
        )  # fmt: skip

    def trace(self, jobs: Sequence[Job], horizon_us: int) -> Trace:
        """The log up to the horizon, when the clock stands there; `jobs` are those that might have arrived."""
        machine = self.machine
        return Trace(
            fabric=machine.fabric,
            hosts=machine.pod.hosts,
            horizon_us=horizon_us,
            slice_chips=max((job.chips for job in jobs), default=0),
            jobs=len(jobs),
            rows=machine.rows,
            placements=machine.placements,
            spare_chips=self._upkeep.spares.cubes * CHIPS_PER_CUBE,
        )
