"""Rows of tables that have a measure per row: the mean over replications with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sim.metrics.intervals import Estimate, mean_estimate


def rows_of_measures(
    measures: Mapping[str, tuple[str, str | None]], values_of: Callable[[str], Sequence[float]]
) -> list[dict[str, Any]]:
    """A row for each of `measures` (name -> unit, which way is better); `values_of` gives its replications.

    NaN is a replication without anything to measure: it is left out, and a measure without any value is blank.
    """
    rows = []
    for measure, (unit, better) in measures.items():
        values = [value for value in values_of(measure) if not math.isnan(value)]
        estimate = mean_estimate(values) if values else Estimate(value=math.nan, n=0)
        rows.append(
            {
                "measure": measure,
                "unit": unit,
                "value": estimate.value,
                "ci_low": estimate.ci_low,
                "ci_high": estimate.ci_high,
                "n": estimate.n,
                "better": better,
            }
        )
    return rows
