"""The folder of a run: written by write-then-rename, locked while in use, kept whole whatever happens.

    scenario.yaml   manifest.json   tables/*.parquet   summary.csv   plots/*   report.html   timeline.json

While a run is in progress its finished sweep points stand under `parts/`, one folder each; `--resume` takes them from
there. A part is complete or absent: it is written beside its place and renamed. The manifest is written last: a folder
with a manifest and without parts is a finished run.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import math
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.files import disk_fault, write_whole
from sim.run_manifest import manifest_flaw
from sim.run_tables import SPECS
from sim.tables import DType
from topology.errors import InputError, refuse

MANIFEST = "manifest.json"
MANIFEST_KEYS = ("name", "description", "version", "seed", "wall_time_s", "points", "settings", "limits", "warnings")
"""Without these no report can be written of a run."""
SCENARIO = "scenario.yaml"
SUMMARY = "summary.csv"
TIMELINE = "timeline.json"
PARTS = "parts"
LOCK = ".lock"
AGAIN = "run the scenario again"

_open_here: set[str] = set()
"""Folders that this process writes into: the system's lock tells processes apart, not threads."""
_opening = threading.Lock()


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

    def write_part(
        self, point: int, tables: Mapping[str, pd.DataFrame], values: Mapping[str, Any], made_from: Mapping[str, str]
    ) -> None:
        """Store the tables of one finished sweep point, all of them or none.

        `made_from` says which program and which input files it comes from: only the same take it up again.
        """
        place = self._part(point)
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        files = {f"{name}.parquet": table_bytes(table) for name, table in sorted(tables.items())}
        about = {"files": _digests(files), "values": dict(values), "made_from": dict(made_from)}
        try:
            shutil.rmtree(beside, ignore_errors=True)
            beside.mkdir(parents=True)
            for name, data in files.items():
                (beside / name).write_bytes(data)
            (beside / "values.json").write_text(json.dumps(about, sort_keys=True), encoding="utf-8")
            shutil.rmtree(place, ignore_errors=True)
            beside.rename(place)
        except OSError as error:
            raise disk_fault(place, error) from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def read_part(
        self, point: int, made_from: Mapping[str, str]
    ) -> tuple[dict[str, pd.DataFrame], dict[str, Any]] | None:
        """The tables and values of a finished sweep point; None where unfinished, damaged or not `made_from`."""
        place = self._part(point)
        try:
            about = json.loads((place / "values.json").read_text(encoding="utf-8"))
            if about["made_from"] != dict(made_from):
                return None
            files = {f"{name}.parquet": name for name in SPECS}
            data = {file: (place / file).read_bytes() for file in about["files"] if file in files}
            if _digests(data) != about["files"]:
                return None
            return {files[file]: _table_of(files[file], found) for file, found in data.items()}, dict(about["values"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _part(self, point: int) -> Path:
        return self.path / PARTS / f"{point:05d}"

    def write_tables(self, tables: Mapping[str, pd.DataFrame]) -> None:
        """Write the tables of the whole run, and `summary.csv`."""
        for name, table in tables.items():
            if name == "summary":
                write_whole(self.path / SUMMARY, table.to_csv(index=False, lineterminator="\n"))
            else:
                write_whole(self.path / "tables" / f"{name}.parquet", table_bytes(table))

    def write_timeline(self, timeline: Mapping[str, Any]) -> None:
        """Write `timeline.json`."""
        write_whole(self.path / TIMELINE, json.dumps(timeline, separators=(",", ":")) + "\n")

    def finish(self, manifest: Mapping[str, Any]) -> None:
        """Write `manifest.json`, which makes the run a finished one, and drop the parts."""
        write_whole(self.path / MANIFEST, json.dumps(manifest, indent=2, sort_keys=True) + "\n")
        shutil.rmtree(self.path / PARTS, ignore_errors=True)

    def remove_leftovers(self) -> None:
        """Remove half-written files of a run that was killed."""
        for leftover in [*self.path.glob(".*.part"), *self.path.glob("*/.*.part")]:
            leftover.unlink(missing_ok=True)
        for leftover in (self.path / PARTS).glob(".*"):
            shutil.rmtree(leftover, ignore_errors=True)


def is_finished(path: Path, scenario_yaml: str) -> bool:
    """Whether the folder holds a finished run of this very scenario."""
    try:
        same = (path / SCENARIO).read_text(encoding="utf-8") == scenario_yaml
    except (OSError, ValueError):
        return False
    return same and (path / MANIFEST).exists() and not (path / PARTS).exists()


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run; raises InputError where `path` is no run or not a finished one."""
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if (path / SCENARIO).exists() and not (path / MANIFEST).exists():
            write = f"finish it with `opticube run {path / SCENARIO} --out {path} --resume`"
            raise refuse(str(path), "the run is not finished", write) from error
        raise refuse(str(path), "not the folder of a run", "name a folder that `opticube run` has written") from error
    if not isinstance(manifest, dict) or any(key not in manifest for key in MANIFEST_KEYS):
        raise refuse(str(path / MANIFEST), "not a manifest", "name a folder that `opticube run` has written")
    flaw = manifest_flaw(manifest)
    if flaw is not None:
        raise refuse(str(path / MANIFEST), f"is damaged: {flaw}", AGAIN)
    return manifest


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest()[:32] for name, data in files.items()}


def _table_of(name: str, data: bytes) -> pd.DataFrame:
    """A table of a file's bytes; ValueError or KeyError where it is not as declared."""
    table = pd.read_parquet(io.BytesIO(data))
    spec = SPECS[name]
    spec.check(table[spec.names])
    if any(str(table[key].dtype) != DType.TEXT for key in table.columns if key not in spec.names):
        raise ValueError(f"table {name} has swept keys that are no text")
    return table


def read_tables(path: Path) -> dict[str, pd.DataFrame]:
    """All tables of a finished run by name, `summary` among them; raises InputError where there are none."""
    read_manifest(path)
    tables = {}
    for file in [*sorted((path / "tables").glob("*.parquet")), path / SUMMARY]:
        if file.stem not in SPECS:
            continue
        try:
            tables[file.stem] = read_summary(file) if file.name == SUMMARY else _table_of(file.stem, file.read_bytes())
        except (OSError, ValueError, KeyError) as error:
            raise refuse(str(file), "can not be read as a table", AGAIN) from error
    return tables


@contextmanager
def blame_changed_tables(path: Path) -> Iterator[None]:
    """Around work with the tables of a finished run: where it fails and they are not those that were written, raises
    InputError that names them. Whatever else fails is a fault of ours, and stays what it is."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        written, found = read_manifest(path).get("tables", {}), read_tables(path)
        changed = [name for name in written if name not in found or table_digest(found[name]) != written[name]]
        if not changed:
            raise
        what = f"{', '.join(changed[:5])}: changed since the run wrote {'it' if len(changed) == 1 else 'them'}"
        raise refuse(str(path / "tables"), what, AGAIN) from error


def read_summary(file: Path) -> pd.DataFrame:
    """`summary.csv` as the table that was written, bit by bit: declared columns as declared, swept keys as text."""
    table = pd.read_csv(file, dtype="string", keep_default_na=False, na_values=[""])
    for column in SPECS["summary"].columns:
        if column.dtype is DType.FLOAT:
            # texts to numbers by Python, which rounds correctly (the fast reader of pandas may be off by one bit)
            table[column.name] = pd.Series(
                [math.nan if pd.isna(text) else float(text) for text in table[column.name]], dtype="float64"
            )
        else:
            dtype: Any = column.dtype.value
            table[column.name] = table[column.name].astype(dtype)
    return table


def read_timeline(path: Path) -> dict[str, Any]:
    """The timeline of a finished run; raises InputError where it can not be read."""
    try:
        timeline = json.loads((path / TIMELINE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise refuse(str(path / TIMELINE), "can not be read as a timeline", AGAIN) from error
    if not isinstance(timeline, dict):
        raise refuse(str(path / TIMELINE), "can not be read as a timeline", AGAIN)
    return timeline


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
    raises InputError otherwise, or where another run holds the lock. A new folder goes again where the run turns out to
    be impossible before any of it is finished.
    """
    is_new = path is None or not path.exists()
    folder = _new_folder(Path("runs"), name) if path is None else path
    check_usable(folder, resume=resume, scenario_yaml=scenario_yaml)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_fault(folder, error) from error
    with _locked(folder):
        if not (folder / SCENARIO).exists():
            write_whole(folder / SCENARIO, scenario_yaml)
        opened = RunFolder(folder)
        opened.remove_leftovers()
        try:
            yield opened
        except InputError:
            if is_new and not (folder / PARTS).exists():
                shutil.rmtree(folder, ignore_errors=True)
            raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. Workers that outlive their parent do not inherit a lock of this sort."""
    own, busy = str(folder.resolve()), refuse(str(folder), "another run is writing here", "wait, or name another --out")
    with _opening:
        if own in _open_here:
            raise busy
        _open_here.add(own)
    try:
        with (folder / LOCK).open("w") as lock:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                raise busy from None
            yield
    finally:
        with _opening:
            _open_here.discard(own)


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


def check_usable(folder: Path, *, resume: bool, scenario_yaml: str) -> None:
    """Refuse a folder that a run of this scenario can not be written to: what is there is never overwritten."""
    for place in (folder, *folder.parents):
        if place.is_symlink() and not place.exists():
            raise refuse(str(place), "is a link that leads nowhere", "name a folder with --out")
        if place.exists() and not place.is_dir():
            raise refuse(str(place), "is a file", "name a folder with --out")
    held = [entry.name for entry in folder.iterdir()] if folder.exists() else []
    if all(name == LOCK or name.endswith(".part") for name in held):
        return
    if not resume:
        raise refuse(str(folder), "exists already", "name another --out, or add --resume to go on with it")
    stored = folder / SCENARIO
    if not stored.exists():
        raise refuse(str(folder), "holds files but no run", "name another --out")
    if stored.is_dir() or stored.read_bytes() != scenario_yaml.encode():
        raise refuse(str(stored), "holds another scenario than the one to be run", "name another --out")
