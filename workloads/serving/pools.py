"""Disaggregated serving, the boundaries of a decode replica: who joins, who is sent back. Rules: see `transfers`."""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.blocks import blocks_of_next_step
from workloads.serving.commits import go_on_decoding, stop_running
from workloads.serving.fields import State
from workloads.serving.queues import (
    change_outstanding,
    remove_from_heap,
    set_blocked,
    youngest_of_lowest,
)
from workloads.serving.returning import route_one
from workloads.serving.transfers import book_transfer, pop_coming, start_transfers


@kernel_part
def join_decodes(s: State, d: int, t: int) -> None:
    """Those whose transfer to decode replica d has ended decode from t on."""
    replica = s.replica
    while replica[d, f.R_COMING] > 0 and replica[d, f.R_COMING_HEAD] != replica[d, f.R_MOVING]:
        i = pop_coming(s, d)
        book_transfer(s, i, t)
        go_on_decoding(s, d, i)


@kernel_routine
def send_back(s: State, d: int, t: int) -> None:
    """The youngest of decode replica d loses its KV and returns to the prefill replicas."""
    replica, slot = s.replica, s.slot
    i = youngest_of_lowest(s, d)
    remove_from_heap(s, d, i, replica[d, f.R_DECODES])
    stop_running(s, d, i)
    slot[i, f.S_REDO] = max(slot[i, f.S_REDO], slot[i, f.S_INPUT] + slot[i, f.S_SENT] - 1)
    slot[i, f.S_EVICTIONS] += 1
    s.common[f.N_EVICTIONS] += 1
    replica[d, f.R_CHANGED] = 1
    change_outstanding(s, d, t, -1)
    for r in range(s.common[f.C_REPLICAS] + 1):
        replica[r, f.R_CURSOR] = f.NO_SLOT
    route_one(s, i, t)


@kernel_routine
def fill_decodes(s: State, d: int, t: int) -> bool:
    """Join, reserve for the decodes of replica d, send back or begin transfers; return whether any was sent back."""
    replica = s.replica
    join_decodes(s, d, t)
    reserved = blocks_of_next_step(s, d)
    evicted = False
    while reserved > replica[d, f.R_FREE]:
        send_back(s, d, t)
        evicted = True
        reserved = blocks_of_next_step(s, d)
    blocked = 1
    if not evicted or replica[d, f.R_DECODES] == 0:
        blocked = start_transfers(s, d, t, reserved)
    set_blocked(s, d, t, blocked)
    if replica[d, f.R_DECODES] == 0:
        replica[d, f.R_MODE] = f.IDLE
    return evicted
