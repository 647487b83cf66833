"""What happens to jobs, as events that their processes wait for: the machine's listener."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from simpy.core import Environment
from simpy.events import Event

from sim.machine import Machine
from sim.policies import RecoveryPolicy
from sim.processes.dispatch import Dispatcher
from sim.processes.progress import Progress
from sim.reroute_speeds import rerouted_ppm
from sim.trace import FULL_SPEED_PPM, Stage


class Ending(StrEnum):
    """How an attempt of a job ends."""

    LOST = "lost"
    PREEMPTED = "preempted"
    NOTICED = "noticed"
    DISMISSED = "dismissed"
    FINISHED = "finished"


class JobEvents:
    """The machine's listener: turns what happens to jobs into events that their processes wait for."""

    def __init__(self, env: Environment, machine: Machine, dispatcher: Dispatcher, recovery: RecoveryPolicy) -> None:
        """Listen to `machine`."""
        self._env = env
        self._machine = machine
        self._dispatcher = dispatcher
        self._recovery = recovery
        self._ended: dict[int, Event] = {}
        self._news: dict[int, Event] = {}
        self._pace: dict[int, Event] = {}
        self.progress: dict[int, Progress] = {}
        self.reroutes: dict[int, bool] = {}
        self.dismissed: set[int] = set()
        self.preflight: Callable[[int], None] = lambda job: None
        machine.listener = self

    def open(self, job: int) -> Event:
        """The end of a new attempt of a job: fired at once when it was placed on something that is down.

        So it is for a job that is not wanted any more.
        """
        self._ended[job] = Event(self._env)
        if self._machine.is_hurt(job):
            self.lost(job)
        elif job in self.dismissed:
            self._end(job, Ending.DISMISSED)
        return self._ended[job]

    def news(self, job: int) -> Event:
        """Fired when next a failure or repair that concerns the job becomes known."""
        return self._news.setdefault(job, Event(self._env))

    def pace(self, job: int) -> Event:
        """Fired when next the speed of the running job changes."""
        return self._pace.setdefault(job, Event(self._env))

    def speed_ppm(self, job: int) -> int:
        """The speed at which a job runs now: that of its slowest host, slowed while it runs around dead light."""
        pace_ppm = self._machine.pace_ppm(job)
        if not self._machine.trouble(job).light:
            return pace_ppm
        return max(1, rerouted_ppm(self._recovery, self._machine, job) * pace_ppm // FULL_SPEED_PPM)

    def lost(self, job: int) -> None:
        """Fire the loss of the attempt in progress, once."""
        self._end(job, Ending.LOST)

    def noticed(self, job: int) -> None:
        """End the attempt in progress for a planned move."""
        self._end(job, Ending.NOTICED)

    def dismiss(self, job: int) -> None:
        """A job is not wanted any more: it leaves the queue, or drains and leaves its slice."""
        self.dismissed.add(job)
        if not self._dispatcher.withdraw(job):
            self._end(job, Ending.DISMISSED)

    def dimmed(self, job: int) -> None:
        """Run around the dark switch without a loss, or leave for one that may not."""
        if self.reroutes.get(job, True):
            self.informed(job)
        else:
            self.noticed(job)

    def poisoned(self, job: int, since_us: int) -> None:
        """Remember from when on the work is worth nothing; the loss that follows goes back to before that."""
        progress = self.progress.get(job)
        if progress is not None:
            known_us = progress.poisoned_us
            progress.poisoned_us = since_us if known_us is None else min(known_us, since_us)

    def preempted(self, job: int) -> None:
        """Undo what is not safe, and wake the job whatever it waits for."""
        progress = self.progress.get(job)
        if progress is not None:
            undo(self._machine, job, progress, int(self._env.now))
        self._end(job, Ending.PREEMPTED)
        self._wake(self._news, job)

    def informed(self, job: int) -> None:
        """Wake a job that waits for news; a running job gets the speed of its light paths."""
        self._wake(self._news, job)
        if self._machine.holdings[job].stage is Stage.RUNNING and not self._ended[job].triggered:
            speed_ppm = self.speed_ppm(job)
            self._machine.set_speed(job, speed_ppm)
            progress = self.progress.get(job)
            if progress is not None:
                progress.run(int(self._env.now), speed_ppm)
                self._wake(self._pace, job)

    def capacity_returned(self) -> None:
        """Let the dispatcher see to it."""
        self._dispatcher.capacity_returned()

    def _end(self, job: int, ending: Ending) -> None:
        event = self._ended.get(job)
        if event is not None and not event.triggered:
            event.succeed(ending)

    def _wake(self, waiting: dict[int, Event], job: int) -> None:
        event = waiting.pop(job, None)
        if event is not None:
            event.succeed()


def undo(machine: Machine, job: int, progress: Progress, now_us: int) -> None:
    """Take a job back to its last safe state, and write down what that undoes."""
    undone_us = progress.lose(now_us)
    if undone_us:
        machine.lose(job, undone_us)
