"""The log of a run: one row for each transition, written by the machine alone; every measure is computed from it.

Clock times are int64 microseconds, the horizon is half-open: nothing that falls on it is in the log. A row is
(time_us, verb, kind, component, job, stage, value), with -1 or "" where a field does not apply. `value` is by verb:

- stage: the speed of the job in millionths of the healthy speed (0 unless it runs)
- speed: the new speed of a running job, likewise
- occupy, release: the number of the placement (see `Trace.placements`)
- connect, disconnect: the number of circuits made or cut
- submit: the work of the job in microseconds at full speed, -1 for work without end; `component` is its chips
- commit: microseconds of productive time that a checkpoint has made safe so far
- lose: microseconds of running, the last ones of the job, that a loss undoes
- move: chip-microseconds that the move is expected to cost; `component` is the job that it makes room for
- make_way: `component` is the job that waits until this one has saved its state and left
- leave: a job that is not wanted any more (a replica, when demand falls) gives back what it holds
- reserve: the instant by which the job fits by what owners say, -1 where nobody knows; `component` are the free chips
  that jobs behind it could use and may not; job -1: nothing is held any more
- reject: `stage` is the reason, `component` the chips that were asked for
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import pandas as pd

from sim.tables import Column, DType, TableSpec
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_HOST
from topology.shape import Shape

FULL_SPEED_PPM = 1_000_000


class Verb(StrEnum):
    """The transitions of the machine."""

    FAIL = "fail"
    DETECT = "detect"
    REPAIR = "repair"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    OCCUPY = "occupy"
    RELEASE = "release"
    CONNECT = "connect"
    DISCONNECT = "disconnect"
    STAGE = "stage"
    SPEED = "speed"
    SUBMIT = "submit"
    REJECT = "reject"
    FINISH = "finish"
    LEAVE = "leave"
    COMMIT = "commit"
    LOSE = "lose"
    PREEMPT = "preempt"
    MOVE = "move"
    MAKE_WAY = "make_way"
    RESERVE = "reserve"
    NOTICE = "notice"
    RETIRE = "retire"
    ONSET = "onset"
    DEGRADE = "degrade"
    CLEAR = "clear"


class Stage(StrEnum):
    """What a job does; the names are the uses of chip-hours. A job that waits in the queue holds nothing."""

    WAITING = "waiting"
    RECONFIGURING = "reconfiguring"
    PREFLIGHT = "preflight"
    RESTORING = "restoring"
    RUNNING = "running"
    DETECTING = "detecting"
    EVICTING = "evicting"
    MIGRATING = "migrating"
    CHECKPOINTING = "checkpointing"
    HELD_IDLE = "held_idle"


_STAGES = {stage.value: stage for stage in Stage}
_STAGE_OR_SPEED = frozenset((Verb.STAGE.value, Verb.SPEED.value))
_ENDS = frozenset((Verb.FINISH.value, Verb.LEAVE.value, Verb.REJECT.value))

Row = tuple[int, str, str, int, int, str, int]
"""time_us, verb, kind, component, job, stage, value: plain tuples of plain texts and numbers, one per transition."""


class Placed(NamedTuple):
    """What one placement took: `chips_per_host` chips on each of `hosts`; `cubes` in order along x, y, z of `shape`,
    or none."""

    number: int
    job: int
    cubes: tuple[int, ...]
    hosts: tuple[int, ...]
    chips_per_host: int
    shape: Shape | None = None


class StageInterval(NamedTuple):
    """One stretch of one stage of a job, [start_us, end_us), at one speed; what it runs around, if anything."""

    job: int
    stage: Stage
    start_us: int
    end_us: int
    speed_ppm: int
    way_round: str = ""


LOG = TableSpec(
    "log",
    "transition",
    (
        Column("time_us", DType.INT, "us", "instant of the transition, from the start of the run"),
        Column("verb", DType.TEXT, "", "what the machine did"),
        Column("kind", DType.TEXT, "", "kind of the component; of a running job, of the dead one that it runs around"),
        Column(
            "component",
            DType.INT,
            "",
            "index of the component (of the cube for drains), or chips, by verb",
        ),
        Column("job", DType.INT, "", "job that the row is about, -1 for components"),
        Column("stage", DType.TEXT, "", "stage that the job enters, reason of a rejection, empty otherwise"),
        Column(
            "value", DType.INT, "", "speed in millionths, number of the placement, circuits, or us of work, by verb"
        ),
    ),
)

PLACEMENTS = TableSpec(
    "placements",
    "host of a placement",
    (
        Column("placement", DType.INT, "", "number of the placement, in order of time"),
        Column("job", DType.INT, "", "job that holds it"),
        Column("position", DType.INT, "", "place of the host in the slice, in order along x, y, z"),
        Column("host", DType.INT, "", "index of the host"),
        Column("chips", DType.INT, "1", "chips that the job holds on it"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The whole log of a run, with what a measure needs to know of the scenario."""

    fabric: Fabric
    hosts: int
    horizon_us: int
    slice_chips: int
    """Chips of the slices, of the largest where they differ."""
    jobs: int
    rows: list[Row] = field(repr=False)
    placements: list[Placed] = field(repr=False)
    spare_chips: int = 0
    """Chips that are kept free for losses."""

    @property
    def chips(self) -> int:
        """Chips of the pod."""
        return self.hosts * CHIPS_PER_HOST

    def log_table(self) -> pd.DataFrame:
        """The log as a declared table (`LOG`)."""
        return LOG.make([dict(zip(LOG.names, row, strict=True)) for row in self.rows])

    def placements_table(self) -> pd.DataFrame:
        """The placements as a declared table (`PLACEMENTS`)."""
        rows = [
            (placed.number, placed.job, position, host, placed.chips_per_host)
            for placed in self.placements
            for position, host in enumerate(placed.hosts)
        ]
        return PLACEMENTS.make([dict(zip(PLACEMENTS.names, row, strict=True)) for row in rows])

    def stage_intervals(self) -> Iterator[StageInterval]:
        """Every stretch of every stage in order of its end, those of length zero left out, up to the horizon."""
        current: dict[int, tuple[Stage, int, int, str]] = {}
        for time_us, verb, kind, _, job, stage, value in self.rows:
            if verb not in _STAGE_OR_SPEED:
                if verb in _ENDS and job in current:
                    now, start_us, speed_ppm, way_round = current.pop(job)
                    if start_us < time_us:
                        yield StageInterval(job, now, start_us, time_us, speed_ppm, way_round)
                continue
            now, start_us, speed_ppm, way_round = current.get(job, (Stage.WAITING, time_us, 0, ""))
            if start_us < time_us:
                yield StageInterval(job, now, start_us, time_us, speed_ppm, way_round)
            current[job] = (_STAGES[stage] if stage else now, time_us, value, kind)
        for job, (now, start_us, speed_ppm, way_round) in sorted(current.items()):
            if start_us < self.horizon_us:
                yield StageInterval(job, now, start_us, self.horizon_us, speed_ppm, way_round)
