"""A pod in operation in words: its table for the terminal, the sentences of the answer, what its pictures show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from sim.report.context import Tables, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.promises import promise_words
from sim.report.words import (
    category_words,
    fabric_words,
    fabrics_in_order,
    host_words,
    listed,
    number,
    percent,
    seconds,
)

MEASURE_WORDS = {
    "goodput": "goodput = scheduling x runtime x program",
    "goodput_scheduling": "  scheduling: chips together and up",
    "goodput_runtime": "  runtime: of that kept, not start, save or undone",
    "goodput_program": "  program: of that at full speed",
    "utilisation": "utilisation: chips held by jobs",
    "fragmentation": "fragmentation: of free chips, while a job waits",
    "ettr": "ETTR: productive time of jobs since first run",
    "wait_mean_s": "mean wait of a job",
    "slowdown_mean": "mean slowdown: arrival to end over work",
    "completion": "jobs finished by the end",
    "jobs_arrived": "jobs arrived",
    "jobs_rejected": "jobs rejected: the pod could never hold them",
    "job_losses_per_day": "losses of running jobs per day",
    "preemptions_per_day": "preemptions per day",
    "moves_per_day": "jobs moved to make room per day",
    "circuits_per_day": "circuits made per day",
    "reroute_share": "job time on reroutes",
    "promise_kept": "months in which the promise was kept",
}
"""Measures of operation in the order in which they are printed, in words."""
NO_VALUE = "-"
ALWAYS_SHOWN = ("goodput", "wait_mean_s", "completion")


def is_shown(measure: str, values: Sequence[float]) -> bool:
    """Whether a measure is printed: those that are 0 or blank everywhere are not, but for a promise that is never kept
    and for a few that are missed when they are not there."""
    known = [value for value in values if math.isfinite(value)]
    return measure in ALWAYS_SHOWN or any(known) or (measure == "promise_kept" and bool(known))


def measure_text(row: pd.Series) -> str:
    """One value with its interval in the unit that suits it: `64.1±0.4 %`, `2.4±0.3 h`, `131±2`."""
    value, low, high = float(row["value"]), float(row["ci_low"]), float(row["ci_high"])
    if not math.isfinite(value):
        return NO_VALUE
    half = (high - low) / 2 if math.isfinite(high - low) else math.nan
    if row["unit"] == "1" and str(row["measure"]) != "slowdown_mean":
        spread = f"±{100 * half:.1f}" if math.isfinite(half) else ""
        return f"{100 * value:.1f}{spread} %"
    if row["unit"] == "s":
        spread = f"±{number(half / 3600)}" if math.isfinite(half) else ""
        return f"{number(value / 3600)}{spread} h"
    return number(value) + (f"±{number(half)}" if math.isfinite(half) else "")


def operations_table_text(tables: Tables) -> str:
    """Measures of a pod in operation, a column per fabric, a block per host availability; empty where there are none.

    Shares that are 0 everywhere are left out.
    """
    table = table_of(tables, "operations")
    if table.empty:
        return ""
    blocks = []
    for host in host_values(table):
        here = rows_of_host(table, host)
        fabrics = fabrics_in_order(list(here["fabric"]))
        heads = [fabric_words(fabric) for fabric in fabrics]
        lines = []
        for measure, words in MEASURE_WORDS.items():
            rows = {str(row["fabric"]): row for _, row in here[here["measure"] == measure].iterrows()}
            if not is_shown(measure, [float(row["value"]) for row in rows.values()]):
                continue
            lines.append((words, [measure_text(rows[fabric]) if fabric in rows else "-" for fabric in fabrics]))
        width = max(len(words) for words, _ in lines)
        widths = [max(len(head), *(len(cells[at]) for _, cells in lines)) for at, head in enumerate(heads)]
        text = [" ".join([f"hosts up {host_words(host)}".ljust(width), *_right(heads, widths)])]
        text += [" ".join([words.ljust(width), *_right(cells, widths)]) for words, cells in lines]
        blocks.append("\n".join(text))
    note = "±: half of the 95 % interval; means over replications."
    return "\n\n".join(["A pod in operation", *blocks, note])


LARGE_JOB_WORDS = {
    "large_job_total_s": "time from start to end",
    "large_job_productive_share": "productive share of it",
    "large_job_failures": "failures",
    "large_job_random": "  at the rate of all servers",
    "large_job_systematic": "  systematic ones of bad servers",
    "large_job_manual_repairs": "manual repairs",
    "large_job_selections": "selections of hosts",
    "large_job_spares_taken": "spares taken",
    "large_job_waiting_s": "time without enough servers",
}


def large_job_text(tables: Tables) -> str:
    """Measures of one very large job, a row each; empty where there is none."""
    table = table_of(tables, "large_job")
    if table.empty:
        return ""
    width = max(len(words) for words in LARGE_JOB_WORDS.values())
    lines = [f"{LARGE_JOB_WORDS[str(row['measure'])].ljust(width)}  {measure_text(row)}" for _, row in table.iterrows()]
    return "\n".join(["One very large job on flat servers (±: half of the 95 % interval)", "", *lines])


def _right(cells: list[str], widths: list[int]) -> Iterator[str]:
    yield from (cell.rjust(width + 1) for cell, width in zip(cells, widths, strict=True))


def operations_sentences(tables: Tables) -> Iterator[str]:
    """What the month says: goodput and waits by fabric, what undoes work, which failures hurt most."""
    large = {str(row["measure"]): row for _, row in table_of(tables, "large_job").iterrows()}
    if large:
        total, share = large["large_job_total_s"], large["large_job_productive_share"]
        yield f"The job takes {measure_text(total)}, {measure_text(share)} of it productive."
    table = table_of(tables, "operations")
    if table.empty:
        return
    host = host_values(table)[0]
    here = rows_of_host(table, host)
    fabrics = fabrics_in_order(list(here["fabric"]))
    values = {
        fabric: here[here["fabric"] == fabric].set_index("measure")["value"].astype(float).to_dict()
        for fabric in fabrics
    }
    how = {fabric: f" {fabric_words(fabric)}" if len(fabrics) > 1 else "" for fabric in fabrics}
    goodputs = [f"{percent(values[fabric]['goodput'], 1)}{how[fabric]}" for fabric in fabrics]
    waited = {fabric: values[fabric]["wait_mean_s"] for fabric in fabrics}
    waits = [f"{seconds(waited[fabric])}{how[fabric]}" for fabric in fabrics if math.isfinite(waited[fabric])]
    jobs = f"a job waits {listed(waits)} on average" if waits else "no job has arrived"
    yield f"In operation (hosts up {host_words(host)}) the pod's goodput is {listed(goodputs)}; {jobs}."
    yield from _promise_sentence(tables, host, how)
    uses = rows_of_host(table_of(tables, "operations_chip_hours"), host)
    largest = []
    for fabric in fabrics:
        idle = uses[(uses["fabric"] == fabric) & ~uses["use"].isin(["useful", "empty"])]
        if len(idle):
            row = idle.sort_values("share").iloc[-1]
            words = f"{category_words(str(row['use']))} ({percent(float(row['share']), 1)})"
            largest.append(f"{words}{how[fabric]}")
    if largest:
        yield f"What takes most chip-hours beside useful work and empty chips: {listed(largest)}."


def _promise_sentence(tables: Tables, host: float, how: dict[str, str]) -> Iterator[str]:
    """In how many months a promise was kept, by fabric."""
    months = table_of(tables, "promise_months")
    months = rows_of_host(months, host) if len(months) else months
    if months.empty:
        return
    kept = months.groupby("fabric")["kept"].mean()
    texts = [f"{percent(float(kept[fabric]), 0)} of months{words}" for fabric, words in how.items() if fabric in kept]
    first = months.iloc[0]
    promise = f"{promise_words(str(first['slices']))} for {percent(float(first['time_share']))} of the month"
    yield f"The promise of {promise} could be kept in {listed(texts)}."


def operations_alt(name: str, tables: Tables) -> str:
    """The alternative text of a picture of a pod in operation."""
    if name == "wait":
        return "Line chart of the mean wait of jobs over the load, a line per fabric. " + _ends_of_waits(tables)
    table = table_of(tables, {"operations": "operations_chip_hours", "recovery": "recovery_stages"}.get(name, name))
    if name == "cubes":
        return (
            "A row for every cube of the pod over time, coloured by what the job on it does and by when the cube is "
            "not usable, a panel per fabric, of the first replication. The stretches are in the table cube_story."
        )
    here = rows_of_host(table, host_values(table)[0])
    parts = []
    for fabric in fabrics_in_order(list(here["fabric"])):
        rows = here[here["fabric"] == fabric]
        if name == "recovery":
            total = seconds(float(rows["seconds_per_loss"].sum()))
            worst = rows.sort_values("seconds_per_loss").iloc[-1]
            parts.append(
                f"{fabric_words(fabric)} {total} in all, longest {category_words(str(worst['stage']))} "
                f"{seconds(float(worst['seconds_per_loss']))}"
            )
        else:
            useful = float(rows.loc[rows["use"] == "useful", "share"].sum())
            parts.append(f"{fabric_words(fabric)} {percent(useful, 1)} useful")
    kind = "Bars of a mean recovery, stage after stage" if name == "recovery" else "Stacked bars of chip-hours by use"
    return f"{kind}, by fabric: {'; '.join(parts)}."


def _ends_of_waits(tables: Tables) -> str:
    table = table_of(tables, "operations")
    rows = table[table["measure"] == "wait_mean_s"]
    parts = []
    for fabric in fabrics_in_order(list(rows["fabric"])):
        values = rows.loc[rows["fabric"] == fabric, "value"].astype(float)
        parts.append(f"{fabric_words(fabric)} {seconds(values.min())} to {seconds(values.max())}")
    return f"Waits: {'; '.join(parts)}."
