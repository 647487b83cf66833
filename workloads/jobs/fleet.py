"""Several pods: on which of them a job goes, decided when it arrives, and for good; or which are asked first.

Of the first, jobs in order of arrival and a policy give a pod for each (pure). What a policy sees of a pod is what
owners say: chips that are free, and the chip-time that jobs placed there have still to do. It plays every pod as one
first-in-first-out queue of chips, without failures and without shapes (any cubes will do, as light has it; an
assumption). The second, where all pods have one queue, orders the pods as they are (`PodChoice`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from workloads.jobs.job import Job

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FleetView:
    """The pods as a policy sees them when a job arrives.

    `free_chips` (N,): not held, and nobody waits for them; `work_chip_us` (N,): chip-microseconds that jobs placed
    there have still to do by their owners' word; `placed`: jobs placed so far.
    """

    free_chips: Ints
    work_chip_us: Floats
    placed: int


class FleetPolicy(Protocol):
    """What a scenario can name under `study.fleet.placement:`; `kind` tells policies apart."""

    @property
    def kind(self) -> str:
        """Its name."""
        ...

    def choose(self, view: FleetView, job: Job) -> int:
        """The number of the pod."""
        ...


@dataclass(frozen=True, kw_only=True)
class Fullest:
    """The pod with the fewest free chips in which the job fits at once; where it fits in none, the least loaded one.

    Of equals the first. It keeps pods empty for large jobs.
    """

    kind: Literal["fullest"] = "fullest"

    def choose(self, view: FleetView, job: Job) -> int:
        """The number of the pod."""
        fits = view.free_chips >= job.chips
        if not fits.any():
            return int(np.argmin(view.work_chip_us))
        return int(np.argmin(np.where(fits, view.free_chips, np.iinfo(np.int64).max)))


@dataclass(frozen=True, kw_only=True)
class LeastLoaded:
    """The pod whose jobs have least chip-time still to do; of equals the first."""

    kind: Literal["least_loaded"] = "least_loaded"

    def choose(self, view: FleetView, job: Job) -> int:
        """The number of the pod."""
        return int(np.argmin(view.work_chip_us))


@dataclass(frozen=True, kw_only=True)
class TakingTurns:
    """One pod after the other."""

    kind: Literal["taking_turns"] = "taking_turns"

    def choose(self, view: FleetView, job: Job) -> int:
        """The number of the pod."""
        return view.placed % len(view.free_chips)


class PodChoice(Protocol):
    """What a scenario can name under `study.fleet.one_queue.choice:`: which pods are asked first to take a job."""

    @property
    def kind(self) -> str:
        """Its name."""
        ...

    def order(self, free_chips: Ints) -> Ints:
        """Numbers of the pods (N,) in the order in which they are asked; `free_chips` (N,) are up and not held."""


@dataclass(frozen=True, kw_only=True)
class FirstPod:
    """In order of their numbers: the last pods stay empty."""

    kind: Literal["first"] = "first"

    def order(self, free_chips: Ints) -> Ints:
        """The pods as they are numbered."""
        return np.arange(len(free_chips))


@dataclass(frozen=True, kw_only=True)
class EmptiestPod:
    """The pod with most free chips first, of equals the first: losses and work are spread."""

    kind: Literal["emptiest"] = "emptiest"

    def order(self, free_chips: Ints) -> Ints:
        """By free chips, most first."""
        return np.argsort(-free_chips, kind="stable")


@dataclass(frozen=True, kw_only=True)
class FullestPod:
    """The pod with fewest free chips first, of equals the first (best fit): pods stay empty for large jobs."""

    kind: Literal["fullest"] = "fullest"

    def order(self, free_chips: Ints) -> Ints:
        """By free chips, fewest first."""
        return np.argsort(free_chips, kind="stable")


class _Pods:
    """The pods as owners' words have them: each a first-in-first-out queue of chips."""

    def __init__(self, pods: int, chips: int) -> None:
        self.chips = chips
        self.free: Ints = np.full(pods, chips, dtype=np.int64)
        self.held_until: Floats = np.zeros(pods)
        self.waiting: list[deque[Job]] = [deque() for _ in range(pods)]
        self.queued: Floats = np.zeros(pods)
        self.running: Ints = np.zeros(pods, dtype=np.int64)
        self.ends: list[tuple[int, int, int]] = []

    def advance(self, now_us: int) -> None:
        """Jobs end up to now, and those behind them start."""
        while self.ends and self.ends[0][0] <= now_us:
            end_us, pod, chips = heappop(self.ends)
            self.free[pod] += chips
            self.running[pod] -= chips
            self.held_until[pod] -= chips * end_us
            self._start(pod, end_us)

    def put(self, pod: int, job: Job, now_us: int) -> None:
        """A job joins the queue of a pod; one that no pod could ever hold counts for nothing."""
        if job.chips > self.chips:
            return
        self.waiting[pod].append(job)
        self.queued[pod] += job.chips * _asked_us(job)
        self._start(pod, now_us)

    def _start(self, pod: int, now_us: int) -> None:
        queue = self.waiting[pod]
        while queue and queue[0].chips <= self.free[pod]:
            job = queue.popleft()
            end_us = now_us + _asked_us(job)
            self.queued[pod] -= job.chips * _asked_us(job)
            self.free[pod] -= job.chips
            self.running[pod] += job.chips
            self.held_until[pod] += job.chips * end_us
            heappush(self.ends, (end_us, pod, job.chips))

    def view(self, now_us: int, placed: int) -> FleetView:
        """What a policy sees now."""
        nobody_waits = np.fromiter((not queue for queue in self.waiting), dtype=np.bool_, count=len(self.waiting))
        return FleetView(
            free_chips=np.where(nobody_waits, self.free, 0),
            work_chip_us=self.queued + self.held_until - self.running * float(now_us),
            placed=placed,
        )


FOR_EVER_US = 10**15
"""A job without end counts as one of 31 years."""


def _asked_us(job: Job) -> int:
    return FOR_EVER_US if job.requested_us is None else job.requested_us


def placed_on_pods(jobs: Sequence[Job], pods: int, chips: int, policy: FleetPolicy) -> list[int]:
    """The pod of each job, given in order of arrival; `chips` of each pod. ValueError for a policy that names none."""
    fleet = _Pods(pods, chips)
    found = []
    for place, job in enumerate(jobs):
        fleet.advance(job.arrival_us)
        pod = policy.choose(fleet.view(job.arrival_us, place), job)
        if not 0 <= pod < pods:
            raise ValueError(f"policy {policy.kind} chose pod {pod} of {pods}")
        fleet.put(pod, job, job.arrival_us)
        found.append(pod)
    return found
