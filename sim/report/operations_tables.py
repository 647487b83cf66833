"""Tables of a pod in operation for the page."""

from __future__ import annotations

import math

import pandas as pd

from sim.report.context import Tables, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.html_tables import BLANK, HtmlTable
from sim.report.operations_words import LARGE_JOB_WORDS, MEASURE_WORDS, is_shown, measure_text
from sim.report.promises import promise_words
from sim.report.words import fabric_words, fabrics_in_order, host_words, number, percent


def operations_html(tables: Tables) -> HtmlTable:
    """Measures of a pod in operation: a row per measure, a column per fabric, a group per host availability."""
    table = table_of(tables, "operations")
    fabrics = fabrics_in_order(list(table["fabric"]))
    rows: list[list[str]] = []
    for host in host_values(table):
        here = rows_of_host(table, host)
        rows.append([f"hosts up {host_words(host)}"])
        for measure, words in MEASURE_WORDS.items():
            mine = {str(row["fabric"]): row for _, row in here[here["measure"] == measure].iterrows()}
            if measure == "promise_kept" and not is_shown(measure, [float(row["value"]) for row in mine.values()]):
                continue
            cells = [measure_text(mine[fabric]) if fabric in mine else BLANK for fabric in fabrics]
            rows.append([words.strip(), *cells])
    return HtmlTable(
        caption="A pod in operation: means over replications, ± half of the 95 % interval",
        heads=["measure", *(fabric_words(fabric) for fabric in fabrics)],
        rows=rows,
    )


def job_sizes_html(tables: Tables) -> HtmlTable:
    """Jobs by slice size: how many, and how they fared, by fabric."""
    table = table_of(tables, "job_sizes")
    rows: list[list[str]] = []
    for host in host_values(table):
        here = rows_of_host(table, host)
        for fabric in fabrics_in_order(list(here["fabric"])):
            rows.append([f"{fabric_words(fabric)}, hosts up {host_words(host)}"])
            for _, row in here[here["fabric"] == fabric].iterrows():
                counts = [number(float(row[name])) for name in ("arrived", "rejected", "finished")]
                hours = _plain(float(row["wait_mean_s"]) / 3600)
                rows.append([f"{int(row['slice_chips']):,}", *counts, hours, _plain(float(row["slowdown_mean"]))])
    return HtmlTable(
        caption="Jobs by slice size: counts are means over replications",
        heads=["chips", "arrived", "rejected", "finished", "mean wait (h)", "mean slowdown"],
        rows=rows,
    )


def job_profiles_html(tables: Tables) -> HtmlTable:
    """Jobs by profile: how they fared, and what a loss costs them, by fabric."""
    table = table_of(tables, "job_profiles")
    rows: list[list[str]] = []
    for host in host_values(table):
        here = rows_of_host(table, host)
        for fabric in fabrics_in_order(list(here["fabric"])):
            rows.append([f"{fabric_words(fabric)}, hosts up {host_words(host)}"])
            for _, row in here[here["fabric"] == fabric].iterrows():
                ettr = float(row["ettr"])
                rows.append(
                    [
                        str(row["profile"]),
                        *(number(float(row[name])) for name in ("arrived", "finished")),
                        _plain(float(row["wait_mean_s"]) / 3600),
                        percent(ettr) if math.isfinite(ettr) else BLANK,
                        number(float(row["losses"])),
                        *(_plain(float(row[name]) / 60) for name in ("lost_s_per_loss", "back_s_per_loss")),
                    ]
                )
    heads = ["profile", "arrived", "finished", "mean wait (h)", "ETTR", "losses", "undone per loss (min)",
             "to come back (min)"]  # fmt: skip
    return HtmlTable(caption="Jobs by profile: counts are means over replications", heads=heads, rows=rows)


def failures_felt_html(tables: Tables) -> HtmlTable:
    """What the failures of each kind of component hit, by fabric."""
    table = table_of(tables, "failures_felt")
    rows: list[list[str]] = []
    for host in host_values(table):
        here = rows_of_host(table, host)
        for fabric in fabrics_in_order(list(here["fabric"])):
            rows.append([f"{fabric_words(fabric)}, hosts up {host_words(host)}"])
            for _, row in here[here["fabric"] == fabric].iterrows():
                names = ("failures", "felt", "jobs_lost", "chips_per_failure")
                rows.append([str(row["kind"]).replace("_", " "), *(number(float(row[name])) for name in names)])
    return HtmlTable(
        caption="Failures by kind of component, mean over replications: how many, how many stopped a running job, how "
        "many jobs, and how many chips one failure stops",
        heads=["component", "failures", "felt", "losses of jobs", "chips per failure"],
        rows=rows,
    )


COMPARED = {"goodput": "goodput", "ettr": "ETTR", "wait_mean_s": "mean wait", "completion": "jobs finished"}
"""Measures of which the page shows paired differences; the table `differences` has them all."""
ROWS_MAX = 40


def operations_differences(tables: Tables) -> pd.DataFrame:
    """The rows of the table `differences` that are about the measures above; empty where there are none."""
    table = table_of(tables, "differences")
    return table[table["form"].isin(list(COMPARED))] if len(table) else table


def differences_html(tables: Tables) -> HtmlTable:
    """Paired differences between fabrics and between swept values: a row per pair, a column per measure."""
    table = operations_differences(tables)
    pairs = ["compared", "fabric", "against", "host_availability"]
    rows: list[list[str]] = []
    for (compared, fabric, against, _), group in table.groupby(pairs, sort=False):
        found = {str(row["form"]): row for _, row in group.iterrows()}
        words = f"{fabric_words(str(fabric))} minus "
        words += fabric_words(str(against)) if compared == "pod.fabric" else f"that with {compared} {against}"
        cells = (_difference_text(form, found.get(form)) for form in COMPARED)
        rows.append([f"{words}, hosts up {host_words(float(group['host_availability'].iloc[0]))}", *cells])
    more = f"; the first {ROWS_MAX} of {len(rows)}" if len(rows) > ROWS_MAX else ""
    return HtmlTable(
        caption=f"Differences on the same bad luck, with half of the paired 95 % interval (points; hours){more}",
        heads=["difference", *COMPARED.values()],
        rows=rows[:ROWS_MAX],
    )


def _difference_text(form: str, row: pd.Series | None) -> str:
    """A difference with its half-width: shares in points, waits in hours."""
    if row is None or not math.isfinite(float(row["difference"])):
        return BLANK
    scale = 1 / 3600 if form == "wait_mean_s" else 100.0
    half = scale * (float(row["ci_high"]) - float(row["ci_low"])) / 2
    spread = f"±{number(half)}" if math.isfinite(half) else ""
    return f"{scale * float(row['difference']):+.2f}{spread}"


def promise_months_html(tables: Tables) -> HtmlTable:
    """A promise month by month: for how long it could be held, and how often that was enough."""
    table = table_of(tables, "promise_months")
    first = table.iloc[0]
    rows: list[list[str]] = []
    for host in host_values(table):
        here = rows_of_host(table, host)
        for fabric in fabrics_in_order(list(here["fabric"])):
            rows.append([f"{fabric_words(fabric)}, hosts up {host_words(host)}"])
            for _, row in here[here["fabric"] == fabric].iterrows():
                days = f"days {number(float(row['start_s']) / 86_400)} to {number(float(row['end_s']) / 86_400)}"
                shares = [percent(float(row[name])) for name in ("held", "kept")]
                rows.append([str(row["start_date"]) or days, *shares])
    promise = f"{promise_words(str(first['slices']))}, {percent(float(first['time_share']))} of each month"
    return HtmlTable(
        caption=f"The promise by month: {promise}", heads=["month from", "time held", "replications kept"], rows=rows
    )


def large_job_html(tables: Tables) -> HtmlTable:
    """Measures of one very large job: a row per measure."""
    table = table_of(tables, "large_job")
    rows = [[LARGE_JOB_WORDS[str(row["measure"])].strip(), measure_text(row)] for _, row in table.iterrows()]
    return HtmlTable(
        caption="One very large job on flat servers, ± half of the 95 % interval", heads=["measure", "value"], rows=rows
    )


def _plain(value: float) -> str:
    return number(value) if math.isfinite(value) else BLANK
