"""Every example of the pages runs as it stands and prints the numbers that the pages print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, Reader


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_newcomer_gets_to_her_own_log(desk: Path) -> None:
    """Goal: from clone to one's own failure log on one's own pod by the page alone. Method: do what it says."""
    reader = Reader(DOCS / "quick_start.md")
    reader.read()
    assert reader.ran >= 4


def test_own_machines_run(desk: Path) -> None:
    """Goal: each part of a machine can be one's own, as shown. Method: do what the page says."""
    reader = Reader(DOCS / "own_machine.md")
    reader.read()
    assert reader.ran >= 10


def test_the_example_of_the_decisions_runs(desk: Path) -> None:
    """Goal: what is measured there is measured. Method: do what the page says."""
    reader = Reader(DOCS / "decisions.md")
    reader.read()
    assert reader.ran == 1


@pytest.mark.parametrize("room", ["topology", "ocs", "workloads", pytest.param("sim", marks=pytest.mark.slow)])
def test_rooms_say_what_they_do(desk: Path, room: str) -> None:
    """Goal: the numbers of each room are those of its code. Method: do what the page says."""
    reader = Reader(DOCS / "rooms" / f"{room}.md")
    reader.read()
    assert reader.ran >= 1
