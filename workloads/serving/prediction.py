"""A time to first token, predicted when a request arrives: what the SLO-aware router and early rejection go by.

The rule, for a prompt of n tokens at a replica (healthy, as the table of pass times says; committed state, so that
every way of running the kernel predicts the same):

    work   = n + prompt tokens that wait there (prompts and sent tokens to be computed again) + rest of a partial prompt
    room   = token budget - decodes                                  (no limit: all of the work fits into one pass)
    passes = ceil(work / room), all but the last full
    TTFT   = wait for a place + sum over passes of T_prefill(decodes + its prompt tokens)
             + passes x KV reads of the decodes

Where those that run and wait leave no place in the batch, the newcomer waits for one: each place goes, when its answer
ends, to the next in the queue, for as many decode steps as that one asks for (lengths of answers are taken as known);
steps are those of the decodes now, one of which is gone when the passes begin. Of a longer queue `MOST_LOOKED` places
are followed, and the wait grows in proportion beyond them.

Blocks, priorities, attention of the prompts, accepted drafts, what is left of the pass in flight, padding and places of
static batches are left out. A replica that is dead and not yet known to be predicts from what waits there; the router's
room predicts for ever.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.booking import elapsed_ns, kv_ns, table_row, table_value
from workloads.serving.fields import State
from workloads.serving.queues import SLOT_BITS, choose_replica, push_heap, sift_down

MOST_LOOKED = 64
"""Places that are followed one by one: a limit of ours, for the time that it takes."""


@kernel_part
def prefill_ns(s: State, tokens: int) -> float:
    """Time of a pass with prompts of `tokens` tokens in all, without reads."""
    row, weight = table_row(s, tokens)
    return table_value(s, row, weight, f.T_PREFILL)


@kernel_part
def steps_of(s: State, i: int) -> int:
    """Decode steps of slot i after its prompt."""
    steps: int = s.slot[i, f.S_OUTPUT] - s.slot[i, f.S_SENT] - 1
    return steps


@kernel_part
def places_of(s: State, r: int) -> int:
    """Most sequences that replica r can run: by the batch, and by blocks, which samples of a prompt may share."""
    places: int = min(s.common[f.C_MAX_BATCH], s.replica[r, f.R_BLOCKS] * s.common[f.C_SAMPLES])
    return places


@kernel_routine
def steps_to_place(s: State, r: int) -> int:
    """Decode steps until replica r, with more to do than places, has one for a request that comes now.

    The row of the router's room, where nothing decodes, has the room for the heap of steps at which places are free.
    """
    replica, slot, room = s.replica, s.slot, s.common[f.C_REPLICAS]
    places = places_of(s, r)
    size, done = replica[r, f.R_DECODES], replica[r, f.R_STEPS]
    for place in range(size):
        replica[room, f.R_HEAP + place] = (replica[r, f.R_HEAP + place] >> SLOT_BITS) - done
    i = replica[r, f.R_TAIL]
    while i != f.NO_SLOT and slot[i, f.S_STATE] == f.PREFILL:
        push_heap(s, room, steps_of(s, i), size)
        size += 1
        i = slot[i, f.S_PREVIOUS]
    i, looked = replica[r, f.R_QUEUE_HEAD], 1
    while i != f.NO_SLOT and looked < MOST_LOOKED:
        if size < places:
            push_heap(s, room, steps_of(s, i), size)
            size += 1
        else:
            sift_down(s, room, 0, replica[room, f.R_HEAP] + steps_of(s, i), size)
            looked += 1
        i = slot[i, f.S_NEXT]
    needed = replica[r, f.R_RUNNING] + replica[r, f.R_QUEUE] + 1 - places
    steps: int = replica[room, f.R_HEAP] * needed // looked
    return steps


@kernel_part
def lacks_place(s: State, r: int) -> bool:
    """Whether a request that comes to replica r now waits until an answer there ends."""
    replica, common = s.replica, s.common
    full = replica[r, f.R_RUNNING] + replica[r, f.R_QUEUE] >= places_of(s, r)
    return bool(full and not common[f.C_STATIC] and common[f.C_PREFILLS] == 0)


@kernel_routine
def predicted_ttft_ns(s: State, r: int, prompt: int) -> float:
    """Predicted time to first token of a prompt of `prompt` tokens that arrives at replica r now, in ns."""
    replica, slot = s.replica, s.slot
    if r == s.common[f.C_REPLICAS]:
        return float(f.FOREVER)
    decodes, context = replica[r, f.R_DECODES], replica[r, f.R_CONTEXT]
    wait = 0
    if lacks_place(s, r):
        decodes = max(1, decodes)
        row, weight = table_row(s, decodes)
        per_token = kv_ns(s, decodes)
        step = table_value(s, row, weight, f.T_DECODE) + per_token * context
        wait = elapsed_ns(steps_to_place(s, r), step, per_token * decodes)
        context = context * (decodes - 1) // decodes
        decodes -= 1
    work = prompt + replica[r, f.R_QUEUE_TOKENS]
    partial = replica[r, f.R_TAIL]
    if partial != f.NO_SLOT and slot[partial, f.S_STATE] == f.PREFILL and not s.common[f.C_STATIC]:
        i = partial
        while i != f.NO_SLOT and slot[i, f.S_STATE] == f.PREFILL:
            work += slot[i, f.S_TARGET] - slot[i, f.S_READY]
            i = slot[i, f.S_PREVIOUS]
    room = s.common[f.C_BUDGET] - decodes
    full = (work - 1) // room
    reads = kv_ns(s, decodes) * context
    predicted = wait + prefill_ns(s, decodes + work - full * room) + (full + 1) * reads
    if full > 0:
        predicted += full * prefill_ns(s, decodes + room)
    return float(predicted)


@kernel_part
def route(s: State, prompt: int, luck: int, at: int, most: int) -> int:
    """Replica for a prompt of `prompt` tokens by the router's rule (see `choose_replica`); the room when none is up."""
    if s.common[f.C_ROUTER] != f.ROUTE_SLO_AWARE:
        return choose_replica(s, luck, at, most)
    chosen: int = s.common[f.C_REPLICAS]
    least = 0.0
    for r in range(s.common[f.C_REPLICAS]):
        if s.replica[r, f.R_BELIEVED]:
            predicted = predicted_ttft_ns(s, r, prompt)
            if chosen == s.common[f.C_REPLICAS] or predicted < least:
                chosen, least = r, predicted
    return chosen


@kernel_part
def is_over_limits(s: State, r: int, prompt: int) -> bool:
    """Whether a request that comes to row r now is turned away by the limits of admission."""
    replica, common = s.replica, s.common
    waiting = replica[r, f.R_QUEUE]
    outstanding = waiting if r == common[f.C_REPLICAS] else replica[r, f.R_OUTSTANDING]
    if waiting >= common[f.C_MAX_QUEUE] or outstanding >= common[f.C_MAX_OUTSTANDING]:
        return True
    return bool(common[f.C_MAX_TTFT] < f.FOREVER and predicted_ttft_ns(s, r, prompt) > common[f.C_MAX_TTFT])
