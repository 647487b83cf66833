"""Baselines: the measures of a run with their replications as a small JSON file, read with suspicion."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sim.regression.amounts import default_margin, parse_amount
from sim.regression.judging import Series
from sim.regression.measured import Key, Measured, Measures
from topology.errors import InputError, refuse

FORMAT = 2
ANEW = "write it anew with --update"

_Number = Annotated[float, Field(allow_inf_nan=False)] | Literal["inf", "-inf"] | None
"""A finite number, an infinity as text, or null where undefined."""


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _StoredRow(_Stored):
    measure: str
    place: dict[str, str]
    unit: str
    better: Literal["higher", "lower", ""]
    value: _Number
    replications: list[_Number]


class _StoredFile(_Stored):
    format: int
    version: str
    scenario: str
    settings: list[str]
    seed: int
    streams: str
    failure_draws: dict[str, str]
    tables: dict[str, str]
    margins: dict[str, str]
    measures: list[_StoredRow]


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A stored run: its measures, the settings (`KEY=VALUE`) of the scenario that made it, and margins by measure."""

    measures: Measures
    settings: tuple[str, ...]
    margins: Mapping[str, str]


def baseline_of(measures: Measures, settings: Sequence[str], margins: Mapping[str, str]) -> Baseline:
    """A baseline of a run: every measure that is better higher or lower has a margin, of `margins` or the default."""
    judged = {row.measure: row.unit for row in measures.rows.values() if row.better}
    own = {name: margins.get(name, default_margin(name, unit)) for name, unit in judged.items()}
    return Baseline(measures=measures, settings=tuple(settings), margins=own)


def baseline_text(baseline: Baseline) -> str:
    """The file: strict JSON, a line per measure, so that what changed shows line by line."""
    measures = baseline.measures
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": version("opticube"),
        "scenario": measures.scenario,
        "settings": list(baseline.settings),
        "seed": measures.seed,
        "streams": measures.streams,
        "failure_draws": dict(measures.failure_draws),
        "tables": dict(measures.tables),
        "margins": dict(sorted(baseline.margins.items())),
    }
    rows = ",\n".join(f"  {_compact(_row(measured))}" for measured in measures.rows.values())
    lines = [f" {_compact(key)}: {_compact(value)}" for key, value in head.items()]
    return "{\n" + ",\n".join(lines) + f',\n "measures": [\n{rows}\n ]\n}}\n'


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))


def _row(measured: Measured) -> dict[str, Any]:
    series = measured.series
    return {
        "measure": measured.measure,
        "place": dict(measured.place),
        "unit": measured.unit,
        "better": measured.better,
        "value": _number(series.value),
        "replications": [_number(value) for value in series.replications.tolist()],
    }


def _number(value: float) -> float | int | str | None:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return str(value)
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def read_baseline(path: Path) -> Baseline:
    """A stored baseline; raises InputError in words where there is none, or it is damaged or of another version."""
    document = _document(path)
    if not isinstance(document, dict) or "format" not in document:
        raise refuse(str(path), "is no baseline", f"name another file, or {ANEW}")
    if document["format"] != FORMAT:
        what = f"is a baseline of format {document['format']!r:.20}, and this version reads format {FORMAT}"
        raise refuse(str(path), what, ANEW)
    try:
        stored = _StoredFile.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise refuse(str(path), f"is damaged: {where:.80}: {first['msg']}", ANEW) from None
    for measure, margin in stored.margins.items():
        try:
            amount = parse_amount(margin)
        except ValueError as error:
            raise refuse(f"{path}, margins.{measure}", str(error), f"correct it, or {ANEW}") from None
        if amount.number < 0.0 or not math.isfinite(amount.number):
            raise refuse(f"{path}, margins.{measure}", f"`{margin}` is no margin", "write 0 or more")
    return Baseline(measures=_measures(path, stored), settings=tuple(stored.settings), margins=stored.margins)


def _document(path: Path) -> Any:
    def constant(text: str) -> float:
        raise ValueError(f"{text} is no number")

    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=constant)
    except FileNotFoundError:
        raise refuse(str(path), "no such baseline", "write it with --update") from None
    except (OSError, ValueError, RecursionError) as error:
        raise refuse(str(path), f"can not be read as a baseline: {error!s:.200}", ANEW) from None


def _measures(path: Path, stored: _StoredFile) -> Measures:
    rows: dict[Key, Measured] = {}
    for row in stored.measures:
        series = Series(value=_float(row.value), replications=np.array([_float(value) for value in row.replications]))
        measured = Measured(measure=row.measure, place=row.place, unit=row.unit, better=row.better, series=series)
        if measured.key in rows:
            raise refuse(str(path), f"is damaged: {row.measure} is there twice at {dict(row.place)!s:.100}", ANEW)
        rows[measured.key] = measured
    return Measures(
        scenario=stored.scenario,
        seed=stored.seed,
        failure_draws=stored.failure_draws,
        streams=stored.streams,
        tables=stored.tables,
        rows=rows,
    )


def _float(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def kept_of(path: Path, scenario: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Settings and margins of a baseline that is to be written anew; none where there is no such baseline to read."""
    try:
        stored = read_baseline(path)
    except InputError:
        return (), {}
    return (stored.settings, stored.margins) if stored.measures.scenario == scenario else ((), {})
