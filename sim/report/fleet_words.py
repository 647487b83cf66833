"""Several pods behind one queue in words: the table for the terminal and the page, and the sentence of the answer."""

from __future__ import annotations

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
}
"""Measures in the order in which they are printed, in words."""


def fleet_text(tables: Tables) -> str:
    """Measures of several pods behind one queue; empty where there are none."""
    if is_absent(tables, "fleet"):
        return ""
    width = max(len(words) for words in MEASURE_WORDS.values())
    blocks = [
        "\n".join([label, *(f"{words.ljust(width)}  {value}" for words, value in fleet_values(here))])
        for label, here in blocks_of(table_of(tables, "fleet"))
    ]
    pods = int(table_of(tables, "fleet")["pods"].iloc[0])
    return "\n\n".join([f"{number(pods)} pods behind one queue", *blocks])


def fleet_sentences(tables: Tables) -> Iterator[str]:
    """How the pods are used, and how long jobs wait."""
    if is_absent(tables, "fleet"):
        return
    for label, here in blocks_of(table_of(tables, "fleet")):
        value = {str(row["measure"]): float(row["value"]) for _, row in here.iterrows()}
        yield (
            f"{number(int(here['pods'].iloc[0]))} pods behind one queue ({label}): jobs hold "
            f"{percent(value['fleet_utilisation'], 1)} of the chips, {percent(value['fleet_useful_share'], 1)} of all "
            f"chip-hours are useful, and a job waits {seconds(value['fleet_wait_mean_s'])} in the mean; the fullest "
            f"pod is used by {percent(value['fleet_spread'], 0)} of its chips more than the emptiest."
        )


def fleet_values(here: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Words and value of every measure that is there."""
    rows = {str(row["measure"]): row for _, row in here.iterrows()}
    for measure, words in MEASURE_WORDS.items():
        if measure in rows:
            yield words, measure_text(rows[measure])
