"""The timeline of a run in Chrome's trace format: open `timeline.json` in Perfetto (ui.perfetto.dev).

One process per sweep point and slice size with a row per job (replication 0 of the study `delivered`), and one per
service and fabric with the failure that the report tells, second by second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from sim.histories import US_PER_S
from sim.scenario import Point

Event = dict[str, Any]
StageRow = Sequence[Any]
"""slice_chips, job, stage, start_us, end_us"""


def chrome_trace(
    points: Sequence[Point], stages: Mapping[int, Sequence[StageRow]], tables: Mapping[str, pd.DataFrame]
) -> dict[str, Any]:
    """All events of a run; `stages` holds the stages of jobs by number of the point. Times are in microseconds."""
    events: list[Event] = []
    for point in points:
        for chips, rows in _by_size(stages[point.index]).items():
            swept = ", ".join(str(value) for value in point.settings.values())
            of_size = f"jobs of {chips} chips" if chips else "jobs of the pod in operation"
            events += _jobs(len(events), of_size + (f" ({swept})" if swept else ""), rows)
    story = tables.get("failure_story", pd.DataFrame())
    if not story.empty:
        for (service, fabric), looks in story.groupby(["service", "fabric"], sort=False):
            events += _failure(len(events), f"one failure of {service} ({fabric})", looks)
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _by_size(rows: Sequence[StageRow]) -> dict[int, list[StageRow]]:
    sizes: dict[int, list[StageRow]] = {}
    for row in rows:
        sizes.setdefault(int(row[0]), []).append(row)
    return sizes


def _named(process: int, name: str, thread: int | None = None) -> Event:
    """The name of a process, or of a thread of it."""
    kind = "process_name" if thread is None else "thread_name"
    return {"ph": "M", "name": kind, "pid": process, "tid": thread or 0, "args": {"name": name}}


def _span(process: int, thread: int, name: str, start_us: int, end_us: int) -> Event:
    return {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": start_us, "dur": end_us - start_us}


def _jobs(process: int, name: str, rows: Sequence[StageRow]) -> Iterator[Event]:
    yield _named(process, name)
    for job in sorted({int(row[1]) for row in rows}):
        yield _named(process, f"job {job}", job)
    for _, job, stage, start_us, end_us in rows:
        yield _span(process, int(job), str(stage), int(start_us), int(end_us))


def _failure(process: int, name: str, looks: pd.DataFrame) -> Iterator[Event]:
    """Tokens per second as a counter; the stages of the lost replica as spans, from look to look."""
    yield _named(process, name)
    yield _named(process, "the lost replica", 0)
    first_s = float(looks["t_s"].iloc[0])
    times_us = [round((float(t_s) - first_s) * US_PER_S) for t_s in looks["t_s"]]
    began_us, stage = times_us[0], str(looks["stage"].iloc[0])
    for time_us, tokens, now in zip(times_us, looks["tokens_per_s"], looks["stage"], strict=True):
        yield {"ph": "C", "name": "tokens/s", "pid": process, "tid": 0, "ts": time_us, "args": {"": float(tokens)}}
        if now != stage:
            yield _span(process, 0, stage, began_us, time_us)
            began_us, stage = time_us, str(now)
    yield _span(process, 0, stage, began_us, times_us[-1])
