"""`expected` and `guaranteed`: two routes, closed forms, intervals, light."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim import closed_forms
from sim.closed_forms import CubeOdds
from sim.histories import ComponentKind, Lives, Outages, draw_outages, failure_mode, sorted_outages
from sim.lifetimes import Exponential
from sim.metrics.availability import (
    CapacityTimes,
    expected_share,
    guaranteed_share,
    light_sample,
    promise_kept_share,
    single_history,
    stacked,
    switch_edges,
    time_at_capacity,
    window_edges,
)
from sim.metrics.capacity_from_log import times_from_log, transitions_of, transitions_of_log
from sim.metrics.intervals import agrees_with, mean_estimate, moving_block_rows, summed, t_quantile
from sim.metrics.segments import segments_of
from sim.streams import Streams
from tests.bench.curves import curves_once
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS, AnyPod, FlatPod, Pod

SIZES = (64, 128, 256, 512, 1024, 2048, 3072, 4096)
DAY_US = 86_400_000_000
HOUR_S = 3600.0
V4 = POD_GENERATIONS["v4"]


def outages_on(pod: AnyPod, days: int, seed: int, *, racks: bool = True, availability: float = 0.97) -> list[Outages]:
    """Histories of hosts, and of racks and in-rack links where asked for."""
    counts = {ComponentKind.HOST: pod.hosts}
    if racks:
        cubes = pod.hosts // 16
        counts |= {ComponentKind.RACK: cubes, ComponentKind.IN_RACK_LINK: 80 * cubes, ComponentKind.OCS: 48}
    found = []
    for kind, count in counts.items():
        share = availability if kind is ComponentKind.HOST else 0.9995
        mode = failure_mode(kind, count, availability=share, repair=Exponential(mean=10 * HOUR_S))
        found.append(draw_outages(Lives(mode, Streams(seed, 0)), days * DAY_US))
    return found


@pytest.mark.parametrize(
    ("pod", "sizes"),
    [
        (V4, (4, 16, 64, 256, 1024, 3072)),
        (Pod(cubes=25), (1, 2, 8, 32, 64, 128, 384, 1024)),
        (Pod(cubes=12), (64, 128, 768)),
    ],
    ids=["v4", "25 cubes", "12 cubes"],
)
@pytest.mark.parametrize("fabric", list(Fabric))
def test_two_routes_agree_to_the_microsecond(pod: Pod, sizes: tuple[int, ...], fabric: Fabric) -> None:
    """Goal: headline numbers have two independent routes. Method: the compiled sweep and a replay in plain Python give
    the same time at each capacity, exactly, with racks, in-rack links and switches failing, from an instant onwards.
    """
    outages, until_us, from_us = outages_on(pod, 4, 5), 4 * DAY_US, DAY_US // 2
    segments = segments_of(pod, outages, until_us, from_us=from_us)
    log = transitions_of(outages, until_us)
    for chips in sizes:
        fast = time_at_capacity(segments, pod, fabric, chips).time_us[0]
        slow = times_from_log(log, pod, fabric, chips, until_us, from_us=from_us).time_us[0]
        assert fast.sum() == slow.sum() == until_us - from_us
        assert np.array_equal(np.trim_zeros(fast, "b"), np.trim_zeros(slow, "b"))


def test_a_flat_machine_takes_both_routes() -> None:
    """Goal: machines without cubes work too, of any number of hosts. Method: 37 hosts, both routes."""
    pod = FlatPod(hosts=37)
    outages, until_us = outages_on(pod, 10, 2, racks=False, availability=0.9), 10 * DAY_US
    segments = segments_of(pod, outages, until_us)
    for chips in (4, 10, 64, 148):
        fast = time_at_capacity(segments, pod, Fabric.ANY_HOST, chips).time_us[0]
        slow = times_from_log(transitions_of(outages, until_us), pod, Fabric.ANY_HOST, chips, until_us).time_us[0]
        assert np.array_equal(np.trim_zeros(fast, "b"), np.trim_zeros(slow, "b"))


spans = st.lists(
    st.tuples(
        st.sampled_from(["host", "rack", "in_rack_link"]), st.integers(0, 63), st.integers(0, 50), st.integers(0, 50)
    ),
    max_size=30,
)


@given(spans=spans)
@settings(deadline=None, max_examples=60)
def test_overlaps_zero_lengths_and_ties(spans: list[tuple[str, int, int, int]]) -> None:
    """Goal: a component is down until all its outages end; ties do not matter. Method: any outages, both routes."""
    pod, until_us = Pod(cubes=4), 60
    outages = []
    for kind, count in (("host", 64), ("rack", 4), ("in_rack_link", 320)):
        rows = np.array([(c % count, a, min(a, b) + abs(a - b)) for k, c, a, b in spans if k == kind], dtype=np.int64)
        rows = rows.reshape(-1, 3)
        outages.append(sorted_outages(ComponentKind(kind), count, until_us, rows[:, 0], rows[:, 1], rows[:, 2]))
    segments = segments_of(pod, outages, until_us)
    for fabric in Fabric:
        for chips in (8, 64, 128):
            fast = time_at_capacity(segments, pod, fabric, chips).time_us[0]
            slow = times_from_log(transitions_of(outages, until_us), pod, fabric, chips, until_us).time_us[0]
            assert np.array_equal(np.trim_zeros(fast, "b"), np.trim_zeros(slow, "b"))


def test_reconfigurable_is_never_below_static_aligned() -> None:
    """Goal: the pathwise claim of measures.md 5. Method: segment by segment time averages on one path, every size."""
    segments = segments_of(V4, outages_on(V4, 60, 9), 60 * DAY_US)
    for chips in SIZES:
        ocs, static, boxes = (
            expected_share(time_at_capacity(segments, V4, fabric, chips)).value
            for fabric in (Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED, Fabric.STATIC_CONTIGUOUS)
        )
        assert ocs >= static
        assert ocs >= boxes


def closed_form_points(replications: int, days: int) -> dict[tuple[Fabric, float, int], CapacityTimes]:
    """The setting of design/README.md 6: hosts only, repair exponential of 10 h, life from availability, stationary."""
    points = {}
    for host in (0.99, 0.995, 0.999):
        mode = failure_mode(ComponentKind.HOST, 1024, availability=host, repair=Exponential(mean=10 * HOUR_S))
        parts: dict[tuple[Fabric, int], list[CapacityTimes]] = {}
        for replication in range(replications):
            history = draw_outages(Lives(mode, Streams(1, replication)), days * DAY_US)
            segments = segments_of(V4, [history], days * DAY_US)
            for fabric in (Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED, Fabric.ANY_HOST):
                for chips in SIZES:
                    parts.setdefault((fabric, chips), []).append(time_at_capacity(segments, V4, fabric, chips))
        points |= {(fabric, host, chips): stacked(times) for (fabric, chips), times in parts.items()}
    return points


@pytest.mark.parametrize(
    ("replications", "days", "half_width"),
    [pytest.param(8, 120, 0.05, id="small"), pytest.param(32, 365, 0.01, id="full", marks=pytest.mark.slow)],
)
def test_simulation_agrees_with_the_closed_forms(replications: int, days: int, half_width: float) -> None:
    """Goal: the first bar of the design: all 48 `expected` points agree, `guaranteed` is equal in every point.

    Method: histories against binomial sums; `any_host`, a further fabric with a closed form, is held to the same.
    """
    points = closed_form_points(replications, days)
    assert len(points) == 72
    for (fabric, host, chips), times in points.items():
        odds = CubeOdds(host=host)
        estimate = expected_share(times)
        assert agrees_with(estimate, closed_forms.expected_share(fabric, 64, chips, odds)), (fabric, host, chips)
        assert math.isnan(estimate.half_width) or estimate.half_width <= half_width
        held = guaranteed_share(times, 0.97)
        if half_width == 0.01:
            assert held.value == closed_forms.guaranteed_share(fabric, 64, chips, odds, 0.97), (fabric, host, chips)
        if not math.isnan(held.ci_low):
            assert held.ci_low <= held.value <= held.ci_high


def test_guaranteed_is_pooled_not_averaged() -> None:
    """Goal: P_m is pooled over replications. Method: two replications by hand, where a mean of quantiles differs."""
    times = CapacityTimes(
        fabric=Fabric.RECONFIGURABLE,
        slice_chips=1024,
        pod_chips=4096,
        time_us=np.array([[0, 0, 0, 94, 6], [0, 0, 0, 0, 100]]),
    )
    assert guaranteed_share(times, 0.97).value == 0.75
    assert guaranteed_share(times, 0.53).value == 1.0
    assert expected_share(times).value == pytest.approx((3.06 + 4.0) / 8.0)
    estimate = guaranteed_share(times, 0.5)
    assert (estimate.ci_low, estimate.ci_high) == (0.75, 1.0)


def test_no_variation_is_said() -> None:
    """Goal: never an interval of width zero. Method: equal replications, then a single one."""
    times = CapacityTimes(
        fabric=Fabric.ANY_HOST, slice_chips=64, pod_chips=256, time_us=np.tile(np.array([0, 0, 0, 7, 3]), (4, 1))
    )
    for estimate in (expected_share(times), guaranteed_share(times, 0.97)):
        assert estimate.no_variation_seen
        assert math.isnan(estimate.ci_low)
        assert estimate.interval_text == "no variation seen"
    assert agrees_with(expected_share(times), 0.8252) is True
    assert agrees_with(expected_share(times), 0.8262) is False
    assert agrees_with(expected_share(times), None) is None
    alone = expected_share(replace(times, time_us=times.time_us[:1]))
    assert alone.interval_text == "no interval"
    assert agrees_with(alone, 0.825) is None


def test_intervals() -> None:
    """Goal: the t-interval, its agreement and sums in quadrature. Method: values of a textbook table."""
    assert t_quantile(0.975, 9) == pytest.approx(2.262157)
    assert t_quantile(0.9995, 31) == pytest.approx(3.633, abs=1e-3)
    estimate = mean_estimate(np.arange(10.0))
    assert estimate.half_width == pytest.approx(2.262157 * np.std(np.arange(10), ddof=1) / np.sqrt(10))
    both = summed(estimate, mean_estimate([0.1, 0.3]))
    assert both.value == pytest.approx(4.7)
    assert both.half_width == pytest.approx(math.hypot(estimate.half_width, mean_estimate([0.1, 0.3]).half_width))
    assert math.isnan(summed(mean_estimate([1.0, 1.0]), mean_estimate([0.0, 0.0])).half_width)
    assert agrees_with(estimate, 4.5 + t_quantile(0.9995, 9) * estimate.deviation / math.sqrt(10) - 1e-9)


def test_expected_with_light() -> None:
    """Goal: with k switches dead capacity counts opt-in x kept(k). Method: a pod without host failures, by hand."""
    none = sorted_outages(ComponentKind.HOST, 1024, 100, *(np.zeros(0, dtype=np.int64),) * 3)
    switches = sorted_outages(
        ComponentKind.OCS, 48, 100, np.array([0, 1, 0]), np.array([10, 20, 22]), np.array([30, 25, 35])
    )
    edges, dead = switch_edges(switches, 0, 100)
    # switch 0 is down from 10 to 35 (two outages that overlap), switch 1 from 20 to 25
    assert dict(zip(edges[:-1].tolist(), dead.tolist(), strict=True)) == {
        0: 0,
        10: 1,
        20: 2,
        22: 2,
        25: 1,
        30: 1,
        35: 0,
    }
    segments = segments_of(V4, [none, switches], 100, edges_us=edges)
    due = {Fabric.RECONFIGURABLE: (75 + 20 * 0.95 * 0.9 + 5 * 0.95 * 0.8) / 100, Fabric.STATIC_ALIGNED: 1.0}
    for fabric, value in due.items():
        times = time_at_capacity(segments, V4, fabric, 1024, edges_us=edges)
        found = light_sample(times, dead, opt_in=0.95, kept=lambda k: 1.0 - 0.1 * k)
        assert found == pytest.approx(value)
        assert light_sample(times, dead * 0, opt_in=0.95, kept=0.5) == pytest.approx(1.0)
    cut = time_at_capacity(segments, V4, Fabric.RECONFIGURABLE, 16, edges_us=edges)
    assert light_sample(cut, dead, opt_in=0.95, kept=0.9) == pytest.approx(1.0)


def test_windows_add_up_and_promises_are_kept_by_month() -> None:
    """Goal: windows lose nothing; `promise_kept` counts windows. Method: sums of rows; a bad and a good month."""
    outages, until_us = outages_on(V4, 50, 4), 50 * DAY_US
    edges = window_edges(0, until_us, length_us=30 * DAY_US)
    assert edges.tolist() == [0, 30 * DAY_US, until_us]
    split = time_at_capacity(
        segments_of(V4, outages, until_us, edges_us=edges), V4, Fabric.RECONFIGURABLE, 1024, edges_us=edges
    )
    whole = time_at_capacity(segments_of(V4, outages, until_us), V4, Fabric.RECONFIGURABLE, 1024)
    assert np.array_equal(split.time_us.sum(axis=0), whole.time_us[0])
    assert split.time_us.sum(axis=1).tolist() == [30 * DAY_US, 20 * DAY_US]
    months = replace(split, time_us=np.array([[0, 0, 4, 96, 0], [0, 0, 0, 100, 0]]))
    assert promise_kept_share(months, 3, 0.97) == 0.5
    assert promise_kept_share(months, 3, 0.95) == 1.0


def test_one_history_has_a_bootstrap_interval() -> None:
    """Goal: n = 1 gets a moving-block interval about its own value. Method: a year in days; the same seed, the same."""
    outages, until_us = outages_on(V4, 200, 8, racks=False), 200 * DAY_US
    edges = window_edges(0, until_us)
    segments = segments_of(V4, outages, until_us, edges_us=edges)
    times = time_at_capacity(segments, V4, Fabric.RECONFIGURABLE, 64, edges_us=edges)
    expected, guaranteed = single_history(times, 0.97, Streams(1, 0))
    whole = time_at_capacity(segments_of(V4, outages, until_us), V4, Fabric.RECONFIGURABLE, 64)
    assert expected.n == 1
    assert expected.value == pytest.approx(expected_share(whole).value, abs=1e-12)
    assert expected.ci_low < expected.value < expected.ci_high
    assert guaranteed.value == guaranteed_share(whole, 0.97).value
    assert single_history(times, 0.97, Streams(1, 0))[0] == expected
    rows = moving_block_rows(10, Streams(1, 0), samples=50)
    assert rows.shape == (50, 10)
    # blocks of 3 consecutive windows
    assert np.all(np.diff(rows[:, :9].reshape(50, 3, 3), axis=2) == 1)


def test_a_log_of_the_machine_is_read() -> None:
    """Goal: the slow route takes the rows of `sim.trace`. Method: a rack fails for 30 of 100 us, other rows around."""
    rows = [
        (0, "stage", "", -1, 0, "running", 1_000_000),
        (20, "fail", "rack", 2, -1, "", 0),
        (25, "detect", "rack", 2, -1, "", 0),
        (30, "fail", "optical_end", 7, -1, "", 0),
        (50, "repair", "rack", 2, -1, "", 0),
    ]
    times = times_from_log(transitions_of_log(rows), V4, Fabric.RECONFIGURABLE, 64, 100)
    assert times.time_us[0, 63:].tolist() == [30, 70]


def test_a_pod_year_of_curves_is_quick() -> None:
    """Goal: nothing grows out of hand (the bar itself is measured by `make bench`). Method: one pod-year has values."""
    mode = failure_mode(ComponentKind.HOST, 1024, failure_rate_per_s=0.0008 / 86400.0, availability=0.99)
    assert 0.0 < curves_once(mode, 0) < 64.0
