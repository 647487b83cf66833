"""Jobs that hold slices: from the queue to running, through every stage of recovery, again and again.

A loss is a one-shot event of one attempt, not an interrupt: several failures at one instant are one loss. A job is
`detecting` from the instant at which a component that it needs is down until that is known (also when it is placed on
one), then it is evicted, gets its slice, and goes through circuits, preflight and restore.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from simpy.core import Environment
from simpy.events import Event

from sim.machine import Machine
from sim.policies import RecoveryPolicy, Response
from sim.processes.dispatch import Dispatcher, How, Job, Start
from sim.processes.health import to_us
from sim.processes.order import Order, Timer, priority
from sim.trace import FULL_SPEED_PPM, Stage

JobProcess = Generator[Event, Start, None]


class JobEvents:
    """The machine's listener: turns what happens to jobs into events that their processes wait for."""

    def __init__(self, env: Environment, machine: Machine, dispatcher: Dispatcher, recovery: RecoveryPolicy) -> None:
        """Listen to `machine`."""
        self._env = env
        self._machine = machine
        self._dispatcher = dispatcher
        self._rerouted_ppm = round(recovery.rerouted_speed * FULL_SPEED_PPM)
        self._lost: dict[int, Event] = {}
        self._news: dict[int, Event] = {}
        machine.listener = self

    def open(self, job: int) -> Event:
        """The loss of a new attempt of a job: fired at once when it was placed on something that is down."""
        self._lost[job] = Event(self._env)
        if self._machine.is_hurt(job):
            self.lost(job)
        return self._lost[job]

    def news(self, job: int) -> Event:
        """Fired when next a failure or repair that concerns the job becomes known."""
        return self._news.setdefault(job, Event(self._env))

    def speed_ppm(self, job: int) -> int:
        """The speed at which a job runs now: slowed while it runs around dead light."""
        return self._rerouted_ppm if self._machine.trouble(job).light else FULL_SPEED_PPM

    def lost(self, job: int) -> None:
        """Fire the loss of the attempt in progress, once."""
        event = self._lost.get(job)
        if event is not None and not event.triggered:
            event.succeed()

    def informed(self, job: int) -> None:
        """Wake a job that waits for news; a running job gets the speed of its light paths."""
        event = self._news.pop(job, None)
        if event is not None:
            event.succeed()
        if self._machine.holdings[job].stage is Stage.RUNNING and not self._lost[job].triggered:
            self._machine.set_speed(job, self.speed_ppm(job))

    def noticed(self, job: int) -> None:
        """Do nothing."""

    def poisoned(self, job: int, since_us: int) -> None:
        """Do nothing."""

    def preempted(self, job: int) -> None:
        """Do nothing."""

    def capacity_returned(self) -> None:
        """Let the dispatcher see to it."""
        self._dispatcher.capacity_returned()


def start_stages(start: Start, recovery: RecoveryPolicy) -> list[tuple[Stage, int]]:
    """The stages between getting a slice and running on it, with their lengths in microseconds."""
    circuits = (Stage.RECONFIGURING, to_us(recovery.circuits))
    restore = (Stage.RESTORING, to_us(recovery.restore))
    if start.how is How.FIRST:
        return []
    if start.how is How.REROUTED:
        return [circuits, restore]
    preflight = (Stage.PREFLIGHT, to_us(recovery.preflight))
    return [circuits, preflight, restore] if start.circuits else [preflight, restore]


def run_job(
    env: Environment,
    job: Job,
    machine: Machine,
    dispatcher: Dispatcher,
    events: JobEvents,
    recovery: RecoveryPolicy,
    *,
    runs_at_start: bool,
) -> JobProcess:
    """One job without end. With `runs_at_start` a slice got at time 0 runs at once, as if it had been there before."""
    place = priority(Order.STAGE_END, 0, job.id)
    request = dispatcher.enqueue(job)
    while True:
        start = yield request
        if runs_at_start and env.now == 0:
            start = Start(How.FIRST, False)
        while True:
            lost = events.open(job.id)
            yield from _run_until_lost(env, job, machine, events, lost, start_stages(start, recovery))
            yield from _learn_what_happened(job, machine, events)
            if _response(job, machine, recovery) is not Response.REROUTE:
                break
            start = Start(How.REROUTED, True)
        machine.set_stage(job.id, Stage.EVICTING)
        evict_us = to_us(recovery.evict)
        if evict_us:
            yield Timer(env, evict_us, place)
        request = dispatcher.ask_again(job)


def _run_until_lost(
    env: Environment, job: Job, machine: Machine, events: JobEvents, lost: Event, stages: Iterable[tuple[Stage, int]]
) -> JobProcess:
    """Go through the stages of a start and run, until the attempt is lost."""
    place = priority(Order.STAGE_END, 0, job.id)
    for stage, length_us in stages:
        if lost.triggered:
            return
        machine.set_stage(job.id, stage)
        if length_us:
            yield Timer(env, length_us, place) | lost
    if not lost.triggered:
        machine.set_stage(job.id, Stage.RUNNING, events.speed_ppm(job.id))
        yield lost


def _learn_what_happened(job: Job, machine: Machine, events: JobEvents) -> JobProcess:
    """Hold on until what hurt the slice is known, or repaired."""
    machine.set_stage(job.id, Stage.DETECTING)
    while machine.is_hurt(job.id) and not machine.trouble(job.id).hardware:
        yield events.news(job.id)


def _response(job: Job, machine: Machine, recovery: RecoveryPolicy) -> Response:
    """Whether the job stays and routes around dead light, or has to be evicted first."""
    trouble = machine.trouble(job.id)
    if not trouble.hardware and not trouble.light:
        return Response.WAIT
    return recovery.respond(
        hardware=trouble.hardware, switch=trouble.switch, opted_in=job.reroute_opt_in, can_replace=True
    )
