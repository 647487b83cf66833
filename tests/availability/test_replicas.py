"""Replicas up, their losses, and promises in boxes by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from sim.closed_forms import CubeOdds, binomial_at_least, cubes_for_promise
from sim.histories import ComponentKind, Lives, draw_outages, failure_mode, sorted_outages
from sim.lifetimes import Exponential
from sim.metrics.availability import time_at_capacity
from sim.metrics.promises import cubes_for_promise_in_boxes, share_held_in_boxes
from sim.metrics.replicas import ReplicaDemand, choose_boxes, replicas_up, stacked_replicas, time_with_replicas
from sim.metrics.segments import Segments, segments_of
from sim.streams import Streams
from topology.boxes import contiguous_table
from topology.fabric import Fabric
from topology.packing import largest_packing
from topology.pod import POD_GENERATIONS, FlatPod, Pod

V4 = POD_GENERATIONS["v4"]
DAY_US = 86_400_000_000
BIG = ReplicaDemand(service="long_documents", slice_chips=1024, replicas=3)
SMALL = ReplicaDemand(service="chat", slice_chips=64, replicas=12)
HALF = ReplicaDemand(service="tiny", slice_chips=32, replicas=7)


def history(replication: int = 0, days: int = 40) -> Segments:
    mode = failure_mode(ComponentKind.HOST, 1024, availability=0.985, repair=Exponential(mean=36_000.0))
    return segments_of(V4, [draw_outages(Lives(mode, Streams(3, replication)), days * DAY_US)], days * DAY_US)


def dealt_by_hand(usable: list[bool], blocks: list[int], fabric: Fabric) -> list[int]:
    """Three 16-cube slices, twelve cubes, seven half cubes, dealt in plain Python."""
    free, mine = list(usable), [False] * len(usable)
    if fabric is Fabric.RECONFIGURABLE:
        big = min(3, sum(free) // 16)
        taken = [c for c in range(64) if free[c]][: 16 * big]
    else:
        whole = [b for b in range(4) if all(free[16 * b : 16 * b + 16])][:3]
        big, taken = len(whole), [c for b in whole for c in range(16 * b, 16 * b + 16)]
    for c in taken:
        free[c], mine[c] = False, True
    ones = [c for c in range(64) if free[c]][:12]
    for c in ones:
        free[c], mine[c] = False, True
    halves = sum(blocks[c] for c in range(64) if not mine[c])
    return [big, len(ones), min(7, halves)]


@pytest.mark.parametrize("fabric", [Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED])
def test_dealing_in_order(fabric: Fabric) -> None:
    """Goal: services take their slices in order. Method: every segment of a history against dealing by hand."""
    segments = history()
    up = replicas_up(segments, V4, fabric, (BIG, SMALL, HALF))
    for t in range(len(up)):
        blocks = segments.blocks_up[t, :, 3].tolist()
        assert up[t].tolist() == dealt_by_hand(segments.usable[t].tolist(), blocks, fabric)
    assert len({tuple(row) for row in up.tolist()}) > 2


@pytest.mark.parametrize("fabric", list(Fabric))
def test_the_first_service_has_the_capacity_of_its_size(fabric: Fabric) -> None:
    """Goal: replicas up and capacity are one thing. Method: min(wanted, capacity) for the first service, exactly."""
    segments = history(1)
    times = time_with_replicas(segments, V4, fabric, (BIG, SMALL, HALF))
    capacity = time_at_capacity(segments, V4, fabric, 1024).time_us[0]
    due = np.zeros(4, dtype=np.int64)
    np.add.at(due, np.minimum(np.arange(len(capacity)), 3), capacity)
    assert np.array_equal(times.of_service(0)[0], due)
    assert times.time_us.sum() == segments.total_us
    assert sum(estimate.value for estimate in times.weights(1)) == pytest.approx(1.0)


def test_an_ideal_fabric_counts_hosts() -> None:
    """Goal: any_host and flat machines count hosts. Method: 40 hosts of which 3 are down for a while, by hand."""
    pod = FlatPod(hosts=40)
    outages = sorted_outages(ComponentKind.HOST, 40, 100, np.array([1, 7, 39]), np.full(3, 10), np.array([60, 60, 30]))
    segments = segments_of(pod, [outages], 100)
    demands = (
        ReplicaDemand(service="a", slice_chips=64, replicas=2),
        ReplicaDemand(service="b", slice_chips=8, replicas=4),
        ReplicaDemand(service="c", slice_chips=1, replicas=9),
    )
    up = replicas_up(segments, pod, Fabric.ANY_HOST, demands)
    # 40 hosts: 32 + 8 + 0; 37 hosts: 32 + 4 (1 left: 4 slices of one chip); 38 hosts: 32 + 6 + 0
    assert up.tolist() == [[2, 4, 0], [2, 2, 4], [2, 3, 0], [2, 4, 0]]


def test_losses_are_the_failures_of_cubes_in_use() -> None:
    """Goal: losses per second follow from the failures of cubes. Method: 48 of 48 wanted cubes at 98.5 % hosts.

    A replica of 16 cubes is lost once per 256 host failures' worth of time: 256 / (life) per second, on average.
    """
    parts = [time_with_replicas(history(r), V4, Fabric.RECONFIGURABLE, (BIG,)) for r in range(6)]
    times = stacked_replicas(parts)
    up = float((times.of_service(0) @ np.arange(4)).sum() / times.of_service(0).sum())
    life_s = 0.985 / 0.015 * 36_000.0
    assert times.losses_per_s(0).value == pytest.approx(up * 256 / life_s, rel=0.05)
    assert times.time_us.shape == (6, 4)


def test_chosen_boxes_are_disjoint_usable_and_as_many_as_fit() -> None:
    """Goal: boxes are placed as counted. Method: random masks, three sizes, two grids, against the exact packing."""
    rng = Streams(1, 0).generator("test.masks")
    for pod, sizes in ((V4, (2, 8, 16, 32)), (Pod(cubes=144), (16, 48))):
        for cubes in sizes:
            table = contiguous_table(pod, cubes)
            for _ in range(15):
                usable = rng.random(pod.cubes) < 0.93
                chosen = np.zeros(10, dtype=np.int64)
                count = choose_boxes(usable, table, 3, 100_000, chosen)
                if table.exact:
                    assert count == min(3, largest_packing(usable, table))
                used = table.cubes[chosen[:count]].ravel()
                assert len(np.unique(used)) == count * cubes
                assert usable[used].all()


def test_promise_of_single_cubes_in_boxes_is_the_closed_form() -> None:
    """Goal: the simulated search is right where a closed form exists. Method: boxes of one cube are any cubes."""
    odds = CubeOdds(host=0.99)
    closed = cubes_for_promise(Fabric.RECONFIGURABLE, {64: 12}, odds, 0.97)
    simulated = cubes_for_promise_in_boxes({64: 12}, odds, 0.97, Streams(1, 0))
    assert closed is not None
    assert simulated is not None
    assert abs(simulated - closed) <= 1
    usable = np.stack([Streams(1, 0).uniforms("test", block, 27) for block in range(2000)]) < odds.cube
    share = share_held_in_boxes(Pod(cubes=27), {1: 24}, usable)
    assert share == pytest.approx(binomial_at_least(27, odds.cube, 24), abs=0.03)


def test_promises_in_boxes_lie_between_the_other_fabrics() -> None:
    """Goal: boxes need more cubes than circuits and fewer than fixed blocks. Method: three 1024-chip slices, 99.9 %."""
    odds = CubeOdds(host=0.999)
    boxes = cubes_for_promise_in_boxes({1024: 3}, odds, 0.97, Streams(1, 0))
    assert boxes is not None
    assert 51 <= boxes <= 96
    assert cubes_for_promise_in_boxes({1024: 3}, odds, 0.97, Streams(1, 0), most=52) is None
    assert cubes_for_promise_in_boxes({1024: 3}, CubeOdds(host=0.5), 0.97, Streams(1, 0)) is None
