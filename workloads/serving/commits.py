"""What happens at the end of passes: tokens appear, counters advance, requests join the decodes or leave."""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.blocks import blocks_of_steps, held_blocks
from workloads.serving.booking import (
    book_decode,
    book_mixed,
    book_prompt,
    elapsed_ns,
    join_gauges,
    leave_gauges,
    measure_leaving,
    overlap_with_lost,
)
from workloads.serving.client_queue import forget_client
from workloads.serving.fields import State
from workloads.serving.logbins import bin_of
from workloads.serving.prefix import leave_run, take_cached
from workloads.serving.queues import (
    SLOT_BITS,
    SLOT_MASK,
    append_running,
    change_outstanding,
    push_heap,
    remove_running,
    sift_down,
    sort_by_arrival,
)
from workloads.serving.samples import leave_tail
from workloads.serving.speculation import accept_drafts
from workloads.serving.transfers import book_first_gaps, hand_over
from workloads.serving.turns import end_turn
from workloads.serving.waste import book_memory, book_room


@kernel_routine
def stop_running(s: State, r: int, i: int) -> None:
    """Slot i no longer runs on replica r: its blocks are free, its sent tokens and ledger are settled."""
    replica, slot = s.replica, s.slot
    replica[r, f.R_FREE] += held_blocks(s, r, i)
    if slot[i, f.S_SHARED] > 0:
        replica[r, f.R_FREE] -= slot[i, f.S_SHARED] * s.common[f.C_UNIT]
        leave_run(s, r, i)
    if slot[i, f.S_TAIL] > 0:
        leave_tail(s, r, i)
    remove_running(s, r, i)
    if slot[i, f.S_STATE] == f.DECODE:
        slot[i, f.S_SENT] = slot[i, f.S_OUTPUT] - (slot[i, f.S_END_STEP] - replica[r, f.R_STEPS])
        tokens = slot[i, f.S_INPUT] + slot[i, f.S_SENT] - 1 + slot[i, f.S_PADDING]
        if s.common[f.C_WASTE]:
            book_memory(s, i, slot[i, f.S_JOINED], tokens)
        replica[r, f.R_DECODES] -= 1
        replica[r, f.R_CONTEXT] -= tokens
        replica[r, f.R_PHASE + ((tokens - replica[r, f.R_STEPS]) & 15)] -= 1
        slot[i, f.S_SINCE] = replica[r, f.R_AT]
        if slot[i, f.S_FRESH]:
            slot[i, f.S_FRESH] = 0
            replica[r, f.R_FRESH] -= 1
        else:
            slot[i, f.S_LAST] = replica[r, f.R_AT]
        if s.common[f.C_MEASURES]:
            leave_gauges(s, r, i)


@kernel_part
def leave_system(s: State, r: int, i: int, t: int) -> None:
    """Slot i leaves the system at t, complete or cut by the horizon."""
    completed = s.slot[i, f.S_SENT] == s.slot[i, f.S_OUTPUT]
    leave_as(s, r, i, t, f.COMPLETED if completed else f.UNFINISHED)


@kernel_part
def count_leaving(s: State, status: int) -> None:
    """One more request has left the system in this way."""
    common = s.common
    if status == f.COMPLETED:
        common[f.N_COMPLETED] += 1
    elif status == f.UNFINISHED:
        common[f.N_UNFINISHED] += 1
    elif status == f.REJECTED:
        common[f.N_REJECTED] += 1
    elif status == f.TIMED_OUT:
        common[f.N_TIMED_OUT] += 1
    else:
        common[f.N_CANCELLED] += 1


@kernel_routine
def leave_as(s: State, r: int, i: int, t: int, status: int) -> None:
    """Slot i, which row r counts, leaves the system at t: book it, record it, free its slot."""
    slot, common = s.slot, s.common
    completed = status == f.COMPLETED
    change_outstanding(s, r, t, -1)
    if common[f.C_CLIENTS]:
        forget_client(s, i)
    common[f.N_ANSWERED] += int(completed)
    common[f.N_SENT] += slot[i, f.S_SENT]
    if slot[i, f.S_ARRIVAL] >= common[f.C_MEASURE_FROM]:
        count_leaving(s, status)
        if common[f.C_MEASURES]:
            measure_leaving(s, i, t, completed)
    else:
        common[f.N_CARRIED_TIME] += t - common[f.C_MEASURE_FROM]
    row = slot[i, f.S_ID] - common[f.C_RECORD_FROM]
    if 0 <= row < common[f.C_RECORD_ROWS]:
        record = s.record
        record[row, f.X_FIRST] = slot[i, f.S_FIRST]
        record[row, f.X_FINISH] = t
        record[row, f.X_TOKENS] = slot[i, f.S_SENT]
        record[row, f.X_REPLICA] = r
        record[row, f.X_STATUS] = status
        record[row, f.X_ATTEMPTS] = slot[i, f.S_ATTEMPT]
        record[row, f.X_CAUGHT] = slot[i, f.S_CAUGHT]
        record[row, f.X_EVICTIONS] = slot[i, f.S_EVICTIONS]
        for category in range(f.LEDGER_SIZE):
            record[row, f.X_LEDGER + category] = slot[i, f.S_LEDGER + category]
    end_turn(s, i, t)


@kernel_routine
def complete_sharers(s: State, r: int) -> None:
    """As `complete_decodes`, in order of arrival: so a rule says in which order cached prefixes are left."""
    replica, slot = s.replica, s.slot
    count, size = 0, replica[r, f.R_DECODES]
    while size > 0 and replica[r, f.R_HEAP] >> SLOT_BITS <= replica[r, f.R_STEPS]:
        slot[count, f.S_SORTED] = replica[r, f.R_HEAP] & SLOT_MASK
        size -= 1
        sift_down(s, r, 0, replica[r, f.R_HEAP + size], size)
        count += 1
    sort_by_arrival(s, count)
    for place in range(count):
        i = slot[place, f.S_SORTED]
        stop_running(s, r, i)
        leave_system(s, r, i, replica[r, f.R_AT])
        replica[r, f.R_CHANGED] = 1


@kernel_part
def complete_decodes(s: State, r: int) -> None:
    """The decodes of replica r whose last token has just appeared leave."""
    replica = s.replica
    if s.common[f.C_UNIT] > 0:
        complete_sharers(s, r)
        return
    while replica[r, f.R_DECODES] > 0 and replica[r, f.R_HEAP] >> SLOT_BITS <= replica[r, f.R_STEPS]:
        i = replica[r, f.R_HEAP] & SLOT_MASK
        size = replica[r, f.R_DECODES] - 1
        sift_down(s, r, 0, replica[r, f.R_HEAP + size], size)
        stop_running(s, r, i)
        leave_system(s, r, i, replica[r, f.R_AT])
        replica[r, f.R_CHANGED] = 1


@kernel_part
def emit_one(s: State, i: int, t: int) -> None:
    """The prompt of slot i is computed: its next token appears at t."""
    slot = s.slot
    slot[i, f.S_SENT] += 1
    slot[i, f.S_REDO] = 0
    s.common[f.N_TOKENS] += 1
    if slot[i, f.S_FIRST] == f.NO_SLOT:
        slot[i, f.S_FIRST] = t
        if s.common[f.C_MEASURES] and slot[i, f.S_ARRIVAL] >= s.common[f.C_MEASURE_FROM]:
            s.histogram[f.H_TTFT, bin_of(t - slot[i, f.S_ARRIVAL])] += 1
    elif s.common[f.C_MEASURES]:
        s.histogram[f.H_ITL, bin_of(t - slot[i, f.S_LAST])] += 1


@kernel_part
def emit_after_prompt(s: State, r: int, i: int) -> None:
    """The prompt of slot i is computed: a token appears; the slot leaves, or decodes from now on."""
    replica, slot = s.replica, s.slot
    t = replica[r, f.R_AT]
    emit_one(s, i, t)
    left = slot[i, f.S_OUTPUT] - slot[i, f.S_SENT]
    if left == 0:
        stop_running(s, r, i)
        leave_system(s, r, i, t)
    elif r < s.common[f.C_PREFILLS]:
        hand_over(s, r, i, t)
    else:
        begin_decode(s, r, i)


@kernel_part
def begin_decode(s: State, r: int, i: int) -> None:
    """Slot i, which runs on replica r and has sent a token at least, decodes from now on."""
    replica, slot = s.replica, s.slot
    tokens = slot[i, f.S_INPUT] + slot[i, f.S_SENT] - 1
    slot[i, f.S_STATE] = f.DECODE
    slot[i, f.S_JOINED] = tokens
    slot[i, f.S_END_STEP] = replica[r, f.R_STEPS] + slot[i, f.S_OUTPUT] - slot[i, f.S_SENT]
    push_heap(s, r, (slot[i, f.S_END_STEP] << SLOT_BITS) | i, replica[r, f.R_DECODES])
    replica[r, f.R_DECODES] += 1
    replica[r, f.R_CONTEXT] += tokens
    replica[r, f.R_PHASE + ((tokens - replica[r, f.R_STEPS]) & 15)] += 1
    if s.common[f.C_MEASURES]:
        join_gauges(s, r, i, tokens)


@kernel_routine
def go_on_decoding(s: State, r: int, i: int) -> None:
    """Slot i, whose KV has been moved to replica r, decodes from now on; its next gap has the move in it."""
    append_running(s, r, i)
    begin_decode(s, r, i)
    s.slot[i, f.S_FRESH] = 1
    s.replica[r, f.R_FRESH] += 1
    s.replica[r, f.R_CHANGED] = 1


@kernel_part
def commit_decode(s: State, r: int, k: int) -> None:
    """The steps of the present segment of replica r up to step k have ended."""
    replica, pace = s.replica, s.pace
    m = k - replica[r, f.R_STEP]
    if m == 0:
        return
    decodes = replica[r, f.R_DECODES]
    live = replica[r, f.R_LIVE] if s.common[f.C_STATIC] else decodes
    if s.common[f.C_MEASURES]:
        book_decode(s, r, k, live)
    if replica[r, f.R_FRESH] > 0:
        book_first_gaps(s, r, elapsed_ns(1, pace[r, f.P_BASE], pace[r, f.P_SLOPE]))
    replica[r, f.R_FREE] -= blocks_of_steps(s, r, m)
    if s.common[f.C_UNIT] > 0:
        take_cached(s, r, 0)
    held = replica[r, f.R_BLOCKS] - replica[r, f.R_FREE]
    s.common[f.N_MOST_BLOCKS] = max(s.common[f.N_MOST_BLOCKS], held)
    replica[r, f.R_STEP] = k
    replica[r, f.R_STEPS] += m
    replica[r, f.R_CONTEXT] += decodes * m
    replica[r, f.R_AT] = replica[r, f.R_ANCHOR] + elapsed_ns(k, pace[r, f.P_BASE], pace[r, f.P_SLOPE])
    s.common[f.N_TOKENS] += live * m
    s.common[f.N_PADDED] += (decodes - live) * m
    s.common[f.N_STEPS] += m
    if s.common[f.C_WASTE]:
        book_room(s, r, m)
    if k == replica[r, f.R_PLAN]:
        replica[r, f.R_MODE] = f.BOUNDARY
        if not s.common[f.C_STATIC]:
            complete_decodes(s, r)


@kernel_part
def commit_mixed(s: State, r: int) -> None:
    """The pass of replica r that carried prompt tokens has ended."""
    replica, slot, common = s.replica, s.slot, s.common
    if s.common[f.C_MEASURES]:
        book_mixed(s, r)
        i = replica[r, f.R_FIRST_PREFILL]
        while i != f.NO_SLOT:
            book_prompt(s, r, i)
            i = slot[i, f.S_NEXT]
    decodes = replica[r, f.R_DECODES]
    replica[r, f.R_AT] = replica[r, f.R_END]
    replica[r, f.R_MODE] = f.BOUNDARY
    replica[r, f.R_CHANGED] = 1
    replica[r, f.R_STEPS] += 1
    replica[r, f.R_CONTEXT] += decodes
    common[f.N_TOKENS] += decodes
    common[f.N_STEPS] += 1
    common[f.N_PROMPT_TOKENS] += replica[r, f.R_PROMPT_TOKENS]
    if common[f.C_DRAFTS] > 0:
        accept_drafts(s, r)
    complete_decodes(s, r)
    i = replica[r, f.R_FIRST_PREFILL]
    while i != f.NO_SLOT:
        after = slot[i, f.S_NEXT]
        common[f.N_RECOMPUTED] += overlap_with_lost(s, i)
        slot[i, f.S_READY] += slot[i, f.S_CHUNK]
        slot[i, f.S_CHUNK] = 0
        slot[i, f.S_SINCE] = replica[r, f.R_AT]
        if slot[i, f.S_READY] == slot[i, f.S_TARGET]:
            emit_after_prompt(s, r, i)
        i = after
