"""The timeline of a run in Chrome's trace format: open `timeline.json` in Perfetto (ui.perfetto.dev).

Of replication 0 of every sweep point: a process per slice size of the study `delivered` with a row per job; of a pod in
operation one with a row per job, one with a row per cube (what the job on it does, when it is out; failures and moves
as instants) and one with a row per switch that was ever out (with the circuits in use). One process per service and
fabric has the failure that the report tells, second by second. Spans of a row never overlap, events are in order of
time, and numbers of processes and rows start at 1, since viewers give 0 to the idle process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from sim.histories import US_PER_S
from sim.scenario import Point
from sim.tables import text_of_setting

Event = dict[str, Any]
StageRow = Sequence[Any]
"""slice_chips, job, stage, start_us, end_us"""
Moments = Sequence[Sequence[Sequence[Any]]]
"""What `sim.metrics.pod_moments.PodMoments` holds, as plain sequences."""


class _Tracks:
    """Events of all processes; each process is named when it begins and its rows are in order of their numbers."""

    def __init__(self) -> None:
        self.names: list[Event] = []
        self.events: list[Event] = []
        self._processes = 0

    def process(self, name: str, rows: Mapping[int, str]) -> int:
        """Begin a process with rows by number; returns its own number."""
        self._processes += 1
        self.names.append(_meta("process_name", self._processes, 0, name=name))
        self.names.append(_meta("process_sort_index", self._processes, 0, sort_index=self._processes))
        for number, row in rows.items():
            self.names.append(_meta("thread_name", self._processes, number + 1, name=row))
            self.names.append(_meta("thread_sort_index", self._processes, number + 1, sort_index=number))
        return self._processes

    def span(self, process: int, row: int, name: str, start_us: int, end_us: int) -> None:
        """A stretch of time, where it has a length."""
        if start_us < end_us:
            length_us = end_us - start_us
            self.events.append(
                {"ph": "X", "name": name, "pid": process, "tid": row + 1, "ts": start_us, "dur": length_us}
            )

    def instant(self, process: int, row: int, name: str, time_us: int) -> None:
        """Something that happens on one row."""
        self.events.append({"ph": "i", "name": name, "pid": process, "tid": row + 1, "ts": time_us, "s": "t"})

    def count(self, process: int, name: str, time_us: int, value: float) -> None:
        """A counter from an instant on."""
        self.events.append({"ph": "C", "name": name, "pid": process, "tid": 1, "ts": time_us, "args": {"": value}})


def _meta(kind: str, process: int, row: int, **arguments: Any) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": row, "args": arguments}


def chrome_trace(
    points: Sequence[Point],
    stages: Mapping[int, Sequence[StageRow]],
    moments: Mapping[int, Moments],
    cubes: Mapping[int, pd.DataFrame],
    failure_story: pd.DataFrame | None,
) -> dict[str, Any]:
    """All events of a run, times in microseconds.

    By number of the point: `stages` of jobs, and of a pod in operation its `moments` and `cubes` (table `cube_story`).
    """
    tracks = _Tracks()
    for point in points:
        swept = ", ".join(map(text_of_setting, point.settings.values()))
        where = f" ({swept})" if swept else ""
        for chips, rows in _by_size(stages[point.index]).items():
            _jobs(tracks, (f"jobs of {chips} chips" if chips else "jobs of the pod in operation") + where, rows)
        if point.index in moments:
            instants, switches, circuits = moments[point.index]
            _cubes(tracks, f"cubes{where}", cubes.get(point.index, pd.DataFrame()), instants)
            _switches(tracks, f"switches{where}", switches, circuits)
    if failure_story is not None:
        for (service, fabric), looks in failure_story.groupby(["service", "fabric"], sort=False):
            _failure(tracks, f"one failure of {service} ({fabric})", looks)
    events = sorted(tracks.events, key=lambda event: int(event["ts"]))
    return {"displayTimeUnit": "ms", "traceEvents": [*tracks.names, *events]}


def _by_size(rows: Sequence[StageRow]) -> dict[int, list[StageRow]]:
    sizes: dict[int, list[StageRow]] = {}
    for row in rows:
        sizes.setdefault(int(row[0]), []).append(row)
    return sizes


def _rows(noun: str, numbers: Iterable[int]) -> dict[int, str]:
    return {number: f"{noun} {number}" for number in sorted(dict.fromkeys(numbers))}


def _jobs(tracks: _Tracks, name: str, rows: Sequence[StageRow]) -> None:
    process = tracks.process(name, _rows("job", (int(row[1]) for row in rows)))
    for _, job, stage, start_us, end_us in rows:
        tracks.span(process, int(job), str(stage), int(start_us), int(end_us))


def _cubes(tracks: _Tracks, name: str, story: pd.DataFrame, instants: Sequence[Sequence[Any]]) -> None:
    stretches = list(_stretches(story))
    process = tracks.process(name, _rows("cube", [*(each[0] for each in stretches), *(int(at[0]) for at in instants)]))
    for cube, what, job, start_us, end_us in stretches:
        tracks.span(process, cube, what if job < 0 else f"job {job}: {what}", start_us, end_us)
    for cube, what, time_us in instants:
        tracks.instant(process, int(cube), str(what), int(time_us))


def _stretches(story: pd.DataFrame) -> Iterator[tuple[int, str, int, int, int]]:
    if story.empty:
        return
    columns = (story[column] for column in ("cube", "what", "job", "start_s", "end_s"))
    for cube, what, job, start_s, end_s in zip(*columns, strict=True):
        yield int(cube), str(what), int(job), round(start_s * US_PER_S), round(end_s * US_PER_S)


def _switches(
    tracks: _Tracks, name: str, stretches: Sequence[Sequence[Any]], circuits: Sequence[Sequence[Any]]
) -> None:
    if not stretches and not circuits:
        return
    process = tracks.process(name, _rows("switch", (int(stretch[0]) for stretch in stretches)))
    for switch, what, start_us, end_us in stretches:
        tracks.span(process, int(switch), str(what), int(start_us), int(end_us))
    for time_us, count in circuits:
        tracks.count(process, "circuits in use", int(time_us), int(count))


def _failure(tracks: _Tracks, name: str, looks: pd.DataFrame) -> None:
    """Tokens per second as a counter; the stages of the lost replica as spans, from look to look."""
    process = tracks.process(name, {0: "the lost replica"})
    first_s = float(looks["t_s"].iloc[0])
    times_us = [round((float(t_s) - first_s) * US_PER_S) for t_s in looks["t_s"]]
    began_us, stage = times_us[0], str(looks["stage"].iloc[0])
    for time_us, tokens, now in zip(times_us, looks["tokens_per_s"], looks["stage"], strict=True):
        tracks.count(process, "tokens/s", time_us, float(tokens))
        if now != stage:
            tracks.span(process, 0, stage, began_us, time_us)
            began_us, stage = time_us, str(now)
    tracks.span(process, 0, stage, began_us, times_us[-1])
