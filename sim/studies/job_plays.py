"""Jobs played on the machine of a setup, with every policy of its scenario: what the studies of jobs have in common."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from simpy import Environment

from sim.build import Setup, seconds_to_us
from sim.histories import Lives
from sim.processes.failures import Source
from sim.processes.one_queue import FleetLog, OneQueue
from sim.processes.operations import PodPolicies, ReplicaDelays, simulate_operations, start_pod
from sim.replay_tables import STRETCHES_MAX
from sim.scenario_studies import OneQueueSection
from sim.streams import Streams
from sim.trace import Trace
from workloads.jobs.job import Job
from workloads.jobs.queue_policies import Fifo


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
    `start_pod`.
    """
    streams = setup.streams(replication) if streams is None else streams
    policies = policies_of(setup, streams)
    policies |= {"services": services, "serving_cubes": serving_cubes, "check_invariants": check_invariants}
    sources = sources_of(setup, replication, streams)
    return simulate_operations(setup.pod, setup.fabric, jobs, sources, horizon_us=horizon_us, **policies)


def play_one_queue(
    setup: Setup, jobs: Sequence[Job], replication: int, pods: int, rule: OneQueueSection, horizon_us: int
) -> tuple[list[Trace], FleetLog]:
    """The logs of so many pods behind one queue in one replication, and of the queue. Jobs are in order of arrival."""
    env, started = Environment(), []
    for pod in range(pods):
        streams = setup.streams(replication).of(f"pod.{pod}.")
        sources, policies = sources_of(setup, replication, streams), policies_of(setup, streams)
        started.append(start_pod(env, setup.pod, setup.fabric, jobs, sources, horizon_us=horizon_us, **policies))
    queue = OneQueue(
        env,
        started,
        rule.choice,
        in_order=isinstance(setup.scenario.scheduling.queue, Fifo),
        transfer_us=seconds_to_us(rule.transfer) if rule.elsewhere else None,
    )
    env.process(queue.arrivals([job for job in jobs if job.arrival_us < horizon_us]))
    env.run(until=horizon_us)
    return [pod.trace(jobs, horizon_us) for pod in started], queue.log


def policies_of(setup: Setup, streams: Streams) -> PodPolicies:
    """How the scenario of a setup runs its pod, with the luck of `streams`."""
    scenario = setup.scenario
    return PodPolicies(
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
        streams=streams,
    )


def first_stages(trace: Trace) -> Iterator[tuple[int, str, int, int]]:
    """Job, stage, start and end in us of the first `STRETCHES_MAX` stretches of stages."""
    for interval in itertools.islice(trace.stage_intervals(), STRETCHES_MAX):
        yield interval.job, interval.stage.value, interval.start_us, interval.end_us
