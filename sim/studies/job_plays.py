"""Jobs played on the machine of a setup, with every policy of its scenario: what the studies of jobs have in common."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from sim.build import Setup
from sim.histories import Lives
from sim.processes.failures import Source
from sim.processes.operations import ReplicaDelays, simulate_operations
from sim.replay_tables import STRETCHES_MAX
from sim.streams import Streams
from sim.trace import Trace
from workloads.jobs.job import Job


def sources_of(setup: Setup, replication: int, streams: Streams) -> list[Source]:
    """All that fails: populations by their laws, with the luck of `streams`, and the outages of logs."""
    return [*(Lives(mode, streams) for mode in setup.modes), *setup.logged(replication)]


def play_jobs(
    setup: Setup,
    jobs: Sequence[Job],
    replication: int,
    horizon_us: int,
    *,
    streams: Streams | None = None,
    services: Mapping[str, ReplicaDelays] | None = None,
    serving_cubes: int = 0,
    check_invariants: bool = False,
) -> Trace:
    """The log of one replication with these jobs, which are in order of arrival.

    `streams` are those of the replication unless others are given; for `services` and `serving_cubes` see
    `simulate_operations`.
    """
    scenario, streams = setup.scenario, setup.streams(replication) if streams is None else streams
    return simulate_operations(
        setup.pod,
        setup.fabric,
        jobs,
        sources_of(setup, replication, streams),
        health=setup.health,
        repair=scenario.repair,
        recovery=scenario.recovery,
        checkpoint=scenario.checkpoint,
        spares=scenario.spares,
        queue=scenario.scheduling.queue,
        placement=scenario.scheduling.placement,
        defragmentation=scenario.scheduling.defragmentation,
        others=scenario.failures.others,
        maintenance=scenario.maintenance,
        services=services,
        serving_cubes=serving_cubes,
        streams=streams,
        horizon_us=horizon_us,
        check_invariants=check_invariants,
    )


def first_stages(trace: Trace) -> Iterator[tuple[int, str, int, int]]:
    """Job, stage, start and end in us of the first `STRETCHES_MAX` stretches of stages."""
    for interval in itertools.islice(trace.stage_intervals(), STRETCHES_MAX):
        yield interval.job, interval.stage.value, interval.start_us, interval.end_us
