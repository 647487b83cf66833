"""Ctrl-C at any moment: within a second the command ends, with the folder and the command that goes on."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sim.cli import command_status
from tests.run.cases import MACHINE, PROMISE, SERVED, environment, opticube

ANSWER_S = 1.0
"""The promise, on a computer that is not busy with other things."""
BUSY_S = 2.0
"""Patience beside other tests; measured: 0.01 to 0.3 s."""

LONG = MACHINE.replace("horizon: 30 d, replications: 3", "horizon: 3650 d, replications: 400")
SLICES = MACHINE.replace("horizon: 10 d, replications: 2", "horizon: 36500 d, replications: 2")
STUDIES = re.compile(r"  (load_curve|disturbance): .*\n")
TOKENS = STUDIES.sub("", SERVED.replace("requests: 400, replications: 2", "requests: 3e6, replications: 2"))


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # background jobs are deaf to it


def _interrupted(
    text: str, workers: int, moment: Callable[[subprocess.Popen[str], Path], bool], tmp_path: Path
) -> tuple[float, str, Path]:
    """Start a run, press Ctrl-C once `moment` says so; how long it took, its last line, the folder."""
    (tmp_path / "long.yaml").write_text(text)
    out = tmp_path / "a run"
    process = opticube(
        "run", "long.yaml", "--out", str(out), "--workers", str(workers), cwd=tmp_path, start_new_session=True,
        preexec_fn=_interruptible,
    )  # fmt: skip
    while not moment(process, out):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    took_s = time.monotonic() - began
    assert process.returncode == 3, errors
    assert "Traceback" not in errors
    return took_s, errors.splitlines()[-1], out


def after(seconds: float) -> Callable[[subprocess.Popen[str], Path], bool]:
    """So long after the start: in the midst of imports."""
    began = time.monotonic()
    return lambda process, out: time.monotonic() - began > seconds


def told(words: str) -> Callable[[subprocess.Popen[str], Path], bool]:
    """Once progress tells of a task of this kind."""

    def moment(process: subprocess.Popen[str], out: Path) -> bool:
        assert process.stderr is not None
        return words in process.stderr.readline()

    return moment


def there(name: str) -> Callable[[subprocess.Popen[str], Path], bool]:
    """Once a file or folder is there."""
    return lambda process, out: (out / name).exists()


MOMENTS: dict[str, tuple[str, int, Callable[[], Callable[[subprocess.Popen[str], Path], bool]]]] = {
    "starting": (LONG, 1, lambda: after(0.2)),
    "importing": (LONG, 1, lambda: after(random.uniform(0.2, 2.0))),
    "the clock": (SLICES, 1, lambda: told("failure histories: 3 of")),
    "tokens": (TOKENS, 1, lambda: told("services over slice sizes")),
    "workers": (LONG, 2, lambda: told("failure histories")),
    "drawing": (MACHINE, 1, lambda: there("timeline.json")),
    "writing": (PROMISE, 1, lambda: there("tables")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MOMENTS)
def test_ctrl_c_is_answered_within_a_second(name: str, tmp_path: Path) -> None:
    """Goal: whatever it does, a run ends when asked, and says where it is and how to go on. Method: SIGINT to the whole
    group, as a terminal sends it, at a moment of each kind; the time until all is over; then nobody is left."""
    text, workers, moment = MOMENTS[name]
    took_s, line, out = _interrupted(text, workers, moment(), tmp_path)
    assert took_s < BUSY_S, f"{ANSWER_S} s are promised"
    if name in ("starting", "importing"):
        assert line in ("interrupted before it was done; run it again", _goes_on(out, workers))
    else:
        assert line == _goes_on(out, workers)


def _goes_on(out: Path, workers: int) -> str:
    command = shlex.join(["opticube", "run", "long.yaml", "--workers", str(workers), "--out", str(out), "--resume"])
    return f"interrupted: finished sweep points are kept in {out}; go on with `{command}`"


DEAF = """
import time
from sim.interruptions import answer_signals, when_interrupted
answer_signals()
when_interrupted("interrupted: go on with `this`")
ready = False
while True:
    try:
        if not ready:
            print("ready", flush=True)
            ready = True
        time.sleep(60)
    except KeyboardInterrupt:
        pass  # as an import, a callback or a library may do
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_that_is_swallowed_ends_all_the_same(number: int) -> None:
    """Goal: the promise does not hang on Python's KeyboardInterrupt. Method: a process that swallows every one."""
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        preexec_fn=_interruptible,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    began = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate()
    assert time.monotonic() - began < BUSY_S
    assert process.returncode == 3
    assert errors == "interrupted: go on with `this`\n"


@pytest.mark.parametrize(
    "line", ["worth smoke --knob health.detection=x2", "swarm --runs 1", "plan a b --input 1 --output 1"]
)
def test_commands_that_keep_nothing_promise_nothing(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: `--resume` is told only where it is known. Method: Ctrl-C in other commands than `run`."""

    def pressed(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    for place in ("sim.cli_worth.worth_command", "sim.swarm.swarm_command", "sim.cli_plan.plan_command"):
        monkeypatch.setattr(place, pressed)
    assert command_status(line.split()) == 3
    assert capsys.readouterr().err == "interrupted before it was done; run it again\n"
