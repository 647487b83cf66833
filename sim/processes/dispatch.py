"""Dispatch: one queue, one scheduling pass per instant, after everything else that happens then.

Jobs that lost something and are ready to start again come first, in the order in which they asked: one that lost a cube
keeps the good ones when a replacement is free at once, otherwise it gives all back and queues. Then the queue, as its
policy decides; a job that may not run around dead light stands aside while it could not run anywhere. Waiting jobs hold
nothing, so as many jobs run as the pod has room for. The queue is in order of arrival: a job that lost its slice, or
that was preempted, has its place ahead of all that arrived after it. Who is preempted with notice saves its state and
leaves, and the one that gets its place starts then (`making_way`). Last, where the policy of defragmentation says so,
running jobs are asked to make room for one that waits for its shape (`moves`).
"""

from __future__ import annotations

from bisect import insort_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from simpy.core import Environment
from simpy.events import Event

from sim.machine import Machine
from sim.policies import RecoveryPolicy
from sim.processes.health import to_us
from sim.processes.making_way import MakingWay
from sim.processes.moves import Moves
from sim.processes.order import Order, Timer, priority
from sim.processes.restarts import How, Restarts, Start
from sim.processes.spares import Spares
from sim.profile_delays import start_s
from sim.trace import Stage
from topology.fabric import Fabric
from topology.policies import FirstFit
from workloads.jobs.defragmentation import NoDefragmentation
from workloads.jobs.fitting import Fitting, Held, Mask, PlacementPolicy, RejectReason, Spot, empty_fitting
from workloads.jobs.job import Job as Job
from workloads.jobs.job import JobKind
from workloads.jobs.job import make_job as make_job
from workloads.jobs.queue_policies import Fifo, reservation_of, starts_in_order
from workloads.jobs.queueing import Preempt, QueuePolicy, QueueView, Reserve, Running, Waiting
from workloads.jobs.queueing import Start as StartNow
from workloads.jobs.usage import Holding, Usage


class _Asking(NamedTuple):
    """A job that waits for an answer."""

    waiting: Waiting
    answer: Event


class _Granted(NamedTuple):
    """A job that holds a slice: since when, and when it asked for it to end."""

    job: Job
    started_us: int
    expected_end_us: int | None

    @property
    def held(self) -> Holding:
        """What its owner uses."""
        return Holding(self.job.owner, self.job.chips, self.started_us)


class _Reserved(NamedTuple):
    """What is held for a job that waits: its number, free chips that others could use, and until when."""

    job: int
    chips: int
    at_us: int


NOTHING_HELD = _Reserved(-1, 0, -1)


class Dispatcher:
    """Owner of the queue; has the policies decide who is next and where, and the machine carry it out."""

    def __init__(
        self,
        env: Environment,
        machine: Machine,
        recovery: RecoveryPolicy,
        queue: QueuePolicy | None = None,
        placement: PlacementPolicy | None = None,
        spares: Spares | None = None,
        moves: Moves | None = None,
        serving_hosts: Mask | None = None,
    ) -> None:
        """An empty queue; first in first out, first fit, no spares and no moves unless other policies are given.

        `serving_hosts` (H,): hosts of a divided pod that only serving jobs may take, and they no others.
        """
        self._env = env
        self._machine = machine
        self._recovery = recovery
        self._policy: QueuePolicy = Fifo() if queue is None else queue
        self._placement: PlacementPolicy = FirstFit() if placement is None else placement
        self._spares = Spares(machine.pod, 0) if spares is None else spares
        self._moves = Moves(NoDefragmentation(), lambda job: 0) if moves is None else moves
        self._serving_hosts = serving_hosts
        whole = empty_fitting(machine.fabric, machine.pod, self._placement, serving_hosts)
        self._empty = self._spares.kept_from(whole)
        self._queue: list[Waiting] = []
        self._answers: dict[int, Event] = {}
        self._returning: list[_Asking] = []
        self._standing_by: list[_Asking] = []
        self._look_again_us = -1
        self._granted: dict[int, _Granted] = {}
        self._restarts = Restarts(machine, recovery, self._spares)
        self._way = MakingWay(machine)
        self._usage = Usage(getattr(self._policy, "half_life", None))
        self._reserved = NOTHING_HELD
        self._pass_is_due = False
        self.changed: Callable[[], None] = lambda: None
        """Called when something came back, and after each pass that leaves jobs in the queue."""

    @property
    def queue(self) -> tuple[Waiting, ...]:
        """Who waits, in order of arrival."""
        return tuple(self._queue)

    @property
    def waiting(self) -> list[int]:
        """Numbers of the jobs in the queue, in order of arrival."""
        return [waiting.job.id for waiting in self._queue]

    def reject_reason(self, job: Job) -> RejectReason | None:
        """Why the pod could never hold the job, whole and free as it may be; None where it could."""
        return self._empty.reason(job)

    def enqueue(self, job: Job, remaining_us: int | None = None) -> Event:
        """Put a job that holds nothing into the queue; the event gives its `Start`.

        `remaining_us`: what the job still takes by its owner's word, stages aside; `requested_us` unless given.
        """
        self._settle(job.id)
        self._machine.set_stage(job.id, Stage.WAITING)
        return self._queue_up(self._asking(job, remaining_us))

    def ask_again(self, job: Job, remaining_us: int | None = None) -> Event:
        """Let a job that holds what it lost a part of, or is to leave, start again; the event gives its `Start`."""
        self._machine.set_stage(job.id, Stage.MIGRATING if self._moves.concerns(job.id) else Stage.WAITING)
        asking = self._asking(job, remaining_us)
        self._returning.append(asking)
        return asking.answer

    def withdraw(self, job: int) -> bool:
        """Take a job out of the queue, whose answer is None then; False for one that is not in the queue."""
        answer = self._answers.pop(job, None)
        if answer is None:
            return False
        self._queue = [waiting for waiting in self._queue if waiting.job.id != job]
        self._way.withdraw(job)
        self._spares.disentitle(job)
        self._request_pass()
        answer.succeed(None)
        return True

    def stays(self, job: int) -> None:
        """A job that was told to leave is lost or taken off its slice before it could."""
        if self._moves.concerns(job):
            self._moves.break_off()
            self._request_pass()

    def ended(self, job: Job) -> None:
        """A job has given its slice back for good: it is no longer counted as running."""
        self._settle(job.id)

    def capacity_returned(self) -> None:
        """Something came back: see at the end of this instant who can use it."""
        if self._queue or self._returning:
            self._request_pass()
        self.changed()

    def takes(self, job: Job, room: Fitting, ahead: Sequence[Waiting] = ()) -> bool:
        """Whether a job that is not here would start at once, behind those that wait here and those `ahead` of it.

        `room` is that of `open_room`, now.
        """
        own = Waiting(job=job, asked_us=int(self._env.now), remaining_us=job.requested_us)
        if room.is_barred(job) or not room.fits(job):
            return False
        if not self._queue and not ahead:
            return True
        view = self._view(room)
        waiting = sorted([*view.waiting, *ahead, own], key=lambda one: one.job.arrival_us)
        decisions = self._policy.decide(replace(view, waiting=waiting))
        return any(isinstance(decision, StartNow) and decision.job.id == job.id for decision in decisions)

    def earliest_us(self, job: Job, room: Fitting) -> int | None:
        """When a job that is not here would fit, by what owners say of those that hold slices; None where never."""
        found = reservation_of(job, room, self._running(), int(self._env.now))
        return None if found is None else found.at_us

    def room(self) -> Fitting:
        """What is free now, as far as is believed, and not kept for moves under way or promised."""
        return self._way.kept_from(self._moves.kept_from(self._all_room()))

    def open_room(self) -> Fitting:
        """The same once all that leave have left, without spares."""
        return self._spares.kept_from(self._way.ahead(self._moves.kept_from(self._all_room())))

    def _all_room(self) -> Fitting:
        machine = self._machine
        blind = machine.fabric is Fabric.ANY_HOST or not machine.believed.ends_out_total
        return Fitting(
            fabric=machine.fabric,
            pod=machine.pod,
            placement=self._placement,
            free_chips=machine.free_chips(),
            usable=machine.usable_hosts(),
            dark_cubes=None if blind else machine.believed.dark_cubes(),
            flawed_cubes=None if machine.fabric is Fabric.ANY_HOST else machine.flaws.flawed_cubes(machine.up.cubes),
            switch_out=machine.light is not None and machine.believed.switches_out > 0,
            serving_hosts=self._serving_hosts,
            held=self._held,
        )

    def _held(self, job: int) -> Held:
        holding = self._machine.holdings[job]
        return holding.index, holding.placed.chips_per_host

    def _asking(self, job: Job, remaining_us: int | None) -> _Asking:
        """A job that asks now, and a pass that will see to it."""
        self._request_pass()
        remaining_us = job.requested_us if remaining_us is None else remaining_us
        return _Asking(Waiting(job=job, asked_us=int(self._env.now), remaining_us=remaining_us), Event(self._env))

    def _queue_up(self, asking: _Asking) -> Event:
        """Put a job into the queue, behind those that have arrived before it or at the same instant."""
        insort_right(self._queue, asking.waiting, key=lambda waiting: waiting.job.arrival_us)
        self._answers[asking.waiting.job.id] = asking.answer
        return asking.answer

    def _request_pass(self) -> None:
        if not self._pass_is_due:
            self._pass_is_due = True
            timer = Timer(self._env, 0, priority(Order.SCHEDULE))
            assert timer.callbacks is not None
            timer.callbacks.append(self._pass)

    def _pass(self, _: Event) -> None:
        """The scheduling pass of this instant."""
        returning, self._returning = self._returning, []
        for asking in returning:
            if self._moves.concerns(asking.waiting.job.id):
                self._moves.stand_by(asking.waiting.job.id)
                self._standing_by.append(asking)
            else:
                self._answer(asking)
        if self._moves.is_over:
            self._end_moves()
        self._start_promised()
        if self._spares.entitled:
            self._start_entitled()
        reserved = self._decide() if self._queue else None
        if self._moves.is_over:
            self._end_moves()
        elif self._queue and self._moves.is_idle:
            self._make_room(None if reserved is None else reserved.job)
        self._tell_what_is_held(reserved)
        self._pass_is_due = False
        if self._queue:
            self.changed()

    def _answer(self, asking: _Asking) -> None:
        """A job that holds a slice starts again, or gives all back and queues."""
        job = asking.waiting.job.id
        leaves = self._way.is_leaving(job)
        start = None if leaves else self._restarts.start_again(asking.waiting.job, self.room)
        if start is None:
            if not leaves:
                self._spares.entitle(job)
            self._machine.release(job)
            self._settle(job)
            self._machine.set_stage(job, Stage.WAITING)
            self._queue_up(asking)
        else:
            self._grant(asking, start)

    def _tell_what_is_held(self, reserved: Reserve | None) -> None:
        """Write down for whom how much is held, where that has changed."""
        plan, held = self._moves.plan, NOTHING_HELD
        if reserved is not None or plan is not None or self._way.first is not None:
            room = self._spares.kept_from(self.room())
            waiting = [one for one in self._view(room).waiting if reserved is not None and one.job != reserved.job]
            _, after = starts_in_order(room, waiting if room.free_chips else (), overtake=True)
            chips = room.free_chips - after.free_chips
            chips += self._moves.kept_free_chips(self._all_room()) + self._way.kept_free_chips(self._all_room())
            if reserved is not None:
                at_us = -1 if reserved.at_us is None else reserved.at_us
                held = _Reserved(reserved.job.id, chips, at_us)
            elif plan is not None:
                held = _Reserved(plan.job.id, chips, -1)
            elif self._way.first is not None and chips:
                held = _Reserved(self._way.first, chips, -1)
        if held != self._reserved:
            self._reserved = held
            self._machine.reserve(*held)

    def _make_room(self, head: Job | None) -> None:
        """Ask running jobs to move, where the head of the queue waits for its shape and it is worth it.

        The head is the job for which the policy of the queue holds what is free, else the first to have arrived.
        """
        room = self._spares.kept_from(self.room())
        in_line = (one for one in self._queue if not room.is_barred(one.job) and head in (None, one.job))
        first = next(in_line, None)
        if first is None or room.reason(first.job) is not RejectReason.SHAPE:
            return
        due_us, now_us = self._moves.due_us(first), int(self._env.now)
        if now_us >= due_us:
            self._moves.begin(self._view(room), first, self._machine)
        elif self._look_again_us != due_us:
            self._look_again_us = due_us
            timer = Timer(self._env, due_us - now_us, priority(Order.TICK))
            assert timer.callbacks is not None
            timer.callbacks.append(lambda _: self._request_pass())

    def _end_moves(self) -> None:
        """Carry out the moves under way, all at this instant, or have their jobs start again where they are."""
        plan, ready = self._moves.plan, self._standing_by
        assert plan is not None, "no plan is under way"
        self._standing_by = []
        if plan.job.id not in self._answers or not self._moves.is_possible(self._all_room()):
            self._moves.break_off()
            self._moves.end(int(self._env.now))
            for asking in ready:
                self._answer(asking)
            return
        self._moves.end(int(self._env.now))
        for asking in ready:
            self._machine.release(asking.waiting.job.id)
        to = {move.job.id: move.to for move in plan.moves}
        for asking in ready:
            self._settle_on(asking, to[asking.waiting.job.id])
        self._start_queued(plan.job, plan.spot)

    def _decide(self) -> Reserve | None:
        """Ask the queue policy and carry out its decisions in their order; for whom it holds what is free, if any."""
        if self._serving_hosts is None:
            return self._decide_among(lambda _: True)
        serving = self._decide_among(lambda job: job.kind is JobKind.SERVING)
        return self._decide_among(lambda job: job.kind is not JobKind.SERVING) or serving

    def _decide_among(self, concerns: Callable[[Job], bool]) -> Reserve | None:
        """The same for the jobs of one part of a divided pod, none of which can be in the way of another part's."""
        room = self.open_room()
        view = self._view(room)
        view = replace(view, waiting=[one for one in view.waiting if concerns(one.job)])
        for decision in self._policy.decide(view):
            job = decision.job
            if isinstance(decision, Reserve):
                return decision
            if isinstance(decision, Preempt):
                room = room.after_end([job.id])
                if decision.notice:
                    self._way.begin(job.id, knows=self._moves.concerns(job.id))
                    self.stays(job.id)
                    continue
                self._settle(job.id)
                self._machine.preempt(job.id)
                self._leave_moves(job.id)
                continue
            spot, after = room.spot(job), room.after_start(job)
            if spot is None or after is None:
                raise ValueError(f"queue policy {self._policy} starts job {job.id}, which does not fit")
            if not self._way.promise(job, spot):
                self._start_queued(job, spot)
            room = after
        return None

    def _view(self, room: Fitting) -> QueueView:
        """The pod as policies see it, without jobs that can run nowhere, and those with a promise or moves for them."""
        waiting, plan = tuple(one for one in self._queue if not self._way.is_promised(one.job.id)), self._moves.plan
        if room.switch_out:
            waiting = tuple(one for one in waiting if not room.is_barred(one.job))
        if plan is not None:
            waiting = tuple(one for one in waiting if one.job.id != plan.job.id)
        return QueueView(
            now_us=int(self._env.now), waiting=waiting, room=room, running_now=self._running, used_now=self._used
        )

    def _leave_moves(self, job: int) -> None:
        """A job was preempted: if it was to move it does not, and queues if it had been ready to."""
        self.stays(job)
        ready = [asking for asking in self._standing_by if asking.waiting.job.id == job]
        for asking in ready:
            self._standing_by.remove(asking)
            self._queue_up(asking)

    def _start_queued(self, job: Job, spot: Spot) -> None:
        """Take a job out of the queue and give it its slice."""
        place = next(place for place, waiting in enumerate(self._queue) if waiting.job.id == job.id)
        asking = _Asking(self._queue.pop(place), self._answers.pop(job.id))
        self._spares.disentitle(job.id)
        self._way.withdraw(job.id)
        self._settle_on(asking, spot)

    def _settle_on(self, asking: _Asking, spot: Spot) -> None:
        """Give a job that holds nothing its slice, with its circuits, and let it start."""
        job = asking.waiting.job
        self._machine.occupy(job.id, spot.hosts, cubes=spot.cubes, shape=spot.shape, chips_per_host=job.chips_per_host)
        self._grant(asking, Start(How.PLACED, self._machine.connect(job.id) > 0))

    def _start_promised(self) -> None:
        """Who has been promised a place that all others have left by now gets it, if it is still to be had."""
        for job, spot, _ in self._way.ready():
            self._way.withdraw(job.id)
            room = self.room()
            if room.masks(job)[0][list(spot.hosts)].all() and not room.is_barred(job):
                self._start_queued(job, spot)

    def _start_entitled(self) -> None:
        """Jobs that lost their slice may take spares too, and go before the queue's policy, in order of asking."""
        for job in [waiting.job for waiting in self._queue]:
            if job.id in self._spares.entitled:
                spot = self.room().spot(job)
                if spot is not None:
                    self._start_queued(job, spot)

    def _grant(self, asking: _Asking, start: Start) -> None:
        """Tell a job that it may start, and note when it is expected to end."""
        job, remaining_us = asking.waiting.job, asking.waiting.remaining_us
        before, now_us = self._granted.get(job.id), int(self._env.now)
        end_us = None if remaining_us is None else now_us + to_us(start_s(self._recovery, job)) + remaining_us
        self._granted[job.id] = _Granted(job, now_us if before is None else before.started_us, end_us)
        asking.answer.succeed(start)

    def _settle(self, job: int) -> None:
        """A job holds nothing any more: add up what its owner used."""
        self._way.gone(job)
        granted = self._granted.pop(job, None)
        if granted is not None:
            self._usage.ended(granted.held, int(self._env.now))

    def _running(self) -> Sequence[Running]:
        return [
            Running(job=granted.job, started_us=granted.started_us, expected_end_us=granted.expected_end_us)
            for number, granted in sorted(self._granted.items())
            if not self._way.is_leaving(number)
        ]

    def _used(self) -> Mapping[str, float]:
        return self._usage.at(int(self._env.now), [granted.held for granted in self._granted.values()])
