"""Several pods on one clock behind one queue: a job waits for all of them and starts on the first that takes it.

Arrivals wait in order of arrival. At the end of each instant at which something came back, or somebody arrived, each
job that waits asks the pods, in the order that a policy names, and starts on the first whose own queue policy would
start it at once. What a job that no pod takes does to those behind it is what the pods' policy says: under first in
first out they wait too; under EASY it has a reservation on the pod where it fits earliest by what owners say, on which
others start only as far as that pod's policy lets them past it. A job that has lost its slice waits on its pod, as it
would alone; where jobs may go elsewhere, it starts on the first other pod that takes it, from its last checkpoint, and
not on one that it has left (a simplification). Of those it holds nobody up elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from simpy.core import Environment
from simpy.events import Event

from sim.processes.jobs import JobProcess
from sim.processes.operations import OperatedPod
from sim.processes.order import Order, Timer, priority
from workloads.jobs.fleet import PodChoice
from workloads.jobs.job import Job
from workloads.jobs.queueing import Waiting


@dataclass(eq=False)
class _Asking:
    """A job in the queue; whether every pod has refused it as that pod was when last looked at."""

    waiting: Waiting
    refused: bool = False

    @property
    def job(self) -> Job:
        """The job."""
        return self.waiting.job


@dataclass(eq=False)
class FleetLog:
    """What happened between the pods: when each job was first put on one (us), and how often jobs went elsewhere."""

    started_us: dict[int, int] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    moves_us: list[int] = field(default_factory=list)


class OneQueue:
    """Owner of the fleet's queue."""

    def __init__(
        self,
        env: Environment,
        pods: Sequence[OperatedPod],
        choice: PodChoice,
        *,
        in_order: bool,
        transfer_us: int | None,
    ) -> None:
        """Nobody waits. `in_order`: no job starts before one that arrived earlier and fits nowhere.

        `transfer_us`: how long the state of a job takes to another pod; None where jobs stay on theirs.
        """
        self.log = FleetLog()
        self._env = env
        self._pods = pods
        self._choice = choice
        self._in_order = in_order
        self._transfer_us = transfer_us
        self._queue: list[_Asking] = []
        self._left: dict[int, list[int]] = {}
        self._seen = np.full(len(pods), -1, dtype=np.int64)
        self._rows = [pod.machine.rows for pod in pods]
        self._rooms = [pod.dispatcher.open_room() for pod in pods]
        self._free = np.zeros(len(pods), dtype=np.int64)
        self._ahead: list[list[Waiting]] = [[] for _ in pods]
        self._reserved: tuple[int, int] | None = None
        self._pass_is_due = False
        for pod in pods:
            pod.dispatcher.changed = self._request_pass

    def arrivals(self, jobs: Sequence[Job]) -> JobProcess:
        """All jobs, which are in order of arrival."""
        for job in jobs:
            delay_us = job.arrival_us - int(self._env.now)
            if delay_us:
                yield Timer(self._env, delay_us, priority(Order.ARRIVAL, 0, job.id))
            if self._pods[0].reject_reason(job) is not None:
                self.log.rejected.add(job.id)
                continue
            asked = Waiting(job=job, asked_us=int(self._env.now), remaining_us=job.requested_us)
            self._queue.append(_Asking(asked))
            self._request_pass()

    def _request_pass(self) -> None:
        if not self._pass_is_due:
            self._pass_is_due = True
            timer = Timer(self._env, 0, priority(Order.SCHEDULE, 1))
            assert timer.callbacks is not None
            timer.callbacks.append(self._pass)

    def _pass(self, _: Event) -> None:
        """The pods have had their own pass at this instant: who waits asks them."""
        self._pass_is_due = False
        returned = [] if self._transfer_us is None else self._returned()
        if not self._queue and not returned:
            return
        changed = self._look()
        for pod, waiting in returned:
            self._go_elsewhere(pod, waiting)
        self._start_waiting(changed)
        self._ahead = [[] for _ in self._pods]

    def _look(self) -> NDArray[np.bool_]:
        """Which pods (N,) are not as they were when last looked at: every change is a row of the log."""
        rows = np.array([len(rows) for rows in self._rows])
        changed: NDArray[np.bool_] = rows != self._seen
        for place in np.flatnonzero(changed).tolist():
            self._rooms[place] = self._pods[place].dispatcher.open_room()
            self._free[place] = self._rooms[place].free_chips
        self._seen = rows
        return changed

    def _returned(self) -> list[tuple[int, Waiting]]:
        """Jobs that wait on a pod after a loss, in order of arrival, with the pod."""
        found = [(place, one) for place, pod in enumerate(self._pods) for one in pod.dispatcher.queue]
        return sorted(found, key=lambda each: (each[1].job.arrival_us, each[1].job.id))

    def _start_waiting(self, changed: NDArray[np.bool_]) -> None:
        everywhere = np.ones(len(self._pods), dtype=np.bool_)
        stay: list[_Asking] = []
        for place, asking in enumerate(self._queue):
            pod = self._taker(asking.job, changed if asking.refused else everywhere)
            if pod is not None:
                self._start(asking.waiting, pod)
                if self._reserved is not None and self._reserved[0] == asking.job.id:
                    changed = changed.copy()
                    changed[self._reserved[1]] = True
                    self._reserved = None
                continue
            asking.refused = True
            stay.append(asking)
            if self._in_order:
                stay += self._queue[place + 1 :]
                break
            if len(stay) == 1:
                self._reserve(asking.waiting, changed)
        self._queue = stay

    def _reserve(self, head: Waiting, changed: NDArray[np.bool_]) -> None:
        """The first that no pod takes gets a reservation on the pod where it fits earliest, and keeps it there."""
        if self._reserved is not None and self._reserved[0] == head.job.id:
            pod = self._reserved[1]
            if not changed[pod] or self._earliest_us(pod, head.job) is not None:
                self._ahead[pod].append(head)
                return
        ends_us = [self._earliest_us(pod, head.job) for pod in range(len(self._pods))]
        known = [(end_us, place) for place, end_us in enumerate(ends_us) if end_us is not None]
        self._reserved = (head.job.id, min(known)[1]) if known else None
        if self._reserved is not None:
            self._ahead[self._reserved[1]].append(head)

    def _taker(self, job: Job, asked: NDArray[np.bool_]) -> int | None:
        """The first pod, of those `asked` (N,) and in the order of the policy, that would start a job at once."""
        may = asked & (self._free >= job.chips)
        if may.any():
            order = self._choice.order(self._free)
            for place in order[may[order]].tolist():
                if self._pods[place].dispatcher.takes(job, self._rooms[place], self._ahead[place]):
                    return int(place)
        return None

    def _earliest_us(self, pod: int, job: Job) -> int | None:
        return self._pods[pod].dispatcher.earliest_us(job, self._rooms[pod])

    def _start(self, waiting: Waiting, pod: int, fetch_us: int = 0) -> None:
        """Put a job on a pod; those that ask at this instant are behind it."""
        self.log.started_us.setdefault(waiting.job.id, int(self._env.now))
        self._ahead[pod].append(waiting)
        self._free[pod] -= waiting.job.chips
        self._seen[pod] = -1
        self._pods[pod].arrive(waiting.job, fetch_us)

    def _go_elsewhere(self, pod: int, waiting: Waiting) -> None:
        """A job that waits on a pod goes to another one that would start it at once, with what is safe of its work."""
        job, own = waiting.job, self._pods[pod]
        asked = np.ones(len(self._pods), dtype=np.bool_)
        asked[[pod, *self._left.get(job.id, ())]] = False
        other = self._taker(job, asked)
        if other is None:
            return
        progress = own.events.progress.get(job.id)
        safe_us = 0 if progress is None else progress.safe_us
        left_us = None if job.work_us is None else job.work_us - safe_us
        own.dispatcher.withdraw(job.id)
        self._left.setdefault(job.id, []).append(pod)
        self.log.moves_us.append(int(self._env.now))
        moved = replace(job, work_us=left_us, requested_us=waiting.remaining_us)
        assert self._transfer_us is not None, "jobs stay on their pods"
        self._start(replace(waiting, job=moved), other, self._transfer_us if safe_us else 0)
