"""Doubly linked lists of pieces inside the kernel, the most recently left last, and where they lie when they are empty.

A row of `table` is an entry (`E_`); `ends` says in columns `oldest` and `newest` of row r where the list of r begins
and ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topology.compilation import kernel_part
from workloads.serving import fields as f


@kernel_part
def unlink(table: NDArray[np.int64], e: int, ends: NDArray[np.int64], r: int, oldest: int, newest: int) -> None:
    """Entry e leaves the list of r."""
    older, newer = table[e, f.E_OLDER], table[e, f.E_NEWER]
    if older == f.NO_SLOT:
        ends[r, oldest] = newer
    else:
        table[older, f.E_NEWER] = newer
    if newer == f.NO_SLOT:
        ends[r, newest] = older
    else:
        table[newer, f.E_OLDER] = older


@kernel_part
def link_newest(table: NDArray[np.int64], e: int, ends: NDArray[np.int64], r: int, oldest: int, newest: int) -> None:
    """Entry e is the last of the list of r."""
    last = ends[r, newest]
    table[e, f.E_OLDER], table[e, f.E_NEWER] = last, f.NO_SLOT
    if last == f.NO_SLOT:
        ends[r, oldest] = e
    else:
        table[last, f.E_NEWER] = e
    ends[r, newest] = e
