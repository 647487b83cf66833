"""The page of tables, written from their declarations: `python -m sim.table_docs > docs/tables.md`."""

from __future__ import annotations

import sys

from sim.run_tables import SPECS
from sim.tables import tables_page

HEAD = """# Tables of a run

This page is written from the code (`python -m sim.table_docs`).

A run folder holds each of these as `tables/NAME.parquet`, and the last one as `summary.csv`; a table that the scenario
does not ask for is not there. `Result` in Python gives them by the same names. Keys that were swept stand in further
text columns behind the declared ones, as they were written; `pod.fabric` and the availability of hosts are left out
where a declared column shows them. `int64` and `float64` columns are numbers, of which `Int64` and `boolean` may be
blank; a blank `float64` is NaN. Shares have unit 1.

"""


def table_page() -> str:
    """The page, as Markdown."""
    return HEAD + tables_page(SPECS.values()).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(table_page())
