"""Preemption by swap: the KV of an evicted request is written to host memory, and read back when it runs again.

The rules:

- Whole blocks are written, those that hold its tokens, shared ones too: what is read back is all its own. Where the
  host of the replica has no room for them the request is computed again, as without swap (counted: `host_full`).
- Writing and reading add blocks x ns per block to the pass that begins at that boundary, whatever its speed; whoever
  runs in it waits (category `swap`). Nothing is overlapped: an upper bound (assumption).
- An answer that is read back takes its blocks and that of its next token (watermark as at admission), and decodes in
  the same pass. A pass reads answers back or carries prompts, not both; the queue stays strict. A prompt that was
  evicted half way is read back as it is admitted, and goes on from there.
- Host memory belongs to the replica: a loss takes what it holds (computed again, counted in `kv_tokens_lost`), and with
  a central queue another replica that takes the request computes it again. Who gives up frees its room.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.blocks import blocks_of
from workloads.serving.booking import book_wait
from workloads.serving.central import move_between, queue_row
from workloads.serving.commits import go_on_decoding
from workloads.serving.fields import State
from workloads.serving.host import forget_host, release_host
from workloads.serving.prefix import take_cached
from workloads.serving.queues import pop_queue
from workloads.serving.speculation import blocks_ahead
from workloads.serving.transfers import book_first_gaps


@kernel_part
def add_time(s: State, r: int, blocks: int) -> None:
    """The pass that begins on replica r moves `blocks` blocks over the host link."""
    extra = max(1, int(blocks * s.pace[r, f.P_SWAP] + 0.5))
    s.replica[r, f.R_EXTRA] += extra
    s.common[f.N_SWAP_NS] += extra


@kernel_routine
def write_out(s: State, r: int, i: int, tokens: int) -> bool:
    """Write `tokens` tokens of slot i, which is evicted from replica r, to its host; False where there is no room."""
    replica, slot, common = s.replica, s.slot, s.common
    blocks = blocks_of(tokens)
    if blocks == 0:
        return False
    if replica[r, f.R_HOST] + blocks > common[f.C_HOST_BLOCKS]:
        common[f.N_HOST_FULL] += 1
        return False
    replica[r, f.R_HOST] += blocks
    slot[i, f.S_HOST], slot[i, f.S_HOST_TOKENS] = r + 1, tokens
    common[f.N_SWAPS_OUT] += 1
    common[f.N_BLOCKS_OUT] += blocks
    add_time(s, r, blocks)
    return True


@kernel_part
def read_in(s: State, r: int, i: int) -> None:
    """The KV of slot i comes back from the host of replica r in the pass that begins."""
    blocks = blocks_of(s.slot[i, f.S_HOST_TOKENS])
    s.common[f.N_SWAPS_IN] += 1
    s.common[f.N_BLOCKS_IN] += blocks
    add_time(s, r, blocks)
    release_host(s, i)


@kernel_part
def is_answer_at_host(s: State, r: int, i: int) -> bool:
    """Whether the host of replica r holds all that slot i needs to decode."""
    slot = s.slot
    tokens = slot[i, f.S_INPUT] + slot[i, f.S_SENT] - 1
    return bool(slot[i, f.S_HOST] == r + 1 and slot[i, f.S_SENT] > 0 and slot[i, f.S_HOST_TOKENS] == tokens)


@kernel_routine
def is_next_at_host(s: State, r: int) -> bool:
    """Whether an answer at the host of replica r is next: it heads the queue, and no prompt is half done."""
    i, partial = s.replica[queue_row(s, r), f.R_QUEUE_HEAD], s.replica[r, f.R_TAIL]
    if s.replica[queue_row(s, r), f.R_QUEUE] == 0:
        return False
    if partial != f.NO_SLOT and s.slot[partial, f.S_STATE] == f.PREFILL:
        return False
    return is_answer_at_host(s, r, i)


@kernel_part
def carry_no_prompt(s: State, r: int) -> None:
    """The pass that begins on replica r computes no prompt."""
    replica = s.replica
    replica[r, f.R_FIRST_PREFILL] = f.NO_SLOT
    replica[r, f.R_PROMPT_TOKENS] = replica[r, f.R_PAIRS] = replica[r, f.R_CACHED] = 0


@kernel_routine
def read_back(s: State, r: int, t: int, reserved: int) -> int:
    """Answers at the head of the queue come back from the host of replica r and decode from t on.

    `reserved` blocks are promised to the decodes. Return 1 when the head lacks blocks, else 0.
    """
    replica, slot, common = s.replica, s.slot, s.common
    carry_no_prompt(s, r)
    queue = queue_row(s, r)
    room = common[f.C_BUDGET] - replica[r, f.R_DECODES]
    while room > 0 and replica[queue, f.R_QUEUE] > 0 and replica[r, f.R_RUNNING] < common[f.C_MAX_BATCH]:
        i = replica[queue, f.R_QUEUE_HEAD]
        if not is_answer_at_host(s, r, i):
            return 0
        tokens = slot[i, f.S_HOST_TOKENS]
        spare = replica[r, f.R_FREE] - reserved - blocks_ahead(s, i, tokens)
        if spare < 0 or (replica[r, f.R_RUNNING] > 0 and spare < common[f.C_WATERMARK]):
            return 1
        pop_queue(s, queue)
        book_wait(s, queue, i, t)
        move_between(s, t, queue, r)
        slot[i, f.S_ROW] = r
        replica[r, f.R_FREE] -= blocks_of(tokens)
        reserved += blocks_ahead(s, i, tokens) - blocks_of(tokens)
        if common[f.C_UNIT] > 0:
            take_cached(s, r, reserved)
        read_in(s, r, i)
        go_on_decoding(s, r, i)
        room -= 1
    return 0


@kernel_routine
def book_moved_blocks(s: State, r: int, waited: int) -> None:
    """The decodes of replica r have waited `waited` ns for blocks that its pass moves."""
    slot = s.slot
    i = s.replica[r, f.R_HEAD]
    while i != f.NO_SLOT:
        if slot[i, f.S_STATE] == f.DECODE:
            slot[i, f.S_LEDGER + f.L_SWAP] += waited
        i = slot[i, f.S_NEXT]


@kernel_routine
def book_swap(s: State, r: int) -> None:
    """The pass that replica r has just ended moved blocks: its decodes waited for that; first gaps of those read back.

    Its prompts are booked one by one.
    """
    replica = s.replica
    if s.common[f.C_MEASURES]:
        book_moved_blocks(s, r, replica[r, f.R_EXTRA])
    if replica[r, f.R_FRESH] > 0:
        book_first_gaps(s, r, replica[r, f.R_END] - replica[r, f.R_ANCHOR])


@kernel_routine
def resume_prompt(s: State, r: int, i: int) -> None:
    """Slot i is admitted to replica r with its prompt: it goes on where its host left it; elsewhere it begins anew."""
    slot = s.slot
    if slot[i, f.S_HOST] == r + 1:
        slot[i, f.S_READY] = slot[i, f.S_HOST_TOKENS]
        read_in(s, r, i)
    else:
        forget_host(s, i)
