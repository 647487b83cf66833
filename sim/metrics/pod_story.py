"""What cubes, slices and switches do over time, from the log alone, for the replay: rows of its three tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from sim.histories import US_PER_S
from sim.metrics.cube_story import CubeStretch, cube_stretches
from sim.metrics.pod_moments import SwitchStretch, switch_stretches
from sim.trace import Placed, Trace, Verb

Row = dict[str, Any]


class SliceStretch(NamedTuple):
    """One stretch [start_us, end_us) for which a job holds `cubes`, in order along x, y, z of `shape`.

    Its circuits are made from `lit_us` on; None without light, and while they are not made.
    """

    job: int
    shape: str
    cubes: tuple[int, ...]
    start_us: int
    lit_us: int | None
    end_us: int


class PodStory(NamedTuple):
    """All of one replication, each in order of ends."""

    cubes: tuple[CubeStretch, ...]
    slices: tuple[SliceStretch, ...]
    switches: tuple[SwitchStretch, ...]


def story_of(trace: Trace, most: int) -> PodStory:
    """At most about `most` of each kind: where there are more, cubes and slices end where the last one does."""
    return PodStory(
        tuple(cube_stretches(trace, most)),
        tuple(slice_stretches(trace, most)),
        tuple(islice(switch_stretches(trace), most)),
    )


def slice_stretches(trace: Trace, most: int) -> Iterator[SliceStretch]:
    """Stretches of all slices of whole cubes in order of their ends; those that are held at the end last."""
    held: dict[int, tuple[Placed, int, int | None]] = {}
    circuits: dict[int, int] = {}
    found, end_us = 0, trace.horizon_us
    for time_us, verb, _, _, job, _, value in trace.rows:
        if verb == Verb.OCCUPY:
            placed = trace.placements[value]
            if placed.cubes and placed.shape is not None:
                held[job] = placed, time_us, time_us if circuits.get(job) else None
        elif verb == Verb.RELEASE and job in held:
            yield from _ended(held.pop(job), time_us)
            found += 1
            if found >= most:
                end_us = time_us
                break
        elif verb in (Verb.CONNECT, Verb.DISCONNECT):
            circuits[job] = circuits.get(job, 0) + (value if verb == Verb.CONNECT else -value)
            if job in held and circuits[job] and held[job][2] is None:
                held[job] = (*held[job][:2], time_us)
    for _, one in sorted(held.items()):
        yield from _ended(one, end_us)


def _ended(held: tuple[Placed, int, int | None], end_us: int) -> Iterator[SliceStretch]:
    placed, start_us, lit_us = held
    if start_us < end_us:
        yield SliceStretch(placed.job, str(placed.shape), placed.cubes, start_us, lit_us, end_us)


def story_rows(story: PodStory, slice_chips: int | None) -> dict[str, list[Row]]:
    """Rows of the three tables, fabric and host availability left out."""
    return {
        "cube_story": [
            {"slice_chips": slice_chips, "cube": cube, "what": what, "job": job} | _seconds(start_us, end_us)
            for cube, what, job, start_us, end_us in story.cubes
        ],
        "slice_story": [
            {
                "slice_chips": slice_chips,
                "job": one.job,
                "shape": one.shape,
                "cubes": " ".join(map(str, one.cubes)),
                "lit_s": math.nan if one.lit_us is None else one.lit_us / US_PER_S,
            }
            | _seconds(one.start_us, one.end_us)
            for one in story.slices
        ],
        "switch_story": [
            {"slice_chips": slice_chips, "switch": switch, "what": what} | _seconds(start_us, end_us)
            for switch, what, start_us, end_us in story.switches
        ],
    }


def _seconds(start_us: int, end_us: int) -> Row:
    return {"start_s": start_us / US_PER_S, "end_s": end_us / US_PER_S}
