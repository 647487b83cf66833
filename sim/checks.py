"""CI regression: `check` a scenario or run against a stored baseline, `compare` two runs.

A baseline is a JSON file with the digests of all tables and the rows of the summary. Equal digests pass; otherwise the
rows that changed are named. Improvements are told apart from the rest by the column `better`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from sim.cli_output import say, say_json
from sim.exit_codes import ExitStatus
from sim.files import write_whole
from sim.run_folder import read_manifest, read_tables, table_digest
from sim.scenario import load_scenario
from topology.errors import refuse

FORMAT = 1
_NOT_KEYS = ("value", "ci_low", "ci_high", "n", "unit", "better")
_FAIL_IF = re.compile(
    r"\s*(?P<measure>\w+)\s*(?:\[(?P<filters>[^\]]*)\])?\s*(?P<sign>[<>])\s*"
    r"(?P<bound>[+-]?\d+(?:\.\d+)?)\s*(?P<unit>pp|%|)\s*"
)


@dataclass(frozen=True, kw_only=True)
class Change:
    """One row of the summary that differs: its key in words, the value before and now (None: not there)."""

    where: str
    measure: str
    before: float | None
    now: float | None
    better: str

    @property
    def kind(self) -> str:
        """new, gone, improved, worse or changed."""
        if self.before is None or self.now is None:
            return "new" if self.before is None else "gone"
        if not self.better or self.before == self.now:
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


def changes_between(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> Iterator[Change]:
    """Every row of the summary that is not the same in both, in the order of `before`, then what is new."""
    for key in dict.fromkeys([*before, *now]):
        old, new = before.get(key), now.get(key)
        values = [None if row is None else row["value"] for row in (old, new)]
        if old is None or new is None or values[0] != values[1]:
            row = new or old
            assert row is not None
            yield Change(where=key, measure=row["measure"], before=values[0], now=values[1], better=row["better"])


def _tables_of(target: str) -> tuple[str, dict[str, pd.DataFrame], Mapping[str, Any]]:
    """Name, tables and manifest of a run folder, or of a scenario that is run for the purpose."""
    if (Path(target) / "manifest.json").exists():
        manifest = read_manifest(Path(target))
        return str(manifest.get("name", target)), read_tables(Path(target)), manifest
    from sim.simulation import run

    result = run(load_scenario(target))
    return result.scenario.name, dict(result.tables), result.manifest


def check_command(target: str, baseline: Path, update: bool, strict: bool, as_json: bool) -> int:
    """Check a run (or a scenario, which is run) against a baseline, or write the baseline with `update`."""
    del strict  # verdicts are exact here: there is nothing inconclusive to fail on
    stored = None if update else _read_baseline(baseline)
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
        write_whole(baseline, json.dumps(found, indent=1, sort_keys=True) + "\n")
        say(f"{baseline}: baseline of {name} written, {len(found['summary'])} values")
        return ExitStatus.DONE
    if stored.get("scenario") != name:
        raise refuse(str(baseline), f"is the baseline of {stored.get('scenario')}, not of {name}", "name another file")
    changes = list(changes_between(stored["summary"], found["summary"]))
    tables_changed = [key for key, digest in found["tables"].items() if stored["tables"].get(key) != digest]
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


def _read_baseline(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise refuse(str(path), "no such baseline", "write it with --update") from None
    except (OSError, ValueError) as error:
        raise refuse(str(path), f"can not be read as a baseline: {error}", "write it anew with --update") from None
    if not isinstance(stored, dict) or stored.get("format") != FORMAT or "summary" not in stored:
        raise refuse(str(path), "is no baseline of this version", "write it anew with --update")
    return stored


@dataclass(frozen=True, kw_only=True)
class FailIf:
    """A condition of `compare`: `delivered[slice_chips=1024] < -0.5 pp` is about the difference, second minus first."""

    text: str
    measure: str
    filters: Mapping[str, str]
    sign: float
    bound: float

    def is_hit_by(self, change: Change) -> bool:
        """Whether a changed row falls under this condition."""
        if change.measure != self.measure or change.before is None or change.now is None:
            return False
        parts = change.where.split(", ")
        if any(f"{key}={value}" not in parts for key, value in self.filters.items()):
            return False
        return self.sign * (change.now - change.before) > self.sign * self.bound


def parse_fail_if(text: str) -> FailIf:
    """Read a condition; raises InputError saying how one is written."""
    match = _FAIL_IF.fullmatch(text)
    if match is None:
        raise refuse(
            "--fail-if", f"`{text}` is no condition", 'write for example "delivered[slice_chips=1024] < -0.5 pp"'
        )
    filters: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in (match["filters"] or "").split(","))):
        key, equals, value = item.partition("=")
        if not equals:
            raise refuse("--fail-if", f"`{item}` is no filter", "write for example slice_chips=1024")
        filters[key.strip()] = value.strip()
    scale = 0.01 if match["unit"] in ("pp", "%") else 1.0
    return FailIf(
        text=text,
        measure=match["measure"],
        filters=filters,
        sign=1.0 if match["sign"] == ">" else -1.0,
        bound=float(match["bound"]) * scale,
    )


def compare_command(run_a: Path, run_b: Path, fail_if: Sequence[str], as_json: bool) -> int:
    """Print what differs between two runs; status 1 where a condition of `fail_if` is met."""
    conditions = [parse_fail_if(text) for text in fail_if]
    before, now = (read_tables(run) for run in (run_a, run_b))
    changes = list(changes_between(summary_values(before["summary"]), summary_values(now["summary"])))
    hits = [(condition, change) for condition in conditions for change in changes if condition.is_hit_by(change)]
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
