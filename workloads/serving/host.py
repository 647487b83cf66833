"""Host memory of a replica: whose KV lies there, and what gives it up. Rules: see `swap`."""

from __future__ import annotations

from topology.compilation import kernel_routine
from workloads.serving import fields as f
from workloads.serving.blocks import blocks_of
from workloads.serving.central import queue_row
from workloads.serving.fields import State


@kernel_routine
def release_host(s: State, i: int) -> None:
    """What slot i has on a host, if anything, is there no more."""
    slot = s.slot
    if slot[i, f.S_HOST] > 0:
        s.replica[slot[i, f.S_HOST] - 1, f.R_HOST] -= blocks_of(slot[i, f.S_HOST_TOKENS])
        slot[i, f.S_HOST] = 0


@kernel_routine
def forget_host(s: State, i: int) -> None:
    """What slot i has on a host is of no use: it is to be computed again."""
    slot = s.slot
    if slot[i, f.S_HOST] > 0:
        slot[i, f.S_REDO] = max(slot[i, f.S_REDO], slot[i, f.S_HOST_TOKENS])
        release_host(s, i)


@kernel_routine
def lose_host(s: State, r: int) -> None:
    """Replica r dies, and with it what its host holds of those that wait."""
    slot = s.slot
    i = s.replica[queue_row(s, r), f.R_QUEUE_HEAD]
    while i != f.NO_SLOT:
        if slot[i, f.S_HOST] == r + 1:
            s.common[f.N_TOKENS_LOST] += slot[i, f.S_HOST_TOKENS]
            forget_host(s, i)
            slot[i, f.S_CAUGHT] = 1
        i = slot[i, f.S_NEXT]
