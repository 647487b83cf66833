"""Load of every channel under uniform all-to-all: every chip sends one unit to every chip (itself costs nothing).

Even split: all shortest paths of a pair carry the same share. With sigma(v) the number of shortest paths from the
source to v, the share of v's traffic that arrives from u is sigma(u) / sigma(v), so one pass outwards counts paths and
one pass back adds up loads (Brandes, "A faster algorithm for betweenness centrality", 2001, for edges).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topology.compilation import compiled
from topology.routing.channels import CHANNELS_PER_CHIP


@compiled
def _add_even_split(
    head: NDArray[np.int32], alive: NDArray[np.bool_], source: int, weight: float, load: NDArray[np.float64]
) -> int:
    """Add `weight` times the loads of one source to `load` (N * 6,); chips reached, the source included."""
    chips = head.size // CHANNELS_PER_CHIP
    hops = np.full(chips, -1, dtype=np.int32)
    paths = np.zeros(chips)
    through = np.ones(chips)
    order = np.empty(chips, dtype=np.int32)
    hops[source], paths[source], order[0], reached, at = 0, 1.0, source, 1, 0
    while at < reached:
        chip = order[at]
        at += 1
        for channel in range(chip * CHANNELS_PER_CHIP, (chip + 1) * CHANNELS_PER_CHIP):
            if alive[channel]:
                to = head[channel]
                if hops[to] < 0:
                    hops[to] = hops[chip] + 1
                    order[reached] = to
                    reached += 1
                if hops[to] == hops[chip] + 1:
                    paths[to] += paths[chip]
    for back in range(reached - 1, -1, -1):
        chip = order[back]
        total = 1.0
        for channel in range(chip * CHANNELS_PER_CHIP, (chip + 1) * CHANNELS_PER_CHIP):
            if alive[channel] and hops[head[channel]] == hops[chip] + 1:
                to = head[channel]
                flow = paths[chip] / paths[to] * through[to]
                load[channel] += weight * flow
                total += flow
        through[chip] = total
    return reached


@compiled
def even_split_kernel(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    sources: NDArray[np.int64],
    weights: NDArray[np.float64],
    load: NDArray[np.float64],
) -> bool:
    """Add the loads of these sources, each with its weight; whether every chip was reached from each."""
    chips = head.size // CHANNELS_PER_CHIP
    whole = True
    for i in range(sources.size):
        if _add_even_split(head, alive, sources[i], weights[i], load) < chips:
            whole = False
    return whole
