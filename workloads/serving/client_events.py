"""What clients do: they lose patience, cancel, come back after a backoff; and what is refused at the door.

A client sends its request in attempts. An attempt is turned away at its arrival by the limits of admission (rejected),
or leaves when the client's patience ends (timed out): while it waits for its admission, while it has no token, or while
its answer is not complete. What waits leaves at that instant; what runs leaves at the next boundary, before blocks are
reserved, and its blocks are free from then on: a client that is gone costs nobody else the cache. KV on its way to a
decode replica is given up at once (the time that links were given is kept). The client then comes back after

    backoff x 2^(k - 1) x (1 - jitter x u)        after attempt k, u a draw of (request, attempt),

at most `attempts` times in all; every attempt starts anew, and tokens of the one before are discarded (its time to
first token is not the request's: that is counted from the first arrival to the first token of the last attempt). A
user who cancels, at a drawn time after the first arrival, is gone for good. At one instant cancellations come before
time-outs, what clients do (in order of their first arrival) before new arrivals, and both before decisions.

Ledger: the time away is `client_backoff`; a request is in the system from its first arrival until its client has its
answer, or is gone. Requests of a lost replica are routed anew without asking the limits again.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.booking import book_wait, leave_gauges
from workloads.serving.client_queue import WHOLE_DRAW, forget_client, own_draw, schedule_client
from workloads.serving.commits import leave_as, stop_running
from workloads.serving.fields import State
from workloads.serving.host import release_host
from workloads.serving.logbins import bin_of
from workloads.serving.plans import reconsider, wake_all
from workloads.serving.queues import (
    change_outstanding,
    clear_replica,
    remove_from_heap,
    remove_from_queue,
    remove_running,
)
from workloads.serving.transfers import release_source, stop_moving


@kernel_part
def is_counted(s: State, i: int) -> bool:
    """Whether slot i arrived in the measured window."""
    return bool(s.slot[i, f.S_ARRIVAL] >= s.common[f.C_MEASURE_FROM])


@kernel_routine
def begin_attempt(s: State, i: int, t: int) -> None:
    """The client of slot i sends its request, once more or for the first time, at t."""
    slot, common = s.slot, s.common
    slot[i, f.S_ATTEMPT] += 1
    if is_counted(s, i):
        common[f.N_ATTEMPTS] += 1
    slot[i, f.S_DEADLINE] = t + common[f.C_PATIENCE]
    schedule_client(s, i, min(slot[i, f.S_DEADLINE], slot[i, f.S_CANCEL]))


@kernel_part
def discard_answer(s: State, i: int) -> None:
    """What slot i has of its answer is worth nothing: its next attempt starts anew."""
    slot, common = s.slot, s.common
    common[f.N_DISCARDED] += slot[i, f.S_SENT]
    if slot[i, f.S_FIRST] != f.NO_SLOT and common[f.C_MEASURES] and is_counted(s, i):
        s.histogram[f.H_TTFT, bin_of(slot[i, f.S_FIRST] - slot[i, f.S_ARRIVAL])] -= 1
    slot[i, f.S_FIRST] = f.NO_SLOT
    slot[i, f.S_SENT] = slot[i, f.S_REDO] = slot[i, f.S_READY] = slot[i, f.S_CHUNK] = slot[i, f.S_PADDING] = 0


@kernel_routine
def end_attempt(s: State, r: int, i: int, t: int, reason: int) -> None:
    """The attempt of slot i, which row r counts and which neither waits nor runs, has ended: back off, or leave."""
    slot, common = s.slot, s.common
    if is_counted(s, i):
        if reason == f.REJECTED:
            common[f.N_ATTEMPTS_REJECTED] += 1
        elif reason == f.TIMED_OUT:
            common[f.N_ATTEMPTS_TIMED_OUT] += 1
    if common[f.C_HOST_BLOCKS] > 0:
        release_host(s, i)
    attempt = slot[i, f.S_ATTEMPT]
    if reason == f.CANCELLED or attempt >= common[f.C_ATTEMPTS]:
        leave_as(s, r, i, t, reason)
        return
    discard_answer(s, i)
    room = common[f.C_REPLICAS]
    change_outstanding(s, r, t, -1)
    change_outstanding(s, room, t, 1)
    slot[i, f.S_STATE] = f.AWAY
    slot[i, f.S_ROW] = room
    slot[i, f.S_SINCE] = t
    shorter = common[f.C_JITTER] * WHOLE_DRAW * (own_draw(s, i, attempt) * WHOLE_DRAW)
    backoff = int((common[f.C_BACKOFF] << (attempt - 1)) * (1.0 - shorter))
    schedule_client(s, i, max(t, min(t + max(1, backoff), slot[i, f.S_CANCEL])))


@kernel_part
def leave_now(s: State, r: int, i: int, t: int) -> None:
    """Slot i, which no longer runs on replica r, leaves as its client said while it ran."""
    reason = s.slot[i, f.S_LEAVING]
    s.slot[i, f.S_LEAVING] = 0
    end_attempt(s, r, i, t, reason)


@kernel_part
def stop_member(s: State, r: int, i: int) -> None:
    """Slot i of a static batch gets no more tokens; its place stays, as padding."""
    replica, slot = s.replica, s.slot
    remove_from_heap(s, r, i, replica[r, f.R_LIVE])
    remove_running(s, r, i)
    replica[r, f.R_LIVE] -= 1
    slot[i, f.S_SENT] = slot[i, f.S_OUTPUT] - (slot[i, f.S_END_STEP] - replica[r, f.R_STEPS])
    if s.common[f.C_MEASURES]:
        leave_gauges(s, r, i)
    if replica[r, f.R_LIVE] == 0:
        clear_replica(s, r, f.BOUNDARY)


@kernel_routine
def drop_running(s: State, i: int, t: int) -> None:
    """Slot i runs for a client that is gone, and its replica is at a boundary at t: it leaves, and frees its blocks."""
    replica, slot = s.replica, s.slot
    r = slot[i, f.S_ROW]
    if s.common[f.C_STATIC]:
        stop_member(s, r, i)
    elif slot[i, f.S_STATE] == f.DECODE:
        remove_from_heap(s, r, i, replica[r, f.R_DECODES])
        stop_running(s, r, i)
        replica[r, f.R_CHANGED] = 1
    else:
        slot[i, f.S_LEDGER + f.L_KV_BLOCKED] += t - slot[i, f.S_SINCE]
        stop_running(s, r, i)
    leave_now(s, r, i, t)


@kernel_routine
def quit_request(s: State, i: int, t: int, reason: int) -> None:
    """The client of slot i is gone at t: what waits leaves now, what runs at the first boundary at or after t."""
    replica, slot = s.replica, s.slot
    r = slot[i, f.S_ROW]
    if slot[i, f.S_STATE] == f.MOVING:
        stop_moving(s, r, i, t)
        end_attempt(s, r, i, t, reason)
        return
    if slot[i, f.S_STATE] == f.WAITING:
        book_wait(s, r, i, t)
        remove_from_queue(s, r, i)
        if slot[i, f.S_SOURCE] > 0:
            release_source(s, i, t)
        end_attempt(s, r, i, t, reason)
        if r < s.common[f.C_REPLICAS]:
            reconsider(s, r, t)
        elif s.common[f.C_ROUTER] == f.ROUTE_CENTRAL:
            wake_all(s, t)
        return
    slot[i, f.S_LEAVING] = reason
    reconsider(s, r, t)
    if replica[r, f.R_MODE] == f.PASS:
        schedule_client(s, i, replica[r, f.R_END])
    else:
        drop_running(s, i, t)


@kernel_part
def has_no_more_patience(s: State, i: int) -> bool:
    """Whether the limit of the client of slot i, which is reached, has not been met."""
    slot, until = s.slot, s.common[f.C_UNTIL]
    if until == f.UNTIL_ADMISSION:
        return bool(slot[i, f.S_STATE] == f.WAITING and slot[i, f.S_FIRST] == f.NO_SLOT)
    return bool(until == f.UNTIL_ANSWER or slot[i, f.S_FIRST] == f.NO_SLOT)


@kernel_routine
def client_acts(s: State, i: int, t: int) -> bool:
    """The client of slot i does at t what it meant to; True when it sends its request again."""
    slot, common = s.slot, s.common
    if slot[i, f.S_LEAVING]:
        reason = slot[i, f.S_LEAVING]
        if slot[i, f.S_STATE] == f.WAITING:
            slot[i, f.S_LEAVING] = 0
            quit_request(s, i, t, reason)
        else:
            drop_running(s, i, t)
        return False
    cancels = slot[i, f.S_CANCEL] <= t
    if slot[i, f.S_STATE] == f.AWAY:
        slot[i, f.S_LEDGER + f.L_BACKOFF] += t - slot[i, f.S_SINCE]
        slot[i, f.S_SINCE] = t
        if cancels:
            leave_as(s, common[f.C_REPLICAS], i, t, f.CANCELLED)
            return False
        change_outstanding(s, common[f.C_REPLICAS], t, -1)
        return True
    if cancels:
        quit_request(s, i, t, f.CANCELLED)
    elif has_no_more_patience(s, i):
        quit_request(s, i, t, f.TIMED_OUT)
    else:
        slot[i, f.S_DEADLINE] = f.FOREVER
        schedule_client(s, i, slot[i, f.S_CANCEL])
    return False


@kernel_routine
def close_clients(s: State, t: int) -> None:
    """At the horizon t the clients that are away are censored too."""
    slot, common = s.slot, s.common
    while common[f.C_EVENTS] > 0:
        i = slot[0, f.S_EVENTS]
        if slot[i, f.S_STATE] == f.THINKING:
            forget_client(s, i)
            continue
        slot[i, f.S_LEDGER + f.L_BACKOFF] += t - slot[i, f.S_SINCE]
        slot[i, f.S_SINCE] = t
        leave_as(s, common[f.C_REPLICAS], i, t, f.UNFINISHED)
