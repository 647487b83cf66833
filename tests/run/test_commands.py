"""The commands around a run: expectations, check, compare, replay, report, and what they print for programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sim.cli import command_status
from sim.result import Result
from sim.run_folder import read_tables, table_bytes
from sim.simulation import run
from tests.run.cases import MACHINE, PROMISE, SERVED, every_name, loaded, printed_json, tamper

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
    assert "`doc` is no format of a report; write one of html, md, pdf" in capsys.readouterr().err


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
