"""The jobs of one run, in order of arrival, with those that are turned away before it begins."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from topology.errors import refuse
from topology.fabric import Fabric
from topology.pod import AnyPod
from workloads.jobs.fitting import PlacementPolicy, empty_fitting
from workloads.jobs.job import Job, JobKind, make_job
from workloads.jobs.job_log import JobLog
from workloads.jobs.slice_rules import SliceRule

US_PER_S = 1_000_000
LATEST_US = 10**18
"""Nothing on the clock is later: microseconds in 64 bits, with room to add."""


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """Jobs turned away for one reason: how many, and the number of the first in its log."""

    reason: str
    count: int
    first: int


@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """Jobs in order of arrival, then number; and what is not among them, by reason, in order of first appearance."""

    jobs: tuple[Job, ...]
    rejected: tuple[Rejected, ...] = ()

    def __post_init__(self) -> None:
        """Refuse jobs out of order and numbers that are given twice."""
        keys = [(job.arrival_us, job.id) for job in self.jobs]
        if keys != sorted(keys) or len(dict.fromkeys(job.id for job in self.jobs)) < len(keys):
            raise ValueError("jobs of a plan are in order of arrival, then number, and no number is given twice")

    @property
    def rejected_count(self) -> int:
        """How many jobs are turned away."""
        return sum(one.count for one in self.rejected)


class RejectedCount:
    """Counts of rejections by reason, as jobs are looked at."""

    def __init__(self) -> None:
        """None yet."""
        self._by_reason: dict[str, tuple[int, int]] = {}

    def add(self, reason: str, number: int) -> None:
        """One more job is turned away."""
        count, first = self._by_reason.get(reason, (0, number))
        self._by_reason[reason] = (count + 1, first)

    def as_tuple(self) -> tuple[Rejected, ...]:
        """The counts as values."""
        return tuple(
            Rejected(reason=reason, count=count, first=first) for reason, (count, first) in self._by_reason.items()
        )


def plan_of(jobs: Iterable[Job], fabric: Fabric, pod: AnyPod, placement: PlacementPolicy) -> JobPlan:
    """The plan of these jobs, those left out that not even the whole, free pod could hold (`shape`, `resource`)."""
    empty, rejected, kept = empty_fitting(fabric, pod, placement), RejectedCount(), []
    for job in jobs:
        reason = empty.reason(job)
        if reason is None:
            kept.append(job)
        else:
            rejected.add(reason.value, job.id)
    return JobPlan(jobs=tuple(sorted(kept, key=lambda job: (job.arrival_us, job.id))), rejected=rejected.as_tuple())


def plan_from_log(
    log: JobLog,
    fabric: Fabric,
    pod: AnyPod,
    rule: SliceRule,
    placement: PlacementPolicy,
    *,
    time_scale: float = 1.0,
    kind: JobKind = JobKind.TRAINING,
    reroute_opt_in: Iterable[bool] | None = None,
) -> JobPlan:
    """The jobs of a log on a pod, submit times multiplied by `time_scale`; run times and requests stay as they were.

    Jobs are numbered from 0 in order of submission, rejected ones too, so that the numbers do not depend on the rule.
    Rejected: `no_size` and `no_run_time` (the log does not know), `no_slice` (the rule has none), `shape` and
    `resource` (the pod could never hold it). `reroute_opt_in` has a value for each job of the log (all, unless given).
    """
    if not (math.isfinite(time_scale) and time_scale > 0):
        raise refuse("time_scale", f"{time_scale:g} can not stretch time", "write a number above 0")
    empty, rejected, kept = empty_fitting(fabric, pod, placement), RejectedCount(), []
    opted_in = [True] * log.count if reroute_opt_in is None else [bool(one) for one in reroute_opt_in]
    submit, run, asked = log.submit_s.tolist(), log.run_s.tolist(), log.requested_s.tolist()
    for place, (number, processors) in enumerate(zip(log.number.tolist(), log.processors.tolist(), strict=True)):
        if processors < 1 or math.isnan(run[place]):
            rejected.add("no_size" if processors < 1 else "no_run_time", number)
            continue
        chips = rule.slice_chips(processors, log.machine_processors, pod)
        if chips is None:
            rejected.add("no_slice", number)
            continue
        job = make_job(
            place,
            pod,
            chips,
            kind=kind,
            reroute_opt_in=opted_in[place],
            arrival_us=to_clock_us(submit[place] * time_scale, f"{log.source}: submission of job {number}"),
            work_us=to_clock_us(run[place], f"{log.source}: run time of job {number}"),
            requested_us=None if math.isnan(asked[place]) else round(asked[place] * US_PER_S),
            owner=log.owner[place],
        )
        reason = empty.reason(job)
        if reason is None:
            kept.append(job)
        else:
            rejected.add(reason.value, number)
    return JobPlan(jobs=tuple(kept), rejected=rejected.as_tuple())


def to_clock_us(seconds: float, where: str) -> int:
    """Seconds on the clock; InputError where they do not fit it."""
    if not 0 <= seconds * US_PER_S <= LATEST_US:
        raise refuse(where, f"{seconds:g} s do not fit the clock", "write shorter times")
    return round(seconds * US_PER_S)
