"""Packing boxes of cubes on the torus of cubes: the exact largest packing, and greedy first fit.

Boxes are bits. A `BoxTable` holds, for one grid and one box, every place where the box can lie (corners X, Y, Z, then
orientations; equal sets of cubes once), which boxes cover a cube, and which boxes meet a box. Both searches are
compiled and can be called from another compiled loop. The exact one branches on the cube with the fewest boxes left
and is cut by the cubes that boxes can still cover; it is exact for every grid, and quick on grids of up to some 150
cubes.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.compilation import compiled
from topology.pod import Grid, places_of

EXACT_FROM_CUBES = 16
"""Boxes of at least so many cubes are packed exactly; smaller ones first fit, a stated lower bound (measures, 1)."""


class BoxTable(NamedTuple):
    """All places of one box on one grid: B boxes of n cubes, W = ceil(B / 64) words of 64 boxes, C cubes."""

    box_cubes: int
    """n, the cubes of a box."""
    exact: bool
    """Whether `packed_boxes` searches exactly."""
    cubes: NDArray[np.int64]
    """(B, n): cubes of each box, row-major along the grid's axes from its corner."""
    everything: NDArray[np.uint64]
    """(W,): a bit for each box."""
    cover: NDArray[np.uint64]
    """(C, W): the boxes that contain a cube."""
    conflict: NDArray[np.uint64]
    """(B, W): the boxes that share a cube with a box, itself included."""
    lines: NDArray[np.int64]
    """(C, 3): numbers of the lines of the grid, along x, y and z, on which a cube lies (together L lines)."""
    reach: NDArray[np.int64]
    """(longest side + 1,): the most cubes that boxes can cover on a line where so many are left."""


def orientations(box: Grid) -> list[Grid]:
    """The distinct orders of a box's dimensions, in lexical order."""
    return sorted(set(permutations(box)))  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def boxes_on_grid(grid: Grid, box: Grid) -> tuple[tuple[Grid, Grid, tuple[int, ...]], ...]:
    """Every place of `box` on the torus `grid` as (corner, orientation, cubes): corners X, Y, Z, then orientations.

    Boxes may cross the edges. A place with the same set of cubes as an earlier one (a box that spans an axis) is left
    out.
    """
    places: list[tuple[Grid, Grid, tuple[int, ...]]] = []
    seen: set[tuple[int, ...]] = set()
    turned = [o for o in orientations(box) if all(o[axis] <= grid[axis] for axis in range(3))]
    for corner in places_of(grid):
        for size in turned:
            cubes = tuple(
                ((corner[0] + x) % grid[0] * grid[1] + (corner[1] + y) % grid[1]) * grid[2] + (corner[2] + z) % grid[2]
                for x, y, z in places_of(size)
            )
            if (key := tuple(sorted(cubes))) not in seen:
                seen.add(key)
                places.append((corner, size, cubes))
    return tuple(places)


def _bit_rows(rows: list[list[int]], words: int) -> NDArray[np.uint64]:
    """One row of `words` 64-bit words per list of bit numbers; read-only."""
    bits = np.zeros((len(rows), words), dtype=np.uint64)
    for row, numbers in enumerate(rows):
        for number in numbers:
            bits[row, number // 64] |= np.uint64(1) << np.uint64(number % 64)
    bits.setflags(write=False)
    return bits


@lru_cache(maxsize=256)
def box_table(grid: Grid, box: Grid) -> BoxTable:
    """The table of all places of `box` (in cubes, any order) on the torus `grid`; empty where it does not fit."""
    box_cubes = box[0] * box[1] * box[2]
    places = [cubes for _, _, cubes in boxes_on_grid(grid, box)]
    words = max(1, -(-len(places) // 64))
    covering: list[list[int]] = [[] for _ in range(grid[0] * grid[1] * grid[2])]
    for number, cubes in enumerate(places):
        for cube in cubes:
            covering[cube].append(number)
    cover = _bit_rows(covering, words)
    conflict = np.zeros((len(places), words), dtype=np.uint64)
    for number, cubes in enumerate(places):
        conflict[number] = np.bitwise_or.reduce(cover[list(cubes)], axis=0)
    conflict.setflags(write=False)
    listed = np.array(places, dtype=np.int64).reshape(len(places), box_cubes)
    listed.setflags(write=False)
    everything = _bit_rows([list(range(len(places)))], words)[0]
    lines, reach = _lines(grid), _reach(max(grid), box)
    return BoxTable(box_cubes, box_cubes >= EXACT_FROM_CUBES, listed, everything, cover, conflict, lines, reach)


def _lines(grid: Grid) -> NDArray[np.int64]:
    """For every cube the numbers of its lines along x, y and z."""
    x, y, z = np.array(places_of(grid), dtype=np.int64).T
    along_x, along_y = grid[1] * grid[2], grid[0] * grid[2]
    lines = np.stack([y * grid[2] + z, along_x + x * grid[2] + z, along_x + along_y + x * grid[1] + y], axis=1)
    lines.setflags(write=False)
    return lines


def _reach(longest: int, box: Grid) -> NDArray[np.int64]:
    """For every number of cubes on a line up to `longest`, the greatest sum of sides of `box` within it."""
    reach = np.zeros(longest + 1, dtype=np.int64)
    for left in range(1, longest + 1):
        reach[left] = max((side + reach[left - side] for side in box if side <= left), default=0)
    reach.setflags(write=False)
    return reach


@compiled
def lowest_bit(word: np.uint64) -> int:
    """Number of the lowest bit set in a word that is not zero."""
    number = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word & ((np.uint64(1) << np.uint64(step)) - np.uint64(1)) == np.uint64(0):
            word >>= np.uint64(step)
            number += step
    return number


@compiled
def count_bits(word: np.uint64) -> int:
    """Number of bits set in a word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    word += word >> np.uint64(8)
    word += word >> np.uint64(16)
    word += word >> np.uint64(32)
    return np.int64(word & np.uint64(127))  # type: ignore[return-value]


@compiled
def first_box(live: NDArray[np.uint64]) -> int:
    """Number of the first box in a set of boxes, -1 if it is empty."""
    for word in range(live.shape[0]):
        if live[word] != np.uint64(0):
            return 64 * word + lowest_bit(live[word])
    return -1


@compiled
def find_fitting(usable: NDArray[np.bool_], table: BoxTable, live: NDArray[np.uint64]) -> int:
    """Write the boxes that lie wholly on usable cubes into `live` (W,); returns the number of usable cubes."""
    count = 0
    for word in range(live.shape[0]):
        live[word] = table.everything[word]
    for cube in range(usable.shape[0]):
        if usable[cube]:
            count += 1
        else:
            for word in range(live.shape[0]):
                live[word] &= ~table.cover[cube, word]
    return count


@compiled
def first_fit(live: NDArray[np.uint64], table: BoxTable) -> int:
    """Boxes taken when each in turn takes the first place left; empties `live`."""
    taken = 0
    box = first_box(live)
    while box >= 0:
        taken += 1
        for word in range(live.shape[0]):
            live[word] &= ~table.conflict[box, word]
        box = first_box(live)
    return taken


@compiled
def pick_cube(live: NDArray[np.uint64], table: BoxTable, wanted: int, on_line: NDArray[np.int64]) -> int:
    """The cube that the fewest boxes of `live` cover, or -1 if these can not hold `wanted` disjoint boxes for sure.

    Each box takes a whole side, or nothing, of every line of the grid; so along each axis no more cubes can be
    covered than lines can be filled by whole sides from the cubes that some box still covers. `on_line` (L,) is
    scratch.
    """
    picked, fewest = -1, 1 << 30
    for line in range(on_line.shape[0]):
        on_line[line] = 0
    for cube in range(table.cover.shape[0]):
        boxes = 0
        for word in range(live.shape[0]):
            boxes += count_bits(live[word] & table.cover[cube, word])
        if boxes > 0:
            for axis in range(3):
                on_line[table.lines[cube, axis]] += 1
            if boxes < fewest:
                picked, fewest = cube, boxes
    for axis in range(3):
        covered = 0
        for line in range(table.lines[0, axis], table.lines[-1, axis] + 1):
            covered += table.reach[on_line[line]]
        if covered < wanted * table.box_cubes:
            return -1
    return picked


@compiled
def search_packing(fitting: NDArray[np.uint64], table: BoxTable, known: int, bound: int) -> int:
    """Largest packing of boxes of `fitting`, given one of `known` boxes and that none exceeds `bound`."""
    best, words = known, fitting.shape[0]
    live = np.zeros((bound + 1, words), dtype=np.uint64)
    options = np.zeros((bound + 1, words), dtype=np.uint64)
    cubes = np.zeros(bound + 1, dtype=np.int64)
    on_line = np.empty(table.lines[-1, 2] + 1, dtype=np.int64)
    for word in range(words):
        live[0, word] = fitting[word]
    cubes[0] = pick_cube(live[0], table, best + 1, on_line)
    level = 0 if cubes[0] >= 0 else -1
    if level == 0:
        for word in range(words):
            options[0, word] = live[0, word] & table.cover[cubes[0], word]
    while level >= 0:
        box = first_box(options[level])
        if box >= 0:
            options[level, box // 64] &= ~(np.uint64(1) << np.uint64(box % 64))
            for word in range(words):
                live[level + 1, word] = live[level, word] & ~table.conflict[box, word]
            level += 1
            if level > best:
                best = level
                if best == bound:
                    return best
        else:
            for word in range(words):
                live[level, word] &= ~table.cover[cubes[level], word]
        cubes[level] = pick_cube(live[level], table, best + 1 - level, on_line)
        if cubes[level] < 0:
            level -= 1
        else:
            for word in range(words):
                options[level, word] = live[level, word] & table.cover[cubes[level], word]
    return best


@compiled
def packing_between(usable: NDArray[np.bool_], table: BoxTable, low: int, high: int) -> int:
    """The largest packing, exact, where it is known to lie in [low, high]; one above `high` is answered by `high`.

    One cube more or less changes the largest packing by one at most, so a loop over changes knows both ends; and
    whether k boxes fit at all is `packing_between(usable, table, 0, k) == k`.
    """
    live = np.empty(table.everything.shape[0], dtype=np.uint64)
    bound = min(high, find_fitting(usable, table, live) // table.box_cubes)
    if bound <= low:
        return low
    known = max(low, min(bound, first_fit(live.copy(), table)))
    return known if known == bound else search_packing(live, table, known, bound)


@compiled
def largest_packing(usable: NDArray[np.bool_], table: BoxTable) -> int:
    """Greatest number of disjoint boxes of `table` on the usable cubes (C,), exact."""
    return packing_between(usable, table, 0, usable.shape[0])


@compiled
def first_fit_packing(usable: NDArray[np.bool_], table: BoxTable) -> int:
    """Boxes of `table` placed first fit on the usable cubes (C,): a lower bound of the largest packing."""
    live = np.empty(table.everything.shape[0], dtype=np.uint64)
    find_fitting(usable, table, live)
    return first_fit(live, table)


@compiled
def packed_boxes(usable: NDArray[np.bool_], table: BoxTable) -> int:
    """Capacity of `static_contiguous`: exact for boxes of 16 cubes and more, first fit below."""
    return largest_packing(usable, table) if table.exact else first_fit_packing(usable, table)
