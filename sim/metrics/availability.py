"""Availability of slices: `expected`, `guaranteed`, `expected_with_light` (design: measures, section 1).

All start from the time spent at each capacity: a row of int64 microseconds per replication (or per window of a log),
column m for m slices. They are computed from failure histories, without a clock; `sim.metrics.capacity_from_log` is the
slow second route.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sim.histories import Outages
from sim.metrics.intervals import Estimate, mean_estimate, moving_block_rows, t_quantile
from sim.metrics.segments import BLOCK_HOSTS, Segments
from sim.streams import Streams
from topology.boxes import check_fabric, contiguous_table
from topology.compilation import compiled
from topology.fabric import Fabric
from topology.packing import BoxTable, packed_boxes
from topology.placement import hosts_of_slice, slices_per_host
from topology.pod import CHIPS_PER_CUBE, AnyPod, FlatPod

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

US_PER_DAY = 86_400_000_000


@dataclass(frozen=True, kw_only=True)
class CapacityTimes:
    """Time at each capacity of one slice size on one fabric: `time_us[r, m]` with m slices in replication r."""

    fabric: Fabric
    slice_chips: int
    pod_chips: int
    time_us: Ints

    @property
    def share_of_slice(self) -> float:
        """One slice as a share of the pod: n / C."""
        return self.slice_chips / self.pod_chips

    @property
    def samples(self) -> Floats:
        """Capacity averaged over time, as a share of the pod, per replication (R,)."""
        slices = np.arange(self.time_us.shape[1])
        return np.asarray(self.time_us @ slices / self.time_us.sum(axis=1) * self.share_of_slice)

    @property
    def at_least(self) -> Floats:
        """P_m per replication (R, M + 1): share of time with at least m slices; P_0 is 1."""
        reached = np.cumsum(self.time_us[:, ::-1], axis=1)[:, ::-1]
        return np.asarray(reached / self.time_us.sum(axis=1, keepdims=True))


def stacked(parts: Sequence[CapacityTimes]) -> CapacityTimes:
    """Replications of one size and fabric, one below the other."""
    return replace(parts[0], time_us=np.concatenate([part.time_us for part in parts]))


@compiled
def contiguous_slices(usable: NDArray[np.bool_], table: BoxTable) -> Ints:
    """Boxes that fit into each mask of usable cubes (T, C), searched again only where the mask changes."""
    slices = np.zeros(usable.shape[0], dtype=np.int64)
    for t in range(usable.shape[0]):
        same = t > 0
        if same:
            for cube in range(usable.shape[1]):
                if usable[t, cube] != usable[t - 1, cube]:
                    same = False
                    break
        slices[t] = slices[t - 1] if same else packed_boxes(usable[t], table)
    return slices


def slices_possible(segments: Segments, pod: AnyPod, fabric: Fabric, slice_chips: int) -> Ints:
    """Slices of `slice_chips` chips that could be formed in each segment (T,); the rules of `topology.placement`."""
    check_fabric(fabric, pod)
    hosts, together = hosts_of_slice(pod, slice_chips), slices_per_host(slice_chips)
    if fabric is Fabric.ANY_HOST or isinstance(pod, FlatPod):
        return segments.hosts_up // hosts * together
    if slice_chips < CHIPS_PER_CUBE:
        blocks = segments.blocks_up[:, :, BLOCK_HOSTS.index(hosts)]
        return np.asarray(blocks.sum(axis=1, dtype=np.int64) * together)
    cubes = slice_chips // CHIPS_PER_CUBE
    if fabric is Fabric.RECONFIGURABLE or cubes == 1:
        return segments.cubes_up // cubes
    if fabric is Fabric.STATIC_ALIGNED:
        blocks_of = pod.cubes // cubes
        whole = segments.usable[:, : blocks_of * cubes].reshape(-1, blocks_of, cubes).all(axis=2)
        return np.asarray(whole.sum(axis=1, dtype=np.int64))
    return contiguous_slices(segments.usable, contiguous_table(pod, cubes))


def time_at_capacity(
    segments: Segments, pod: AnyPod, fabric: Fabric, slice_chips: int, *, edges_us: Ints | None = None
) -> CapacityTimes:
    """Time at each capacity: one row, or one per window [edges[i], edges[i + 1]), which no segment may cross."""
    together = slices_per_host(slice_chips)
    most = pod.hosts // hosts_of_slice(pod, slice_chips) * together
    slices = slices_possible(segments, pod, fabric, slice_chips)
    windows = 1 if edges_us is None else len(edges_us) - 1
    time_us = np.zeros((windows, most + 1), dtype=np.int64)
    window = np.zeros(len(slices), dtype=np.int64) if edges_us is None else segments.window_of(edges_us)
    np.add.at(time_us, (window, slices), segments.duration_us)
    return CapacityTimes(fabric=fabric, slice_chips=slice_chips, pod_chips=pod.chips, time_us=time_us)


def expected_share(times: CapacityTimes) -> Estimate:
    """`expected`: mean over replications of the capacity averaged over time, with a t-interval."""
    return mean_estimate(times.samples)


def _most_held(at_least: Floats, time_share: float) -> int:
    return int(np.flatnonzero(at_least >= time_share)[-1])


def guaranteed_share(times: CapacityTimes, time_share: float) -> Estimate:
    """`guaranteed`: (n / C) max{m : P_m >= time_share} with P_m pooled over replications.

    The interval follows from the same rule on the t-limits of P_m, so it is a range of whole slices.
    """
    at_least, n = times.at_least, len(times.time_us)
    pooled = np.cumsum(times.time_us.sum(axis=0)[::-1])[::-1] / times.time_us.sum()
    value = _most_held(pooled, time_share) * times.share_of_slice
    if n < 2:
        return Estimate(value=value, n=n)
    deviation = np.std(at_least, axis=0, ddof=1)
    if np.all(at_least == at_least[0]):
        return Estimate(value=value, n=n, deviation=0.0)
    half = t_quantile(0.975, n - 1) * deviation / math.sqrt(n)
    low, high = (_most_held(pooled + sign * half, time_share) * times.share_of_slice for sign in (-1.0, 1.0))
    return Estimate(value=value, ci_low=low, ci_high=high, n=n, deviation=float(deviation.max()))


def window_edges(from_us: int, until_us: int, *, length_us: int = US_PER_DAY) -> Ints:
    """Edges of windows of one length (a day) that fill [from, until); the last one may be shorter."""
    return np.append(np.arange(from_us, until_us, length_us, dtype=np.int64), np.int64(until_us))


def single_history(times: CapacityTimes, time_share: float, streams: Streams) -> tuple[Estimate, Estimate]:
    """`expected` and `guaranteed` of one real history (n = 1), with moving-block bootstrap intervals.

    `times` holds one row per window of `window_edges`; values are those of the whole history.
    """
    whole = replace(times, time_us=times.time_us.sum(axis=0, keepdims=True))
    rows = moving_block_rows(len(times.time_us), streams)
    resampled = replace(times, time_us=np.stack([times.time_us[numbers].sum(axis=0) for numbers in rows]))
    held = np.array([_most_held(at_least, time_share) for at_least in resampled.at_least]) * times.share_of_slice
    found = (expected_share(whole).value, resampled.samples), (guaranteed_share(whole, time_share).value, held)
    estimates = []
    for value, samples in found:
        low, high = np.quantile(samples, [0.025, 0.975])
        interval = (float(low), float(high)) if samples.min() < samples.max() else (math.nan, math.nan)
        estimates.append(Estimate(value=value, ci_low=interval[0], ci_high=interval[1], n=1))
    return estimates[0], estimates[1]


def switch_edges(switches: Outages, from_us: int, until_us: int) -> tuple[Ints, Ints]:
    """Windows between changes of optical switches: edges (W + 1,) and switches dead in each window (W,)."""
    start, end = np.maximum(switches.start_us, from_us), np.minimum(switches.end_us, until_us)
    counts = end > start
    start, end = start[counts], end[counts]
    edges = np.unique(np.concatenate(([from_us, until_us], start, end)))
    # switches down in a window are those of which an outage covers it (outages of one switch may overlap in a log)
    dead = np.zeros(len(edges) - 1, dtype=np.int64)
    for switch in np.unique(switches.component[counts]):
        covered = np.zeros(len(edges), dtype=np.int64)
        mine = switches.component[counts] == switch
        np.add.at(covered, np.searchsorted(edges, start[mine]), 1)
        np.add.at(covered, np.searchsorted(edges, end[mine]), -1)
        dead += np.cumsum(covered)[:-1] > 0
    return edges.astype(np.int64), dead


def light_sample(
    times: CapacityTimes, switches_dead: Ints, *, opt_in: float, kept: Callable[[int], float] | float
) -> float:
    """`expected_with_light` of one replication, from `times` with one row per window of `switch_edges`.

    With k >= 1 switches dead, capacity counts opt-in share x kept(k) of itself. Only slices that pass through light are
    touched: whole cubes on the reconfigurable fabric; for all others this is `expected`.
    """
    slices = times.time_us @ np.arange(times.time_us.shape[1])
    if times.fabric.has_light and times.slice_chips >= CHIPS_PER_CUBE:
        keep: Callable[[int], float] = kept if callable(kept) else lambda _: kept
        slices = slices * np.array([1.0 if k == 0 else opt_in * keep(int(k)) for k in switches_dead])
    return float(slices.sum() / times.time_us.sum()) * times.share_of_slice


def promise_kept_share(times: CapacityTimes, slices: int, time_share: float) -> float:
    """`promise_kept`: share of windows (months) of which at least `slices` slices held for a share `time_share`."""
    held = times.time_us[:, slices:].sum(axis=1) / times.time_us.sum(axis=1)
    return float(np.mean(held >= time_share))
