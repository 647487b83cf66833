"""Jobs that hold slices: from the queue to running, through every stage of recovery, again and again, to the end.

A loss is a one-shot event of one attempt, not an interrupt: several failures at one instant are one loss. A job is
`detecting` from the instant at which a component that it needs is down until that is known (also when it is placed on
one), then it is evicted, gets its slice, and goes through circuits, preflight and restore. A planned move (a drain with
notice) saves the state first and undoes nothing. A job that is not wanted any more (`until_us`) leaves the queue, or
stops what it does, drains (`migrating`) if it ran, and leaves.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from simpy.core import Environment
from simpy.events import Event

from sim.job_policies import SparesPolicy
from sim.machine import Machine
from sim.policies import RecoveryPolicy, Response
from sim.processes.dispatch import Dispatcher
from sim.processes.health import to_us
from sim.processes.job_events import Ending, JobEvents, undo
from sim.processes.order import Order, Timer, priority
from sim.processes.progress import Progress
from sim.processes.restarts import How, Start
from sim.processes.upkeep import NO_UPKEEP, Upkeep
from sim.profile_delays import recovery_in
from sim.trace import Stage
from workloads.jobs.job import Job

JobProcess = Generator[Event, Any, None]


def start_stages(start: Start, recovery: RecoveryPolicy, spares: SparesPolicy) -> list[tuple[Stage, int]]:
    """The stages between getting a slice and running on it, with their lengths in microseconds."""
    made = [(Stage.RECONFIGURING, to_us(recovery.circuits))] if start.circuits else []
    if start.by_spares and spares.kind == "hot":
        return [*made, (Stage.RESTORING, to_us(spares.swap))]
    if start.by_spares and spares.kind == "warm":
        return [*made, (Stage.RESTORING, to_us(recovery.restore))]
    circuits = (Stage.RECONFIGURING, to_us(recovery.circuits))
    restore = (Stage.RESTORING, to_us(recovery.restore))
    if start.how is How.FIRST:
        return []
    if start.how is How.REROUTED:
        return [circuits, restore]
    preflight = (Stage.PREFLIGHT, to_us(recovery.preflight))
    return [*made, preflight, restore]


def run_job(
    env: Environment,
    job: Job,
    machine: Machine,
    dispatcher: Dispatcher,
    events: JobEvents,
    recovery: RecoveryPolicy,
    *,
    runs_at_start: bool,
    upkeep: Upkeep = NO_UPKEEP,
    drain_us: int = 0,
    fetch_us: int = 0,
) -> JobProcess:
    """One job, to the end of its work or for ever.

    With `runs_at_start` a slice got at time 0 runs at once, as if it had been there before. Without `upkeep` a job has
    no state: nothing is saved and a loss undoes nothing. The job's profile stands in for delays of the policies.
    `drain_us`: how long a running job that is not wanted any more takes to leave; `fetch_us`: how long its state takes
    to get here from elsewhere, before all else on its first slice.
    """
    if job.until_us is not None:
        env.process(_dismissal(env, job, events))
    yield from _JobLife(env, job, machine, dispatcher, events, recovery, upkeep, drain_us, fetch_us).live(runs_at_start)


def _dismissal(env: Environment, job: Job, events: JobEvents) -> JobProcess:
    """Tell a job when it is not wanted any more."""
    assert job.until_us is not None
    yield Timer(env, max(0, job.until_us - int(env.now)), priority(Order.TICK, 0, job.id))
    events.dismiss(job.id)


class _JobLife:
    """The phases of one job's life; each is a generator that the job's process runs through."""

    def __init__(
        self,
        env: Environment,
        job: Job,
        machine: Machine,
        dispatcher: Dispatcher,
        events: JobEvents,
        recovery: RecoveryPolicy,
        upkeep: Upkeep,
        drain_us: int,
        fetch_us: int,
    ) -> None:
        self.env = env
        self.job = job
        self.machine = machine
        self.dispatcher = dispatcher
        self.events = events
        self.recovery = recovery_in(recovery, job.profile)
        self.upkeep = upkeep
        self.drain_us = drain_us
        self.fetch_us = fetch_us
        self.save_us = upkeep.save_us(job)
        self.stall_us = upkeep.stall_us(job)
        self.place = priority(Order.STAGE_END, 0, job.id)
        self.progress: Progress | None = upkeep.progress_of(job)
        self.interval_us = upkeep.interval_us(job)
        self.starts = 0
        self.planned = False
        events.reroutes[job.id] = job.reroute_opt_in
        self.undecided = False
        """Lost, and with hot spares about: whether that undoes anything depends on what takes the place of the lost."""
        if self.progress is not None:
            events.progress[job.id] = self.progress

    @property
    def now_us(self) -> int:
        """The time."""
        return int(self.env.now)

    @property
    def holds(self) -> bool:
        """Whether the job holds a slice (a preempted one does not)."""
        return self.job.id in self.machine.holdings

    def live(self, runs_at_start: bool) -> JobProcess:
        """From the queue to the end."""
        request = self.dispatcher.enqueue(self.job, self._remaining_us())
        while True:
            start = yield request
            if start is None:
                if self.undecided:
                    self._undo()
                self._leave()
                return
            if not self.holds:  # granted and preempted in one scheduling pass
                request = self.dispatcher.enqueue(self.job, self._remaining_us())
                continue
            if runs_at_start and self.now_us == 0:
                start = Start(How.FIRST, False)
            ending = yield from self._occupy(start)
            if ending is Ending.FINISHED:
                self.machine.finish(self.job.id)
                self.dispatcher.ended(self.job)
                self.events.progress.pop(self.job.id, None)
                return
            if ending is Ending.DISMISSED:
                yield from self._drain()
            elif self.holds:
                self.machine.set_stage(self.job.id, Stage.MIGRATING if self.planned else Stage.EVICTING)
                evict_us = to_us(self.recovery.evict)
                if evict_us:
                    yield Timer(self.env, evict_us, self.place)
            if self.job.id in self.events.dismissed:
                self._leave()
                return
            ask = self.dispatcher.ask_again if self.holds else self.dispatcher.enqueue
            request = ask(self.job, self._remaining_us())

    def _drain(self) -> JobProcess:
        """Take no more requests and finish those under way, if it ran."""
        ran = self.machine.holdings[self.job.id].stage is Stage.RUNNING
        if ran and self.drain_us:
            self.machine.set_stage(self.job.id, Stage.MIGRATING)
            yield Timer(self.env, self.drain_us, self.place)

    def _leave(self) -> None:
        self.machine.leave(self.job.id)
        self.dispatcher.ended(self.job)
        self.events.progress.pop(self.job.id, None)

    def _remaining_us(self) -> int | None:
        """What the job still takes by its owner's word."""
        if self.job.requested_us is None or self.progress is None:
            return self.job.requested_us
        return max(0, self.job.requested_us - self.progress.done_us)

    def _occupy(self, start: Start) -> Generator[Event, Any, Ending]:
        """Attempt upon attempt on the slice that the job holds, until it is done or has to leave."""
        while True:
            if self.undecided and not start.by_spares:
                self._undo()
            self.undecided = False
            ended = self.events.open(self.job.id)
            yield from self._go_through_stages(start, ended)
            if not ended.triggered:
                yield from self._run(ended)
            if not ended.triggered:
                return Ending.FINISHED
            ending = Ending(str(ended.value))
            if ending is Ending.NOTICED:
                ended = yield from self._save_before_leaving()
                ending = Ending(str(ended.value)) if ended.triggered else Ending.NOTICED
                if ending is not Ending.NOTICED:
                    self.dispatcher.stays(self.job.id)
            self.planned = ending is Ending.NOTICED
            if ending is not Ending.LOST:
                return ending
            self.undecided = self.upkeep.spares.kind == "hot" and not self._is_poisoned
            if not self.undecided:
                self._undo()
            yield from self._learn_what_happened()
            if not self.holds:
                return Ending.PREEMPTED
            if self._response() is Response.REROUTE:
                start = Start(How.REROUTED, True)
            elif (yield from self._repaired_in_time()):
                start = Start(How.SAME, False)
            else:
                return Ending.LOST if self.holds else Ending.PREEMPTED

    @property
    def _is_poisoned(self) -> bool:
        return self.progress is not None and self.progress.poisoned_us is not None

    def _undo(self) -> None:
        if self.progress is not None:
            undo(self.machine, self.job.id, self.progress, self.now_us)

    def _go_through_stages(self, start: Start, ended: Event) -> JobProcess:
        """Everything between getting the slice and running, again for each start that fails, until `ended`."""
        stages = start_stages(start, self.recovery, self.upkeep.spares)
        if self.fetch_us:
            stages, self.fetch_us = [(Stage.RESTORING, self.fetch_us), *stages], 0
        while True:
            for stage, length_us in stages:
                if ended.triggered:
                    return
                self.machine.set_stage(self.job.id, Stage.MIGRATING if self.planned else stage)
                if length_us:
                    yield Timer(self.env, length_us, self.place) | ended
                if stage is Stage.PREFLIGHT and not ended.triggered:
                    self.events.preflight(self.job.id)
            self.starts += 1
            if ended.triggered or not stages or not self.upkeep.start_fails(self.job.id, self.starts - 1):
                return

    def _run(self, ended: Event) -> JobProcess:
        """Run until the attempt ends, or return before that when the work is done."""
        self._resume()
        progress, next_save_us = self.progress, self._next_save_us()
        if progress is None or (progress.needed is None and next_save_us is None):
            yield ended
        else:
            yield from self._run_and_save(progress, ended, next_save_us)
        if progress is not None:
            progress.run(self.now_us, 0)

    def _run_and_save(self, progress: Progress, ended: Event, next_save_us: int | None) -> JobProcess:
        save_us, stall_us = self.save_us, self.stall_us
        safe_at_us: int | None = None
        point = progress.point()
        while not progress.is_done:
            finish_us = progress.finish_in_us()
            due = [at_us - self.now_us for at_us in (safe_at_us, next_save_us) if at_us is not None]
            if finish_us is not None:
                due.append(finish_us)
            yield Timer(self.env, min(due), self.place) | ended | self.events.pace(self.job.id)
            if ended.triggered:
                return
            progress.advance(self.now_us)
            if safe_at_us == self.now_us:
                self._commit(progress, point)
                safe_at_us = None
            if next_save_us == self.now_us and not progress.is_done:
                point = progress.point()
                started_us = self.now_us
                yield from self._stall(progress, stall_us, ended)
                if ended.triggered:
                    return
                if stall_us == save_us:
                    self._commit(progress, point)
                else:
                    safe_at_us = started_us + save_us
                next_save_us = self._next_save_us()
                if next_save_us is not None and safe_at_us is not None:
                    next_save_us = max(next_save_us, safe_at_us)

    def _stall(self, progress: Progress, stall_us: int, ended: Event) -> JobProcess:
        """Stop for a checkpoint, then run on."""
        if stall_us:
            progress.run(self.now_us, 0)
            self.machine.set_stage(self.job.id, Stage.CHECKPOINTING)
            yield Timer(self.env, stall_us, self.place) | ended
            if not ended.triggered:
                self._resume()

    def _resume(self) -> None:
        speed_ppm = self.events.speed_ppm(self.job.id)
        self.machine.set_stage(self.job.id, Stage.RUNNING, speed_ppm)
        if self.progress is not None:
            self.progress.run(self.now_us, speed_ppm)

    def _next_save_us(self) -> int | None:
        return None if self.interval_us is None else self.now_us + self.interval_us

    def _commit(self, progress: Progress, point: Any) -> None:
        if progress.commit(point):
            self.machine.commit(self.job.id, progress.safe_us)

    def _save_before_leaving(self) -> Generator[Event, Any, Event]:
        """Save the state before a planned move, so that it undoes nothing (without checkpoints it moves as it is)."""
        progress, ended = self.progress, self.events.open(self.job.id)
        if progress is not None and progress.is_at_risk:
            self.machine.set_stage(self.job.id, Stage.CHECKPOINTING)
            if self.save_us:
                yield Timer(self.env, self.save_us, self.place) | ended
            if not ended.triggered:
                self._commit(progress, progress.point())
        return ended

    def _learn_what_happened(self) -> JobProcess:
        """Hold on until what hurt the slice is known, or repaired."""
        machine, job = self.machine, self.job.id
        machine.set_stage(job, Stage.DETECTING)
        while self.holds and machine.is_hurt(job) and not machine.trouble(job).hardware:
            yield self.events.news(job)

    def _repaired_in_time(self) -> Generator[Event, Any, bool]:
        """Stay on the slice for a while, idle, in case the repair comes before the job would have to leave."""
        hold_us, machine, job = to_us(self.recovery.hold), self.machine, self.job.id
        if not hold_us or not machine.trouble(job).hardware:
            return False
        machine.set_stage(job, Stage.HELD_IDLE)
        given_up = Timer(self.env, hold_us, self.place)
        while self.holds and machine.trouble(job).hardware:
            yield given_up | self.events.news(job)
            if given_up.processed:
                break
        return self.holds and not machine.trouble(job).hardware and not machine.is_hurt(job)

    def _response(self) -> Response:
        """Whether the job stays and routes around dead light, or has to be evicted first."""
        trouble = self.machine.trouble(self.job.id)
        if not trouble.hardware and not trouble.light:
            return Response.WAIT
        return self.recovery.respond(
            hardware=trouble.hardware, switch=trouble.switch, opted_in=self.job.reroute_opt_in, can_replace=True
        )
