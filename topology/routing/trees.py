"""Cheapest paths from one source to all chips, and what traffic along them puts on the channels; compiled.

Two ways to travel: any path at all (`any_path`), and the sandwich of wild-first routing (`sandwich`): at most one hop
along each of two axes, then dimension order with the axes reversed, as in x y Z Y X; on each ring one way round,
either way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topology.compilation import compiled
from topology.routing.channels import CHANNELS_PER_CHIP

SANDWICH_LAYERS = 6
"""Start, hop, hop, ring, ring, ring."""


@compiled
def _sift_up(heap_key: NDArray[np.float64], heap_item: NDArray[np.int32], at: int) -> None:
    key, item = heap_key[at], heap_item[at]
    while at > 0:
        parent = (at - 1) // 2
        if heap_key[parent] <= key:
            break
        heap_key[at], heap_item[at] = heap_key[parent], heap_item[parent]
        at = parent
    heap_key[at], heap_item[at] = key, item


@compiled
def _sift_down(heap_key: NDArray[np.float64], heap_item: NDArray[np.int32], size: int) -> None:
    key, item, at = heap_key[0], heap_item[0], 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap_key[child + 1] < heap_key[child]:
            child += 1
        if heap_key[child] >= key:
            break
        heap_key[at], heap_item[at] = heap_key[child], heap_item[child]
        at = child
    heap_key[at], heap_item[at] = key, item


@compiled
def any_path(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    price: NDArray[np.float64],
    source: int,
    weight: float,
    load: NDArray[np.float64],
    flow: NDArray[np.float64],
    step: float,
) -> float:
    """Send a unit to every chip on the cheapest paths; the sum of their prices, infinite where a chip is out of reach.

    Adds `weight` per unit to `load` (N * 6,) and `step` per unit to `flow` (N * 6,; none where its size is 0).
    """
    chips = head.size // CHANNELS_PER_CHIP
    cost = np.full(chips, np.inf)
    by = np.full(chips, -1, dtype=np.int32)
    done = np.zeros(chips, dtype=np.bool_)
    order = np.empty(chips, dtype=np.int32)
    heap_key, heap_item = np.empty(head.size + 1), np.empty(head.size + 1, dtype=np.int32)
    heap_key[0], heap_item[0], size, reached, total = 0.0, source, 1, 0, 0.0
    cost[source] = 0.0
    while size > 0:
        chip = heap_item[0]
        size -= 1
        if size > 0:
            heap_key[0], heap_item[0] = heap_key[size], heap_item[size]
            _sift_down(heap_key, heap_item, size)
        if done[chip]:
            continue
        done[chip] = True
        order[reached] = chip
        reached += 1
        total += cost[chip]
        for channel in range(chip * CHANNELS_PER_CHIP, (chip + 1) * CHANNELS_PER_CHIP):
            if alive[channel]:
                to, reach = head[channel], cost[chip] + price[channel]
                if reach < cost[to]:
                    cost[to], by[to] = reach, channel
                    heap_key[size], heap_item[size] = reach, to
                    _sift_up(heap_key, heap_item, size)
                    size += 1
    through = np.ones(chips)
    for back in range(reached - 1, 0, -1):
        channel = by[order[back]]
        through[channel // CHANNELS_PER_CHIP] += through[order[back]]
        load[channel] += weight * through[order[back]]
        if flow.size > 0:
            flow[channel] += step * through[order[back]]
    return total if reached == chips else np.inf


@compiled
def _ride(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    price: NDArray[np.float64],
    way: int,
    entry: NDArray[np.float64],
    cost: NDArray[np.float64],
    by: NDArray[np.int32],
) -> None:
    """Cheapest ride one way along an axis from any entry: `by` is the channel ridden last, -1 where one gets on."""
    chips = entry.size
    seen = np.zeros(chips, dtype=np.bool_)
    for chip in range(chips):
        cost[chip], by[chip] = entry[chip], -1
    for first in range(chips):
        if seen[first] or (head[first * CHANNELS_PER_CHIP + (way ^ 1)] >= 0 and not _is_least(head, first, way)):
            continue
        at, rounds = first, 0
        while rounds < 2:
            seen[at] = True
            channel = at * CHANNELS_PER_CHIP + way
            to = head[channel]
            if to < 0:
                break
            if alive[channel] and cost[at] + price[channel] < cost[to]:
                cost[to], by[to] = cost[at] + price[channel], channel
            at = to
            if at == first:
                rounds += 1


@compiled
def _is_least(head: NDArray[np.int32], first: int, way: int) -> bool:
    """Whether a chip has the least number on its ring (False on a line, whose start is not `first`)."""
    at = head[first * CHANNELS_PER_CHIP + way]
    while at != first:
        if at < first:
            return False
        at = head[at * CHANNELS_PER_CHIP + way]
    return True


@compiled
def sandwich(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    price: NDArray[np.float64],
    axes: NDArray[np.int64],
    source: int,
    weight: float,
    load: NDArray[np.float64],
) -> float:
    """As `any_path`, with paths of the wild-first form: hops along axes[2], axes[1], then rings axes[0], [1], [2]."""
    chips = head.size // CHANNELS_PER_CHIP
    cost = np.full((SANDWICH_LAYERS, chips), np.inf)
    hop = np.full((SANDWICH_LAYERS, chips), -1, dtype=np.int32)
    back_by = np.full((3, chips), -1, dtype=np.int32)
    downwards = np.zeros((3, chips), dtype=np.bool_)
    back_cost = np.empty(chips)
    cost[0, source] = 0.0
    for layer in (1, 2):
        axis = axes[3 - layer]
        cost[layer] = cost[layer - 1]
        for chip in range(chips):
            if cost[layer - 1, chip] < np.inf:
                for way in (2 * axis, 2 * axis + 1):
                    channel = chip * CHANNELS_PER_CHIP + way
                    if alive[channel] and cost[layer - 1, chip] + price[channel] < cost[layer, head[channel]]:
                        cost[layer, head[channel]] = cost[layer - 1, chip] + price[channel]
                        hop[layer, head[channel]] = channel
    for ring in range(3):
        layer, way = 3 + ring, 2 * axes[ring]
        _ride(head, alive, price, way, cost[layer - 1], cost[layer], hop[layer])
        _ride(head, alive, price, way + 1, cost[layer - 1], back_cost, back_by[ring])
        for chip in range(chips):
            if back_cost[chip] < cost[layer, chip]:
                cost[layer, chip], downwards[ring, chip] = back_cost[chip], True
    total = 0.0
    for chip in range(chips):
        total += cost[SANDWICH_LAYERS - 1, chip]
        if chip != source and total < np.inf:
            _trace(hop, back_by, downwards, chip, weight, load)
    return total


@compiled
def _trace(
    hop: NDArray[np.int32],
    back_by: NDArray[np.int32],
    downwards: NDArray[np.bool_],
    chip: int,
    weight: float,
    load: NDArray[np.float64],
) -> None:
    """Follow the path to a chip back to the source, adding to the load of its channels."""
    for ring in (2, 1, 0):
        by = back_by[ring] if downwards[ring, chip] else hop[3 + ring]
        while by[chip] >= 0:
            load[by[chip]] += weight
            chip = by[chip] // CHANNELS_PER_CHIP
    for layer in (2, 1):
        if hop[layer, chip] >= 0:
            load[hop[layer, chip]] += weight
            chip = hop[layer, chip] // CHANNELS_PER_CHIP
