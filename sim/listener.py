"""Whom the machine asks for the time, and whom it tells what happens to jobs."""

from __future__ import annotations

from typing import Any, Protocol


class Clock(Protocol):
    """Whatever knows the time; a SimPy environment does."""

    @property
    def now(self) -> Any:
        """The time in whole microseconds."""


class Listener(Protocol):
    """Who wants to know what happens to jobs; the machine calls it after the state has changed."""

    def lost(self, job: int) -> None:
        """A component that the job needs went down (the truth; nobody may know yet)."""

    def informed(self, job: int) -> None:
        """A failure or repair of a component that the job needs has become known."""

    def noticed(self, job: int) -> None:
        """The job is to leave its slice as planned: a drain that was announced is due, or the job is moved."""

    def dimmed(self, job: int) -> None:
        """A switch that the job's light passes went dark as planned."""

    def poisoned(self, job: int, since_us: int) -> None:
        """What the job did since an instant has turned out to be wrong; its loss goes back to before that."""

    def preempted(self, job: int) -> None:
        """The job is about to be taken off its slice for another one; it is released right after this call."""

    def capacity_returned(self) -> None:
        """A component came back, a cube was undrained, or a job gave its hosts back."""


class NoListener:
    """Nobody listens."""

    def lost(self, job: int) -> None:
        """Do nothing."""

    def informed(self, job: int) -> None:
        """Do nothing."""

    def noticed(self, job: int) -> None:
        """Do nothing."""

    def poisoned(self, job: int, since_us: int) -> None:
        """Do nothing."""

    def preempted(self, job: int) -> None:
        """Do nothing."""

    def dimmed(self, job: int) -> None:
        """Do nothing."""

    def capacity_returned(self) -> None:
        """Do nothing."""
