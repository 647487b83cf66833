"""Parallel samples: several answers to one prompt, which is computed once and kept once while that can be.

Request number i answers prompt i // `C_SAMPLES` (only where blocks of prefixes are shared, of one block a piece; not on
the prefill replicas of a disaggregated service). The rules are those of vLLM's sequence groups (Kwon et al.,
arXiv:2309.06180, section 4.4), for samples that meet in one pass:

- A sample that is admitted right behind another of its prompt, to the pass in which that prompt ends, computes nothing.
  It refers to all blocks of the prompt, the partly filled last one (the tail) too, and has its first token at the end
  of that pass: logits are shared. It takes a slot, but neither blocks nor tokens of the budget, so no watermark holds
  it. Neither has sent a token, and the prompt's whole pieces are all in the cache. Any other sample is admitted like
  any request: it shares whole pieces, and computes and holds the rest of its own.
- All who refer to a tail write to it in the next pass. Each but the last copies it first: blocks for the copies are
  taken as that pass begins, with evictions where they are short. Who stops before that pass leaves its reference, and
  the last one left owns the tail. Answers of one token copy nothing.
- Each copy reads and writes a block: the pass takes so much longer as if it read 2 x 16 tokens more of context (in the
  ledger: reads of KV, others'). Afterwards blocks are each answer's own.
- A sample that is routed right after another of its prompt goes to the same replica, while that is believed up.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.fields import State
from workloads.serving.prefix import find_run


@kernel_part
def replica_of_sample(s: State, number: int) -> int:
    """Where request `number` goes because another sample of its prompt was routed just before; NO_SLOT: by the rule."""
    common = s.common
    if common[f.C_SAMPLES] > 1 and number // common[f.C_SAMPLES] == common[f.C_SAMPLED]:
        r: int = common[f.C_SAMPLED_TO]
        if s.replica[r, f.R_BELIEVED]:
            return r
    return f.NO_SLOT


@kernel_part
def note_routed(s: State, r: int, i: int) -> None:
    """Slot i has been routed to row r."""
    common = s.common
    if common[f.C_SAMPLES] > 1:
        common[f.C_SAMPLED], common[f.C_SAMPLED_TO] = s.slot[i, f.S_ID] // common[f.C_SAMPLES], r


@kernel_routine
def joins_prompt(s: State, r: int, i: int) -> bool:
    """Whether slot i, next at replica r, is a sample of the youngest there, whose prompt ends in the pass that begins.

    (A sample that joined stands for the one that computes: its prompt is ready.)
    """
    slot, n = s.slot, s.common[f.C_SAMPLES]
    last = s.replica[r, f.R_TAIL]
    if last == f.NO_SLOT or slot[last, f.S_STATE] != f.PREFILL:
        return False
    if slot[last, f.S_ID] // n != slot[i, f.S_ID] // n or slot[last, f.S_INPUT] != slot[i, f.S_INPUT]:
        return False
    if slot[last, f.S_SENT] + slot[i, f.S_SENT] > 0 or slot[i, f.S_HOST] == r + 1:
        return False
    if slot[last, f.S_READY] + slot[last, f.S_CHUNK] != slot[last, f.S_TARGET]:
        return False
    whole = slot[i, f.S_INPUT] // f.BLOCK_TOKENS
    return bool(slot[i, f.S_HASHES] == whole and find_run(s, r, slot[i, f.S_HASH_AT], whole) == whole)


@kernel_routine
def join_prompt(s: State, r: int, i: int) -> None:
    """Slot i, just admitted to replica r behind another sample of its prompt, computes nothing and shares its tail."""
    slot, common = s.slot, s.common
    slot[i, f.S_READY] = slot[i, f.S_TARGET]
    slot[i, f.S_CHUNK] = 0
    common[f.N_JOINED] += 1
    if slot[i, f.S_TARGET] % f.BLOCK_TOKENS > 0:
        last = slot[i, f.S_PREVIOUS]
        if slot[last, f.S_TAIL] == 0:
            common[f.C_TAILS] += 1
            slot[last, f.S_TAIL] = common[f.C_TAILS]
        slot[i, f.S_TAIL] = slot[last, f.S_TAIL]
        s.replica[r, f.R_COPIES] += 1


@kernel_routine
def leave_tail(s: State, r: int, i: int) -> None:
    """Slot i, which stops running on replica r, had a tail in common: where others still do, the block stays theirs.

    Those who refer to one tail stand side by side. Tails with numbers up to `R_TAILS` have been written to.
    """
    replica, slot = s.replica, s.slot
    tail, before, after = slot[i, f.S_TAIL], slot[i, f.S_PREVIOUS], slot[i, f.S_NEXT]
    slot[i, f.S_TAIL] = 0
    if tail > replica[r, f.R_TAILS] and (
        (before != f.NO_SLOT and slot[before, f.S_TAIL] == tail)
        or (after != f.NO_SLOT and slot[after, f.S_TAIL] == tail)
    ):
        replica[r, f.R_FREE] -= 1
        replica[r, f.R_COPIES] -= 1


@kernel_routine
def copy_tails(s: State, r: int) -> None:
    """The pass that begins on replica r writes to tails that several refer to: blocks for the copies are taken."""
    replica, common = s.replica, s.common
    replica[r, f.R_FREE] -= replica[r, f.R_COPIES]
    common[f.N_COPIES] += replica[r, f.R_COPIES]
    replica[r, f.R_COPIED] = replica[r, f.R_COPIES]
    replica[r, f.R_COPIES] = 0
    replica[r, f.R_TAILS] = common[f.C_TAILS]
