"""From outages to segments of time in which nothing changes: which cubes are usable, which hosts are up.

A machine of cubes is out of action host by host (a host's own outage) and cube by cube (its rack, an in-rack link). One
compiled pass over the sorted changes writes, for each segment, the mask of usable cubes and the number of aligned
blocks of 1, 2, 4 and 8 hosts that are up in each cube. Everything about availability is read from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sim.histories import ComponentKind, Outages
from topology.compilation import compiled
from topology.pod import HOSTS_PER_CUBE, IN_RACK_LINKS_PER_CUBE, AnyPod, FlatPod

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BLOCK_HOSTS = (1, 2, 4, 8)
"""Hosts of the aligned blocks that slices of less than a cube take."""
_COMPONENTS_PER_CUBE = {
    ComponentKind.HOST: HOSTS_PER_CUBE,
    ComponentKind.RACK: 1,
    ComponentKind.IN_RACK_LINK: IN_RACK_LINKS_PER_CUBE,
}


@dataclass(frozen=True, kw_only=True)
class Segments:
    """T stretches of time without change on a machine of C cubes, in order and without gaps.

    `start_us`, `duration_us` (T,); `usable` (T, C); `blocks_up` (T, C, 4): aligned blocks of 1, 2, 4, 8 hosts up.
    A flat machine is held as cubes of 16 hosts, the last one perhaps in part; only its `hosts_up` has a meaning.
    """

    start_us: Ints
    duration_us: Ints
    usable: Bools
    blocks_up: NDArray[np.uint8]

    @cached_property
    def hosts_up(self) -> Ints:
        """Hosts that can be used (T,): up themselves, and their rack and in-rack links too."""
        return np.asarray(self.blocks_up[:, :, 0].sum(axis=1, dtype=np.int64), dtype=np.int64)

    @cached_property
    def cubes_up(self) -> Ints:
        """Usable cubes U (T,)."""
        return np.asarray(self.usable.sum(axis=1, dtype=np.int64), dtype=np.int64)

    @property
    def total_us(self) -> int:
        """Length of the whole stretch."""
        return int(self.duration_us.sum())

    def window_of(self, edges_us: Ints) -> Ints:
        """For each segment the index of the window [edges[i], edges[i + 1]) that holds its start (T,)."""
        return np.searchsorted(edges_us, self.start_us, side="right").astype(np.int64) - 1


@compiled
def fill_segments(
    time_us: Ints,
    target: Ints,
    step: Ints,
    hosts: int,
    until_us: int,
    start_us: Ints,
    duration_us: Ints,
    usable: Bools,
    blocks_up: NDArray[np.uint8],
) -> int:
    """Write the segments between the changes; returns their number.

    Change i at `time_us[i]` adds `step[i]` to the outages of `target[i]`: host h, cube `hosts_held + c`, or nothing
    (-1). The first change is at the start of the stretch.
    """
    cubes = usable.shape[1]
    held = 16 * cubes
    outages = np.zeros(held + cubes, dtype=np.int64)
    out = np.zeros(held, dtype=np.bool_)
    out[hosts:] = True
    now_usable = np.zeros(cubes, dtype=np.bool_)
    now_blocks = np.zeros((cubes, 4), dtype=np.uint8)
    changed = np.ones(cubes, dtype=np.bool_)
    any_changed = True
    rows, now = 0, time_us[0]
    for i in range(time_us.shape[0] + 1):
        then = until_us if i == time_us.shape[0] else time_us[i]
        if then > now:
            if any_changed:
                for cube in range(cubes):
                    if changed[cube]:
                        changed[cube] = False
                        frame_down = outages[held + cube] > 0
                        for level in range(4):
                            size = 1 << level
                            up = 0
                            for first in range(16 * cube, 16 * cube + 16, size):
                                whole = not frame_down
                                for host in range(first, first + size):
                                    if out[host]:
                                        whole = False
                                up += 1 if whole else 0
                            now_blocks[cube, level] = up
                        now_usable[cube] = now_blocks[cube, 0] == 16
                any_changed = False
            start_us[rows] = now
            duration_us[rows] = then - now
            usable[rows] = now_usable
            blocks_up[rows] = now_blocks
            rows += 1
            now = then
        if i < time_us.shape[0] and target[i] >= 0:
            outages[target[i]] += step[i]
            if target[i] < held:
                out[target[i]] = outages[target[i]] > 0
                changed[target[i] // 16] = True
            else:
                changed[target[i] - held] = True
            any_changed = True
    return rows


def _targets(outages: Outages, hosts_held: int) -> Ints:
    """What an outage takes out of action, in the numbering of `fill_segments`."""
    if outages.kind is ComponentKind.HOST:
        return outages.component
    return hosts_held + outages.component // _COMPONENTS_PER_CUBE[outages.kind]


def segments_of(
    pod: AnyPod,
    outages: Sequence[Outages],
    until_us: int,
    *,
    from_us: int = 0,
    edges_us: Sequence[int] | Ints = (),
) -> Segments:
    """Segments of [from, until) for all populations of `outages`; those that never make a cube unusable are ignored.

    Overlapping outages of a component keep it down until all have ended. A segment never crosses one of `edges_us`.
    """
    hosts = pod.hosts
    cubes = -(-hosts // HOSTS_PER_CUBE)
    held = HOSTS_PER_CUBE * cubes
    marks = np.concatenate(([from_us], np.asarray(edges_us, dtype=np.int64)))
    marks = marks[(marks >= from_us) & (marks < until_us)]
    times, targets, steps = [marks], [np.full(len(marks), -1)], [np.zeros(len(marks), dtype=np.int64)]
    for population in outages:
        kept = _COMPONENTS_PER_CUBE if not isinstance(pod, FlatPod) else (ComponentKind.HOST,)
        if population.kind not in kept:
            continue
        start = np.maximum(population.start_us, from_us)
        end = np.minimum(population.end_us, until_us)
        counts = end > start
        target = _targets(population, held)[counts]
        times += [start[counts], end[counts]]
        targets += [target, target]
        steps += [np.ones(len(target), dtype=np.int64), np.full(len(target), -1)]
    time_us = np.concatenate(times)
    order = np.argsort(time_us, kind="stable")
    time_us, target, step = time_us[order], np.concatenate(targets)[order], np.concatenate(steps)[order]
    rows = 1 + int(np.count_nonzero(np.diff(time_us)))
    start_us, duration_us = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    usable = np.empty((rows, cubes), dtype=np.bool_)
    blocks_up = np.empty((rows, cubes, len(BLOCK_HOSTS)), dtype=np.uint8)
    count = fill_segments(time_us, target, step, hosts, until_us, start_us, duration_us, usable, blocks_up)
    return Segments(
        start_us=start_us[:count],
        duration_us=duration_us[:count],
        usable=usable[:count],
        blocks_up=blocks_up[:count],
    )
