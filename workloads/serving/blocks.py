"""KV blocks of a replica: what a request takes at admission, what a decode step takes, what an end gives back."""

from __future__ import annotations

from topology.compilation import kernel_part
from workloads.serving import fields as f
from workloads.serving.fields import State


@kernel_part
def blocks_of(tokens: int) -> int:
    """Blocks that hold `tokens` tokens."""
    return (tokens + f.BLOCK_TOKENS - 1) // f.BLOCK_TOKENS


@kernel_part
def most_blocks(s: State, prompt: int, output: int) -> int:
    """Blocks that a request needs at most in its whole life; a contiguous cache reserves them at admission."""
    common = s.common
    tokens: int = prompt + output - 1
    if not common[f.C_PAGED]:
        if common[f.C_RESERVE] == f.RESERVE_MAX:
            tokens = max(tokens, common[f.C_RESERVE_TOKENS])
        elif common[f.C_RESERVE] == f.RESERVE_POWER_OF_TWO:
            room = f.BLOCK_TOKENS
            while room < tokens:
                room *= 2
            tokens = room
    return blocks_of(tokens)


@kernel_part
def is_over_length(s: State, tokens: int) -> bool:
    """Whether a request of `tokens` in all is longer than the longest that a contiguous cache reserves room for."""
    common = s.common
    return not common[f.C_PAGED] and common[f.C_RESERVE] == f.RESERVE_MAX and tokens > common[f.C_RESERVE_TOKENS]


@kernel_part
def blocks_of_next_step(s: State, r: int) -> int:
    """Blocks that the decodes of replica r reserve for one step."""
    if not s.common[f.C_PAGED]:
        return 0
    blocks: int = s.replica[r, f.R_PHASE + (-s.replica[r, f.R_STEPS] & 15)]
    return blocks


@kernel_part
def blocks_of_steps(s: State, r: int, steps: int) -> int:
    """Blocks that the decodes of replica r reserve for the next `steps` steps."""
    if not s.common[f.C_PAGED]:
        return 0
    done = s.replica[r, f.R_STEPS]
    blocks: int = (steps >> 4) * s.replica[r, f.R_DECODES]
    for step in range(done + (steps & ~15), done + steps):
        blocks += s.replica[r, f.R_PHASE + (-step & 15)]
    return blocks


@kernel_part
def steps_with_blocks(s: State, r: int, steps: int) -> int:
    """How many of the next `steps` steps (at least one) can reserve their blocks without an eviction."""
    free, decodes = s.replica[r, f.R_FREE], s.replica[r, f.R_DECODES]
    if not s.common[f.C_PAGED] or free >= decodes * ((steps >> 4) + 1):
        return steps
    whole = free // decodes
    k: int = whole << 4
    free -= whole * decodes
    done = s.replica[r, f.R_STEPS]
    while k < steps and s.replica[r, f.R_PHASE + (-(done + k) & 15)] <= free:
        free -= s.replica[r, f.R_PHASE + (-(done + k) & 15)]
        k += 1
    return min(k, steps)


@kernel_part
def held_blocks(s: State, r: int, i: int) -> int:
    """Blocks that slot i, which runs on replica r, holds."""
    slot = s.slot
    if slot[i, f.S_STATE] == f.DECODE and s.common[f.C_PAGED]:
        sent = slot[i, f.S_OUTPUT] - (slot[i, f.S_END_STEP] - s.replica[r, f.R_STEPS])
        return blocks_of(slot[i, f.S_INPUT] + sent - 1)
    blocks: int = slot[i, f.S_BLOCKS]
    return blocks
