"""What a run says of money: a million tokens in time, by fabric."""

from __future__ import annotations

import pandas as pd

from sim.report.context import Tables, is_absent, table_of
from sim.report.hosts import host_key
from sim.report.phrases import LIGHT, hosts_words, how_words, spoken_fabrics
from sim.report.words import category_words, number, percent

MONEY = "usd_per_million_tokens_in_time"
SAME = 0.005
"""Costs that differ by less than this share are called the same."""


def money_lines(tables: Tables) -> list[str]:
    """Per service: what a million tokens in time costs, on the fabrics that sentences set side by side."""
    if is_absent(tables, "flows"):
        return []
    table = table_of(tables, "flows")
    table = table[(table["measure"] == MONEY) & table["value"].notna()]
    return [_money_line(service, table[table["service"] == service]) for service in _services(table)]


def _services(table: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(str(name) for name in table["service"].dropna()))


def _money_line(service: str, rows: pd.DataFrame) -> str:
    said: list[str] = []
    costs: dict[str, dict[float, float]] = {}
    for fabric in spoken_fabrics(rows):
        mine = rows[rows["fabric"] == fabric].sort_values("host_availability")
        costs[fabric] = {host_key(float(row["host_availability"])): float(row["value"]) for _, row in mine.iterrows()}
    keys = list(dict.fromkeys(key for found in costs.values() for key in found))
    for fabric, found in costs.items():
        texts = [number(found[key]) if key in found else "no token in time" for key in keys]
        said.append(f"{' / '.join(texts if len(set(texts)) > 1 else texts[:1])} USD {how_words(fabric)}")
    against = next((fabric for fabric in costs if fabric != LIGHT), "")
    ratios = [costs[LIGHT][key] / costs[against][key] for key in keys if _both(costs, against, key)]
    return (
        f"{category_words(service).capitalize()}: a million tokens in time costs {', '.join(said)} "
        f"({hosts_words(keys)}){_cheaper(ratios)}."
    )


def _both(costs: dict[str, dict[float, float]], against: str, key: float) -> bool:
    return key in costs.get(LIGHT, {}) and key in costs.get(against, {})


def _cheaper(ratios: list[float]) -> str:
    """Which of the two is cheaper, and by how much, where that is the same way throughout."""
    if not ratios:
        return ""
    spread = sorted({percent(abs(1 - ratio), 0) for ratio in ratios}, key=lambda text: float(text.split()[0]))
    by = spread[0] if len(spread) == 1 else f"{spread[0].removesuffix(' %')} to {spread[-1]}"
    if all(ratio < 1 - SAME for ratio in ratios):
        return f": light is cheaper by {by}"
    if all(ratio > 1 + SAME for ratio in ratios):
        return f": light is dearer by {by}"
    return ": as dear either way" if all(abs(1 - ratio) <= SAME for ratio in ratios) else ""
