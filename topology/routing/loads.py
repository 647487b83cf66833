"""Load of every channel under uniform all-to-all: every chip sends one unit to every chip (itself costs nothing).

Even split: all shortest paths of a pair carry the same share. With sigma(v) the number of shortest paths from the
source to v, the share of v's traffic that arrives from u is sigma(u) / sigma(v), so one pass outwards counts paths and
one pass back adds up loads (Brandes, "A faster algorithm for betweenness centrality", 2001, for edges).

Dimension order: along x, then y, then z, each ring the shorter way; where that way meets a dead link, the other way
round (published for the last dimension; here for every one). Ways of equal length share. A ring that is cut twice
leaves pairs without a route.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topology.compilation import compiled
from topology.routing.channels import CHANNELS_PER_CHIP, Torus
from topology.routing.symmetry import FaultSymmetry, quotient

MOST_MOVES = 45
"""Rides of once round x and y, twice round z, either way: 3 * 3 * 5."""


@dataclass(frozen=True, kw_only=True)
class Loads:
    """Load (N * 6,) of every channel, units of one pair's traffic; `unserved_pairs` have no route and count nowhere."""

    load: NDArray[np.float64]
    unserved_pairs: int

    @property
    def greatest(self) -> float:
        """The greatest load of a channel."""
        return float(self.load.max(initial=0.0))


@compiled
def _add_even_split(
    head: NDArray[np.int32], alive: NDArray[np.bool_], source: int, weight: float, load: NDArray[np.float64]
) -> int:
    """Add `weight` times the loads of one source to `load` (N * 6,); chips out of reach."""
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
        for channel in range(chip * CHANNELS_PER_CHIP, (chip + 1) * CHANNELS_PER_CHIP):
            if alive[channel] and hops[head[channel]] == hops[chip] + 1:
                to = head[channel]
                flow = paths[chip] / paths[to] * through[to]
                load[channel] += weight * flow
                through[chip] += flow
    return chips - reached


@compiled
def _even_split(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    sources: NDArray[np.int64],
    weights: NDArray[np.float64],
    load: NDArray[np.float64],
) -> int:
    """Add the loads of these sources, each with its weight; pairs out of reach."""
    unserved = 0
    for i in range(sources.size):
        unserved += int(weights[i]) * _add_even_split(head, alive, sources[i], weights[i], load)
    return unserved


@compiled
def walk(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    axes: NDArray[np.int64],
    source: int,
    move: NDArray[np.int64],
    weight: float,
    load: NDArray[np.float64],
) -> bool:
    """Whether the path of these hops per axis is alive; adds `weight` to `load` on it where `load` has a size."""
    chip = source
    for axis in axes:
        way = 2 * axis + (1 if move[axis] < 0 else 0)
        for _ in range(abs(move[axis])):
            channel = chip * CHANNELS_PER_CHIP + way
            if not alive[channel]:
                return False
            if load.size > 0:
                load[channel] += weight
            chip = head[channel]
    return True


@compiled
def moves_to(
    x: int, y: int, z: int, lattice: NDArray[np.int64], longest: NDArray[np.int64], moves: NDArray[np.int64]
) -> int:
    """Write all rides (MOST_MOVES, 4) that lead as far as (x, y, z) does: hops per axis and their sum, the least first.

    Returns how many there are.
    """
    count = 0
    rounds_x, rounds_y = (1 if lattice[0, 0] > 0 else 0), (1 if lattice[1, 1] > 0 else 0)
    rounds_z = 0 if lattice[2, 2] == 0 else 2
    for a in range(-rounds_x, rounds_x + 1):
        for b in range(-rounds_y, rounds_y + 1):
            to_x = x + a * lattice[0, 0]
            to_y = y + a * lattice[0, 1] + b * lattice[1, 1]
            if abs(to_x) > longest[0] or abs(to_y) > longest[1]:
                continue
            for c in range(-rounds_z, rounds_z + 1):
                to_z = z + a * lattice[0, 2] + b * lattice[1, 2] + c * lattice[2, 2]
                if abs(to_z) > longest[2]:
                    continue
                hops, at = abs(to_x) + abs(to_y) + abs(to_z), count
                while at > 0 and moves[at - 1, 3] > hops:
                    for k in range(4):
                        moves[at, k] = moves[at - 1, k]
                    at -= 1
                moves[at, 0], moves[at, 1], moves[at, 2], moves[at, 3] = to_x, to_y, to_z, hops
                count += 1
    return count


@compiled
def live_moves(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    axes: NDArray[np.int64],
    source: int,
    moves: NDArray[np.int64],
    count: int,
    chosen: NDArray[np.int64],
) -> int:
    """Write which of these moves are alive and of the fewest hops among those; how many there are."""
    found = 0
    nothing = np.empty(0)
    for i in range(count):
        if found > 0 and moves[i, 3] > moves[chosen[0], 3]:
            break
        if walk(head, alive, axes, source, moves[i], 0.0, nothing):
            chosen[found] = i
            found += 1
    return found


@compiled
def _dimension_order(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    places: NDArray[np.int64],
    lattice: NDArray[np.int64],
    longest: NDArray[np.int64],
    axes: NDArray[np.int64],
    sources: NDArray[np.int64],
    weights: NDArray[np.float64],
    load: NDArray[np.float64],
) -> int:
    """Add the loads of these sources, each with its weight; pairs without a route."""
    moves = np.empty((MOST_MOVES, 4), dtype=np.int64)
    chosen = np.empty(MOST_MOVES, dtype=np.int64)
    unserved = 0
    for i in range(sources.size):
        start = places[sources[i]]
        for target in range(places.shape[0]):
            if target == sources[i]:
                continue
            x, y, z = places[target, 0] - start[0], places[target, 1] - start[1], places[target, 2] - start[2]
            count = moves_to(x, y, z, lattice, longest, moves)
            found = live_moves(head, alive, axes, sources[i], moves, count, chosen)
            for j in range(found):
                walk(head, alive, axes, sources[i], moves[chosen[j]], weights[i] / found, load)
            if found == 0:
                unserved += int(weights[i])
    return unserved


def even_split_loads(torus: Torus, links: NDArray[np.int64]) -> Loads:
    """Loads of the even split over shortest living paths, with these links dead; sources as the symmetry allows."""
    classes = quotient(FaultSymmetry(torus=torus, links=links))
    load = np.zeros(torus.head.size)
    unserved = _even_split(torus.head, torus.alive(links), classes.sources, classes.weights, load)
    return Loads(load=classes.shared(load), unserved_pairs=unserved)


def ring_lattice(torus: Torus) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Moves (3, 3) once round the ring of each axis (zero where there is none), and the longest useful ride (3,)."""
    rings = np.array(torus.rings)
    lattice = (np.diag(torus.dimensions) - np.array(torus.shifts)) * rings[:, None]
    twice = np.array([any(shift) for shift in torus.shifts])
    return lattice.astype(np.int64), np.array(torus.dimensions) * np.where(twice, 2, 1) - 1


def dimension_order_loads(torus: Torus, links: NDArray[np.int64], axes: tuple[int, int, int] = (0, 1, 2)) -> Loads:
    """Loads of dimension order along `axes`, with these links dead; sources only as translations allow."""
    symmetry = FaultSymmetry(torus=torus, links=links)
    classes = quotient(symmetry, translations_only=True)
    load = np.zeros(torus.head.size)
    lattice, longest = ring_lattice(torus)
    unserved = _dimension_order(
        torus.head,
        torus.alive(links),
        torus.all_coordinates(),
        lattice,
        longest,
        np.array(axes, dtype=np.int64),
        classes.sources,
        classes.weights,
        load,
    )
    return Loads(load=classes.shared(load), unserved_pairs=unserved)
