"""A promise month by month: for how long a pod in operation could hold a set of slices at once, from the log alone.

Months are calendar months where the run has a date, else windows of 30 d; they begin at the end of the warm-up, and the
last one may be shorter (design: measures, section 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from sim.histories import ComponentKind
from sim.metrics.availability import US_PER_DAY, window_edges
from sim.metrics.replicas import ReplicaDemand, replicas_up
from sim.metrics.segments import segments_of
from sim.metrics.trace_outages import drained_cubes, outages_of_trace
from sim.trace import Trace
from topology.pod import AnyPod

MONTH_DAYS = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class MonthHeld:
    """One month, [start_us, end_us) from the start of the run, and the share of it for which all slices were held."""

    start_us: int
    end_us: int
    share: float


def slice_demands(slices: Mapping[int, int]) -> tuple[ReplicaDemand, ...]:
    """Slices (chips -> how many) in the order in which they are dealt: largest first."""
    return tuple(
        ReplicaDemand(service=str(chips), slice_chips=chips, replicas=slices[chips])
        for chips in sorted(slices, reverse=True)
    )


def month_edges(horizon_us: int, start: date | None = None, *, from_us: int = 0) -> NDArray[np.int64]:
    """Edges of months in [from, horizon): windows of 30 d, calendar months where the run starts at a date (or time)."""
    if start is None:
        return window_edges(from_us, horizon_us, length_us=MONTH_DAYS * US_PER_DAY)
    began = start if isinstance(start, datetime) else datetime(start.year, start.month, start.day)
    edges, first = [from_us], began
    while True:
        following = (first.replace(day=1) + timedelta(days=32)).replace(day=1)
        first = datetime(following.year, following.month, following.day)
        edge_us = round((first - began) / timedelta(microseconds=1))
        if edge_us >= horizon_us:
            return np.array([*edges, horizon_us], dtype=np.int64)
        edges += [edge_us] if edge_us > from_us else []


def months_held(
    trace: Trace,
    pod: AnyPod,
    counts: dict[ComponentKind, int],
    demands: Sequence[ReplicaDemand],
    *,
    from_us: int = 0,
    start: date | None = None,
) -> list[MonthHeld]:
    """Every month with the share of it for which all `demands` could be held at once by what was up and not drained."""
    edges = month_edges(trace.horizon_us, start, from_us=from_us)
    outages = [*outages_of_trace(trace, counts, tuple(counts)), drained_cubes(trace)]
    segments = segments_of(pod, outages, trace.horizon_us, from_us=from_us, edges_us=edges)
    wanted = [demand.replicas for demand in demands]
    held = (replicas_up(segments, pod, trace.fabric, demands) == wanted).all(axis=1)
    month = segments.window_of(edges)
    held_us = np.bincount(month, weights=held * segments.duration_us, minlength=len(edges) - 1)
    return [
        MonthHeld(start_us=first, end_us=last, share=float(held_us[number]) / (last - first))
        for number, (first, last) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    ]


def share_of_months_kept(months: Sequence[MonthHeld], time_share: float) -> float:
    """`promise_kept`: the share of months in which the slices were held for at least `time_share` of the month."""
    return sum(month.share >= time_share for month in months) / len(months)
