"""The compiled packing against an integer program (HiGHS), brute force, and naive greedy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from topology.boxes import standard_box
from topology.packing import (
    BoxTable,
    box_table,
    boxes_on_grid,
    count_bits,
    first_fit_packing,
    largest_packing,
    lowest_bit,
    packed_boxes,
    packing_between,
)
from topology.pod import Grid, stated_grid


def naive_boxes(grid: Grid, box: Grid) -> list[tuple[int, ...]]:
    """Every box on the torus, by its definition, in the stated order; independent of the module under test."""
    found: list[tuple[int, ...]] = []
    for cx, cy, cz in product(range(grid[0]), range(grid[1]), range(grid[2])):
        for a, b, c in sorted(
            {(box[i], box[j], box[k]) for i, j, k in product(range(3), repeat=3) if {i, j, k} == {0, 1, 2}}
        ):
            if a > grid[0] or b > grid[1] or c > grid[2]:
                continue
            cubes = set()
            for cube in range(grid[0] * grid[1] * grid[2]):
                x, y, z = cube // (grid[1] * grid[2]), cube // grid[2] % grid[1], cube % grid[2]
                if (x - cx) % grid[0] < a and (y - cy) % grid[1] < b and (z - cz) % grid[2] < c:
                    cubes.add(cube)
            key = tuple(sorted(cubes))
            if key not in found:
                found.append(key)
    return found


def by_integer_program(usable: NDArray[np.bool_], boxes: list[tuple[int, ...]]) -> int:
    """Largest set of disjoint boxes on usable cubes, by HiGHS."""
    fitting = [box for box in boxes if usable[list(box)].all()]
    if not fitting:
        return 0
    rows = [cube for box in fitting for cube in box]
    columns = [number for number, box in enumerate(fitting) for _ in box]
    inside = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(usable), len(fitting)))
    answer = milp(
        -np.ones(len(fitting)),
        constraints=LinearConstraint(inside, ub=1),
        integrality=np.ones(len(fitting)),
        bounds=Bounds(0, 1),
    )
    assert answer.success
    return round(-answer.fun)


def naive_first_fit(usable: NDArray[np.bool_], boxes: list[tuple[int, ...]]) -> int:
    """Greedy first fit by its definition."""
    free, taken = usable.copy(), 0
    for box in boxes:
        if free[list(box)].all():
            free[list(box)] = False
            taken += 1
    return taken


@pytest.mark.parametrize(
    ("grid", "box"), [((4, 4, 4), (2, 2, 4)), ((4, 5, 7), (2, 2, 4)), ((5, 5, 1), (1, 2, 2)), ((2, 3, 4), (1, 2, 3))]
)
def test_boxes_are_all_boxes_in_order(grid: Grid, box: Grid) -> None:
    """Goal: the table lists every box once, corners then orientations. Method: compare with the definition."""
    expected = naive_boxes(grid, box)
    assert [tuple(sorted(cubes)) for _, _, cubes in boxes_on_grid(grid, box)] == expected
    table = box_table(grid, box)
    assert [tuple(sorted(row)) for row in table.cubes.tolist()] == expected
    for number, (one, other) in enumerate(product(range(len(expected)), repeat=2)):
        if number % 7 == 0:
            meets = bool(set(expected[one]) & set(expected[other]))
            assert bool(int(table.conflict[one, other // 64]) >> other % 64 & 1) == meets


EXACT_CASES = [
    *((cubes, masks, size) for cubes, masks in ((64, 60), (140, 12), (144, 12), (60, 20)) for size in (16, 32, 48)),
    (25, 40, 20),
    (25, 40, 16),
]


@pytest.mark.parametrize(("cubes", "masks", "size"), EXACT_CASES)
def test_exact_packing_equals_an_integer_program(cubes: int, masks: int, size: int) -> None:
    """Goal: the search is exact. Method: HiGHS on random masks from sparse to almost full, on five grids."""
    grid = stated_grid(cubes)
    box = standard_box(grid, size)
    assert box is not None
    boxes, table = naive_boxes(grid, box), box_table(grid, box)
    generator = np.random.default_rng(size * 1000 + cubes)
    for share in np.linspace(0.7, 1.0, masks):
        usable = generator.random(cubes) < share
        assert packed_boxes(usable, table) == by_integer_program(usable, boxes)


@pytest.mark.slow
@pytest.mark.parametrize(("cubes", "masks"), [(64, 200), (140, 10), (144, 20)])
def test_exact_packing_equals_an_integer_program_on_many_masks(cubes: int, masks: int) -> None:
    """Goal: as above, with certainty. Method: more masks of each grid at three densities of usable cubes."""
    grid = stated_grid(cubes)
    boxes, table = naive_boxes(grid, (2, 2, 4)), box_table(grid, (2, 2, 4))
    generator = np.random.default_rng(cubes)
    for share in (0.85, 0.92, 0.98):
        for usable in generator.random((masks, cubes)) < share:
            assert largest_packing(usable, table) == by_integer_program(usable, boxes)


def brute_force(free: frozenset[int], boxes: list[frozenset[int]]) -> int:
    """Largest packing by trying every set of boxes."""
    fitting = [box for box in boxes if box <= free]
    return max((1 + brute_force(free - box, fitting[number + 1 :]) for number, box in enumerate(fitting)), default=0)


@pytest.mark.parametrize(
    ("grid", "box"), [((2, 2, 2), (1, 1, 2)), ((1, 3, 3), (1, 1, 2)), ((2, 2, 3), (1, 2, 2)), ((1, 2, 5), (1, 1, 2))]
)
def test_every_pattern_of_a_small_pod(grid: Grid, box: Grid) -> None:
    """Goal: exactness without trust in a solver. Method: all patterns of small pods by brute force."""
    cubes = grid[0] * grid[1] * grid[2]
    boxes, table = [frozenset(b) for b in naive_boxes(grid, box)], box_table(grid, box)
    for pattern in range(1 << cubes):
        usable = np.array([pattern >> cube & 1 for cube in range(cubes)], dtype=np.bool_)
        free = frozenset(np.flatnonzero(usable).tolist())
        assert largest_packing(usable, table) == brute_force(free, boxes)


@pytest.mark.parametrize("cubes", [25, 64, 140, 144])
def test_small_boxes_are_packed_first_fit(cubes: int) -> None:
    """Goal: below 16 cubes the answer is the stated greedy one. Method: naive greedy by its definition."""
    grid = stated_grid(cubes)
    generator = np.random.default_rng(cubes)
    for size in (1, 2, 4, 8):
        box = standard_box(grid, size)
        assert box is not None
        boxes, table = naive_boxes(grid, box), box_table(grid, box)
        for usable in generator.random((25, cubes)) < 0.9:
            greedy = packed_boxes(usable, table)
            assert greedy == first_fit_packing(usable, table) == naive_first_fit(usable, boxes)
            assert greedy <= np.count_nonzero(usable) // size


def test_known_bounds_do_not_change_the_answer() -> None:
    """Goal: a loop may pass what it knows. Method: walk through changes of one cube, with bounds and without."""
    table = box_table((4, 5, 7), (2, 2, 4))
    generator = np.random.default_rng(7)
    usable = np.ones(140, dtype=np.bool_)
    packed = largest_packing(usable, table)
    assert packed == 7  # at most 28 x 4 of 140 cubes can be covered: lines of 5 hold sides of 2 and 4 only
    for cube in generator.integers(0, 140, 150).tolist():
        usable[cube] = not usable[cube]
        low, high = (packed, packed + 1) if usable[cube] else (packed - 1, packed)
        packed = packing_between(usable, table, max(0, low), high)
        assert packed == largest_packing(usable, table)
        assert packing_between(usable, table, 0, 2) == min(2, packed)


def _empty_table() -> BoxTable:
    return box_table((2, 2, 2), (1, 1, 3))


def test_edge_cases() -> None:
    """Goal: nothing usable, a box that fits nowhere, all usable. Method: look at each."""
    table = box_table((4, 4, 4), (2, 2, 4))
    assert largest_packing(np.zeros(64, dtype=np.bool_), table) == 0
    assert largest_packing(np.ones(64, dtype=np.bool_), table) == 4
    assert packed_boxes(np.ones(8, dtype=np.bool_), _empty_table()) == 0
    assert largest_packing(np.ones(8, dtype=np.bool_), _empty_table()) == 0


def test_bits() -> None:
    """Goal: the bit tricks are right. Method: random words against Python's integers."""
    generator = np.random.default_rng(3)
    for word in [*generator.integers(1, 2**64 - 1, 200, dtype=np.uint64).tolist(), 1, 2**63, 2**64 - 1]:
        assert count_bits(np.uint64(word)) == int(word).bit_count()
        assert lowest_bit(np.uint64(word)) == (int(word) & -int(word)).bit_length() - 1
