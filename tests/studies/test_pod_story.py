"""The story of slices and switches that the replay shows: it agrees with the machine's own counts and with ocs."""

from __future__ import annotations

import itertools
import random

import pytest

from ocs.circuits import circuits_of
from sim.build import build_setup
from sim.metrics.pod_moments import moments_of, switch_stretches
from sim.metrics.pod_story import SliceStretch, slice_stretches, story_of
from sim.scenario import Scenario, expand
from sim.studies.delivered import play, replayed_size, sample_delivered
from sim.trace import Trace
from tests.run.cases import MACHINE, loaded
from topology.placement import joined
from topology.pod import SWITCHES_PER_POD
from topology.shape import parse_shape

DAYS_US = 10 * 86_400 * 1_000_000


def scenario(*overrides: str) -> Scenario:
    """The first point of a small pod: reconfigurable unless swept otherwise."""
    return expand(
        loaded(MACHINE, "failures.host.availability=98 %", "sweep={pod.fabric: [reconfigurable]}", *overrides)
    )[0].scenario


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Two slices of four cubes through ten bad days."""
    return play(build_setup(scenario()), 256, 0, DAYS_US)


def lit(stretches: list[SliceStretch], time_us: int) -> list[SliceStretch]:
    """The slices whose circuits are made at an instant."""
    return [one for one in stretches if one.lit_us is not None and one.lit_us <= time_us < one.end_us]


def test_circuits_are_as_many_as_the_machine_counts(trace: Trace) -> None:
    """Goal: slices and their circuits are those of the log. Method: at every instant at which the machine makes or cuts
    circuits, 48 per cube of the slices that are lit; their circuits by `ocs` are as many, and use no end twice."""
    stretches = list(slice_stretches(trace, 10**9))
    counts = [count for count in moments_of(trace, 10**9).circuits if count.time_us < trace.horizon_us]
    assert len(counts) > 20
    for time_us, circuits in counts:
        now = lit(stretches, time_us)
        rows = [circuits_of(joined(parse_shape(one.shape), one.cubes)) for one in now]
        assert sum(map(len, rows)) == circuits == sum(SWITCHES_PER_POD * len(one.cubes) for one in now)
        for side in (1, 2):
            ends = [(row[0], row[side]) for each in rows for row in each.tolist()]
            assert len(set(ends)) == len(ends)


def test_stretches_of_a_job_follow_each_other(trace: Trace) -> None:
    """Goal: one slice per job at a time, no cube twice. Method: stretches of each job and of each cube in order."""
    stretches = list(slice_stretches(trace, 10**9))
    for what in [[one for one in stretches if one.job == job] for job in range(2)] + [
        [one for one in stretches if cube in one.cubes] for cube in range(8)
    ]:
        own = sorted(what, key=lambda one: one.start_us)
        assert all(before.end_us <= after.start_us for before, after in itertools.pairwise(own))
    assert all(one.lit_us is None or one.start_us <= one.lit_us < one.end_us for one in stretches)


def test_static_slices_have_no_circuits() -> None:
    """Goal: no light where there is none. Method: the same days under static wiring, and with hosts anywhere."""
    static = play(build_setup(scenario("sweep={pod.fabric: [static_aligned]}")), 256, 0, DAYS_US)
    found = list(slice_stretches(static, 10**9))
    assert found
    assert all(one.lit_us is None for one in found)
    anywhere = play(build_setup(scenario("sweep={pod.fabric: [any_host]}")), 256, 0, DAYS_US)
    assert not list(slice_stretches(anywhere, 10**9))


def test_a_story_that_is_cut_ends_at_once(trace: Trace) -> None:
    """Goal: cubes that run for long are not told as free in a story that is cut. Method: against the whole story, all
    that is told until the cut is the same, and something is told of every cube and slice that is held then."""
    whole = story_of(trace, 10**9)
    assert whole.switches == tuple(switch_stretches(trace))
    for most in random.Random(4).sample(range(5, len(whole.cubes)), 10):
        part = story_of(trace, most)
        end_us = max(one.end_us for one in part.cubes)
        assert most <= len(part.cubes) <= most + 8
        for cube in range(8):
            cut = [(*one[:4], min(one.end_us, end_us)) for one in whole.cubes if one.cube == cube]
            assert [one for one in part.cubes if one.cube == cube] == [one for one in cut if one[3] < one[4]]
    few = list(slice_stretches(trace, 3))
    end_us = max(one.end_us for one in few)
    cut_slices = [one._replace(end_us=min(one.end_us, end_us)) for one in whole.slices if one.start_us < end_us]
    assert sorted((one.job, one.start_us, one.end_us) for one in few) == sorted(
        (one.job, one.start_us, one.end_us) for one in cut_slices
    )


def test_which_size_is_replayed() -> None:
    """Goal: one story, of slices that share the pod. Method: sizes of a pod of eight cubes, one replication of each."""
    for sizes, shown in (([64, 256, 512], 256), ([512], 512), ([64], 64), ([64, 128], 128)):
        setup = build_setup(scenario(f"study.delivered.slice_chips={sizes}", "expect=[]"))
        assert replayed_size(setup) == shown
    setup = build_setup(scenario("study.delivered.slice_chips=[64, 256]"))
    assert sample_delivered(setup, 64, 0).story is None
    assert sample_delivered(setup, 256, 1).story is None
    story = sample_delivered(setup, 256, 0).story
    assert story is not None
    assert {one.job for one in story.slices} == {0, 1}
