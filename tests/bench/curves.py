"""Time of the curves of a pod-year: draws, segments, `expected` and `guaranteed` of eight sizes on four fabrics."""

from __future__ import annotations

import statistics
import time

from sim.histories import ComponentKind, FailureMode, Lives, draw_outages, failure_mode
from sim.lifetimes import Exponential
from sim.metrics.availability import expected_share, guaranteed_share, time_at_capacity
from sim.metrics.segments import segments_of
from sim.streams import Streams
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS

REPEATS = 5
SIZES = (64, 128, 256, 512, 1024, 2048, 3072, 4096)
YEAR_US = 365 * 86_400_000_000


def curves_once(mode: FailureMode, replication: int) -> float:
    """Sum of all values of one pod-year (something to look at, so that nothing is left out)."""
    pod, total = POD_GENERATIONS["v4"], 0.0
    segments = segments_of(pod, [draw_outages(Lives(mode, Streams(1, replication)), YEAR_US)], YEAR_US)
    for fabric in Fabric:
        for chips in SIZES:
            times = time_at_capacity(segments, pod, fabric, chips)
            total += expected_share(times).value + guaranteed_share(times, 0.97).value
    return total


def _median_s(mode: FailureMode) -> float:
    curves_once(mode, 0)
    taken = []
    for replication in range(REPEATS):
        began = time.perf_counter()
        curves_once(mode, replication)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def pod_year_s() -> float:
    """Median seconds of a pod-year at 99 % hosts, failing as in the main scenario (0.08 %/day), once compiled."""
    rate = 0.0008 / 86400.0
    return _median_s(failure_mode(ComponentKind.HOST, 1024, failure_rate_per_s=rate, availability=0.99))


def pod_year_of_short_repairs_s() -> float:
    """The same at the closed-form test's setting: repairs of 10 h, so some 27 times as many outages."""
    return _median_s(failure_mode(ComponentKind.HOST, 1024, availability=0.99, repair=Exponential(mean=36_000.0)))
