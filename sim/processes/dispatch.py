"""Dispatch: one queue, one scheduling pass per instant, after everything else that happens then.

Jobs that lost something and are ready to start again come first, in the order in which they asked: one that lost a cube
keeps the good ones when a replacement is free at once, otherwise it gives all back and queues. Then the queue, first in
first out; a job that may not run around dead light stands aside while it could not run anywhere. Waiting jobs hold
nothing, so as many jobs run as the pod has room for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from simpy.core import Environment
from simpy.events import Event

from sim.machine import Machine
from sim.policies import RecoveryPolicy, Response
from sim.processes.order import Order, Timer, priority
from sim.trace import Stage
from topology.fabric import Fabric
from topology.placement import hosts_of_cubes, joined, place, replace_cubes, usable_cubes
from topology.pod import HOSTS_PER_CUBE
from workloads.jobs.job import Job as Job
from workloads.jobs.job import make_job as make_job

Mask = NDArray[np.bool_]


class How(StrEnum):
    """How a job got its slice: decides which stages its start goes through."""

    FIRST = "first"
    PLACED = "placed"
    REPLACED = "replaced"
    SAME = "same"
    REROUTED = "rerouted"


@dataclass(frozen=True, slots=True)
class Start:
    """A job may start: how, and whether circuits are being made for it."""

    how: How
    circuits: bool


class Dispatcher:
    """Owner of the queue; decides who is next and where, and has the machine carry it out."""

    def __init__(self, env: Environment, machine: Machine, recovery: RecoveryPolicy) -> None:
        """An empty queue."""
        self._env = env
        self._machine = machine
        self._recovery = recovery
        self._queue: list[tuple[Job, Event]] = []
        self._returning: list[tuple[Job, Event]] = []
        self._pass_is_due = False

    @property
    def waiting(self) -> list[int]:
        """Numbers of the jobs in the queue, the head first."""
        return [job.id for job, _ in self._queue]

    def enqueue(self, job: Job) -> Event:
        """Put a job that holds nothing at the end of the queue; the event gives its `Start`."""
        self._machine.set_stage(job.id, Stage.WAITING)
        return self._ask(self._queue, job)

    def ask_again(self, job: Job) -> Event:
        """Let a job that still holds what it lost a part of start again; the event gives its `Start`."""
        self._machine.set_stage(job.id, Stage.WAITING)
        return self._ask(self._returning, job)

    def capacity_returned(self) -> None:
        """Something came back: see at the end of this instant who can use it."""
        if self._queue or self._returning:
            self._request_pass()

    def _ask(self, line: list[tuple[Job, Event]], job: Job) -> Event:
        answer = Event(self._env)
        line.append((job, answer))
        self._request_pass()
        return answer

    def _request_pass(self) -> None:
        if not self._pass_is_due:
            self._pass_is_due = True
            timer = Timer(self._env, 0, priority(Order.SCHEDULE))
            assert timer.callbacks is not None
            timer.callbacks.append(self._pass)

    def _pass(self, _: Event) -> None:
        """The scheduling pass of this instant."""
        returning, self._returning = self._returning, []
        for job, answer in returning:
            start = self._start_again(job)
            if start is None:
                self._machine.release(job.id)
                self._machine.set_stage(job.id, Stage.WAITING)
                self._queue.append((job, answer))
            else:
                answer.succeed(start)
        held_back: list[tuple[Job, Event]] = []
        while self._queue:
            job, answer = self._queue[0]
            if self._must_stand_aside(job):
                held_back.append(self._queue.pop(0))
                continue
            start = self._place(job)
            if start is None:
                break
            self._queue.pop(0)
            answer.succeed(start)
        self._queue[:0] = held_back
        self._pass_is_due = False

    def _must_stand_aside(self, job: Job) -> bool:
        """Whether a dead switch keeps this job from running anywhere in the pod."""
        machine = self._machine
        return (
            machine.light is not None
            and job.shape is not None
            and not job.shape.is_sub_cube
            and not job.reroute_opt_in
            and machine.believed.switches_out > 0
        )

    def _free_hosts(self, job: Job) -> tuple[Mask, Mask | None]:
        """Hosts that a job may take, and cubes that it takes last (dead optical ends), None when there are none."""
        machine = self._machine
        free = machine.free_hosts(job.chips_per_host)
        if not machine.believed.ends_out_total or machine.fabric is Fabric.ANY_HOST or job.hosts < HOSTS_PER_CUBE:
            return free, None
        dark = machine.believed.dark_cubes()
        if job.reroute_opt_in:
            return free, dark
        uses_ends = machine.light is not None or job.hosts > HOSTS_PER_CUBE
        return (free & ~np.repeat(dark, HOSTS_PER_CUBE) if uses_ends else free), None

    def _place(self, job: Job) -> Start | None:
        """Place a job that holds nothing, or return None when it does not fit now."""
        machine = self._machine
        free, avoid = self._free_hosts(job)
        if machine.fabric is Fabric.ANY_HOST or job.shape is None:
            found = np.flatnonzero(free)[: job.hosts].tolist()
            if len(found) < job.hosts:
                return None
            machine.occupy(job.id, found, chips_per_host=job.chips_per_host)
        else:
            placement = place(machine.fabric, machine.pod, job.shape, free, avoid)
            if placement is None:
                return None
            machine.occupy(
                job.id,
                placement.hosts,
                cubes=placement.cubes,
                shape=placement.shape,
                chips_per_host=job.chips_per_host,
            )
        return Start(How.PLACED, machine.connect(job.id) > 0)

    def _start_again(self, job: Job) -> Start | None:
        """What a job that lost something gets at once, or None when it has to give all back and queue."""
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
            moved = self._move(job)
            if moved is not None:
                return moved
        return self._replace(job)

    def _can_replace(self, job: Job) -> bool:
        """Whether other hosts or cubes can be joined to those that are good (below a cube a slice is one block)."""
        if self._machine.fabric is Fabric.ANY_HOST:
            return job.hosts > 1
        return self._machine.light is not None and job.hosts >= HOSTS_PER_CUBE

    def _replace(self, job: Job) -> Start | None:
        """Keep what is good and put free hosts or cubes in the places of what is not."""
        machine = self._machine
        placed, believed = machine.holdings[job.id].placed, machine.believed
        free, avoid = self._free_hosts(job)
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

    def _move(self, job: Job) -> Start | None:
        """Go to cubes or hosts that the job does not hold, all of them, or None when there are not enough."""
        machine = self._machine
        free, avoid = self._free_hosts(job)
        if machine.fabric is Fabric.ANY_HOST or job.shape is None:
            found = np.flatnonzero(free)[: job.hosts].tolist()
            if len(found) < job.hosts:
                return None
            machine.exchange(job.id, found)
            return Start(How.REPLACED, False)
        placement = place(machine.fabric, machine.pod, job.shape, free, avoid)
        if placement is None:
            return None
        hosts = hosts_of_cubes(placement.cubes)
        made = machine.exchange(job.id, hosts, cubes=placement.cubes, shape=placement.shape)
        return Start(How.REPLACED, made > 0)
