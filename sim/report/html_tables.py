"""Tables of the page: captions, heads and cells as plain values, which the template turns into HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from sim.report.context import ReportContext, Tables, table_of
from sim.report.hosts import host_key, host_values, rows_of_host
from sim.report.promises import promise_words
from sim.report.terminal import form_blocks
from sim.report.words import (
    FABRIC_MEANINGS,
    FORM_MEANINGS,
    FORM_ORDER,
    bytes_words,
    category_words,
    fabric_words,
    fabrics_in_order,
    form_words,
    host_words,
    number,
    percent,
    seconds,
)

BLANK = "–"


@dataclass(frozen=True, kw_only=True)
class HtmlTable:
    """A table for the page. `groups` span the columns behind the first; a row's first cell is its head.

    A row with a single cell names the group of the rows that follow. `texts` says that cells are prose, not numbers.
    """

    caption: str
    heads: list[str]
    rows: list[list[str]]
    groups: list[tuple[str, int]] | None = None
    texts: bool = False


def availability_html(tables: Tables) -> HtmlTable:
    """The availability table, with the same cells as in the terminal."""
    table = table_of(tables, "availability")
    blocks = form_blocks(table)
    rows: list[list[str]] = []
    for fabric in fabrics_in_order(list(table["fabric"])):
        rows.append([fabric_words(fabric)])
        for size in sorted({int(size) for size in table.loc[table["fabric"] == fabric, "slice_chips"]}):
            cells = [b.cells.get((fabric, size, at), BLANK) for b in blocks for at in range(len(b.heads))]
            rows.append([str(size), *cells])
    return HtmlTable(
        caption="Availability of slices, % of the pod's chips, by slice size and host availability; ± and [ ]: 95 % "
        "interval, =: no variation seen (for what is held: the same at both limits)",
        heads=["chips", *(head for block in blocks for head in block.heads)],
        groups=[(block.title, len(block.heads)) for block in blocks],
        rows=rows,
    )


def promise_html(tables: Tables) -> HtmlTable:
    """Cubes for each promise of the run: a row per promise and fabric, a column per host availability."""
    table = table_of(tables, "promise")
    hosts = host_values(table)
    rows: list[list[str]] = []
    for promise in dict.fromkeys(str(text) for text in table["slices"]):
        of_promise = table[table["slices"] == promise]
        share = percent(float(of_promise["time_share"].iloc[0]))
        rows.append([f"{promise_words(promise)} ({promise}), {share} of the time"])
        for fabric in fabrics_in_order(list(of_promise["fabric"])):
            mine = of_promise[of_promise["fabric"] == fabric]
            rows.append([fabric_words(fabric), *(_whole(rows_of_host(mine, host), "cubes") for host in hosts)])
    return HtmlTable(
        caption="Cubes needed to keep a promise, by host availability; – where no number is known. Limits of switch "
        "ports are ignored.",
        heads=["fabric", *(host_words(host) for host in hosts)],
        rows=rows,
    )


def cliff_html(tables: Tables) -> HtmlTable:
    """The smallest slice whose expected share is under a half, by fabric and host availability."""
    table = table_of(tables, "cliff")
    hosts = host_values(table)
    rows = [
        [
            fabric_words(fabric),
            *(_whole(rows_of_host(table[table["fabric"] == fabric], host), "cliff_chips", "none") for host in hosts),
        ]
        for fabric in fabrics_in_order(list(table["fabric"]))
    ]
    return HtmlTable(
        caption="The cliff: smallest slice (chips) with an expected share under half of the pod, by host availability",
        heads=["fabric", *(host_words(host) for host in hosts)],
        rows=rows,
    )


def _whole(rows: pd.DataFrame, column: str, blank: str = BLANK) -> str:
    if rows.empty or pd.isna(rows[column].iloc[0]):
        return blank
    whole = int(rows[column].iloc[0])
    return str(whole) if column == "cliff_chips" else f"{whole:,}"


def slice_sizes_html(tables: Tables) -> HtmlTable:
    """One replica of each service over slice sizes."""
    rows: list[list[str]] = []
    before = ""
    for _, row in table_of(tables, "slice_sizes").iterrows():
        if str(row["service"]) != before:
            before = str(row["service"])
            rows.append([category_words(before)])
        fits = "no" if not row["fits"] else "yes"
        numbers = (
            "ttft_p50_s",
            "ttft_p99_s",
            "tpot_p50_s",
            "capacity_requests_per_s",
            "requests_per_s_per_1024_chips",
            "chip_s_per_token",
        )
        cells = [_plain(float(row[name])) for name in numbers]
        rows.append([f"{row['shape']} ({int(row['chips'])})", fits, "yes" if row["meets"] else "no", *cells])
    return HtmlTable(
        caption=(
            "One replica alone, over slice sizes: latencies while idle, the greatest rate that keeps the limits, and "
            "the chip time of a token while requests never run out. The limits count as met where they are kept at a "
            "tenth of the rate that it could serve without them"
        ),
        heads=[
            "slice (chips)",
            "fits",
            "meets limits",
            "first token, median (s)",
            "first token, 99th percentile (s)",
            "later token, median (s)",
            "requests/s",
            "requests/s per 1024 chips",
            "chip-seconds per token, busy",
        ],
        rows=rows,
    )


def _plain(value: float) -> str:
    return number(value) if math.isfinite(value) else BLANK


def service_html(tables: Tables) -> HtmlTable:
    """All measures of all services: a row per measure and host availability, a column per fabric."""
    table = table_of(tables, "service")
    fabrics = fabrics_in_order(list(table["fabric"]))
    rows: list[list[str]] = []
    for service in dict.fromkeys(str(name) for name in table["service"]):
        mine = table[table["service"] == service]
        rows.append([category_words(service)])
        found: dict[tuple[str, float], dict[str, str]] = {}
        for _, row in mine.iterrows():
            head = f"{row['measure']} {_unit(str(row['unit']))}".rstrip(), host_key(float(row["host_availability"]))
            found.setdefault(head, {})[str(row["fabric"])] = _measured(row)
        for measure in dict.fromkeys(measure for measure, _ in found):
            for host in host_values(mine):
                cells = found.get((measure, host_key(host)))
                if cells:
                    rows.append([f"{measure}, {host_words(host)}", *(cells.get(fabric, BLANK) for fabric in fabrics)])
    return HtmlTable(
        caption="Measures of the services, by host availability, with 95 % intervals",
        heads=["measure, hosts up", *(fabric_words(fabric) for fabric in fabrics)],
        rows=rows,
    )


def load_curve_html(tables: Tables) -> HtmlTable:
    """A row per service and load; the goodput rate is marked."""
    table = table_of(tables, "load_curve")
    rows = []
    for _, row in table.iterrows():
        mark = "greatest rate within the limits, " if bool(row["is_goodput_rate"]) else ""
        times = [seconds(float(row[name])) for name in ("ttft_p50_s", "ttft_p99_s", "tpot_p50_s", "tpot_p99_s")]
        rows.append(
            [
                f"{category_words(str(row['service']))}, {mark}load {percent(float(row['load']))}",
                number(float(row["offered_requests_per_s"])),
                percent(float(row["slo_attainment"])),
                number(float(row["goodput_requests_per_s"])),
                *times,
                str(row["queue"]),
            ]
        )
    return HtmlTable(
        caption="Services as requests come faster, all replicas up",
        heads=[
            "service, load",
            "requests/s",
            "in time",
            "in time/s",
            "first token, median",
            "99th percentile",
            "per later token, median",
            "99th percentile",
            "queue",
        ],
        rows=rows,
    )


def _unit(unit: str) -> str:
    return "" if unit in ("1", "", "byte") else f"({unit})"  # bytes come with the unit that suits them


def _measured(row: pd.Series) -> str:
    value, low, high = (float(row[name]) for name in ("value", "ci_low", "ci_high"))
    if not math.isfinite(value):
        return "never" if value > 0 else BLANK
    said = bytes_words if str(row["unit"]) == "byte" else number
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return said(value)
    return f"{said(value)} [{said(low)}, {said(high)}]"


def ledger_html(tables: Tables, scope: str) -> HtmlTable:
    """Mean seconds per request by category, for all requests or those caught in a loss: a column per fabric."""
    table = table_of(tables, "ledger")
    table = table[table["scope"] == scope]
    fabrics = fabrics_in_order(list(table["fabric"]))
    rows: list[list[str]] = []
    for service in dict.fromkeys(str(name) for name in table["service"]):
        for host in host_values(table):
            here = rows_of_host(table[table["service"] == service], host)
            if here.empty:
                continue
            rows.append([f"{category_words(service)}, hosts up {host_words(host)}"])
            found = _by_name(here, "category", "seconds_per_request")
            rows.extend(
                [category_words(category), *(_plain(found.get((category, fabric), math.nan)) for fabric in fabrics)]
                for category in dict.fromkeys(str(name) for name in here["category"])
            )
    who = "all requests of the steady windows" if scope == "all" else "requests caught in a loss"
    return HtmlTable(
        caption=f"Mean seconds per request by category, {who}",
        heads=["category", *(fabric_words(fabric) for fabric in fabrics)],
        rows=rows,
    )


def chip_hours_html(tables: Tables) -> HtmlTable:
    """Share of chip-hours by use, in percent: a column per fabric."""
    table = table_of(tables, "chip_hours")
    fabrics = fabrics_in_order(list(table["fabric"]))
    rows: list[list[str]] = []
    for size in sorted({int(size) for size in table["slice_chips"]}):
        for host in host_values(table):
            here = rows_of_host(table[table["slice_chips"] == size], host)
            if here.empty:
                continue
            rows.append([f"slices of {size} chips, hosts up {host_words(host)}"])
            found = _by_name(here, "use", "share")
            for use in dict.fromkeys(str(name) for name in here["use"]):
                shares = [found.get((use, fabric), math.nan) for fabric in fabrics]
                if any(share > 0 for share in shares):
                    rows.append([category_words(use), *(_plain(100 * share) for share in shares)])
    return HtmlTable(
        caption="Chip-hours by use, % of the pod's; uses that never occur are left out",
        heads=["use", *(fabric_words(fabric) for fabric in fabrics)],
        rows=rows,
    )


def _by_name(rows: pd.DataFrame, name: str, value: str) -> dict[tuple[str, str], float]:
    """Column `value` by (column `name`, fabric)."""
    keys = zip(rows[name].astype(str), rows["fabric"].astype(str), strict=True)
    return dict(zip(keys, rows[value].astype(float), strict=True))


def settings_html(context: ReportContext) -> HtmlTable:
    """The effective configuration with the source of each value."""
    return HtmlTable(
        caption="Effective configuration of the run; values marked as assumptions are this project's guesses",
        heads=["setting", "value", "source"],
        rows=[[setting.label, setting.value, setting.mark or BLANK] for setting in context.marked_settings()],
        texts=True,
    )


def definitions_html(tables: Tables) -> HtmlTable:
    """How each number is defined: forms of availability, fabrics, measures of services."""
    availability = table_of(tables, "availability")
    shares = availability["time_share"].dropna() if len(availability) else pd.Series(dtype=float)
    share = float(shares.iloc[0]) if len(shares) else None
    rows = [["Availability of slices"]]
    rows += [[form_words(form, share), FORM_MEANINGS[form]] for form in FORM_ORDER]
    rows += [["Fabrics"]]
    rows += [[fabric_words(fabric), meaning] for fabric, meaning in FABRIC_MEANINGS.items()]
    rows += [["Promises and services"]]
    rows += [[name, meaning] for name, meaning in DEFINITIONS.items()]
    return HtmlTable(caption="Definitions", heads=["word", "meaning"], rows=rows, texts=True)


DEFINITIONS = {
    "cubes for a promise": "Fewest cubes (of 64 chips) with which all promised slices can be formed at once for the "
    "stated share of time. Limits of switch ports are ignored.",
    "cliff": "The smallest slice size whose expected share of the pod is under one half.",
    "95 % interval": "Student's t over replications. For what is held, the same rule on the limits of the shares of "
    "time. Where no variation was seen, none is printed.",
    "closed form": "The value for hosts that fail independently; thin lines in the pictures.",
    "time to first token": "From arrival at the router to the end of the pass that makes token 1; a loss never "
    "resets it.",
    "time per later token": "(last token - first token) / (tokens - 1), for answers of at least two tokens.",
    "tokens in time": "Tokens of requests that met both limits, as a share of all tokens offered.",
    "meets limits": "Some rate of requests keeps both limits for the stated share of requests.",
    "queue": "Overloaded: more arrives than the replicas that are up can serve. Backlogged: the queue at the end is "
    "over twice its mean, or never empty in the last tenth of the window. Else stable.",
    "ledger": "Every second of a request is in exactly one category; the categories add up to its whole time.",
    "chip-hours": "Each chip is at each instant in the first use that applies; the uses add up to the pod.",
}
