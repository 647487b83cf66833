"""What is decided at a boundary: reservations, evictions, admissions, and the passes that follow."""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.blocks import blocks_of, blocks_of_next_step, most_blocks, steps_with_blocks
from workloads.serving.booking import book_wait, kv_ns, rebase_own_reads, table_row, table_value, tokens_read
from workloads.serving.central import move_between, note_blocked, queue_row, wake_others
from workloads.serving.commits import stop_running
from workloads.serving.fields import State
from workloads.serving.plans import plan_to
from workloads.serving.pools import fill_decodes
from workloads.serving.prefix import (
    find_run,
    held_of_run,
    pieces_to_reuse,
    refer_to_run,
    store_pieces,
    store_run,
    take_cached,
)
from workloads.serving.queues import (
    SLOT_BITS,
    append_running,
    enqueue_first,
    pop_queue,
    remove_from_heap,
    youngest_of_lowest,
)
from workloads.serving.samples import copy_tails, join_prompt, joins_prompt
from workloads.serving.speculation import blocks_to_reserve
from workloads.serving.static_batches import form_batch
from workloads.serving.swap import (
    carry_no_prompt,
    is_answer_at_host,
    is_next_at_host,
    read_back,
    resume_prompt,
    write_out,
)

REBASE_STEPS = 1 << 18


@kernel_routine
def evict_youngest(s: State, r: int, t: int) -> None:
    """The youngest admitted of replica r (of the lowest priority there) loses its KV and waits again, at the head."""
    replica, slot = s.replica, s.slot
    i = replica[r, f.R_TAIL]
    if s.common[f.C_CLASSES] > 1:
        i = youngest_of_lowest(s, r)
    computed = slot[i, f.S_READY]
    if slot[i, f.S_STATE] == f.DECODE:
        remove_from_heap(s, r, i, replica[r, f.R_DECODES])
        stop_running(s, r, i)
        computed = slot[i, f.S_INPUT] + slot[i, f.S_SENT] - 1
    else:
        slot[i, f.S_LEDGER + f.L_KV_BLOCKED] += t - slot[i, f.S_SINCE]
        slot[i, f.S_SINCE] = t
        stop_running(s, r, i)
    if s.common[f.C_HOST_BLOCKS] == 0 or not write_out(s, r, i, computed):
        slot[i, f.S_REDO] = max(slot[i, f.S_REDO], computed)
    slot[i, f.S_EVICTIONS] += 1
    s.common[f.N_EVICTIONS] += 1
    replica[r, f.R_CHANGED] = 1
    queue = queue_row(s, r)
    move_between(s, t, r, queue)
    enqueue_first(s, queue, i, t)


@kernel_part
def start_chunk(s: State, r: int, i: int, room: int) -> int:
    """Slot i computes up to `room` more prompt tokens in the pass that begins; return how many."""
    replica, slot = s.replica, s.slot
    ready = slot[i, f.S_READY]
    chunk: int = min(room, slot[i, f.S_TARGET] - ready)
    slot[i, f.S_CHUNK] = chunk
    replica[r, f.R_PROMPT_TOKENS] += chunk
    replica[r, f.R_PAIRS] += chunk * ready + chunk * (chunk + 1) // 2
    replica[r, f.R_CACHED] += ready
    if s.common[f.C_UNIT] > 0:
        store_pieces(s, r, i, ready + chunk)
    if replica[r, f.R_FIRST_PREFILL] == f.NO_SLOT:
        replica[r, f.R_FIRST_PREFILL] = i
    return chunk


@kernel_part
def admit(s: State, r: int, t: int, reserved: int) -> int:
    """Give the pass that begins at t its prompt tokens: the partial prompt first, then strict first come, first served.

    `reserved` blocks are promised to the decodes of this pass. A whole prompt's blocks are taken at admission.
    Return 1 when the head of the queue lacks blocks, else 0.
    """
    replica, slot, common = s.replica, s.slot, s.common
    replica[r, f.R_FIRST_PREFILL] = f.NO_SLOT
    replica[r, f.R_PROMPT_TOKENS] = replica[r, f.R_PAIRS] = replica[r, f.R_CACHED] = 0
    room = common[f.C_BUDGET] - replica[r, f.R_DECODES]
    partial = replica[r, f.R_TAIL]
    if partial != f.NO_SLOT and slot[partial, f.S_STATE] == f.PREFILL:
        slot[partial, f.S_LEDGER + f.L_KV_BLOCKED] += t - slot[partial, f.S_SINCE]
        slot[partial, f.S_SINCE] = t
        room -= start_chunk(s, r, partial, room)
    blocked = 0
    queue = queue_row(s, r)
    while replica[queue, f.R_QUEUE] > 0 and replica[r, f.R_RUNNING] < common[f.C_MAX_BATCH]:
        i = replica[queue, f.R_QUEUE_HEAD]
        joins = common[f.C_SAMPLES] > 1 and joins_prompt(s, r, i)
        if (room <= 0 and not joins) or (common[f.C_HOST_BLOCKS] > 0 and is_answer_at_host(s, r, i)):
            break
        target = slot[i, f.S_INPUT] + slot[i, f.S_SENT]
        blocks = blocks_of(target)
        if not common[f.C_PAGED]:
            blocks = most_blocks(s, slot[i, f.S_INPUT], slot[i, f.S_OUTPUT])
        most = run = held = tail = 0
        if common[f.C_UNIT] > 0 and slot[i, f.S_HOST] != r + 1:
            most = slot[i, f.S_HASHES] if joins else pieces_to_reuse(s, slot[i, f.S_HASHES], target)
            run = find_run(s, r, slot[i, f.S_HASH_AT], most)
            held = held_of_run(s, slot[i, f.S_HASH_AT], run)
        if joins:
            tail = blocks - run
        needed = blocks - tail - held * common[f.C_UNIT]
        spare = replica[r, f.R_FREE] - reserved - needed
        if needed > 0 and (spare < 0 or (replica[r, f.R_RUNNING] > 0 and spare < common[f.C_WATERMARK])):
            blocked = 1
            break
        pop_queue(s, queue)
        book_wait(s, queue, i, t)
        move_between(s, t, queue, r)
        slot[i, f.S_ROW] = r
        slot[i, f.S_STATE] = f.PREFILL
        slot[i, f.S_TARGET] = target
        slot[i, f.S_READY] = run * common[f.C_HASH_TOKENS]
        slot[i, f.S_BLOCKS] = blocks
        slot[i, f.S_BEGAN] = t
        replica[r, f.R_FREE] -= blocks - tail - run * common[f.C_UNIT]
        if common[f.C_UNIT] > 0:
            refer_to_run(s, r, i, run, most)
            take_cached(s, r, reserved)
            if common[f.C_LOWER_BUCKETS] > 0:
                store_run(s, r, i, run)
        append_running(s, r, i)
        if common[f.C_HOST_BLOCKS] > 0:
            resume_prompt(s, r, i)
        if joins:
            join_prompt(s, r, i)
        else:
            room -= start_chunk(s, r, i, room)
    return blocked


@kernel_part
def start_mixed(s: State, r: int, t: int, reserved: int) -> None:
    """Begin a pass that carries prompt tokens, moves or copies blocks, or speculates, at t: a segment of its own."""
    replica, pace, common = s.replica, s.pace, s.common
    decodes = replica[r, f.R_DECODES]
    replica[r, f.R_FREE] -= reserved
    replica[r, f.R_RESERVED] = reserved
    row, weight = table_row(s, decodes + replica[r, f.R_PROMPT_TOKENS])
    kind = f.T_PREFILL if replica[r, f.R_PROMPT_TOKENS] > 0 else f.T_DECODE
    healthy = table_value(s, row, weight, kind) + kv_ns(s, decodes) * tokens_read(s, r)
    healthy += s.pace[r, f.P_PAIR] * replica[r, f.R_PAIRS] + s.pace[r, f.P_CACHED] * replica[r, f.R_CACHED]
    pace[r, f.P_HEALTHY_BASE] = healthy
    replica[r, f.R_MODE] = f.PASS
    replica[r, f.R_MIXED] = 1
    replica[r, f.R_ANCHOR] = t
    replica[r, f.R_END] = t + int(healthy / pace[r, f.P_SPEED] + 0.5) + replica[r, f.R_EXTRA]
    common[f.N_SEGMENTS] += 1
    common[f.N_MOST_DECODES] = max(common[f.N_MOST_DECODES], decodes)
    common[f.N_MOST_BLOCKS] = max(common[f.N_MOST_BLOCKS], replica[r, f.R_BLOCKS] - replica[r, f.R_FREE])


@kernel_part
def anchor_segment(s: State, r: int, t: int) -> None:
    """The running set of replica r is fixed from t on: set the pace of its decode steps."""
    replica, pace, common = s.replica, s.pace, s.common
    decodes, speed = replica[r, f.R_DECODES], pace[r, f.P_SPEED]
    row, weight = table_row(s, decodes)
    per_token = kv_ns(s, decodes)
    reads = per_token * replica[r, f.R_CONTEXT]
    base = table_value(s, row, weight, f.T_DECODE) + reads
    slope = per_token * decodes
    pace[r, f.P_HEALTHY_BASE], pace[r, f.P_HEALTHY_SLOPE] = base, slope
    pace[r, f.P_BASE], pace[r, f.P_SLOPE] = base / speed, slope / speed
    if s.common[f.C_MEASURES]:
        pace[r, f.P_COMPUTE] = table_value(s, row, weight, f.T_DECODE + 1)
        pace[r, f.P_WEIGHTS] = table_value(s, row, weight, f.T_DECODE + 2)
        pace[r, f.P_COLLECTIVES] = table_value(s, row, weight, f.T_DECODE + 3)
        pace[r, f.P_KV] = reads
        for place in range(f.BOOKED):
            replica[r, f.R_BOOKED + place] = 0
    replica[r, f.R_ANCHOR] = t
    replica[r, f.R_STEP] = 0
    replica[r, f.R_CHANGED] = 0
    common[f.N_SEGMENTS] += 1
    common[f.N_MOST_DECODES] = max(common[f.N_MOST_DECODES], decodes)


@kernel_part
def blocks_of_pass(s: State, r: int) -> int:
    """Blocks that the decodes of replica r reserve for the pass that begins."""
    return blocks_to_reserve(s, r) if s.common[f.C_DRAFTS] > 0 else blocks_of_next_step(s, r)


@kernel_part
def fill_batch(s: State, r: int, t: int) -> bool:
    """Reserve for the decodes of replica r, evict or admit; begin a pass with prompts where there is one.

    The mode stays BOUNDARY when decode steps come next. Return whether any was evicted.
    """
    replica = s.replica
    swaps = s.common[f.C_HOST_BLOCKS] > 0
    replica[r, f.R_EXTRA] = replica[r, f.R_COPIED] = 0
    reserved = blocks_of_pass(s, r)
    evicted = False
    while reserved + replica[r, f.R_COPIES] > replica[r, f.R_FREE]:
        evict_youngest(s, r, t)
        evicted = True
        reserved = blocks_of_pass(s, r)
    if replica[r, f.R_COPIES] > 0:
        copy_tails(s, r)
    if s.common[f.C_UNIT] > 0:
        take_cached(s, r, reserved)
    blocked = 1
    if evicted:
        carry_no_prompt(s, r)
    elif swaps and is_next_at_host(s, r):
        blocked = read_back(s, r, t, reserved)
        reserved = blocks_of_pass(s, r)
    else:
        blocked = admit(s, r, t, reserved)
    note_blocked(s, r, t, blocked)
    begins = replica[r, f.R_FIRST_PREFILL] != f.NO_SLOT or replica[r, f.R_EXTRA] + replica[r, f.R_COPIED] > 0
    if s.common[f.C_ROUTER] == f.ROUTE_CENTRAL and (evicted or begins):
        wake_others(s, r, t)
    if begins or (s.common[f.C_DRAFTS] > 0 and replica[r, f.R_DECODES] > 0):
        start_mixed(s, r, t, reserved)
    elif replica[r, f.R_DECODES] == 0:
        replica[r, f.R_MODE] = f.IDLE
    return evicted


@kernel_part
def decide(s: State, r: int) -> None:
    """Replica r is at a boundary, completions are done: reserve, evict or admit, and begin what comes next."""
    replica, pace, common = s.replica, s.pace, s.common
    t = replica[r, f.R_AT]
    common[f.C_WORK] -= 1
    if pace[r, f.P_NEXT_SPEED] != pace[r, f.P_SPEED]:
        pace[r, f.P_SPEED] = pace[r, f.P_NEXT_SPEED]
        replica[r, f.R_CHANGED] = 1
    if replica[r, f.R_STEPS] - replica[r, f.R_ORIGIN] > REBASE_STEPS and common[f.C_MEASURES]:
        rebase_own_reads(s, r)
    evicted = False
    if common[f.C_STATIC]:
        if replica[r, f.R_LIVE] == 0:
            if form_batch(s, r, t):
                start_mixed(s, r, t, 0)
            return
    else:
        if r >= common[f.C_PREFILLS] and common[f.C_PREFILLS] > 0:
            evicted = fill_decodes(s, r, t)
        else:
            evicted = fill_batch(s, r, t)
        if replica[r, f.R_MODE] != f.BOUNDARY:
            return
    if replica[r, f.R_CHANGED]:
        anchor_segment(s, r, t)
    steps = 1
    if not (evicted or common[f.C_STEP_BY_STEP]):
        steps = steps_with_blocks(s, r, (s.replica[r, f.R_HEAP] >> SLOT_BITS) - replica[r, f.R_STEPS])
    replica[r, f.R_MODE] = f.PASS
    replica[r, f.R_MIXED] = 0
    plan_to(s, r, replica[r, f.R_STEP] + steps)
