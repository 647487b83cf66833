"""The study `large_job`: one very large job on flat servers (`sim.large_job`), run by run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.build import Setup
from sim.large_job import LargeJobRun, play_large_job
from sim.measure_names import LARGE_JOB_MEASURES
from sim.metrics.intervals import mean_estimate

Row = dict[str, Any]


def sample_large_job(setup: Setup, replication: int) -> LargeJobRun:
    """One run."""
    study = setup.scenario.study.large_job
    assert study is not None
    return play_large_job(study.job, setup.streams(replication))


def large_job_rows(setup: Setup, runs: Sequence[LargeJobRun], host_availability: float) -> list[Row]:
    """Rows of the table `large_job`: means over runs with 95 % intervals."""
    rows = []
    for measure, (unit, better) in LARGE_JOB_MEASURES.items():
        estimate = mean_estimate([getattr(run, measure.removeprefix("large_job_")) for run in runs])
        rows.append(
            {
                "fabric": setup.fabric.value,
                "host_availability": host_availability,
                "measure": measure,
                "unit": unit,
                "value": estimate.value,
                "ci_low": estimate.ci_low,
                "ci_high": estimate.ci_high,
                "n": estimate.n,
                "better": better,
            }
        )
    return rows
