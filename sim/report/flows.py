"""The four flows of a run, and the prices that they are counted with, as tables of the page."""

from __future__ import annotations

import math

import pandas as pd

from sim.report.context import Tables, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.html_tables import BLANK, HtmlTable
from sim.report.words import (
    bytes_words,
    category_words,
    fabric_words,
    fabrics_in_order,
    host_words,
    number,
    percent,
    seconds,
)

PRICES = "prices"
FLOW_WORDS = {
    "information": "information: what a request waits for",
    "resource": "resource: from arrival to a slice",
    "fault": "fault: how far one reaches, and for how long",
    "cost": "cost: what it takes, and what it comes to",
}
FIGURE_WORDS = {
    "memory_bound_share": "request time at the memory bound",
    "on_chip_bytes_per_token": "bytes per token, on the chip",
    "hbm_bytes_per_token": "bytes per token, chips' memory",
    "link_bytes_per_token": "bytes per token, links between chips",
    "network_bytes_per_token": "bytes per token, network",
    "arrival_to_slice_s": "arrival to first slice",
    "fragmentation": "free chips that a waiting job can not use",
    "chips_fragmented_share": "chips in no whole slice",
    "failures_per_day": "failures per day",
    "blast_radius_chips": "blast radius, chips",
    "detect_s": "until it is known",
    "recover_s": "from there until it runs again",
    "chip_hours_lost_per_failure": "chip-hours lost per failure",
    "capital_usd": "capital",
    "links_capital_share": "share of what joins cubes",
    "power_w": "power",
    "links_power_share": "share of power of what joins cubes",
    "usd_per_year": "cost of a year",
    "usd_per_useful_chip_hour": "a useful chip-hour",
    "chip_s_per_million_tokens_in_time": "chip-seconds per million tokens in time",
    "usd_per_million_tokens_in_time": "a million tokens in time",
}


def value_words(value: float, unit: str) -> str:
    """A figure with the unit that suits it: `41 %`, `12 min`, `42.3 million USD`, `0.9 MW`, `150`."""
    if not math.isfinite(value):
        return BLANK
    if unit == "1":
        return percent(value)
    if unit == "s":
        return seconds(value)
    if unit in ("USD", "W") and value >= 1e6:
        return f"{number(value / 1e6)} {'million USD' if unit == 'USD' else 'MW'}"
    if unit == "byte":
        return bytes_words(value)
    if unit == "W" and value >= 1e3:
        return f"{number(value / 1e3)} kW"
    return f"{number(value)} {unit}" if unit in ("USD", "W", "USD/kWh", "USD/year") else number(value)


def flows_html(tables: Tables) -> HtmlTable:
    """All figures of the four flows: a row per figure, a column per fabric, how it is counted or why it is blank."""
    table = table_of(tables, "flows")
    table = table[table["flow"] != PRICES]
    fabrics = fabrics_in_order(list(table["fabric"]))
    rows: list[list[str]] = []
    hosts = host_values(table)
    for host in hosts:
        here = rows_of_host(table, host)
        up = f", hosts up {host_words(host)}" if len(hosts) > 1 else ""
        for flow in dict.fromkeys(str(flow) for flow in here["flow"]):
            rows.append([f"{FLOW_WORDS.get(flow, flow)}{up}"])
            rows += _figures(here[here["flow"] == flow], fabrics)
    return HtmlTable(
        caption="Four flows, by fabric; blank where no study of the run knows",
        heads=["figure", *(fabric_words(fabric) for fabric in fabrics), "counted"],
        rows=rows,
        texts=True,
    )


def _figures(rows: pd.DataFrame, fabrics: list[str]) -> list[list[str]]:
    found: dict[str, dict[str, str]] = {}
    notes: dict[str, list[str]] = {}
    for _, row in rows.iterrows():
        head = FIGURE_WORDS.get(str(row["measure"]), category_words(str(row["measure"])))
        if not pd.isna(row["slice_chips"]):
            head += f", {int(row['slice_chips']):,}-chip slices"
        if not pd.isna(row["service"]):
            head += f", {category_words(str(row['service']))}"
        found.setdefault(head, {})[str(row["fabric"])] = _cell(row)
        notes.setdefault(head, []).append(str(row["note"]))
    return [
        [head, *(cells.get(fabric, BLANK) for fabric in fabrics), "; ".join(filter(None, dict.fromkeys(notes[head])))]
        for head, cells in found.items()
    ]


def _cell(row: pd.Series) -> str:
    unit, value = str(row["unit"]), float(row["value"])
    low, high = float(row["ci_low"]), float(row["ci_high"])
    text = value_words(value, unit)
    ends = [value_words(bound, unit) for bound in (low, high)]
    if BLANK in (text, *ends) or ends[0] == ends[1]:
        return text
    return f"{text} [{ends[0]}, {ends[1]}]"


def prices_html(tables: Tables) -> HtmlTable:
    """What money was counted with: a row per price with its mark and source."""
    table = table_of(tables, "flows")
    table = table[table["flow"] == PRICES]
    first = table[table["fabric"] == table["fabric"].iloc[0]]
    first = rows_of_host(first, host_values(first)[0])
    rows = [
        [category_words(str(row["measure"])), value_words(float(row["value"]), str(row["unit"])), str(row["note"])]
        for _, row in first.iterrows()
    ]
    caption = "Prices, each a key of the section `prices` of the scenario, with its mark and source"
    return HtmlTable(caption=caption, heads=["price", "value", "mark and source"], rows=rows, texts=True)


def markdown_table(table: HtmlTable) -> list[str]:
    """A table of the page as lines of Markdown."""
    heads, rule = " | ".join(table.heads), " | ".join("---" for _ in table.heads)
    lines = [f"**{table.caption}**", "", f"| {heads} |", f"| {rule} |"]
    for row in table.rows:
        cells = [f"*{row[0]}*", *("" for _ in table.heads[1:])] if len(row) == 1 else row
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return [*lines, ""]
