"""Speculative decoding: the exception to one token per step. A small model drafts, the large one checks all at once.

The rules:

- A pass without prompts drafts `C_DRAFTS` = k tokens for each of its sequences and checks them; the leading ones that
  are accepted appear at its end with one token of the large model's own: 1 to k + 1 tokens, never more than are asked
  for. Its time is that of `speculative_costs`. A pass that carries prompts drafts nothing: one token each, as ever.
- A token is accepted with probability alpha, independently of the others: (1 - alpha^(k + 1)) / (1 - alpha) tokens per
  pass on average (Leviathan et al., arXiv:2211.17192, equation 1). The draw belongs to (request, tokens sent so far):
  the same after an eviction, a loss, in another batch.
- A pass reserves blocks for all that may be accepted; what is not goes back at its end.
- Tokens of one pass appear together: the gaps between them are 0.

Every pass is one of its own, with an end of its own: there are no macro steps to be equal to single ones.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.blocks import blocks_of
from workloads.serving.client_queue import WHOLE_DRAW, own_draw
from workloads.serving.clients import MOST_ATTEMPTS
from workloads.serving.fields import State
from workloads.serving.queues import SLOT_BITS, push_heap

FIRST_DRAW = MOST_ATTEMPTS
"""Draws of a request with numbers up to this one belong to its attempts."""


@kernel_part
def blocks_ahead(s: State, i: int, tokens: int) -> int:
    """Blocks that slot i, with `tokens` tokens in the cache, needs for all that the next pass may give it."""
    slot = s.slot
    return blocks_of(min(tokens + 1 + s.common[f.C_DRAFTS], slot[i, f.S_INPUT] + slot[i, f.S_OUTPUT] - 1))


@kernel_part
def sent_by(s: State, r: int, i: int) -> int:
    """Tokens that slot i, which decodes on replica r, has been sent."""
    sent: int = s.slot[i, f.S_OUTPUT] - (s.slot[i, f.S_END_STEP] - s.replica[r, f.R_STEPS])
    return sent


@kernel_routine
def blocks_to_reserve(s: State, r: int) -> int:
    """Blocks that the decodes of replica r reserve for a pass, beside those that they hold."""
    slot, blocks = s.slot, 0
    if not s.common[f.C_PAGED]:
        return 0
    i = s.replica[r, f.R_HEAD]
    while i != f.NO_SLOT:
        if slot[i, f.S_STATE] == f.DECODE:
            tokens = slot[i, f.S_INPUT] + sent_by(s, r, i) - 1
            blocks += blocks_ahead(s, i, tokens) - blocks_of(tokens)
        i = slot[i, f.S_NEXT]
    return blocks


@kernel_part
def accepted_drafts(s: State, r: int, i: int) -> int:
    """How many drafts of slot i are accepted in the pass that ends (its step is counted already)."""
    draw = own_draw(s, i, FIRST_DRAW + sent_by(s, r, i)) * WHOLE_DRAW
    chance, accepted = s.pace[r, f.P_ACCEPTED], 0
    while accepted < s.common[f.C_DRAFTS] and draw < chance:
        accepted += 1
        chance *= s.pace[r, f.P_ACCEPTED]
    return accepted


@kernel_part
def advance_by(s: State, r: int, i: int, extra: int) -> None:
    """Slot i has `extra` tokens more than a step gives; what others count by steps is shifted."""
    replica, slot = s.replica, s.slot
    g, q = f.R_GAUGE, f.S_GAUGE
    if s.common[f.C_MEASURES]:
        ones = replica[r, g + f.G_OWN_1] - slot[i, q + f.G_OWN_1]
        twos = replica[r, g + f.G_OWN_2] - slot[i, q + f.G_OWN_2]
        slot[i, f.S_OWN_SUM] += slot[i, f.S_OWN_BASE] * ones + twos
        slot[i, q + f.G_OWN_1], slot[i, q + f.G_OWN_2] = replica[r, g + f.G_OWN_1], replica[r, g + f.G_OWN_2]
        slot[i, f.S_OWN_BASE] += extra
        s.histogram[f.H_ITL, 0] += extra
    phase = slot[i, f.S_INPUT] + slot[i, f.S_OUTPUT] - 1 - slot[i, f.S_END_STEP]
    replica[r, f.R_PHASE + (phase & 15)] -= 1
    replica[r, f.R_PHASE + ((phase + extra) & 15)] += 1
    slot[i, f.S_END_STEP] -= extra
    replica[r, f.R_CONTEXT] += extra
    s.common[f.N_TOKENS] += extra


@kernel_routine
def accept_drafts(s: State, r: int) -> None:
    """A pass of replica r has ended, its step is counted: accept drafts, and give back what was reserved for others."""
    replica, slot, common = s.replica, s.slot, s.common
    drafts = replica[r, f.R_PROMPT_TOKENS] == 0
    used = size = 0
    i = replica[r, f.R_HEAD]
    while i != f.NO_SLOT:
        if slot[i, f.S_STATE] == f.DECODE:
            tokens = slot[i, f.S_INPUT] + sent_by(s, r, i) - 2
            if drafts:
                accepted = accepted_drafts(s, r, i)
                common[f.N_DRAFTED] += common[f.C_DRAFTS]
                common[f.N_ACCEPTED] += accepted
                extra = min(accepted, slot[i, f.S_END_STEP] - replica[r, f.R_STEPS])
                if extra > 0:
                    advance_by(s, r, i, extra)
            used += blocks_of(slot[i, f.S_INPUT] + sent_by(s, r, i) - 1) - blocks_of(tokens)
            push_heap(s, r, (slot[i, f.S_END_STEP] << SLOT_BITS) | i, size)
            size += 1
        i = slot[i, f.S_NEXT]
    if common[f.C_PAGED]:
        replica[r, f.R_FREE] += replica[r, f.R_RESERVED] - used
