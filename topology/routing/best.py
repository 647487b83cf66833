"""Best routes of a form: any paths, or the wild-first sandwich; by mixing cheapest paths, proved by a bound."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from topology.pod import DIMENSIONS
from topology.routing.channels import Torus
from topology.routing.optimal import Flows, best_flows, flows_of, program_size
from topology.routing.spreading import CLASSES_FOR_COLUMNS, Spread, spread
from topology.routing.sweeping import LARGEST_FLOWS, NO_AXES, Swept, sweep
from topology.routing.symmetry import FaultSymmetry, Quotient, quotient
from topology.routing.trees import any_path, sandwich

FloatArray = NDArray[np.float64]

EXACT_VARIABLES = 20_000
"""Up to so many (source, channel) pairs one linear program is solved; above, cheapest paths are mixed."""
GAP = 0.005
ROUNDS = 300


class CheapestPaths:
    """Cheapest paths under prices, of one source per class of sources: over any path, or of the form that `axes` gives.

    The sandwich hops along axes[2] and axes[1] and then rides the rings of axes[0], axes[1], axes[2].
    """

    def __init__(self, torus: Torus, links: NDArray[np.int64], axes: tuple[int, int, int] | None = None) -> None:
        self.torus, self.alive = torus, torus.alive(links)
        self.classes: Quotient = quotient(FaultSymmetry(torus=torus, links=links))
        self.live = np.unique(self.classes.channel_class[self.alive])
        self._axes = None if axes is None else np.array(axes, dtype=np.int64)

    @property
    def class_size(self) -> NDArray[np.int64]:
        """Channels of each living class."""
        return self.classes.class_size[self.live]

    def __call__(self, prices: FloatArray) -> tuple[FloatArray, float]:
        """Loads per living class and summed price of all pairs, infinite where a pair has no path of the form."""
        price, load, total = self.price_of_channel(prices), np.zeros(self.torus.head.size), 0.0
        for source, weight in zip(self.classes.sources.tolist(), self.classes.weights.tolist(), strict=True):
            if self._axes is None:
                found = any_path(self.torus.head, self.alive, price, source, weight, load, np.empty(0), 0.0)
            else:
                found = sandwich(self.torus.head, self.alive, price, self._axes, source, weight, load)
            total += weight * found
        totals = np.bincount(self.classes.channel_class, weights=load, minlength=self.classes.class_size.size)
        return totals[self.live] / self.class_size, total

    def price_of_channel(self, prices: FloatArray) -> FloatArray:
        """Price of every channel (N * 6,) from those of the living classes."""
        full = np.zeros(self.classes.class_size.size)
        full[self.live] = prices
        spread_out: FloatArray = full[self.classes.channel_class]
        return spread_out

    @property
    def fits(self) -> bool:
        """Whether the flows of all chosen sources fit in memory."""
        return self.classes.sources.size * self.torus.head.size <= LARGEST_FLOWS

    @property
    def is_irregular(self) -> bool:
        """Whether the fault has so little symmetry that one source after another is moved."""
        return self.live.size > CLASSES_FOR_COLUMNS and self.fits

    @property
    def reaches_all(self) -> bool:
        """Whether every pair has a path of the form."""
        return bool(np.isfinite(self(np.ones(self.live.size))[1]))

    def mixed_flows(self, mixture: Spread) -> FloatArray:
        """Flow (s, N * 6) per chosen source of a mixture of cheapest paths over any path."""
        flow = np.zeros((self.classes.sources.size, self.torus.head.size))
        unused = np.zeros(self.torus.head.size)
        for prices, share in zip(mixture.prices, mixture.shares.tolist(), strict=True):
            price = self.price_of_channel(prices)
            for i, source in enumerate(self.classes.sources.tolist()):
                any_path(self.torus.head, self.alive, price, source, 0.0, unused, flow[i], share)
        return flow


def best_routes(torus: Torus, links: NDArray[np.int64], *, gap: float = GAP, rounds: int = ROUNDS) -> Flows:
    """Routes over any paths with the least greatest load: exact where the program is small, else within its `gap`.

    Every chip must be in reach. Where the flows of all sources would not fit in memory, only their loads are kept.
    """
    if program_size(torus, links) <= EXACT_VARIABLES:
        return best_flows(torus, links)
    return mixed_routes(torus, links, gap=gap, rounds=rounds)


def mixed_routes(torus: Torus, links: NDArray[np.int64], *, gap: float = GAP, rounds: int = ROUNDS) -> Flows:
    """As `best_routes`, always by mixing cheapest paths: all sources at once where the fault has much symmetry."""
    paths = CheapestPaths(torus, links)
    if paths.is_irregular:
        swept = sweep(torus.head, paths.alive, paths.classes, NO_AXES, gap=gap, rounds=rounds)
        return flows_of(torus, paths.classes, swept.flow, swept.bound)
    mixture = spread(paths, paths.class_size, gap=gap, rounds=rounds)
    if not paths.fits:
        load = np.zeros(paths.classes.class_size.size)
        load[paths.live] = mixture.load
        nothing = np.empty((0, torus.head.size))
        return Flows(classes=paths.classes, flow=nothing, load=load[paths.classes.channel_class], bound=mixture.bound)
    return flows_of(torus, paths.classes, paths.mixed_flows(mixture), mixture.bound)


def sandwich_orders(torus: Torus, links: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Orders of the axes, the most promising first: axes that lost links are ridden early, where a hop dodges them."""
    struck = np.bincount(links % DIMENSIONS, minlength=DIMENSIONS)
    order = sorted(permutations(range(DIMENSIONS)), key=lambda axes: [(-struck[a], a) for a in axes])
    return [(a, b, c) for a, b, c in order]


def sandwich_axes(torus: Torus, links: NDArray[np.int64]) -> tuple[int, int, int] | None:
    """The first order of axes whose paths of the wild-first form serve all pairs; None where no order does."""
    for axes in sandwich_orders(torus, links):
        if CheapestPaths(torus, links, axes).reaches_all:
            return axes
    return None


def wild_first_routes(
    torus: Torus, links: NDArray[np.int64], *, gap: float = GAP, rounds: int = ROUNDS
) -> Spread | Swept | None:
    """The best mixture of paths of the wild-first form; None where no order of the axes serves all pairs.

    Routes are chosen off line, so the order may suit the fault: `sandwich_axes`.
    """
    axes = sandwich_axes(torus, links)
    if axes is None:
        return None
    paths = CheapestPaths(torus, links, axes)
    if paths.is_irregular:
        order = np.array(axes, dtype=np.int64)
        return sweep(torus.head, paths.alive, paths.classes, order, gap=gap, rounds=rounds)
    return spread(paths, paths.class_size, gap=gap, rounds=rounds)
