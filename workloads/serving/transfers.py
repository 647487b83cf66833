"""Disaggregated serving, the transfer of KV: from the prefill replica that computed a prompt to a decode replica.

Replicas 0 to `C_PREFILLS` - 1 compute prompts, the others decode. The rules:

- The router chooses among prefill replicas. When a prompt is computed, its token appears there; a request that wants
  more is handed over to the decode replica, of those believed up, with the fewest outstanding requests (ties: lowest
  index), and waits there, first come, first served.
- At a boundary of the decode replica, where slots and blocks last (watermark as at admission), the blocks of its KV are
  reserved. Its transfer takes the links of both replicas, one each, first come, first served, for D: the bytes of all
  layers over the bandwidth. Who has a place at the first boundary from the hand-over on has been streamed layer by
  layer from admission to first token, as far as both links had idle time then; the last layer (D / layers) and what
  else is left follow when both are free. On idle links that exposes what the design says, max(last layer, D - prefill
  time). Who had to wait for a place has not been streamed: all of D follows.
- At the end of the transfer the blocks at the source are free, and the request decodes from the first boundary at or
  after it (and after that of the reservation). Reservation to first decode step is `kv_transfer`.
- A decode replica that lacks blocks sends its youngest back to the prefill replicas, in order of arrival, to be
  computed again (prompt and sent tokens). It begins no transfer at that boundary, unless nobody is left to decode.
- A loss of the source before the end of the transfer, or of the decode replica: the request stays with the dead replica
  until detection, then it returns to the router and is computed again. Blocks at the other end are free at once; times
  that links were given are kept (a replica that returns has a free one). Where no decode replica is believed up at the
  hand-over, the request waits in the router's room until a replica returns.
- All of it happens in order of time, whatever the steps of the kernel: at one instant passes end first (lowest index
  first), then transfers, then come arrivals, then boundaries (lowest index first).
- Priorities hold in both queues, and the lowest is sent back first; limits at the door are those of prefill replicas.
  A client that is gone leaves its queue, or the links, at once. The queue is not a central one.
- Prefixes are shared on prefill replicas: a request refers to its pieces there until its blocks are free. What reaches
  a decode replica is all its own.

A link carries one thing at a time, so never more than its bandwidth. (Were it taken for the exposed part alone, what
hides behind prefills would cost it nothing, and prompts of one pass, or of several replicas, could pass at any rate.)
It has been taken without a break from `R_LINK_FROM` to `R_LINK`; of the idle time before, the last piece is remembered,
which is taken up to `R_LINK_TAKEN`. A transfer is streamed in the oldest idle time of each of its links, which need not
be the same instants at both (our simplification).
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.blocks import blocks_of
from workloads.serving.booking import book_wait
from workloads.serving.fields import State
from workloads.serving.logbins import bin_of
from workloads.serving.plans import reconsider
from workloads.serving.prefix import leave_run
from workloads.serving.queues import (
    change_outstanding,
    enqueue_first,
    enqueue_last,
    pop_queue,
    remove_from_queue,
    remove_running,
)


@kernel_part
def choose_decode(s: State) -> int:
    """The decode replica for a request; the router's room where none is believed up."""
    replica, replicas = s.replica, s.common[f.C_REPLICAS]
    chosen: int = replicas
    for d in range(s.common[f.C_PREFILLS], replicas):
        if replica[d, f.R_BELIEVED] and (
            chosen == replicas or replica[d, f.R_OUTSTANDING] < replica[chosen, f.R_OUTSTANDING]
        ):
            chosen = d
    return chosen


@kernel_routine
def release_source(s: State, i: int, t: int) -> None:
    """The blocks that slot i holds on its prefill replica are free from t on."""
    replica, slot = s.replica, s.slot
    r = slot[i, f.S_SOURCE] - 1
    slot[i, f.S_SOURCE] = 0
    replica[r, f.R_FREE] += slot[i, f.S_SOURCE_BLOCKS]
    if slot[i, f.S_SHARED] > 0:
        replica[r, f.R_FREE] -= slot[i, f.S_SHARED] * s.common[f.C_UNIT]
        leave_run(s, r, i)
    if replica[r, f.R_QUEUE] > 0 and replica[r, f.R_MODE] == f.IDLE:
        reconsider(s, r, t)


@kernel_routine
def forget_source(s: State, i: int, t: int) -> None:
    """The KV of slot i on its prefill replica is of no use any more: it is to be computed again."""
    slot = s.slot
    tokens = slot[i, f.S_INPUT] + slot[i, f.S_SENT] - 1
    slot[i, f.S_REDO] = max(slot[i, f.S_REDO], tokens)
    s.common[f.N_TOKENS_LOST] += tokens
    if slot[i, f.S_SOURCE] > 0:
        release_source(s, i, t)


@kernel_routine
def hand_over(s: State, r: int, i: int, t: int) -> None:
    """Slot i, whose prompt prefill replica r has computed, goes to a decode replica; its blocks stay held here."""
    replica, slot = s.replica, s.slot
    remove_running(s, r, i)
    slot[i, f.S_SOURCE] = r + 1
    slot[i, f.S_SOURCE_BLOCKS] = slot[i, f.S_BLOCKS]
    slot[i, f.S_BLOCKS] = 0
    slot[i, f.S_LAST] = t
    change_outstanding(s, r, t, -1)
    d = choose_decode(s)
    change_outstanding(s, d, t, 1)
    if d == s.common[f.C_REPLICAS]:
        forget_source(s, i, t)
    enqueue_last(s, d, i, t)
    if replica[d, f.R_MODE] == f.DEAD:
        slot[i, f.S_CAUGHT] = 1
    reconsider(s, d, t)
    # Until it moves: the boundary at which it must have a place for its KV to have been streamed.
    slot[i, f.S_JOIN_AT] = replica[d, f.R_END] if replica[d, f.R_MODE] == f.PASS else t


@kernel_part
def idle_before(s: State, r: int, since: int, until: int) -> int:
    """Of the time from `since` to `until`, what lies in the idle piece that is known before link r was last taken."""
    replica = s.replica
    idle: int = min(until, replica[r, f.R_LINK_FROM]) - max(since, replica[r, f.R_LINK_TAKEN])
    return max(0, idle)


@kernel_part
def idle_time(s: State, r: int, since: int, until: int) -> int:
    """Time from `since` to `until` in which link r carries nothing."""
    after: int = until - max(since, s.replica[r, f.R_LINK])
    return idle_before(s, r, since, until) + max(0, after)


@kernel_routine
def take_link(s: State, r: int, since: int, until: int, streamed: int, start: int, end: int) -> None:
    """Link r carries KV in the oldest `streamed` ns of its idle time from `since` to `until`, and from start to end."""
    replica = s.replica
    free, later = replica[r, f.R_LINK], streamed - idle_before(s, r, since, until)
    if start > free:
        replica[r, f.R_LINK_TAKEN] = max(since, free) + later if later > 0 else free
        replica[r, f.R_LINK_FROM] = start
    elif streamed > 0:
        replica[r, f.R_LINK_TAKEN] = max(since, replica[r, f.R_LINK_TAKEN]) + streamed
    replica[r, f.R_LINK] = end


@kernel_routine
def carry(s: State, source: int, d: int, i: int, t: int) -> int:
    """Links carry the KV of slot i, which has a place at t, from `source` to replica d; return when it is all there."""
    slot, common = s.slot, s.common
    tokens = slot[i, f.S_INPUT] + slot[i, f.S_SENT] - 1
    whole = int(s.pace[d, f.P_TRANSFER] * tokens + 0.5)
    last_layer = int(s.pace[d, f.P_LAST_LAYER] * tokens + 0.5)
    since, until, streamed = t, t, 0
    if slot[i, f.S_JOIN_AT] == t:
        since, until = slot[i, f.S_BEGAN], slot[i, f.S_LAST]
        idle = min(idle_time(s, source, since, until), idle_time(s, d, since, until))
        streamed = min(whole - last_layer, idle)
    start = max(until, s.replica[source, f.R_LINK], s.replica[d, f.R_LINK])
    end: int = start + whole - streamed
    take_link(s, source, since, until, streamed, start, end)
    take_link(s, d, since, until, streamed, start, end)
    common[f.N_TRANSFERS] += 1
    common[f.N_TRANSFER_TOKENS] += tokens
    common[f.N_TRANSFER_NS] += whole
    return max(t + 1, end)


@kernel_routine
def start_transfers(s: State, d: int, t: int, reserved: int) -> int:
    """Reserve blocks of decode replica d for those that wait, in order; their transfers follow on both links.

    `reserved` blocks are promised to the decodes of the step that begins at t. Return 1 when the head lacks blocks.
    """
    replica, slot, common = s.replica, s.slot, s.common
    while replica[d, f.R_QUEUE] > 0 and replica[d, f.R_RUNNING] + replica[d, f.R_COMING] < common[f.C_MAX_BATCH]:
        i = replica[d, f.R_QUEUE_HEAD]
        blocks = blocks_of(slot[i, f.S_INPUT] + slot[i, f.S_SENT] - 1)
        spare = replica[d, f.R_FREE] - reserved - blocks
        empty = replica[d, f.R_RUNNING] + replica[d, f.R_COMING] == 0
        if spare < 0 or (not empty and spare < common[f.C_DECODE_WATERMARK]):
            return 1
        pop_queue(s, d)
        book_wait(s, d, i, t)
        slot[i, f.S_STATE] = f.MOVING
        slot[i, f.S_BLOCKS] = blocks
        replica[d, f.R_FREE] -= blocks
        slot[i, f.S_JOIN_AT] = carry(s, slot[i, f.S_SOURCE] - 1, d, i, t)
        slot[i, f.S_NEXT] = f.NO_SLOT
        if replica[d, f.R_COMING] == 0:
            replica[d, f.R_COMING_HEAD] = i
        else:
            slot[replica[d, f.R_COMING_TAIL], f.S_NEXT] = i
        replica[d, f.R_COMING_TAIL] = i
        replica[d, f.R_COMING] += 1
        if replica[d, f.R_MOVING] == f.NO_SLOT:
            replica[d, f.R_MOVING] = i
    return 0


@kernel_part
def end_transfers(s: State, d: int, t: int) -> None:
    """Transfers to decode replica d that end at t: the source is free, the request joins at the next boundary."""
    replica, slot = s.replica, s.slot
    while replica[d, f.R_MOVING] != f.NO_SLOT and slot[replica[d, f.R_MOVING], f.S_JOIN_AT] == t:
        i = replica[d, f.R_MOVING]
        replica[d, f.R_MOVING] = slot[i, f.S_NEXT]
        release_source(s, i, t)
        reconsider(s, d, t)


@kernel_routine
def book_first_gaps(s: State, d: int, step: int) -> None:
    """The first step of the segment of replica d, of `step` ns, has ended: those that joined have waited longer."""
    replica, slot = s.replica, s.slot
    i = replica[d, f.R_TAIL]
    while replica[d, f.R_FRESH] > 0:
        slot[i, f.S_FRESH] = 0
        replica[d, f.R_FRESH] -= 1
        if s.common[f.C_MEASURES]:
            s.histogram[f.H_ITL, bin_of(step)] -= 1
            s.histogram[f.H_ITL, bin_of(replica[d, f.R_ANCHOR] + step - slot[i, f.S_LAST])] += 1
        i = slot[i, f.S_PREVIOUS]


@kernel_routine
def strand(s: State, d: int, r: int, i: int, t: int) -> None:
    """Prefill replica r has died before the KV of slot i reached replica d: the slot stays with the dead one."""
    slot = s.slot
    slot[i, f.S_SOURCE] = slot[i, f.S_SHARED] = 0
    slot[i, f.S_CAUGHT] = 1
    forget_source(s, i, t)
    change_outstanding(s, d, t, -1)
    change_outstanding(s, r, t, 1)
    enqueue_first(s, r, i, t)


@kernel_routine
def leave_coming(s: State, d: int, before: int, i: int, t: int) -> None:
    """Slot i, behind `before` (NO_SLOT: the first) of those that come to decode replica d, does not come at all."""
    replica, slot = s.replica, s.slot
    after = slot[i, f.S_NEXT]
    if before == f.NO_SLOT:
        replica[d, f.R_COMING_HEAD] = after
    else:
        slot[before, f.S_NEXT] = after
    if after == f.NO_SLOT:
        replica[d, f.R_COMING_TAIL] = before
    if replica[d, f.R_MOVING] == i:
        replica[d, f.R_MOVING] = after
    replica[d, f.R_COMING] -= 1
    replica[d, f.R_FREE] += slot[i, f.S_BLOCKS]
    slot[i, f.S_BLOCKS] = 0
    book_transfer(s, i, t)


@kernel_routine
def stop_moving(s: State, d: int, i: int, t: int) -> None:
    """The client of slot i, on its way to decode replica d, is gone at t: blocks at both ends are free."""
    before, each = f.NO_SLOT, s.replica[d, f.R_COMING_HEAD]
    while each != i:
        before, each = each, s.slot[each, f.S_NEXT]
    leave_coming(s, d, before, i, t)
    if s.slot[i, f.S_SOURCE] > 0:
        release_source(s, i, t)
    reconsider(s, d, t)


@kernel_routine
def lose_source(s: State, r: int, t: int) -> None:
    """Prefill replica r dies at t: so does the KV that it holds for others, waiting or on its way."""
    replica, slot = s.replica, s.slot
    for d in range(s.common[f.C_PREFILLS], s.common[f.C_REPLICAS]):
        i = replica[d, f.R_QUEUE_HEAD]
        while i != f.NO_SLOT:
            after = slot[i, f.S_NEXT]
            if slot[i, f.S_SOURCE] == r + 1:
                remove_from_queue(s, d, i)
                book_wait(s, d, i, t)
                strand(s, d, r, i, t)
            i = after
        before, i = f.NO_SLOT, replica[d, f.R_COMING_HEAD]
        while i != f.NO_SLOT:
            after = slot[i, f.S_NEXT]
            if slot[i, f.S_SOURCE] == r + 1:
                leave_coming(s, d, before, i, t)
                strand(s, d, r, i, t)
            else:
                before = i
            i = after
        if replica[d, f.R_QUEUE] > 0 or replica[d, f.R_MODE] == f.PASS:
            reconsider(s, d, t)


@kernel_part
def book_transfer(s: State, i: int, t: int) -> None:
    """Slot i has waited for its transfer until t."""
    s.slot[i, f.S_LEDGER + f.L_TRANSFER] += t - s.slot[i, f.S_SINCE]
    s.slot[i, f.S_SINCE] = t


@kernel_part
def pop_coming(s: State, d: int) -> int:
    """Take the first of those that come to decode replica d (there is one) and return its slot."""
    replica = s.replica
    i: int = replica[d, f.R_COMING_HEAD]
    replica[d, f.R_COMING_HEAD] = s.slot[i, f.S_NEXT]
    replica[d, f.R_COMING] -= 1
    if replica[d, f.R_MOVING] == i:
        replica[d, f.R_MOVING] = s.slot[i, f.S_NEXT]
    return i


@kernel_routine
def lose_target(s: State, d: int, t: int) -> None:
    """Decode replica d dies at t: what comes to it, or waits for it with KV at its source, is computed again later."""
    replica, slot = s.replica, s.slot
    replica[d, f.R_FRESH] = 0
    forget_waiting_sources(s, d, t)
    while replica[d, f.R_COMING] > 0:
        i = pop_coming(s, d)
        book_transfer(s, i, t)
        forget_source(s, i, t)
        slot[i, f.S_CAUGHT] = 1
        slot[i, f.S_BLOCKS] = 0
        enqueue_first(s, d, i, t)


@kernel_routine
def forget_waiting_sources(s: State, d: int, t: int) -> None:
    """KV at the sources of those that wait at the dead decode replica d is given up."""
    i = s.replica[d, f.R_QUEUE_HEAD]
    while i != f.NO_SLOT:
        if s.slot[i, f.S_SOURCE] > 0:
            forget_source(s, i, t)
        i = s.slot[i, f.S_NEXT]
