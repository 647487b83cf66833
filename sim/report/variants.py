"""Runs that sweep more than fabric and host availability: every combination of the other swept keys by itself.

Tables and pictures have a place for fabric, host availability and slice size. Where other keys are swept too, several
rows would claim one place; then each combination of those keys is a variant with tables of its own and a label.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import pandas as pd

from sim.report.context import Tables
from sim.run_tables import SPECS

VARIANTS_SHOWN = 8
"""More variants than this are not printed; all are in the tables."""
LABEL_VALUE_CHARACTERS = 80
_BRACES = re.compile(r'[{}\[\]":]')
"""What a mapping among swept values is written with: `{"kind": "hot", "cubes": 4}` is said `kind hot, cubes 4`."""
_PLACES = {
    "availability": ["fabric", "host_availability", "slice_chips", "form"],
    "promise": ["fabric", "host_availability", "slices"],
    "cliff": ["fabric", "host_availability"],
    "service": ["fabric", "host_availability", "service", "measure"],
    "chip_hours": ["fabric", "host_availability", "slice_chips", "use"],
    "large_job": ["fabric", "host_availability", "measure"],
    "operations": ["fabric", "host_availability", "measure"],
    "operations_chip_hours": ["fabric", "host_availability", "use"],
    "job_sizes": ["fabric", "host_availability", "slice_chips"],
    "job_profiles": ["fabric", "host_availability", "profile"],
    "failures_felt": ["fabric", "host_availability", "kind"],
    "promise_months": ["fabric", "host_availability", "month"],
    "ideal": ["fabric", "host_availability", "slice_chips", "service", "measure", "cause"],
    "waterfall": ["fabric", "host_availability", "service", "step"],
    "flows": ["fabric", "host_availability", "flow", "slice_chips", "service", "measure"],
    "errors_of_times": ["group"],
    "passes": ["label"],
    "fleet": ["fabric", "host_availability", "measure"],
    "fleet_queues": ["fabric", "host_availability", "queues", "measure"],
    "fleet_waits": ["fabric", "host_availability", "queues", "longer_than_s"],
    "shared_pod": ["fabric", "host_availability", "machine", "service", "measure"],
    "shared_pod_waits": ["fabric", "host_availability", "machine", "service", "cause"],
    "shared_pod_differences": ["fabric", "host_availability", "machine", "against", "service", "measure"],
    "recovery_stages": ["fabric", "host_availability", "stage"],
}


class Variant(NamedTuple):
    """The tables of one combination of swept keys; `label` is empty where there is only one."""

    label: str
    tables: Tables


def variants_of(tables: Tables) -> list[Variant]:
    """The variants of a run in the order of its sweep: at least one, a single one where every row has its own place."""
    swept = _swept_keys(tables)
    crowded = any(
        name in tables and tables[name].duplicated([key for key in places if key in tables[name]]).any()
        for name, places in _PLACES.items()
    )
    if not swept or not crowded:
        return [Variant("", {name: _plain(table, name) for name, table in tables.items()})]
    holders = [table[swept].drop_duplicates() for name, table in tables.items() if name in _PLACES]
    choices = pd.concat(holders, ignore_index=True).drop_duplicates()
    combinations = [dict(zip(swept, map(str, row), strict=True)) for row in choices.itertuples(index=False)]
    return [Variant(_label(choice), _chosen(tables, choice)) for choice in combinations]


def shown_variants(tables: Tables) -> tuple[list[Variant], str]:
    """The variants that are printed, and a sentence about those that are not (empty where all are)."""
    found = variants_of(tables)
    if len(found) <= VARIANTS_SHOWN:
        return found, ""
    left = len(found) - VARIANTS_SHOWN
    return found[:VARIANTS_SHOWN], f"{left} more combinations of the swept keys are in the tables and in summary.csv."


def opening(label: str) -> str:
    """How a sentence about a variant begins; nothing where there is only one."""
    return f"With {label}: " if label else ""


def _swept_keys(tables: Tables) -> list[str]:
    """Keys whose columns stand behind the declared ones of the tables that have a place for every row."""
    keys = [str(key) for name in _PLACES if name in tables for key in tables[name] if key not in SPECS[name].names]
    return list(dict.fromkeys(keys))


def _plain(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """A table in its declared columns, each row once."""
    declared = [column for column in table if name not in SPECS or column in SPECS[name].names]
    return table if len(declared) == len(table.columns) else table[declared].drop_duplicates(ignore_index=True)


def _chosen(tables: Tables, choice: dict[str, str]) -> dict[str, pd.DataFrame]:
    """The rows of one combination in every table."""
    chosen = {}
    for name, table in tables.items():
        rows = table
        for key, value in choice.items():
            if key in rows:
                rows = rows[rows[key] == value]
        chosen[name] = _plain(rows.reset_index(drop=True), name)
    return chosen


def _label(choice: dict[str, str]) -> str:
    """A combination in words: `health.detection 60 s, repair.crews 4`."""
    texts = []
    for key, value in choice.items():
        text = "nothing" if value == "null" else " ".join(_BRACES.sub("", str(value)).split())
        texts.append(
            f"{key} {text if len(text) <= LABEL_VALUE_CHARACTERS else text[: LABEL_VALUE_CHARACTERS - 3] + '...'}"
        )
    return ", ".join(texts)
