"""The folder of a run: written by write-then-rename, locked while in use, kept whole whatever happens.

    scenario.yaml   manifest.json   tables/*.parquet   summary.csv   plots/*   report.html   timeline.json

While a run is in progress its finished sweep points stand under `parts/`, one folder each; `--resume` takes them from
there. A part is complete or absent: it is written beside its place and renamed.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.files import disk_fault, write_whole
from topology.errors import refuse

MANIFEST = "manifest.json"
SCENARIO = "scenario.yaml"
PARTS = "parts"


def table_bytes(table: pd.DataFrame) -> bytes:
    """A table as parquet, the same bytes for the same values."""
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), buffer, compression="zstd")
    return buffer.getvalue()


def table_digest(table: pd.DataFrame) -> str:
    """Digest of a table's columns and values, numbers taken to nine significant digits, whatever library wrote it."""
    text = table.to_csv(index=False, float_format="%.9g", lineterminator="\n")
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class RunFolder:
    """One run on disk. Made by `open_run_folder`; only the holder of its lock writes into it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write_part(self, point: int, tables: Mapping[str, pd.DataFrame], values: Mapping[str, Any]) -> None:
        """Store the tables of one finished sweep point, all of them or none."""
        place = self.path / PARTS / f"{point:05d}"
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            shutil.rmtree(beside, ignore_errors=True)
            beside.mkdir(parents=True)
            for name, table in tables.items():
                (beside / f"{name}.parquet").write_bytes(table_bytes(table))
            (beside / "values.json").write_text(json.dumps(values, sort_keys=True), encoding="utf-8")
            beside.rename(place)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            raise disk_fault(place, error) from error

    def read_part(self, point: int) -> tuple[dict[str, pd.DataFrame], dict[str, Any]] | None:
        """The tables and values of a finished sweep point, or None where it is not finished."""
        place = self.path / PARTS / f"{point:05d}"
        if not (place / "values.json").exists():
            return None
        tables = {file.stem: pd.read_parquet(file) for file in sorted(place.glob("*.parquet"))}
        return tables, json.loads((place / "values.json").read_text(encoding="utf-8"))

    def write_tables(self, tables: Mapping[str, pd.DataFrame]) -> None:
        """Write the tables of the whole run, and `summary.csv`; drop the parts afterwards."""
        for name, table in tables.items():
            if name == "summary":
                write_whole(self.path / "summary.csv", table.to_csv(index=False, lineterminator="\n"))
            else:
                write_whole(self.path / "tables" / f"{name}.parquet", table_bytes(table))
        shutil.rmtree(self.path / PARTS, ignore_errors=True)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write `manifest.json`."""
        write_whole(self.path / MANIFEST, json.dumps(manifest, indent=2, sort_keys=True) + "\n")


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run; raises InputError where `path` is no run or not a finished one."""
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise refuse(str(path), "not the folder of a run", "name a folder that `opticube run` has written") from error
    if not isinstance(manifest, dict):
        raise refuse(str(path / MANIFEST), "not a manifest", "name a folder that `opticube run` has written")
    return manifest


def read_tables(path: Path) -> dict[str, pd.DataFrame]:
    """All tables of a finished run by name, `summary` among them; raises InputError where there are none."""
    read_manifest(path)
    files = sorted((path / "tables").glob("*.parquet"))
    if not files:
        raise refuse(str(path), "the run is not finished", f"finish it with `opticube run ... --out {path} --resume`")
    tables = {}
    for file in files:
        try:
            tables[file.stem] = pd.read_parquet(file)
        except (OSError, ValueError) as error:
            raise refuse(str(file), "can not be read as a table", "run the scenario again") from error
    summary = path / "summary.csv"
    if summary.exists():
        tables["summary"] = pd.read_csv(summary)
    return tables


def next_free_folder(root: Path, name: str) -> Path:
    """`root/NAME-N` with the lowest N above all that exist."""
    taken = [0]
    if root.is_dir():
        pattern = re.compile(rf"{re.escape(name)}-(\d+)")
        taken += [int(match.group(1)) for entry in root.iterdir() if (match := pattern.fullmatch(entry.name))]
    return root / f"{name}-{max(taken) + 1}"


@contextmanager
def open_run_folder(path: Path | None, name: str, *, resume: bool, scenario_yaml: str) -> Iterator[RunFolder]:
    """Make or reopen the folder of a run and hold its lock (freed by the system at death).

    `path` None takes the next `runs/NAME-N`. An existing folder needs `resume`, and then the same resolved scenario;
    raises InputError otherwise, or where another run holds the lock.
    """
    folder = _new_folder(Path("runs"), name) if path is None else path
    if folder.exists() and not folder.is_dir():
        raise refuse(str(folder), "is a file", "name a folder with --out")
    if folder.exists() and any(folder.iterdir()):
        _check_resumable(folder, resume, scenario_yaml)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise disk_fault(folder, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise refuse(str(folder), "another run is writing here", "wait for it, or name another --out") from None
        if not (folder / SCENARIO).exists():
            write_whole(folder / SCENARIO, scenario_yaml)
        yield RunFolder(folder)


def _new_folder(root: Path, name: str) -> Path:
    """Make the next free folder; a run that takes the same number at the same moment gets the next one."""
    while True:
        folder = next_free_folder(root, name)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise disk_fault(folder, error) from error
        return folder


def _check_resumable(folder: Path, resume: bool, scenario_yaml: str) -> None:
    if not resume:
        raise refuse(str(folder), "exists already", "name another --out, or add --resume to go on with it")
    stored = folder / SCENARIO
    if not stored.exists():
        raise refuse(str(folder), "holds files but no run", "name another --out")
    if stored.read_text(encoding="utf-8") != scenario_yaml:
        raise refuse(str(stored), "holds another scenario than the one to be run", "name another --out")
