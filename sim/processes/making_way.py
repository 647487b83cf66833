"""Making way with notice: jobs that save their state and leave, so that jobs of higher priority get their places.

A start that lies on what such a job still holds is promised: the place is kept from others, and the start happens once
all who are to leave it have gone. A promise of which a part is not to be had then is dropped, and its job asks anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.machine import Machine
from topology.pod import CHIPS_PER_HOST
from workloads.jobs.fitting import Fitting, Mask, Spot
from workloads.jobs.job import Job


class Promise(NamedTuple):
    """The place that a waiting job gets once these jobs have left it."""

    job: Job
    spot: Spot
    after: tuple[int, ...]


class MakingWay:
    """Who is to leave, and what is promised to whom."""

    def __init__(self, machine: Machine) -> None:
        """Nobody leaves."""
        self._machine = machine
        self._leaving: dict[int, bool] = {}
        """Jobs that are to leave, and whether they know."""
        self._promises: dict[int, Promise] = {}

    def is_leaving(self, job: int) -> bool:
        """Whether a job has been told to leave and has not gone."""
        return job in self._leaving

    def is_promised(self, job: int) -> bool:
        """Whether a waiting job has a place promised."""
        return job in self._promises

    @property
    def first(self) -> int | None:
        """The job with the oldest promise, if any."""
        return next(iter(self._promises), None)

    def begin(self, job: int, *, knows: bool) -> None:
        """A job is to leave; it is told with the promise that follows, unless it `knows`."""
        self._leaving[job] = knows

    def promise(self, job: Job, spot: Spot) -> bool:
        """Promise a waiting job a place that others are to leave; False where nobody is on it."""
        hosts = frozenset(spot.hosts)
        after = tuple(one for one in self._leaving if not hosts.isdisjoint(self._machine.holdings[one].hosts))
        if not after:
            return False
        self._promises[job.id] = Promise(job, spot, after)
        for one in after:
            knows, self._leaving[one] = self._leaving[one], True
            self._machine.make_way(one, job.id, tell=not knows)
        return True

    def gone(self, job: int) -> None:
        """A job has given everything back, told to or not."""
        self._leaving.pop(job, None)

    def withdraw(self, job: int) -> None:
        """A job starts, or does not want its place any more."""
        self._promises.pop(job, None)

    def ready(self) -> list[Promise]:
        """Promises whose places have been left, in the order in which they were given."""
        return [one for one in self._promises.values() if not any(job in self._leaving for job in one.after)]

    def kept_from(self, room: Fitting) -> Fitting:
        """The picture without what is promised."""
        return room.without(self._promised(room)) if self._promises else room

    def ahead(self, room: Fitting) -> Fitting:
        """The picture as it is once all have left, without what is promised."""
        return self.kept_from(room.after_end(self._leaving) if self._leaving else room)

    def kept_free_chips(self, room: Fitting) -> int:
        """Chips that are promised and free already, in a picture from which nothing is kept."""
        if not self._promises:
            return 0
        kept = self._promised(room) & room.usable_hosts
        return int((CHIPS_PER_HOST - room.held_chips[kept].astype(np.int64)).sum())

    def _promised(self, room: Fitting) -> Mask:
        kept: Mask = np.zeros(room.pod.hosts, dtype=np.bool_)
        for one in self._promises.values():
            kept[list(one.spot.hosts)] = True
        return kept
