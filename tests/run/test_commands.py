"""The commands around a run: expectations, check, compare, replay, report, and what they print for programs."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sim.report.write
from sim.checks import changes_between, parse_fail_if, read_baseline, summary_values
from sim.cli import command_status
from sim.result import Result
from sim.run_folder import read_tables, table_bytes
from sim.simulation import run
from tests.run.cases import MACHINE, PROMISE, SERVED, every_name, loaded
from topology.errors import InputError


@pytest.fixture
def stored(machine: Result, tmp_path: Path) -> Path:
    """A copy of the finished run of MACHINE."""
    folder = tmp_path / "stored"
    assert machine.folder is not None
    shutil.copytree(machine.folder, folder)
    return folder


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of MACHINE under another name, with slower repairs of racks, without a report."""
    text = MACHINE.replace("name: machine", "name: slower").replace("mean: 4 h", "mean: 12 h")
    folder = tmp_path_factory.mktemp("other") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sim.report.write, "write_report", lambda *arguments, **options: None)
        run(loaded(text), out=folder, workers=1)
    return folder


def tamper(folder: Path, name: str, change: float, row: int = 0) -> None:
    """Add `change` to the value in one row of a stored table."""
    if name == "summary":
        table = read_tables(folder)["summary"]
        table.loc[row, "value"] = float(table.loc[row, "value"]) + change  # type: ignore[arg-type]
        table.to_csv(folder / "summary.csv", index=False)
        return
    file = folder / "tables" / f"{name}.parquet"
    table = pd.read_parquet(file)
    table.loc[row, "value"] = float(table.loc[row, "value"]) + change  # type: ignore[arg-type]
    file.write_bytes(table_bytes(table))


def printed_json(capsys: pytest.CaptureFixture[str]) -> Any:
    """The one document on standard output; standard error must be empty."""
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


# expectations and warnings


def test_expectations(tmp_path: Path, promise_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: `expect:` decides the exit status. Method: a bound just met, one just missed, again when resumed."""
    cubes = int(run(loaded(PROMISE), workers=1).promise["cubes"].iloc[0])
    for bound, status in ((cubes, 0), (cubes - 1, 1)):
        setting = f"expect=[{{measure: cubes_for_promise, at_most: {bound}}}]"
        out = tmp_path / str(bound)
        arguments = ["run", str(promise_file), "--set", setting, "--out", str(out), "--workers", "1", "--json"]
        for more in ([], ["--resume"]):
            assert command_status([*arguments, *more]) == status
            document = printed_json(capsys)
            (verdict,) = document["expectations"]
            assert verdict["met"] == (status == 0)
            assert f"at most {bound} at reconfigurable, hosts up 99.0000%: found {cubes}" in verdict["text"]
            assert (verdict["text"] in document["warnings"]) == (status == 1)
            assert (out / "report.html").exists(), "a missed bound is a result all the same"


def test_expectations_hold_at_every_matching_point(machine: Result) -> None:
    """Goal: a bound is about all points that match. Method: one that the better of two host availabilities meets."""
    values = machine.availability.query("form == 'expected' and slice_chips == 64 and fabric == 'static_aligned'")
    low, high = sorted(values["value"])
    bound = f"{{measure: expected, fabric: static_aligned, slice_chips: 64, at_least: {(low + high) / 2:.6f}}}"
    result = run(loaded(MACHINE, f"expect=[{bound}]", "study.delivered=null"), workers=1)
    assert [verdict.met for verdict in result.verdicts] == [False, True]
    only = bound.replace("slice_chips: 64", "slice_chips: 64, host_availability: 99 %")
    assert run(loaded(MACHINE, f"expect=[{only}]", "study.delivered=null"), workers=1).met_expectations


def test_an_expectation_without_a_value_is_missed() -> None:
    """Goal: nothing found is not success. Method: cubes that no closed form gives (one crew), bounded from above."""
    result = run(loaded(PROMISE, "repair.crews=1", "expect=[{measure: cubes_for_promise, at_most: 1000}]"), workers=1)
    assert result.promise["cubes"].isna().all()
    assert [verdict.met for verdict in result.verdicts] == [False]
    assert result.verdicts[0].text.endswith("found no value")


def test_a_swept_key_that_changes_nothing(machine: Result) -> None:
    """Goal: a slip of the pen is noticed. Method: a delay that curves do not see, and jobs do."""
    assert machine.warnings == ()
    swept = "sweep={recovery.evict: [30 s, 10 min]}"
    curves = run(loaded(MACHINE, swept, "study.delivered=null", "study.promise=null"), workers=1)
    assert curves.warnings == ("sweeping recovery.evict changed no number: is it the key you meant?",)
    jobs = run(loaded(MACHINE, swept), workers=1)
    assert jobs.warnings == ()


def test_overloaded_queues_are_named() -> None:
    """Goal: averages of a queue that only grows are no news. Method: more requests than all replicas could serve."""
    setting = ["serving.services.0.load=null", "serving.services.0.rate=150 requests/s", "study.delivered=null"]
    result = run(loaded(SERVED, *setting), workers=1)
    (warning,) = result.warnings
    assert warning.startswith("chat: overloaded, requests arrive at ")
    verdicts = result.service[result.service["measure"] == "queue_overloaded"]["value"]
    assert verdicts.tolist() == [1.0, 1.0]
    assert "overloaded" in result.sentence


# check


def test_check_passes_fails_and_updates(stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: CI notices every changed number. Method: write a baseline, check the same run, then one changed digit."""
    baseline = tmp_path / "base.json"
    assert command_status(["check", str(stored), "--baseline", str(baseline)]) == 2
    assert "no such baseline; write it with --update" in capsys.readouterr().err
    assert command_status(["check", str(stored), "--baseline", str(baseline), "--update"]) == 0
    assert "baseline of machine written" in capsys.readouterr().out
    before = baseline.read_bytes()
    json.loads(before, parse_constant=pytest.fail)
    assert command_status(["check", str(stored), "--baseline", str(baseline)]) == 0
    assert capsys.readouterr().out.startswith("pass: machine equals")
    tamper(stored, "summary", 1e-6)
    tamper(stored, "availability", 1e-6)
    assert command_status(["check", str(stored), "--baseline", str(baseline), "--strict"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("improved: expected at point=0, fabric=reconfigurable, slice_chips=64")
    assert lines[-1] == "fail: 1 values and the tables availability changed; the failure draws are the same"
    assert baseline.read_bytes() == before


def test_check_of_a_scenario_equals_check_of_its_run(
    stored: Path, machine_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a baseline does not care how the numbers come. Method: baseline of the folder, check of the scenario."""
    baseline = str(tmp_path / "base.json")
    assert command_status(["check", str(stored), "--baseline", baseline, "--update", "--json"]) == 0
    assert printed_json(capsys)["verdict"] == "written"
    assert command_status(["check", str(machine_file), "--baseline", baseline, "--json"]) == 0
    assert printed_json(capsys) == {
        "verdict": "pass", "failure_draws_equal": True, "tables_changed": [], "changes": []
    }  # fmt: skip


def test_check_notices_other_draws_and_lost_tables(
    stored: Path, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: another history and a table that is gone are told. Method: digests of the draws; a deleted table."""
    baseline = tmp_path / "base.json"
    assert command_status(["check", str(stored), "--baseline", str(baseline), "--update"]) == 0
    document = json.loads(baseline.read_text())
    document["failure_draws"]["0"] = "other"
    baseline.write_text(json.dumps(document))
    (stored / "tables" / "cliff.parquet").unlink()
    capsys.readouterr()
    assert command_status(["check", str(stored), "--baseline", str(baseline), "--json"]) == 1
    found = printed_json(capsys)
    assert found["verdict"] == "fail"
    assert found["tables_changed"] == ["cliff"]
    assert not found["failure_draws_equal"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "can not be read as a baseline"),
        ("[]", "is no baseline of this version"),
        ('{"format": 0}', "is no baseline of this version"),
        ('{"format": 1, "scenario": "machine", "summary": {}, "tables": {}}', "is no baseline of this version"),
        (
            '{"format": 1, "scenario": "x", "summary": {}, "tables": {}, "failure_draws": {}}',
            "is the baseline of x, not of machine; name another file",
        ),
    ],
)
def test_bad_baselines(
    content: str, says: str, stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a wrong file is refused in words. Method: no JSON, no baseline, another version, another scenario."""
    baseline = tmp_path / "base.json"
    baseline.write_text(content)
    assert command_status(["check", str(stored), "--baseline", str(baseline)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err


def test_infinite_values_survive_a_baseline(served: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a percentile that is infinite is a value like others. Method: the summary with one, there and back."""
    values = summary_values(served.summary)
    assert any(math.isinf(row["value"]) for row in values.values() if row["value"] is not None), "a replica is down"
    (tmp_path / "served.yaml").write_text(SERVED)
    baseline = tmp_path / "base.json"
    assert command_status(["check", str(tmp_path / "served.yaml"), "--baseline", str(baseline), "--update"]) == 0
    json.loads(baseline.read_text(), parse_constant=pytest.fail)
    assert read_baseline(baseline)["summary"] == values
    capsys.readouterr()


# compare


def test_compare_a_run_with_itself(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: nothing differs. Method: the same folder twice."""
    assert command_status(["compare", str(stored), str(stored)]) == 0
    assert capsys.readouterr().out == "no value differs\n"
    assert command_status(["compare", str(stored), str(stored), "--json"]) == 0
    assert printed_json(capsys) == {"changes": [], "failed": []}


def test_compare_two_scenarios(stored: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: two settings are compared row by row, whatever they are called. Method: slower repairs of racks."""
    assert command_status(["compare", str(stored), str(other), "--json"]) == 0
    changes = printed_json(capsys)["changes"]
    kinds = {change["kind"] for change in changes if change["measure"] == "expected"}
    assert kinds == {"worse"}
    assert not {change["kind"] for change in changes} & {"new", "gone", "same"}
    one = next(change for change in changes if change["measure"] == "expected")
    before, now = (read_tables(folder)["summary"] for folder in (stored, other))
    assert one["before"] == pytest.approx(before[before["measure"] == "expected"]["value"].iloc[0], rel=1e-8)
    assert one["now"] == pytest.approx(now[now["measure"] == "expected"]["value"].iloc[0], rel=1e-8)


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("expected < -0.5 pp", 1),
        ("expected[slice_chips=64] < -0.1 pp", 1),
        ("expected[slice_chips=64, fabric=static_aligned] < -.1pp", 1),
        ("expected[failures.host.availability=98 %] < -0.5 pp", 1),
        ("expected < -99 pp", 0),
        ("expected > 0.5 pp", 0),
        ("expected < -1 %", 1),
        ("expected < -90 %", 0),
        ("chip_hours_down > 10", 1),
        ("chip_hours_down > 1e6", 0),
        ("chip_hours_unaccounted < 0.5", 1),
        ("chip_hours_unaccounted > 0", 0),
    ],
)
def test_conditions(condition: str, status: int, stored: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: `--fail-if` decides the exit status. Method: bounds that slower repairs break, or not; rows that are equal
    meet a bound of theirs too."""
    assert command_status(["compare", str(stored), str(other), "--fail-if", condition, "--json"]) == status
    failed = printed_json(capsys)["failed"]
    assert bool(failed) == (status == 1)
    assert all(hit["condition"] == condition for hit in failed)
    assert command_status(["compare", str(stored), str(other), "--fail-if", condition]) == status
    assert (f"fail: {condition}: " in capsys.readouterr().out) == (status == 1)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("", "`` is no condition; write for example"),
        ("expected", "is no condition"),
        ("expected < ", "is no condition"),
        ("expected = 1", "is no condition"),
        ("expected < 1 hour", "is no condition"),
        ("expected[64] < 1", "`64` is no filter; write for example slice_chips=1024"),
        ("expcted < 1 pp", "`expcted` is no measure; write `expected`"),
        ("expected[slice_chips=65] < 1 pp", "is about no row that both runs have"),
        ("expected[slice=64] < 1 pp", "is about no row that both runs have"),
        ("ttft_p99_s > 1", "is about no row that both runs have"),
    ],
)
def test_bad_conditions(
    condition: str, says: str, stored: Path, other: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a condition that can never fail is refused. Method: slips of the pen, and rows that do not exist."""
    assert command_status(["compare", str(stored), str(other), "--fail-if", condition]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err


def test_kinds_of_changes() -> None:
    """Goal: better and worse are told apart. Method: one row each, in words."""
    row = {"better": "lower", "measure": "ttft_p99_s"}
    rows = {name: row | {"value": value} for name, value in (("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 1.0))}
    now = {
        "a": row | {"value": 2.0}, "b": row | {"value": 0.5}, "c": row | {"value": 1.0}, "e": row | {"value": 1.0}
    }  # fmt: skip
    kinds = {change.where: change.kind for change in changes_between(rows, now)}
    assert kinds == {"a": "worse", "b": "improved", "d": "gone", "e": "new"}
    with pytest.raises(InputError):
        parse_fail_if("a b")


# replay and report


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize("crews", ["null", "1"])
def test_replay_equals_the_stored_run(
    crews: str, stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: any replication can be looked at again. Method: first and last points and replications; exact equality."""
    folder = stored
    if crews == "1":
        folder = tmp_path / "crews"
        run(loaded(MACHINE, "repair.crews=1"), out=folder, workers=1)
    for point in (0, 3):
        for replication in (0, 2):
            arguments = ["replay", str(folder), "--point", str(point), "--replication", str(replication), "--json"]
            assert command_status(arguments) == 0
            document = printed_json(capsys)
            assert document["same"]
            values = [(row["form"], row["slice_chips"]) for row in document["values"]]
            assert values[:2] == [("expected", 64), ("expected_with_light", 64)]
            assert ("delivered", 256) in values or replication == 2
            assert all(row["stored"] == row["value"] for row in document["values"])


def test_replay_notices_tampered_tables(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a stored number that the scenario does not give is found. Method: one bit of one value."""
    table = pd.read_parquet(stored / "tables" / "replications.parquet")
    row = int(table.index[(table["form"] == "delivered") & (table["replication"] == 1)][0])
    value = float(table.loc[row, "value"])  # type: ignore[arg-type]
    tamper(stored, "replications", float(np.spacing(value)), row)
    assert command_status(["replay", str(stored), "--point", "0", "--replication", "0"]) == 0
    assert capsys.readouterr().out.endswith("replayed: equal to the stored run\n")
    assert command_status(["replay", str(stored), "--point", "0", "--replication", "1"]) == 1
    assert capsys.readouterr().out.endswith("replayed: NOT equal to the stored run\n")


@pytest.mark.usefixtures("without_report")
def test_replay_tells_points_apart_by_all_swept_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a value of another point is not taken for this one's. Method: points that differ in a delay alone, and
    the values of two of them exchanged."""
    folder = tmp_path / "run"
    text = MACHINE.replace("  failures.host.availability: [98 %, 99 %]", "  recovery.restore: [10 min, 10 h]")
    run(loaded(text), out=folder, workers=1)
    assert command_status(["replay", str(folder), "--point", "1", "--replication", "0"]) == 0
    file = folder / "tables" / "replications.parquet"
    table = pd.read_parquet(file)
    keys = ["fabric", "slice_chips", "form", "replication"]
    table["value"] = table.groupby(keys)["value"].transform(lambda values: values.to_numpy()[::-1])
    file.write_bytes(table_bytes(table))
    assert command_status(["replay", str(folder), "--point", "1", "--replication", "0"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--point", "4", "--replication", "0"], "--point: the run has points 0 to 3; write one of them"),
        (["--point", "0", "--replication", "3"], "--replication: the point has no replication 3"),
    ],
)
def test_replay_of_what_is_not_there(
    arguments: list[str], says: str, stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: wrong numbers are refused in words. Method: a point and a replication too many."""
    assert command_status(["replay", str(stored), *arguments]) == 2
    assert says in capsys.readouterr().err


def test_replay_of_a_run_without_replications(
    tmp_path: Path, promise_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a run by closed form has nothing to replay, and says so. Method: a promise alone."""
    folder = tmp_path / "run"
    assert command_status(["run", str(promise_file), "--out", str(folder), "--workers", "1"]) == 0
    assert command_status(["replay", str(folder), "--point", "0", "--replication", "0"]) == 2
    assert "has no replications to be replayed" in capsys.readouterr().err


def test_report_writes_the_same_page_again(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a report can be made from a folder alone. Method: bytes of page and pictures; the other format. The
    scenario, which may name a log on another machine, is not needed: it is spoiled."""
    files = [name for name in every_name(stored) if name.startswith("plots/") or name == "report.html"]
    before = {name: (stored / name).read_bytes() for name in files}
    for name in files:
        (stored / name).unlink()
    (stored / "scenario.yaml").write_text("name: [")
    assert command_status(["report", str(stored)]) == 0
    assert capsys.readouterr().out == f"{stored}/report.html\n"
    assert {name: (stored / name).read_bytes() for name in files} == before
    assert command_status(["report", str(stored), "--format", "md"]) == 0
    assert (stored / "report.md").read_text().startswith("# ")
    capsys.readouterr()
    assert command_status(["report", str(stored), "--format", "doc"]) == 2
    assert "`doc` is no format of a report; write html or md" in capsys.readouterr().err


@pytest.mark.usefixtures("without_report")
def test_run_prints_one_document(tmp_path: Path, machine_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: programs can read a run. Method: `--json`: keys, values, and nothing else on either output."""
    out = tmp_path / "run"
    setting = ["--set", "study.delivered=null", "--set", "sweep.failures.host.availability=[98 %]"]
    assert command_status(["run", str(machine_file), *setting, "--out", str(out), "--json", "--workers", "2"]) == 0
    document = printed_json(capsys)
    assert list(document) == ["scenario", "folder", "sentence", "warnings", "expectations", "manifest", "summary"]
    summary = read_tables(out)["summary"]
    assert len(document["summary"]) == len(summary)
    assert document["summary"][0]["value"] == summary["value"].iloc[0]
    assert document["summary"][0]["service"] is None
    assert document["summary"][0]["point"] == 0
    assert document["manifest"]["seed"] == 5


def test_run_prints_its_configuration_and_its_answer(
    tmp_path: Path, promise_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: people see what took effect and what came out. Method: lines of the printed text."""
    out = tmp_path / "run"
    assert command_status(["run", str(promise_file), "--out", str(out), "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "host availability" in printed
    assert "[assumption]" in printed
    assert "To promise two 128-chip slices 90 % of the time takes" in printed
    assert f"report: {out}/report.html" in printed
