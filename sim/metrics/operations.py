"""Measures of a pod in operation, from the log alone (design: measures, section 2)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sim.metrics.chip_hours import chip_us_by_use
from sim.metrics.jobs import Loss, losses
from sim.metrics.ledger import JobLedger
from sim.metrics.uses import RUN_USES, Use
from sim.trace import Stage, Trace, Verb

_FREE = frozenset((Use.STRANDED, Use.SPARE, Use.BLOCKED, Use.FRAGMENTED, Use.EMPTY))
_NOT_UP_AT_ONCE = frozenset((Use.DRAINED, Use.DOWN, Use.DETECTING, Use.EVICTING, Use.WAITING, Use.UNACCOUNTED)) | _FREE


def _share(part: float, whole: float) -> float:
    """`part` of `whole`; NaN of nothing: what did not happen is no value, neither good nor bad."""
    return part / whole if whole else math.nan


@dataclass(frozen=True, kw_only=True)
class Goodput:
    """ML productivity goodput = scheduling x runtime x program (arXiv:2502.06982); a factor of nothing is NaN.

    `scheduling`: chip-time in which all workers of a job are up at once, of the pod's. `runtime`: that of it which is
    kept (not start, save, nor undone). `program`: work done over running that was kept (slowed light paths; what the
    program itself loses is the business of costs).
    """

    scheduling: float
    runtime: float
    program: float
    total: float
    """The product: useful chip-time of the pod's (also where nothing ran)."""


def goodput_of(chip_us: Mapping[Use, int]) -> Goodput:
    """Goodput from the chip-time of every use."""
    together = sum(value for use, value in chip_us.items() if use not in _NOT_UP_AT_ONCE)
    kept = chip_us[Use.USEFUL] + chip_us[Use.SLOWED]
    return Goodput(
        scheduling=_share(together, sum(chip_us.values())),
        runtime=_share(kept, together),
        program=_share(chip_us[Use.USEFUL], kept),
        total=_share(chip_us[Use.USEFUL], sum(chip_us.values())),
    )


def utilisation_of(chip_us: Mapping[Use, int]) -> float:
    """Share of the pod's chip-time that jobs hold."""
    free = sum(chip_us[use] for use in _FREE)
    out = chip_us[Use.DRAINED] + chip_us[Use.DOWN] + chip_us[Use.UNACCOUNTED]
    return _share(sum(chip_us.values()) - free - out, sum(chip_us.values()))


def fragmentation_of(chip_us: Mapping[Use, int]) -> float:
    """Share of the free chip-time of sound cubes that a waiting job could not use."""
    return _share(chip_us[Use.FRAGMENTED], chip_us[Use.FRAGMENTED] + chip_us[Use.EMPTY])


@dataclass(frozen=True, kw_only=True)
class BlastRadius:
    """What failures of one kind hit: `failures`, those of them that a job felt, jobs and chips lost in all."""

    failures: int = 0
    felt: int = 0
    jobs: int = 0
    chips: int = 0

    @property
    def chips_per_failure(self) -> float:
        """Chips of the jobs that one failure stops, on average."""
        return _share(self.chips, self.failures)


def blast_radius(trace: Trace, ledgers: Sequence[JobLedger], warmup_us: int = 0) -> dict[str, BlastRadius]:
    """By kind of component, in order of name: what its failures after the warm-up hit.

    Several at one instant count for the last.
    """
    failures = Counter(row[2] for row in trace.rows if row[1] == Verb.FAIL and row[0] >= warmup_us)
    chips = {ledger.job: ledger.chips for ledger in ledgers}
    jobs: Counter[str] = Counter()
    hit: Counter[str] = Counter()
    felt: dict[str, set[tuple[int, int]]] = {}
    for loss in losses_after(trace, warmup_us):
        jobs[loss.kind] += 1
        hit[loss.kind] += chips[loss.job]
        felt.setdefault(loss.kind, set()).add((loss.lost_us, loss.component))
    return {
        kind: BlastRadius(failures=failures[kind], felt=len(felt.get(kind, ())), jobs=jobs[kind], chips=hit[kind])
        for kind in sorted(failures)
    }


def losses_after(trace: Trace, warmup_us: int) -> list[Loss]:
    """The losses of running jobs that fall after the warm-up, whenever the jobs arrived."""
    return [loss for loss in losses(trace) if loss.lost_us >= warmup_us]


def recovery_us_by_stage(trace: Trace, warmup_us: int = 0) -> dict[Stage, int]:
    """Microseconds that all recoveries from losses after the warm-up spent in every stage."""
    total = dict.fromkeys(Stage, 0)
    for loss in losses_after(trace, warmup_us):
        for stage, spent_us in loss.stage_us.items():
            total[stage] += spent_us
    return total


def circuits_made(trace: Trace, warmup_us: int = 0) -> int:
    """Circuits that were made after the warm-up."""
    return sum(row[6] for row in trace.rows if row[1] == Verb.CONNECT and row[0] >= warmup_us)


def reroute_share(trace: Trace, warmup_us: int = 0) -> float:
    """Share of the running time of jobs, chip-weighted, that runs around dead light, at whatever speed."""
    chips: dict[int, int] = {}
    for placed in trace.placements:
        chips[placed.job] = len(placed.hosts) * placed.chips_per_host
    rerouted = running = 0
    for interval in trace.stage_intervals():
        if interval.stage is Stage.RUNNING and interval.end_us > warmup_us:
            part = chips[interval.job] * (interval.end_us - max(interval.start_us, warmup_us))
            running += part
            rerouted += part if interval.way_round else 0
    return _share(rerouted, running)


def reject_counts(ledgers: Sequence[JobLedger]) -> dict[str, int]:
    """Rejected jobs by reason, in order of name."""
    return dict(sorted(Counter(ledger.rejected for ledger in ledgers if ledger.rejected).items()))


@dataclass(frozen=True, kw_only=True)
class OperationsSummary:
    """The measures of one run. Waits and slowdowns are means over jobs; `ettr` is weighted by chip-time.

    A job that never got a slice counts with its wait up to the horizon: without it a starved pod would look good.
    """

    chip_us: dict[Use, int]
    goodput: Goodput
    utilisation: float
    fragmentation: float
    arrived: int
    rejected: int
    finished: int
    wait_s: float
    slowdown: float
    ettr: float
    losses: int
    preemptions: int
    moves: int
    circuits: int
    reroute_share: float

    @property
    def completion(self) -> float:
        """Share of the jobs that were not rejected and have finished by the horizon."""
        return _share(self.finished, self.arrived - self.rejected)


def summary_of(trace: Trace, ledgers: Sequence[JobLedger], warmup_us: int = 0) -> OperationsSummary:
    """All measures of a run after the warm-up; `ledgers` are those of `job_ledgers` with the same warm-up.

    By time: chip-hours, events, and `ettr`, of every job for as long as it has run in that time. By arrival: counts,
    waits and slowdowns, of the jobs that arrive in it, each whole.
    """
    chip_us = chip_us_by_use(trace, warmup_us)
    counted = [ledger for ledger in ledgers if ledger.arrived_us >= warmup_us]
    waits = [ledger.waited_us for ledger in counted if not ledger.rejected]
    slowdowns = [ledger.slowdown for ledger in counted if ledger.slowdown is not None]
    ran = [ledger for ledger in ledgers if ledger.trained_us]
    trained = sum(ledger.chips * ledger.trained_us for ledger in ran)
    return OperationsSummary(
        chip_us=chip_us,
        goodput=goodput_of(chip_us),
        utilisation=utilisation_of(chip_us),
        fragmentation=fragmentation_of(chip_us),
        arrived=len(counted),
        rejected=sum(bool(ledger.rejected) for ledger in counted),
        finished=sum(ledger.finished_us is not None for ledger in counted),
        wait_s=float(np.mean(waits)) / 1e6 if waits else math.nan,
        slowdown=float(np.mean(slowdowns)) if slowdowns else math.nan,
        ettr=_share(sum(ledger.chips * ledger.us[Use.USEFUL] for ledger in ran), trained),
        losses=len(losses_after(trace, warmup_us)),
        preemptions=sum(row[1] == Verb.PREEMPT and row[0] >= warmup_us for row in trace.rows),
        moves=sum(row[1] == Verb.MOVE and row[0] >= warmup_us for row in trace.rows),
        circuits=circuits_made(trace, warmup_us),
        reroute_share=reroute_share(trace, warmup_us),
    )


def running_chip_us(chip_us: Mapping[Use, int]) -> int:
    """Chip-time of running, whatever became of it."""
    return sum(chip_us[use] for use in RUN_USES)
