"""Tables of the page about single tokens: bytes by level of memory, time over chips."""

from __future__ import annotations

import math
from collections.abc import Callable

from sim.report.context import Tables, table_of
from sim.report.html_tables import BLANK, HtmlTable
from sim.report.token_words import KIND_WORDS, LEVEL_WORDS, levels_of, short_seconds
from sim.report.words import bytes_words, category_words, number, percent


def traffic_html(tables: Tables) -> HtmlTable:
    """Bytes per token: a row per service and level, a column per kind; then their time at the full rate."""
    table = table_of(tables, "traffic")
    kinds = [kind for kind in KIND_WORDS if (table["kind"] == kind).any()]
    rows: list[list[str]] = []
    for service in dict.fromkeys(str(name) for name in table["service"]):
        mine = table[table["service"] == service]
        rows.append([category_words(service)])
        for level in levels_of(mine):
            here = mine[mine["level"] == level].set_index("kind")
            moved = [float(here["bytes_per_token"].get(kind, 0.0)) for kind in kinds]
            time_s, share = (float(here[name].sum(min_count=1)) for name in ("seconds_per_token", "busy_share"))
            cells = [_told(value, bytes_words) for value in [*moved, math.fsum(moved)]]
            rows.append([LEVEL_WORDS[level], *cells, _told(time_s, short_seconds), _told(share, _percent)])
    return HtmlTable(
        caption="What a token moves through each level of memory, nearest to the arithmetic first, over all chips of "
        "a replica, all replicas up; its time at the full rate, and that as a share of the time that passes take. "
        "– where no source tells (CMEM: a store that the compiler fills as it sees fit)",
        heads=["level", *(KIND_WORDS[kind] for kind in kinds), "in all", "at full rate", "share of passes"],
        rows=rows,
    )


def _percent(share: float) -> str:
    return percent(share, 2)


def _told(value: float, words: Callable[[float], str]) -> str:
    return words(value) if math.isfinite(value) else BLANK


def floor_html(tables: Tables) -> HtmlTable:
    """Milliseconds per token by part: a row per service and slice."""
    table = table_of(tables, "token_floor")
    parts = list(dict.fromkeys(str(part) for part in table["part"]))
    rows: list[list[str]] = []
    for service in dict.fromkeys(str(name) for name in table["service"]):
        mine = table[table["service"] == service]
        rows.append([category_words(service)])
        for shape in dict.fromkeys(str(name) for name in mine["shape"]):
            here = mine[mine["shape"] == shape]
            by_part = here.set_index("part")["seconds_per_token"]
            cells = [number(1e3 * float(by_part.get(part, 0.0))) for part in parts]
            ends = [number(1e3 * float(here[name].sum())) for name in ("seconds_per_token", "floor_s")]
            fits = "" if here["fits"].all() else ", does not fit"
            rows.append([f"{shape} ({int(here['chips'].iloc[0]):,}{fits})", *cells, *ends])
    return HtmlTable(
        caption="Milliseconds per token of a sequence over the slices of a replica, at the mean batch and context of "
        "the service; the floor is what no number of chips takes away",
        heads=["slice (chips)", *(category_words(part) for part in parts), "in all", "floor"],
        rows=rows,
    )
