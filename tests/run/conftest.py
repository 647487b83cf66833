"""Runs that many tests look at: made once."""

from __future__ import annotations

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
