"""Disaggregated serving, the transfer of KV: from the prefill replica that computed a prompt to a decode replica.

Replicas 0 to `C_PREFILLS` - 1 compute prompts, the others decode. The rules:

- The router chooses among prefill replicas. When a prompt is computed, its token appears there; a request that wants
  more is handed over to the decode replica, of those believed up, with the fewest outstanding requests (ties: lowest
  index), and waits there, first come, first served.
- At a boundary of the decode replica, where slots and blocks last (watermark as at admission), the blocks of its KV are
  reserved, and the transfer begins when the links of both replicas are free: each has one, used first come, first
  served. It takes what layer-by-layer streaming leaves exposed: max(last layer, all layers - prefill time), the prefill
  time being that from admission to the first token. At its end the blocks at the source are free, and the request
  decodes from the first boundary at or after that instant. Reservation to first decode step is `kv_transfer`.
- A decode replica that lacks blocks sends its youngest back to the prefill replicas, in order of arrival, to be
  computed again (prompt and sent tokens). It begins no transfer at that boundary, unless nobody is left to decode.
- A loss of the source before the end of the transfer, or of the decode replica: the request stays with the dead replica
  until detection, then it returns to the router and is computed again. Blocks at the other end are free at once; times
  that links were given are kept. Where no decode replica is believed up at the hand-over, the request waits in the
  router's room until a replica returns.
- All of it happens in order of time, whatever the steps of the kernel: at one instant passes end first (lowest index
  first), then transfers, then come arrivals, then boundaries (lowest index first).
- Priorities hold in both queues, and the lowest is sent back first; limits at the door are those of prefill replicas.
  A client that is gone leaves its queue, or the links, at once. The queue is not a central one.
- Prefixes are shared on prefill replicas: a request refers to its pieces there until its blocks are free. What reaches
  a decode replica is all its own.
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
    slot[i, f.S_BEGAN] = t - slot[i, f.S_BEGAN]
    change_outstanding(s, r, t, -1)
    d = choose_decode(s)
    change_outstanding(s, d, t, 1)
    if d == s.common[f.C_REPLICAS]:
        forget_source(s, i, t)
    enqueue_last(s, d, i, t)
    if replica[d, f.R_MODE] == f.DEAD:
        slot[i, f.S_CAUGHT] = 1
    elif replica[d, f.R_QUEUE_HEAD] == i:
        reconsider(s, d, t)


@kernel_routine
def start_transfers(s: State, d: int, t: int, reserved: int) -> int:
    """Reserve blocks of decode replica d for those that wait, in order; their transfers follow on both links.

    `reserved` blocks are promised to the decodes of the step that begins at t. Return 1 when the head lacks blocks.
    """
    replica, slot, common = s.replica, s.slot, s.common
    while replica[d, f.R_QUEUE] > 0 and replica[d, f.R_RUNNING] + replica[d, f.R_COMING] < common[f.C_MAX_BATCH]:
        i = replica[d, f.R_QUEUE_HEAD]
        tokens = slot[i, f.S_INPUT] + slot[i, f.S_SENT] - 1
        blocks = blocks_of(tokens)
        spare = replica[d, f.R_FREE] - reserved - blocks
        empty = replica[d, f.R_RUNNING] + replica[d, f.R_COMING] == 0
        if spare < 0 or (not empty and spare < common[f.C_DECODE_WATERMARK]):
            return 1
        pop_queue(s, d)
        book_wait(s, d, i, t)
        source = slot[i, f.S_SOURCE] - 1
        slot[i, f.S_STATE] = f.MOVING
        slot[i, f.S_BLOCKS] = blocks
        replica[d, f.R_FREE] -= blocks
        most = s.pace[d, f.P_TRANSFER] * tokens - slot[i, f.S_BEGAN]
        exposed = max(1, int(max(s.pace[d, f.P_LAST_LAYER] * tokens, most) + 0.5))
        end = max(t, replica[source, f.R_LINK], replica[d, f.R_LINK]) + exposed
        replica[source, f.R_LINK] = replica[d, f.R_LINK] = end
        slot[i, f.S_JOIN_AT] = end
        slot[i, f.S_NEXT] = f.NO_SLOT
        if replica[d, f.R_COMING] == 0:
            replica[d, f.R_COMING_HEAD] = i
        else:
            slot[replica[d, f.R_COMING_TAIL], f.S_NEXT] = i
        replica[d, f.R_COMING_TAIL] = i
        replica[d, f.R_COMING] += 1
        if replica[d, f.R_MOVING] == f.NO_SLOT:
            replica[d, f.R_MOVING] = i
        common[f.N_TRANSFERS] += 1
        common[f.N_TRANSFER_TOKENS] += tokens
        common[f.N_TRANSFER_NS] += exposed
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
    replica[r, f.R_LINK] = 0
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
    replica[d, f.R_LINK] = 0
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
