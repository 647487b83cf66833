"""Runs that replay a log: what does not fit is refused by `validate` too; windows that hold little or nothing run."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.cli import command_status
from sim.scenario import load_scenario
from sim.simulation import run

LOG = "component,id,start,end\nhost,0,0,3600\nhost,1,7200,10800\nhost,0,86400,90000\n"
SCENARIO = """\
name: logged
pod: {cubes: 1, grid: 1x1x1}
failures: {log: {path: log.csv}}
study:
  availability: {slice_chips: [4, 64], time_share: 97 %}
  delivered: {slice_chips: [64]}
"""
MANY = "component,id,start,end\n" + "".join(f"host,{node},{100 * node},{100 * node + 50}\n" for node in range(17))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the scenario and its log."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logged.yaml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "log.csv").write_text(LOG, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("log", "settings", "says"),
    [
        (MANY, [], "log.csv: line 18: node 16, and the machine has 16 components of kind host"),
        (MANY, ["failures.log.place=shuffled"], "17 components"),
        ("component,id,start,end,cube\nhost,a,0,1,9\nhost,b,5,6,0\n", [], "line 2: cube 9, and the machine has 1"),
        (LOG, ["run.warmup=1 d"], "run.warmup: the window of the log, 86400 s, ends within the warm-up"),
        (LOG, ["failures.log.window=['200 s', '100 s']"], "failures.log.window: it ends"),
        (LOG, ["failures.log.window=['2020-01-01', '2020-01-02']"], "failures.log.window: `2020-01-01`"),
        ("component,id,start\nhost,0,0\n", [], "log.csv: line 1: no column end"),
    ],
)
def test_logs_that_do_not_fit(
    log: str, settings: list[str], says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: what can be known before a run is told before it. Method: `validate` and `run` say the same, and nothing
    is written.
    """
    (here / "log.csv").write_text(log, encoding="utf-8")
    options = [part for setting in settings for part in ("--set", setting)]
    for command in ("validate", "run"):
        assert command_status([command, "logged.yaml", *options]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert says in printed.err
    assert sorted(path.name for path in here.iterdir()) == ["log.csv", "logged.yaml"]


def test_a_day_by_hand(here: Path) -> None:
    """Goal: a log's numbers are right. Method: a cube of 16 hosts in a day with two outages of an hour, by hand.

    Hosts are down 2 of 16 x 24 h. The cube is whole for 22 of 24 h. A job starts at 1 h, when the host is back, runs
    790 s later (circuits, preflight, restore), stops at 2 h, waits for the repair until 3 h and runs 790 s later again.
    """
    table = run(load_scenario("logged.yaml"), workers=1).availability
    values = {(row.slice_chips, row.form): row.value for row in table.itertuples()}
    assert table["host_availability"].iloc[0] == pytest.approx(1 - 2 / (16 * 24), abs=1e-12)
    assert values[4, "expected"] == pytest.approx(1 - 2 / (16 * 24), abs=1e-12)
    assert values[4, "guaranteed"] == pytest.approx(15 / 16)
    assert values[64, "expected"] == pytest.approx(22 / 24, abs=1e-12)
    assert values[64, "guaranteed"] == 0.0
    assert values[64, "delivered"] == pytest.approx((7200 - 3600 - 790 + 86400 - 10800 - 790) / 86400, abs=1e-12)


@pytest.mark.parametrize(
    ("window", "expected"), [("['20000 s', '30000 s']", 1.0), ("['100 s', '200 s']", 0.0), ("['10 d', '20 d']", 1.0)]
)
def test_windows_without_a_failure(window: str, expected: float, here: Path) -> None:
    """Goal: a window that misses every start still says what was up. Method: between, within and after the outages."""
    scenario = load_scenario("logged.yaml", [f"failures.log.window={window}"])
    table = run(scenario, workers=1).availability
    rows = table[(table["slice_chips"] == 64) & (table["form"].isin(["expected", "guaranteed", "delivered"]))]
    assert len(rows) == 3
    assert (rows["value"] == expected).all()


def test_a_window_within_an_outage_gives_no_rate(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: half the time down is not called never failing. Method: the log's report of a window without a start."""
    assert command_status(["log", "log.csv", "--window", "100 s", "200 s"]) == 0
    text = capsys.readouterr().out
    assert "no host fails within the window, or none is ever up: no rate can be told" in text


@pytest.mark.parametrize(
    ("log", "place", "warned"),
    [
        ("component,id,start,end\nhost,a07,0,3600\nhost,b11,900,3600\n", "by_number", True),
        ("component,id,start,end\nhost,a07,0,3600\nhost,b11,900,3600\n", "shuffled", False),
        ("component,id,start,end\nhost,7,0,3600\nhost,11,900,3600\n", "by_number", False),
        ("component,id,start,end,cube\nhost,a07,0,3600,0\nhost,b11,900,3600,0\n", "by_number", False),
    ],
)
def test_names_that_are_no_places_are_told(log: str, place: str, warned: bool, here: Path) -> None:
    """Goal: failures of different racks do not become one bad cube unnoticed. Method: two hosts with names that say
    nothing of the place, the same shuffled, two by number, two with their cubes."""
    (here / "log.csv").write_text(log, encoding="utf-8")
    warnings = run(load_scenario("logged.yaml", [f"failures.log.place={place}"]), workers=1).warnings
    assert [text.startswith("names of kind host in the log (2, such as a07) are") for text in warnings] == [
        True
    ] * warned
    assert all("`place: shuffled`" in text for text in warnings)


def test_delivered_starts_from_the_whole_history(here: Path) -> None:
    """Goal: `delivered` and `expected` of a log mean the same time. Method: a window of a day and a half, with the
    outage in the half day, which counts by its length; without delays the two are equal."""
    (here / "log.csv").write_text("component,id,start,end\nhost,0,90000,108000\n", encoding="utf-8")
    delays = [f"recovery.{stage}=0 s" for stage in ("evict", "circuits", "preflight", "restore")]
    scenario = load_scenario("logged.yaml", ["failures.log.window=['0', '129600']", *delays])
    table = run(scenario, workers=1).availability.set_index(["slice_chips", "form"])["value"]
    assert table[64, "expected"] == pytest.approx(1 - 18000 / 129600, abs=1e-12)
    assert table[64, "delivered"] == pytest.approx(table[64, "expected"], abs=1e-12)
