"""What the machine does to replicas: loss, detection, return, change of speed, and the horizon.

Each is called at an instant t to which all replicas have been settled and looked at: what ended at or before t is
committed, the boundary at t itself is open, arrivals at t come afterwards.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.booking import (
    book_wait,
    clear_scratch,
    decode_share_of_pass,
    elapsed_ns,
    kv_units,
    prompt_share_of_pass,
)
from workloads.serving.central import note_alive, note_blocked
from workloads.serving.client_events import close_clients, leave_now
from workloads.serving.commits import leave_system, stop_running
from workloads.serving.fields import State
from workloads.serving.host import lose_host
from workloads.serving.plans import reconsider, wake_all
from workloads.serving.prefix import clear_cache
from workloads.serving.queues import (
    change_outstanding,
    clear_replica,
    enqueue_first,
    pop_queue,
    sort_by_arrival,
)
from workloads.serving.returning import route_one
from workloads.serving.swap import book_moved_blocks
from workloads.serving.transfers import (
    book_transfer,
    forget_waiting_sources,
    lose_source,
    lose_target,
    pop_coming,
)


@kernel_routine
def lose_replica(s: State, r: int, t: int) -> None:
    """Replica r dies at t: the pass in flight is not delivered, KV is gone, requests stay with it until detection."""
    replica, slot = s.replica, s.slot
    if replica[r, f.R_MODE] == f.DEAD:
        return
    s.common[f.N_LOSSES] += 1
    i = replica[r, f.R_QUEUE_HEAD]
    while i != f.NO_SLOT:
        book_wait(s, r, i, t)
        slot[i, f.S_CAUGHT] = 1
        i = slot[i, f.S_NEXT]
    note_blocked(s, r, t, 0)
    if s.common[f.C_HOST_BLOCKS] > 0:
        lose_host(s, r)
    while replica[r, f.R_TAIL] != f.NO_SLOT:
        i = replica[r, f.R_TAIL]
        computed = slot[i, f.S_READY]
        cut = f.L_RECOMPUTE
        if slot[i, f.S_STATE] == f.DECODE:
            stop_running(s, r, i)
            computed = slot[i, f.S_INPUT] + slot[i, f.S_SENT] - 1
        else:
            if slot[i, f.S_CHUNK] == 0 and slot[i, f.S_READY] < slot[i, f.S_TARGET]:
                cut = f.L_KV_BLOCKED
            stop_running(s, r, i)
        slot[i, f.S_LEDGER + cut] += t - slot[i, f.S_SINCE]
        slot[i, f.S_SINCE] = t
        slot[i, f.S_CHUNK] = 0
        slot[i, f.S_REDO] = max(slot[i, f.S_REDO], computed)
        slot[i, f.S_CAUGHT] = 1
        s.common[f.N_TOKENS_LOST] += computed
        if slot[i, f.S_LEAVING]:
            leave_now(s, r, i, t)
        else:
            enqueue_first(s, r, i, t)
    if r < s.common[f.C_PREFILLS]:
        lose_source(s, r, t)
    elif s.common[f.C_PREFILLS] > 0:
        lose_target(s, r, t)
    clear_replica(s, r, f.DEAD)
    if s.common[f.C_UNIT] > 0:
        clear_cache(s, r)
    if s.common[f.C_ROUTER] == f.ROUTE_CENTRAL:
        note_alive(s, t)


@kernel_routine
def release_queue(s: State, r: int, t: int) -> int:
    """Take all requests that wait at the dead replica r (or in the router's room); return how many.

    Their slots lie in column `S_SORTED`, in order of original arrival.
    """
    replica, slot = s.replica, s.slot
    count = 0
    while replica[r, f.R_QUEUE] > 0:
        i = pop_queue(s, r)
        book_wait(s, r, i, t)
        change_outstanding(s, r, t, -1)
        slot[count, f.S_SORTED] = i
        count += 1
    sort_by_arrival(s, count)
    return count


@kernel_routine
def route_again(s: State, count: int, t: int) -> None:
    """Route `count` requests of column `S_SORTED` at t, each ahead of the first younger one where it goes."""
    for r in range(s.common[f.C_REPLICAS] + 1):
        s.replica[r, f.R_CURSOR] = f.NO_SLOT
    for place in range(count):
        route_one(s, s.slot[place, f.S_SORTED], t)
    if count > 0 and s.common[f.C_ROUTER] == f.ROUTE_CENTRAL:
        wake_all(s, t)


@kernel_routine
def detect_loss(s: State, r: int, t: int) -> None:
    """The loss of replica r is noticed at t: its requests return and are routed to replicas believed up."""
    s.replica[r, f.R_BELIEVED] = 0
    if r >= s.common[f.C_PREFILLS] and s.common[f.C_PREFILLS] > 0:
        forget_waiting_sources(s, r, t)
    route_again(s, release_queue(s, r, t), t)


@kernel_routine
def return_replica(s: State, r: int, t: int) -> None:
    """Replica r serves again from t on, empty and at full speed; requests in the router's room are routed."""
    replica, common = s.replica, s.common
    if replica[r, f.R_MODE] == f.DEAD:
        if replica[r, f.R_BELIEVED]:
            detect_loss(s, r, t)
        clear_replica(s, r, f.IDLE)
        replica[r, f.R_AT] = t
        replica[r, f.R_BELIEVED] = 1
        replica[r, f.R_LINK] = replica[r, f.R_LINK_FROM] = replica[r, f.R_LINK_TAKEN] = t
        s.pace[r, f.P_SPEED] = s.pace[r, f.P_NEXT_SPEED] = 1.0
        if common[f.C_ROUTER] == f.ROUTE_CENTRAL:
            note_alive(s, t)
        else:
            route_again(s, release_queue(s, common[f.C_REPLICAS], t), t)


@kernel_part
def change_speed(s: State, r: int, t: int, speed: float) -> None:
    """Replica r works at `speed` (1: healthy) from its first boundary at or after t."""
    s.pace[r, f.P_NEXT_SPEED] = speed
    if s.replica[r, f.R_MODE] == f.PASS:
        reconsider(s, r, t)


@kernel_part
def add_cut(s: State, elapsed: int, full: int, residual: int) -> None:
    """Scale the split in `scratch` to the first `elapsed` of `full` ns; column `residual` takes the rounding."""
    scratch = s.scratch
    named = 0
    for column in range(f.LEDGER_SIZE):
        if column != residual:
            scratch[column] = int(scratch[column] * (elapsed / full))
            named += scratch[column]
    scratch[residual] = elapsed - named


@kernel_part
def share_of_step(s: State, r: int) -> None:
    """Split the step in flight of the present segment of replica r into gauges (in `scratch`)."""
    replica, pace, scratch = s.replica, s.pace, s.scratch
    clear_scratch(s)
    for k, sign in ((replica[r, f.R_STEP], -1), (replica[r, f.R_STEP] + 1, 1)):
        scratch[f.G_DECODE] += sign * int(k * pace[r, f.P_COMPUTE])
        scratch[f.G_WEIGHTS] += sign * int(k * pace[r, f.P_WEIGHTS])
        scratch[f.G_COLLECTIVES] += sign * int(k * pace[r, f.P_COLLECTIVES])
        reads = k * pace[r, f.P_KV] + pace[r, f.P_HEALTHY_SLOPE] * (k * (k - 1) // 2)
        scratch[f.G_KV] += sign * int(reads)
        healthy = elapsed_ns(k, pace[r, f.P_HEALTHY_BASE], pace[r, f.P_HEALTHY_SLOPE])
        scratch[f.G_DEGRADED] += sign * (elapsed_ns(k, pace[r, f.P_BASE], pace[r, f.P_SLOPE]) - healthy)


@kernel_part
def close_pass(s: State, r: int, t: int) -> None:
    """The horizon t cuts the pass in flight on replica r: its time so far is split as the whole pass would be."""
    replica, slot, scratch = s.replica, s.slot, s.scratch
    mixed = replica[r, f.R_MIXED]
    start = replica[r, f.R_AT]
    full = replica[r, f.R_END] - start
    healthy = int(s.pace[r, f.P_HEALTHY_BASE] + 0.5)
    if mixed:
        i = replica[r, f.R_FIRST_PREFILL]
        while i != f.NO_SLOT:
            prompt_share_of_pass(s, r, i, healthy)
            scratch[f.L_SWAP] = replica[r, f.R_EXTRA]
            scratch[f.L_DEGRADED] = full - healthy - replica[r, f.R_EXTRA]
            add_cut(s, t - start, full, f.L_FIXED)
            for category in range(f.LEDGER_SIZE):
                slot[i, f.S_LEDGER + category] += scratch[category]
            slot[i, f.S_SINCE] = t
            i = slot[i, f.S_NEXT]
    decodes = replica[r, f.R_DECODES]
    if decodes == 0:
        return
    if mixed:
        decode_share_of_pass(s, r, healthy)
        scratch[f.L_SWAP] = replica[r, f.R_EXTRA]
        scratch[f.G_DEGRADED] = full - healthy - replica[r, f.R_EXTRA]
    else:
        k, base, slope = replica[r, f.R_STEP], s.pace[r, f.P_BASE], s.pace[r, f.P_SLOPE]
        full = elapsed_ns(k + 1, base, slope) - elapsed_ns(k, base, slope)
        share_of_step(s, r)
    add_cut(s, t - start, full, f.G_FIXED)
    for gauge in range(f.TIME_GAUGES):
        replica[r, f.R_GAUGE + gauge] += scratch[gauge]
    if scratch[f.L_SWAP] > 0:
        book_moved_blocks(s, r, scratch[f.L_SWAP])
    units = int(kv_units(s, r, decodes) * ((t - start) / full))
    replica[r, f.R_GAUGE + f.G_OWN_1] += units
    replica[r, f.R_GAUGE + f.G_OWN_2] += units * (replica[r, f.R_STEPS] - replica[r, f.R_ORIGIN])


@kernel_routine
def close_at_horizon(s: State, t: int) -> None:
    """At the horizon t every request in the system is censored: its ledger closes, and it leaves unfinished."""
    replica, slot = s.replica, s.slot
    for r in range(s.common[f.C_REPLICAS] + 1):
        if replica[r, f.R_MODE] == f.PASS and s.common[f.C_MEASURES]:
            close_pass(s, r, t)
        while replica[r, f.R_COMING] > 0:
            i = pop_coming(s, r)
            book_transfer(s, i, t)
            leave_system(s, r, i, t)
        i = replica[r, f.R_QUEUE_HEAD]
        while i != f.NO_SLOT:
            after = slot[i, f.S_NEXT]
            book_wait(s, r, i, t)
            leave_system(s, r, i, t)
            i = after
        while replica[r, f.R_TAIL] != f.NO_SLOT:
            i = replica[r, f.R_TAIL]
            waiting = slot[i, f.S_STATE] == f.PREFILL
            stop_running(s, r, i)
            if waiting:
                slot[i, f.S_LEDGER + f.L_KV_BLOCKED] += t - slot[i, f.S_SINCE]
            leave_system(s, r, i, t)
    if s.common[f.C_CLIENTS]:
        close_clients(s, t)
