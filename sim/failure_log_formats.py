"""The formats of failure logs: a generic CSV, the failure data of Los Alamos, the GPU server fault trace; `.gz` or not.

Each reader turns a text into rows of outages. What can not be read is refused with the file, the line and what to
write; what is only odd (outages of length zero, overlaps, rows out of order) is taken as it is.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from sim.histories import US_PER_S, ComponentKind
from topology.errors import Fault, InputError, refuse
from workloads.file_text import bounded_bytes

US_PER_MINUTE = 60 * US_PER_S
US_PER_DAY = 86_400 * US_PER_S
MOST_FAULTS = 20
"""Faults of one file that are listed before reading stops."""
MOST_BYTES = 2**28
"""Longer files (256 MiB, unpacked) are refused: no outage log is that long."""
EPOCH = datetime(1970, 1, 1)
_LONGEST_S = 1e11
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(s|min|h|d)?", re.ASCII)
_UNIT_S = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

GENERIC_COLUMNS = ("component", "id", "start", "end")
LANL_CAUSES = ("Facilities", "Hardware", "Human Error", "Network", "Undetermined", "Software")
LANL_MINUTES = "Down Time"
LANL_COLUMNS = ("System", "nodes", "nodenumz", "Prob Started", "Prob Fixed", *LANL_CAUSES)


class LogFormat(StrEnum):
    """The kinds of file that are read."""

    GENERIC = "generic"
    LANL = "lanl"
    LANL_DOWN_TIME = "lanl_down_time"
    GPU_FAULTS = "gpu_faults"


@dataclass(frozen=True, slots=True)
class LoggedOutage:
    """One row: its `line` (or number of the event), times in us from 1970 or the log's zero; an end of None is open."""

    line: int
    kind: ComponentKind
    name: str
    start_us: int
    end_us: int | None
    cause: tuple[str, ...] = ()
    cube: int | None = None


# ---------------------------------------------------------------- text and times


def read_text(path: str | Path) -> str:
    """The whole text of a file, `.gz` unpacked; InputError where there is none to read."""
    where = str(path)
    try:
        raw = bounded_bytes(Path(path), most=MOST_BYTES)
        text = raw[:MOST_BYTES].decode("utf-8-sig", "strict" if len(raw) <= MOST_BYTES else "ignore")
    except FileNotFoundError:
        raise refuse(where, "no such file", "write the path of a failure log") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise refuse(where, "the compressed file is damaged or cut off", "write a file that gzip can unpack") from None
    except UnicodeDecodeError as error:
        what = f"byte {error.start + 1} is not UTF-8"
        raise refuse(where, what, "save the file as UTF-8 text") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refuse(where, f"can not be read: {reason}", "write the path of a readable file") from None
    if len(raw) > MOST_BYTES:
        raise refuse(where, f"more than {MOST_BYTES >> 20} MiB of text", "write a shorter log")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise refuse(f"{where}: line {line}", "a NUL character: this is no text", "save the log as UTF-8 text")
    return text


def instant_us(text: str, *, unit_s: float = 1.0) -> tuple[int, bool]:
    """Microseconds of an ISO 8601 date (from 1970; with a zone: UTC) or of a number, and whether it was a date.

    A bare number counts in `unit_s`; `12 h` and the like are read too. ValueError says what is wrong.
    """
    text = text.strip()
    match = _NUMBER.fullmatch(text)
    if match:
        seconds = float(match[1]) * (_UNIT_S[match[2]] if match[2] else unit_s)
        if not abs(seconds) < _LONGEST_S:
            raise ValueError(f"`{text}` is too large for a time")
        return round(seconds * US_PER_S), False
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"`{text}` is no time") from None
    if instant.tzinfo is not None:
        try:
            instant = instant.astimezone(UTC).replace(tzinfo=None)
        except OverflowError:
            raise ValueError(f"`{text}` is too large for a time") from None
    return (instant - EPOCH) // timedelta(microseconds=1), True


def whole_number(text: str) -> int:
    """A whole number of at least 0; ValueError otherwise."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        raise ValueError(f"`{text}` is no whole number")
    return int(text)


class FaultList:
    """Collects the faults of one file; raises them together, at once when there are many."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.faults: list[Fault] = []

    def add(self, line: int, what: str, write: str, *, unit: str = "line") -> None:
        """Note a fault of a line."""
        self.faults.append(Fault(f"{self.path}: {unit} {line}", what, write))
        if len(self.faults) >= MOST_FAULTS:
            self.raise_any()

    def raise_any(self) -> None:
        """Raise what was noted, if anything."""
        if self.faults:
            raise InputError(self.faults)


def _csv_rows(path: str, text: str, needed: Sequence[str], faults: FaultList) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a CSV file with their line numbers; refuses missing columns, and rows of another length than the head."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [name.strip() for name in next(reader, [])]
        if not any(head):
            raise refuse(path, "the file is empty", f"write a first line with the columns {','.join(needed)}")
        missing = [name for name in needed if name not in head]
        if missing:
            what = f"no column {', '.join(missing)} (found: {', '.join(head[:20])})"
            raise refuse(f"{path}: line 1", what, f"write a first line with the columns {','.join(needed)}")
        if len(set(head)) < len(head):
            raise refuse(f"{path}: line 1", "a column is named twice", "give each column a name of its own")
        for row in reader:
            if not any(field.strip() for field in row):
                continue
            if len(row) != len(head):
                faults.add(reader.line_num, f"{len(row)} fields where the first line has {len(head)}", "mend the line")
                continue
            yield reader.line_num, dict(zip(head, row, strict=True))
    except csv.Error as error:
        raise refuse(f"{path}: line {reader.line_num}", f"no CSV: {error}", "mend quotes and line ends") from None


# ---------------------------------------------------------------- the three formats


def read_generic(path: str, text: str, faults: FaultList) -> tuple[list[LoggedOutage], int | None, bool]:
    """Rows of `component,id,start,end[,cause][,cube]`; ISO 8601 dates or seconds, an empty end is an open outage."""
    rows: list[LoggedOutage] = []
    dated: bool | None = None
    for line, row in _csv_rows(path, text, GENERIC_COLUMNS, faults):
        try:
            kind = ComponentKind(row["component"].strip())
        except ValueError:
            known = ", ".join(ComponentKind)
            faults.add(line, f"unknown component `{row['component']}`", f"write one of {known}")
            continue
        try:
            start_us, start_dated = instant_us(row["start"])
            ended = bool(row["end"].strip())
            end_us, end_dated = instant_us(row["end"]) if ended else (None, start_dated)
            cube_text = row.get("cube", "").strip()
            cube = whole_number(cube_text) if cube_text else None
        except ValueError as error:
            faults.add(line, str(error), "write ISO 8601 (2002-05-06T08:45) or seconds, and a whole number as cube")
            continue
        dated = start_dated if dated is None else dated
        if start_dated != dated or end_dated != dated:
            faults.add(line, "dates and seconds are mixed", "write all times as dates or all as seconds")
            continue
        if not row["id"].strip():
            faults.add(line, "no id", "write the name or number of the component")
            continue
        cause = row.get("cause", "").strip()
        rows.append(LoggedOutage(line, kind, row["id"].strip(), start_us, end_us, (cause,) if cause else (), cube))
    return rows, None, bool(dated)


def _lanl_us(text: str) -> int:
    try:
        instant = datetime.strptime(text.strip(), "%m/%d/%Y %H:%M")
    except ValueError:
        raise ValueError(f"`{text}` is no time") from None
    return (instant - EPOCH) // timedelta(microseconds=1)


def read_lanl(
    path: str, text: str, faults: FaultList, *, by_down_time: bool = False
) -> tuple[list[LoggedOutage], int | None, bool]:
    """Rows of one system of LA-UR-05-7318; the number of a node is `nodenumz`, the population is column `nodes`.

    An outage ends at `Prob Fixed`, or `by_down_time` as many minutes after its start as the column `Down Time` says:
    the two differ at changes to and from daylight time.
    """
    rows: list[LoggedOutage] = []
    system: str | None = None
    nodes = 0
    columns = (*LANL_COLUMNS, LANL_MINUTES) if by_down_time else LANL_COLUMNS
    for line, row in _csv_rows(path, text, columns, faults):
        system = row["System"] if system is None else system
        if row["System"] != system:
            what = f"systems {system} and {row['System']} in one file"
            raise refuse(f"{path}: line {line}", what, "write a file with the rows of one system")
        try:
            number, nodes = whole_number(row["nodenumz"]), max(nodes, whole_number(row["nodes"]))
            start_us = _lanl_us(row["Prob Started"])
            end_us = _lanl_us(row["Prob Fixed"]) if row["Prob Fixed"].strip() else None
            if by_down_time:
                end_us = start_us + whole_number(row[LANL_MINUTES]) * US_PER_MINUTE
        except ValueError as error:
            faults.add(line, str(error), "write times as m/d/yyyy h:mm and numbers of nodes as whole numbers")
            continue
        if number >= nodes:
            faults.add(line, f"node {number} of a system of {nodes}", f"write a number from 0 to {nodes - 1}")
            continue
        cause = next(((name, row[name].strip()) for name in LANL_CAUSES if row[name].strip()), ())
        rows.append(LoggedOutage(line, ComponentKind.HOST, str(number), start_us, end_us, cause))
    return rows, nodes or None, True


def _gpu_event(event: Any) -> tuple[str, int, bool, tuple[str, ...]]:
    if not isinstance(event, dict):
        raise ValueError("no mapping")
    missing = [key for key in ("node_id", "event_time", "event_type") if key not in event]
    if missing:
        raise ValueError(f"no {', '.join(missing)}")
    day, kind = event["event_time"], event["event_type"]
    if isinstance(day, bool) or not isinstance(day, int | float) or not abs(day) <= 1e6:
        raise ValueError(f"event_time {day!r} is no number of days")
    if kind not in ("fault_start", "fault_end"):
        raise ValueError(f"event_type {kind!r} is neither fault_start nor fault_end")
    levels = event.get("fault_type") or {}
    if not isinstance(levels, dict):
        raise ValueError(f"fault_type {levels!r} is no mapping")
    cause = tuple(str(levels[key]) for key in ("Level", "Class", "Desc") if levels.get(key))
    return str(event["node_id"]), round(day * US_PER_DAY), kind == "fault_start", cause


def read_gpu_faults(path: str, text: str, faults: FaultList) -> tuple[list[LoggedOutage], int | None, bool]:
    """Events of the GPU fault trace: starts and ends paired per server, first in first out; days from the zero."""
    try:
        events = json.loads(text) if text.strip() else None
    except json.JSONDecodeError as error:
        raise refuse(f"{path}: line {error.lineno}", f"no JSON: {error.msg}", "write a JSON array of events") from None
    except (RecursionError, ValueError):
        raise refuse(path, "no JSON that can be read", "write a JSON array of events") from None
    if not isinstance(events, list) or not events:
        raise refuse(path, "no JSON array of events", "write a file in the format of the GPU server fault trace")
    read: list[tuple[int, int, str, bool, tuple[str, ...]]] = []
    for number, event in enumerate(events, start=1):
        try:
            name, at_us, starts, cause = _gpu_event(event)
        except ValueError as error:
            faults.add(number, str(error), "write node_id, event_time, event_type and fault_type", unit="event")
            continue
        read.append((at_us, number, name, starts, cause))
    faults.raise_any()
    rows: list[LoggedOutage] = []
    opened: dict[str, list[LoggedOutage]] = {}
    for at_us, number, name, starts, cause in sorted(read):
        if starts:
            outage = LoggedOutage(number, ComponentKind.HOST, name, at_us, None, cause)
            opened.setdefault(name, []).append(outage)
            continue
        if not opened.get(name):
            faults.add(
                number, f"server {name} ends a fault that never began", "write its fault_start before it", unit="event"
            )
            continue
        began = opened[name].pop(0)
        rows.append(LoggedOutage(began.line, began.kind, name, began.start_us, at_us, began.cause))
    rows += [outage for waiting in opened.values() for outage in waiting]
    return rows, None, False


Reader = Callable[[str, str, FaultList], tuple[list[LoggedOutage], int | None, bool]]
"""(path, text, faults) to rows, the population where the file says it, and whether times are dates."""
READERS: dict[LogFormat, Reader] = {
    LogFormat.GENERIC: read_generic,
    LogFormat.LANL: read_lanl,
    LogFormat.LANL_DOWN_TIME: partial(read_lanl, by_down_time=True),
    LogFormat.GPU_FAULTS: read_gpu_faults,
}


def format_of(text: str) -> LogFormat:
    """Which format a text looks like."""
    head = text.lstrip()[:2000]
    if head[:1] in ("[", "{"):
        return LogFormat.GPU_FAULTS
    return LogFormat.LANL if "Prob Started" in head.split("\n", 1)[0] else LogFormat.GENERIC
