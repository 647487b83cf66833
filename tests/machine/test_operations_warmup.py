"""A warm-up takes away the time before it and nothing else: every measure again, by hand on the log's stages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import pytest

from sim.build import Setup, build_setup
from sim.metrics.chip_hours import chip_us_by_use
from sim.metrics.ledger import job_ledgers
from sim.metrics.operations import blast_radius, recovery_us_by_stage, summary_of
from sim.metrics.uses import RUN_USES, Use
from sim.scenario import scenario_of
from sim.strict_yaml import parse_document
from sim.studies.operations import play_operations, sample_operations
from sim.trace import FULL_SPEED_PPM, Stage, StageInterval, Trace, Verb
from tests.machine.pods import DAY_US

SCENARIO = """\
name: warm
pod: {cubes: 8, grid: 2x2x2}
failures:
  host: {failure_rate: 1 %/day, availability: 99 %}
  ocs: {failure_rate: 0.5 %/day, repair: {kind: exponential, mean: 24 h}}
jobs:
  streams: [{load: 50 %, slices: {kind: shares, shares: {4x4x8: 1, 4x4x4: 2}}, durations: {mean: 9 h, cv: 1}}]
  always: {4x4x8: 1}
checkpoint: {kind: fixed, interval: 5 h, save: 60 s}
study: {operations: {horizon: 12 d, replications: 1}}
run: {seed: 3}
"""
WARMUPS_D = (0.0, 0.37, 3.0, 7.5)


def setup_of(*overrides: str) -> Setup:
    return build_setup(scenario_of(parse_document(SCENARIO.encode(), "warm.yaml"), overrides))


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Twelve days in which jobs are lost, rerouted and come back."""
    return play_operations(setup_of(), 0)[1]


def stages_of(trace: Trace) -> dict[int, list[StageInterval]]:
    """The stages of every job in order."""
    by_job: dict[int, list[StageInterval]] = {}
    for interval in trace.stage_intervals():
        by_job.setdefault(interval.job, []).append(interval)
    return {job: sorted(own, key=lambda one: one.start_us) for job, own in sorted(by_job.items())}


def running_pieces(trace: Trace, job: int, stages: list[StageInterval]) -> Iterator[tuple[int, int, int, bool]]:
    """Every stretch of running of a job: start, end, speed, and whether a later loss undid it."""
    pieces = [(one.start_us, one.end_us, one.speed_ppm, False) for one in stages if one.stage is Stage.RUNNING]
    for time_us, verb, _, _, of, _, undone_us in trace.rows:
        if verb != Verb.LOSE or of != job:
            continue
        done, pieces = pieces, []
        for start_us, end_us, speed, lost in reversed(done):
            cut_us = end_us
            if end_us <= time_us and not lost and undone_us:
                cut_us = max(start_us, end_us - undone_us)
                undone_us -= end_us - cut_us
            pieces += [(cut_us, end_us, speed, True)] if cut_us < end_us else []
            pieces += [(start_us, cut_us, speed, lost)] if start_us < cut_us else []
        pieces.reverse()
    yield from pieces


@pytest.mark.parametrize("warmup_d", WARMUPS_D)
def test_time_of_jobs_inside_the_window(trace: Trace, warmup_d: float) -> None:
    """Goal: job time counts where it lies, whoever arrived when. Method: every stretch of running of every job cut at
    the warm-up by hand gives useful, slowed and lost time, the ETTR, and the same chip-hours; accounts add up."""
    warmup_us = round(warmup_d * DAY_US)
    ledgers = {ledger.job: ledger for ledger in job_ledgers(trace, warmup_us)}
    chips_us: Counter[Use] = Counter()
    trained_us = 0
    for job, stages in stages_of(trace).items():
        ledger, ran_us = ledgers[job], next((one.start_us for one in stages if one.stage is Stage.RUNNING), None)
        assert ledger.unaccounted_us == 0
        spent: Counter[Use] = Counter()
        for start_us, end_us, speed_ppm, lost in running_pieces(trace, job, stages):
            inside_us = max(0, end_us - max(start_us, warmup_us))
            spent[Use.LOST] += inside_us if lost else 0
            spent[Use.SLOWED] += 0 if lost else inside_us * (FULL_SPEED_PPM - speed_ppm)
            spent[Use.USEFUL] += 0 if lost else inside_us
        spent[Use.SLOWED] //= FULL_SPEED_PPM
        spent[Use.USEFUL] -= spent[Use.SLOWED]
        assert {use: ledger.us[use] for use in RUN_USES} == {use: spent[use] for use in RUN_USES}
        for use in RUN_USES:
            chips_us[use] += ledger.chips * spent[use]
        if ran_us is not None:
            trained_us += ledger.chips * max(0, stages[-1].end_us - max(ran_us, warmup_us))
    summary = summary_of(trace, list(ledgers.values()), warmup_us)
    assert summary.ettr == pytest.approx(chips_us[Use.USEFUL] / trained_us, rel=1e-12)
    held = chip_us_by_use(trace, warmup_us)
    for use in RUN_USES:
        assert held[use] == pytest.approx(chips_us[use], abs=len(ledgers) * 128), use


@pytest.mark.parametrize("warmup_d", WARMUPS_D)
def test_failures_losses_and_recoveries_after_the_warm_up(trace: Trace, warmup_d: float) -> None:
    """Goal: events count when they fall after it. Method: failures, and recoveries that begin with one, by hand."""
    warmup_us = round(warmup_d * DAY_US)
    failed = Counter(row[2] for row in trace.rows if row[1] == "fail" and row[0] >= warmup_us)
    spent: Counter[Stage] = Counter()
    lost = 0
    for stages in stages_of(trace).values():
        in_recovery, before = False, Stage.WAITING
        for one in stages:
            if one.stage is Stage.DETECTING and before in (Stage.RUNNING, Stage.CHECKPOINTING):
                in_recovery = one.start_us >= warmup_us
                lost += in_recovery
            in_recovery = in_recovery and one.stage is not Stage.RUNNING
            spent[one.stage] += one.end_us - one.start_us if in_recovery else 0
            before = one.stage
    ledgers = job_ledgers(trace, warmup_us)
    blast = blast_radius(trace, ledgers, warmup_us)
    assert {kind: one.failures for kind, one in blast.items()} == dict(failed)
    assert sum(one.jobs for one in blast.values()) == summary_of(trace, ledgers, warmup_us).losses == lost > 0
    assert {stage: us for stage, us in recovery_us_by_stage(trace, warmup_us).items() if us} == {
        stage: us for stage, us in spent.items() if us
    }


def test_counts_waits_and_slowdowns_are_by_arrival(trace: Trace) -> None:
    """Goal: a job is whole or not there. Method: jobs that arrive after three days, each with its whole wait and its
    whole slowdown, from the ledgers without a warm-up."""
    warmup_us = 3 * DAY_US
    whole = [one for one in job_ledgers(trace) if one.arrived_us >= warmup_us]
    summary = summary_of(trace, job_ledgers(trace, warmup_us), warmup_us)
    assert (summary.arrived, summary.finished) == (len(whole), sum(one.finished_us is not None for one in whole))
    assert summary.wait_s == pytest.approx(sum(one.waited_us for one in whole) / len(whole) / 1e6)
    slowdowns = [one.slowdown for one in whole if one.slowdown is not None]
    assert summary.slowdown == pytest.approx(sum(slowdowns) / len(slowdowns))


def test_jobs_always_in_demand_have_an_ettr() -> None:
    """Goal: jobs that are there from the start are measured too. Method: nothing else, with a warm-up; waits are of
    nobody, so blank."""
    measures = sample_operations(setup_of("jobs.streams=null", "run.warmup=2 d"), 0).measures
    assert 0.5 < measures["ettr"] < 1
    assert measures["jobs_arrived"] == 0
    assert math.isnan(measures["wait_mean_s"])
