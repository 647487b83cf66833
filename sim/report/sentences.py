"""The answer of a run in plain words, computed from its tables: no sentence is said that the numbers do not bear."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import pandas as pd

from sim.report.context import Tables, absence, is_absent, table_of
from sim.report.effect_words import effect_sentences
from sim.report.fleet_words import fleet_sentences
from sim.report.hosts import host_key, host_values, rows_of_host
from sim.report.money_words import money_lines
from sim.report.operations_words import operations_sentences
from sim.report.pass_words import pass_sentences
from sim.report.phrases import IDEAL, LIGHT, WIRES, hosts_words, how_words, slashed, spoken_fabrics, wired
from sim.report.promises import promise_words, read_promise
from sim.report.service_sentences import service_lines, size_sentences
from sim.report.shared_words import shared_pod_sentences
from sim.report.variants import opening, shown_variants
from sim.report.words import form_words, listed, percent, points_words

HEADLINE_CHIPS = 1024
NOTHING = 0.0005
"""Differences of shares below this (0.05 points) are called nothing: it is also the least margin of agreement."""


def answer_sentences(tables: Tables) -> list[str]:
    """The answer, sentence by sentence; where other keys than fabric and host availability are swept, one by one.

    A run that compares its combinations says what they do, and leaves the single ones to the tables.
    """
    compared = effect_sentences(tables)
    if compared:
        return compared
    shown, left = shown_variants(tables)
    answers = [(label, _answer(own)) for label, own in shown]
    said = [f"{opening(label)}{text}" for label, texts in answers for label, text in _labelled(label, texts)]
    return said + ([left] if left else [])


def _labelled(label: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The label of a variant before its first sentence only."""
    yield from ((label if place == 0 else "", text) for place, text in enumerate(texts))


def _answer(tables: Tables) -> list[str]:
    """The answer of one variant: promises, what is held, cliff, small slices, ideal, delivered, services."""
    said = [
        _promise_sentence(tables),
        _held_sentence(tables),
        _cliff_sentence(tables),
        _small_sentence(tables),
        _ideal_sentence(tables),
        _delivered_sentence(tables),
        *operations_sentences(tables),
        *pass_sentences(tables),
        *fleet_sentences(tables),
        *shared_pod_sentences(tables),
        *service_lines(tables),
        *money_lines(tables),
        *size_sentences(tables),
    ]
    kept = [text for text in said if text]
    return _hosts_once(kept) or ([absence("availability")] if is_absent(tables, "availability") else [])


def sentence(tables: Tables) -> str:
    """The whole answer as one paragraph."""
    return " ".join(answer_sentences(tables))


def _hosts_once(said: list[str]) -> list[str]:
    """Name the host availabilities at their first mention only, as long as later sentences use the same ones."""
    marks = [match.group(0) for text in said for match in re.finditer(r" \(hosts [^()]*\)", text)]
    if not marks:
        return said
    first = next(place for place, text in enumerate(said) if marks[0] in text)
    order = ", in this order throughout)" if "/" in marks[0] else ")"
    opened = said[first].replace(marks[0], marks[0].removesuffix(")") + order, 1)
    return [*said[:first], opened, *(text.replace(marks[0], "") for text in said[first + 1 :])]


def headline_chips(tables: Tables) -> int:
    """The slice size that the answer is about: the first promised one, else the size of the run nearest to 1024."""
    promise = table_of(tables, "promise")
    if len(promise):
        first = read_promise(str(promise["slices"].iloc[0]))
        if len(first) == 1:
            return first[0].chips
    availability = table_of(tables, "availability")
    sizes = sorted({int(size) for size in availability["slice_chips"]}) if len(availability) else []
    return min(sizes, key=lambda size: abs(math.log(size / HEADLINE_CHIPS)), default=HEADLINE_CHIPS)


def _series(tables: Tables, form: str, fabric: str, chips: int) -> dict[float, float]:
    """Value by host availability of one form, fabric and size; empty where the run has none."""
    table = table_of(tables, "availability")
    if table.empty:
        return {}
    rows = table[(table["form"] == form) & (table["fabric"] == fabric) & (table["slice_chips"] == chips)]
    found = {}
    for host in host_values(rows):
        value = float(rows_of_host(rows, host)["value"].iloc[0])
        if math.isfinite(value):
            found[host_key(host)] = value
    return found


def _promise_sentence(tables: Tables) -> str:
    """Cubes that the first promise of the run takes, on the fabrics that are set side by side."""
    table = table_of(tables, "promise")
    if table.empty:
        return ""
    promise = str(table["slices"].iloc[0])
    rows = table[table["slices"] == promise]
    what = f"To promise {promise_words(promise)} {percent(float(rows['time_share'].iloc[0]))} of the time"
    cubes: dict[str, dict[float, int]] = {}
    for fabric in spoken_fabrics(rows):
        known = rows[(rows["fabric"] == fabric) & rows["cubes"].notna()]
        cubes[fabric] = {host_key(float(row["host_availability"])): int(row["cubes"]) for _, row in known.iterrows()}
    told = [fabric for fabric, numbers in cubes.items() if numbers]
    keys = [key for key in cubes[told[0]] if all(key in cubes[fabric] for fabric in told)] if told else []
    if not keys:
        unknown = f"How many cubes it takes to promise {promise_words(promise)} is not known here: no closed form holds"
        how = "finds it by simulation; for a log, by the law that `opticube log` fits"
        return f"{unknown} (`opticube size --scenario` {how})."
    counts, where = [[cubes[fabric][key] for key in keys] for fabric in told], hosts_words(keys)
    if len(told) > 1 and all(numbers == counts[0] for numbers in counts):
        wirings = listed([how_words(fabric) for fabric in told], "or")
        return f"{what} takes {_counts(counts[0])} cubes, {wirings} ({where}): wiring changes nothing."
    if len(told) == 1:
        takes = f"{what} takes {_counts(counts[0])} {wired('cubes', told[0])} ({where})"
    else:
        *first, (last_fabric, last) = zip(told, counts, strict=True)
        said = [f"{_counts(numbers)} {how_words(fabric)}" for fabric, numbers in first]
        said.append(f"{_counts(last)} {wired('cubes', last_fabric)}")
        takes = f"{what} takes {listed(said, 'or')} ({where})"
    silent = [how_words(fabric) for fabric in cubes if fabric not in told]
    return f"{takes}; for {listed(silent)} ones this run gives no number." if silent else f"{takes}."


def _counts(values: Sequence[int]) -> str:
    return f"{values[0]:,}" if len(set(values)) == 1 else " / ".join(f"{value:,}" for value in values)


def _held_sentence(tables: Tables) -> str:
    """What is held for the share of time at the headline size."""
    chips, table = headline_chips(tables), table_of(tables, "availability")
    found = {fabric: _series(tables, "guaranteed", fabric, chips) for fabric in spoken_fabrics(table)}
    found = {fabric: series for fabric, series in found.items() if series}
    keys = [key for key in next(iter(found.values()), {}) if all(key in series for series in found.values())]
    if not keys:
        return ""
    share = float(table.loc[table["form"] == "guaranteed", "time_share"].iloc[0])
    held = form_words("guaranteed", share).removeprefix("held ")
    (first, series), *others = found.items()
    values = slashed([series[key] for key in keys])
    hosts = hosts_words(keys)
    if others and all(abs(series[key] - other[key]) < NOTHING for _, other in others for key in keys):
        wirings = listed([how_words(fabric) for fabric in found], "or")
        return f"In {chips}-chip slices a pod holds {values} of its chips {held}, {wirings} ({hosts})."
    more = [f", a {wired('one', fabric)} {slashed([other[key] for key in keys])}" for fabric, other in others]
    holds = f"a {wired('pod', first)} holds {values} of its chips {held}"
    return f"In {chips}-chip slices {holds}{''.join(more)} ({hosts})."


def _cliff_sentence(tables: Tables) -> str:
    """From which size on less than half of the pod is expected, static and reconfigurable."""
    table = table_of(tables, "cliff")
    if table.empty:
        return ""
    said = []
    for fabric in reversed(spoken_fabrics(table)):
        rows = table[table["fabric"] == fabric]
        sizes = [
            "never" if pd.isna(row["cliff_chips"]) else f"{int(row['cliff_chips'])}"
            for _, row in rows.sort_values("host_availability").iterrows()
        ]
        where = "no size of this run"
        if any(size != "never" for size in sizes):
            unit = "" if sizes[-1] == "never" else " chips"
            where = f"{sizes[0] if len(set(sizes)) == 1 else ' / '.join(sizes)}{unit}"
        said.append(f"at {where} for {wired('slices', fabric)}")
    keys = [host_key(host) for host in host_values(table)]
    if table["cliff_chips"].isna().all():
        return f"At no slice size of this run is less than half of the pod expected ({hosts_words(keys)})."
    return f"The expected share falls under half of the pod {listed(said)} ({hosts_words(keys)})." if said else ""


def _small_sentence(tables: Tables) -> str:
    """Whether wiring matters for the smallest slice of whole cubes in the run."""
    table = table_of(tables, "availability")
    sizes = sorted({int(size) for size in table["slice_chips"]}) if len(table) else []
    whole = [size for size in sizes if size >= 64]
    if not whole or whole[0] == headline_chips(tables):
        return ""
    light, wires = (_series(tables, "expected", fabric, whole[0]) for fabric in (LIGHT, WIRES))
    gaps = [light[key] - wires[key] for key in light if key in wires]
    if not gaps:
        return ""
    widest = max(gaps, key=abs)
    if abs(widest) < NOTHING:
        return f"At {whole[0]} chips wiring changes nothing."
    side = "more" if widest > 0 else "less"
    return f"At {whole[0]} chips reconfigurable wiring gives up to {points_words(widest)} {side} than static."


def _ideal_sentence(tables: Tables) -> str:
    """How far optics stay behind an ideal switch that joins any hosts."""
    chips = headline_chips(tables)
    gap = _ideal_gap(tables, chips)
    if gap is None:
        return ""
    if gap < NOTHING:
        text = f"At {chips} chips optics give all that an ideal switch joining any hosts would"
    else:
        text = f"At {chips} chips optics give all but {points_words(gap)} of an ideal switch that joins any hosts"
    table = table_of(tables, "availability")
    gaps = {int(size): _ideal_gap(tables, int(size)) for size in table["slice_chips"].unique()}
    known = {size: other for size, other in gaps.items() if other is not None}
    worst = max(known, key=lambda size: known[size])
    if worst != chips and known[worst] > gap + 0.005:
        return f"{text}; at {worst} chips all but {points_words(known[worst])}, since light joins whole cubes only."
    return f"{text}."


def _ideal_gap(tables: Tables, chips: int) -> float | None:
    """The widest gap, over host availabilities, of expected shares between ideal switch and optics."""
    ideal, light = (_series(tables, "expected", fabric, chips) for fabric in (IDEAL, LIGHT))
    gaps = [ideal[key] - light[key] for key in ideal if key in light]
    return max(gaps) if gaps else None


def _delivered_sentence(tables: Tables) -> str:
    """What detection, recovery and repair leave of the expected share, at the headline size."""
    table = table_of(tables, "availability")
    if table.empty:
        return ""
    sizes = sorted({int(size) for size in table.loc[table["form"] == "delivered", "slice_chips"]})
    if not sizes:
        return ""
    chips = min(sizes, key=lambda size: abs(math.log(size / headline_chips(tables))))
    said: list[str] = []
    hosts: list[float] = []
    for fabric in spoken_fabrics(table):
        delivered = _series(tables, "delivered", fabric, chips)
        expected = _series(tables, "expected", fabric, chips)
        keys = [key for key in delivered if key in expected]
        if keys:
            hosts = hosts or keys
            values = slashed([delivered[key] for key in keys])
            of = slashed([expected[key] for key in keys])
            said.append(f"{values} of the pod {how_words(fabric)} (of {of} expected)")
    if not said:
        return ""
    return f"With detection, recovery and repair {chips}-chip jobs get {listed(said)} ({hosts_words(hosts)})."
