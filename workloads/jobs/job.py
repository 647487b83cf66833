"""One job: its slice, its work, and what the scheduler may know of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from topology.placement import hosts_of_slice, slices_per_host
from topology.pod import CHIPS_PER_HOST, AnyPod, FlatPod
from topology.shape import Shape, shape_of_chips


class JobKind(StrEnum):
    """What a job does with its slice."""

    TRAINING = "training"
    SERVING = "serving"
    BATCH = "batch"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job: its number, its slice (`shape` is None on a flat pod), whether it runs around dead light, its work.

    `hosts` hosts with `chips_per_host` chips on each make the slice of `chips` chips. Times are whole microseconds.
    Raises ValueError for times below zero.
    """

    id: int
    chips: int
    shape: Shape | None
    hosts: int
    chips_per_host: int
    reroute_opt_in: bool
    kind: JobKind = JobKind.TRAINING
    arrival_us: int = 0
    work_us: int | None = None
    """Productive time at full speed; None: without end."""
    requested_us: int | None = None
    """What its owner says that it takes, stages and losses aside (EASY, shortest first); `work_us` unless given."""
    priority: int = 0
    """Higher goes first."""
    owner: str = ""
    profile: str = ""
    until_us: int | None = None
    """From when on it is not wanted any more: it drains and leaves (replicas that follow demand)."""

    def __post_init__(self) -> None:
        """Check the times, and let the request be the work where none is given."""
        for name in ("arrival_us", "work_us", "requested_us"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"job {self.id}: {name} of {value}: write a whole number of at least 0")
        if self.requested_us is None and self.work_us is not None:
            object.__setattr__(self, "requested_us", self.work_us)


def make_job(
    number: int,
    pod: AnyPod,
    chips: int,
    *,
    reroute_opt_in: bool = True,
    shape: Shape | None = None,
    kind: JobKind = JobKind.TRAINING,
    arrival_us: int = 0,
    work_us: int | None = None,
    requested_us: int | None = None,
    priority: int = 0,
    owner: str = "",
    profile: str = "",
) -> Job:
    """A job for a slice of `chips` chips, of the stated default shape unless one is given."""
    if shape is None and not isinstance(pod, FlatPod):
        shape = shape_of_chips(chips)
    return Job(
        id=number,
        chips=chips,
        shape=shape,
        hosts=hosts_of_slice(pod, chips),
        chips_per_host=CHIPS_PER_HOST // slices_per_host(chips),
        reroute_opt_in=reroute_opt_in,
        kind=kind,
        arrival_us=arrival_us,
        work_us=work_us,
        requested_us=requested_us,
        priority=priority,
        owner=owner,
        profile=profile,
    )
