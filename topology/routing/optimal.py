"""Best routes by linear program: flows that minimise the greatest load of a channel under uniform all-to-all.

One flow per source carries a unit to every chip. Sources that the symmetry of the fault carries into one another need
one flow between them, and the flow of a source may itself be taken symmetric under the maps that fix that source (the
mean of the images of a best solution is a best solution). So the variables are the orbits of (source, channel): a dead
switch of x in 4x4x8 leaves 7,601 of the 98,000 of the plain program, and 4,225 where the switch is one of z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topology.routing.channels import CHANNELS_PER_CHIP, Torus
from topology.routing.dags import clean_flow
from topology.routing.programs import Entries, least_cost
from topology.routing.symmetry import FaultSymmetry, Quotient, channel_image, chip_image, orbits, quotient
from topology.routing.trees import any_path

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
HOP_PRICE = 1e-6
"""Price of a mean hop beside the greatest load as a share: keeps flows free of idle rounds."""


@dataclass(frozen=True, kw_only=True)
class Flows:
    """Routes as flows: `flow` (s, N * 6) per chosen source and channel, a unit to each chip; images for the others.

    `load` (N * 6,) is that of all sources together; no routes have a greatest load below `bound`.
    """

    classes: Quotient
    flow: FloatArray
    load: FloatArray
    bound: float

    @property
    def greatest(self) -> float:
        """The greatest load of a channel."""
        return float(self.load.max(initial=0.0))

    @property
    def gap(self) -> float:
        """How far, as a share, the greatest load may be above the least possible."""
        return self.greatest / self.bound - 1.0


@dataclass(frozen=True, kw_only=True)
class _Part:
    """The program of one source: orbits of its channels and of the other chips under the maps that fix it.

    `orbit` (N * 6,) is -1 for channels that it does not use; `tail` and `head` are orbits of chips, -1 for the source.
    """

    orbit: IntArray
    size: IntArray
    representative: IntArray
    tail: IntArray
    head: IntArray
    demand: FloatArray


def _part(symmetry: FaultSymmetry, alive: NDArray[np.bool_], source: int) -> _Part:
    """The program of one source."""
    torus, maps = symmetry.torus, symmetry.fixing(source)
    chips = orbits([chip_image(torus, by) for by in maps], torus.chips)
    channels = orbits([channel_image(torus, by) for by in maps], torus.head.size)
    used = alive & (torus.head != source)
    _, first, inverse, size = np.unique(channels[used], return_index=True, return_inverse=True, return_counts=True)
    orbit = np.full(alive.size, -1, dtype=np.int64)
    orbit[used] = inverse
    representative = np.flatnonzero(used)[first]
    number = np.full(int(chips.max()) + 1, -1, dtype=np.int64)
    others = np.unique(np.delete(chips, source))
    number[others] = np.arange(others.size)
    return _Part(
        orbit=orbit,
        size=size.astype(np.int64),
        representative=representative,
        tail=number[chips[representative // CHANNELS_PER_CHIP]],
        head=number[chips[torus.head[representative]]],
        demand=np.bincount(number[np.delete(chips, source)]).astype(np.float64),
    )


def program_size(torus: Torus, links: IntArray) -> int:
    """A bound on the variables of the linear program: sources that need a flow, times channels."""
    return int(quotient(FaultSymmetry(torus=torus, links=links)).sources.size) * torus.head.size


def best_flows(torus: Torus, links: IntArray) -> Flows:
    """Routes of least greatest load, by HiGHS; every chip must be in reach. ValueError where one is not."""
    symmetry = FaultSymmetry(torus=torus, links=links)
    alive, classes = torus.alive(links), quotient(symmetry)
    parts = [_part(symmetry, alive, int(source)) for source in classes.sources]
    values, prices = _solve(parts, classes, torus.chips)
    flow = np.zeros((len(parts), alive.size))
    begin = 0
    for i, part in enumerate(parts):
        used = part.orbit >= 0
        flow[i, used] = (values[begin : begin + part.size.size] / part.size)[part.orbit[used]]
        begin += part.size.size
    return flows_of(torus, classes, flow, bound_of_prices(torus, alive, classes, prices))


def flows_of(torus: Torus, classes: Quotient, flow: FloatArray, bound: float) -> Flows:
    """Flows freed of rounds and rounding: each chip's traffic arrives in the shares of the flow; loads are exact."""
    load = np.zeros(torus.head.size)
    for i, source in enumerate(classes.sources):
        clean_flow(torus.head, int(source), flow[i])
        load += classes.weights[i] * flow[i]
    return Flows(classes=classes, flow=flow, load=classes.shared(load), bound=bound)


def bound_of_prices(torus: Torus, alive: NDArray[np.bool_], classes: Quotient, prices: FloatArray) -> float:
    """Least greatest load that these prices per class prove: summed cheapest prices of all pairs over summed prices."""
    price = np.maximum(prices, 0.0)[classes.channel_class]
    unused, total = np.zeros(torus.head.size), 0.0
    for source, weight in zip(classes.sources, classes.weights, strict=True):
        total += weight * any_path(torus.head, alive, price, int(source), 0.0, unused, np.empty(0), 0.0)
    return total / float(price[alive].sum())


def _solve(parts: list[_Part], classes: Quotient, chips: int) -> tuple[FloatArray, FloatArray]:
    """Flow of every orbit, part after part, and the dual price of a channel of each class."""
    columns = np.cumsum([0, *(part.size.size for part in parts)])
    rows = np.cumsum([0, *(part.demand.size for part in parts)])
    total, class_count = int(columns[-1]), classes.class_size.size
    balance: list[Entries] = []
    capacity: list[Entries] = [(np.arange(class_count), np.full(class_count, total), np.full(class_count, -1.0))]
    cost = np.ones(total + 1)
    for i, part in enumerate(parts):
        column = columns[i] + np.arange(part.size.size)
        for ends, sign in ((part.head, 1.0), (part.tail, -1.0)):
            inner = ends >= 0
            balance.append((rows[i] + ends[inner], column[inner], np.full(int(inner.sum()), sign)))
        of_class = classes.channel_class[part.representative].astype(np.int64)
        share = classes.weights[i] / chips / classes.class_size[of_class]
        capacity.append((of_class, column, share))
        cost[column] = HOP_PRICE * classes.weights[i] / chips**2
    optimum = least_cost(
        cost,
        (capacity, np.zeros(class_count)),
        (balance, np.concatenate([part.demand for part in parts])),
        interior=True,
    )
    if optimum is None:
        raise ValueError("there are no routes: the slice is cut in two")
    return optimum.values[:-1], optimum.prices / classes.class_size
