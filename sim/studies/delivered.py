"""The study `delivered`: slices as jobs hold them through failures and recovery, played by SimPy.

`delivered` of a point is the `expected` of its long histories plus the mean over replications of (delivered -
expected) on the same path, half-widths added in quadrature: the raw mean would need far longer runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.build import Setup, replications_of, seconds_to_us
from sim.condition import component_counts
from sim.metrics.availability import time_at_capacity
from sim.metrics.chip_hours import chip_us_by_use
from sim.metrics.intervals import Estimate, mean_estimate, summed
from sim.metrics.jobs import delivered_share
from sim.metrics.ledger import job_ledgers
from sim.metrics.operations import BlastRadius, blast_radius, recovery_us_by_stage
from sim.metrics.pod_story import PodStory, story_of
from sim.metrics.segments import segments_of
from sim.metrics.trace_outages import outages_of_trace
from sim.processes.delivered import jobs_in_demand, simulate_delivered
from sim.replay_tables import STRETCHES_MAX
from sim.scenario import Scenario
from sim.studies.job_plays import first_stages, sources_of
from sim.trace import Stage, Trace

Row = dict[str, Any]
US_PER_HOUR = 3_600_000_000


@dataclass(frozen=True, kw_only=True)
class DeliveredSample:
    """One replication at one slice size: `delivered` and `expected` on the same path, chip-microseconds by use.

    `blast`: what failures of each kind hit; `recovery_us`: time of all recoveries by stage.
    `stages` of the first replication are for the timeline (`first_stages`), and `story`, of one slice size (see
    `replayed_size`), for the replay.
    """

    replication: int
    delivered: float
    expected: float
    chip_us: Mapping[str, int]
    blast: Mapping[str, BlastRadius]
    recovery_us: Mapping[Stage, int]
    stages: tuple[tuple[int, str, int, int], ...] = ()
    story: PodStory | None = None


def play(setup: Setup, slice_chips: int, replication: int, horizon_us: int, *, jobs: int | None = None) -> Trace:
    """The log of one replication: as many slices as the pod can hold, in demand without end."""
    scenario, streams = setup.scenario, setup.streams(replication)
    return simulate_delivered(
        setup.pod,
        setup.fabric,
        slice_chips,
        sources_of(setup, replication, streams),
        health=setup.health,
        repair=scenario.repair,
        recovery=scenario.recovery,
        streams=streams,
        horizon_us=horizon_us,
        jobs=jobs,
    )


def sample_delivered(setup: Setup, slice_chips: int, replication: int) -> DeliveredSample:
    """Play one replication and measure it after the warm-up."""
    study = setup.scenario.study.delivered
    assert study is not None
    warmup_us = seconds_to_us(setup.scenario.run.warmup)
    horizon_us = setup.log_window_us or seconds_to_us(study.horizon)
    trace = play(setup, slice_chips, replication, horizon_us)
    outages = outages_of_trace(trace, component_counts(setup.pod), setup.kinds)
    segments = segments_of(setup.pod, outages, horizon_us, from_us=warmup_us)
    first = replication == 0
    expected = float(time_at_capacity(segments, setup.pod, setup.fabric, slice_chips).samples[0])
    return DeliveredSample(
        replication=replication,
        delivered=delivered_share(trace, warmup_us),
        expected=expected,
        chip_us={use.value: chip_us for use, chip_us in chip_us_by_use(trace, warmup_us).items()},
        blast=blast_radius(trace, job_ledgers(trace, warmup_us), warmup_us),
        recovery_us=recovery_us_by_stage(trace, warmup_us),
        stages=tuple(first_stages(trace)) if first else (),
        story=story_of(trace, STRETCHES_MAX) if first and slice_chips == replayed_size(setup) else None,
    )


def delivered_estimate(samples: Sequence[DeliveredSample], expected: Estimate | None) -> Estimate:
    """The estimate of `delivered`; without long histories (`expected` None) the plain mean with its t-interval."""
    if expected is None:
        return mean_estimate([sample.delivered for sample in samples])
    return summed(expected, mean_estimate([sample.delivered - sample.expected for sample in samples]))


def chip_hour_rows(
    setup: Setup, slice_chips: int, samples: Sequence[DeliveredSample], host_availability: float
) -> list[Row]:
    """Rows of the table `chip_hours`: the mean over replications of every use."""
    rows: list[Row] = []
    total_us = sum(samples[0].chip_us.values())
    for use in samples[0].chip_us:
        mean_us = float(np.mean([sample.chip_us[use] for sample in samples]))
        rows.append(
            {
                "fabric": setup.fabric.value,
                "host_availability": host_availability,
                "slice_chips": slice_chips,
                "use": use,
                "chip_hours": mean_us / US_PER_HOUR,
                "share": mean_us / total_us,
            }
        )
    return rows


def delivered_sizes(scenario: Scenario) -> tuple[int, ...]:
    """Slice sizes of the study, in order; none where it is not asked for."""
    study = scenario.study.delivered
    return () if study is None else study.slice_chips


def delivered_count(scenario: Scenario) -> int:
    """Replications of the study; 0 where it is not asked for."""
    study = scenario.study.delivered
    return 0 if study is None else replications_of(scenario, study.replications)


def replayed_size(setup: Setup) -> int | None:
    """The slice size that the replay shows: the largest of which the pod has room for two, else the smallest.

    None where there is nothing to replay, and beside a pod in operation, which is replayed instead.
    """
    sizes = delivered_sizes(setup.scenario)
    if not sizes or setup.scenario.study.operations is not None:
        return None
    several = [chips for chips in sizes if jobs_in_demand(setup.pod, chips) > 1]
    return max(several, default=min(sizes))


def logged_hosts_up(setup: Setup) -> float:
    """Mean share of hosts that are up in the window of the logs."""
    until_us = setup.log_window_us
    assert until_us is not None
    segments = segments_of(setup.pod, setup.logged(0), until_us)
    return float(segments.hosts_up @ segments.duration_us / (segments.total_us * setup.pod.hosts))
