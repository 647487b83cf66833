"""What changes do alone and together, in words and as a table: combinations of swept values and what they bring."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from sim.measure_names import SERVICE_LOWER, SERVICE_UNITS
from sim.report.context import Tables, is_absent, table_of
from sim.report.hosts import host_key
from sim.report.words import category_words, count_words, fabric_words, host_words, listed, number, percent, seconds
from sim.run_tables import EFFECTS, SPECS

SHARES = ("tokens_in_time", "slo_attainment", "answered_after_disturbance", "answered_undisturbed")
"""Measures that are told in percent."""
TIMES = {
    "ttft": "time to first token", "tpot": "time per later token", "itl": "gap between two tokens",
    "end_to_end": "time to the last token",
}  # fmt: skip
"""Percentiles of times, by the beginning of their measures' names."""
_MARKS = re.compile(r'[{}\[\]":]')


@dataclass(frozen=True, kw_only=True)
class Combination:
    """One row of the table `effects`, its swept values in words."""

    words: tuple[str, ...]
    name: str
    changed: int
    value: float
    spread: tuple[float, float]
    ratio: float
    ratio_spread: tuple[float, float]
    one_by_one: float
    same_ratio: float
    same_spread: tuple[float, float]
    interplay: float
    interplay_spread: tuple[float, float]

    @property
    def text(self) -> str:
        """All its values."""
        return ", ".join(self.words)


def effect_services(tables: Tables) -> dict[str, tuple[str, list[Combination]]]:
    """By service: the measure, and its combinations in the order of the sweep, the first one first."""
    table = table_of(tables, "effects")
    if table.empty:
        return {}
    columns = [name for name in ("fabric", "host_availability") if table[name].nunique() > 1]
    columns = [str(name) for name in table if name in columns or name not in EFFECTS.names]
    found: dict[str, tuple[str, list[Combination]]] = {}
    for service in dict.fromkeys(str(name) for name in table["service"]):
        rows = table[table["service"] == service]
        found[service] = str(rows["measure"].iloc[0]), [_combination(row, columns) for _, row in rows.iterrows()]
    return found


def swept_words(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each combination of swept values of a table that is shared by fabrics, under its words."""
    columns = [str(name) for name in table if name not in SPECS["disturbance"].names]
    columns = ["service", *columns] if table["service"].nunique() > 1 or not columns else columns
    found: dict[str, pd.DataFrame] = {}
    for values, rows in table.groupby(columns, sort=False):
        found[", ".join(_value_words(column, value) for column, value in zip(columns, values, strict=True))] = rows
    return found


def _combination(row: pd.Series, columns: list[str]) -> Combination:
    def pair(low: str, high: str) -> tuple[float, float]:
        return float(row[low]), float(row[high])

    low, high = pair("interaction_low", "interaction_high")
    return Combination(
        words=tuple(_value_words(column, row[column]) for column in columns),
        name=str(row["name"]),
        changed=int(row["changed"]),
        value=float(row["value"]),
        spread=pair("ci_low", "ci_high"),
        ratio=float(row["ratio"]),
        ratio_spread=pair("ratio_low", "ratio_high"),
        one_by_one=float(row["one_by_one"]),
        same_ratio=float(row["same_ratio"]),
        same_spread=pair("same_low", "same_high"),
        interplay=math.exp(float(row["interaction"])),
        interplay_spread=(math.exp(low), math.exp(high)),
    )


def _value_words(column: str, value: object) -> str:
    """A swept value as people read it."""
    if column == "fabric":
        return fabric_words(str(value))
    if column == "host_availability":
        return f"hosts {host_words(host_key(float(str(value))))}"
    text = " ".join(_MARKS.sub("", str(value)).split())
    return text.removeprefix("kind ").replace("_", " ")


def times_words(value: float, spread: tuple[float, float]) -> str:
    """A ratio with its interval: "1.46 times (1.41 to 1.52)"."""
    return f"{number(value)} times{_spread_words(spread)}"


def _spread_words(spread: tuple[float, float]) -> str:
    return f" ({number(spread[0])} to {number(spread[1])})" if all(map(math.isfinite, spread)) else ""


def value_words(measure: str, value: float) -> str:
    """A value of a measure with its unit, as far as it has one."""
    if not math.isfinite(value):
        return "no value"
    if measure in SHARES:
        return percent(value, 1)
    if SERVICE_UNITS.get(measure) == "s":
        return seconds(value)
    return f"{number(value)} requests/s" if measure.endswith("requests_per_s") else number(value)


def effect_sentences(tables: Tables) -> list[str]:
    """First and best combination, changes made alone, how they go together, and the combinations that have a name."""
    said: list[str] = []
    for service, (measure, rows) in effect_services(tables).items():
        known = [row for row in rows if math.isfinite(row.value)]
        if len(known) < 2 or not math.isfinite(rows[0].ratio):
            continue
        what = f"{_measure_words(measure)} of {category_words(service)}"
        said += [*_told(what, measure, known, measure in SERVICE_LOWER), *_turns(known, measure in SERVICE_LOWER)]
    return said


def _measure_words(measure: str) -> str:
    kind, _, share = measure.removesuffix("_s").rpartition("_p")
    if kind in TIMES:
        return f"Median {TIMES[kind]}" if share == "50" else f"{share}th percentile of the {TIMES[kind]}"
    return category_words(measure.removesuffix("_requests_per_s").removesuffix("_s")).capitalize()


def _told(what: str, measure: str, rows: list[Combination], lower: bool) -> Iterator[str]:
    first, best = rows[0], (min if lower else max)(rows, key=lambda row: row.value)
    start = f"{what}: {value_words(measure, first.value)} with {first.text}"
    if best is first:
        yield f"{start}, the best of {count_words(len(rows))} combinations."
    else:
        times = times_words(best.ratio, best.ratio_spread)
        many = f"the best of {count_words(len(rows))} combinations"
        yield f"{start}; {value_words(measure, best.value)} with {best.text}, {many}: {times} as much."
    singles = [row for row in rows if row.changed == 1]
    if max(row.changed for row in rows) < 2:
        rest = [f"{_as_much(row, measure)} with {row.text}" for row in singles if row is not best]
        yield from [f"Against {first.text}: {listed(rest)}."] if rest else []
    else:
        alone = [f"{_change(row, first)} {_as_much(row, measure)}" for row in singles]
        yield f"Changed alone: {listed(alone)}."
        yield from _interplay(best)
    for row in rows:
        for name in filter(None, row.name.split("; ")):
            share = number(100 * row.value / best.value)
            yield f"{name[0].upper()}{name[1:]}: {value_words(measure, row.value)} ({row.text}), {share} % of the best."


def _as_much(row: Combination, measure: str) -> str:
    """How a combination compares with the first; its value where there is no ratio."""
    if not math.isfinite(row.ratio):
        return value_words(measure, row.value)
    same = abs(row.ratio - 1) < 5e-4 and not all(map(math.isfinite, row.ratio_spread))
    return "as much" if same else times_words(row.ratio, row.ratio_spread)


def _change(row: Combination, first: Combination) -> str:
    return ", ".join(word for word, other in zip(row.words, first.words, strict=True) if word != other)


def _interplay(best: Combination) -> Iterator[str]:
    if not math.isfinite(best.interplay):
        return
    low, high = best.interplay_spread
    told = f"One by one the changes of the best would make {number(best.one_by_one)} times"
    times = times_words(best.interplay, best.interplay_spread)
    if not (math.isfinite(low) and math.isfinite(high)) or low <= 1 <= high:
        yield f"{told}; together they make {number(best.ratio)} times: no interplay is seen ({times} of that)."
    else:
        way = "less than one by one, each does a part of what others do" if high < 1 else "more than one by one"
        yield f"{told}; together they make {number(best.ratio)} times, {times} of that: {way}."


def _turns(rows: list[Combination], lower: bool) -> Iterator[str]:
    """Values of the first swept key that help at some values of the others and harm at some, by paired intervals."""
    first = rows[0].words[0]
    for value in dict.fromkeys(row.words[0] for row in rows if row.words[0] != first):
        mine = [row for row in rows if row.words[0] == value and all(map(math.isfinite, row.same_spread))]
        down, up = [row for row in mine if row.same_spread[1] < 1], [row for row in mine if row.same_spread[0] > 1]
        if down and up:
            helps, harms = (down, up) if lower else (up, down)
            told = [f"{times_words(row.same_ratio, row.same_spread)} with {', '.join(row.words[1:])}" for row in mine]
            ways = [listed([", ".join(row.words[1:]) for row in group]) for group in (helps, harms)]
            yield f"{value[0].upper()}{value[1:]} against {first}, all else equal: {listed(told)}."
            yield f"So {value} helps with {ways[0]}, and harms with {ways[1]}."


HEADS = ("combination", "value", "times the first", "one by one", "interplay")


def effect_cells(measure: str, row: Combination) -> list[str]:
    """The cells of one combination, in the order of `HEADS`; blank where there is nothing to say."""
    name = f" ({row.name})" if row.name else ""
    one_by_one = number(row.one_by_one) if row.changed > 1 and math.isfinite(row.one_by_one) else ""
    interplay = f"{number(row.interplay)}{_spread_words(row.interplay_spread)}" if math.isfinite(row.interplay) else ""
    ratio = f"{number(row.ratio)}{_spread_words(row.ratio_spread)}" if math.isfinite(row.ratio) else ""
    return [f"{row.text}{name}", value_words(measure, row.value), ratio, one_by_one, interplay]


def effect_table_texts(tables: Tables) -> list[str]:
    """The combinations of each service as aligned text; none where the run does not compare them."""
    texts = []
    for service, (measure, rows) in effect_services(tables).items():
        cells = [list(HEADS), *(effect_cells(measure, row) for row in rows)]
        widths = [max(len(line[place]) for line in cells) for place in range(len(HEADS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
        head = f"{_measure_words(measure)} of {category_words(service)}, in all combinations (95 % intervals, paired)"
        texts.append("\n".join([head, "", *(line.rstrip() for line in lines)]))
    return texts


def disturbance_alt(tables: Tables) -> str:
    """What the picture of a slowdown shows."""
    parts = []
    for words, rows in swept_words(table_of(tables, "disturbance")).items():
        last = rows[rows["slowed"]].sort_values("t_s").iloc[-1]
        parts.append(f"{words} {percent(float(last['answered']))}")
    return (
        "Lines of the share of requests that are answered over the instant of their arrival, with a slowdown for a "
        f"while above and without it below. At the end, slowed: {', '.join(parts)}."
    )


def effects_alt(tables: Tables) -> str:
    """What the picture of the effects shows."""
    parts = []
    for service, (measure, rows) in effect_services(tables).items():
        ends = ", ".join(f"{row.text} {value_words(measure, row.value)}" for row in (rows[0], rows[-1]))
        parts.append(f"{_measure_words(measure)} of {category_words(service)}: {ends}")
    return (
        "Dots for combinations of swept values: how many times the first each of them makes, on a log scale, with an "
        "open circle where the changes, one by one, would lead. "
        f"{'. '.join(parts)}. All values are in the table."
        if not is_absent(tables, "effects")
        else ""
    )
