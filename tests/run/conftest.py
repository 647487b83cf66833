"""Runs that many tests look at: made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sim.report.write
from sim.result import Result
from sim.simulation import run
from tests.run.cases import MACHINE, OPERATED, PROMISE, SERVED, loaded


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The finished run of MACHINE in a folder (do not change it: copy it)."""
    return run(loaded(MACHINE), out=tmp_path_factory.mktemp("machine") / "run", workers=1)


@pytest.fixture(scope="session")
def served() -> Result:
    """The result of SERVED, without a folder."""
    return run(loaded(SERVED), workers=1)


@pytest.fixture(scope="session")
def operated() -> Result:
    """The result of OPERATED, without a folder."""
    return run(loaded(OPERATED), workers=1)


@pytest.fixture
def without_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in this process draw no pictures, which takes longer than all the rest of a small run."""
    monkeypatch.setattr(sim.report.write, "write_report", lambda *arguments, **options: None)


@pytest.fixture
def machine_file(tmp_path: Path) -> Path:
    """MACHINE as a file."""
    file = tmp_path / "machine.yaml"
    file.write_text(MACHINE, encoding="utf-8")
    return file


@pytest.fixture
def promise_file(tmp_path: Path) -> Path:
    """PROMISE as a file."""
    file = tmp_path / "promise.yaml"
    file.write_text(PROMISE, encoding="utf-8")
    return file


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
