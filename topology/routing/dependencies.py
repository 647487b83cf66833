"""Which channel waits for which, per method: tables of dependencies, filled in compiled loops.

table[channel * V + v, way * V + w] says that a packet may hold `channel` on virtual channel v and ask for the channel
`way` of the chip at its end on w, with V virtual channels per channel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topology.compilation import compiled
from topology.routing.channels import CHANNELS_PER_CHIP
from topology.routing.dags import order_of_chips
from topology.routing.loads import MOST_MOVES, live_moves, moves_to

HOP_LEVEL = 2
"""The virtual channel of the hops before the rides."""


@compiled
def _add_path(
    head: NDArray[np.int32],
    axes: NDArray[np.int64],
    source: int,
    move: NDArray[np.int64],
    crossing: NDArray[np.bool_],
    table: NDArray[np.bool_],
) -> None:
    """The dependencies along one path of dimension order."""
    levels = table.shape[1] // CHANNELS_PER_CHIP
    chip, held = source, -1
    for axis in axes:
        way, level = 2 * axis + (1 if move[axis] < 0 else 0), 0
        for _ in range(abs(move[axis])):
            channel = chip * CHANNELS_PER_CHIP + way
            if held >= 0:
                table[held, way * levels + level] = True
            held = channel * levels + level
            if crossing[channel]:
                level = 1
            chip = head[channel]


@compiled
def add_dimension_order(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    places: NDArray[np.int64],
    lattice: NDArray[np.int64],
    longest: NDArray[np.int64],
    axes: NDArray[np.int64],
    crossing: NDArray[np.bool_],
    table: NDArray[np.bool_],
) -> None:
    """The dependencies of all pairs by dimension order."""
    moves = np.empty((MOST_MOVES, 4), dtype=np.int64)
    chosen = np.empty(MOST_MOVES, dtype=np.int64)
    for source in range(places.shape[0]):
        for target in range(places.shape[0]):
            x = places[target, 0] - places[source, 0]
            y = places[target, 1] - places[source, 1]
            z = places[target, 2] - places[source, 2]
            count = moves_to(x, y, z, lattice, longest, moves)
            found = live_moves(head, alive, axes, source, moves, count, chosen)
            for j in range(found):
                _add_path(head, axes, source, moves[chosen[j]], crossing, table)


@compiled
def _ask_rides(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    axes: NDArray[np.int64],
    first: int,
    channel: int,
    held: int,
    table: NDArray[np.bool_],
) -> None:
    """A packet at the end of `channel` may start any ride from axes[first] on."""
    levels = table.shape[1] // CHANNELS_PER_CHIP
    for later in range(first, axes.size):
        for side in range(2):
            way = 2 * axes[later] + side
            if alive[head[channel] * CHANNELS_PER_CHIP + way]:
                table[held, way * levels] = True


@compiled
def add_sandwich(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    axes: NDArray[np.int64],
    crossing: NDArray[np.bool_],
    table: NDArray[np.bool_],
) -> None:
    """The dependencies of all paths of the wild-first form over living channels, whether a route uses them or not."""
    levels = table.shape[1] // CHANNELS_PER_CHIP
    for channel in range(head.size):
        if not alive[channel]:
            continue
        axis, way = channel % CHANNELS_PER_CHIP // 2, channel % CHANNELS_PER_CHIP
        onwards = head[channel] * CHANNELS_PER_CHIP + way
        place = 0
        while axes[place] != axis:
            place += 1
        for level in range(2):
            held = channel * levels + level
            if alive[onwards] and not (level == 1 and (crossing[onwards] or crossing[channel])):
                table[held, way * levels + (1 if level == 1 or crossing[channel] else 0)] = True
            _ask_rides(head, alive, axes, place + 1, channel, held, table)
        if place > 0:
            held = channel * levels + HOP_LEVEL
            _ask_rides(head, alive, axes, 0, channel, held, table)
            if place == 2:
                for side in range(2):
                    other = 2 * axes[1] + side
                    if alive[head[channel] * CHANNELS_PER_CHIP + other]:
                        table[held, other * levels + HOP_LEVEL] = True


@compiled
def shortest_channels(
    head: NDArray[np.int32], alive: NDArray[np.bool_], source: int, channels: NDArray[np.bool_]
) -> None:
    """Mark the channels (N * 6,) that lie on a shortest living path from the source."""
    chips = head.size // CHANNELS_PER_CHIP
    hops = np.full(chips, -1, dtype=np.int32)
    order = np.empty(chips, dtype=np.int32)
    hops[source], order[0], reached, at = 0, source, 1, 0
    channels[:] = False
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
                channels[channel] = hops[to] == hops[chip] + 1


@compiled
def add_climbing(
    head: NDArray[np.int32],
    channels: NDArray[np.bool_],
    source: int,
    rank: NDArray[np.int64],
    levels: int,
    held_on: NDArray[np.int64],
) -> int:
    """The dependencies of all paths from a source over these channels (no rounds); virtual channels that they need.

    A packet moves up a level at each step that does not climb in `rank`. One that would pass the last level stays
    there. held_on[channel, way] gets the bits of the levels on which a packet may hold `channel` and ask for `way`.
    """
    chips = head.size // CHANNELS_PER_CHIP
    order = np.empty(chips, dtype=np.int32)
    fits = order_of_chips(head, channels, order)
    reach = np.zeros(head.size, dtype=np.int64)
    entering = np.full((chips, CHANNELS_PER_CHIP), -1, dtype=np.int32)
    last = np.int64(1) << (levels - 1)
    most = np.int64(1)
    for i in range(fits):
        chip = order[i]
        for way in range(CHANNELS_PER_CHIP):
            asked = chip * CHANNELS_PER_CHIP + way
            if not channels[asked]:
                continue
            entering[head[asked], way] = asked
            if chip == source:
                reach[asked] = 1
            for held in entering[chip]:
                if held < 0:
                    continue
                held_on[held, way] |= reach[held]
                if rank[asked] > rank[held]:
                    reach[asked] |= reach[held]
                else:
                    reach[asked] |= ((reach[held] & (last - 1)) << 1) | (reach[held] & last)
            most |= reach[asked]
    used = 0
    while most >> used:
        used += 1
    return used


def table_of_climbing(
    head: NDArray[np.int32], rank: NDArray[np.int64], held_on: NDArray[np.int64], levels: int
) -> NDArray[np.bool_]:
    """The table of dependencies that `add_climbing` found, with this many virtual channels."""
    table = np.zeros((head.size * levels, CHANNELS_PER_CHIP * levels), dtype=np.bool_)
    channel, way = np.nonzero(held_on)
    climbs = rank[head[channel].astype(np.int64) * CHANNELS_PER_CHIP + way] > rank[channel]
    for level in range(levels):
        there = (held_on[channel, way] >> level & 1).astype(np.bool_)
        to = np.where(climbs, level, min(levels - 1, level + 1))
        table[channel[there] * levels + level, way[there] * levels + to[there]] = True
    return table
