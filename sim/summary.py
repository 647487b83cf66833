"""The summary of a run: a row per sweep point, size, service and measure, from the other tables; expectations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from sim.measure_names import GAINS, MONEY_UNITS, PASS_MEASURES, SHARED_POD_MEASURES, bound_unit
from sim.quantities import parse_quantity

if TYPE_CHECKING:
    from sim.scenario_parts import Expectation

Row = dict[str, Any]


def summary_rows(scenario: str, point: int, fabric: str, rows_of: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Rows of the table `summary` for one sweep point, from the rows of its other tables."""
    rows: list[Row] = []

    def add(measure: str, unit: str, value: float | None, better: str | None, **others: Any) -> None:
        row: Row = {"scenario": scenario, "point": point, "fabric": fabric, "slice_chips": None, "service": None}
        row |= {"measure": measure, "unit": unit, "value": value, "ci_low": None, "ci_high": None, "n": None}
        rows.append(row | {"better": better} | others)

    for row in rows_of.get("availability", ()):
        interval = {key: row[key] for key in ("slice_chips", "ci_low", "ci_high")}
        add(row["form"], "1", row["value"], "higher", n=row["replications"], **interval)
    for row in rows_of.get("cliff", ()):
        add("cliff_chips", "chips", row["cliff_chips"], "higher")
    for row in list(rows_of.get("promise", ()))[:1]:
        add("cubes_for_promise", "cubes", row["cubes"], "lower")
    for row in rows_of.get("chip_hours", ()):
        add(f"chip_hours_{row['use']}", "chip h", row["chip_hours"], None, slice_chips=row["slice_chips"])
    for row in (*rows_of.get("operations", ()), *rows_of.get("large_job", ()), *rows_of.get("fleet", ())):
        interval = {key: row[key] for key in ("ci_low", "ci_high", "n")}
        add(row["measure"], row["unit"], row["value"], row["better"], **interval)
    for row in rows_of.get("shared_pod", ()):
        if row["machine"] == "shared":
            interval = {key: row[key] for key in ("service", "ci_low", "ci_high", "n")}
            add(row["measure"], row["unit"], row["value"], row["better"], **interval)
    for row in rows_of.get("shared_pod_differences", ()):
        if row["machine"] == "shared" and row["measure"] in GAINS:
            interval = {key: row[key] for key in ("service", "ci_low", "ci_high")} | {"n": row["replications"]}
            name, unit = row["measure"], SHARED_POD_MEASURES[row["measure"]][0]
            add(f"{name}_over_{row['against']}", unit, row["difference"], "higher", **interval)
    for row in rows_of.get("operations_chip_hours", ()):
        add(f"chip_hours_{row['use']}", "chip h", row["chip_hours"], None)
    for row in rows_of.get("service", ()):
        interval = {key: row[key] for key in ("service", "ci_low", "ci_high", "n")}
        add(row["measure"], row["unit"], row["value"], row["better"], **interval)
    for row in rows_of.get("flows", ()):
        if row["measure"] in MONEY_UNITS and row["value"] is not None:
            where = {key: row[key] for key in ("slice_chips", "service", "ci_low", "ci_high")}
            add(row["measure"], row["unit"], row["value"], "lower", **where)
    for row in rows_of.get("errors_of_times", ()):
        for name in ("mean", "worst", "mean_beyond_rounding", "worst_beyond_rounding"):
            add(f"error_{name}", "1", row[name], "lower", service=row["group"], n=row["rows"])
    for row in rows_of.get("passes", ()):
        for name, key in PASS_MEASURES.items():
            add(name, key.unit, row[key.column], key.better, service=row["label"])
    return rows


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether one expectation was met at one matching point."""

    met: bool
    text: str


def judge_expectations(
    expectations: Sequence[Expectation], summary: pd.DataFrame, host_availability: Mapping[int, float]
) -> Iterator[Verdict]:
    """Every expectation at every matching row of the summary; one that matches no row is not met.

    `host_availability` is that of each sweep point.
    """
    for expectation in expectations:
        rows = summary[summary["measure"] == expectation.measure]
        for column in ("fabric", "slice_chips", "service"):
            wanted = getattr(expectation, column)
            if wanted is not None:
                rows = rows[rows[column] == wanted]
        if expectation.host_availability is not None:
            hosts = rows["point"].map(host_availability)
            rows = rows[(hosts - expectation.host_availability).abs() < 1e-12]
        if rows.empty:
            yield Verdict(met=False, text=f"expected {expectation.measure}: no result matches")
        for _, row in rows.iterrows():
            yield from _judge(expectation, row, host_availability[int(row["point"])])


def _judge(expectation: Expectation, row: pd.Series[Any], host_availability: float) -> Iterator[Verdict]:
    value = float(row["value"]) if not pd.isna(row["value"]) else math.nan
    chips = "" if pd.isna(row["slice_chips"]) else f"{row['slice_chips']} chips"
    service = "" if pd.isna(row["service"]) else str(row["service"])
    where = ", ".join(filter(None, (str(row["fabric"]), chips, service, f"hosts up {host_availability:.4%}")))
    for key, sign, words in (("at_least", 1.0, "at least"), ("at_most", -1.0, "at most")):
        written = getattr(expectation, key)
        if written is None:
            continue
        bound = parse_quantity(written, bound_unit(expectation.measure))
        # nine digits: a share of whole slices such as 0.75 must meet "75 %"
        met = sign * (value - bound) >= -1e-9 * max(1.0, abs(bound))
        found = "no value" if math.isnan(value) else f"{value:.6g}"
        limit = written if isinstance(written, str) else f"{written:g}"
        text = f"expected {expectation.measure} {words} {limit} at {where}: found {found}"
        yield Verdict(met=bool(met), text=text)
