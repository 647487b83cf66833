"""How many replicas of each service a machine could hold, and for how long: the weights of the serving windows.

Services take their slices in order; every change of the machine deals anew. A whole-cube slice takes usable cubes: any
(reconfigurable), the lowest whole block (static_aligned), the first box of the largest packing (static_contiguous). A
slice of less than a cube takes aligned hosts of cubes that nobody has, broken ones first. `any_host` counts hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sim.metrics.intervals import Estimate, mean_estimate
from sim.metrics.segments import BLOCK_HOSTS, Segments
from topology.boxes import check_fabric, contiguous_table
from topology.compilation import compiled
from topology.fabric import Fabric
from topology.packing import BoxTable, find_fitting, first_box, first_fit, search_packing
from topology.placement import hosts_of_slice, slices_per_host
from topology.pod import CHIPS_PER_CUBE, AnyPod, FlatPod

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_MOST_STEPS = 100_000
"""After so many steps back and forth `choose_boxes` takes the first fit instead."""


@dataclass(frozen=True, kw_only=True)
class ReplicaDemand:
    """A service that wants `replicas` slices of `slice_chips` chips."""

    service: str
    slice_chips: int
    replicas: int


@dataclass(frozen=True, kw_only=True)
class ReplicaTimes:
    """Time with each number of replicas up: `time_us[r, m1, m2, ...]` of replication r, an axis per service in order.

    `losses[r, s]`: losses of replicas of service s that failures of cubes or hosts in use bring, on average over which
    of the equal cubes are in use.
    """

    fabric: Fabric
    demands: tuple[ReplicaDemand, ...]
    time_us: Ints
    losses: NDArray[np.float64]

    def of_service(self, index: int) -> Ints:
        """Time with m = 0 .. wanted replicas of one service up, per replication (R, wanted + 1)."""
        others = tuple(axis + 1 for axis in range(len(self.demands)) if axis != index)
        return np.asarray(self.time_us.sum(axis=others), dtype=np.int64)

    def weights(self, index: int) -> list[Estimate]:
        """Share of time with m = 0 .. wanted replicas of one service up, each with its interval over replications."""
        times = self.of_service(index)
        shares = times / times.sum(axis=1, keepdims=True)
        return [mean_estimate(column) for column in shares.T]

    def losses_per_s(self, index: int) -> Estimate:
        """Losses of replicas of one service per second, with its interval over replications."""
        total_s = self.time_us.reshape(len(self.time_us), -1).sum(axis=1) / 1e6
        return mean_estimate(self.losses[:, index] / total_s)


def stacked_replicas(parts: Sequence[ReplicaTimes]) -> ReplicaTimes:
    """Replications of the same services and fabric, one below the other."""
    return replace(
        parts[0],
        time_us=np.concatenate([part.time_us for part in parts]),
        losses=np.concatenate([part.losses for part in parts]),
    )


@compiled
def take_cubes(free: Bools, cubes: int, aligned: bool, wanted: int, held: Ints) -> None:
    """Take up to `wanted` slices of `cubes` cubes from each row of `free` (T, C); counts in `held` (T,), zeros."""
    for t in range(free.shape[0]):
        if aligned:
            for block in range(free.shape[1] // cubes):
                if held[t] == wanted:
                    break
                whole = True
                for cube in range(block * cubes, (block + 1) * cubes):
                    whole = whole and free[t, cube]
                if whole:
                    free[t, block * cubes : (block + 1) * cubes] = False
                    held[t] += 1
            continue
        held[t] = min(wanted, free[t].sum() // cubes)
        left = held[t] * cubes
        for cube in range(free.shape[1]):
            if left > 0 and free[t, cube]:
                free[t, cube] = False
                left -= 1


@compiled
def choose_boxes(usable: Bools, table: BoxTable, wanted: int, most_steps: int, chosen: Ints) -> int:
    """Choose min(wanted, largest packing) disjoint boxes, the first such set in their order; returns how many."""
    fitting = np.zeros(table.everything.shape[0], dtype=np.uint64)
    bound = min(wanted, find_fitting(usable, table, fitting) // table.box_cubes)
    found = min(bound, first_fit(fitting.copy(), table))
    if found < bound and table.exact:
        found = search_packing(fitting, table, found, bound)
    options = np.zeros((found + 1, fitting.shape[0]), dtype=np.uint64)
    options[0] = fitting
    level, steps = 0, 0
    while level < found:
        box = first_box(options[level])
        steps += 1
        if steps > most_steps:
            break
        if box < 0:
            level -= 1
            continue
        options[level, box // 64] &= ~(np.uint64(1) << np.uint64(box % 64))
        options[level + 1] = options[level] & ~table.conflict[box]
        chosen[level] = box
        level += 1
    if level == found:
        return found
    level = 0
    while level < wanted:
        box = first_box(fitting)
        if box < 0:
            break
        fitting &= ~table.conflict[box]
        chosen[level] = box
        level += 1
    return level


@compiled
def take_boxes(free: Bools, table: BoxTable, wanted: int, most_steps: int, held: Ints) -> None:
    """Take up to `wanted` boxes of `table` from each row of `free` (T, C), which loses them; counts in `held`."""
    chosen = np.zeros(wanted + 1, dtype=np.int64)
    for t in range(free.shape[0]):
        held[t] = choose_boxes(free[t], table, wanted, most_steps, chosen)
        for i in range(held[t]):
            for cube in table.cubes[chosen[i]]:
                free[t, cube] = False


@compiled
def take_hosts(free: Bools, taken: Bools, blocks_up: NDArray[np.uint8], wanted: int, together: int, held: Ints) -> None:
    """Take up to `wanted` slices of blocks of hosts, from cubes that are not `taken`: broken ones first, then whole."""
    for t in range(free.shape[0]):
        for whole in (False, True):
            for cube in range(free.shape[1]):
                if held[t] < wanted and not taken[t, cube] and free[t, cube] == whole and blocks_up[t, cube] > 0:
                    held[t] = min(wanted, held[t] + together * blocks_up[t, cube])
                    taken[t, cube] = True
                    free[t, cube] = False


def replicas_up(segments: Segments, pod: AnyPod, fabric: Fabric, demands: Sequence[ReplicaDemand]) -> Ints:
    """Replicas of each service that can be held in each segment (T, services)."""
    check_fabric(fabric, pod)
    up = np.zeros((len(segments.duration_us), len(demands)), dtype=np.int64)
    free, taken = segments.usable.copy(), np.zeros_like(segments.usable)
    hosts_left = segments.hosts_up.copy()
    for column, demand in enumerate(demands):
        hosts, together = hosts_of_slice(pod, demand.slice_chips), slices_per_host(demand.slice_chips)
        held = np.zeros(len(up), dtype=np.int64)
        if fabric is Fabric.ANY_HOST or isinstance(pod, FlatPod):
            held = np.minimum(demand.replicas, hosts_left // hosts * together)
            hosts_left -= -(-held // together) * hosts
        elif demand.slice_chips < CHIPS_PER_CUBE:
            blocks = segments.blocks_up[:, :, BLOCK_HOSTS.index(hosts)]
            take_hosts(free, taken, np.ascontiguousarray(blocks), demand.replicas, together, held)
        else:
            cubes, before = demand.slice_chips // CHIPS_PER_CUBE, free.copy()
            if fabric is Fabric.STATIC_CONTIGUOUS and cubes > 1:
                take_boxes(free, contiguous_table(pod, cubes), demand.replicas, _MOST_STEPS, held)
            else:
                take_cubes(free, cubes, fabric is Fabric.STATIC_ALIGNED, demand.replicas, held)
            taken |= before & ~free
        up[:, column] = held
    return up


def _losses(segments: Segments, pod: AnyPod, fabric: Fabric, demands: Sequence[ReplicaDemand], up: Ints) -> list[float]:
    """Failures of units in use: failures between segments x share of the units that each service uses before them."""
    totals = []
    failed_cubes = (segments.usable[:-1] & ~segments.usable[1:]).sum(axis=1)
    hosts_before = segments.blocks_up[:-1, :, 0].astype(np.int64)
    failed_hosts = np.maximum(hosts_before - segments.blocks_up[1:, :, 0], 0).sum(axis=1)
    for column, demand in enumerate(demands):
        by_host = demand.slice_chips < CHIPS_PER_CUBE or fabric is Fabric.ANY_HOST or isinstance(pod, FlatPod)
        failed, units = (failed_hosts, segments.hosts_up) if by_host else (failed_cubes, segments.cubes_up)
        per_slice = hosts_of_slice(pod, demand.slice_chips) if by_host else demand.slice_chips // CHIPS_PER_CUBE
        share = up[:-1, column] * per_slice / np.maximum(units[:-1], 1)
        totals.append(float(np.dot(failed, np.minimum(share, 1.0))))
    return totals


def time_with_replicas(
    segments: Segments, pod: AnyPod, fabric: Fabric, demands: Sequence[ReplicaDemand]
) -> ReplicaTimes:
    """Time at each joint number of replicas of one history; stack replications with `stacked_replicas`."""
    up = replicas_up(segments, pod, fabric, demands)
    time_us = np.zeros((1, *(demand.replicas + 1 for demand in demands)), dtype=np.int64)
    np.add.at(time_us[0], tuple(up.T), segments.duration_us)
    losses = np.array([_losses(segments, pod, fabric, demands, up)])
    return ReplicaTimes(fabric=fabric, demands=tuple(demands), time_us=time_us, losses=losses)
