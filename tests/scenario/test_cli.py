"""The command: exit statuses, one line per fault, one JSON document, a fast start."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sim.cli_scenarios
from sim.cli import command_status
from sim.exit_codes import ExitStatus, explain
from tests.shared_data import shared_file
from topology.errors import EnvironmentFault, Fault, InputError


def raising(error: BaseException) -> object:
    """A command that fails with `error`."""

    def command(*arguments: object) -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (InputError([Fault("f:1", "bad", "mend"), Fault("f:2", "worse", "")]), 2, "f:1: bad; mend\nf:2: worse"),
        (KeyboardInterrupt(), 3, "interrupted before it was done; run it again"),
        (EnvironmentFault("disk full"), 4, "disk full"),
        (OSError(28, "No space left on device", "/x/y"), 4, "/x/y: No space left on device; free some space"),
        (PermissionError(13, "Permission denied", "/x"), 4, "/x: Permission denied; check the permissions"),
        (MemoryError(), 4, "out of memory"),
        (ZeroDivisionError("division\nby zero"), 70, "ZeroDivisionError: division by zero\nplease report it"),
        (AssertionError(), 70, "AssertionError: no message"),
        (RecursionError(), 70, "this is a fault of opticube"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_exit_statuses(
    error: BaseException,
    status: int,
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: one place says what went wrong, without a traceback. Method: a command that raises each kind of error."""
    monkeypatch.setattr(sim.cli_scenarios, "validate_command", raising(error))
    assert command_status(["validate", "smoke"]) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err
    assert "Traceback" not in printed.err


def test_a_fault_of_ours_says_what_to_report() -> None:
    """Goal: a report is useful. Method: the lines hold the command, the versions and the place, each on one line."""
    try:
        [].pop()
    except IndexError as error:
        status, lines = explain(error, ["run", "smoke"])
    assert status is ExitStatus.OUR_FAULT
    assert any("command: opticube run smoke" in line for line in lines)
    assert any("Python" in line for line in lines)
    assert all("\n" not in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rnu"], "No such command 'rnu'."),
        (["run"], "Missing argument"),
        (["run", "smoke", "--wrokers", "2"], "No such option: --wrokers. Did you mean --workers?"),
        (["run", "smoke", "--workers", "0"], "Invalid value for '--workers'"),
        (["run", "smoke", "--workers", "many"], "Invalid value for '--workers'"),
        (["run", "smoke", "--resume"], "--resume needs --out DIR"),
        (["size", "--slices", "8x8x16:3"], "write either --host-availability SHARE or --scenario"),
        (["compare", "a"], "Missing argument"),
    ],
)
def test_usage_errors(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a wrong command line is explained on one line. Method: typical slips; each names the help to read."""
    assert command_status(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert says in line
    assert "--help`" in line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["list", "chip"], "`chip` can not be listed; write `chips`"),
        (["size", "--slices", "8x8x16", "--host-availability", "99 %"], "`8x8x16` is no SHAPE:NUMBER"),
        (["size", "--slices", "4x4x4:1", "--host-availability", "99 %", "--horizon", "9 d"], "are for a simulation"),
        (
            ["size", "--slices", "8x8x15:2", "--host-availability", "99 %"],
            "--slices: 8x8x15 is not made of whole cubes",
        ),
        (["size", "--slices", "8x8x16:3", "--host-availability", "99"], "--host-availability: `99` is not a share"),
        (
            ["size", "--slices", "4x4x4:1", "--host-availability", "99 %", "--time-share", "x"],
            "--time-share: `x` is not",
        ),
        (["log", "no.csv"], "no.csv"),
        (["run", "smoke", "--workers", "1000000000"], "--workers: 1000000000 worker processes on"),
        (["log", "no.csv", "--format", "lan"], "--format: `lan` is no format of a log; write `lanl`"),
    ],
)
def test_bad_arguments(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: values of options are explained like those of files. Method: one bad value each."""
    assert command_status(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--json"],
        ["list", "chips", "--json"],
        ["list", "models", "--json"],
        ["list", "pods", "--json"],
        ["list", "policies", "--json"],
        ["schema"],
        ["validate", "smoke", "availability", "--json"],
        ["size", "--slices", "8x8x16:3", "--host-availability", "99.5 %", "--json"],
    ],
    ids=" ".join,
)
def test_json_is_one_document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: programs can read what is printed. Method: standard output is one JSON document, standard error empty."""
    assert command_status(arguments) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)
    assert printed.err == ""


def test_shares_near_one_are_told_as_typed(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: four nines are not rounded to always. Method: shares with three decimals of a percent."""
    shares = ["--host-availability", "99.996 %", "--time-share", "99.995 %"]
    assert command_status(["size", "--slices", "8x8x8:5", *shares]) == 0
    assert "for 99.995 % of the time, hosts up 99.996 % of theirs:" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["list"], ["list", "policies"], ["validate", "smoke"]], ids=" ".join)
def test_tables_are_aligned(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: tables are readable. Method: no line ends in blanks, no cell holds a line break."""
    assert command_status(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    assert all(line == line.rstrip() for line in lines)


def test_no_arguments_give_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: `opticube` alone helps. Method: what is printed has the lines of the help, and the status of a mistake."""
    assert command_status([]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Usage: opticube")
    assert any(line.split()[:1] == ["run"] for line in lines)


def test_size_gives_the_published_promise(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: the closed form reaches the command. Method: three 1024-chip slices 97 % of the time, known numbers."""
    for host, reconfigurable, static in (("99.0 %", 63, 1424), ("99.5 %", 56, 368), ("99.9 %", 51, 96)):
        arguments = ["size", "--slices", "8x8x16:3", "--time-share", "97 %", "--host-availability", host, "--json"]
        assert command_status(arguments) == 0
        rows = {row["fabric"]: row["cubes"] for row in json.loads(capsys.readouterr().out)["fabrics"]}
        assert (rows["reconfigurable"], rows["static_aligned"]) == (reconfigurable, static)
        assert rows["static_contiguous"] is None


def test_log_says_what_a_real_log_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: the log reaches the command. Method: figures of the README of the Los Alamos data."""
    file = str(shared_file("failures/lanl_system_18.csv.gz"))
    assert command_status(["log", file, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"components", "window_h", "availability", "mtbf_h", "repair_quantiles_h"} <= found.keys()
    assert found["components"] == 1024
    assert found["mtbf_h"] == pytest.approx(7509, abs=0.5)
    assert found["availability"] == pytest.approx(0.999604, abs=5e-7)
    assert command_status(["log", file]) == 0
    text = capsys.readouterr().out
    assert "Repeat offenders" in text
    assert "failures:\n  host:\n    failure_rate: " in text


def test_help_starts_fast_and_light() -> None:
    """Goal: help answers at once. Method: best of three fresh interpreters; nothing heavy is imported."""
    code = (
        "import sys; from sim.cli import command_status; status = command_status(['--help']);"
        "heavy = [m for m in ('numpy', 'pandas', 'numba', 'pydantic', 'yaml') if m in sys.modules];"
        "sys.exit(status or heavy or 0)"
    )
    times = []
    for _ in range(3):
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        times.append(time.monotonic() - began)
        assert done.returncode == 0, done.stderr
        assert "validate" in done.stdout
    assert min(times) < 2.0, "a loaded machine may be slow, but not so slow; `make bench` measures it"


def test_output_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    """Goal: a full disk is status 4. Method: print to /dev/full."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        code = "from sim.cli import main; import sys; sys.argv = ['opticube', 'list', 'pods']; main()"
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr.splitlines() == ["No space left on device; free some space, or write elsewhere with `--out`"]
