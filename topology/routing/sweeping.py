"""Least greatest load where a fault has little symmetry: one source after another moves to cheaper paths.

As in `spreading`, but prices follow after every source instead of after all of them, so a round over all sources does
the work of many (block-coordinate Frank-Wolfe, Lacoste-Julien et al., 2013). The bound is that of `spreading`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topology.compilation import compiled
from topology.routing.spreading import LEAST_PRICE
from topology.routing.symmetry import Quotient
from topology.routing.trees import any_path, sandwich

FloatArray = NDArray[np.float64]

FIRST_SHARPNESS = 20.0
SHARPER = 1.5
SHARPNESS_OF_GAP = 1.0
SHARPEST = 5e3
NO_AXES = np.empty(0, dtype=np.int64)
LARGEST_FLOWS = 60_000_000
"""Flows (sources times channels) that are kept in memory: half a gigabyte."""


@dataclass(frozen=True, kw_only=True)
class Swept:
    """Loads `flow` (s, N * 6) of each chosen source, `load` (N * 6,) of all together; no routes come below `bound`."""

    flow: FloatArray
    load: FloatArray
    bound: float

    @property
    def greatest(self) -> float:
        """The greatest load of a channel."""
        return float(self.load.max())

    @property
    def gap(self) -> float:
        """How far, as a share, the greatest load may be above the least possible."""
        return self.greatest / self.bound - 1.0


@compiled
def _send(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    price: NDArray[np.float64],
    axes: NDArray[np.int64],
    source: int,
    load: NDArray[np.float64],
) -> float:
    """Add a source's loads on its cheapest paths, of the sandwich where there are axes; the summed price."""
    if axes.size > 0:
        return sandwich(head, alive, price, axes, source, 1.0, load)
    return any_path(head, alive, price, source, 1.0, load, np.empty(0), 0.0)


@compiled
def _sweep(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    axes: NDArray[np.int64],
    sources: NDArray[np.int64],
    weights: NDArray[np.float64],
    of_class: NDArray[np.int32],
    size: NDArray[np.int64],
    flow: NDArray[np.float64],
    total: NDArray[np.float64],
    sharpness: float,
) -> None:
    """Move each source towards its cheapest paths in turn: `total` (classes,) holds the load per channel of a class."""
    price, fresh = np.zeros(head.size), np.zeros(head.size)
    worth, change = np.zeros(total.size), np.zeros(total.size)
    for i in range(sources.size):
        peak = total.max()
        for k in range(total.size):
            worth[k] = math.exp(sharpness * (total[k] / peak - 1.0))
        least = LEAST_PRICE * (worth * size).sum() / size.sum()
        fresh[:] = 0.0
        change[:] = 0.0
        for channel in range(head.size):
            price[channel] = worth[of_class[channel]] + least
        _send(head, alive, price, axes, sources[i], fresh)
        for channel in range(head.size):
            difference = fresh[channel] - flow[i, channel]
            if difference != 0.0:
                change[of_class[channel]] += weights[i] * difference / size[of_class[channel]]
        slope, bend = 0.0, 0.0
        for k in range(total.size):
            slope += size[k] * worth[k] * change[k]
            bend += size[k] * worth[k] * change[k] * change[k] * sharpness / peak
        if slope >= 0.0 or bend <= 0.0:
            continue
        share = min(1.0, -slope / bend)
        for channel in range(head.size):
            flow[i, channel] += share * (fresh[channel] - flow[i, channel])
        for k in range(total.size):
            total[k] += share * change[k]


@compiled
def _summed_price(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    axes: NDArray[np.int64],
    sources: NDArray[np.int64],
    weights: NDArray[np.float64],
    price: NDArray[np.float64],
    flow: NDArray[np.float64],
) -> float:
    """Cheapest price of all pairs; where `flow` (s, N * 6) has a size, the loads are added to it."""
    total, unused = 0.0, np.zeros(head.size)
    for i in range(sources.size):
        total += weights[i] * _send(head, alive, price, axes, sources[i], flow[i] if flow.size > 0 else unused)
    return total


def sweep(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    classes: Quotient,
    axes: NDArray[np.int64],
    *,
    gap: float,
    rounds: int,
) -> Swept:
    """Routes within `gap` of the bound, or after so many rounds; `axes` of the sandwich, or `NO_AXES` for any path."""
    size, of_class = classes.class_size, classes.channel_class
    flow = np.zeros((classes.sources.size, head.size))
    _summed_price(head, alive, axes, classes.sources, classes.weights, np.ones(head.size), flow)
    total = np.bincount(of_class, classes.weights @ flow, size.size) / size
    bound, sharpness = 0.0, FIRST_SHARPNESS
    for done in range(1, rounds + 1):
        _sweep(head, alive, axes, classes.sources, classes.weights, of_class, size, flow, total, sharpness)
        if done % 2 == 0 or done == rounds:
            total = np.bincount(of_class, classes.weights @ flow, size.size) / size
            price = np.where(alive, np.exp(sharpness * (total / total.max() - 1.0))[of_class], 0.0)
            price[alive] += LEAST_PRICE * price.mean()
            price /= price.sum()
            proved = _summed_price(head, alive, axes, classes.sources, classes.weights, price, np.empty((0, 0)))
            bound = max(bound, proved)
            left = float(total.max()) / bound - 1.0
            if left <= gap:
                break
            sharpness = min(SHARPEST, sharpness * SHARPER, SHARPNESS_OF_GAP * math.log(size.size + 1.0) / left)
    return Swept(flow=flow, load=total[of_class], bound=bound)
