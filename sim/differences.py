"""Paired differences on the same draws, with paired t-intervals (design: measures, section 5).

Fabrics are compared with a static one, values of a swept key with its first value, replication by replication. What is
drawn is the same on both sides of every pair (`sim.streams`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from sim.metrics.intervals import mean_estimate
from sim.run_tables import DIFFERENCES

AGAINST = ("static_aligned", "static_contiguous")
"""The fabric that is subtracted: the first of these that is there."""
PLACE = ("host_availability", "slice_chips", "form")
"""Columns of `replications` that say what is compared, beside the fabric and the swept keys."""


def difference_table(replications: pd.DataFrame, against: Sequence[str] = AGAINST) -> pd.DataFrame | None:
    """The table `differences`: fabrics against a static one, and values of each swept key against its first.

    `replications` is the table of that name; its further columns (swept keys) tell points apart and are kept: they say
    which value of a swept key is compared. The availability of hosts, which has a column of its own, is not compared.
    Replications without a value on either side are left out. None where there is nothing to compare.
    """
    swept = [str(name) for name in replications.columns if name not in (*PLACE, "fabric", "value", "replication")]
    fabrics = list(dict.fromkeys(replications["fabric"]))
    static = [fabric for fabric in against if fabric in fabrics]
    parts = [_compared(replications, "fabric", static[0], swept)] if static else []
    parts += [_compared(replications, key, str(replications[key].iloc[0]), swept) for key in swept]
    rows = [row for part in parts for row in part]
    if not rows:
        return None
    settings = [{key: str(row.pop(key)) for key in swept} for row in rows]
    table = DIFFERENCES.make(rows)
    for key in swept:
        table[key] = pd.Series([setting[key] for setting in settings], dtype="string")
    return table


def _compared(replications: pd.DataFrame, key: str, against: str, swept: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of every value of the column `key` minus the value `against`, all else equal."""
    others = [name for name in ("fabric", *PLACE, *swept) if name != key]
    subtracted = replications[replications[key] == against]
    rows: list[dict[str, Any]] = []
    for value in dict.fromkeys(replications[key]):
        if value == against:
            continue
        mine = replications[replications[key] == value]
        pairs = mine.merge(subtracted, on=[*others, "replication"], suffixes=("", "_subtracted"))
        pairs["difference"] = pairs["value"] - pairs["value_subtracted"]
        pairs = pairs.dropna(subset="difference").sort_values("replication")
        for place, group in pairs.groupby(others, sort=True, dropna=False):
            estimate = mean_estimate(group["difference"].to_numpy())
            at = {key: value, "compared": "pod.fabric" if key == "fabric" else key, "against": against}
            at |= dict(zip(others, place, strict=True))
            interval = {"ci_low": estimate.ci_low, "ci_high": estimate.ci_high, "replications": estimate.n}
            rows.append(at | {"difference": estimate.value} | interval)
    return rows
