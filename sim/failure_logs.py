"""Failure logs as histories: outages of named components within a window, and where on the machine the names go.

A log replaces drawn lives and repairs by what happened. Nodes that are numbers are placed by number; names are dealt to
hosts by seeded shuffles, and the spread over shuffles tells how much the unknown places matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sim.failure_log_formats import (
    EPOCH,
    READERS,
    US_PER_DAY,
    FaultList,
    LogFormat,
    LoggedOutage,
    format_of,
    instant_us,
    read_text,
)
from sim.histories import ComponentKind, Outages, sorted_outages
from sim.streams import Streams
from topology.errors import refuse
from topology.pod import HOSTS_PER_CUBE, IN_RACK_LINKS_PER_CUBE, OPTICAL_ENDS_PER_CUBE

Ints = NDArray[np.int64]

_PER_CUBE = {
    ComponentKind.HOST: HOSTS_PER_CUBE,
    ComponentKind.RACK: 1,
    ComponentKind.IN_RACK_LINK: IN_RACK_LINKS_PER_CUBE,
    ComponentKind.OPTICAL_END: OPTICAL_ENDS_PER_CUBE,
}
MOST_COMPONENTS = 1_000_000
_UNIT_OF_WINDOW_S = {
    LogFormat.GENERIC: 1.0,
    LogFormat.LANL: 1.0,
    LogFormat.LANL_DOWN_TIME: 1.0,
    LogFormat.GPU_FAULTS: 86400.0,
}


@dataclass(frozen=True, kw_only=True)
class FailureLog:
    """Outages of components of one kind within the window [from, until]; times of the arrays count from `from_us`.

    `components` is the population, those without an outage included. `component` indexes `names`; `causes[i]` are the
    causes of outage i from coarse to fine; `open_end[i]`: still open when the log ends, so cut at the window's end.
    Outages that reach into the window are cut at its edges, `start_us` of those that began earlier is negative.
    """

    path: str
    format: LogFormat
    kind: ComponentKind
    components: int
    components_known: bool
    names: tuple[str, ...]
    first_lines: tuple[int, ...]
    cubes: tuple[int | None, ...]
    from_us: int
    dated: bool
    window_us: int
    component: Ints
    start_us: Ints
    end_us: Ints
    open_end: NDArray[np.bool_]
    causes: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        """Number of outages that touch the window."""
        return len(self.start_us)

    @property
    def is_numbered(self) -> bool:
        """Whether names are numbers, which can be places."""
        return all(_name_order(name)[0] == 0 for name in self.names)

    @property
    def has_cubes(self) -> bool:
        """Whether every component that is named says in which cube it is."""
        return bool(self.names) and self.kind in _PER_CUBE and all(cube is not None for cube in self.cubes)

    def instant_text(self, time_us: int) -> str:
        """An instant of the window for people: a date, or days from the zero of the log."""
        at_us = self.from_us + time_us
        if self.dated:
            return (EPOCH + timedelta(microseconds=at_us)).isoformat(sep=" ", timespec="seconds")
        return f"day {at_us / US_PER_DAY:.4f}"

    def outages(self, index_of_name: Ints, count: int) -> Outages:
        """The log as a history of `count` components, with name i at `index_of_name[i]`; the window is the horizon."""
        start = np.maximum(self.start_us, 0)
        inside = start < self.window_us
        return sorted_outages(
            self.kind,
            count,
            self.window_us,
            index_of_name[self.component[inside]],
            start[inside],
            np.minimum(self.end_us, self.window_us)[inside],
        )


def _window(
    where: str, rows: Sequence[LoggedOutage], log_format: LogFormat, dated: bool, window: tuple[str, str] | None
) -> tuple[int, int]:
    """First and last instant that count: as given, else from the first to the last start."""
    if window is None:
        from_us, until_us = min(row.start_us for row in rows), max(row.start_us for row in rows)
        if from_us == until_us:
            raise refuse(where, "all outages start at one instant, which is no window", "give a window: FROM and TO")
        return from_us, until_us
    instants = []
    for text in window:
        try:
            at_us, is_date = instant_us(text, unit_s=_UNIT_OF_WINDOW_S[log_format])
        except ValueError as error:
            raise refuse("window", str(error), "write a date such as 2002-05-06, or a time such as `180 d`") from None
        if is_date != dated:
            what = f"`{text}` does not match the log, which has {'dates' if dated else 'times from its zero'}"
            raise refuse("window", what, "write 2002-05-06T08:45" if dated else "write a time such as `180 d`")
        instants.append(at_us)
    if instants[0] >= instants[1]:
        raise refuse("window", f"it ends ({window[1]}) before it begins ({window[0]})", "write FROM before TO")
    return instants[0], instants[1]


def _has_cause(row: LoggedOutage, causes: frozenset[str]) -> bool:
    """Whether a cause of any level is wanted; `hardware` also finds `Hardware Failure`."""
    levels = [level.casefold() for level in row.cause]
    return any(level in causes or level.removesuffix(" failure") in causes for level in levels)


def _kept(where: str, rows: list[LoggedOutage], causes: Sequence[str]) -> list[LoggedOutage]:
    if not causes:
        return rows
    wanted = frozenset(cause.strip().casefold() for cause in causes)
    kept = [row for row in rows if _has_cause(row, wanted)]
    if not kept:
        known = sorted({row.cause[0] for row in rows if row.cause})
        what = f"no outage has the cause {' or '.join(causes)}"
        raise refuse(where, what, f"write one of {', '.join(known[:12])}" if known else "the file names no causes")
    return kept


def _name_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isascii() and name.isdigit() and len(name) < 18 else (1, 0, name)


def read_failure_logs(
    path: str | Path,
    *,
    log_format: LogFormat | str | None = None,
    components: int | None = None,
    window: tuple[str, str] | None = None,
    causes: Sequence[str] = (),
) -> tuple[FailureLog, ...]:
    """The logs in a file, one per kind of component that it names, over one window.

    `components` is the population of hosts (or of the only kind) where the file does not say; otherwise the number of
    names counts, and `components_known` is False. Raises InputError with file and line for whatever can not be read.
    """
    where, text = str(path), read_text(path)
    chosen = format_of(text) if log_format is None else LogFormat(log_format)
    faults = FaultList(where)
    rows, population, dated = READERS[chosen](where, text, faults)
    for row in rows:
        if row.end_us is not None and row.end_us < row.start_us:
            unit = "event" if chosen is LogFormat.GPU_FAULTS else "line"
            faults.add(row.line, f"the outage of {row.name} ends before it starts", "mend start or end", unit=unit)
    faults.raise_any()
    if not rows:
        raise refuse(where, "the file holds no outage", "write a log with at least two outages")
    from_us, until_us = _window(where, rows, chosen, dated, window)
    kinds = [kind for kind in ComponentKind if any(row.kind is kind for row in rows)]
    kept = _kept(where, rows, causes)
    logs = []
    for kind in kinds:
        of_kind = [row for row in kept if row.kind is kind]
        stated = components if kind is ComponentKind.HOST or len(kinds) == 1 else None
        size = population if stated is None else stated
        logs.append(_log_of_kind(where, chosen, kind, of_kind, size, dated, from_us, until_us))
    return tuple(logs)


def _log_of_kind(
    where: str,
    log_format: LogFormat,
    kind: ComponentKind,
    rows: list[LoggedOutage],
    components: int | None,
    dated: bool,
    from_us: int,
    until_us: int,
) -> FailureLog:
    """One kind's log: names in order, outages that touch the window [from, until], times from its start."""
    first_row: dict[str, LoggedOutage] = {}
    for row in rows:
        known = first_row.setdefault(row.name, row)
        if known.cube != row.cube:
            what = f"{kind} {row.name} is in cube {row.cube}, in line {known.line} it was in cube {known.cube}"
            raise refuse(f"{where}: line {row.line}", what, "write one cube for each component")
    names = sorted(first_row, key=_name_order)
    if components is not None and components > MOST_COMPONENTS:
        raise refuse(where, f"a population of {components}", f"write components: {MOST_COMPONENTS} or fewer")
    if components is not None and len(names) > components:
        line = first_row[names[components]].line
        what = f"{len(names)} components are named, more than the population of {components}"
        raise refuse(f"{where}: line {line}", what, f"write components: {len(names)} or more")
    inside = [
        row
        for row in sorted(rows, key=lambda row: (row.start_us, row.line))
        if row.start_us <= until_us and (row.end_us is None or row.end_us > from_us or row.start_us >= from_us)
    ]
    number = {name: index for index, name in enumerate(names)}
    ends = [until_us if row.end_us is None else row.end_us for row in inside]
    return FailureLog(
        path=where,
        format=log_format,
        kind=kind,
        components=len(names) if components is None else components,
        components_known=components is not None,
        names=tuple(names),
        first_lines=tuple(first_row[name].line for name in names),
        cubes=tuple(first_row[name].cube for name in names),
        from_us=from_us,
        dated=dated,
        window_us=until_us - from_us,
        component=np.array([number[row.name] for row in inside], dtype=np.int64),
        start_us=np.array([row.start_us - from_us for row in inside], dtype=np.int64),
        end_us=np.array(
            [max(end, row.start_us) - from_us for row, end in zip(inside, ends, strict=True)], dtype=np.int64
        ),
        open_end=np.array([row.end_us is None for row in inside], dtype=np.bool_),
        causes=tuple(row.cause for row in inside),
    )


def _check_room(log: FailureLog, count: int) -> None:
    if max(log.components, len(log.names)) > count:
        what = f"{max(log.components, len(log.names))} components of kind {log.kind}, and the machine has {count}"
        line = log.first_lines[count] if len(log.names) > count else None
        where = log.path if line is None else f"{log.path}: line {line}"
        raise refuse(where, what, "write a larger pod, or a log of fewer components")


def placed_by_number(log: FailureLog, count: int) -> Ints:
    """Index on a machine of `count` components for each name: its number, its place in its cube, or its rank by name.

    A column `cube` decides where there is one: the components of a cube fill its places in order. Raises InputError,
    naming file and line, where a number or a cube is beyond the machine.
    """
    if log.has_cubes:
        return _placed_in_cubes(log, count)
    if log.is_numbered:
        for name, line in zip(log.names, log.first_lines, strict=True):
            if int(name) >= count:
                what = f"node {name}, and the machine has {count} components of kind {log.kind}, numbered from 0"
                raise refuse(f"{log.path}: line {line}", what, "write a larger pod, or a log of fewer components")
        _check_room(log, count)
        return np.array([int(name) for name in log.names], dtype=np.int64)
    _check_room(log, count)
    return np.arange(len(log.names), dtype=np.int64)


def _placed_in_cubes(log: FailureLog, count: int) -> Ints:
    per_cube = _PER_CUBE[log.kind]
    filled: dict[int, int] = {}
    places = []
    for name, cube, line in zip(log.names, log.cubes, log.first_lines, strict=True):
        assert cube is not None
        if not 0 <= cube < count // per_cube:
            what = f"cube {cube}, and the machine has {count // per_cube}, numbered from 0"
            raise refuse(f"{log.path}: line {line}", what, "write a larger pod, or another cube")
        place = filled.get(cube, 0)
        if place == per_cube:
            what = f"{log.kind} {name} is one too many in cube {cube}, which has {per_cube}"
            raise refuse(f"{log.path}: line {line}", what, "write another cube")
        filled[cube] = place + 1
        places.append(cube * per_cube + place)
    return np.array(places, dtype=np.int64)


def placed_by_shuffle(log: FailureLog, count: int, seed: int, shuffle: int) -> Ints:
    """Index on a machine of `count` components for each name, by shuffle number `shuffle` of a seed."""
    _check_room(log, count)
    order = Streams(seed, shuffle).generator("failures.log.places").permutation(count)
    return np.asarray(order[: len(log.names)], dtype=np.int64)
