"""Random small pods in operation: anything may fail; then failures stop and every job must finish.

Replay one case: `python -m tests.machine.test_operations_swarm NUMBER`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sim.condition import KINDS
from sim.histories import US_PER_S, ComponentKind, draw_outages
from sim.job_policies import CheckpointPolicy, FixedCheckpoints, NoCheckpoints, SparesPolicy, YoungCheckpoints
from sim.lifetimes import Exponential
from sim.metrics.chip_hours import chip_us_by_use
from sim.metrics.ledger import job_ledgers
from sim.metrics.uses import RUN_USES, Use
from sim.other_failures import (
    BadHosts,
    FlappingLinks,
    OtherFailures,
    PodEvents,
    PowerDomainEvents,
    SilentCorruption,
    SlowHosts,
)
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.failures import Source
from sim.processes.operations import simulate_operations
from sim.repair_policies import (
    FalseAlarms,
    MaintenancePolicy,
    Parts,
    PartsOf,
    Preflight,
    PreflightTest,
    Retirement,
    Rolling,
    Screening,
    TwoStage,
)
from sim.streams import Streams
from sim.trace import Trace, Verb
from tests.machine.pods import DAY_US, draws
from topology.fabric import Fabric
from topology.pod import AnyPod, FlatPod, Pod
from workloads.jobs.defragmentation import MakeRoom, NoDefragmentation
from workloads.jobs.job import Job, JobKind, make_job
from workloads.jobs.queue_policies import Easy, FairShare, Fifo, Priority, ShortestFirst
from workloads.jobs.queueing import QueuePolicy

LIFE_H = {
    ComponentKind.HOST: (90.0, 6.0),
    ComponentKind.RACK: (120.0, 6.0),
    ComponentKind.IN_RACK_LINK: (6000.0, 6.0),
    ComponentKind.OPTICAL_END: (6000.0, 6.0),
    ComponentKind.OCS: (400.0, 6.0),
}
PROFILES_DRAWN = ("", "", "tight", "wide", "quick")
CHECKPOINTS: tuple[CheckpointPolicy, ...] = (
    NoCheckpoints(),
    FixedCheckpoints(interval=900, save=30),
    FixedCheckpoints(interval=900, save=300, stall=5, mode="asynchronous"),
    FixedCheckpoints(interval=60, save=0),
    YoungCheckpoints(save=45),
    YoungCheckpoints(save=100, stall=0, mode="asynchronous"),
)
QUEUES: tuple[QueuePolicy, ...] = (Fifo(), ShortestFirst(), Priority(), FairShare(), Easy())
SPARES = (SparesPolicy(), SparesPolicy(kind="cold", cubes=1), SparesPolicy(kind="warm", cubes=1),
          SparesPolicy(kind="hot", cubes=1))  # fmt: skip
DEFRAGMENTATION = (NoDefragmentation(), MakeRoom(), MakeRoom(least_wait=0, least_gain=0))
QUIET_US, HORIZON_US = 2 * DAY_US, 40 * DAY_US


def case(number: int) -> dict[str, Any]:
    """Everything that `simulate_operations` needs, drawn from a number."""
    rng = np.random.default_rng(number)

    def one(*of: Any) -> Any:
        return of[int(rng.integers(len(of)))]

    cubes = one(1, 2, 3, 4, 6, 8)
    pod: AnyPod = FlatPod(hosts=16 * cubes) if rng.random() < 0.1 else Pod(cubes=cubes)
    fabric = Fabric.ANY_HOST if isinstance(pod, FlatPod) else one(*Fabric)
    failing = {ComponentKind.HOST: LIFE_H[ComponentKind.HOST]}
    if isinstance(pod, Pod):
        failing = {kind: LIFE_H[kind] for kind in KINDS if rng.random() < 0.6}
    sources: list[Source] = []
    for lives in draws(pod, number, failing):
        drawn = draw_outages(lives, QUIET_US)
        sources.append(replace(drawn, horizon_us=HORIZON_US, end_us=np.minimum(drawn.end_us, QUIET_US)))
    sizes = [chips for chips in (2, 4, 16, 32, 64, 64, 128, 128, 192, 256, 512) if chips <= pod.hosts * 4]
    arrivals = np.sort(rng.integers(0, DAY_US, size=int(rng.integers(1, 20))))
    jobs = [
        make_job(
            identity, pod, one(*sizes), reroute_opt_in=bool(rng.random() < 0.7), kind=one(*JobKind),
            arrival_us=int(arrival_us) if rng.random() < 0.9 else int(arrivals[0]), priority=one(0, 0, 1, 2),
            work_us=round(one(0.001, 600, 7200, 40_000, 90_000) * US_PER_S), owner=one("a", "b"),
            profile=PROFILES_DRAWN[(number + identity) % len(PROFILES_DRAWN)],
        )
        for identity, arrival_us in enumerate(arrivals.tolist())
    ]  # fmt: skip
    return {
        "pod": pod,
        "fabric": fabric,
        "jobs": sorted(jobs, key=lambda job: (job.arrival_us, job.id)),
        "sources": sources,
        "health": HealthPolicy(detection=one(0.0, 60.0, 3600.0)),
        "repair": RepairPolicy(),
        "recovery": RecoveryPolicy(
            evict=one(0.0, 30.0), circuits=one(0.0, 10.0), preflight=one(0.0, 180.0), restore=one(0.0, 600.0, 3600.0),
            replace=one("replace_one", "move_all"), failure=one(0.0, 0.0, 0.4), hold=one(0.0, 0.0, 1800.0),
        ),
        "checkpoint": one(*CHECKPOINTS),
        "spares": one(*SPARES) if cubes > 2 else SparesPolicy(),
        "queue": one(*QUEUES),
        "runs_at_start": one(False, True),
        "defragmentation": one(*DEFRAGMENTATION),
        "streams": Streams(number, 0),
        "horizon_us": HORIZON_US,
        "check_invariants": True,
    }  # fmt: skip


def everything_goes_wrong(number: int, pod: Pod) -> dict[str, Any]:
    """What else may happen beside the failures of `case`, for three days."""
    rng = np.random.default_rng([number, 1])
    often = 1 / (200 * 3600)

    def maybe(what: Any) -> Any:
        return what if rng.random() < 0.5 else None

    preflight = Preflight(end_to_end=PreflightTest(time=120, coverage=0.7, false_alarms=0.05))
    cubes, switches = Rolling(every=2 * 86400, length=1800, notice=600), Rolling(every=2 * 86400, length=900, notice=60)
    return {
        "horizon_us": 3 * DAY_US,
        "sources": draws(pod, number, {kind: LIFE_H[kind] for kind in KINDS if rng.random() < 0.6}),
        "health": HealthPolicy(
            false_alarms=maybe(FalseAlarms(rate=often)), preflight=maybe(preflight),
            screening=maybe(Screening(every=7200)),
            accept_degraded=bool(rng.random() < 0.5),
        ),
        "repair": RepairPolicy(
            crews=maybe(2), two_stage=maybe(TwoStage()), retire=maybe(Retirement(replaced_after=3600)),
            parts=maybe(PartsOf(host=Parts(stock=1, lead_time=7200))) or PartsOf(),
        ),
        "others": OtherFailures(
            bad_hosts=maybe(BadHosts()), power_domain=maybe(PowerDomainEvents(rate=often, racks=2)),
            pod=maybe(PodEvents(rate=often)), slow_hosts=maybe(SlowHosts(rate=often)),
            corruption=maybe(SilentCorruption(rate=often, noticed_after=Exponential(mean=4 * 3600))),
            flapping_in_rack_links=maybe(FlappingLinks(rate=often / 20)),
            flapping_optical_ends=maybe(FlappingLinks(rate=often / 20)),
        ),
        "maintenance": MaintenancePolicy(cubes=maybe(cubes), switches=maybe(switches)),
    }  # fmt: skip


def check(trace: Trace, jobs: list[Job], *, finished: bool = True) -> None:
    """Chip-hours and ledgers add up exactly, to each other too; every job that was not rejected has `finished`."""
    for warmup_us in (0, DAY_US // 2):
        uses = chip_us_by_use(trace, warmup_us)
        assert uses[Use.UNACCOUNTED] == 0
        assert min(uses.values()) >= 0
        ledgers = job_ledgers(trace, warmup_us)
        assert all(ledger.unaccounted_us == 0 and min(ledger.us.values()) >= 0 for ledger in ledgers)
        running = sum(ledger.chips * ledger.us[use] for ledger in ledgers for use in RUN_USES)
        assert running == sum(uses[use] for use in RUN_USES)
    ledgers = job_ledgers(trace)
    assert [ledger.job for ledger in ledgers] == sorted(job.id for job in jobs)
    work = {job.id: job.work_us for job in jobs}
    for ledger in ledgers:
        if finished:
            assert ledger.rejected or ledger.finished_us is not None, f"job {ledger.job} never finished"
        if ledger.finished_us is not None:
            assert -1 <= ledger.us[Use.USEFUL] - (work[ledger.job] or 0) <= 60, "what was useful is the work"


def play(number: int) -> None:
    """One case, to its end, and again for three days with all that can go wrong beside it."""
    everything = case(number)
    jobs, pod = everything["jobs"], everything["pod"]
    check(simulate_operations(**everything), jobs)
    if isinstance(pod, Pod):
        check(simulate_operations(**(everything | everything_goes_wrong(number, pod))), jobs, finished=False)


def crowded(number: int) -> dict[str, Any]:
    """A case on a cabled pod of eight cubes with thirty jobs at once, moved for each other at the first occasion."""
    pod = Pod(cubes=8, grid=(1, 2, 4))
    rng = np.random.default_rng([number, 2])
    sizes = (16, 32, 64, 64, 64, 128, 128, 256)
    jobs = [
        make_job(
            identity, pod, sizes[int(rng.integers(len(sizes)))], arrival_us=int(rng.integers(0, DAY_US)),
            work_us=round(rng.lognormal(9, 1.5) * US_PER_S), priority=int(rng.integers(3)),
            reroute_opt_in=bool(rng.random() < 0.7),
        )
        for identity in range(30)
    ]  # fmt: skip
    kinds = (ComponentKind.HOST, ComponentKind.RACK, ComponentKind.IN_RACK_LINK)
    return case(number) | {
        "pod": pod,
        "fabric": (Fabric.STATIC_CONTIGUOUS, Fabric.STATIC_ALIGNED)[number % 2],
        "jobs": sorted(jobs, key=lambda job: (job.arrival_us, job.id)),
        "sources": draws(pod, number, {kind: LIFE_H[kind] for kind in kinds}),
        "spares": SPARES[number % 3 % 2],
        "defragmentation": MakeRoom(least_wait=0, least_gain=0),
        "checkpoint": FixedCheckpoints(interval=3600, save=300),
        "horizon_us": 4 * DAY_US,
    }


def play_crowded(number: int) -> int:
    """A crowded case, with failures only, and with all that can go wrong: how many jobs were asked to move."""
    everything = crowded(number)
    moved = 0
    for more in ({}, everything_goes_wrong(number, everything["pod"])):
        trace = simulate_operations(**(everything | more))
        check(trace, everything["jobs"], finished=False)
        moved += sum(row[1] == Verb.MOVE.value for row in trace.rows)
    return moved


def run_cases(numbers: range) -> None:
    for number in numbers:
        try:
            play(number)
        except Exception as problem:
            problem.add_note(f"replay: python -m tests.machine.test_operations_swarm {number}")
            raise


def test_swarm_in_operation() -> None:
    """Goal: safety under any faults, exact sums, then liveness. Method: 40 random cases, all invariants after each
    verb; failures stop after two days and every job that fits the pod has finished by the horizon."""
    run_cases(range(40))


def test_swarm_of_movers() -> None:
    """Goal: moves under any faults break nothing. Method: 8 crowded cases, invariants after each verb; jobs move."""
    assert sum(play_crowded(number) for number in range(8)) > 5


@pytest.mark.slow
def test_large_swarm_of_movers() -> None:
    """Goal: the same, 100 more times. Method: as above."""
    assert sum(play_crowded(number) for number in range(8, 108)) > 100


@pytest.mark.slow
def test_large_swarm_in_operation() -> None:
    """Goal: the same, 400 more times. Method: as above."""
    run_cases(range(40, 440))


if __name__ == "__main__":
    play(int(sys.argv[1]))
