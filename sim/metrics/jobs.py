"""Measures of jobs and of the machine, from the log alone: what was delivered, and where every chip-hour went."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sim.trace import Stage, StageInterval, Trace, Verb


def delivered_chip_us(trace: Trace, warmup_us: int = 0) -> int:
    """Chip-microseconds of slices that run, from the end of restore to the instant of failure, after the warm-up."""
    running_us = sum(
        interval.end_us - max(interval.start_us, warmup_us)
        for interval in trace.stage_intervals()
        if interval.stage is Stage.RUNNING and interval.end_us > warmup_us
    )
    return running_us * trace.slice_chips


def delivered_share(trace: Trace, warmup_us: int = 0) -> float:
    """`delivered`: share of the pod's chip-time after the warm-up in which slices run (design: measures, section 1)."""
    if not 0 <= warmup_us < trace.horizon_us:
        raise ValueError(f"a warm-up of {warmup_us} us does not lie within the horizon of {trace.horizon_us} us")
    return delivered_chip_us(trace, warmup_us) / (trace.chips * (trace.horizon_us - warmup_us))


_LOSABLE = (Stage.RUNNING.value, Stage.CHECKPOINTING.value)


@dataclass(frozen=True, kw_only=True)
class Loss:
    """One loss of a running job: what failed, and the stages (of non-zero length) until it runs again.

    `stages` start at the failure; `running_us` is the instant at which the job runs again, None where the horizon came
    first.
    """

    job: int
    lost_us: int
    kind: str
    component: int
    stages: tuple[StageInterval, ...]
    running_us: int | None

    @property
    def stage_us(self) -> dict[Stage, int]:
        """Microseconds by stage; time in the queue is `waiting`."""
        total = dict.fromkeys(Stage, 0)
        for interval in self.stages:
            total[interval.stage] += interval.end_us - interval.start_us
        return total


def losses(trace: Trace) -> list[Loss]:
    """Every loss of a running job, in order of time, with its cause and the recovery from it."""
    causes: list[tuple[int, int, str, int]] = []
    stage_of: dict[int, str] = {}
    failed = ("", -1)
    for time_us, verb, kind, component, job, stage, _ in trace.rows:
        if verb == Verb.FAIL:
            failed = (kind, component)
        elif verb == Verb.STAGE:
            if stage == Stage.DETECTING and stage_of.get(job) in _LOSABLE:
                causes.append((job, time_us, *failed))
            stage_of[job] = stage
    by_job: dict[int, list[StageInterval]] = {}
    for interval in trace.stage_intervals():
        by_job.setdefault(interval.job, []).append(interval)
    found = []
    for job, lost_us, kind, component in causes:
        after = [interval for interval in by_job.get(job, []) if interval.start_us >= lost_us]
        length = next((i for i, interval in enumerate(after) if interval.stage is Stage.RUNNING), len(after))
        running_us = after[length].start_us if length < len(after) else None
        found.append(
            Loss(
                job=job,
                lost_us=lost_us,
                kind=kind,
                component=component,
                stages=tuple(after[:length]),
                running_us=running_us,
            )
        )
    return found


class ReplicaChange(StrEnum):
    """What happens to a job as those who use it see it."""

    UP = "up"
    LOST = "lost"
    DETECTED = "detected"
    SPEED = "speed"


@dataclass(frozen=True, slots=True)
class ReplicaEvent:
    """One change of one job: it runs (at `speed_ppm`), is lost, its loss is known, or its speed changes."""

    time_us: int
    job: int
    change: ReplicaChange
    speed_ppm: int


def replica_events(trace: Trace) -> list[ReplicaEvent]:
    """What a service on these jobs has to know, in order of time: when each replica is up, lost, known to be lost.

    Without delays a job may be lost, detected and up at one instant. A job that has never run is not mentioned before
    its first `up`.
    """
    events: list[ReplicaEvent] = []
    stage_of: dict[int, str] = {}
    pending: dict[int, bool] = {}
    for time_us, verb, _, _, job, stage, value in trace.rows:
        if verb == Verb.SPEED:
            events.append(ReplicaEvent(time_us, job, ReplicaChange.SPEED, value))
        elif verb == Verb.STAGE:
            if stage == Stage.RUNNING:
                events.append(ReplicaEvent(time_us, job, ReplicaChange.UP, value))
            elif stage == Stage.DETECTING and stage_of.get(job) == Stage.RUNNING:
                events.append(ReplicaEvent(time_us, job, ReplicaChange.LOST, 0))
                pending[job] = True
            elif pending.pop(job, False):
                events.append(ReplicaEvent(time_us, job, ReplicaChange.DETECTED, 0))
            stage_of[job] = stage
    return events
