"""Bad scenarios: exit 2, one line per fault with file, line, path, what is wrong and what to write; nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.cli import command_status
from tests.scenario.bad_scenarios import BASE, CASES, Case


def _written(case: Case, folder: Path) -> Path:
    file = folder / "bad.yaml"
    if case.old:
        assert BASE.count(case.old) == 1, f"{case.name}: the edit must be at one place"
        assert isinstance(case.new, str)
        file.write_text(BASE.replace(case.old, case.new), encoding="utf-8")
    elif case.options:
        file.write_text(BASE, encoding="utf-8")
    else:
        file.write_bytes(case.new if isinstance(case.new, bytes) else case.new.encode())
    return file


def test_the_table_is_large_and_its_base_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: each case is bad for one reason. Method: the unedited scenario passes; names are unique; many cases."""
    file = tmp_path / "base.yaml"
    file.write_text(BASE, encoding="utf-8")
    assert command_status(["validate", str(file)]) == 0
    assert capsys.readouterr().err == ""
    assert len(CASES) >= 100
    assert len({(case.name, bool(case.options)) for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: ("set " if case.options else "") + case.name)
def test_bad_scenario(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a bad scenario is explained. Method: run it by the command; look at status, lines and folder."""
    monkeypatch.chdir(tmp_path)
    file = _written(case, tmp_path)
    options = [part for each in case.options for part in ("--set", each)]
    status = command_status(["run", str(file), "--out", str(tmp_path / "out"), *options])
    printed = capsys.readouterr()
    assert status == 2, printed.err
    assert printed.out == ""
    assert "Traceback" not in printed.err
    lines = printed.err.splitlines()
    start = f"--set {case.options[-1]}: " if case.options else f"{file}{case.place}"
    found = [line for line in lines if case.says in line]
    assert found, f"no line says: {case.says}\n{printed.err}"
    assert any(line.startswith(start) for line in found), f"no line begins with {start}\n{printed.err}"
    assert all("; " in line or ": " in line for line in lines)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.yaml"], "something was written"


def test_all_faults_are_listed_from_top_to_bottom(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: one round of mending is enough. Method: five faults in five places give five lines in order."""
    text = (
        BASE.replace("60 s", "60").replace("crews: 4", "crew: 4").replace("99.5 %}", "2}").replace("seed: 1", "seed: x")
    )
    file = tmp_path / "bad.yaml"
    file.write_text(text.replace("ttft: 2 s", "ttft: 2 m"), encoding="utf-8")
    assert command_status(["validate", str(file)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [int(line.split(":")[1]) for line in lines] == [4, 6, 7, 30, 31]


def test_faults_of_several_files_are_listed_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: validate speaks of every file. Method: one missing and one bad file give a line each."""
    file = tmp_path / "bad.yaml"
    file.write_text("name: x\n", encoding="utf-8")
    assert command_status(["validate", str(file), str(tmp_path / "none.yaml"), "availabilty"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "the scenario asks for nothing" in lines[0]
    assert lines[1].endswith("there is no such file; check the path")
    assert "write `availability`" in lines[2]
