"""Avoidable causes for people: what removing each changes, against what the ledger says of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from sim.report.context import Tables, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.html_tables import BLANK, HtmlTable
from sim.report.words import category_words, fabric_words, fabrics_in_order, host_words, number, seconds

AS_IT_IS = "as it is"


def ideal_html(tables: Tables) -> HtmlTable:
    """A block per measure and fabric; a row per cause: the change without it, and what is booked under it."""
    table = table_of(tables, "ideal")
    rows: list[list[str]] = []
    for host in host_values(table):
        here = rows_of_host(table, host)
        for fabric in fabrics_in_order(list(here["fabric"])):
            mine = here[here["fabric"] == fabric]
            for _, block in mine.groupby(["service", "slice_chips", "measure"], sort=False, dropna=False):
                rows.append([f"{_heading(block.iloc[0])}, {fabric_words(fabric)}, hosts up {host_words(host)}"])
                rows += [_row(row) for _, row in block.iterrows()]
    return HtmlTable(
        caption="Avoidable causes: what changes without each on the same draws, ± half of the paired 95 % interval, "
        "and what the ledger has booked under it (shares of chip-hours in points, seconds of a request)",
        heads=["cause", "without it", "by the ledger"],
        rows=rows,
    )


def ideal_text(tables: Tables) -> str:
    """The same for the terminal; empty where causes were not removed."""
    if table_of(tables, "ideal").empty:
        return ""
    table = ideal_html(tables)
    lines = [table.heads, *(row for row in table.rows if len(row) > 1)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.heads))]
    texts = [row[0] if len(row) == 1 else _aligned(row, widths) for row in table.rows]
    return "\n".join(["Avoidable causes", _aligned(table.heads, widths), *texts])


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _heading(row: pd.Series) -> str:
    name = category_words(str(row["measure"]).removesuffix("_s"))
    if not pd.isna(row["service"]):
        return f"{category_words(str(row['service']))}, {name}"
    return name if pd.isna(row["slice_chips"]) else f"{name}, {int(row['slice_chips']):,}-chip slices"


def _row(row: pd.Series) -> list[str]:
    unit, value = str(row["unit"]), float(row["value"])
    if str(row["cause"]) == AS_IT_IS:
        return [AS_IT_IS, seconds(value) if unit == "s" else f"{100 * value:.2f} %", ""]
    scale = 100.0 if unit == "1" else 1.0
    half = scale * (float(row["ci_high"]) - float(row["ci_low"])) / 2
    ledger = scale * float(row["ledger"])
    text = _signed(scale * value) + (f" ±{number(half)}" if math.isfinite(half) else "")
    return [str(row["cause"]), text, _signed(ledger)]


def _signed(value: float) -> str:
    if not math.isfinite(value):
        return BLANK
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{number(abs(value))}"
