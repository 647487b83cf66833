"""Hash tables of numbers inside the kernel: equal parts of one array, one table after the other, a power of two each.

A bucket holds a number and an entry (`HASH_`); an empty one holds no entry. Half of the buckets or more stay empty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f

LOW_31 = (1 << 31) - 1
GOLDEN = 2_654_435_769
"""2^32 over the golden ratio: multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4)."""


@kernel_part
def home_of(number: int, size: int) -> int:
    """The place in a table of `size` buckets where the search for a number begins."""
    folded = ((number & LOW_31) ^ (number >> 31)) & LOW_31
    return (folded * GOLDEN) >> 20 & (size - 1)


@kernel_part
def find_number(table: NDArray[np.int64], first: int, size: int, number: int) -> int:
    """The bucket that holds a number, or the empty one where it would be put; the table begins at `first`."""
    end = first + size
    place = first + home_of(number, size)
    while table[place, f.HASH_ENTRY] != f.NO_SLOT and table[place, f.HASH_ID] != number:
        place += 1
        if place == end:
            place -= size
    return place


@kernel_routine
def forget_number(table: NDArray[np.int64], first: int, size: int, number: int) -> None:
    """Empty the bucket of a number, and move back those behind it that would not be found any more."""
    hole = find_number(table, first, size, number)
    place = hole
    while True:
        place = first + ((place - first + 1) & (size - 1))
        if table[place, f.HASH_ENTRY] == f.NO_SLOT:
            break
        home = first + home_of(table[place, f.HASH_ID], size)
        if (place - home) & (size - 1) >= (place - hole) & (size - 1):
            table[hole, f.HASH_ID] = table[place, f.HASH_ID]
            table[hole, f.HASH_ENTRY] = table[place, f.HASH_ENTRY]
            hole = place
    table[hole, f.HASH_ENTRY] = f.NO_SLOT
