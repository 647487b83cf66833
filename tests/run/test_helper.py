"""The process that draws the pictures of a run: the same files as without it, gone on errors, missed when lost."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from sim.cli import command_status
from sim.executors import open_helper, start_task
from sim.picture_names import PictureName
from sim.report.plots import DRAWINGS
from tests.run.cases import MACHINE, every_name, opticube
from topology.errors import EnvironmentFault


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Status, output and complaints of a command that ends by itself."""
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def test_a_run_draws_what_report_draws(tmp_path: Path) -> None:
    """Goal: pictures and page do not depend on who draws. Method: every file of a run with two workers and the helper,
    in a process of its own, against `report`, which draws here and alone."""
    scenario = tmp_path / "machine.yaml"
    scenario.write_text(MACHINE, encoding="utf-8")
    setting = ["--set", "study.delivered=null", "--set", "sweep.failures.host.availability=[98 %]"]
    command = opticube("run", str(scenario), *setting, "--out", "run", "--workers", "2", cwd=tmp_path)
    status, _, err = finished(command)
    assert status == 0, err
    folder = tmp_path / "run"
    names = [name for name in every_name(folder) if name.startswith("plots/") or name == "report.html"]
    assert {"plots/availability.svg", "plots/promise.png", "report.html"} <= set(names)
    drawn = {name: (folder / name).read_bytes() for name in names}
    assert command_status(["report", str(folder)]) == 0
    assert {name: (folder / name).read_bytes() for name in names} == drawn


def test_only_pictures_that_are_asked_for(
    tmp_path: Path, promise_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a run draws all it has something for, or what its scenario names. Method: a promise, with no picture, its
    own and one that it has nothing for, with a name that is none; the same from the stored run. Every picture is named.
    """
    assert list(DRAWINGS) == list(PictureName)
    for asked, drawn in (("[]", []), ("[ledger,promise]", ["plots/promise.png", "plots/promise.svg"])):
        folder = tmp_path / f"run{len(drawn)}"
        setting = ["--set", f"run.pictures={asked}", "--out", str(folder), "--workers", "1"]
        assert command_status(["run", str(promise_file), *setting]) == 0
        page = (folder / "report.html").read_bytes()
        for _ in range(2):
            assert [name for name in every_name(folder) if name.startswith("plots/")] == drawn
            assert (folder / "report.html").read_bytes() == page
            assert page.count(b"<figure") == len(drawn) // 2
            assert command_status(["report", str(folder)]) == 0
    capsys.readouterr()
    assert command_status(["run", str(promise_file), "--set", "run.pictures=[promises]"]) == 2
    assert "run.pictures.0: `promises` is not known here; write `promise`" in capsys.readouterr().err


def test_an_error_ends_the_helper(tmp_path: Path) -> None:
    """Goal: a fault is one line, and nothing stays behind. Method: a scenario that is not there, two workers; both
    pipes end, so no process holds them."""
    status, out, err = finished(opticube("run", "nosuch", "--workers", "2", cwd=tmp_path))
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert "no shipped scenario" in line


def test_no_helper_where_nothing_is_to_be_gained() -> None:
    """Goal: a program that has imported everything pays for no further process. Method: this one, and one worker."""
    for workers in (1, 2):
        with open_helper(workers, "gc", "collect", shared="gc") as helper:
            assert helper is None


def test_a_task_started_ahead() -> None:
    """Goal: a result, here or elsewhere, or a fault that says what to do. Method: one of each; a worker that dies."""
    assert start_task(None, divmod, 7, 2)() == (3, 1)
    with ProcessPoolExecutor(1) as pool:
        assert start_task(pool, divmod, 7, 2)() == (3, 1)
        dying = start_task(pool, os._exit, 1)
        with pytest.raises(EnvironmentFault, match="--resume"):
            dying()
        with pytest.raises(EnvironmentFault, match="--resume"):
            start_task(pool, divmod, 7, 2)
