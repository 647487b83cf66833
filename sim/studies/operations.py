"""The study `operations`: a pod under a job mix, failures and repairs, with every chip-hour accounted for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from sim.build import Setup, replications_of, seconds_to_us
from sim.condition import component_counts
from sim.failure_log_formats import EPOCH
from sim.histories import US_PER_S
from sim.job_plans import plan_jobs
from sim.measure_names import OPERATIONS_MEASURES
from sim.metrics.intervals import mean_estimate
from sim.metrics.ledger import JobLedger, job_ledgers
from sim.metrics.measure_rows import rows_of_measures
from sim.metrics.operations import BlastRadius, OperationsSummary, blast_radius, recovery_us_by_stage, summary_of
from sim.metrics.pod_moments import PodMoments, moments_of
from sim.metrics.pod_story import PodStory, story_of, story_rows
from sim.metrics.profiles import ProfileCounts, profile_counts, profile_rows
from sim.metrics.promise_months import MonthHeld, months_held, share_of_months_kept, slice_demands
from sim.metrics.promises import chips_promised, slices_text
from sim.metrics.uses import OPERATOR_NAMES, Use
from sim.replay_tables import STRETCHES_MAX
from sim.scenario import Scenario
from sim.studies.job_plays import first_stages, play_jobs
from sim.trace import Stage, Trace
from workloads.jobs.job_plan import JobPlan

Row = dict[str, Any]
US_PER_HOUR = 3_600_000_000
RECOVERY_STAGES = (
    Stage.DETECTING, Stage.EVICTING, Stage.WAITING, Stage.RECONFIGURING, Stage.PREFLIGHT, Stage.RESTORING
)  # fmt: skip


class SizeCounts(NamedTuple):
    """Jobs of one slice size in one replication; waits and slowdowns are sums over `waited` and `finished` jobs."""

    arrived: int
    rejected: int
    finished: int
    waited: int
    wait_s: float
    slowdown: float


@dataclass(frozen=True, kw_only=True)
class OperationsSample:
    """One replication: measures by name, chip-microseconds by use, jobs by size and by profile, failures by kind.

    `recovery_us` is by stage. `left_out` counts the jobs of a log that never reach the pod, by reason. `story`,
    `stages` and `moments` of the first replication are for pictures and the timeline, at most `STRETCHES_MAX` each.
    """

    replication: int
    measures: Mapping[str, float]
    chip_us: Mapping[Use, int]
    sizes: Mapping[int, SizeCounts]
    blast: Mapping[str, BlastRadius]
    recovery_us: Mapping[Stage, int]
    left_out: Mapping[str, int]
    profiles: Mapping[str, ProfileCounts]
    months: tuple[MonthHeld, ...] = ()
    story: PodStory | None = None
    stages: tuple[tuple[int, str, int, int], ...] = ()
    moments: PodMoments | None = None


def play_operations(setup: Setup, replication: int) -> tuple[JobPlan, Trace]:
    """The jobs of one replication and the log of what became of them."""
    study = setup.scenario.study.operations
    assert study is not None
    horizon_us = setup.log_window_us or seconds_to_us(study.horizon)
    plan = plan_jobs(setup.scenario, setup.pod, setup.fabric, setup.streams(replication), horizon_us)
    return plan, play_jobs(setup, plan.jobs, replication, horizon_us)


def sample_operations(setup: Setup, replication: int) -> OperationsSample:
    """Play one replication and measure it after the warm-up."""
    warmup_us = seconds_to_us(setup.scenario.run.warmup)
    plan, trace = play_operations(setup, replication)
    ledgers = job_ledgers(trace, warmup_us)
    summary = summary_of(trace, ledgers, warmup_us)
    months = _months(setup, trace, warmup_us)
    first = replication == 0
    return OperationsSample(
        replication=replication,
        measures=dict(_measures(summary, trace, warmup_us)) | {"promise_kept": _promise_kept(setup, months)},
        chip_us=summary.chip_us,
        sizes=_sizes([ledger for ledger in ledgers if ledger.arrived_us >= warmup_us]),
        blast=blast_radius(trace, ledgers, warmup_us),
        recovery_us=recovery_us_by_stage(trace, warmup_us),
        profiles=profile_counts(plan.jobs, ledgers, trace, warmup_us),
        left_out={rejected.reason: rejected.count for rejected in plan.rejected},
        months=months,
        story=story_of(trace, STRETCHES_MAX) if first else None,
        stages=tuple(first_stages(trace)) if first else (),
        moments=moments_of(trace, STRETCHES_MAX) if first else None,
    )


def _months(setup: Setup, trace: Trace, warmup_us: int) -> tuple[MonthHeld, ...]:
    """The promise of the study month by month, calendar months where a log of failures has dates."""
    study = setup.scenario.study.operations
    if study is None or study.promise is None:
        return ()
    demands, counts = slice_demands(chips_promised(study.promise.slices)), component_counts(setup.pod)
    return tuple(months_held(trace, setup.pod, counts, demands, from_us=warmup_us, start=_began(setup)))


def _began(setup: Setup) -> datetime | None:
    log = setup.logs[0] if setup.logs else None
    return EPOCH + timedelta(microseconds=log.from_us) if log is not None and log.dated else None


def _promise_kept(setup: Setup, months: Sequence[MonthHeld]) -> float:
    study = setup.scenario.study.operations
    if study is None or study.promise is None:
        return math.nan
    return share_of_months_kept(months, study.promise.time_share)


def _measures(summary: OperationsSummary, trace: Trace, warmup_us: int) -> Iterator[tuple[str, float]]:
    days = (trace.horizon_us - warmup_us) / (86_400 * US_PER_S)
    yield "goodput", summary.goodput.total
    yield "goodput_scheduling", summary.goodput.scheduling
    yield "goodput_runtime", summary.goodput.runtime
    yield "goodput_program", summary.goodput.program
    yield "utilisation", summary.utilisation
    yield "fragmentation", summary.fragmentation
    yield "ettr", summary.ettr
    yield "wait_mean_s", summary.wait_s
    yield "slowdown_mean", summary.slowdown
    yield "completion", summary.completion
    yield "jobs_arrived", summary.arrived
    yield "jobs_rejected", summary.rejected
    yield "jobs_finished", summary.finished
    yield "job_losses_per_day", summary.losses / days
    yield "preemptions_per_day", summary.preemptions / days
    yield "moves_per_day", summary.moves / days
    yield "circuits_per_day", summary.circuits / days
    yield "reroute_share", summary.reroute_share


def _sizes(ledgers: Sequence[JobLedger]) -> dict[int, SizeCounts]:
    """Counts by slice size, smallest first."""
    by_size: dict[int, list[JobLedger]] = {}
    for ledger in ledgers:
        by_size.setdefault(ledger.chips, []).append(ledger)
    found = {}
    for chips, own in sorted(by_size.items()):
        waits = [ledger.waited_us for ledger in own if not ledger.rejected]
        slowdowns = [ledger.slowdown for ledger in own if ledger.slowdown is not None]
        found[chips] = SizeCounts(
            arrived=len(own),
            rejected=sum(bool(ledger.rejected) for ledger in own),
            finished=sum(ledger.finished_us is not None for ledger in own),
            waited=len(waits),
            wait_s=sum(waits) / US_PER_S,
            slowdown=sum(slowdowns),
        )
    return found


def operations_rows(
    setup: Setup, samples: Sequence[OperationsSample], host_availability: float
) -> dict[str, list[Row]]:
    """Rows of all tables of the study for one sweep point."""
    place = {"fabric": setup.fabric.value, "host_availability": host_availability}
    tables = {
        "operations": rows_of_measures(OPERATIONS_MEASURES, lambda name: [sample.measures[name] for sample in samples]),
        "operations_chip_hours": _chip_hour_rows(samples),
        "job_sizes": _size_rows(samples),
        "job_profiles": profile_rows([sample.profiles for sample in samples]),
        "failures_felt": _failure_rows(samples),
        "recovery_stages": _recovery_rows(samples),
        "promise_months": _month_rows(setup, samples),
        "replications": _replication_rows(samples),
    }
    if samples[0].story is not None:
        tables |= story_rows(samples[0].story, None)
    return {name: [place | row for row in rows] for name, rows in tables.items()}


def _chip_hour_rows(samples: Sequence[OperationsSample]) -> list[Row]:
    total_us = sum(samples[0].chip_us.values())
    rows = []
    for use in samples[0].chip_us:
        mean_us = float(np.mean([sample.chip_us[use] for sample in samples]))
        rows.append(
            {
                "use": use.value,
                "operators": OPERATOR_NAMES[use],
                "chip_hours": mean_us / US_PER_HOUR,
                "share": mean_us / total_us,
            }
        )
    return rows


def _size_rows(samples: Sequence[OperationsSample]) -> list[Row]:
    """Counts are means over replications; waits and slowdowns are means over all jobs of a size."""
    rows = []
    for chips in sorted({chips: None for sample in samples for chips in sample.sizes}):
        own = [sample.sizes[chips] for sample in samples if chips in sample.sizes]
        waited, finished = sum(one.waited for one in own), sum(one.finished for one in own)
        rows.append(
            {
                "slice_chips": chips,
                "arrived": sum(one.arrived for one in own) / len(samples),
                "rejected": sum(one.rejected for one in own) / len(samples),
                "finished": finished / len(samples),
                "wait_mean_s": sum(one.wait_s for one in own) / waited if waited else None,
                "slowdown_mean": sum(one.slowdown for one in own) / finished if finished else None,
            }
        )
    return rows


def _failure_rows(samples: Sequence[OperationsSample]) -> list[Row]:
    rows = []
    for kind in sorted({kind: None for sample in samples for kind in sample.blast}):
        own = [sample.blast[kind] for sample in samples if kind in sample.blast]
        failures, chips = sum(one.failures for one in own), sum(one.chips for one in own)
        rows.append(
            {
                "kind": kind,
                "failures": failures / len(samples),
                "felt": sum(one.felt for one in own) / len(samples),
                "jobs_lost": sum(one.jobs for one in own) / len(samples),
                "chips_per_failure": chips / failures if failures else 0.0,
            }
        )
    return rows


def _recovery_rows(samples: Sequence[OperationsSample]) -> list[Row]:
    losses = sum(one.jobs for sample in samples for one in sample.blast.values())
    if not losses:
        return []
    spent = {stage: sum(sample.recovery_us[stage] for sample in samples) for stage in RECOVERY_STAGES}
    whole = sum(spent.values())
    return [
        {
            "stage": stage.value,
            "seconds_per_loss": spent_us / US_PER_S / losses,
            "share": spent_us / whole if whole else 0.0,
        }
        for stage, spent_us in spent.items()
    ]


def _replication_rows(samples: Sequence[OperationsSample]) -> list[Row]:
    """Rows of the table `replications`: every measure of every month alone."""
    return [
        {"slice_chips": None, "form": form, "replication": sample.replication, "value": sample.measures[form]}
        for form in OPERATIONS_MEASURES
        for sample in samples
    ]


def _month_rows(setup: Setup, samples: Sequence[OperationsSample]) -> list[Row]:
    study, began = setup.scenario.study.operations, _began(setup)
    if study is None or study.promise is None:
        return []
    rows = []
    for number, months in enumerate(zip(*(sample.months for sample in samples), strict=True)):
        held = mean_estimate([month.share for month in months])
        start = "" if began is None else (began + timedelta(microseconds=months[0].start_us)).date().isoformat()
        rows.append(
            {
                "slices": slices_text(study.promise.slices),
                "time_share": study.promise.time_share,
                "month": number,
                "start_date": start,
                "start_s": months[0].start_us / US_PER_S,
                "end_s": months[0].end_us / US_PER_S,
                "held": held.value,
                "ci_low": held.ci_low,
                "ci_high": held.ci_high,
                "kept": sum(month.share >= study.promise.time_share for month in months) / len(months),
                "replications": len(months),
            }
        )
    return rows


def operations_count(scenario: Scenario) -> int:
    """Replications of the study; 0 where it is not asked for."""
    study = scenario.study.operations
    return 0 if study is None else replications_of(scenario, study.replications)
