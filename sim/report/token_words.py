"""Sentences about single tokens of a service."""

from __future__ import annotations

import pandas as pd

from sim.report.context import Tables, table_of
from sim.report.words import category_words, listed, seconds

S_PER_NS = 1e-9


def life_sentences(tables: Tables) -> list[str]:
    """Of each service the request that was followed: first token, gaps by reason, and the longest of them."""
    table = table_of(tables, "request_life")
    return [_life_sentence(service, rows) for service, rows in table.groupby("service", sort=False)]


def _life_sentence(service: object, rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    name = (
        f"Request {int(first['request']):,} of {category_words(str(service))}, with the longest gap of those recorded"
    )
    begin = f"first token after {seconds(float(first['at_ns']) * S_PER_NS)} ({first['reason']})"
    later = rows[rows["token"].notna() & (rows["token"] > 1)]
    if later.empty:
        return f"{name}: {begin}, no gaps."
    gaps = [
        f"{len(mine):,} by {reason}, {seconds(float(mine['gap_ns'].mean()) * S_PER_NS)} on average"
        for reason, mine in later.groupby("reason", sort=False)
    ]
    worst = later.iloc[int(later["gap_ns"].to_numpy().argmax())]
    longest = f"the longest, {seconds(float(worst['gap_ns']) * S_PER_NS)}, before token {int(worst['token']):,}"
    return f"{name}: {begin}; gaps: {listed(gaps)}; {longest} ({worst['reason']})."


def life_alt(tables: Tables) -> str:
    """The alternative text of the picture of a request's life."""
    first = next(iter(life_sentences(tables)), "")
    return (
        "Above, the number of tokens sent over time, the time before the first one shaded by cause; below, a column "
        f"per later token as high as the gap before it, stacked by cause. {first}"
    )
