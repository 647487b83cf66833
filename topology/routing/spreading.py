"""Least greatest load without one large linear program: prices, cheapest paths, mixing; the bound proves the gap.

Channels get prices that rise with their load, and cheapest paths under these prices are mixed with the routes so far
by the share that lowers a smooth maximum most (Frank and Wolfe, 1956). Then a small linear program over the mixed
columns finds better shares, and its dual prices ask for new columns (Dantzig and Wolfe, 1960; prices smoothed as
Wentges, 1997). For any prices p no routes have a greatest load below (sum over pairs of the cheapest price) / (sum of
p): the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topology.routing.programs import least_cost

FloatArray = NDArray[np.float64]
Cheapest = Callable[[FloatArray], tuple[FloatArray, float]]
"""From prices per class of living channels to the loads per class and the summed price of all pairs."""

SHARPEST = 2e4
FIRST_SHARPNESS = 10.0
CLASSES_FOR_COLUMNS = 200
"""Above so many classes of channels the program over columns is slower than more mixing."""
COLUMNS_KEPT = 80
LEAST_PRICE = 1e-3
"""Added to every price, as a share of the mean price."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Routes as a mixture: with share `shares[k]` (K,), the cheapest paths under `prices[k]` (K, classes).

    `load` (classes,) is what the mixture puts on each channel of a class; no routes have a greatest load below `bound`.
    """

    prices: FloatArray
    shares: FloatArray
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


class _Columns:
    """The answers so far: prices asked, loads given, and the best bound with its prices."""

    def __init__(self, cheapest: Cheapest, class_size: NDArray[np.int64]) -> None:
        self._cheapest, self.class_size = cheapest, class_size
        self.prices: list[FloatArray] = []
        self.loads: list[FloatArray] = []
        self.bound, self.best_prices = 0.0, np.ones(class_size.size)

    def ask(self, prices: FloatArray) -> FloatArray:
        """Loads of the cheapest paths under these prices, none of them nil: packets must not wander for nothing."""
        prices = prices + LEAST_PRICE * float(prices @ self.class_size) / float(self.class_size.sum())
        load, total = self._cheapest(prices)
        bound = total / float((prices * self.class_size).sum())
        if bound > self.bound:
            self.bound, self.best_prices = bound, prices
        self.prices.append(prices)
        self.loads.append(load)
        return load


def spread(cheapest: Cheapest, class_size: NDArray[np.int64], *, gap: float, rounds: int) -> Spread:
    """Mix cheapest paths until the greatest load is within `gap` of the bound, or for so many rounds of each kind.

    `class_size` (classes,) counts the living channels of each class. Every pair must have a path.
    """
    columns = _Columns(cheapest, class_size)
    mixed = _mix(columns, gap, rounds)
    if mixed.gap > gap and class_size.size <= CLASSES_FOR_COLUMNS:
        return _shares_by_program(columns, mixed, gap, rounds)
    return mixed


def _mix(columns: _Columns, gap: float, rounds: int) -> Spread:
    """The first stage: mixing by the slope of a smooth maximum that sharpens as the gap closes."""
    size = columns.class_size
    load = columns.ask(np.ones(size.size))
    shares, sharpness = [1.0], FIRST_SHARPNESS
    for _ in range(rounds):
        peak = float(load.max())
        if peak / columns.bound - 1.0 <= gap:
            break
        fresh = columns.ask(np.exp(sharpness * (load / peak - 1.0)))
        share = _best_share(load / peak, fresh / peak, size, sharpness)
        load = (1.0 - share) * load + share * fresh
        shares = [(1.0 - share) * old for old in shares] + [share]
        wanted = 2.0 * math.log(size.size + 1.0) / max(peak / columns.bound - 1.0, 1e-4)
        sharpness = min(SHARPEST, max(sharpness if share > 1e-9 else 1.5 * sharpness, wanted))
    return Spread(prices=np.array(columns.prices), shares=np.array(shares), load=load, bound=columns.bound)


def _best_share(load: FloatArray, fresh: FloatArray, class_size: NDArray[np.int64], sharpness: float) -> float:
    """The share of `fresh` that lowers the smooth maximum most, by halving on its slope."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        mixed = (1.0 - middle) * load + middle * fresh
        slope = float((class_size * np.exp(sharpness * (mixed - mixed.max())) * (fresh - load)).sum())
        low, high = (middle, high) if slope < 0 else (low, middle)
    return low


def _shares_by_program(columns: _Columns, mixed: Spread, gap: float, rounds: int) -> Spread:
    """The second stage: the best shares of the columns by linear program, and new columns from its dual prices."""
    size = columns.class_size
    del columns.prices[:-COLUMNS_KEPT], columns.loads[:-COLUMNS_KEPT]
    columns.prices.append(np.empty(0))  # the mixture so far counts as one column
    columns.loads.append(mixed.load)
    best, weight = len(columns.loads) - 1, 0.7
    for _ in range(rounds):
        shares, peak, dual = _program(np.array(columns.loads))
        if peak / columns.bound - 1.0 <= gap:
            break
        own, centre = dual / size, columns.best_prices
        own, centre = own / (own * size).sum(), centre / (centre * size).sum()
        mixing = weight
        while True:
            load = columns.ask(mixing * centre + (1.0 - mixing) * own)
            if mixing == 0.0 or float((own * size) @ load) < peak * (1.0 - 1e-9):
                break
            mixing = mixing / 2 if mixing > 0.1 else 0.0
    shares, _, _ = _program(np.array(columns.loads))
    load = shares @ np.array(columns.loads)
    kept = [k for k in range(len(columns.loads)) if k != best and shares[k] > 0.0]
    prices = [columns.prices[k] for k in kept]
    parts = [float(shares[k]) for k in kept]
    if shares[best] > 0.0:
        prices += list(mixed.prices)
        parts += [float(shares[best] * share) for share in mixed.shares]
    return Spread(prices=np.array(prices), shares=np.array(parts), load=load, bound=columns.bound)


def _program(loads: FloatArray) -> tuple[FloatArray, float, FloatArray]:
    """Shares (K,) of columns (K, classes) with the least greatest load, that load, and the dual prices (classes,)."""
    count, classes = loads.shape
    column, row = np.divmod(np.arange(loads.size), classes)
    every, one = np.arange(classes), np.zeros(count, dtype=np.int64)
    optimum = least_cost(
        np.append(np.zeros(count), 1.0),
        ([(row, column, loads.ravel()), (every, np.full(classes, count), np.full(classes, -1.0))], np.zeros(classes)),
        ([(one, np.arange(count), np.ones(count))], np.ones(1)),
    )
    assert optimum is not None
    shares = optimum.values[:-1]
    return shares / shares.sum(), float(optimum.values[-1]), optimum.prices
