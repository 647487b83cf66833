"""Plays jobs with work through the dispatcher, without failures: who waits how long."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
import simpy
from numpy.typing import NDArray
from simpy.events import Event

from sim.machine import Machine, NoListener
from sim.policies import RecoveryPolicy
from sim.processes.dispatch import Dispatcher
from sim.processes.order import Order, Timer, priority
from sim.trace import FULL_SPEED_PPM, Stage
from topology.fabric import Fabric
from topology.pod import AnyPod
from workloads.jobs.fitting import PlacementPolicy
from workloads.jobs.job import Job
from workloads.jobs.queueing import QueuePolicy

NO_DELAYS = RecoveryPolicy(evict=0.0, circuits=0.0, preflight=0.0, restore=0.0)


class Player(NoListener):
    """Runs jobs to their ends; a preempted one queues again with what it has left."""

    def __init__(
        self,
        pod: AnyPod,
        fabric: Fabric,
        queue: QueuePolicy | None = None,
        placement: PlacementPolicy | None = None,
        *,
        check_invariants: bool = False,
    ) -> None:
        """An empty pod."""
        self.env = simpy.Environment()
        self.machine = Machine(pod, fabric, self.env, check_invariants=check_invariants)
        self.dispatcher = Dispatcher(self.env, self.machine, NO_DELAYS, queue, placement)
        self.machine.listener = self
        self.started_us: dict[int, int] = {}
        self.ended_us: dict[int, int] = {}
        self._taken: dict[int, Event] = {}

    def preempted(self, job: int) -> None:
        """Wake the job whose slice is taken."""
        self._taken[job].succeed()

    def capacity_returned(self) -> None:
        """Have the dispatcher see to it."""
        self.dispatcher.capacity_returned()

    def _life(self, job: Job) -> Generator[Event, object, None]:
        yield Timer(self.env, job.arrival_us, priority(Order.ARRIVAL, 0, job.id))
        left_us = job.work_us
        while True:
            asked_us = job.requested_us if left_us == job.work_us else left_us
            yield self.dispatcher.enqueue(job, asked_us)
            begin_us = int(self.env.now)
            self.started_us.setdefault(job.id, begin_us)
            self.machine.set_stage(job.id, Stage.RUNNING, FULL_SPEED_PPM)
            self._taken[job.id] = Event(self.env)
            if left_us is None:
                yield self._taken[job.id]
                continue
            end = Timer(self.env, left_us, priority(Order.STAGE_END, 0, job.id))
            yield end | self._taken[job.id]
            if not self._taken[job.id].triggered:
                break
            left_us -= int(self.env.now) - begin_us
        self.ended_us[job.id] = int(self.env.now)
        self.dispatcher.ended(job)
        self.machine.finish(job.id)

    def play(self, jobs: Sequence[Job], until_us: int | None = None) -> NDArray[np.float64]:
        """Waits in seconds, from arrival to the first start, in order of the jobs (NaN for those that never start)."""
        for job in jobs:
            self.env.process(self._life(job))
        self.env.run(until=until_us)
        return np.array(
            [(self.started_us[job.id] - job.arrival_us) / 1e6 if job.id in self.started_us else np.nan for job in jobs]
        )
