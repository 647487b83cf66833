"""KV memory that holds no token, by reason, summed over decode steps (as Kwon et al., arXiv:2309.06180, section 3.1).

A decode step holds the tokens of its sequences and the place of the one that it writes. *Used* is what holds these.
*Reserved* was taken by a contiguous cache for tokens that will come. *Internal* is taken and never filled: the rest of
the last block, or of a reserve that was too long. *External* is free, but less than the request at the head of the
queue asks of a contiguous cache (places of pieces are not simulated: this is a lower bound). All are whole numbers of
tokens times steps, in closed form per request, so that every way of running books the same. Blocks that requests share
count for each of them; passes that compute prompts count for `external` only through their own step.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.fields import State


@kernel_part
def blocks_up_to(tokens: int) -> int:
    """Sum of the blocks that hold 1, 2, ..., `tokens` tokens."""
    whole, rest = tokens // f.BLOCK_TOKENS, tokens % f.BLOCK_TOKENS
    total: int = f.BLOCK_TOKENS * (whole * (whole + 1) // 2) + rest * (whole + 1)
    return total


@kernel_routine
def book_memory(s: State, i: int, first: int, last: int) -> None:
    """Slot i has decoded from `first` to `last` tokens in the cache: book what its steps held."""
    slot, common = s.slot, s.common
    steps = last - first
    used = steps * (first + last + 1) // 2
    if common[f.C_PAGED]:
        held = f.BLOCK_TOKENS * (blocks_up_to(last) - blocks_up_to(first))
    else:
        held = f.BLOCK_TOKENS * slot[i, f.S_BLOCKS] * steps
        common[f.N_RESERVED_STEPS] += steps * (slot[i, f.S_INPUT] + slot[i, f.S_OUTPUT] - 1) - used
    common[f.N_HELD_STEPS] += held
    common[f.N_USED_STEPS] += used


@kernel_part
def book_room(s: State, r: int, steps: int) -> None:
    """For `steps` steps of replica r the head of its queue lacked room in a contiguous cache, or did not."""
    if s.replica[r, f.R_BLOCKED] and not s.common[f.C_PAGED]:
        s.common[f.N_EXTERNAL_STEPS] += steps * s.replica[r, f.R_FREE] * f.BLOCK_TOKENS
