"""`check` against a baseline and `compare` of two runs: exit status, what is said, what is written for CI."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from sim.cli import command_status
from sim.regression.baselines import read_baseline
from sim.regression.checks import measures_of
from sim.result import Result
from sim.run_folder import read_tables
from tests.run.cases import MACHINE, SERVED, printed_json, tamper

MANY = ["--set", "study.availability.replications=12", "--set", "study.delivered.replications=8"]
"""Replications enough to tell something."""
RATES = MACHINE.replace("  failures.host.availability: [98 %, 99 %]\n", "")
"""Two points, hosts up 99 %."""
WORSE = ["--set", "failures.host.availability=98.8 %"]
BETTER = ["--set", "failures.host.availability=99.2 %"]


def check(*arguments: str | Path) -> int:
    """The status of `opticube check`."""
    return command_status(["check", *map(str, arguments), "--workers", "1"])


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """RATES as a file, and its baseline with many replications."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "machine.yaml").write_text(RATES)
    assert check(folder / "machine.yaml", "--baseline", folder / "base.json", "--update", *MANY) == 0
    return folder / "machine.yaml", folder / "base.json"


# check


def test_check_passes_and_updates(stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: equal tables pass, a baseline is written only when asked for. Method: write one, check the same run, then a
    table with another last digit: no measure is judged by it, and it is named."""
    baseline = tmp_path / "base.json"
    assert check(stored, "--baseline", baseline) == 2
    assert "no such baseline; write it with --update" in capsys.readouterr().err
    assert check(stored, "--baseline", baseline, "--update") == 0
    assert "baseline of machine written" in capsys.readouterr().out
    before = baseline.read_bytes()
    json.loads(before, parse_constant=pytest.fail)
    assert check(stored, "--baseline", baseline) == 0
    assert capsys.readouterr().out.startswith("pass: machine equals")
    tamper(stored, "availability", 1e-6)
    assert check(stored, "--baseline", baseline, "--strict") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tables that changed: availability"
    assert lines[-1].startswith(f"pass: machine against {baseline}: ")
    assert baseline.read_bytes() == before


def test_check_of_a_scenario_equals_check_of_its_run(
    stored: Path, machine_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a baseline does not care how the numbers come. Method: baseline of the folder, check of the scenario."""
    baseline = str(tmp_path / "base.json")
    assert check(stored, "--baseline", baseline, "--update", "--json") == 0
    assert printed_json(capsys)["verdict"] == "written"
    assert check(machine_file, "--baseline", baseline, "--json") == 0
    found = printed_json(capsys)
    assert (found["verdict"], found["paired"], found["changes"]) == ("pass", True, [])
    assert (found["failure_draws_equal"], found["tables_changed"]) == (True, [])
    assert found["counts"]["fail"] == found["counts"]["inconclusive"] == 0


def test_a_changed_rate_fails_and_its_inverse_does_not(
    many: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a real regression is found, an improvement never fails. Method: hosts up 98.8 % in place of 99 %, with the
    baseline's seed and settings: all of `expected` is worse, paired; with 99.2 % it is improved, which --strict lets
    pass. A fabric that is not swept any more: its points are gone, which fails."""
    file, baseline = many
    capsys.readouterr()
    assert check(file, "--baseline", baseline, *WORSE, "--json") == 1
    found = printed_json(capsys)
    assert found["verdict"] == "fail"
    assert found["paired"]
    assert not found["failure_draws_equal"]
    expected = [row for row in found["changes"] if row["measure"] == "expected"]
    assert len(expected) == 4
    assert {row["method"] for row in expected} == {"paired"}
    assert {row["kind"] for row in expected} == {"worse"}
    assert {row["verdict"] for row in expected} == {"fail"}
    assert all(0.005 < row["worse_low"] < row["worse_by"] < row["worse_high"] for row in expected)
    assert check(file, "--baseline", baseline, *BETTER, "--strict", "--json") == 0
    found = printed_json(capsys)
    assert {row["kind"] for row in found["changes"] if row["measure"] == "expected"} == {"improved"}
    assert check(file, "--baseline", baseline, "--set", "sweep=null", "--json") == 1
    gone = [row for row in printed_json(capsys)["changes"] if row["kind"] == "gone" and row["better"]]
    assert {row["place"]["fabric"] for row in gone} == {"static_aligned"}
    assert {row["verdict"] for row in gone} == {"fail"}


def test_other_streams_are_said_and_not_paired(many: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: other random numbers do not alarm; the detectable shift is printed; the baseline's seed is run unless told
    otherwise. Method: another seed by --set, and another seed in the scenario itself."""
    file, baseline = many
    capsys.readouterr()
    assert check(file, "--baseline", baseline, "--set", "run.seed=7") == 0
    printed = capsys.readouterr().out
    assert "the seed is 7, not 5: differences are not paired; a worsening that such a check detects (95%)" in printed
    assert "not paired, 12 replications" in printed
    assert "replications more would tell" in printed
    assert check(file, "--baseline", baseline, "--set", "run.seed=7", "--strict") == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("fail: machine against ")
    other = file.with_name("seed.yaml")
    other.write_text(RATES.replace("seed: 5", "seed: 6"))
    assert check(other, "--baseline", baseline) == 0
    assert capsys.readouterr().out.startswith("pass: machine equals")


def test_other_draws_lost_tables_and_new_measures(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: another history, a table that is gone and a measure that is new are told, and none of them fails. Method: a
    digest of the draws, a deleted table, a row of the baseline left out."""
    baseline = tmp_path / "base.json"
    assert check(stored, "--baseline", baseline, "--update") == 0
    document = json.loads(baseline.read_text())
    document["failure_draws"]["0"] = "other"
    left_out = document["measures"].pop(0)
    baseline.write_text(json.dumps(document))
    (stored / "tables" / "cliff.parquet").unlink()
    capsys.readouterr()
    assert check(stored, "--baseline", baseline, "--json") == 0
    found = printed_json(capsys)
    assert found["verdict"] == "pass"
    assert found["tables_changed"] == ["cliff"]
    assert not found["failure_draws_equal"]
    assert [(row["verdict"], row["measure"], row["place"]) for row in found["changes"]] == [
        ("new", left_out["measure"], left_out["place"])
    ]


def test_margins_are_kept_and_can_be_set(many: tuple[Path, Path], tmp_path: Path) -> None:
    """Goal: margins are the user's. Method: one of 50 pp and one of 100 % lets everything pass; an update keeps both,
    and the settings."""
    file, given = many
    document = json.loads(given.read_text())
    assert document["settings"] == MANY[1::2]
    assert document["margins"]["expected"] == "0.5 pp"
    given_margins = document["margins"].items()
    document["margins"] = {name: "50 pp" if text.endswith("pp") else "100 %" for name, text in given_margins}
    baseline = tmp_path / "wide.json"
    baseline.write_text(json.dumps(document))
    assert check(file, "--baseline", baseline, *WORSE) == 0
    assert check(file, "--baseline", baseline, "--update") == 0
    again = json.loads(baseline.read_text())
    assert again["margins"] == document["margins"]
    assert again["settings"] == document["settings"]
    assert again["measures"] == document["measures"]


def spoiled(document: dict[str, Any], *path: str | int, value: Any) -> str:
    """A baseline with another value in one place."""
    document = json.loads(json.dumps(document))
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(document)


BAD = [
    (lambda good: "{", "can not be read as a baseline"),
    (lambda good: "", "can not be read as a baseline"),
    (lambda good: json.dumps(good)[:-300], "can not be read as a baseline"),
    (lambda good: "[]", "is no baseline"),
    (lambda good: "[" * 100_000, "can not be read as a baseline"),
    (lambda good: '"text"', "is no baseline"),
    (lambda good: "{}", "is no baseline"),
    (lambda good: '{"format": 1}', "is a baseline of format 1, and this version reads format 2; write it anew"),
    (lambda good: '{"format": [[[]]]}', "is a baseline of format [[[]]]"),
    (lambda good: '{"format": 2}', "is damaged: version: Field required"),
    (lambda good: spoiled(good, "scenario", value="x"), "is the baseline of x, not of machine; name another file"),
    (lambda good: spoiled(good, "seed", value="1"), "is damaged: seed"),
    (lambda good: spoiled(good, "more", value=1), "is damaged: more: Extra inputs are not permitted"),
    (lambda good: spoiled(good, "measures", value={}), "is damaged: measures"),
    (lambda good: spoiled(good, "measures", 0, "value", value="many"), "is damaged: measures.0.value"),
    (lambda good: spoiled(good, "measures", 0, "value", value=math.nan), "NaN is no number"),
    (lambda good: spoiled(good, "measures", 0, "value", value=True), "is damaged: measures.0.value"),
    (lambda good: spoiled(good, "measures", 0, "better", value="up"), "is damaged: measures.0.better"),
    (lambda good: spoiled(good, "measures", 0, "replications", 1, value=[]), "is damaged: measures.0.replications.1"),
    (lambda good: spoiled(good, "measures", 1, value=good["measures"][0]), "is there twice at"),
    (lambda good: spoiled(good, "margins", "expected", value="little"), "margins.expected: `little` is no amount"),
    (lambda good: spoiled(good, "margins", "expected", value="-1 pp"), "margins.expected: `-1 pp` is no margin"),
    (lambda good: spoiled(good, "settings", value=["no.such=1"]), "no.such"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_baselines(
    number: int, many: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a wrong file is refused in words before anything runs. Method: no JSON, cut off, nested without end, no
    baseline, another format, another scenario, wrong types, doubled rows, margins and settings that are none."""
    file, given = many
    spoil, says = BAD[number]
    baseline = tmp_path / "base.json"
    baseline.write_text(spoil(json.loads(given.read_text())))
    capsys.readouterr()
    assert check(file, "--baseline", baseline) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err
    assert len(printed.err) < 1_500


def test_files_that_are_no_text_and_settings_of_a_run(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: no traceback. Method: a folder and bytes as a baseline; --set for a run that is over; a bad manifest."""
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    for baseline in (tmp_path, tmp_path / "bytes.json"):
        assert check(stored, "--baseline", baseline) == 2
        assert "can not be read as a baseline" in capsys.readouterr().err
    assert check(stored, "--baseline", tmp_path / "base.json", "--set", "run.seed=2") == 2
    assert "is a run, whose settings are fixed" in capsys.readouterr().err
    manifest = stored / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"point": 0', '"point": "none"'))
    assert check(stored, "--baseline", tmp_path / "base.json", "--update") == 2
    assert (
        "manifest.json: is damaged: points.0.point: Input should be a valid integer; run the scenario again"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "base.json").exists()


def test_every_replication_is_measured(machine: Result) -> None:
    """Goal: the rows of a comparison are those of the tables. Method: the mean of the replications of `expected` is its
    value at all four points, of which two differ in a swept key."""
    measures = measures_of(machine.tables, machine.manifest, "machine")
    expected = [row for row in measures.rows.values() if row.measure == "expected"]
    assert len(expected) == 8
    for row in expected:
        assert len(row.series.replications) == 3
        assert row.series.replications.mean() == pytest.approx(row.series.value, rel=1e-8)
    assert {row.place["failures.host.availability"] for row in expected} == {"98 %", "99 %"}
    delivered = [row for row in measures.rows.values() if row.measure == "delivered"]
    assert [len(row.series.replications) for row in delivered] == [2] * 4


def test_infinite_values_survive_a_baseline(served: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a percentile that is infinite is a value like others. Method: the summary with one, there and back."""
    measures = measures_of(served.tables, served.manifest, "served")
    assert any(math.isinf(row.series.value) for row in measures.rows.values()), "a replica is down"
    (tmp_path / "served.yaml").write_text(SERVED)
    baseline = tmp_path / "base.json"
    assert check(tmp_path / "served.yaml", "--baseline", baseline, "--update") == 0
    json.loads(baseline.read_text(), parse_constant=pytest.fail)
    read = read_baseline(baseline).measures
    assert read.has_streams_of(measures)
    assert list(read.rows) == list(measures.rows)
    assert all(row.series.equals(measures.rows[key].series) for key, row in read.rows.items())
    assert any(len(row.series.replications) == 2 for row in read.rows.values() if "service" in row.place)
    capsys.readouterr()


def test_pages_for_ci(many: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: CI can read the verdicts. Method: counts of the JUnit file against those of `--json`, a line per change in
    the Markdown, name, unit, value and range of every finite value in the benchmark."""
    file, baseline = many
    capsys.readouterr()
    pages = [str(tmp_path / name) for name in ("junit.xml", "page.md", "bench.json")]
    outputs = ["--junit", pages[0], "--markdown", pages[1], "--benchmark", pages[2]]
    assert check(file, "--baseline", baseline, *WORSE, *outputs, "--strict", "--json") == 1
    found = printed_json(capsys)
    suite = ElementTree.parse(pages[0]).getroot()[0]
    assert suite.tag == "testsuite"
    cases = suite.findall("testcase")
    failures = [case for case in cases if case.find("failure") is not None]
    assert len(cases) == int(suite.get("tests", "")) == sum(found["counts"].values()) - found["counts"]["not judged"]
    strictly = [row for row in found["changes"] if row["verdict"] == "inconclusive" and not (row["worse_by"] or 1) <= 0]
    assert len(failures) == int(suite.get("failures", "")) == found["counts"]["fail"] + len(strictly)
    text = Path(pages[1]).read_text()
    assert text.startswith("## machine against base.json\n")
    assert sum(line.startswith("| ") for line in text.splitlines()) == 2 + min(200, len(found["changes"]))
    entries = json.loads(Path(pages[2]).read_text())
    assert {"name", "unit", "value", "range"} <= set(entries[0])
    assert all(np.isfinite(entry["value"]) for entry in entries)
    assert len({entry["name"] for entry in entries}) == len(entries)


# compare


def test_compare_a_run_with_itself(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: nothing differs. Method: the same folder twice."""
    assert command_status(["compare", str(stored), str(stored)]) == 0
    assert capsys.readouterr().out == "no value differs\n"
    assert command_status(["compare", str(stored), str(stored), "--json"]) == 0
    found = printed_json(capsys)
    assert (found["verdict"], found["changes"], found["failed"]) == ("pass", [], [])


def test_compare_two_scenarios(stored: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: two settings are compared row by row, whatever they are called. Method: slower repairs of racks."""
    assert command_status(["compare", str(stored), str(other), "--json"]) == 0
    changes = printed_json(capsys)["changes"]
    kinds = {change["kind"] for change in changes if change["measure"] == "expected"}
    assert kinds == {"worse"}
    assert not {change["kind"] for change in changes} & {"new", "gone", "same"}
    one = next(change for change in changes if change["measure"] == "expected")
    assert one["method"] == "paired"
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
