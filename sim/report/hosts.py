"""Host availabilities of a table: which there are, and the rows of one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd


def host_values(table: pd.DataFrame) -> list[float]:
    """The host availabilities of a table, rising; NaN (taken from a log) last."""
    values = sorted({float(value) for value in table["host_availability"].dropna()})
    return [*values, math.nan] if table["host_availability"].isna().any() else values


def rows_of_host(table: pd.DataFrame, host_availability: float) -> pd.DataFrame:
    """The rows of one host availability (NaN matches NaN)."""
    column = table["host_availability"]
    return table[column.isna() if math.isnan(host_availability) else column == host_availability]


def host_key(host_availability: float) -> float:
    """A host availability as the key of a mapping (NaN, taken from a log, equals nothing: -1 stands for it)."""
    return -1.0 if math.isnan(host_availability) else host_availability


def some_of(values: Sequence[float], most: int) -> list[float]:
    """At most `most` of the values, evenly spread, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    places = np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))
    return [values[int(place)] for place in places]
