"""Queue policies: first in first out, shortest first, priority with preemption, fair share, EASY backfill."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from topology.units import Seconds
from workloads.jobs.fitting import Fitting
from workloads.jobs.job import Job
from workloads.jobs.queueing import Decision, Preempt, QueueView, Reserve, Running, Start, Waiting


def starts_in_order(room: Fitting, waiting: Iterable[Waiting], *, overtake: bool) -> tuple[list[Decision], Fitting]:
    """Start jobs in this order while they fit; with `overtake` those that do not fit are passed by.

    Else the first of them blocks the others: what is free is reserved for it.
    """
    decisions: list[Decision] = []
    for one in waiting:
        after = room.after_start(one.job)
        if after is not None:
            decisions.append(Start(job=one.job))
            room = after
        elif not overtake:
            decisions.append(Reserve(job=one.job))
            break
    return decisions, room


@dataclass(frozen=True, kw_only=True)
class Fifo:
    """First in, first out: only the head of the queue may start, so no job overtakes another."""

    kind: Literal["fifo"] = "fifo"

    def decide(self, view: QueueView) -> Sequence[Decision]:
        """Start from the head on until one does not fit."""
        return starts_in_order(view.room, view.waiting, overtake=False)[0]


@dataclass(frozen=True, kw_only=True)
class ShortestFirst:
    """The job that asks for the least remaining time first; jobs without end come last, equals in order of asking.

    With `overtake` a job that does not fit is passed by; without, it holds up the longer ones behind it.
    """

    kind: Literal["shortest_first"] = "shortest_first"
    overtake: bool = False

    def decide(self, view: QueueView) -> Sequence[Decision]:
        """Start in order of remaining time."""
        in_order = sorted(view.waiting, key=lambda one: math.inf if one.remaining_us is None else one.remaining_us)
        return starts_in_order(view.room, in_order, overtake=self.overtake)[0]


@dataclass(frozen=True, kw_only=True)
class Priority:
    """Higher priority first, equals in order of asking; with `preempt` running jobs of lower priority make way.

    Victims: the lowest priority first, of these the latest started; those that turn out not to be needed are spared.
    With `notice` they save their state before they leave; without, what is not safe is lost. With `overtake` a job that
    does not fit is passed by; without, it holds up those behind it.
    """

    kind: Literal["priority"] = "priority"
    preempt: bool = True
    notice: bool = False
    overtake: bool = False

    def decide(self, view: QueueView) -> Sequence[Decision]:
        """Start in order of priority; the victims of a start come right before it."""
        decisions: list[Decision] = []
        room, gone = view.room, set[int]()
        for one in sorted(view.waiting, key=lambda one: -one.job.priority):
            victims: list[Job] = []
            if self.preempt and not room.fits(one.job):
                victims = self._victims(view.running, gone, room, one.job)
                room = room.after_end([victim.id for victim in victims]) if victims else room
            after = room.after_start(one.job)
            if after is not None:
                decisions += [*(Preempt(job=victim, notice=self.notice) for victim in victims), Start(job=one.job)]
                gone.update(victim.id for victim in victims)
                room = after
            elif not self.overtake:
                decisions.append(Reserve(job=one.job))
                break
        return decisions

    def _victims(self, running: Sequence[Running], gone: Container[int], room: Fitting, job: Job) -> list[Job]:
        """Whom to preempt so that `job` fits: as few as spare each other; empty where that does not help."""
        lower = [one for one in running if one.job.id not in gone and one.job.priority < job.priority]
        lower.sort(key=lambda one: (one.job.priority, -one.started_us, -one.job.id))
        taken: list[Job] = []
        for one in lower:
            taken.append(one.job)
            if room.after_end([victim.id for victim in taken]).fits(job):
                break
        else:
            return []
        for victim in reversed(taken[:-1]):
            others = [one for one in taken if one is not victim]
            if room.after_end([one.id for one in others]).fits(job):
                taken = others
        return taken


@dataclass(frozen=True, kw_only=True)
class FairShare:
    """The owner who has used least in relation to its share first; among an owner's jobs in order of asking.

    `shares` by owner (1 unless named). Use is chip-time held since the start of the run: what was held at s counts
    2^(-(t - s) / `half_life`) at t, all of it where no half-life is named (`workloads.jobs.usage`).
    """

    kind: Literal["fair_share"] = "fair_share"
    shares: Mapping[str, float] = field(default_factory=dict)
    half_life: Seconds | None = None
    overtake: bool = True

    def __post_init__(self) -> None:
        """Refuse shares that are none."""
        for owner, share in self.shares.items():
            if not (math.isfinite(share) and share > 0):
                raise ValueError(f"share of {owner!r} of {share:g}: write a number above 0")
        if self.half_life is not None and not (math.isfinite(self.half_life) and self.half_life > 0):
            raise ValueError(f"half_life of {self.half_life:g} s: write a time above 0 s, such as `7 d`")

    def decide(self, view: QueueView) -> Sequence[Decision]:
        """Start in order of use over share."""
        used = view.used_chip_us
        in_order = sorted(
            view.waiting, key=lambda one: used.get(one.job.owner, 0) / self.shares.get(one.job.owner, 1.0)
        )
        return starts_in_order(view.room, in_order, overtake=self.overtake)[0]


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """The earliest instant at which a job is sure to fit, by what owners say, and the jobs that have ended by then."""

    at_us: int
    ended: tuple[int, ...]


def reservation_of(job: Job, room: Fitting, running: Iterable[Running], now_us: int) -> Reservation | None:
    """When `job` fits as running jobs end as expected (overdue ones: at once); None if it fits after none of them.

    Jobs without end never end.
    """
    ends = sorted((max(now_us, one.expected_end_us), one.job.id) for one in running if one.expected_end_us is not None)
    ended: list[int] = []
    for place, (end_us, number) in enumerate(ends):
        ended.append(number)
        room = room.after_end([number])
        last_of_instant = place + 1 == len(ends) or ends[place + 1][0] > end_us
        if last_of_instant and room.fits(job):
            return Reservation(at_us=end_us, ended=tuple(ended))
    return None


@dataclass(frozen=True, kw_only=True)
class Easy:
    """EASY backfill (Lifka 1995; Mu'alem and Feitelson 2001): the head of the queue has a reservation.

    A job further back may start now if it ends before that instant, or if the head fits then all the same, beside it.
    The reservation is the earliest instant at which the head fits as running jobs end by their owners' word. A head
    that fits after no known end (it waits for repairs) has none, and holds nobody up (assumption).
    `order`: in which order jobs are tried for backfill.
    """

    kind: Literal["easy"] = "easy"
    order: Literal["arrival", "shortest"] = "arrival"

    def __post_init__(self) -> None:
        """Refuse an order that is none."""
        if self.order not in ("arrival", "shortest"):
            raise ValueError(f"order must be arrival or shortest, not {self.order!r}")

    def decide(self, view: QueueView) -> Sequence[Decision]:
        """Start from the head on; then reserve for the first that does not fit and backfill behind it."""
        decisions, room = starts_in_order(view.room, view.waiting, overtake=False)
        count = sum(isinstance(decision, Start) for decision in decisions)
        decisions = decisions[:count]
        head, *behind = view.waiting[count:] or (None,)
        if head is None or not behind:
            return decisions
        started = (_running(one, view.now_us) for one in view.waiting[:count])
        reserved = reservation_of(head.job, room, [*view.running, *started], view.now_us)
        if self.order == "shortest":
            behind.sort(key=lambda one: math.inf if one.remaining_us is None else one.remaining_us)
        for one in behind:
            after = room.after_start(one.job)
            if after is not None and _is_harmless(one, after, head.job, reserved, view.now_us):
                decisions.append(Start(job=one.job))
                room = after
                if reserved is not None and _ends_by(one, view.now_us, reserved.at_us):
                    reserved = Reservation(at_us=reserved.at_us, ended=(*reserved.ended, one.job.id))
        return decisions if reserved is None else [*decisions, Reserve(job=head.job, at_us=reserved.at_us)]


def _running(one: Waiting, now_us: int) -> Running:
    """A waiting job as it is once it has started now."""
    end_us = None if one.remaining_us is None else now_us + one.remaining_us
    return Running(job=one.job, started_us=now_us, expected_end_us=end_us)


def _ends_by(one: Waiting, now_us: int, at_us: int) -> bool:
    return one.remaining_us is not None and now_us + one.remaining_us <= at_us


def _is_harmless(one: Waiting, after: Fitting, head: Job, reserved: Reservation | None, now_us: int) -> bool:
    """Whether a job that starts now leaves the head its reservation."""
    if reserved is None or _ends_by(one, now_us, reserved.at_us):
        return True
    return after.after_end(reserved.ended).fits(head)


AnyQueuePolicy: TypeAlias = Fifo | ShortestFirst | Priority | FairShare | Easy
"""The policies that a scenario can name under `scheduling.queue:` (`kind` tells them apart)."""
