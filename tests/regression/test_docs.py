"""The page about continuous integration: its commands run, its workflow is one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from sim.cli import command_status

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, flags=re.M | re.S)
MINE = """\
name: mine
pod: {cubes: 8, grid: 2x2x2}
failures:
  host: {availability: 99 %, repair: {kind: exponential, mean: 10 h}}
study:
  availability: {slice_chips: [64, 256], time_share: 90 %, horizon: 30 d, replications: 8}
"""


def run_line(line: str) -> int:
    """The status of one command line of the page."""
    words = shlex.split(line)
    assert words[0] == "opticube"
    return command_status(words[1:])


def test_the_commands_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: copy and paste works. Method: every command of the page in order, those of the workflow among them, on a
    small scenario in an empty folder; the files that the workflow reads are there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sim.report.write.write_report", lambda *arguments, **options: None)
    Path("mine.yaml").write_text(MINE)
    count = 0
    for kind, text in BLOCKS:
        lines = text.splitlines()
        if kind == "yaml":
            steps: list[dict[str, Any]] = yaml.safe_load(text)["jobs"]["check"]["steps"]
            lines = [step["run"] for step in steps if "run" in step]
            assert lines[-1].split()[1] == "opticube.md"
        for line in lines:
            if line.startswith("opticube "):
                assert run_line(line) == 0, line
                count += 1
    assert count == 6
    assert {path.name for path in tmp_path.glob("opticube.*")} == {"opticube.xml", "opticube.md", "opticube.json"}
    assert Path("compare.md").read_text().startswith("## mine: after against before")
    capsys.readouterr()


def test_the_workflow_is_one() -> None:
    """Goal: the block is a workflow. Method: read as YAML: triggers, a runner, steps that use or run something."""
    (text,) = [text for kind, text in BLOCKS if kind == "yaml"]
    workflow = yaml.load(text, Loader=yaml.BaseLoader)
    assert workflow["on"] == ["pull_request"]
    job = workflow["jobs"]["check"]
    assert job["runs-on"] == "ubuntu-latest"
    assert all(("uses" in step) != ("run" in step) for step in job["steps"])
