"""CI regression: `check` a scenario or run against a stored baseline, `compare` two runs.

A baseline is a JSON file with the digests of all tables and the rows of the summary. Equal digests pass; otherwise the
rows that changed are named. Improvements are told apart from the rest by the column `better`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from sim.cli_output import say, say_json
from sim.exit_codes import ExitStatus
from sim.files import write_whole
from sim.measure_names import MEASURES
from sim.run_folder import MANIFEST, read_manifest, read_tables, table_digest
from sim.scenario import load_scenario, shipped_scenarios
from sim.scenario_faults import nearest
from topology.errors import refuse

FORMAT = 1
_NOT_KEYS = ("scenario", "value", "ci_low", "ci_high", "n", "unit", "better")
_FAIL_IF = re.compile(
    r"\s*(?P<measure>\w+)\s*(?:\[(?P<filters>[^\]]*)\])?\s*(?P<sign>[<>])\s*"
    r"(?P<bound>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>pp|%|)\s*"
)
_EXAMPLE = 'write for example "delivered[slice_chips=1024] < -0.5 pp" (pp: of a share; %: of the first value)'


@dataclass(frozen=True, kw_only=True)
class Change:
    """One row of the summary in two runs: its key in words, the value before and now (None: not there)."""

    where: str
    measure: str
    before: float | None
    now: float | None
    better: str

    @property
    def kind(self) -> str:
        """same, new, gone, improved, worse or changed."""
        if self.before == self.now:
            return "same"
        if self.before is None or self.now is None:
            return "new" if self.before is None else "gone"
        if not self.better:
            return "changed"
        return "improved" if (self.now > self.before) == (self.better == "higher") else "worse"

    def __str__(self) -> str:
        """One line for the terminal."""
        return f"{self.kind}: {self.measure} at {self.where}: {_text(self.before)} -> {_text(self.now)}"


def _text(value: float | None) -> str:
    return "none" if value is None else f"{value:.9g}"


def summary_values(summary: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The summary as a mapping from each row's key (all its columns but the numbers) to its value and direction."""
    keys = [name for name in summary.columns if name not in _NOT_KEYS]
    values: dict[str, dict[str, Any]] = {}
    for _, row in summary.iterrows():
        parts = [f"{name}={row[name]}" for name in keys if not pd.isna(row[name]) and str(row[name]) != ""]
        value = None if pd.isna(row["value"]) else float(f"{float(row['value']):.9g}")
        better = "" if pd.isna(row["better"]) else str(row["better"])
        values[", ".join(parts)] = {"value": value, "better": better, "measure": str(row["measure"])}
    return values


def rows_of_both(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> list[Change]:
    """Every row of the two summaries, in the order of `before`, then what is new."""
    rows = []
    for key in dict.fromkeys([*before, *now]):
        old, new = before.get(key), now.get(key)
        row = new or old
        assert row is not None
        values = [None if each is None else each["value"] for each in (old, new)]
        rows.append(Change(where=key, measure=row["measure"], before=values[0], now=values[1], better=row["better"]))
    return rows


def changes_between(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> list[Change]:
    """The rows that are not the same in both: another value, or there in one only."""
    rows = rows_of_both(before, now)
    return [row for row in rows if row.before != row.now or (row.where in before) != (row.where in now)]


def _tables_of(target: str) -> tuple[str, dict[str, pd.DataFrame], Mapping[str, Any]]:
    """Name, tables and manifest of a run folder, or of a scenario that is run for the purpose."""
    is_run = (Path(target) / MANIFEST).exists() or (Path(target).is_dir() and target not in shipped_scenarios())
    if is_run:
        manifest = read_manifest(Path(target))
        return str(manifest.get("name", target)), read_tables(Path(target)), manifest
    from sim.simulation import run

    result = run(load_scenario(target))
    return result.scenario.name, dict(result.tables), result.manifest


def check_command(target: str, baseline: Path, update: bool, strict: bool, as_json: bool) -> int:
    """Check a run (or a scenario, which is run) against a baseline, or write the baseline with `update`."""
    del strict  # verdicts are exact here: there is nothing inconclusive to fail on
    stored = None if update else read_baseline(baseline)
    name, tables, manifest = _tables_of(target)
    found = {
        "format": FORMAT,
        "scenario": name,
        "seed": manifest["seed"],
        "failure_draws": manifest["failure_draws"],
        "tables": {key: table_digest(table) for key, table in tables.items() if key != "summary"},
        "summary": summary_values(tables["summary"]),
    }
    if stored is None:
        write_whole(baseline, json.dumps(_portable(found), indent=1, sort_keys=True, allow_nan=False) + "\n")
        if as_json:
            say_json({"verdict": "written", "baseline": str(baseline), "values": len(found["summary"])})
        else:
            say(f"{baseline}: baseline of {name} written, {len(found['summary'])} values")
        return ExitStatus.DONE
    if stored.get("scenario") != name:
        raise refuse(str(baseline), f"is the baseline of {stored.get('scenario')}, not of {name}", "name another file")
    changes = changes_between(stored["summary"], found["summary"])
    names = dict.fromkeys([*stored["tables"], *found["tables"]])
    tables_changed = [key for key in names if stored["tables"].get(key) != found["tables"].get(key)]
    draws_equal = stored["failure_draws"] == found["failure_draws"]
    failed = bool(changes or tables_changed)
    if as_json:
        say_json(
            {
                "verdict": "fail" if failed else "pass",
                "failure_draws_equal": draws_equal,
                "tables_changed": tables_changed,
                "changes": [{"kind": change.kind, **vars(change)} for change in changes],
            }
        )
        return ExitStatus.FAILED if failed else ExitStatus.DONE
    if not failed:
        say(f"pass: {name} equals {baseline} in all {len(found['tables'])} tables")
        return ExitStatus.DONE
    for change in changes[:40]:
        say(str(change))
    if len(changes) > 40:
        say(f"... and {len(changes) - 40} more")
    draws = "the failure draws are the same" if draws_equal else "the failure draws differ"
    say(f"fail: {len(changes)} values and the tables {', '.join(tables_changed) or 'none'} changed; {draws}")
    return ExitStatus.FAILED


def _portable(found: dict[str, Any]) -> dict[str, Any]:
    """A baseline as strict JSON: values that are not finite as text."""
    summary = {
        key: row | {"value": str(row["value"])} if row["value"] is not None and math.isinf(row["value"]) else row
        for key, row in found["summary"].items()
    }
    return found | {"summary": summary}


def read_baseline(path: Path) -> dict[str, Any]:
    """A stored baseline; raises InputError where there is none or it is not one."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise refuse(str(path), "no such baseline", "write it with --update") from None
    except (OSError, ValueError, RecursionError) as error:
        raise refuse(str(path), f"can not be read as a baseline: {error}", "write it anew with --update") from None
    try:
        if stored["format"] != FORMAT:
            raise ValueError(stored["format"])
        rows = {
            str(key): {
                "value": None if row["value"] is None else float(row["value"]),
                "better": str(row["better"]),
                "measure": str(row["measure"]),
            }
            for key, row in stored["summary"].items()
        }
        return {
            "scenario": str(stored["scenario"]),
            "failure_draws": dict(stored["failure_draws"]),
            "tables": dict(stored["tables"]),
            "summary": rows,
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise refuse(str(path), "is no baseline of this version", "write it anew with --update") from None


@dataclass(frozen=True, kw_only=True)
class FailIf:
    """A condition of `compare` on the difference, second minus first: `delivered[slice_chips=1024] < -0.5 pp`.

    `is_relative` bounds are shares of the size of the first value.
    """

    text: str
    measure: str
    filters: Mapping[str, str]
    sign: float
    bound: float
    is_relative: bool

    def is_about(self, row: Change) -> bool:
        """Whether a row that both runs have falls under this condition."""
        parts = row.where.split(", ")
        wanted = all(f"{key}={value}" in parts for key, value in self.filters.items())
        return wanted and row.measure == self.measure and row.before is not None and row.now is not None

    def is_hit_by(self, row: Change) -> bool:
        """Whether a row that this is about meets the condition."""
        assert row.before is not None
        assert row.now is not None
        difference = 0.0 if row.now == row.before else row.now - row.before
        bound = self.bound * abs(row.before) if self.is_relative else self.bound
        return self.sign * difference > self.sign * bound


def parse_fail_if(text: str) -> FailIf:
    """Read a condition; raises InputError saying how one is written."""
    match = _FAIL_IF.fullmatch(text)
    if match is None:
        raise refuse("--fail-if", f"`{text}` is no condition", _EXAMPLE)
    if match["measure"] not in MEASURES:
        what = f"`{match['measure']}` is no measure"
        raise refuse("--fail-if", what, nearest(match["measure"], list(MEASURES)))
    filters: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in (match["filters"] or "").split(","))):
        key, equals, value = item.partition("=")
        if not equals:
            raise refuse("--fail-if", f"`{item}` is no filter", "write for example slice_chips=1024")
        filters[key.strip()] = value.strip()
    return FailIf(
        text=text,
        measure=match["measure"],
        filters=filters,
        sign=1.0 if match["sign"] == ">" else -1.0,
        bound=float(match["bound"]) * (0.01 if match["unit"] else 1.0),
        is_relative=match["unit"] == "%",
    )


def _hits(conditions: Sequence[FailIf], rows: Sequence[Change]) -> Iterator[tuple[FailIf, Change]]:
    """Every condition with the rows that meet it; refuses one that is about nothing, since it could never fail."""
    for condition in conditions:
        about = [row for row in rows if condition.is_about(row)]
        if not about:
            what = f"`{condition.text}` is about no row that both runs have"
            raise refuse("--fail-if", what, "compare with the columns of summary.csv")
        yield from ((condition, row) for row in about if condition.is_hit_by(row))


def compare_command(run_a: Path, run_b: Path, fail_if: Sequence[str], as_json: bool) -> int:
    """Print what differs between two runs; status 1 where a condition of `fail_if` is met."""
    conditions = [parse_fail_if(text) for text in fail_if]
    before, now = (summary_values(read_tables(run)["summary"]) for run in (run_a, run_b))
    changes = changes_between(before, now)
    hits = list(_hits(conditions, rows_of_both(before, now)))
    if as_json:
        say_json(
            {
                "changes": [{"kind": change.kind, **vars(change)} for change in changes],
                "failed": [{"condition": condition.text, "where": change.where} for condition, change in hits],
            }
        )
    else:
        for change in changes:
            say(str(change))
        say(f"{len(changes)} values differ" if changes else "no value differs")
        for condition, change in hits:
            say(f"fail: {condition.text}: {change}")
    return ExitStatus.FAILED if hits else ExitStatus.DONE
