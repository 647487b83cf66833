"""Several pods in words: with queues of their own, and behind one queue."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from sim.report.context import Tables, is_absent, table_of
from sim.report.operations_words import measure_text
from sim.report.shared_words import blocks_of
from sim.report.words import number, percent, seconds

MEASURE_WORDS = {
    "fleet_utilisation": "utilisation: chips held by jobs",
    "fleet_useful_share": "useful chip-hours",
    "fleet_spread": "utilisation, fullest pod less emptiest",
    "fleet_wait_mean_s": "mean wait of a job",
    "fleet_completion": "jobs finished by the end",
    "fleet_jobs_arrived": "jobs arrived",
    "fleet_jobs_rejected": "jobs rejected",
    "fleet_losses_per_day": "losses of running jobs per day",
    "fleet_moves_per_day": "jobs that go on on another pod per day",
}
"""Measures in the order in which they are printed, in words."""
QUEUE_WORDS = {"own": "own queues", "one": "one queue", "one_less_own": "one less own"}
"""Ways to queue in the order in which they are printed, in words."""


def fleet_text(tables: Tables) -> str:
    """Measures of several pods, with queues of their own and behind one; empty where there are none."""
    if is_absent(tables, "fleet"):
        return ""
    width = max(len(words) for words in MEASURE_WORDS.values())
    blocks = [
        "\n".join([label, *(f"{words.ljust(width)}  {value}" for words, value in fleet_values(here))])
        for label, here in blocks_of(table_of(tables, "fleet"))
    ]
    pods = number(int(table_of(tables, "fleet")["pods"].iloc[0]))
    blocks = [f"{pods} pods, jobs placed when they arrive", *blocks]
    if not is_absent(tables, "fleet_queues"):
        blocks += [f"{pods} pods, queues of their own against one queue", *_queue_blocks(tables)]
    return "\n\n".join(blocks)


def _queue_blocks(tables: Tables) -> Iterator[str]:
    for label, here in blocks_of(table_of(tables, "fleet_queues")):
        rows = [["", *QUEUE_WORDS.values()], *([words, *cells] for words, cells in queue_values(here))]
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        yield "\n".join([label, *(line.rstrip() for line in lines)])


def fleet_sentences(tables: Tables) -> Iterator[str]:
    """How the pods are used, how long jobs wait, and what one queue changes."""
    yield from own_queue_sentences(tables)
    yield from one_queue_sentences(tables)


def own_queue_sentences(tables: Tables) -> Iterator[str]:
    """How the pods are used, and how long jobs wait, where a job is placed when it arrives."""
    if is_absent(tables, "fleet"):
        return
    for label, here in blocks_of(table_of(tables, "fleet")):
        value = {str(row["measure"]): float(row["value"]) for _, row in here.iterrows()}
        yield (
            f"{number(int(here['pods'].iloc[0]))} pods, jobs placed when they arrive ({label}): jobs hold "
            f"{percent(value['fleet_utilisation'], 1)} of the chips, {percent(value['fleet_useful_share'], 1)} of all "
            f"chip-hours are useful, and a job waits {seconds(value['fleet_wait_mean_s'])} in the mean; the fullest "
            f"pod is used by {percent(value['fleet_spread'], 0)} of its chips more than the emptiest."
        )


def one_queue_sentences(tables: Tables) -> Iterator[str]:
    """What one queue changes for the same jobs on the same pods with the same failures."""
    if is_absent(tables, "fleet_queues"):
        return
    for label, here in blocks_of(table_of(tables, "fleet_queues")):
        rows = {(str(row["queues"]), str(row["measure"])): row for _, row in here.iterrows()}
        own, one = (seconds(float(rows[kind, "fleet_wait_mean_s"]["value"])) for kind in ("own", "one"))
        useful = [percent(float(rows[kind, "fleet_useful_share"]["value"]), 1) for kind in ("one", "own")]
        moves = float(rows["one", "fleet_moves_per_day"]["value"])
        yield (
            f"Behind one queue ({label}) a job waits {one} in the mean, with queues of their own {own}"
            f"{_doubt(rows['one_less_own', 'fleet_wait_mean_s'])}; {useful[0]} of all chip-hours are useful, with own "
            f"queues {useful[1]}{_doubt(rows['one_less_own', 'fleet_useful_share'])}; {number(moves)} jobs a day go on "
            f"on another pod after a loss."
        )


def _doubt(difference: pd.Series) -> str:
    """What to say of a difference whose paired interval holds 0, or that has none."""
    low, high = float(difference["ci_low"]), float(difference["ci_high"])
    if math.isnan(low):
        return " (without an interval)"
    return " (these runs do not tell a difference)" if low <= 0 <= high else ""


def fleet_waits_alt(tables: Tables) -> str:
    """What the picture of waits shows, for those who do not see it."""
    table = table_of(tables, "fleet_waits")
    parts = []
    for queues in ("own", "one"):
        rows = table[table["queues"] == queues].drop_duplicates("longer_than_s").set_index("longer_than_s")["share"]
        hour, day = (percent(float(rows[longer_s]), 1) for longer_s in (3600.0, 86400.0))
        parts.append(f"{QUEUE_WORDS[queues]}: {hour} of jobs wait more than an hour, {day} more than a day")
    return f"Lines of the share of jobs that wait longer than a time. {'; '.join(parts)}. All values are in the table."


def fleet_values(here: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Words and value of every measure that is there."""
    rows = {str(row["measure"]): row for _, row in here.iterrows()}
    for measure, words in MEASURE_WORDS.items():
        if measure in rows:
            yield words, measure_text(rows[measure])


def queue_values(here: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """Words of every measure that is there and its value for every way to queue."""
    rows = {(str(row["queues"]), str(row["measure"])): row for _, row in here.iterrows()}
    for measure, words in MEASURE_WORDS.items():
        if ("own", measure) in rows:
            yield words, [measure_text(rows[kind, measure]) for kind in QUEUE_WORDS]
