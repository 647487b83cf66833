"""Paired differences between fabrics on the same draws, with paired t-intervals (design: measures, section 5)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sim.metrics.intervals import mean_estimate
from sim.run_tables import DIFFERENCES

AGAINST = "static_aligned"


def difference_table(replications: pd.DataFrame, against: str = AGAINST) -> pd.DataFrame | None:
    """The table `differences`: every fabric minus `against`, replication by replication, per point and form.

    `replications` is the table of that name; its further columns (swept keys) tell points apart and are kept. None
    where `against` is not among the fabrics, or nothing can be compared with it.
    """
    fabrics = list(dict.fromkeys(replications["fabric"]))
    if against not in fabrics or len(fabrics) < 2:
        return None
    keys = [name for name in replications.columns if name not in ("fabric", "value", "replication")]
    swept = [key for key in keys if key not in DIFFERENCES.names]
    wide = replications.pivot_table(index=[*keys, "replication"], columns="fabric", values="value")
    rows: list[dict[str, Any]] = []
    settings: list[dict[str, str]] = []
    for fabric in fabrics:
        if fabric == against:
            continue
        for point, group in wide.groupby(keys, sort=True):
            pairs = (group[fabric] - group[against]).dropna()
            if pairs.empty:
                continue
            estimate, at = mean_estimate(pairs.to_numpy()), dict(zip(keys, point, strict=True))
            settings.append({key: str(at.pop(key)) for key in swept})
            interval = {"ci_low": estimate.ci_low, "ci_high": estimate.ci_high, "replications": estimate.n}
            rows.append(at | {"fabric": fabric, "against": against, "difference": estimate.value} | interval)
    table = DIFFERENCES.make(rows)
    for key in swept:
        table[key] = pd.Series([setting[key] for setting in settings], dtype="string")
    return table
