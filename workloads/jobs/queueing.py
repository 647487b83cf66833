"""What a queue policy sees and what it answers: values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from workloads.jobs.fitting import Fitting
from workloads.jobs.job import Job


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """A job in the queue since `asked_us`; `remaining_us` is what it still takes by its owner's word, None: no end."""

    job: Job
    asked_us: int
    remaining_us: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """A job that holds a slice since `started_us`.

    `expected_end_us` is None for jobs without end, and may lie in the past for one that takes longer than it asked.
    """

    job: Job
    started_us: int
    expected_end_us: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """Start a waiting job, where the placement policy puts it."""

    job: Job


@dataclass(frozen=True, kw_only=True, slots=True)
class Preempt:
    """Take the slice back from a running job, which then waits again with what it has left.

    With `notice` it saves its state first; the starts that are decided on in its place happen when it has left.
    """

    job: Job
    notice: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Reserve:
    """Hold what is free for a waiting job that does not fit, until `at_us` at the latest by what owners say (None: not
    known). The last decision, where there is one: free chips that jobs behind it could use count as `blocked`.
    """

    job: Job
    at_us: int | None = None


Decision = Start | Preempt | Reserve
"""Decisions are carried out in their order, at one instant: what a preempted job held is free for the next start."""


def _none_running() -> Sequence[Running]:
    return ()


def _nothing_used() -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, kw_only=True)
class QueueView:
    """The pod as a queue policy sees it at one scheduling pass.

    `waiting` is in order of arrival; jobs that no decision could start (their light is dead) are left out.
    `room` answers what fits. `running_now` and `used_now` are called at most once, when first asked for.
    """

    now_us: int
    waiting: Sequence[Waiting]
    room: Fitting
    running_now: Callable[[], Sequence[Running]] = field(default=_none_running, repr=False)
    used_now: Callable[[], Mapping[str, float]] = field(default=_nothing_used, repr=False)

    @cached_property
    def running(self) -> Sequence[Running]:
        """Jobs that hold slices, in order of their numbers."""
        return self.running_now()

    @cached_property
    def used_chip_us(self) -> Mapping[str, float]:
        """Chip-microseconds that each owner's jobs have held so far, with the `half_life` (s) of the policy if any."""
        return self.used_now()


class QueuePolicy(Protocol):
    """Who is next: pure, and asked once per scheduling pass."""

    def decide(self, view: QueueView) -> Sequence[Decision]:
        """What to do now. Every `Start` has to fit once the decisions before it are carried out."""
