"""Failures, detection and repair played event by event: against the drawn histories and against closed forms."""

from __future__ import annotations

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
import simpy
from hypothesis import example, given, settings

from sim.condition import component_counts
from sim.histories import US_PER_S, ComponentKind, FailureMode, Lives, Outages, draw_outages, sorted_outages
from sim.lifetimes import Exponential, Weibull
from sim.machine import Machine
from sim.policies import HealthPolicy, RepairPolicy
from sim.processes.failures import Source, merged_outages, start_failures
from sim.processes.health import outage_parts
from sim.streams import Streams
from sim.trace import Row, Verb
from tests.machine.pods import DAY_US, HOUR_S, HOUR_US, NO_DETECTION, draws
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS, AnyPod, FlatPod, Pod


def play(
    pod: AnyPod,
    sources: list[Source],
    horizon_us: int,
    *,
    health: HealthPolicy = NO_DETECTION,
    crews: int | None = None,
    fabric: Fabric = Fabric.RECONFIGURABLE,
    check_invariants: bool = True,
) -> list[Row]:
    """The log of failures without jobs."""
    env = simpy.Environment()
    machine = Machine(pod, fabric, env, check_invariants=check_invariants)
    start_failures(env, machine, sources, health=health, repair=RepairPolicy(crews=crews), horizon_us=horizon_us)
    env.run(until=horizon_us)
    return machine.rows


def outages_in(rows: list[Row], horizon_us: int) -> list[tuple[str, int, int, int]]:
    """Kind, component, start and end (the horizon where open) of the outages in a log, sorted."""
    open_since: dict[tuple[str, int], int] = {}
    found = []
    for time_us, verb, kind, component, *_ in rows:
        if verb == Verb.FAIL:
            open_since[kind, component] = time_us
        elif verb == Verb.REPAIR:
            found.append((kind, component, open_since.pop((kind, component)), time_us))
    found += [(*key, start_us, horizon_us) for key, start_us in open_since.items()]
    return sorted(found)


def as_tuples(histories: list[Outages], horizon_us: int) -> list[tuple[str, int, int, int]]:
    """Drawn outages in the same form, cut at the horizon."""
    return sorted(
        (history.kind.value, component, start, min(end, horizon_us))
        for history in histories
        for component, start, end in zip(
            history.component.tolist(), history.start_us.tolist(), history.end_us.tolist(), strict=True
        )
    )


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    stationary=st.booleans(),
    overhead_s=st.sampled_from([0.0, 60.0, 7200.0]),
    detection_s=st.sampled_from([0.0, 60.0, 86400.0]),
    burn_in_s=st.sampled_from([0.0, 600.0]),
    crews=st.sampled_from([None, 10_000]),
)
def test_without_a_limit_on_crews_the_log_is_the_drawn_history(
    seed: int, stationary: bool, overhead_s: float, detection_s: float, burn_in_s: float, crews: int | None
) -> None:
    """Goal: one history, two ways to it. Method: play hosts, racks and switches through SimPy, with no limit on crews
    and with more crews than components, and compare with the histories drawn at once, to the microsecond."""
    pod, horizon_us = Pod(cubes=2), 30 * DAY_US
    hours = {ComponentKind.HOST: (200.0, 10.0), ComponentKind.RACK: (400.0, 5.0), ComponentKind.OCS: (600.0, 24.0)}
    sources = [
        Lives(
            FailureMode(
                kind=kind,
                count=component_counts(pod)[kind],
                life=Exponential(mean=life * HOUR_S),
                repair=Exponential(mean=repair * HOUR_S),
                overhead_s=overhead_s,
                stationary=stationary,
            ),
            Streams(seed, 0),
        )
        for kind, (life, repair) in hours.items()
    ]
    health = HealthPolicy(detection=detection_s, diagnosis=30.0, burn_in=burn_in_s)
    rows = play(pod, list(sources), horizon_us, health=health, crews=crews)
    drawn = as_tuples([draw_outages(lives, horizon_us) for lives in sources], horizon_us)
    assert outages_in(rows, horizon_us) == drawn
    assert all(row[0] < horizon_us for row in rows), "the horizon is half-open"


@example(outages=[(0, 0, 1), (0, -2, 1)], detection_us=0)
@settings(deadline=None, max_examples=50)
@given(
    outages=st.lists(st.tuples(st.integers(0, 31), st.integers(-5, 50), st.integers(0, 20)), max_size=30),
    detection_us=st.integers(0, 10),
)
def test_a_log_is_replayed_as_it_stands(outages: list[tuple[int, int, int]], detection_us: int) -> None:
    """Goal: a component is down until all its overlapping outages have ended. Method: random outages, the hosts down at
    each microsecond counted from the list and from the log."""
    horizon_us = 60
    component, start, length = (np.array([o[i] for o in outages], dtype=np.int64) for i in range(3))
    log = sorted_outages(ComponentKind.HOST, 32, horizon_us, component, start, start + length)
    rows = play(Pod(cubes=2), [log], horizon_us, health=HealthPolicy(detection=detection_us / US_PER_S))
    played = outages_in(rows, horizon_us)
    for instant in range(horizon_us):
        by_log = {c for c, s, n in outages if s <= instant < s + n}
        assert {c for _, c, s, e in played if s <= instant < e} == by_log


def test_merged_outages_join_what_overlaps_or_touches() -> None:
    """Goal: nothing fails while it is down. Method: overlapping, touching, nested, empty and separate outages."""
    log = sorted_outages(
        ComponentKind.HOST, 3, 100, np.array([0, 0, 0, 0, 2, 2]), np.array([1, 5, 6, 20, 3, 9]),
        np.array([5, 12, 8, 25, 3, 10]),
    )  # fmt: skip
    assert merged_outages(log) == {0: [(1, 12), (20, 25)], 2: [(9, 10)]}


def test_detection_never_outlasts_the_outage_and_parts_add_up() -> None:
    """Goal: an outage has the length that was drawn. Method: divide outages from nothing to a day."""
    health = HealthPolicy(detection=60.0, diagnosis=600.0, burn_in=1200.0)
    for outage_us in (1, 10**7, 60 * 10**6, 10**9, 1500 * 10**6, HOUR_US, DAY_US):
        parts = outage_parts(ComponentKind.HOST, outage_us, health)
        assert sum(parts) == outage_us
        assert min(parts) >= 0
    whole = outage_parts(ComponentKind.HOST, DAY_US, health)
    assert whole[:2] == (60 * 10**6, 600 * 10**6)
    assert whole.burn_in_us == 1200 * 10**6


@pytest.mark.parametrize(
    ("count", "repair_h", "crews", "published", "days"),
    [
        (1024, 20.0, 8, 0.390625000, 150),
        (1024, 20.0, 20, 0.957764678, 700),
        (1024, 20.0, 24, 0.979040394, 250),
        (1024, 20.0, 32, 0.980378606, 250),
        (1024, 20.0, None, 0.980392157, 250),
        (64, 24.0, 2, 0.955161872, 2000),
    ],
)
def test_machine_repair(count: int, repair_h: float, crews: int | None, published: float, days: int) -> None:
    """Goal: crews queue as theory says (M/M/R//N, life 1000 h). Method: a flat pod of hosts, batches of the horizon
    after a warm-up as a sample; the known availability within 4 standard errors of their mean, at most 0.01 away."""
    pod, batches = FlatPod(hosts=count), 10
    warmup_us = 100 * DAY_US
    horizon_us = warmup_us + days * DAY_US
    rows = play(
        pod,
        list(draws(pod, 11, {ComponentKind.HOST: (1000.0, repair_h)})),
        horizon_us,
        crews=crews,
        fabric=Fabric.ANY_HOST,
        check_invariants=False,
    )
    edges = np.linspace(warmup_us, horizon_us, batches + 1).astype(np.int64).tolist()
    outages = outages_in(rows, horizon_us)
    sample = []
    for low, high in itertools.pairwise(edges):
        down_us = sum(max(0, min(end, high) - max(start, low)) for _, _, start, end in outages)
        sample.append(1.0 - down_us / (count * (high - low)))
    error = float(np.std(sample, ddof=1)) / math.sqrt(batches)
    assert abs(float(np.mean(sample)) - published) <= max(4 * error, 0.0005)
    assert abs(float(np.mean(sample)) - published) <= 0.01


def test_long_run_failure_rate_of_a_weibull_life() -> None:
    """Goal: ages survive, so components with any law of life fail once per mean life + repair. Method: 1,024 hosts of
    shape 0.7 from a stationary start; failures within 4 standard errors (renewal theory) of N t / (mean + repair)."""
    pod, days = FlatPod(hosts=1024), 200
    life, repair_h = Weibull(shape=0.7, mean=240.0 * HOUR_S), 10.0
    mode = FailureMode(kind=ComponentKind.HOST, count=1024, life=life, repair=Exponential(mean=repair_h * HOUR_S))
    rows = play(pod, [Lives(mode, Streams(5, 0))], days * DAY_US, fabric=Fabric.ANY_HOST, check_invariants=False)
    failures = sum(1 for row in rows if row[1] == Verb.FAIL and row[0] > 0)
    cycle_h = 250.0
    expected = 1024 * days * 24 / cycle_h
    variation = math.gamma(1 + 2 / 0.7) / math.gamma(1 + 1 / 0.7) ** 2 - 1
    variance_per_cycle = (variation * 240.0**2 + repair_h**2) / cycle_h**2
    assert abs(failures - expected) <= 4 * math.sqrt(expected * variance_per_cycle)


def test_crews_take_switches_first_and_never_work_on_more_than_they_are() -> None:
    """Goal: the queue is by kind. Method: one crew; three hosts fail, then a switch while the first is being mended:
    the switch is next, then the hosts in order."""
    pod = Pod(cubes=1)
    repair = Exponential(mean=HOUR_S)

    class Fixed(Lives):
        """Lives that are written down instead of drawn."""

        def initial_residual_us(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            first = {ComponentKind.HOST: [10, 20, 30], ComponentKind.OCS: [40]}[self.mode.kind]
            return np.array(first + [10**15] * (self.mode.count - len(first)), dtype=np.int64)

        def repair_us(self, k: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.full(self.mode.count, 1000, dtype=np.int64)

        def life_us(self, k: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.full(self.mode.count, 10**15, dtype=np.int64)

    sources: list[Source] = [
        Fixed(
            FailureMode(kind=kind, count=component_counts(pod)[kind], life=repair, repair=repair, stationary=False),
            Streams(1, 0),
        )
        for kind in (ComponentKind.HOST, ComponentKind.OCS)
    ]
    rows = play(pod, sources, 10_000, crews=1)
    repaired = [(row[0], row[2], row[3]) for row in rows if row[1] == Verb.REPAIR]
    assert repaired == [(1010, "host", 0), (2010, "ocs", 0), (3010, "host", 1), (4010, "host", 2)]


def test_static_pods_have_no_switches_to_fail() -> None:
    """Goal: scenarios may name switches for any fabric. Method: the same sources leave no such rows on a static one."""
    pod = POD_GENERATIONS["v4"]
    sources: list[Source] = list(draws(pod, 3, {ComponentKind.OCS: (100.0, 24.0), ComponentKind.HOST: (900.0, 9.0)}))
    kinds = {row[2] for row in play(pod, sources, 10 * DAY_US, fabric=Fabric.STATIC_ALIGNED, check_invariants=False)}
    assert kinds == {"host"}


def test_a_population_larger_than_the_pod_is_refused() -> None:
    """Goal: no failure falls outside the pod. Method: lives of 64 hosts on a pod of 32."""
    with pytest.raises(ValueError, match="64 components host"):
        play(Pod(cubes=2), list(draws(Pod(cubes=4), 1, {ComponentKind.HOST: (9.0, 1.0)})), DAY_US)
