"""The one door to the solver of linear programs (HiGHS, through scipy, loaded when it is first needed)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topology.errors import EnvironmentFault

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Entries = tuple[IntArray, IntArray, FloatArray]
"""Rows, columns, values of a sparse matrix; entries of one place add up."""

INFEASIBLE = 2


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """A solution (n,), and what one more unit of each upper limit (m,) would save: the prices, never negative."""

    values: FloatArray
    prices: FloatArray


def least_cost(
    cost: FloatArray,
    at_most: tuple[list[Entries], FloatArray],
    equal: tuple[list[Entries], FloatArray],
    *,
    interior: bool = False,
) -> Optimum | None:
    """Minimise cost . x over x >= 0 with the rows of `at_most` up to their limits and those of `equal` met exactly.

    `interior` starts from an interior point (large programs). None where nothing meets the rows; EnvironmentFault where
    the solver gives up.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    def matrix(entries: list[Entries], rows: int) -> Any:
        values = np.concatenate([part[2] for part in entries])
        places = tuple(np.concatenate([part[k] for part in entries]) for k in (0, 1))
        return coo_array((values, places), shape=(rows, cost.size)).tocsr()

    solve: Any = linprog
    answer = solve(
        cost,
        A_ub=matrix(at_most[0], at_most[1].size),
        b_ub=at_most[1],
        A_eq=matrix(equal[0], equal[1].size),
        b_eq=equal[1],
        method="highs-ipm" if interior else "highs",
    )
    if answer.status == INFEASIBLE:
        return None
    if answer.x is None:
        raise EnvironmentFault(f"a linear program of routes was not solved: {answer.message}")
    return Optimum(values=np.maximum(answer.x, 0.0), prices=np.maximum(-answer.ineqlin.marginals, 0.0))
