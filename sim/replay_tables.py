"""Tables of the replay of a pod: what its cubes, its slices and its switches do over time, in the first replication.

Of the pod in operation where the scenario has one, else of the study `delivered`, at one of its slice sizes.
"""

from __future__ import annotations

from sim.table_columns import FABRIC, HOST
from sim.tables import Column, DType, TableSpec

STRETCHES_MAX = 20_000
"""Stretches of cubes, of slices and of switches that are kept for pictures of one point, and stages of jobs."""

_PLAYED = Column("slice_chips", DType.INT_OR_NONE, "chips", "slices of `delivered`; blank for the pod in operation")
_START = Column("start_s", DType.FLOAT, "s", "from the start of the run")
_END = Column("end_s", DType.FLOAT, "s", "end of the stretch")

CUBE_STORY = TableSpec(
    "cube_story",
    "stretch of time of one cube in the first replication; free time is left out",
    (
        FABRIC,
        HOST,
        _PLAYED,
        Column("cube", DType.INT, "", "number of the cube (of a flat machine: of its sixteen hosts)"),
        Column("what", DType.TEXT, "", "stage of the job that holds it; shared by several jobs; unusable; drained"),
        Column("job", DType.INT, "", "number of that job; -1 where there is none, or several"),
        _START,
        _END,
    ),
)
SLICE_STORY = TableSpec(
    "slice_story",
    "stretch of time for which a job holds the same whole cubes in the first replication",
    (
        FABRIC,
        HOST,
        _PLAYED,
        Column("job", DType.INT, "", "number of the job"),
        Column("shape", DType.TEXT, "", "shape of its slice, in chips"),
        Column("cubes", DType.TEXT, "", "numbers of its cubes, in order along x, y, z of the shape, z fastest"),
        _START,
        Column("lit_s", DType.FLOAT, "s", "from when its circuits are made; blank without light"),
        _END,
    ),
)
SWITCH_STORY = TableSpec(
    "switch_story",
    "stretch of time for which a switch is out in the first replication",
    (
        FABRIC,
        HOST,
        _PLAYED,
        Column("switch", DType.INT, "", "number of the switch: 16 times the axis (x, y, z) plus the face position"),
        Column("what", DType.TEXT, "", "dead (not noticed yet), in repair, drained or retired"),
        _START,
        _END,
    ),
)
REPLAY_SPECS = (CUBE_STORY, SLICE_STORY, SWITCH_STORY)
