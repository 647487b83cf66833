"""A pod in operation: jobs arrive, run, are lost and recover, finish; the log of it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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


def simulate_operations(
    pod: AnyPod,
    fabric: Fabric,
    jobs: Sequence[Job],
    sources: Sequence[Source],
    *,
    health: HealthPolicy,
    repair: RepairPolicy,
    recovery: RecoveryPolicy,
    streams: Streams,
    horizon_us: int,
    checkpoint: CheckpointPolicy | None = None,
    spares: SparesPolicy | None = None,
    queue: QueuePolicy | None = None,
    placement: PlacementPolicy | None = None,
    defragmentation: Defragmentation | None = None,
    others: OtherFailures | None = None,
    maintenance: MaintenancePolicy | None = None,
    services: Mapping[str, ReplicaDelays] | None = None,
    serving_cubes: int = 0,
    runs_at_start: bool = False,
    check_invariants: bool = False,
) -> Trace:
    """Play jobs, in order of arrival, and failures on a pod up to the horizon.

    `sources` are the populations that fail; those that a fabric does not have are left out. A job that can never run is
    rejected when it arrives. With `runs_at_start` the slices got at time 0 run at once. `services` by name are the
    owners of replicas. The first `serving_cubes` cubes are for serving jobs alone, and they for these; with 0 the pod
    is shared. Raises InputError for a fabric that the pod does not have, ValueError for populations larger than the pod
    and for spares that leave nothing of it.
    """
    check_fabric(fabric, pod)
    recovery = with_preflight(recovery, health)
    spares = SparesPolicy() if spares is None else spares
    saving = NoCheckpoints() if checkpoint is None else checkpoint
    env = simpy.Environment()
    machine = Machine(pod, fabric, env, check_invariants=check_invariants)
    reserve = Spares(pod, spares.cubes, by_host=fabric is Fabric.ANY_HOST)
    moves = Moves(
        NoDefragmentation() if defragmentation is None else defragmentation,
        lambda job: to_us(move_s(recovery, saving, job, light=fabric.has_light)),
    )
    part = _part_of(pod, serving_cubes) if serving_cubes else None
    dispatcher = Dispatcher(env, machine, recovery, queue, placement, reserve, moves, part)
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
        env, machine, sources, health=health, repair=repair, horizon_us=horizon_us,
        others=others, maintenance=maintenance, streams=streams,
    )  # fmt: skip
    events.preflight = clinic.preflight
    lives = _Lives(env, machine, dispatcher, events, recovery, upkeep, runs_at_start, services or {})
    env.process(lives.arrivals([job for job in jobs if job.arrival_us < horizon_us]))
    env.run(until=horizon_us)
    return Trace(
        fabric=fabric,
        hosts=pod.hosts,
        horizon_us=horizon_us,
        slice_chips=max((job.chips for job in jobs), default=0),
        jobs=len(jobs),
        rows=machine.rows,
        placements=machine.placements,
        spare_chips=spares.cubes * CHIPS_PER_CUBE,
    )


def _part_of(pod: AnyPod, cubes: int) -> Mask:
    """The hosts (H,) of the first cubes."""
    return np.asarray(np.arange(pod.hosts) < cubes * HOSTS_PER_CUBE, dtype=np.bool_)


class _Lives:
    """Starts the life of each job when it arrives."""

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
        self._services = services
        self._env = env
        self._machine = machine
        self._dispatcher = dispatcher
        self._events = events
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
            self._machine.submit(job.id, job.chips, job.work_us)
            if (job.hosts, job.shape) not in self._reasons:
                self._reasons[job.hosts, job.shape] = self._dispatcher.reject_reason(job)
            reason = self._reasons[job.hosts, job.shape]
            if reason is not None:
                self._machine.reject(job.id, job.chips, reason)
                continue
            recovery, drain_us = self._recovery, 0
            if job.kind is JobKind.SERVING and job.owner in self._services:
                delays = self._services[job.owner]
                recovery, drain_us = replace(recovery, restore=delays.weights_s), to_us(delays.drain_s)
            self._env.process(
                run_job(
                    self._env, job, self._machine, self._dispatcher, self._events, recovery,
                    runs_at_start=self._runs_at_start, upkeep=self._upkeep, drain_us=drain_us,
                )
            )  # fmt: skip
