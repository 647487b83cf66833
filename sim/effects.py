"""What changes do alone and together: combinations of swept values against the first of each, on the same draws.

Ratios are taken replication by replication, so the luck of the draws cancels; they are averaged as logarithms. The
interaction of a combination is the logarithm of its ratio minus the sum of those of its single changes: 0 where they
multiply, below 0 where one does what another has done already, above 0 where one needs another (design: measures 5).
What the first key does where all others stay as they are is told too: it may help at some of their values only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.measure_names import BEST
from sim.metrics.intervals import Estimate, mean_estimate
from sim.run_tables import EFFECTS

Row = dict[str, Any]
Choice = tuple[Any, ...]
Floats = NDArray[np.float64]
COLUMN_OF = {"pod.fabric": "fabric", "failures.host.availability": "host_availability"}
"""Swept keys that have a column of their own."""


@dataclass(frozen=True, kw_only=True)
class _Combinations:
    """Values of one measure of one service: per combination one value a replication, NaN where it has none."""

    axes: tuple[tuple[Any, ...], ...]
    values: dict[Choice, Floats]

    @property
    def first(self) -> Choice:
        """The combination that all are compared with."""
        return tuple(axis[0] for axis in self.axes)

    def log_ratio(self, choice: Choice, against: Choice | None = None) -> Floats:
        """Logarithm of each replication's ratio to the first combination, or `against`; NaN where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(self.values[choice]) - np.log(self.values[against or self.first])
        ratio = np.round(ratio, 12)  # equal ratios are equal, whatever rounding does to them
        return np.where(np.isfinite(ratio), ratio, np.nan)

    def singles(self, choice: Choice) -> list[Choice]:
        """The combinations in which one of its changes is made alone."""
        first = self.first
        return [
            (*first[:place], value, *first[place + 1 :]) for place, value in enumerate(choice) if value != first[place]
        ]


def effect_table(
    replications: pd.DataFrame,
    swept: Mapping[str, Sequence[str]],
    measure: str,
    better: str,
    names: Mapping[str, Mapping[str, str]],
) -> pd.DataFrame:
    """The table `effects` of `measure`, from the table `service_replications` of a run.

    `swept`: the swept keys and their values, as texts. `names`: combinations by name, for some swept keys a value or
    `best`; those left out are best too: of all that match, the combination whose mean is greatest (least, where
    `better` is `lower`).
    """
    columns = [COLUMN_OF.get(key, key) for key in swept]
    table = replications[replications["measure"] == measure]
    rows: list[Row] = []
    for service in dict.fromkeys(table["service"]):
        own = table[table["service"] == service]
        found = _combinations(own, columns)
        named = _named(found, swept, better, names)
        place = {name: own[name].iloc[0] for name in ("fabric", "host_availability")}
        for choice in found.values:
            row = place | {"service": service, "measure": measure, "name": "; ".join(named.get(choice, ()))}
            rows.append(row | dict(zip(columns, choice, strict=True)) | _effect(found, choice))
    declared = [{key: value for key, value in row.items() if key in EFFECTS.names} for row in rows]
    made = EFFECTS.make(declared)
    for column in columns:
        if column not in EFFECTS.names:
            made[column] = pd.Series([str(row[column]) for row in rows], dtype="string")
    return made


def _combinations(table: pd.DataFrame, columns: Sequence[str]) -> _Combinations:
    axes = tuple(tuple(dict.fromkeys(table[column])) for column in columns)
    numbers = sorted(dict.fromkeys(table["replication"]))
    values = {}
    for choice in itertools.product(*axes):
        mine = table
        for column, value in zip(columns, choice, strict=True):
            mine = mine[mine[column] == value]
        series = mine.set_index("replication")["value"].reindex(numbers)
        values[choice] = series.to_numpy(dtype=np.float64)
    return _Combinations(axes=axes, values=values)


def _effect(found: _Combinations, choice: Choice) -> Row:
    """Ratio to the first combination, what the single changes give one by one, and the interaction, with intervals."""
    own = found.log_ratio(choice)
    alone = [found.log_ratio(single) for single in found.singles(choice)]
    together: Floats = np.asarray(np.sum(alone, axis=0) if alone else np.zeros_like(own))
    joint: Floats = np.asarray(np.round(own - together, 12))
    value, ratio = _estimate(found.values[choice]), _estimate(own)
    same = _estimate(found.log_ratio(choice, (found.first[0], *choice[1:])))
    interaction = _estimate(joint) if len(alone) > 1 else Estimate(value=math.nan, n=0)
    return {
        "changed": len(alone),
        "value": value.value,
        "ci_low": value.ci_low,
        "ci_high": value.ci_high,
        "ratio": math.exp(ratio.value),
        "ratio_low": math.exp(ratio.ci_low),
        "ratio_high": math.exp(ratio.ci_high),
        "one_by_one": math.exp(_estimate(together).value),
        "same_ratio": math.exp(same.value),
        "same_low": math.exp(same.ci_low),
        "same_high": math.exp(same.ci_high),
        "interaction": interaction.value,
        "interaction_low": interaction.ci_low,
        "interaction_high": interaction.ci_high,
        "replications": ratio.n,
    }


def _estimate(values: Floats) -> Estimate:
    known = values[~np.isnan(values)]
    return mean_estimate(known) if known.size else Estimate(value=math.nan, n=0)


def _named(
    found: _Combinations, swept: Mapping[str, Sequence[str]], better: str, names: Mapping[str, Mapping[str, str]]
) -> dict[Choice, list[str]]:
    """The names of each combination that has one; values of axes are known by their place among the swept ones."""
    sign = -1.0 if better == "lower" else 1.0
    places = list(swept)
    named: dict[Choice, list[str]] = {}
    for name, wanted in names.items():
        fixed = {
            places.index(key): found.axes[places.index(key)][list(swept[key]).index(value)]
            for key, value in wanted.items()
            if value != BEST
        }
        matching = [choice for choice in found.values if all(choice[at] == value for at, value in fixed.items())]
        best = max(matching, key=lambda choice: sign * _estimate(found.values[choice]).value)
        named.setdefault(best, []).append(name)
    return named
