"""Proof that a set of routes can not deadlock: an acyclic graph of channel dependencies under stated virtual channels.

A packet that holds one (channel, virtual channel) and asks for another makes the second wait for the first; routes are
free of deadlock if these dependencies have no cycle (Dally and Seitz, 1987). The virtual channels of each method:

- dimension order: 2. On each ring a ride starts on 0 and goes on on 1 after the dateline (the link into the first chip
  of the ring); a ride is shorter than a ring, so it passes the dateline once at most.
- wild-first: 3. The rides as above; the hops before them on 2, which nothing that rides ever asks for.
- even split, best routes: as many as they need. A packet moves to the next virtual channel whenever it does not climb
  in one fixed order of the channels: all upward ones by height x + y + z, then all downward ones from the top. Past the
  last of 60 it stays on that, and the proof may fail. Mixed routes turn often and need many; wild-first needs 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from topology.pod import DIMENSIONS
from topology.routing.best import best_routes, sandwich_axes
from topology.routing.channels import CHANNELS_PER_CHIP, Torus
from topology.routing.dependencies import (
    add_climbing,
    add_dimension_order,
    add_sandwich,
    shortest_channels,
    table_of_climbing,
)
from topology.routing.loads import ring_lattice
from topology.routing.methods import Method
from topology.routing.optimal import Flows
from topology.routing.symmetry import FaultSymmetry, channel_image

MOST_VIRTUAL_CHANNELS = 60
DATELINE_CHANNELS = 2
SANDWICH_CHANNELS = 3

Hop = tuple[int, int]
"""A channel's number and a virtual channel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadlockProof:
    """Whether routes are free of deadlock under so many virtual channels per channel; if not, one cycle that waits."""

    method: Method
    virtual_channels: int
    dependencies: int
    cycle: tuple[Hop, ...]

    @property
    def holds(self) -> bool:
        """Whether the dependencies are acyclic."""
        return not self.cycle


class Dependencies:
    """The dependencies found so far: table[channel * V + v, way * V + w] is the wait for channel (head, way) on w."""

    def __init__(self, torus: Torus, virtual_channels: int) -> None:
        self.torus, self.virtual_channels = torus, virtual_channels
        size = CHANNELS_PER_CHIP * virtual_channels
        self.table = np.zeros((torus.head.size * virtual_channels, size), dtype=np.bool_)

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All dependencies as two arrays of channel * V + v."""
        held, asked = np.nonzero(self.table)
        way, level = np.divmod(asked, self.virtual_channels)
        at = self.torus.head[held // self.virtual_channels].astype(np.int64)
        return held, (at * CHANNELS_PER_CHIP + way) * self.virtual_channels + level

    def cycle(self) -> tuple[Hop, ...]:
        """One cycle of dependencies, or none."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        held, asked = self.pairs()
        size = self.table.shape[0]
        graph = coo_array((np.ones(held.size, dtype=np.int8), (held, asked)), shape=(size, size))
        count, label = connected_components(graph, directed=True, connection="strong")
        if count == size and not (held == asked).any():
            return ()
        inside = (label[held] == label[asked]) & ((np.bincount(label)[label[held]] > 1) | (held == asked))
        following = dict(zip(held[inside].tolist(), asked[inside].tolist(), strict=True))
        seen: list[int] = []
        at = int(held[inside][0])
        while at not in seen:
            seen.append(at)
            at = following[at]
        return tuple(divmod(node, self.virtual_channels) for node in seen[seen.index(at) :])


def datelines(torus: Torus) -> NDArray[np.bool_]:
    """Channels (N * 6,) over the link into the first chip (that of the least number) of each ring, either way."""
    crossing = np.zeros(torus.head.size, dtype=np.bool_)
    for axis in range(DIMENSIONS):
        seen = np.zeros(torus.chips, dtype=np.bool_)
        for first in range(torus.chips):
            if seen[first] or torus.head[first * CHANNELS_PER_CHIP + 2 * axis + 1] < 0:
                continue
            at = first
            while at >= 0 and not seen[at]:
                seen[at] = True
                at = int(torus.head[at * CHANNELS_PER_CHIP + 2 * axis])
            if at == first:
                down = first * CHANNELS_PER_CHIP + 2 * axis + 1
                crossing[[down, int(torus.head[down]) * CHANNELS_PER_CHIP + 2 * axis]] = True
    return crossing


def climbing_order(torus: Torus) -> NDArray[np.int64]:
    """Rank of every channel (N * 6,): upward ones by the height x + y + z of their chip, then downward ones from the
    top."""
    height = torus.all_coordinates().sum(axis=1)
    rank = np.repeat(height[:, None], CHANNELS_PER_CHIP, axis=1)
    top = int(height.max()) + 1
    rank[:, 1::2] = 2 * top - rank[:, 1::2]
    return rank.reshape(-1)


def prove(
    torus: Torus, links: NDArray[np.int64], method: Method, *, flows: Flows | None = None, dateline: bool = True
) -> DeadlockProof:
    """The proof for the routes of a method with these links dead; `flows` saves computing the best routes again.

    `dateline=False` leaves the datelines out: rides on a ring then wait in a circle (shows that the proof can fail).
    """
    alive = torus.alive(links)
    crossing = datelines(torus) if dateline else np.zeros(torus.head.size, dtype=np.bool_)
    if method is Method.DIMENSION_ORDER:
        found = Dependencies(torus, DATELINE_CHANNELS)
        lattice, longest = ring_lattice(torus)
        axes = np.arange(DIMENSIONS)
        add_dimension_order(torus.head, alive, torus.all_coordinates(), lattice, longest, axes, crossing, found.table)
        used = DATELINE_CHANNELS
    elif method is Method.WILD_FIRST:
        found = Dependencies(torus, SANDWICH_CHANNELS)
        order = sandwich_axes(torus, links) or (0, 1, 2)
        add_sandwich(torus.head, alive, np.array(order), crossing, found.table)
        used = SANDWICH_CHANNELS
    else:
        found = _climbing(torus, links, alive, method, flows)
        used = found.virtual_channels
    return DeadlockProof(method=method, virtual_channels=used, dependencies=int(found.table.sum()), cycle=found.cycle())


def _climbing(
    torus: Torus, links: NDArray[np.int64], alive: NDArray[np.bool_], method: Method, flows: Flows | None
) -> Dependencies:
    """The dependencies of every source of even split or best routes, under the virtual channels that they need."""
    rank, used = climbing_order(torus), 1
    held_on = np.zeros((torus.head.size, CHANNELS_PER_CHIP), dtype=np.int64)
    for source, channels in _routes(torus, links, alive, method, flows):
        used = max(used, add_climbing(torus.head, channels, source, rank, MOST_VIRTUAL_CHANNELS, held_on))
    found = Dependencies(torus, used)
    found.table = table_of_climbing(torus.head, rank, held_on, used)
    return found


def _routes(
    torus: Torus, links: NDArray[np.int64], alive: NDArray[np.bool_], method: Method, flows: Flows | None
) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Every source and the channels (N * 6,) of its routes."""
    channels = np.zeros(torus.head.size, dtype=np.bool_)
    if method is Method.EVEN_SPLIT:
        for source in range(torus.chips):
            shortest_channels(torus.head, alive, source, channels)
            yield source, channels
        return
    routes = best_routes(torus, links) if flows is None else flows
    if routes.flow.shape[0] == 0:
        raise ValueError("the flows of best routes did not fit in memory: there is nothing to prove")
    symmetry, seen = FaultSymmetry(torus=torus, links=links), set()
    for by in symmetry.elements:
        image = channel_image(torus, by)
        for source, flow in zip(routes.classes.sources.tolist(), routes.flow, strict=True):
            channels[:] = False
            channels[image] = flow > 0.0
            to = int(image[source * CHANNELS_PER_CHIP]) // CHANNELS_PER_CHIP
            known = (to, blake2b(np.packbits(channels).tobytes(), digest_size=16).digest())
            if known not in seen:
                seen.add(known)
                yield to, channels
