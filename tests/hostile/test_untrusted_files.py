"""Nothing that stands in a file is ever executed, and no name in a file leads out of the folder that is written."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sim.report.write
from sim.cli import command_status
from sim.run_folder import table_bytes
from sim.simulation import run
from tests.run.cases import MACHINE, PROMISE, ROOT, bytes_of, differing, files_of, loaded

EXECUTES = re.compile(
    r"\b(pickle|marshal|shelve|dill|cloudpickle|joblib|zipfile|tarfile|allow_pickle|unsafe_load|full_load|np\.load"
    r"|yaml\.load|extractall|os\.system|popen|subprocess)\b|(?<![\w.])(eval|exec)\("
)
"""What executes, or unpacks to any place, what stands in a file. (Compiled code is kept in the user's own cache.)"""


def test_no_code_of_ours_can_execute_a_file() -> None:
    """Goal: unpickling and the like are impossible, not just avoided. Method: words in the sources."""
    files = [path for room in ("sim", "topology", "ocs", "workloads") for path in (ROOT / room).rglob("*.py")]
    assert len(files) > 300
    assert [str(file) for file in files if EXECUTES.search(file.read_text(encoding="utf-8"))] == []
    assert EXECUTES.search("import pickle")
    assert EXECUTES.search("x = eval(text)")


class Bomb:
    """What writes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return os.mkdir, (str(self.mark), 0o755)


def _planted(folder: Path, mark: Path) -> None:
    """Put a bomb into everything that a careless reader might open."""
    bomb = pickle.dumps(Bomb(mark))
    array = io.BytesIO()
    np.save(array, np.array([Bomb(mark)], dtype=object), allow_pickle=True)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("../../escaped.txt", "x")
        packed.writestr("values.npy", array.getvalue())
    metadata = {b"pandas": b"not json", b"ARROW:schema": bomb, b"PANDAS_ATTRS": bomb}
    table = pa.table({"value": pa.array([bomb], pa.binary())}).replace_schema_metadata(metadata)
    odd = io.BytesIO()
    pq.write_table(table, odd)
    for place in (folder, folder / "tables", folder / "plots", folder / "parts" / "00000"):
        place.mkdir(parents=True, exist_ok=True)
        for name in ("values.pkl", "cache.pickle", "values.npy", "tables.npz", "x.parquet"):
            (place / name).write_bytes(
                {"npy": array, "npz": archive, "parquet": odd}.get(name[-3:], archive).getvalue()
            )
        for name in ("cache.pickle", "values.pkl", "cliff.parquet"):
            (place / name).write_bytes(bomb)
    (folder / "parts" / "00000" / "values.json").write_bytes(bomb)


@pytest.mark.parametrize("line", ["report RUN --format md", "export RUN --format openmetrics", "compare RUN RUN",
                                  "replay RUN --replication 0", "check RUN --baseline bomb.pickle"])  # fmt: skip
def test_bombs_in_a_run_folder_never_go_off(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a run folder of somebody else can be looked at. Method: pickles, object arrays and archives that would make
    a folder when read, under all names that a reader might look for; then every command that reads a run."""
    mark, folder = tmp_path / "exploded", tmp_path / "run"
    pickle.loads(pickle.dumps(Bomb(mark)))
    assert mark.exists(), "the bomb works"
    mark.rmdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sim.report.write, "write_report", lambda *arguments, **options: folder)
    run(loaded(MACHINE, "study.delivered=null", "sweep={pod.fabric: [any_host]}"), out=folder, workers=1)
    _planted(folder, mark)
    Path("bomb.pickle").write_bytes(pickle.dumps(Bomb(mark)))
    assert command_status(line.replace("RUN", str(folder)).split()) == 2
    printed = capsys.readouterr().err
    assert "cliff.parquet: can not be read as a table" in printed or "bomb.pickle: can not be read as a base" in printed
    assert not mark.exists()
    assert not (tmp_path / "escaped.txt").exists()


def test_bombs_in_parts_are_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: `--resume` trusts no part that is not whole. Method: parts of bombs, of one changed byte, and whole ones
    with names that lead out; the tables come out as if nothing had been there."""
    mark, out = tmp_path / "exploded", tmp_path / "run"
    scenario = loaded(MACHINE, "study.delivered=null", "sweep={pod.fabric: [any_host, reconfigurable]}")
    monkeypatch.setattr(sim.report.write, "write_report", lambda *arguments, **options: None)
    wanted = bytes_of(run(scenario, out=out, workers=1))
    (out / "manifest.json").unlink()
    _planted(out, mark)
    (out / "tables" / "cliff.parquet").unlink()
    assert differing(bytes_of(run(scenario, out=out, workers=1, resume=True)), wanted) == []
    assert not mark.exists()


def test_a_part_with_one_changed_byte_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a bit that a disk lost reaches no number. Method: interrupt after the first point; change one byte of a
    number in its part; resume."""
    out, scenario = tmp_path / "run", loaded(MACHINE, "study.delivered=null", "repair.crews=1")
    monkeypatch.setattr(sim.report.write, "write_report", lambda *arguments, **options: None)
    wanted = bytes_of(run(scenario, workers=1))

    def stop(done: int, total: int, about: str) -> None:
        if (out / "parts" / "00000").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(scenario, out=out, workers=1, progress=stop)
    file = out / "parts" / "00000" / "replications.parquet"
    table = pd.read_parquet(file)
    table.loc[0, "value"] = 0.123
    file.write_bytes(table_bytes(table))
    assert differing(bytes_of(run(scenario, out=out, workers=1, resume=True)), wanted) == []


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/b", "..", ".", "", "a\nb", "a b", "-x", "x" * 65, "con/../x"])
def test_names_of_scenarios_and_services_stay_in_their_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: no name in a file says where we write. Method: names that lead out, or are none, of a scenario; status,
    and all files below the folder's parent."""
    (tmp_path / "deep" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "here")
    Path("bad.yaml").write_text(PROMISE.replace("name: promise", f"name: {json.dumps(name)}"))
    assert command_status(["run", "bad.yaml", "--workers", "1"]) == 2
    assert "can not name a folder" in capsys.readouterr().err
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()] == ["deep/here/bad.yaml"]


def test_links_in_the_way_are_not_followed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: what somebody planted in a shared folder overwrites nothing of ours. Method: a folder of a run whose
    `summary.csv` and a picture are links to a file elsewhere, finished by `--resume`: the links are replaced."""
    out, victim = tmp_path / "run", tmp_path / "thesis.tex"
    victim.write_text("years of work")
    monkeypatch.setattr(sim.report.write, "write_report", lambda *arguments, **options: None)
    run(loaded(PROMISE), out=out, workers=1)
    wanted = files_of(out)
    (out / "manifest.json").unlink()
    for name in ("summary.csv", "tables/promise.parquet", "timeline.json", "manifest.json"):
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(victim)
    (out / "manifest.json").unlink()
    run(loaded(PROMISE), out=out, workers=1, resume=True)
    assert differing(files_of(out), wanted) == []
    assert victim.read_text() == "years of work"
    shutil.rmtree(out)
