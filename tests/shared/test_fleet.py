"""Several pods with queues of their own: policies by hand, one pod as before, the same luck, workers, sums."""

from __future__ import annotations

import numpy as np
import pytest

from sim.build import Setup, build_setup
from sim.metrics.ledger import job_ledgers
from sim.scenario import expand, scenario_of
from sim.simulation import run
from sim.strict_yaml import parse_document
from sim.studies.fleet import jobs_by_pod, jobs_of_fleet, play_pod, sample_fleet
from sim.studies.operations import play_operations
from sim.trace import Verb
from tests.run.cases import bytes_of, differing, loaded
from topology.pod import Pod
from workloads.jobs.fleet import FleetPolicy, Fullest, LeastLoaded, TakingTurns, placed_on_pods
from workloads.jobs.job import Job, make_job

TEXT = """\
name: fleet
pod: {cubes: 4}
failures: {host: {availability: 97 %, repair: {kind: exponential, mean: 10 h}}}
jobs:
  streams:
    - {load: 80 %, slices: {kind: shares, shares: {4x4x4: 3, 4x4x8: 1}}, durations: {mean: 6 h, cv: 1}}
study:
  fleet: {pods: 3, horizon: 6 d, replications: 2}
  operations: {horizon: 6 d}
run: {seed: 4, warmup: 12 h}
"""


def setup_of(*overrides: str) -> Setup:
    """Three pods of four cubes."""
    return build_setup(expand(scenario_of(parse_document(TEXT.encode(), "fleet.yaml"), overrides))[0].scenario)


def fleet_jobs(setup: Setup, replication: int) -> list[list[Job]]:
    """The jobs of each pod."""
    return jobs_by_pod(setup, jobs_of_fleet(setup, replication))


def jobs_of(*asked: tuple[int, int, int]) -> list[Job]:
    """Jobs of (cubes, arrival, work), times in hours."""
    hour_us = 3_600_000_000
    return [
        make_job(number, Pod(cubes=4), 64 * cubes, arrival_us=arrival * hour_us, work_us=work * hour_us)
        for number, (cubes, arrival, work) in enumerate(asked)
    ]


@pytest.mark.parametrize(
    ("policy", "pods"),
    [
        (TakingTurns(), [0, 1, 0, 1, 0]),
        # one cube on pod 0, two beside it; four need the empty pod; at 1 h two fit nowhere: pod 0 has 3 + 4 cube-hours
        # to do, pod 1 has 12; at 8 h both are empty
        (Fullest(), [0, 0, 1, 0, 0]),
        # in cube-hours: 0 and 0; 4 and 0; 4 and 6; at 1 h 19 and 4; at 8 h nothing on either
        (LeastLoaded(), [0, 1, 0, 1, 0]),
    ],
)
def test_policies_by_hand(policy: FleetPolicy, pods: list[int]) -> None:
    """Goal: policies do what they say. Method: two pods of four cubes, five jobs, worked out by hand."""
    jobs = jobs_of((1, 0, 4), (2, 0, 3), (4, 0, 4), (2, 1, 2), (1, 8, 1))
    assert placed_on_pods(jobs, 2, 256, policy) == pods


def test_one_pod_is_a_pod() -> None:
    """Goal: a fleet of one is what a pod in operation is. Method: without failures, every job's ledger on both."""
    setup = setup_of("study.fleet.pods=1", "failures.host=null")
    (jobs,) = fleet_jobs(setup, 0)
    plan, alone = play_operations(setup, 0)
    assert tuple(jobs) == plan.jobs
    assert job_ledgers(play_pod(setup, 0, 0, jobs)) == job_ledgers(alone)


def test_a_pod_has_its_own_luck() -> None:
    """Goal: failures of a pod depend neither on how many pods there are nor on the policy, and differ between pods.
    Method: rows of failures in the logs."""

    def failures(setup: Setup, pod: int) -> list[tuple[int, int]]:
        rows = play_pod(setup, 0, pod, fleet_jobs(setup, 0)[pod]).rows
        return [(row[0], row[3]) for row in rows if row[1] == Verb.FAIL]

    three = failures(setup_of(), 0)
    assert len(three) > 5
    assert three == failures(setup_of("study.fleet.pods=5", "study.fleet.placement={kind: taking_turns}"), 0)
    assert three != failures(setup_of(), 1)


def test_nothing_is_left_over() -> None:
    """Goal: every job is on one pod, every chip-hour in one use. Method: all pods of a replication, counted."""
    setup = setup_of()
    by_pod = fleet_jobs(setup, 1)
    numbers = sorted(job.id for jobs in by_pod for job in jobs)
    assert numbers == list(range(len(numbers)))
    samples = [sample_fleet(setup, 1, pod, jobs) for pod, jobs in enumerate(by_pod)]
    pods = [pod for one in samples for pod in one.pods]
    assert all(one.unaccounted_us == 0 and one.useful_us <= one.held_us <= one.chip_us for one in pods)
    assert {one.chip_us for one in pods} == {256 * (6 * 24 - 12) * 3_600_000_000}


@pytest.mark.slow
def test_least_loaded_waits_less_than_taking_turns() -> None:
    """Goal: a direction that must hold in the mean. Method: both on the same jobs, six months, without failures
    (with them the pods, of which 61 % of the cubes are up, would be overloaded and wait alike)."""

    def waits(kind: str) -> list[float]:
        setup = setup_of(f"study.fleet.placement={{kind: {kind}}}", "failures.host=null", "study.fleet.horizon=30 d")
        found = []
        for replication in range(6):
            samples = [
                sample_fleet(setup, replication, pod, jobs) for pod, jobs in enumerate(fleet_jobs(setup, replication))
            ]
            found.append(sum(one.waited_us for one in samples) / sum(one.arrived for one in samples))
        return found

    longer = np.array(waits("taking_turns")) - np.array(waits("least_loaded"))
    assert longer.mean() > 0
    assert (longer > 0).mean() >= 0.6


def test_results_do_not_depend_on_workers() -> None:
    """Goal: the same bytes, whoever plays the pods. Method: one process against two."""
    text = TEXT.replace("  operations: {horizon: 6 d}\n", "").replace("6 d", "2 d")
    assert differing(bytes_of(run(loaded(text), workers=1)), bytes_of(run(loaded(text), workers=2))) == []
