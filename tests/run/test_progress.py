"""Progress on standard error where it is no terminal: on change, by quarters, and while a long task is at work."""

from __future__ import annotations

import threading
import time

import pytest

import sim.commands
from sim.commands import shown_progress


def test_lines_by_quarters(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: few lines, whatever the number of tasks. Method: a hundred tasks of one kind, then one of another."""
    with shown_progress(quiet=False) as progress:
        assert progress is not None
        for done in range(1, 101):
            progress(done, 101, "histories")
        progress(101, 101, "services")
        progress(0, 0, "pictures and report")
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["histories"] * 4 + ["services", "pictures and report"]
    assert lines[-1] == "pictures and report"


def test_a_long_task_is_told_to_be_at_work(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a task of minutes does not look dead, a short one says nothing. Method: quiet for several of the intervals
    of a twentieth of a second, before the first task is done and after; nothing more once the run is over; `--json`."""
    monkeypatch.setattr(sim.commands, "QUIET_S", 0.05)
    with shown_progress(quiet=False) as progress:
        time.sleep(0.4)
        assert progress is not None
        progress(1, 4, "the pod in operation")
        time.sleep(0.4)
    lines = capsys.readouterr().err.splitlines()
    place = lines.index("the pod in operation: 1 of 4 tasks")
    assert place > 0
    assert all(line.startswith("the first task, at work for ") for line in lines[:place])
    assert len(lines) > place + 1
    assert all(line.startswith("the pod in operation: 1 of 4 tasks, at work for ") for line in lines[place + 1 :])
    threads = threading.active_count()
    with shown_progress(quiet=True) as none:
        assert none is None
        assert threading.active_count() == threads
    time.sleep(0.2)
    assert capsys.readouterr().err == ""
