"""The example of docs/costs.md runs and gives the figures in its comments; so do the command lines of the README."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from sim.cli import command_status

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = [
    line
    for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    if line.startswith(("opticube cost ", "opticube plan "))
]


def test_the_example_of_the_page() -> None:
    """Goal: the page's Python runs. Method: run it; the figures; cache beats weights once."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "costs.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    cost = names["cost"]
    assert round(float(cost.seconds[1, 1]), 4) == 0.0297
    assert str(cost.binds[1, 1]) == "collectives"
    assert round(100 * float(cost.mfu[1, 1]), 1) == 13.2
    assert cost.seconds.shape == (3, 3)
    over = cost.bytes["hbm"]["kv_read"] > cost.bytes["hbm"]["weights"]
    assert over.nonzero()[0].tolist() == over.nonzero()[1].tolist() == [2]


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_readme(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: what the README shows works. Method: run each line up to its remark: every option has one value."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)[1:]
    count = (3 if words[0] == "plan" else 4) + 2 * sum(word.startswith("--") for word in words)
    assert command_status(words[:count]) == 0
    assert "ms" in capsys.readouterr().out
    assert len(COMMANDS) >= 3
