"""The study `fleet`: several pods behind one queue, each played by itself.

A job is placed on a pod by a stated policy when it arrives (`workloads.jobs.fleet`) and stays there. So pods do not
meet again, are tasks of their own, and the result does not depend on who plays them. The bad luck of pod k is that of
the streams `pod.k.`, whatever the number of pods and the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.build import Setup, seconds_to_us
from sim.executors import map_tasks
from sim.histories import US_PER_S
from sim.job_plans import plan_jobs
from sim.measure_names import FLEET_MEASURES
from sim.metrics.chip_hours import chip_us_by_use
from sim.metrics.ledger import job_ledgers
from sim.metrics.measure_rows import rows_of_measures
from sim.metrics.uses import Use
from sim.studies.job_plays import play_jobs
from sim.trace import Trace
from workloads.jobs.fleet import placed_on_pods
from workloads.jobs.job import Job

Row = dict[str, Any]
US_PER_DAY = 86_400 * US_PER_S
NOT_HELD = (Use.DRAINED, Use.DOWN, Use.STRANDED, Use.SPARE, Use.BLOCKED, Use.FRAGMENTED, Use.EMPTY, Use.UNACCOUNTED)


@dataclass(frozen=True, kw_only=True)
class FleetPodSample:
    """One pod in one replication, after the warm-up: whole chip-microseconds and jobs, so that sums are exact."""

    replication: int
    pod: int
    chip_us: int
    held_us: int
    useful_us: int
    unaccounted_us: int
    arrived: int
    rejected: int
    finished: int
    waited_us: int
    losses: int


def fleet_jobs(setup: Setup, replication: int) -> list[list[Job]]:
    """The jobs of each pod, in order of arrival, numbered through the whole fleet."""
    scenario = setup.scenario
    study = scenario.study.fleet
    assert study is not None
    streams, horizon_us = setup.streams(replication), seconds_to_us(study.horizon)
    jobs = plan_jobs(scenario, setup.pod, setup.fabric, streams, horizon_us, pods=study.pods).jobs
    by_pod: list[list[Job]] = [[] for _ in range(study.pods)]
    for job, pod in zip(jobs, placed_on_pods(jobs, study.pods, setup.pod.chips, study.placement), strict=True):
        by_pod[pod].append(job)
    return by_pod


def play_pod(setup: Setup, replication: int, pod: int, jobs: Sequence[Job]) -> Trace:
    """The log of one pod with its jobs."""
    study, streams = setup.scenario.study.fleet, setup.streams(replication).of(f"pod.{pod}.")
    assert study is not None
    return play_jobs(setup, jobs, replication, seconds_to_us(study.horizon), streams=streams)


def sample_pod(setup: Setup, replication: int, pod: int, jobs: Sequence[Job]) -> FleetPodSample:
    """Play one pod and measure it after the warm-up (a task)."""
    warmup_us = seconds_to_us(setup.scenario.run.warmup)
    trace = play_pod(setup, replication, pod, jobs)
    uses, ledgers = chip_us_by_use(trace, warmup_us), job_ledgers(trace, warmup_us)
    own = [ledger for ledger in ledgers if ledger.arrived_us >= warmup_us]
    whole = sum(uses.values())
    return FleetPodSample(
        replication=replication,
        pod=pod,
        chip_us=whole,
        held_us=whole - sum(uses[use] for use in NOT_HELD),
        useful_us=uses[Use.USEFUL],
        unaccounted_us=uses[Use.UNACCOUNTED],
        arrived=len(own),
        rejected=sum(bool(ledger.rejected) for ledger in own),
        finished=sum(ledger.finished_us is not None for ledger in own),
        waited_us=sum(ledger.waited_us for ledger in own if not ledger.rejected),
        losses=sum(ledger.losses for ledger in ledgers),
    )


def rows_of_fleet(
    setup: Setup, executor: Executor | None, advance: Callable[[int, str], None], host_availability: float
) -> dict[str, list[Row]]:
    """Rows of the tables of the study at one sweep point; none where it is not asked for."""
    study = setup.scenario.study.fleet
    if study is None:
        return {}
    tasks = [
        (setup, replication, pod, jobs)
        for replication in range(study.replications)
        for pod, jobs in enumerate(fleet_jobs(setup, replication))
    ]
    samples: list[FleetPodSample] = []
    for sample in map_tasks(executor, sample_pod, tasks):
        samples.append(sample)
        advance(1, "pods behind one queue")
    days = (study.horizon - setup.scenario.run.warmup) / 86_400
    place = {"fabric": setup.fabric.value, "host_availability": host_availability}
    replications = [_whole([one for one in samples if one.replication == number], days)
                    for number in range(study.replications)]  # fmt: skip
    measures = rows_of_measures(FLEET_MEASURES, lambda name: [each[name] for each in replications])
    return {
        "fleet": [place | {"pods": study.pods} | row for row in measures],
        "fleet_pods": [place | row for row in _pod_rows(samples, study.pods)],
    }


def _whole(samples: Sequence[FleetPodSample], days: float) -> dict[str, float]:
    """Measures of the whole fleet in one replication."""
    chip_us, arrived = sum(one.chip_us for one in samples), sum(one.arrived for one in samples)
    rejected = sum(one.rejected for one in samples)
    shares = [one.held_us / one.chip_us for one in samples]
    stayed = arrived - rejected
    return {
        "fleet_utilisation": sum(one.held_us for one in samples) / chip_us,
        "fleet_useful_share": sum(one.useful_us for one in samples) / chip_us,
        "fleet_wait_mean_s": sum(one.waited_us for one in samples) / US_PER_S / stayed if stayed else float("nan"),
        "fleet_completion": sum(one.finished for one in samples) / stayed if stayed else float("nan"),
        "fleet_jobs_arrived": float(arrived),
        "fleet_jobs_rejected": float(rejected),
        "fleet_losses_per_day": sum(one.losses for one in samples) / days,
        "fleet_spread": max(shares) - min(shares),
    }


def _pod_rows(samples: Sequence[FleetPodSample], pods: int) -> list[Row]:
    """A row per pod: means over replications; waits over all its jobs."""
    rows = []
    for pod in range(pods):
        own = [one for one in samples if one.pod == pod]
        stayed = sum(one.arrived - one.rejected for one in own)
        rows.append(
            {
                "pod": pod,
                "jobs": sum(one.arrived for one in own) / len(own),
                "utilisation": float(np.mean([one.held_us / one.chip_us for one in own])),
                "useful_share": float(np.mean([one.useful_us / one.chip_us for one in own])),
                "wait_mean_s": sum(one.waited_us for one in own) / US_PER_S / stayed if stayed else None,
                "losses": sum(one.losses for one in own) / len(own),
            }
        )
    return rows
