"""The study `fleet`: several pods, with queues of their own and behind one queue.

With queues of their own a job is placed on a pod by a stated policy when it arrives (`workloads.jobs.fleet`) and stays
there. So pods do not meet again, are tasks of their own, and the result does not depend on who plays them. Behind one
queue (`sim.processes.one_queue`) all pods are on one clock: a replication is one task. The bad luck of pod k is that of
the streams `pod.k.`, whatever the number of pods, the policy and the queues: the two are compared pair by pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.build import Setup, seconds_to_us
from sim.executors import map_tasks
from sim.histories import US_PER_S
from sim.job_plans import plan_jobs
from sim.measure_names import FLEET_MEASURES, QUEUE_MEASURES
from sim.metrics.chip_hours import chip_us_by_use
from sim.metrics.ledger import job_ledgers
from sim.metrics.measure_rows import rows_of_measures
from sim.metrics.uses import Use
from sim.studies.job_plays import play_jobs, play_one_queue
from sim.trace import Trace, Verb
from workloads.jobs.fleet import placed_on_pods
from workloads.jobs.job import Job

Row = dict[str, Any]
FleetTask = tuple[Setup, int, int, Sequence[Job]]
"""Setup, replication, number of a pod or `ALL_PODS`, and the jobs that arrive there."""
NOT_HELD = (Use.DRAINED, Use.DOWN, Use.STRANDED, Use.SPARE, Use.BLOCKED, Use.FRAGMENTED, Use.EMPTY, Use.UNACCOUNTED)
HOUR_S = 3600.0
WAITS_S = (
    0.0, 60.0, 300.0, 900.0, 1800.0, *(hours * HOUR_S for hours in (1, 2, 4, 8, 12, 18, 24, 36, 48, 72, 96, 120, 168))
)  # fmt: skip
"""Waits at which their distribution is told."""
ALL_PODS = -1
"""In place of the number of a pod: all of them, behind one queue."""


@dataclass(frozen=True, kw_only=True)
class FleetPodSample:
    """One pod in one replication, after the warm-up: whole chip-microseconds, so that sums are exact."""

    chip_us: int
    held_us: int
    useful_us: int
    unaccounted_us: int
    losses: int


@dataclass(frozen=True, kw_only=True)
class FleetSample:
    """Pods of one replication (one, or all behind one queue), and the jobs that arrived there after the warm-up.

    `waits_us`: from arrival to the first slice, or to the horizon, of all but those rejected; `moves`: jobs that went
    on on another pod.
    """

    replication: int
    pod: int
    pods: tuple[FleetPodSample, ...]
    arrived: int
    rejected: int
    finished: int
    waits_us: tuple[int, ...]
    moves: int = 0

    @property
    def waited_us(self) -> int:
        """All waits together."""
        return sum(self.waits_us)


def jobs_of_fleet(setup: Setup, replication: int) -> tuple[Job, ...]:
    """All jobs, in order of arrival."""
    scenario = setup.scenario
    study = scenario.study.fleet
    assert study is not None
    streams, horizon_us = setup.streams(replication), seconds_to_us(study.horizon)
    return plan_jobs(scenario, setup.pod, setup.fabric, streams, horizon_us, pods=study.pods).jobs


def jobs_by_pod(setup: Setup, jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs of each pod with a queue of its own, in order of arrival, numbered through the whole fleet."""
    study = setup.scenario.study.fleet
    assert study is not None
    by_pod: list[list[Job]] = [[] for _ in range(study.pods)]
    for job, pod in zip(jobs, placed_on_pods(jobs, study.pods, setup.pod.chips, study.placement), strict=True):
        by_pod[pod].append(job)
    return by_pod


def play_pod(setup: Setup, replication: int, pod: int, jobs: Sequence[Job]) -> Trace:
    """The log of one pod with its jobs."""
    study, streams = setup.scenario.study.fleet, setup.streams(replication).of(f"pod.{pod}.")
    assert study is not None
    return play_jobs(setup, jobs, replication, seconds_to_us(study.horizon), streams=streams)


def sample_fleet(setup: Setup, replication: int, pod: int, jobs: Sequence[Job]) -> FleetSample:
    """Play one pod, or `ALL_PODS` behind one queue, and measure it after the warm-up (a task)."""
    if pod == ALL_PODS:
        return sample_one_queue(setup, replication, jobs)
    warmup_us = seconds_to_us(setup.scenario.run.warmup)
    trace = play_pod(setup, replication, pod, jobs)
    own = [ledger for ledger in job_ledgers(trace, warmup_us) if ledger.arrived_us >= warmup_us]
    return FleetSample(
        replication=replication,
        pod=pod,
        pods=(_pod_sample(trace, warmup_us),),
        arrived=len(own),
        rejected=sum(bool(ledger.rejected) for ledger in own),
        finished=sum(ledger.finished_us is not None for ledger in own),
        waits_us=tuple(ledger.waited_us for ledger in own if not ledger.rejected),
    )


def sample_one_queue(setup: Setup, replication: int, jobs: Sequence[Job]) -> FleetSample:
    """Play all pods behind one queue and measure them after the warm-up."""
    study, warmup_us = setup.scenario.study.fleet, seconds_to_us(setup.scenario.run.warmup)
    assert study is not None
    assert study.one_queue is not None
    horizon_us = seconds_to_us(study.horizon)
    traces, log = play_one_queue(setup, jobs, replication, study.pods, study.one_queue, horizon_us)
    stayed = [job for job in jobs if warmup_us <= job.arrival_us < horizon_us and job.id not in log.rejected]
    rejected = sum(warmup_us <= job.arrival_us for job in jobs if job.id in log.rejected)
    finished = {row[4] for trace in traces for row in trace.rows if row[1] == Verb.FINISH}
    return FleetSample(
        replication=replication,
        pod=ALL_PODS,
        pods=tuple(_pod_sample(trace, warmup_us) for trace in traces),
        arrived=len(stayed) + rejected,
        rejected=rejected,
        finished=sum(job.id in finished for job in stayed),
        waits_us=tuple(log.started_us.get(job.id, horizon_us) - job.arrival_us for job in stayed),
        moves=sum(at_us >= warmup_us for at_us in log.moves_us),
    )


def _pod_sample(trace: Trace, warmup_us: int) -> FleetPodSample:
    uses = chip_us_by_use(trace, warmup_us)
    whole = sum(uses.values())
    return FleetPodSample(
        chip_us=whole,
        held_us=whole - sum(uses[use] for use in NOT_HELD),
        useful_us=uses[Use.USEFUL],
        unaccounted_us=uses[Use.UNACCOUNTED],
        losses=sum(ledger.losses for ledger in job_ledgers(trace, warmup_us)),
    )


def fleet_tasks(setup: Setup) -> list[FleetTask]:
    """What there is to play, the longest first: all pods behind one queue, then each by itself."""
    study = setup.scenario.study.fleet
    assert study is not None
    together: list[FleetTask] = []
    alone: list[FleetTask] = []
    for replication in range(study.replications):
        jobs = jobs_of_fleet(setup, replication)
        if study.one_queue is not None:
            together.append((setup, replication, ALL_PODS, jobs))
        alone += [(setup, replication, pod, own) for pod, own in enumerate(jobs_by_pod(setup, jobs))]
    return together + alone


def rows_of_fleet(
    setup: Setup, executor: Executor | None, advance: Callable[[int, str], None], host_availability: float
) -> dict[str, list[Row]]:
    """Rows of the tables of the study at one sweep point; none where it is not asked for."""
    study = setup.scenario.study.fleet
    if study is None:
        return {}
    samples: list[FleetSample] = []
    for sample in map_tasks(executor, sample_fleet, fleet_tasks(setup)):
        samples.append(sample)
        advance(1, "several pods")
    days = (study.horizon - setup.scenario.run.warmup) / 86_400
    place = {"fabric": setup.fabric.value, "host_availability": host_availability}
    by_pod, together = ([one for one in samples if (one.pod == ALL_PODS) is whole] for whole in (False, True))
    own = [
        _measures([one for one in by_pod if one.replication == number], days) for number in range(study.replications)
    ]
    one = [_measures([sample], days) for sample in together]
    return {
        "fleet": [place | {"pods": study.pods} | row for row in _rows(FLEET_MEASURES, own)],
        "fleet_pods": [place | row for row in _pod_rows(by_pod, study.pods)],
        "fleet_queues": [place | {"pods": study.pods} | row for row in _queue_rows(own, one)],
        "fleet_waits": [place | row for row in _wait_rows(by_pod, together)],
    }


def _rows(measures: Mapping[str, tuple[str, str | None]], values: Sequence[Mapping[str, float]]) -> list[Row]:
    return rows_of_measures(measures, lambda name: [each[name] for each in values])


def _queue_rows(own: Sequence[Mapping[str, float]], one: Sequence[Mapping[str, float]]) -> list[Row]:
    """Pods with own queues, behind one, and the paired difference; none without the latter."""
    if not one:
        return []
    less = [
        {name: after[name] - before[name] for name in QUEUE_MEASURES} for before, after in zip(own, one, strict=True)
    ]
    kinds = {"own": own, "one": one, "one_less_own": less}
    return [{"queues": kind} | row for kind, values in kinds.items() for row in _rows(QUEUE_MEASURES, values)]


def _wait_rows(own: Sequence[FleetSample], one: Sequence[FleetSample]) -> Iterator[Row]:
    """Share of jobs, of all replications, that wait longer than each of some times; none without one queue."""
    for kind, samples in {"own": own, "one": one}.items() if one else ():
        waits_s = np.array([wait_us for sample in samples for wait_us in sample.waits_us]) / US_PER_S
        for longer_s in WAITS_S if len(waits_s) else ():
            yield {"queues": kind, "longer_than_s": longer_s, "share": float(np.mean(waits_s > longer_s))}


def _measures(samples: Sequence[FleetSample], days: float) -> dict[str, float]:
    """Measures of the whole fleet in one replication."""
    pods = [pod for sample in samples for pod in sample.pods]
    chip_us, arrived = sum(pod.chip_us for pod in pods), sum(one.arrived for one in samples)
    rejected = sum(one.rejected for one in samples)
    shares = [pod.held_us / pod.chip_us for pod in pods]
    stayed = arrived - rejected
    return {
        "fleet_utilisation": sum(pod.held_us for pod in pods) / chip_us,
        "fleet_useful_share": sum(pod.useful_us for pod in pods) / chip_us,
        "fleet_wait_mean_s": sum(one.waited_us for one in samples) / US_PER_S / stayed if stayed else math.nan,
        "fleet_completion": sum(one.finished for one in samples) / stayed if stayed else math.nan,
        "fleet_jobs_arrived": float(arrived),
        "fleet_jobs_rejected": float(rejected),
        "fleet_losses_per_day": sum(pod.losses for pod in pods) / days,
        "fleet_spread": max(shares) - min(shares),
        "fleet_moves_per_day": sum(one.moves for one in samples) / days,
    }


def _pod_rows(samples: Sequence[FleetSample], pods: int) -> list[Row]:
    """A row per pod: means over replications; waits over all its jobs."""
    rows = []
    for pod in range(pods):
        own = [one for one in samples if one.pod == pod]
        found = [one.pods[0] for one in own]
        stayed = sum(one.arrived - one.rejected for one in own)
        rows.append(
            {
                "pod": pod,
                "jobs": sum(one.arrived for one in own) / len(own),
                "utilisation": float(np.mean([one.held_us / one.chip_us for one in found])),
                "useful_share": float(np.mean([one.useful_us / one.chip_us for one in found])),
                "wait_mean_s": sum(one.waited_us for one in own) / US_PER_S / stayed if stayed else None,
                "losses": sum(one.losses for one in found) / len(own),
            }
        )
    return rows
