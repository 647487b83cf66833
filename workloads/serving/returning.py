"""Requests that come back to the router: after a loss, or sent back by a decode replica."""

from __future__ import annotations

from topology.compilation import kernel_routine
from workloads.serving import fields as f
from workloads.serving.fields import State
from workloads.serving.plans import reconsider
from workloads.serving.prediction import route
from workloads.serving.prefix import pieces_to_reuse
from workloads.serving.queues import change_outstanding, enqueue_by_arrival
from workloads.serving.samples import note_routed, replica_of_sample


@kernel_routine
def route_one(s: State, i: int, t: int) -> None:
    """Route slot i, which waits nowhere, at t: ahead of the first younger one behind `R_CURSOR` where it goes."""
    replica, slot, common = s.replica, s.slot, s.common
    tokens = slot[i, f.S_INPUT] + slot[i, f.S_SENT]
    most = pieces_to_reuse(s, slot[i, f.S_HASHES], tokens)
    r = replica_of_sample(s, slot[i, f.S_ID])
    if r == f.NO_SLOT:
        r = route(s, tokens, slot[i, f.S_LUCK], slot[i, f.S_HASH_AT], most)
    note_routed(s, r, i)
    if r < common[f.C_REPLICAS]:
        common[f.C_TURN] = r
    change_outstanding(s, r, t, 1)
    enqueue_by_arrival(s, r, i, t)
    if replica[r, f.R_MODE] == f.DEAD:
        slot[i, f.S_CAUGHT] = 1
    elif r < common[f.C_REPLICAS]:
        reconsider(s, r, t)
