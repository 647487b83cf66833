"""The waterfall of a service in words: its table and its sentence."""

from __future__ import annotations

import math
from itertools import pairwise

import pandas as pd

from sim.report.context import Tables, is_absent, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.html_tables import BLANK, HtmlTable
from sim.report.phrases import LIGHT, how_words, spoken_fabrics
from sim.report.words import category_words, fabric_words, fabrics_in_order, host_words, number

STEP_WORDS = {
    "peak": "every chip multiplies all the time",
    "memory-bound": "one request at a time: chips wait for weights and cache",
    "batched": "many at once, requests never run out",
    "placed": "replicas that the fabric can form",
    "delivered": "less what losses take until they serve again",
    "in time": "of requests within both limits, of those that come: at a lower load there is less to serve",
}
"""Steps in order, with what is counted after each."""
NOT_ASKED_FOR = ", capacity that the load does not ask for among it"


def share_words(share: float) -> str:
    """A share of the peak: two digits are enough."""
    if not math.isfinite(share):
        return BLANK
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def waterfall_html(tables: Tables) -> HtmlTable:
    """Tokens per second after each step and their share of the peak, a column per fabric."""
    table = table_of(tables, "waterfall")
    fabrics = fabrics_in_order(list(table["fabric"]))
    rows: list[list[str]] = []
    for service in dict.fromkeys(str(name) for name in table["service"]):
        for host in host_values(table):
            here = rows_of_host(table[table["service"] == service], host)
            rows.append([f"{category_words(service)}, hosts up {host_words(host)}"])
            for step, words in STEP_WORDS.items():
                found = {str(row["fabric"]): row for _, row in here[here["step"] == step].iterrows()}
                cells = [_cell(found[fabric]) if fabric in found else BLANK for fabric in fabrics]
                rows.append([f"{step}: {words}", *cells])
    return HtmlTable(
        caption="From the peak to tokens in time: tokens of answers per second, and their share of the peak",
        heads=["step", *(fabric_words(fabric) for fabric in fabrics)],
        rows=rows,
        texts=True,
    )


def _cell(row: pd.Series) -> str:
    return f"{number(float(row['tokens_per_s']))} ({share_words(float(row['share_of_peak']))})"


def waterfall_lines(tables: Tables) -> list[str]:
    """Per service: what is left of the peak, and which step takes most of what batches had won."""
    if is_absent(tables, "waterfall"):
        return []
    table = table_of(tables, "waterfall")
    here = rows_of_host(table, host_values(table)[0])
    fabric = LIGHT if LIGHT in set(here["fabric"]) else spoken_fabrics(here)[0]
    here = here[here["fabric"] == fabric]
    return [_line(name, fabric, here[here["service"] == name]) for name in dict.fromkeys(map(str, here["service"]))]


def _line(service: str, fabric: str, rows: pd.DataFrame) -> str:
    shares = {str(step): float(share) for step, share in zip(rows["step"], rows["share_of_peak"], strict=True)}
    after = [(step, _of(shares, step, before)) for before, step in pairwise(list(STEP_WORDS)[2:])]
    step, left = min(after, key=lambda pair: pair[1])
    alone, full, in_time = (share_words(shares[name]) for name in ("memory-bound", "batched", "in time"))
    return (
        f"{category_words(service).capitalize()}: of the peak of its chips {alone} are left for one request at a time, "
        f"{full} in full batches, {in_time} in time ({how_words(fabric)}); after batching most goes at {step} "
        f"({100 * (1 - left):.0f} % of what is left there{NOT_ASKED_FOR if step == 'in time' else ''})."
    )


def _of(shares: dict[str, float], step: str, before: str) -> float:
    """What a step leaves of the one before."""
    return shares[step] / shares[before] if shares[before] else 1.0
