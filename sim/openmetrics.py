"""The summary of a run in the text format of OpenMetrics 1.0, for dashboards beside those of a real fleet.

A gauge `opticube_MEASURE` per measure, and `_ci_low` and `_ci_high` for its 95 % interval; the labels are the columns
that say where a value is from. Source of the format: the OpenMetrics specification, prometheus/OpenMetrics, 1.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pandas as pd

COLUMNS = {"value": ("", ""), "ci_low": ("_ci_low", ", lower end of the 95 % interval")} | {
    "ci_high": ("_ci_high", ", upper end of the 95 % interval")
}
_NOT_LABELS = ("measure", "unit", "value", "ci_low", "ci_high", "n", "better")


def openmetrics_text(summary: pd.DataFrame) -> str:
    """The whole exposition, families in the order of the summary; what is undefined is left out."""
    lines: list[str] = []
    for measure, rows in summary.groupby("measure", sort=False):
        for column, (suffix, meaning) in COLUMNS.items():
            samples = list(_samples(f"opticube_{measure}{suffix}", rows, column))
            if samples:
                unit = str(rows["unit"].iloc[0])
                lines += [
                    f"# TYPE opticube_{measure}{suffix} gauge",
                    f"# HELP opticube_{measure}{suffix} {_escaped(f'{measure} in {unit}{meaning}')}",
                    *samples,
                ]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _samples(name: str, rows: pd.DataFrame, column: str) -> Iterator[str]:
    places = [str(key) for key in rows.columns if key not in _NOT_LABELS]
    for row in rows.to_dict("records"):
        found: dict[str, Any] = {str(key): value for key, value in row.items()}
        if pd.isna(found[column]):
            continue
        labels = [
            f'{_label_name(key)}="{_escaped(str(found[key]))}"'
            for key in places
            if not pd.isna(found[key]) and str(found[key]) != ""
        ]
        yield f"{name}{{{','.join(labels)}}} {_number(float(found[column]))}"


def _label_name(key: str) -> str:
    """A column as the name of a label: letters, digits and underscores."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", key)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0.0 else "-Inf"
    return repr(value)
