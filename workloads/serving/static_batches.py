"""Static batching: a batch is formed from the queue of an empty replica, and nothing joins until its last answer ends.

A batch takes the queue from its head, up to `max_batch` requests, as many as have room for their whole life. It begins
when `max_batch` requests wait, or when the head has waited for `wait` since its arrival, whichever comes first. All
prompts are padded to the longest one and computed in one pass. Every decode step carries all members, those that have
ended too, each with the padded prompt and a token per step in the cache: padding takes time, blocks and reads (own KV
reads are those of the padded sequence). A token appears at the end of its step, and a member leaves the system with its
last one (its tokens stream); its slot and blocks are held to the end of the longest answer.

Blocks are taken when the batch is formed: for each member what padded prompt and longest answer need (the reserve of a
contiguous cache where there is one), so that nothing is ever evicted and the watermark has no use. A member that a loss
sent back is padded from its prompt and its sent tokens.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.blocks import most_blocks
from workloads.serving.booking import book_mixed, book_prompt, book_wait, join_gauges, leave_gauges
from workloads.serving.central import move_between, note_blocked, queue_row, wake_others
from workloads.serving.commits import emit_one, leave_system
from workloads.serving.fields import State
from workloads.serving.queues import (
    SLOT_BITS,
    SLOT_MASK,
    append_running,
    clear_replica,
    pop_queue,
    push_heap,
    remove_running,
    sift_down,
)


@kernel_part
def members_with_room(s: State, queue: int) -> tuple[int, int, int]:
    """How many from the head of the queue of row `queue` fit into one batch, their longest prompt and longest rest."""
    slot, common = s.slot, s.common
    members = longest_prompt = longest_rest = 0
    i = s.replica[queue, f.R_QUEUE_HEAD]
    while i != f.NO_SLOT and members < common[f.C_MAX_BATCH]:
        prompt = max(longest_prompt, slot[i, f.S_INPUT] + slot[i, f.S_SENT])
        rest = max(longest_rest, slot[i, f.S_OUTPUT] - slot[i, f.S_SENT])
        if (members + 1) * most_blocks(s, prompt, rest) > common[f.C_BLOCKS]:
            break
        members += 1
        longest_prompt, longest_rest = prompt, rest
        i = slot[i, f.S_NEXT]
    return members, longest_prompt, longest_rest


@kernel_routine
def form_batch(s: State, r: int, t: int) -> bool:
    """The empty replica r is at a boundary at t: make a batch ready to begin (True), or say when to look again."""
    replica, slot, common = s.replica, s.slot, s.common
    replica[r, f.R_MODE] = f.IDLE
    queue = queue_row(s, r)
    waiting = replica[queue, f.R_QUEUE]
    if waiting == 0:
        note_blocked(s, r, t, 0)
        return False
    ready = slot[replica[queue, f.R_QUEUE_HEAD], f.S_ARRIVAL] + common[f.C_BATCH_WAIT]
    if waiting < common[f.C_MAX_BATCH] and t < ready:
        note_blocked(s, r, t, 0)
        replica[r, f.R_MODE] = f.BOUNDARY
        replica[r, f.R_AT] = ready
        return False
    members, prompt, rest = members_with_room(s, queue)
    note_blocked(s, r, t, int(members < min(waiting, common[f.C_MAX_BATCH])))
    blocks = most_blocks(s, prompt, rest)
    for _ in range(members):
        i = pop_queue(s, queue)
        book_wait(s, queue, i, t)
        move_between(s, t, queue, r)
        slot[i, f.S_ROW] = r
        slot[i, f.S_STATE] = f.PREFILL
        slot[i, f.S_TARGET] = slot[i, f.S_CHUNK] = prompt
        slot[i, f.S_PADDING] = prompt - slot[i, f.S_INPUT] - slot[i, f.S_SENT]
        slot[i, f.S_READY] = 0
        slot[i, f.S_BLOCKS] = blocks
        append_running(s, r, i)
    replica[r, f.R_FREE] -= members * blocks
    replica[r, f.R_FIRST_PREFILL] = replica[r, f.R_HEAD]
    replica[r, f.R_PROMPT_TOKENS] = members * prompt
    replica[r, f.R_PAIRS] = members * (prompt * (prompt + 1) // 2)
    replica[r, f.R_CACHED] = 0
    if queue != r:
        wake_others(s, r, t)
    return True


@kernel_part
def member_ends(s: State, r: int, i: int) -> None:
    """Slot i has its last token and leaves the system; its place in the batch of replica r stays, as padding."""
    slot = s.slot
    remove_running(s, r, i)
    slot[i, f.S_SENT] = slot[i, f.S_OUTPUT]
    leave_system(s, r, i, s.replica[r, f.R_AT])


@kernel_part
def emit_to_members(s: State, r: int) -> None:
    """The padded prompts of the batch of replica r are computed: each member has its next token."""
    replica, slot, common = s.replica, s.slot, s.common
    t = replica[r, f.R_AT]
    members = replica[r, f.R_RUNNING]
    prompt = replica[r, f.R_PROMPT_TOKENS] // members
    i = replica[r, f.R_HEAD]
    while i != f.NO_SLOT:
        after = slot[i, f.S_NEXT]
        common[f.N_RECOMPUTED] += slot[i, f.S_REDO]
        common[f.N_PROMPT_TOKENS] += prompt - slot[i, f.S_PADDING]
        common[f.N_PADDED] += slot[i, f.S_PADDING]
        slot[i, f.S_READY] = slot[i, f.S_TARGET]
        slot[i, f.S_CHUNK] = 0
        slot[i, f.S_SINCE] = t
        emit_one(s, i, t)
        left = slot[i, f.S_OUTPUT] - slot[i, f.S_SENT]
        if left == 0:
            member_ends(s, r, i)
        else:
            slot[i, f.S_STATE] = f.DECODE
            slot[i, f.S_END_STEP] = replica[r, f.R_STEPS] + left
            push_heap(s, r, (slot[i, f.S_END_STEP] << SLOT_BITS) | i, replica[r, f.R_LIVE])
            replica[r, f.R_LIVE] += 1
            if common[f.C_MEASURES]:
                join_gauges(s, r, i, prompt)
        i = after
    replica[r, f.R_DECODES] = members
    replica[r, f.R_CONTEXT] = members * prompt
    if replica[r, f.R_LIVE] == 0:
        clear_replica(s, r, f.BOUNDARY)


@kernel_part
def complete_members(s: State, r: int) -> None:
    """The members of the batch of replica r whose last token has just appeared leave."""
    replica = s.replica
    while replica[r, f.R_LIVE] > 0 and replica[r, f.R_HEAP] >> SLOT_BITS <= replica[r, f.R_STEPS]:
        i = replica[r, f.R_HEAP] & SLOT_MASK
        replica[r, f.R_LIVE] -= 1
        size = replica[r, f.R_LIVE]
        sift_down(s, r, 0, replica[r, f.R_HEAP + size], size)
        if s.common[f.C_MEASURES]:
            leave_gauges(s, r, i)
        member_ends(s, r, i)


@kernel_routine
def commit_static(s: State, r: int) -> None:
    """The pass with the prompts of the batch of replica r has ended, or a run of decode steps that is committed."""
    replica, slot, common = s.replica, s.slot, s.common
    if not replica[r, f.R_MIXED]:
        complete_members(s, r)
        if replica[r, f.R_LIVE] == 0:
            clear_replica(s, r, f.BOUNDARY)
        return
    if common[f.C_MEASURES]:
        book_mixed(s, r)
        i = replica[r, f.R_HEAD]
        while i != f.NO_SLOT:
            book_prompt(s, r, i)
            i = slot[i, f.S_NEXT]
    replica[r, f.R_AT] = replica[r, f.R_END]
    replica[r, f.R_MODE] = f.BOUNDARY
    replica[r, f.R_CHANGED] = 1
    replica[r, f.R_STEPS] += 1
    common[f.N_STEPS] += 1
    emit_to_members(s, r)
