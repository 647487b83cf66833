"""Verdicts in words: one line per measure for the terminal, cells for pages, documents for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sim.regression.amounts import difference_text, is_share, value_text
from sim.regression.judging import FALSE_ALARMS, POWER, Judged, Method, Pair, Series, Verdict, overall


def place_text(pair: Pair) -> str:
    """Where a measure is from."""
    return ", ".join(f"{key}={value}" for key, value in pair.place.items())


def values_text(pair: Pair) -> str:
    """Both values."""
    return f"{_value(pair, pair.before)} -> {_value(pair, pair.now)}"


def _value(pair: Pair, series: Series | None) -> str:
    return value_text(None if series is None else series.value, pair.measure, pair.unit)


def difference_words(row: Judged) -> str:
    """How much worse or better, and how certain that is."""
    pair, evidence = row.pair, row.evidence
    if evidence.method in (Method.NONE, Method.EQUAL) or not pair.better or math.isnan(evidence.worse):
        return ""
    way = "worse" if evidence.worse > 0.0 else "better"
    amount = difference_text(abs(evidence.worse), pair.measure, pair.unit)
    words = f"{way} by {amount}" if evidence.worse else "no difference"
    if evidence.method is Method.VALUES:
        return f"{words} ({evidence.method})"
    interval = "no variation seen"
    if evidence.error > 0.0:
        interval = f"± {difference_text(evidence.half_width, pair.measure, pair.unit)} at 95 %"
    return f"{words} ({interval}, {evidence.method}, {evidence.n} replications)"


def need_words(row: Judged) -> str:
    """What an inconclusive measure needs."""
    if row.verdict is not Verdict.INCONCLUSIVE:
        return ""
    if row.evidence.method is Method.VALUES:
        undefined = math.isnan(row.evidence.worse)
        return "undefined in one of the two" if undefined else "no replications to tell chance from change by"
    if row.more is None:
        return "too close to its margin for any number of replications to tell"
    return f"about {row.more} replications more would tell"


def line_of(row: Judged) -> str:
    """One line for the terminal."""
    pair = row.pair
    parts = [values_text(pair), difference_words(row)]
    if row.verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE) and row.kind != "gone":
        parts.append(f"margin {difference_text(pair.margin, pair.measure, pair.unit)}")
    parts.append(need_words(row))
    head = row.verdict.value if row.verdict is not Verdict.PASS else f"pass ({row.kind})"
    if row.kind == "gone":
        head = f"{row.verdict.value} (gone)"
    where = f" at {place_text(pair)}" if pair.place else ""
    return f"{head}: {pair.measure}{where}: {'; '.join(part for part in parts if part)}"


def told(rows: Sequence[Judged]) -> list[Judged]:
    """The rows that people want to see, the worst first: all that are not the same in both runs."""
    order = [Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.NEW, Verdict.PASS, Verdict.NOT_JUDGED]
    return sorted((row for row in rows if row.is_changed), key=lambda row: order.index(row.verdict))


def count_text(rows: Sequence[Judged]) -> str:
    """How many measures have which verdict."""
    counts = {verdict: sum(row.verdict is verdict for row in rows) for verdict in Verdict}
    words = {
        Verdict.FAIL: "worse than their margin", Verdict.INCONCLUSIVE: "inconclusive", Verdict.NEW: "new",
        Verdict.PASS: "pass",
    }  # fmt: skip
    return ", ".join(f"{counts[verdict]:,} {text}" for verdict, text in words.items() if counts[verdict])


def detectable_text(rows: Sequence[Judged]) -> str:
    """The worsening that a check like this one detects, by measure: the least certain place of each."""
    most: dict[str, Judged] = {}
    for row in rows:
        if math.isnan(row.detectable):
            continue
        held = most.get(row.pair.measure)
        if held is None or row.detectable > held.detectable:
            most[row.pair.measure] = row
    shifts = [f"{name} {_shift_text(row)}" for name, row in most.items()]
    if not shifts:
        return "nothing has an error by which a shift could be told"
    return f"a worsening that such a check detects ({POWER:.0%}), in the least certain place: {', '.join(shifts)}"


def _shift_text(row: Judged) -> str:
    measure, unit = row.pair.measure, row.pair.unit
    if is_share(measure, unit) and row.detectable > 1.0:
        return "none"
    return difference_text(row.detectable, measure, unit)


def rows_document(rows: Sequence[Judged]) -> list[dict[str, Any]]:
    """Rows for programs; undefined and infinite numbers are null."""
    return [_row_document(row) for row in rows]


def _row_document(row: Judged) -> dict[str, Any]:
    pair, evidence = row.pair, row.evidence
    half = evidence.half_width if evidence.error > 0.0 else math.nan
    numbers: Mapping[str, float] = {
        "before": math.nan if pair.before is None else pair.before.value,
        "now": math.nan if pair.now is None else pair.now.value,
        "worse_by": evidence.worse,
        "worse_low": evidence.worse - half,
        "worse_high": evidence.worse + half,
        "margin": pair.margin,
        "p": row.p,
        "detectable": row.detectable,
    }
    words = {
        "verdict": row.verdict.value, "kind": row.kind, "measure": pair.measure, "where": place_text(pair),
        "place": dict(pair.place), "unit": pair.unit, "better": pair.better, "method": evidence.method.value,
        "replications": evidence.n, "replications_more": row.more, "in_words": line_of(row),
    }  # fmt: skip
    return words | {key: value if math.isfinite(value) else None for key, value in numbers.items()}


def verdict_document(rows: Sequence[Judged], *, paired: bool) -> dict[str, Any]:
    """The verdict of a whole comparison for programs, with all rows that differ."""
    return {
        "verdict": overall(rows).value,
        "false_alarms": FALSE_ALARMS,
        "paired": paired,
        "counts": {verdict.value: sum(row.verdict is verdict for row in rows) for verdict in Verdict},
        "changes": rows_document(told(rows)),
    }
