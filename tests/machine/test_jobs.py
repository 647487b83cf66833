"""Jobs through losses and recovery: the whole log of small cases, microsecond by microsecond."""

from __future__ import annotations

import numpy as np
import pytest

from sim.histories import US_PER_S, ComponentKind, Outages, sorted_outages
from sim.metrics.jobs import ReplicaChange, delivered_share, losses, replica_events
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.delivered import jobs_in_demand, one_failure, simulate_delivered
from sim.streams import Streams
from sim.trace import Stage, Trace, Verb
from topology.errors import InputError
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS, FlatPod, Pod

HORIZON_S = 10_000
Story = list[tuple[str, int, int]]


def down(kind: ComponentKind, *outages: tuple[int, float, float]) -> Outages:
    """Outages (component, start, end) in seconds."""
    return sorted_outages(
        kind,
        max(outage[0] for outage in outages) + 1,
        HORIZON_S * US_PER_S,
        np.array([outage[0] for outage in outages], dtype=np.int64),
        np.array([round(outage[1] * US_PER_S) for outage in outages], dtype=np.int64),
        np.array([round(outage[2] * US_PER_S) for outage in outages], dtype=np.int64),
    )


def run(
    sources: list[Outages],
    *,
    fabric: Fabric = Fabric.RECONFIGURABLE,
    chips: int = 128,
    cubes: int = 5,
    jobs: int | None = 2,
    opt_in: float = 1.0,
    detection_s: float = 60.0,
    **recovery: object,
) -> Trace:
    """A run of 10,000 s on a small pod with the default delays."""
    return simulate_delivered(
        Pod(cubes=cubes),
        fabric,
        chips,
        sources,
        health=HealthPolicy(detection=detection_s),
        repair=RepairPolicy(),
        recovery=RecoveryPolicy(reroute_opt_in=opt_in, **recovery),  # type: ignore[arg-type]
        streams=Streams(1, 0),
        horizon_us=HORIZON_S * US_PER_S,
        jobs=jobs,
        check_invariants=True,
    )


def story(trace: Trace, job: int = 0) -> Story:
    """Stages of a job with their start and end in seconds."""
    return [
        (interval.stage.value, interval.start_us // US_PER_S, interval.end_us // US_PER_S)
        for interval in sorted(trace.stage_intervals(), key=lambda interval: interval.start_us)
        if interval.job == job
    ]


def cubes_of(trace: Trace, job: int = 0) -> list[tuple[int, ...]]:
    """The cubes of all placements of a job, in order of time."""
    return [placed.cubes for placed in trace.placements if placed.job == job]


HOST_DOWN = down(ComponentKind.HOST, (3, 1000, 5000))


def test_a_dead_host_is_replaced_by_a_cube() -> None:
    """Goal: the recovery of the design, stage by stage. Method: host 3 (cube 0) of a two-cube job fails at 1,000 s;
    cube 4 is spare; 60 s detection, 30 s eviction, 10 s circuits, 180 s preflight, 600 s restore; the other job runs
    on."""
    trace = run([HOST_DOWN])
    assert story(trace) == [
        ("running", 0, 1000),
        ("detecting", 1000, 1060),
        ("evicting", 1060, 1090),
        ("reconfiguring", 1090, 1100),
        ("preflight", 1100, 1280),
        ("restoring", 1280, 1880),
        ("running", 1880, HORIZON_S),
    ]
    assert cubes_of(trace) == [(0, 1), (4, 1)]
    assert story(trace, 1) == [("running", 0, HORIZON_S)]
    assert delivered_share(trace) == pytest.approx((2 * HORIZON_S - 880) * 128 / (5 * 64 * HORIZON_S))


def test_only_the_circuits_of_the_replaced_cube_are_touched() -> None:
    """Goal: good cubes keep their light. Method: a ring of two cubes loses one: of 96 circuits all touch it on the long
    axis, on the others 16 close the good cube on itself and stay."""
    trace = run([HOST_DOWN])
    changes = [(row[1], row[6]) for row in trace.rows if row[1] in (Verb.CONNECT, Verb.DISCONNECT) and row[0] > 0]
    assert changes == [("disconnect", 64), ("connect", 64)]


def test_a_static_block_waits_for_the_repair() -> None:
    """Goal: fixed wiring has no replacement. Method: the same failure on a static pod whose other block is taken: the
    job gives its cubes back, waits until the repair at 5,000 s, and starts again without circuits."""
    trace = run([HOST_DOWN], fabric=Fabric.STATIC_ALIGNED)
    assert story(trace) == [
        ("running", 0, 1000),
        ("detecting", 1000, 1060),
        ("evicting", 1060, 1090),
        ("waiting", 1090, 5000),
        ("preflight", 5000, 5180),
        ("restoring", 5180, 5780),
        ("running", 5780, HORIZON_S),
    ]


def test_a_static_job_takes_another_block() -> None:
    """Goal: another block will do. Method: the same with one job: it moves to cubes 2 and 3 at once."""
    trace = run([HOST_DOWN], fabric=Fabric.STATIC_ALIGNED, jobs=1)
    assert cubes_of(trace) == [(0, 1), (2, 3)]
    assert ("running", 1870, HORIZON_S) in story(trace)


def test_move_all_takes_other_cubes() -> None:
    """Goal: the policy decides. Method: `move_all` with one job on five cubes: it goes to cubes 2 and 3; with two jobs
    there are too few others, and the bad cube alone is replaced."""
    assert cubes_of(run([HOST_DOWN], jobs=1, replace="move_all")) == [(0, 1), (2, 3)]
    assert cubes_of(run([HOST_DOWN], jobs=2, replace="move_all")) == [(0, 1), (4, 1)]


def test_without_a_spare_everything_is_given_back() -> None:
    """Goal: waiting jobs hold nothing. Method: four cubes, two jobs: the job that lost a cube queues and its good cube
    is free until the repair."""
    trace = run([HOST_DOWN], cubes=4)
    assert ("waiting", 1090, 5000) in story(trace)
    released = [row[0] // US_PER_S for row in trace.rows if row[1] == Verb.RELEASE]
    assert released == [1090]


def test_a_dead_switch_is_routed_around() -> None:
    """Goal: jobs that opted in keep their cubes. Method: a switch fails from 2,000 to 6,000 s: detection, routes,
    restore, then slowed to 95 % until the repair, without a second loss."""
    trace = run([down(ComponentKind.OCS, (7, 2000, 6000))])
    assert story(trace) == [
        ("running", 0, 2000),
        ("detecting", 2000, 2060),
        ("reconfiguring", 2060, 2070),
        ("restoring", 2070, 2670),
        ("running", 2670, 6000),
        ("running", 6000, HORIZON_S),
    ]
    speeds = [interval.speed_ppm for interval in trace.stage_intervals() if interval.stage is Stage.RUNNING]
    assert sorted(speeds) == [950_000, 950_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000]
    assert len(losses(trace)) == 2, "every whole-cube slice uses every switch"


def test_a_dead_switch_stops_jobs_that_opted_out() -> None:
    """Goal: moving within the pod can not help. Method: opted-out jobs wait for the switch, then start anew; slices of
    less than a cube never notice."""
    trace = run([down(ComponentKind.OCS, (7, 2000, 6000))], opt_in=0.0)
    assert ("waiting", 2090, 6000) in story(trace)
    assert ("running", 6790, HORIZON_S) in story(trace)
    small = run([down(ComponentKind.OCS, (7, 2000, 6000))], opt_in=0.0, chips=16)
    assert story(small) == [("running", 0, HORIZON_S)]


def test_a_dead_optical_end_moves_jobs_that_opted_out() -> None:
    """Goal: for an optical end moving helps. Method: end 5 of cube 1 fails; opted out: cube 1 is replaced by cube 4;
    opted in: the job stays and is slowed; on a static pod an end that no slice uses hurts nobody."""
    dead = down(ComponentKind.OPTICAL_END, (96 + 5, 2000, 6000))
    assert cubes_of(run([dead], opt_in=0.0)) == [(0, 1), (0, 4)]
    rerouted = run([dead])
    assert cubes_of(rerouted) == [(0, 1)]
    assert ("running", 2670, 6000) in story(rerouted)
    assert story(rerouted, 1) == [("running", 0, HORIZON_S)]
    static = run([dead], fabric=Fabric.STATIC_ALIGNED, chips=64, cubes=8)
    assert story(static, 1) == [("running", 0, HORIZON_S)]
    ideal = run([dead], fabric=Fabric.ANY_HOST)
    assert story(ideal) == [("running", 0, HORIZON_S)]


def test_new_slices_avoid_cubes_with_dead_ends() -> None:
    """Goal: placement prefers cubes without dead ends. Method: ends of cubes 0 and 2 are dead from the start: one job
    takes cubes 1 and 3, and a second, with one good cube left, takes a dark one too and runs slowed."""
    dead = down(ComponentKind.OPTICAL_END, (0, 0, 9999), (2 * 96, 0, 9999))
    trace = run([dead])
    assert cubes_of(trace) == [(1, 3)]
    assert cubes_of(trace, 1) == [(0, 4)]
    speed = {interval.job: interval.speed_ppm for interval in trace.stage_intervals() if interval.start_us == 0}
    assert speed == {0: 1_000_000, 1: 950_000}


def test_two_failures_at_one_instant_are_one_loss() -> None:
    """Goal: a loss is one-shot. Method: a rack and a host of the job's other cube fail at the same instant; the job is
    lost once, and both cubes are replaced together."""
    sources = [down(ComponentKind.HOST, (20, 1000, 5000)), down(ComponentKind.RACK, (0, 1000, 5000))]
    trace = run(sources, jobs=1)
    assert cubes_of(trace) == [(0, 1), (2, 3)]
    assert len(losses(trace)) == 1
    without_delays = run(sources, jobs=1, detection_s=0.0, evict=0.0, circuits=0.0, preflight=0.0, restore=0.0)
    assert len(losses(without_delays)) == 1
    assert story(without_delays) == [("running", 0, 1000), ("running", 1000, HORIZON_S)]


def test_a_loss_in_recovery_starts_recovery_again() -> None:
    """Goal: recovery itself can fail. Method: while the job restores on cubes 4 and 1, a host of cube 4 fails."""
    trace = run([down(ComponentKind.HOST, (3, 1000, 5000), (64, 1500, 9000))], jobs=1)
    assert story(trace)[5:8] == [("restoring", 1280, 1880), ("running", 1880, HORIZON_S)]
    hurt = run([down(ComponentKind.HOST, (3, 1000, 5000), (33, 1500, 9000))], jobs=1)
    assert cubes_of(hurt) == [(0, 1), (2, 1), (3, 1)]
    assert story(hurt)[5:8] == [("restoring", 1280, 1500), ("detecting", 1500, 1560), ("evicting", 1560, 1590)]
    assert len(losses(hurt)) == 1


def test_a_replacement_that_is_dead_and_not_known_is_found_out() -> None:
    """Goal: the scheduler acts on what is believed. Method: the spare cube 2 dies at 1,050 s, 40 s before the job takes
    it: the job is placed on it, detects until 1,110 s, and goes on to cube 3."""
    trace = run([down(ComponentKind.HOST, (3, 1000, 5000), (33, 1050, 9000))], jobs=1)
    assert cubes_of(trace) == [(0, 1), (2, 1), (3, 1)]
    assert story(trace)[1:5] == [
        ("detecting", 1000, 1060),
        ("evicting", 1060, 1090),
        ("detecting", 1090, 1110),
        ("evicting", 1110, 1140),
    ]


def test_any_host_replaces_a_host() -> None:
    """Goal: an ideal fabric needs one host. Method: the same failure: the job keeps 31 hosts and takes the next."""
    trace = run([HOST_DOWN], fabric=Fabric.ANY_HOST)
    first, second = (placed.hosts for placed in trace.placements if placed.job == 0)
    assert sorted(second) == [host for host in range(32) if host != 3] + [64]
    assert first == tuple(range(32))
    assert ("running", 1870, HORIZON_S) in story(trace)


def test_a_service_sees_when_replicas_are_lost_known_lost_and_up() -> None:
    """Goal: a service can follow its replicas. Method: the events of one job through one loss and one reroute."""
    trace = run([HOST_DOWN, down(ComponentKind.OCS, (7, 4000, 6000))])
    events = [(e.time_us // US_PER_S, e.change, e.speed_ppm) for e in replica_events(trace) if e.job == 0]
    assert events == [
        (0, ReplicaChange.UP, 1_000_000),
        (1000, ReplicaChange.LOST, 0),
        (1060, ReplicaChange.DETECTED, 0),
        (1880, ReplicaChange.UP, 1_000_000),
        (4000, ReplicaChange.LOST, 0),
        (4060, ReplicaChange.DETECTED, 0),
        (4670, ReplicaChange.UP, 950_000),
        (6000, ReplicaChange.SPEED, 1_000_000),
    ]


def test_one_failure_for_a_picture() -> None:
    """Goal: the picture of one failure on both kinds of wiring. Method: three jobs of 1,024 chips on a v4 pod with one
    more dead host: reconfigurable replaces within a quarter of an hour, static waits for the repair."""
    sources = one_failure(
        ComponentKind.HOST, 5, start_us=600 * US_PER_S, end_us=9000 * US_PER_S, down_throughout=[1000],
        horizon_us=HORIZON_S * US_PER_S,
    )  # fmt: skip
    back_at = {}
    for fabric in (Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED):
        trace = simulate_delivered(
            POD_GENERATIONS["v4"], fabric, 1024, sources, health=HealthPolicy(), repair=RepairPolicy(),
            recovery=RecoveryPolicy(), streams=Streams(1, 0), horizon_us=HORIZON_S * US_PER_S, jobs=3,
        )  # fmt: skip
        (loss,) = losses(trace)
        assert (loss.kind, loss.component, loss.lost_us) == ("host", 5, 600 * US_PER_S)
        assert loss.stage_us[Stage.DETECTING] == 60 * US_PER_S
        back_at[fabric] = (loss.running_us or 0) // US_PER_S
    assert back_at == {Fabric.RECONFIGURABLE: 600 + 880, Fabric.STATIC_ALIGNED: 9000 + 780}


def test_the_order_of_events_at_one_instant() -> None:
    """Goal: stage ends, failures, detections, repairs, then one scheduling pass. Method: at 1,880 s a restore ends,
    host 70 (cube 4, just taken) fails, host 40 is detected, host 3 comes back: the job runs for no time."""
    trace = run([down(ComponentKind.HOST, (3, 1000, 1880), (70, 1880, 9000), (40, 1820, 9000))])
    rows = [(row[1], row[2] or row[5], row[3]) for row in trace.rows if row[0] == 1880 * US_PER_S]
    assert rows == [
        ("stage", "running", -1),
        ("fail", "host", 70),
        ("stage", "detecting", -1),
        ("detect", "host", 40),
        ("stage", "evicting", -1),
        ("repair", "host", 3),
    ]


def test_the_horizon_is_half_open() -> None:
    """Goal: what falls on the horizon does not happen. Method: a host fails exactly then, and a microsecond before."""
    just_before = HORIZON_S - 1e-6
    assert all(row[1] != Verb.FAIL for row in run([down(ComponentKind.HOST, (3, HORIZON_S, HORIZON_S + 5))]).rows)
    assert any(row[1] == Verb.FAIL for row in run([down(ComponentKind.HOST, (3, just_before, HORIZON_S + 5))]).rows)


def test_the_first_start_may_take_its_stages() -> None:
    """Goal: a pod that is switched on has to load its jobs. Method: without `runs_at_start` the first stages are in."""
    trace = simulate_delivered(
        Pod(cubes=2), Fabric.RECONFIGURABLE, 64, [], health=HealthPolicy(), repair=RepairPolicy(),
        recovery=RecoveryPolicy(), streams=Streams(1, 0), horizon_us=HORIZON_S * US_PER_S, runs_at_start=False,
    )  # fmt: skip
    assert [stage for stage, _, _ in story(trace)] == ["reconfiguring", "preflight", "restoring", "running"]


def test_how_many_jobs_are_in_demand() -> None:
    """Goal: demand fills the pod. Method: floor(C / n), blocks of hosts below a cube, shared hosts below that."""
    v4 = POD_GENERATIONS["v4"]
    assert [jobs_in_demand(v4, chips) for chips in (1, 2, 4, 8, 32, 64, 1024, 3072)] == [
        4096, 2048, 1024, 512, 128, 64, 4, 1,
    ]  # fmt: skip
    assert jobs_in_demand(FlatPod(hosts=50), 20) == 10


def test_a_flat_pod_has_one_fabric() -> None:
    """Goal: the impossible is refused. Method: a flat pod under switches."""
    with pytest.raises(InputError, match="any_host"):
        simulate_delivered(
            FlatPod(hosts=9), Fabric.RECONFIGURABLE, 4, [], health=HealthPolicy(), repair=RepairPolicy(),
            recovery=RecoveryPolicy(), streams=Streams(1, 0), horizon_us=10,
        )  # fmt: skip
