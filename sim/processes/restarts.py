"""How a job that lost something starts again: on what it holds, with a replacement, elsewhere, or not at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from sim.machine import Machine
from sim.policies import RecoveryPolicy, Response
from sim.processes.spares import Spares
from topology.fabric import Fabric
from topology.placement import joined, replace_cubes, usable_cubes
from topology.pod import HOSTS_PER_CUBE
from workloads.jobs.fitting import Fitting, Mask
from workloads.jobs.job import Job


class How(StrEnum):
    """How a job got its slice: decides which stages its start goes through."""

    FIRST = "first"
    PLACED = "placed"
    REPLACED = "replaced"
    SAME = "same"
    REROUTED = "rerouted"


@dataclass(frozen=True, slots=True)
class Start:
    """A job may start: how, whether circuits are made for it, whether spares took the places of all that it lost."""

    how: How
    circuits: bool
    by_spares: bool = False


class Restarts:
    """Carries out the policy of recovery for jobs that hold a slice of which something is lost."""

    def __init__(self, machine: Machine, recovery: RecoveryPolicy, spares: Spares) -> None:
        """`spares` are taken before other free cubes."""
        self._machine = machine
        self._recovery = recovery
        self._spares = spares

    def start_again(self, job: Job, room: Callable[[], Fitting]) -> Start | None:
        """What a job that lost something gets of `room` at once; None when it has to give all back and queue."""
        trouble = self._machine.trouble(job.id)
        dead_light = trouble.light and not job.reroute_opt_in
        if not trouble.hardware and not dead_light:
            return Start(How.SAME, False)
        response = self._recovery.respond(
            hardware=trouble.hardware,
            switch=trouble.switch,
            opted_in=job.reroute_opt_in,
            can_replace=self._can_replace(job),
        )
        if response is Response.WAIT:
            return None
        if response is Response.MOVE:
            moved = self._move(job, room)
            if moved is not None:
                return moved
        return self._replace(job, room)

    def _can_replace(self, job: Job) -> bool:
        """Whether other hosts or cubes can be joined to those that are good (below a cube a slice is one block)."""
        if self._machine.fabric is Fabric.ANY_HOST:
            return job.hosts > 1
        return self._machine.light is not None and job.hosts >= HOSTS_PER_CUBE

    def _replace(self, job: Job, room: Callable[[], Fitting]) -> Start | None:
        """Keep what is good and put free hosts or cubes, spares if they will do, in the places of what is not."""
        free, avoid = room().masks(job)
        spare = self._spares.hosts_among(free)
        start = self._replace_from(job, free & spare, avoid) if spare.any() else None
        return self._replace_from(job, free, avoid) if start is None else replace(start, by_spares=True)

    def _replace_from(self, job: Job, free: Mask, avoid: Mask | None) -> Start | None:
        """Put hosts or cubes of `free` in the places of what the job can not go on with."""
        machine = self._machine
        placed, believed = machine.holdings[job.id].placed, machine.believed
        if machine.fabric is Fabric.ANY_HOST:
            good = [host for host in placed.hosts if host not in believed.dead_hosts]
            found = np.flatnonzero(free)[: job.hosts - len(good)].tolist()
            if len(found) + len(good) < job.hosts:
                return None
            machine.exchange(job.id, good + found)
            return Start(How.REPLACED, False)
        assert job.shape is not None
        lost = ~usable_cubes(believed.hosts_up())
        if not job.reroute_opt_in:
            lost |= believed.dark_cubes()
        placement = replace_cubes(joined(job.shape, placed.cubes), lost, free, avoid)
        if placement is None:
            return None
        made = machine.exchange(job.id, placement.hosts, cubes=placement.cubes, shape=placement.shape)
        return Start(How.REPLACED, made > 0)

    def _move(self, job: Job, room: Callable[[], Fitting]) -> Start | None:
        """Go to cubes or hosts that the job does not hold, all of them, or None when there are not enough."""
        spot = room().spot(job)
        if spot is None:
            return None
        made = self._machine.exchange(job.id, spot.hosts, cubes=spot.cubes, shape=spot.shape)
        return Start(How.REPLACED, made > 0)
