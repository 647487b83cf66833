"""The study `large_job`: one very large job on flat servers (`sim.large_job`), run by run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.build import Setup
from sim.large_job import LargeJobRun, play_large_job
from sim.measure_names import LARGE_JOB_MEASURES
from sim.metrics.measure_rows import rows_of_measures
from sim.scenario import Scenario

Row = dict[str, Any]


def large_job_count(scenario: Scenario) -> int:
    """Runs of the study; 0 where it is not asked for."""
    study = scenario.study.large_job
    return 0 if study is None else study.replications


def sample_large_job(setup: Setup, replication: int) -> LargeJobRun:
    """One run."""
    study = setup.scenario.study.large_job
    assert study is not None
    return play_large_job(study.job, setup.streams(replication))


def large_job_rows(
    setup: Setup, runs: Sequence[LargeJobRun], host_availability: float, first: int = 0
) -> dict[str, list[Row]]:
    """Rows of the table `large_job`, means over runs with 95 % intervals, and of every run in `replications`.

    `first` is the number of the first of `runs`.
    """
    place = {"fabric": setup.fabric.value, "host_availability": host_availability}
    values = {name: [getattr(run, name.removeprefix("large_job_")) for run in runs] for name in LARGE_JOB_MEASURES}
    means = rows_of_measures(LARGE_JOB_MEASURES, values.__getitem__)
    singles = [
        {"slice_chips": None, "form": form, "replication": number, "value": value}
        for form, own in values.items()
        for number, value in enumerate(own, start=first)
    ]
    return {"large_job": [place | row for row in means], "replications": [place | row for row in singles]}
