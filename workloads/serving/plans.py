"""How far the token kernel may run without a decision, and what cuts a plan short.

A plan may be cut at any boundary at no cost: where nothing changes there, the segment goes on from its anchor.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.booking import elapsed_ns, last_step_by
from workloads.serving.fields import State


@kernel_part
def plan_to(s: State, r: int, k: int) -> None:
    """No decision is due on replica r before the end of step k of its segment."""
    replica, pace = s.replica, s.pace
    replica[r, f.R_PLAN] = k
    replica[r, f.R_END] = replica[r, f.R_ANCHOR] + elapsed_ns(k, pace[r, f.P_BASE], pace[r, f.P_SLOPE])


@kernel_part
def reconsider(s: State, r: int, t: int) -> None:
    """Replica r, settled to t, decides anew at its first boundary at or after t (a dead one never does)."""
    replica, pace = s.replica, s.pace
    mode = replica[r, f.R_MODE]
    if mode == f.IDLE or (mode == f.BOUNDARY and replica[r, f.R_AT] > t):
        replica[r, f.R_MODE] = f.BOUNDARY
        replica[r, f.R_AT] = t
    elif mode == f.PASS and not replica[r, f.R_MIXED] and replica[r, f.R_PLAN] > replica[r, f.R_STEP] + 1:
        before = t - 1 - replica[r, f.R_ANCHOR]
        low, high = replica[r, f.R_STEP], replica[r, f.R_PLAN] - 1
        plan_to(s, r, 1 + last_step_by(before, low, high, pace[r, f.P_BASE], pace[r, f.P_SLOPE]))


@kernel_part
def wake(s: State, r: int, t: int) -> None:
    """The queue of replica r has a new head at t: it is considered at the first boundary at or after t."""
    if s.replica[r, f.R_RUNNING] < s.common[f.C_MAX_BATCH]:
        reconsider(s, r, t)


@kernel_routine
def wake_all(s: State, t: int) -> None:
    """The central queue has a new head at t: every replica with a place considers it at its next boundary."""
    for r in range(s.common[f.C_REPLICAS]):
        wake(s, r, t)
