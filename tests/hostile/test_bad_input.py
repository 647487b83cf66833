"""Bad input in total: counted, and each answered by status 2 and lines that say where, what and what to do."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

import sim.report.write
from sim.cli import command_status
from sim.run_folder import read_manifest, table_bytes, table_digest
from sim.simulation import run
from tests.failures.test_failure_logs import BAD_GENERIC, BAD_GPU, BAD_LANL
from tests.hostile.bad_input import BAD, Bad, request_rows
from tests.run.cases import MACHINE, loaded
from tests.run.test_checks import BAD as BAD_BASELINES
from tests.scenario.bad_scenarios import CASES
from tests.workloads.test_trace_formats import FAULTY
from tests.workloads.test_traces import FAULTY_ROWS


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run without pictures, to which two recorded requests of a service are added."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sim.report.write, "write_report", lambda *arguments, **options: None)
        run(
            loaded(MACHINE, "study.delivered.replications=1", "study.availability.replications=2"),
            out=folder,
            workers=1,
        )
    (folder / "tables" / "requests.parquet").write_bytes(table_bytes(request_rows()))
    text, digest = (folder / "manifest.json").read_text(), table_digest(request_rows())
    (folder / "manifest.json").write_text(text.replace('"tables": {', f'"tables": {{"requests": "{digest}",', 1))
    assert read_manifest(folder)["tables"]["requests"] == digest
    return folder


def test_there_are_many_of_every_kind() -> None:
    """Goal: bad input is tested in the breadth that users find it. Method: all tables of bad inputs, counted; none is
    there twice."""
    tables = [CASES, FAULTY, FAULTY_ROWS, BAD_GENERIC, BAD_LANL, BAD_GPU, BAD_BASELINES]
    assert len(BAD) + sum(map(len, tables)) >= 400
    assert len({(bad.line, tuple(bad.files.items()), bad.says, bad.change) for bad in BAD}) == len(BAD) >= 150
    assert len(FAULTY) + len(FAULTY_ROWS) >= 50
    kinds = Counter(bad.kind for bad in BAD)
    assert set(kinds) == {
        "option", "swarm", "knob", "own catalogue", "failure log", "request trace", "run folder", "baseline", "no file"
    }  # fmt: skip
    assert min(kinds.values()) >= 6


def _state_of(folder: Path) -> dict[str, tuple[int, int]]:
    """All that is in a folder: names, sizes, times of change."""
    found = {str(path): path.lstat() for path in folder.rglob("*")}
    return {name: (status.st_size, status.st_mtime_ns) for name, status in found.items()}


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad.kind}: {' '.join(bad.line)[:60]}: {bad.says[:40]}")
def test_bad_input(
    bad: Bad, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: whatever is wrong is told in lines that help, and nothing is touched. Method: the command in a folder with
    the files of the case and a copy of a run; status, lines and the folder afterwards."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, "run", copy_function=os.link)
    Path("dir.png").mkdir()
    Path("taken").mkdir()
    Path("taken/thesis.tex").touch()
    Path("astray").symlink_to("nowhere")
    for name, content in bad.files.items():
        Path(name).write_bytes(content)
    if bad.change is not None:
        bad.change(tmp_path / "run")
    before = _state_of(tmp_path)
    status = command_status([word.replace("{run}", "run") for word in bad.line])
    printed = capsys.readouterr()
    assert status == 2, printed.err
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert any(bad.says in line and line.startswith(bad.place.replace("{run}", "run")) for line in lines), printed.err
    assert all(10 < len(line) < 1_500 and (": " in line or "; " in line) for line in lines)
    assert "Traceback" not in printed.err
    assert "fault of opticube" not in printed.err
    assert _state_of(tmp_path) == before
