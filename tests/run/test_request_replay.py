"""`opticube replay --request`: one request of a run, token by token, as the run recorded it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from sim import run
from sim.cli import command_status
from sim.result import Result
from sim.run_folder import table_bytes
from tests.run.cases import SERVED, loaded
from tests.run.test_export import ALONE
from workloads.serving.fields import LEDGER


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run folder with 150 recorded requests."""
    return run(loaded(SERVED, *ALONE), out=tmp_path_factory.mktemp("replay") / "run", workers=1)


def test_a_request_is_told_as_it_was(recorded: Result, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Goal: the life of a request is the one that the run had. Method: by JSON, against the table of requests: first
    and last token, every gap; categories add up to each gap; the same in words, and as a picture."""
    row = recorded.tables["requests"].iloc[60]
    folder, picture = str(recorded.folder), tmp_path / "life.svg"
    assert command_status(["replay", folder, "--request", "60", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["same"] is True
    tokens = told["tokens"]
    assert [each["token"] for each in tokens] == list(range(1, row["output_tokens"] + 1))
    assert tokens[0]["at_ns"] == row["first_token_ns"] - row["arrival_ns"]
    assert tokens[-1]["at_ns"] == row["last_token_ns"] - row["arrival_ns"]
    assert " ".join(str(each["gap_ns"]) for each in tokens[1:]) == row["gaps_ns"]
    assert all(sum(each[f"{name}_ns"] for name in LEDGER) == each["gap_ns"] for each in tokens)
    assert command_status(["replay", folder, "--request", "60", "--picture", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "replayed: equal to the stored run" in said
    assert "Gaps between tokens" in said
    assert "request 60 of chat" in picture.read_text(encoding="utf-8")


def test_the_run_tells_the_one_that_stalls_longest(recorded: Result) -> None:
    """Goal: a run with records shows a life worth looking at. Method: its request has the longest of all gaps; the
    sentence of the page and the picture are there."""
    gaps = recorded.tables["requests"].set_index("request")["gaps_ns"].str.split()
    longest = {request: max(map(int, each), default=-1) for request, each in gaps.items()}
    life = recorded.tables["request_life"]
    assert life["gap_ns"][1:].max() == max(longest.values()) == longest[life["request"].iloc[0]]
    assert recorded.folder is not None
    assert (recorded.folder / "plots" / "life.png").exists()
    assert "with the longest gap of those recorded" in (recorded.folder / "report.html").read_text(encoding="utf-8")


def test_another_life_is_told(recorded: Result, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a run that can not be repeated fails. Method: one gap of the stored table is changed; restored after."""
    assert recorded.folder is not None
    file = recorded.folder / "tables" / "requests.parquet"
    before = file.read_bytes()
    table = pd.read_parquet(file)
    table.loc[60, "gaps_ns"] = "1 2 3"
    file.write_bytes(table_bytes(table))
    try:
        assert command_status(["replay", str(recorded.folder), "--request", "60"]) == 1
    finally:
        file.write_bytes(before)
    assert "NOT equal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "write either --replication R or --request N"),
        (["--request", "1", "--replication", "0"], "write either --replication R or --request N"),
        (["--request", "400"], "a window has requests 0 to 399; write one of them"),
        (["--request", "1", "--point", "9"], "the run has points 0 to 0; write one of them"),
        (["--request", "1", "--service", "chit"], "`chit` is no service of the run; write one of chat"),
        (["--request", "1", "--picture", "life.txt"], "`life.txt` is no picture; write a name in .png or .svg"),
    ],
)
def test_wrong_words(recorded: Result, capsys: pytest.CaptureFixture[str], options: list[str], says: str) -> None:
    """Goal: one line that says what to write. Method: every wrong option."""
    assert command_status(["replay", str(recorded.folder), *options]) == 2
    assert says in capsys.readouterr().err
