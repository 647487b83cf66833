"""What ring collectives keep where rings lost links.

On each ring every chip sends to its next neighbour both ways, so every channel of the axis carries one unit. What a
dead link carried takes another way, and the greatest load there says what is kept: half where it all goes the other
way round the ring (L - 1 more hops, each then at 2) or through one neighbouring ring (wild-first, as x Y X); more
with split detours. With three axes busy a chip that lost one of six links sends what six carried over five: at most
5/6 = 0.83.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topology.pod import DIMENSIONS
from topology.routing.channels import CHANNELS_PER_CHIP, Torus, channels_of_link
from topology.routing.methods import Method
from topology.routing.programs import Entries, least_cost

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Kept = tuple[float, float, float]

DETOUR_HOPS = 3
"""Split detours stay within so many hops of the ends of their dead link: enough for 5/6; further where cut off."""
LENGTH_PRICE = 1e-6
"""Price of a hop of a detour beside the greatest load."""


def ring_kept(torus: Torus, links: IntArray, method: Method, busy: Sequence[int] = (0, 1, 2)) -> Kept:
    """Share that ring collectives keep along x, y, z when the `busy` axes run at once (1 for the others).

    An axis keeps 1 / the greatest load that its traffic meets; 0 where the method has no detour for a link of it.
    """
    base = np.zeros(torus.head.size)
    for axis in busy:
        base.reshape(-1, CHANNELS_PER_CHIP)[:, 2 * axis : 2 * axis + 2] = 1.0
    alive = torus.alive(links)
    base[~alive] = 0.0
    lost = [int(link) for link in links if link % DIMENSIONS in busy]
    detours = _detours(torus, alive, base, lost, method)
    if detours is None:
        struck = {link % DIMENSIONS for link in lost}
        kept = [0.0 if axis in struck else 1.0 for axis in range(DIMENSIONS)]
        return kept[0], kept[1], kept[2]
    load = base + sum(detours.values(), np.zeros(base.size))
    kept = [1.0] * DIMENSIONS
    for axis in busy:
        own = np.zeros(base.size, dtype=np.bool_)
        own.reshape(-1, CHANNELS_PER_CHIP)[:, 2 * axis : 2 * axis + 2] = True
        used = own & alive
        for link, detour in detours.items():
            if link % DIMENSIONS == axis:
                used |= detour > 1e-9
        kept[axis] = 1.0 / max(1.0, float(load[used].max(initial=0.0)))
    return kept[0], kept[1], kept[2]


def _detours(
    torus: Torus, alive: NDArray[np.bool_], base: FloatArray, lost: list[int], method: Method
) -> dict[int, FloatArray] | None:
    """Per lost link, what its traffic, both ways, puts on every channel (N * 6,); None where the method has no way."""
    if not lost:
        return {}
    if method is Method.OPTIMAL:
        near = _split_detours(torus, alive, base, lost, DETOUR_HOPS)
        return near if near is not None else _split_detours(torus, alive, base, lost, torus.chips)
    found: dict[int, FloatArray] = {}
    load = base.copy()
    for link in lost:
        paths = _other_way_round(torus, alive, link)
        if not paths and method is Method.WILD_FIRST:
            around = _through_neighbours(torus, alive, link)
            paths = sorted(around, key=lambda path: float(load[path].max()))[:1]
        elif method is Method.EVEN_SPLIT:
            paths = _through_neighbours(torus, alive, link)
        if not paths:
            return None
        detour = np.zeros(load.size)
        for path in paths:
            detour[path] += 1.0 / len(paths)
        found[link] = detour
        load += detour
    return found


def _both_ways(torus: Torus, path: list[int]) -> list[int]:
    """The channels of a path and those of the way back."""
    return path + [int(torus.head[c]) * CHANNELS_PER_CHIP + (c % CHANNELS_PER_CHIP ^ 1) for c in path]


def _other_way_round(torus: Torus, alive: NDArray[np.bool_], link: int) -> list[list[int]]:
    """The rest of the ring of a link, both ways, as one path; none where that is cut as well."""
    up, _ = channels_of_link(torus, link)
    chip, end, path = int(torus.head[up]), up // CHANNELS_PER_CHIP, []
    while chip != end:
        path.append(chip * CHANNELS_PER_CHIP + up % CHANNELS_PER_CHIP)
        if not alive[path[-1]]:
            return []
        chip = int(torus.head[path[-1]])
    return [_both_ways(torus, path)]


def _through_neighbours(torus: Torus, alive: NDArray[np.bool_], link: int) -> list[list[int]]:
    """The living detours of three hops, through the four neighbouring rings, both ways."""
    up, _ = channels_of_link(torus, link)
    chip, along = divmod(up, CHANNELS_PER_CHIP)
    paths = []
    for way in range(CHANNELS_PER_CHIP):
        if way // 2 == along // 2:
            continue
        path, at = [], chip
        for step in (way, along, way ^ 1):
            path.append(at * CHANNELS_PER_CHIP + step)
            at = int(torus.head[path[-1]])
            if not alive[path[-1]]:
                break
        else:
            paths.append(_both_ways(torus, path))
    return paths


def _nearby(torus: Torus, alive: NDArray[np.bool_], ends: tuple[int, int], hops: int) -> NDArray[np.bool_]:
    """Living channels (N * 6,) between chips within so many living hops of either end."""
    inside = np.zeros(torus.chips, dtype=np.bool_)
    inside[list(ends)] = True
    tails = np.arange(alive.size) // CHANNELS_PER_CHIP
    for _ in range(hops):
        inside[torus.head[alive & inside[tails]]] = True
    return alive & inside[tails] & inside[torus.head]


def _split_detours(
    torus: Torus, alive: NDArray[np.bool_], base: FloatArray, lost: list[int], hops: int
) -> dict[int, FloatArray] | None:
    """Detours, split as a linear program says, with the least greatest load; the way back mirrors the way there."""
    size, chips = torus.head.size, torus.chips
    mirror = torus.head.astype(np.int64) * CHANNELS_PER_CHIP + (np.arange(size) % CHANNELS_PER_CHIP ^ 1)
    channels = [np.flatnonzero(_nearby(torus, alive, _ends(torus, link), hops)) for link in lost]
    starts = np.cumsum([0, *(near.size for near in channels)])
    total = int(starts[-1])
    balance: list[Entries] = []
    load: list[Entries] = [(np.arange(size), np.full(size, total), np.full(size, -1.0))]
    wanted = np.zeros(len(lost) * chips)
    for i, (link, near) in enumerate(zip(lost, channels, strict=True)):
        column, ones = np.arange(starts[i], starts[i + 1]), np.ones(near.size)
        balance.append((i * chips + torus.head[near].astype(np.int64), column, ones))
        balance.append((i * chips + near // CHANNELS_PER_CHIP, column, -ones))
        load += [(near, column, ones), (mirror[near], column, ones)]
        low, high = _ends(torus, link)
        wanted[i * chips + low], wanted[i * chips + high] = -1.0, 1.0
    cost = np.append(np.full(total, LENGTH_PRICE), 1.0)
    optimum = least_cost(cost, (load, -base), (balance, wanted))
    if optimum is None:
        return None
    detours: dict[int, FloatArray] = {}
    for i, (link, near) in enumerate(zip(lost, channels, strict=True)):
        flow, there = np.zeros(size), optimum.values[starts[i] : starts[i + 1]]
        flow[near] += there
        flow[mirror[near]] += there
        detours[link] = flow
    return detours


def _ends(torus: Torus, link: int) -> tuple[int, int]:
    """The two chips of a link."""
    up, _ = channels_of_link(torus, link)
    return up // CHANNELS_PER_CHIP, int(torus.head[up])
