"""Single passes of language models as tables of the page."""

from __future__ import annotations

from sim.report.context import Tables, table_of
from sim.report.html_tables import HtmlTable
from sim.report.pass_words import (
    ERROR_HEADS,
    GRID_HEADS,
    MARKS_NOTE,
    TIMES_HEADS,
    error_cells,
    grid_cells,
    time_cells,
)


def times_html(tables: Tables) -> HtmlTable:
    """Measured times beside computed ones, a row each."""
    table = table_of(tables, "measured_times")
    rows: list[list[str]] = []
    before = ""
    for _, row in table.iterrows():
        if str(row["group"]) != before:
            before = str(row["group"])
            rows.append([f"{before}: {row['source']}"])
        rows.append(time_cells(row))
    return HtmlTable(caption=f"Computed beside measured times. {MARKS_NOTE}", heads=list(TIMES_HEADS), rows=rows)


def errors_html(tables: Tables) -> HtmlTable:
    """Errors by group of measured times."""
    rows = [error_cells(row) for _, row in table_of(tables, "errors_of_times").iterrows()]
    return HtmlTable(
        caption="Sizes of the errors by group; in brackets rows that do not count", heads=list(ERROR_HEADS), rows=rows
    )


def grid_html(tables: Tables) -> HtmlTable:
    """The grid of passes, a row each."""
    rows = [grid_cells(row) for _, row in table_of(tables, "passes").iterrows()]
    return HtmlTable(
        caption="One decode step, and the first token of one prompt of the context's length alone; – where the batch "
        "does not fit",
        heads=list(GRID_HEADS),
        rows=rows,
    )
