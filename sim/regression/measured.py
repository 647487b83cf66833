"""The measures of one run with their replications, and those of two runs side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sim.regression.amounts import default_margin, parse_amount
from sim.regression.judging import Floats, Pair, Series
from sim.run_tables import SPECS

Key = tuple[str, tuple[tuple[str, str], ...]]
"""A measure and its place."""

_NOT_PLACES = ("scenario", "point", "measure", "value", "ci_low", "ci_high", "n", "unit", "better")
_BLANK = -1
"""Slice size of what has none, as a key."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """A measure at one place in one run; `place` is its fabric, slice size, service and swept keys, as texts."""

    measure: str
    place: Mapping[str, str]
    unit: str
    better: str
    series: Series

    @property
    def key(self) -> Key:
        """What tells it from all others, whatever the number of its sweep point."""
        return self.measure, tuple(self.place.items())


@dataclass(frozen=True, kw_only=True)
class Measures:
    """All of a run that a comparison looks at; `tables` are digests by name."""

    scenario: str
    seed: int
    failure_draws: Mapping[str, str]
    streams: str
    tables: Mapping[str, str]
    rows: Mapping[Key, Measured]

    def has_streams_of(self, other: Measures) -> bool:
        """Whether replication k met the same streams in both, so that differences are paired."""
        return bool(self.streams) and self.streams == other.streams and self.seed == other.seed


def rounded(value: float) -> float:
    """A value to nine significant digits, as baselines keep it."""
    return float(f"{value:.9g}")


def measured_rows(tables: Mapping[str, pd.DataFrame], points: list[Mapping[str, Any]]) -> Iterator[Measured]:
    """Every row of the summary with its replications; `points` are those of the manifest."""
    summary = tables["summary"]
    places = [str(name) for name in summary.columns if name not in _NOT_PLACES]
    by_point = {int(point["point"]): point for point in points}
    singles = [_singles(tables, name) for name in ("replications", "service_replications")]
    for row in summary.to_dict("records"):
        texts = {str(name): value for name, value in row.items()}
        place = {name: str(texts[name]) for name in places if not pd.isna(texts[name]) and str(texts[name]) != ""}
        better = "" if pd.isna(texts["better"]) else str(texts["better"])
        value = math.nan if pd.isna(texts["value"]) else rounded(float(texts["value"]))
        point = {} if pd.isna(texts["point"]) else by_point.get(int(texts["point"]), {})
        own = next((found for each in singles if (found := each.of(texts, point)) is not None), np.empty(0))
        series = Series(value=value, replications=own)
        yield Measured(
            measure=str(texts["measure"]), place=place, unit=str(texts["unit"]), better=better, series=series
        )


@dataclass(frozen=True)
class _Singles:
    """The values of replications by measure and place; `swept` are the columns of swept keys."""

    swept: tuple[str, ...]
    values: Mapping[tuple[Any, ...], Floats]

    def of(self, row: Mapping[str, Any], point: Mapping[str, Any]) -> Floats | None:
        """Those behind a row of the summary, which belongs to a point of the manifest."""
        chips = _BLANK if pd.isna(row["slice_chips"]) else int(row["slice_chips"])
        service = "" if pd.isna(row["service"]) else str(row["service"])
        swept = tuple(str(point.get(key)) for key in self.swept)
        host = point.get("host_availability")
        return self.values.get((str(row["measure"]), str(row["fabric"]), host, chips, service, *swept))


def _singles(tables: Mapping[str, pd.DataFrame], name: str) -> _Singles:
    """The values of one of the two tables of replications, in the order of the replications' numbers."""
    table, declared = tables.get(name), SPECS[name].names
    if table is None:
        return _Singles((), {})
    swept = tuple(str(column) for column in table.columns if column not in declared)
    keys = pd.DataFrame(
        {
            "measure": table["measure"] if "measure" in table else table["form"],
            "fabric": table["fabric"],
            "host_availability": table["host_availability"],
            "slice_chips": table["slice_chips"].fillna(_BLANK) if "slice_chips" in table else _BLANK,
            "service": table["service"].fillna("") if "service" in table else "",
            **{key: table[key] for key in swept},
            "replication": table["replication"],
            "value": table["value"],
        }
    )
    found: dict[tuple[Any, ...], Floats] = {}
    for key, group in keys.groupby(list(keys.columns[:-2]), sort=False):
        values = np.full(int(group["replication"].max()) + 1, np.nan)
        values[group["replication"].to_numpy(dtype=np.int64)] = [rounded(value) for value in group["value"]]
        found[tuple(key)] = values
    return _Singles(swept, found)


def pairs_of(before: Measures, now: Measures, margins: Mapping[str, str]) -> list[Pair]:
    """Every measure of two runs side by side, in the order of `before`, then what is new.

    `margins` are texts by measure; what has none takes the default.
    """
    pairs = []
    for key in dict.fromkeys([*before.rows, *now.rows]):
        old, new = before.rows.get(key), now.rows.get(key)
        row = new or old
        assert row is not None
        margin = parse_amount(margins.get(row.measure, default_margin(row.measure, row.unit)))
        size = math.nan if old is None else old.series.value
        pairs.append(
            Pair(
                measure=row.measure,
                place=row.place,
                unit=row.unit,
                better=row.better,
                margin=margin.of(size),
                before=None if old is None else old.series,
                now=None if new is None else new.series,
            )
        )
    return pairs
