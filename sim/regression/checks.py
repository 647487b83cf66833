"""The commands `check`, a scenario or run against a stored baseline, and `compare`, a run against another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from sim.cli_output import say, say_json
from sim.commands import shown_progress
from sim.exit_codes import ExitStatus
from sim.files import write_whole
from sim.regression.baselines import Baseline, baseline_of, baseline_text, kept_of, read_baseline
from sim.regression.conditions import FailIf, hits, parse_fail_if
from sim.regression.judging import Judged, Verdict, judge_pairs, overall
from sim.regression.measured import Measures, measured_rows, pairs_of
from sim.regression.pages import Pages
from sim.regression.wording import count_text, detectable_text, line_of, told, verdict_document
from sim.run_folder import MANIFEST, read_manifest, read_tables, table_digest
from sim.scenario import Scenario, load_scenario, shipped_scenarios
from topology.errors import refuse

MOST_LINES = 40


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What `check` is asked for; `overrides` come on top of the settings of the baseline."""

    target: str
    baseline: Path
    overrides: Sequence[str] = ()
    update: bool = False
    strict: bool = False
    workers: int | None = None
    pages: Pages = field(default_factory=Pages)
    as_json: bool = False


def measures_of(tables: Mapping[str, pd.DataFrame], manifest: Mapping[str, Any], where: str) -> Measures:
    """All of a run that a comparison looks at; raises InputError where its folder does not hold it."""
    try:
        rows = {row.key: row for row in measured_rows(tables, list(manifest["points"]))}
        return Measures(
            scenario=str(manifest["name"]),
            seed=int(manifest["seed"]),
            streams=str(manifest.get("streams", "")),
            failure_draws={str(key): str(value) for key, value in manifest.get("failure_draws", {}).items()},
            tables={name: table_digest(table) for name, table in tables.items() if name != "summary"},
            rows=rows,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise refuse(where, "its tables or its manifest are damaged", "run the scenario again") from error


def _is_run(target: str) -> bool:
    return (Path(target) / MANIFEST).exists() or (Path(target).is_dir() and target not in shipped_scenarios())


def _stored_measures(folder: Path) -> Measures:
    return measures_of(read_tables(folder), read_manifest(folder), str(folder))


def _run_measures(scenario: Scenario, options: CheckOptions) -> Measures:
    from sim.simulation import run

    with shown_progress(options.as_json) as progress:
        result = run(scenario, workers=options.workers, progress=progress)
    return measures_of(result.tables, result.manifest, scenario.name)


def check_command(options: CheckOptions) -> int:
    """Check a run (or a scenario, which is run with the baseline's settings and seed), or write the baseline."""
    if _is_run(options.target):
        if options.overrides:
            raise refuse(
                "--set", f"{options.target} is a run, whose settings are fixed", "name a scenario, or leave it"
            )
        if options.update:
            return _written(options, _stored_measures(Path(options.target)), ())
        stored = read_baseline(options.baseline)
        return _checked(options, stored, _stored_measures(Path(options.target)))
    if options.update:
        settings = options.overrides or kept_of(options.baseline, load_scenario(options.target).name)[0]
        return _written(options, _run_measures(load_scenario(options.target, settings), options), settings)
    stored = read_baseline(options.baseline)
    settings = [*stored.settings, *options.overrides]
    if not any(each.startswith("run.seed=") for each in options.overrides):
        settings.append(f"run.seed={stored.measures.seed}")
    scenario = load_scenario(options.target, settings)
    _check_name(options, stored, scenario.name)
    return _checked(options, stored, _run_measures(scenario, options))


def _check_name(options: CheckOptions, stored: Baseline, name: str) -> None:
    if stored.measures.scenario != name:
        what = f"is the baseline of {stored.measures.scenario:.80}, not of {name}"
        raise refuse(str(options.baseline), what, "name another file")


def _written(options: CheckOptions, found: Measures, settings: Sequence[str]) -> int:
    """Write the baseline; margins of one that is there already are kept."""
    margins = kept_of(options.baseline, found.scenario)[1]
    baseline = baseline_of(found, settings, margins)
    write_whole(options.baseline, baseline_text(baseline))
    if options.as_json:
        say_json({"verdict": "written", "baseline": str(options.baseline), "values": len(found.rows)})
    else:
        say(f"{options.baseline}: baseline of {found.scenario} written, {len(found.rows)} values")
    return ExitStatus.DONE


def _checked(options: CheckOptions, stored: Baseline, found: Measures) -> int:
    _check_name(options, stored, found.scenario)
    before, paired = stored.measures, found.has_streams_of(stored.measures)
    changed = _tables_changed(before, found)
    # equal tables pass first
    rows = judge_pairs(pairs_of(before if changed else found, found, stored.margins), paired=paired)
    is_failed = any(row.fails_strictly if options.strict else row.verdict is Verdict.FAIL for row in rows)
    notes = _notes(before, found, rows, changed)
    options.pages.write(f"{found.scenario} against {options.baseline.name}", rows, notes, strict=options.strict)
    status = ExitStatus.FAILED if is_failed else ExitStatus.DONE
    if options.as_json:
        draws = {"failure_draws_equal": before.failure_draws == found.failure_draws, "tables_changed": changed}
        say_json(verdict_document(rows, paired=paired) | draws | {"strict": options.strict, "notes": notes})
        return status
    if not changed:
        say(f"pass: {found.scenario} equals {options.baseline} in all {len(found.tables)} tables")
        return status
    _say_rows(rows)
    for note in notes:
        say(note)
    verdict = Verdict.FAIL if is_failed else overall(rows)
    strictly = " (inconclusive measures fail with --strict)" if verdict is Verdict.INCONCLUSIVE else ""
    say(f"{verdict.value}: {found.scenario} against {options.baseline}: {count_text(rows)}{strictly}")
    return status


def _tables_changed(before: Measures, now: Measures) -> list[str]:
    names = dict.fromkeys([*before.tables, *now.tables])
    return [name for name in names if before.tables.get(name) != now.tables.get(name)]


def _say_rows(rows: Sequence[Judged]) -> None:
    shown = told(rows)
    for row in shown[:MOST_LINES]:
        say(line_of(row))
    if len(shown) > MOST_LINES:
        say(f"... and {len(shown) - MOST_LINES} more")


def _notes(before: Measures, found: Measures, rows: Sequence[Judged], changed: Sequence[str]) -> list[str]:
    """What is to be known beside the rows: which tables changed, whether the draws are the same."""
    if not changed:
        return []
    notes = [f"tables that changed: {', '.join(changed)}"]
    if found.has_streams_of(before):
        draws = "the same" if before.failure_draws == found.failure_draws else "not the same (their laws changed)"
        notes.append(f"the streams are the same, so differences are paired; the failures drawn are {draws}")
    else:
        why = f"the seed is {found.seed}, not {before.seed}" if found.seed != before.seed else "the streams changed"
        notes.append(f"{why}: differences are not paired; {detectable_text(rows)}")
    return notes


def compare_command(run_a: Path, run_b: Path, fail_if: Sequence[str], as_json: bool, pages: Pages | None = None) -> int:
    """Judge the second run by the first, with the margins of a new baseline; status 1 where a `fail_if` is met."""
    conditions: list[FailIf] = [parse_fail_if(text) for text in fail_if]
    before, now = _stored_measures(run_a), _stored_measures(run_b)
    paired = now.has_streams_of(before)
    rows = judge_pairs(pairs_of(before, now, {}), paired=paired)
    met = list(hits(conditions, rows))
    notes = _notes(before, now, rows, _tables_changed(before, now))
    notes += [f"fail: {condition.text}: {line_of(row)}" for condition, row in met]
    (pages or Pages()).write(f"{now.scenario}: {run_b} against {run_a}", rows, notes, strict=False)
    if as_json:
        failed = [
            {"condition": condition.text, "measure": row.pair.measure, "place": dict(row.pair.place)}
            for condition, row in met
        ]
        say_json(verdict_document(rows, paired=paired) | {"failed": failed, "notes": notes})
    else:
        changes = sum(row.is_changed for row in rows)
        _say_rows(rows)
        for note in notes:
            say(note)
        say(f"{changes} values differ: {count_text(rows)}" if changes else "no value differs")
    return ExitStatus.FAILED if met else ExitStatus.DONE
