"""Progress on standard error where it is no terminal: on change, by quarters, and while a long task is at work."""

from __future__ import annotations

import os
import pty
import re
import sys
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


def test_a_terminal_shows_the_time_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: people see what is done and how long it will take; nothing of it is left on the screen. Method: standard
    error is a terminal; tasks at an even pace; the bar is drawn there, the line is cleared at the end."""
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as terminal:  # noqa: PTH123
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        with shown_progress(quiet=False) as progress:
            assert progress is not None
            for done in range(1, 8):
                progress(done, 100, "failure histories")
                time.sleep(0.12)
        shown = os.read(ours, 1_000_000).decode()
    os.close(ours)
    assert "failure histories" in shown
    left = [int(seconds) for seconds in re.findall(r"0:00:0\d\S* \S*0:00:(\d\d)", shown)]
    assert left, shown
    assert all(5 <= seconds <= 40 for seconds in left), "some 93 tasks of 0.12 s are left"
    assert shown.rstrip().endswith("\x1b[2K")
    assert capsys.readouterr().out == ""
