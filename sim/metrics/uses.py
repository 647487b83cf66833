"""The uses of chips and of the time of jobs, and the names that operators know them by."""

from __future__ import annotations

from enum import StrEnum

from sim.trace import Stage


class Use(StrEnum):
    """What a chip is doing."""

    DRAINED = "drained"
    DOWN = "down"
    DETECTING = "detecting"
    EVICTING = "evicting"
    WAITING = "waiting"
    RECONFIGURING = "reconfiguring"
    PREFLIGHT = "preflight"
    RESTORING = "restoring"
    MIGRATING = "migrating"
    CHECKPOINTING = "checkpointing"
    HELD_IDLE = "held_idle"
    USEFUL = "useful"
    SLOWED = "slowed"
    LOST = "lost"
    STRANDED = "stranded"
    SPARE = "spare"
    BLOCKED = "blocked"
    FRAGMENTED = "fragmented"
    EMPTY = "empty"
    UNACCOUNTED = "unaccounted"


USE_OF_STAGE = {stage.value: Use.USEFUL if stage is Stage.RUNNING else Use(stage.value) for stage in Stage}
"""Use of the chips and of the time of a job in each stage, before running is divided."""

RUN_USES = (Use.USEFUL, Use.SLOWED, Use.LOST)
"""What running is divided into."""

OPERATOR_NAMES: dict[Use, str] = {
    Use.DRAINED: "planned maintenance",
    Use.DOWN: "unplanned downtime",
    Use.DETECTING: "failure detection",
    Use.EVICTING: "restart overhead",
    Use.WAITING: "queueing",
    Use.RECONFIGURING: "restart overhead",
    Use.PREFLIGHT: "health checks",
    Use.RESTORING: "restart overhead",
    Use.MIGRATING: "planned migration",
    Use.CHECKPOINTING: "checkpoint overhead",
    Use.HELD_IDLE: "allocated, idle",
    Use.USEFUL: "productive",
    Use.SLOWED: "degraded performance",
    Use.LOST: "lost work (rework)",
    Use.STRANDED: "unusable by topology",
    Use.SPARE: "spare capacity",
    Use.BLOCKED: "reserved",
    Use.FRAGMENTED: "fragmentation",
    Use.EMPTY: "idle",
    Use.UNACCOUNTED: "unaccounted",
}
"""What operators call each use in reports of ETTR and of goodput (arXiv:2410.21680, arXiv:2502.06982, arXiv:2509.16293;
the assignment is an assumption of ours): several uses may share a name."""
