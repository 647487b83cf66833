"""Optical budget: what a link may lose, what each connection through a switch loses, and which links are refused.

Light leaves a transceiver, passes a circulator, fibre, the switch, fibre and another circulator, and ends at the far
transceiver. Every part has a fixed loss except the switch, where it is that of a pair of mirrors: drawn once per
connection and the same whenever that connection is made again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ocs.circuits import Circuits
from topology.pod import SWITCHES_PER_POD
from topology.provenance import Mark, Source

RETURN_LOSS_DB = -38.0
"""Light thrown back by a switch (V2: summary of Apollo, arXiv 2208.10041)."""
Z_99 = float(ndtri(0.99))


@dataclass(frozen=True, kw_only=True, slots=True)
class InsertionLoss:
    """Loss of one connection through a switch, lognormal: `median_db`, and `p99_db` that 99 of 100 stay below."""

    median_db: float = 1.3
    p99_db: float = 2.0

    def __post_init__(self) -> None:
        """Check that the tail lies above the middle."""
        if not 0 < self.median_db <= self.p99_db or not math.isfinite(self.p99_db):
            raise ValueError(f"losses need 0 < median_db <= p99_db, not {self.median_db:g} and {self.p99_db:g} dB")

    @property
    def sigma(self) -> float:
        """Spread of the logarithm of the loss."""
        return math.log(self.p99_db / self.median_db) / Z_99

    def loss_db(self, uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Losses in dB for uniforms in (0, 1), of the same shape."""
        return np.asarray(self.median_db * np.exp(self.sigma * ndtri(uniforms)), dtype=np.float64)

    def share_above(self, loss_db: float) -> float:
        """Share of connections that lose more than `loss_db`."""
        if self.sigma == 0.0 or loss_db <= 0.0:
            return float(loss_db < self.median_db)
        return 0.5 * math.erfc(math.log(loss_db / self.median_db) / self.sigma / math.sqrt(2))


INSERTION_LOSS_SOURCES = (
    Source("p99_db", Mark.SECONDARY, "below 2 dB: summary of Apollo, arXiv 2208.10041; that it means 99 %, assumed"),
    Source("median_db", Mark.ASSUMED, "somewhat below the published limit"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpticalBudget:
    """Losses in dB along a link outside its switch, and how much in all the transceivers bear."""

    transceivers_bear_db: float = 6.0
    circulator_db: float = 0.8
    connectors: int = 4
    connector_db: float = 0.25
    fibre_m: float = 100.0
    fibre_db_per_km: float = 0.4
    reflections_db: float = 0.5

    @property
    def fixed_db(self) -> float:
        """All that is lost outside the switch: two circulators, connectors, fibre, reserve for reflections."""
        fibre_db = self.fibre_m / 1000 * self.fibre_db_per_km
        return 2 * self.circulator_db + self.connectors * self.connector_db + fibre_db + self.reflections_db

    @property
    def switch_may_lose_db(self) -> float:
        """What is left for the switch; not positive: no link works."""
        return self.transceivers_bear_db - self.fixed_db


BUDGET_SOURCES = (
    Source("transceivers_bear_db", Mark.ASSUMED, "a usual class of single-mode modules for 2 km"),
    Source("circulator_db", Mark.ASSUMED, "two per link; that circulators are used: ISCA 2023, 2.1 (V)"),
    Source("connectors", Mark.ASSUMED, "two patch points on each side of the switch"),
    Source("connector_db", Mark.ASSUMED, "usual single-mode connector"),
    Source("fibre_m", Mark.ASSUMED, "across a hall of 64 racks"),
    Source("fibre_db_per_km", Mark.ASSUMED, "single-mode fibre near 1.3 um"),
    Source("reflections_db", Mark.ASSUMED, "penalty of light that comes back in a fibre used both ways"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConnectionLosses:
    """Loss in dB of every connection of every switch: (48, C, C), by switch, cube of the + end, cube of the - end."""

    db: NDArray[np.float64]

    def of(self, circuits: Circuits) -> NDArray[np.float64]:
        """Losses (K,) of circuits."""
        return np.asarray(self.db[circuits[:, 0], circuits[:, 1], circuits[:, 2]])


def draw_losses(
    cubes: int, uniforms: Callable[[int], NDArray[np.float64]], law: InsertionLoss | None = None
) -> ConnectionLosses:
    """Losses of all connections of a pod; `uniforms(count)` gives so many numbers in (0, 1) from a named stream."""
    drawn = (law or InsertionLoss()).loss_db(uniforms(SWITCHES_PER_POD * cubes * cubes))
    return ConnectionLosses(db=drawn.reshape(SWITCHES_PER_POD, cubes, cubes))


@dataclass(frozen=True, kw_only=True, eq=False)
class Admission:
    """Circuits within the budget, and those refused, each sorted as they were, with the reserve (K,) in dB of each."""

    lit: Circuits
    refused: Circuits
    margin_db: NDArray[np.float64]


def admit(circuits: Circuits, losses: ConnectionLosses, budget: OpticalBudget | None = None) -> Admission:
    """Split circuits into those that the budget bears and those that it does not."""
    margin = (budget or OpticalBudget()).switch_may_lose_db - losses.of(circuits)
    return Admission(lit=circuits[margin >= 0], refused=circuits[margin < 0], margin_db=margin)
