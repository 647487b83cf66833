"""A time to first token, predicted when a request arrives: what the SLO-aware router and early rejection go by.

The rule, for a prompt of n tokens at a replica (healthy, as the table of pass times says; committed state, so that
every way of running the kernel predicts the same):

    work   = n + prompt tokens that wait there (prompts and sent tokens to be computed again) + rest of a partial prompt
    room   = token budget - decodes                                  (no limit: all of the work fits into one pass)
    passes = ceil(work / room), all but the last full
    TTFT   = sum over passes of T_prefill(decodes + its prompt tokens) + passes x KV reads of the decodes

Blocks, slots, priorities, attention of the prompts, what is left of the pass in flight and padding are left out. A
replica that is dead and not yet known to be predicts from what waits there; the router's room predicts for ever.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.booking import kv_ns, table_row, table_value
from workloads.serving.fields import State
from workloads.serving.queues import choose_replica


@kernel_part
def prefill_ns(s: State, tokens: int) -> float:
    """Time of a pass with prompts of `tokens` tokens in all, without reads."""
    row, weight = table_row(s, tokens)
    return table_value(s, row, weight, f.T_PREFILL)


@kernel_routine
def predicted_ttft_ns(s: State, r: int, prompt: int) -> float:
    """Predicted time to first token of a prompt of `prompt` tokens that arrives at replica r now, in ns."""
    replica, slot = s.replica, s.slot
    if r == s.common[f.C_REPLICAS]:
        return float(f.FOREVER)
    decodes = replica[r, f.R_DECODES]
    work = prompt + replica[r, f.R_QUEUE_TOKENS]
    partial = replica[r, f.R_TAIL]
    if partial != f.NO_SLOT and slot[partial, f.S_STATE] == f.PREFILL and not s.common[f.C_STATIC]:
        i = partial
        while i != f.NO_SLOT and slot[i, f.S_STATE] == f.PREFILL:
            work += slot[i, f.S_TARGET] - slot[i, f.S_READY]
            i = slot[i, f.S_PREVIOUS]
    room = s.common[f.C_BUDGET] - decodes
    full = (work - 1) // room
    reads = kv_ns(s, decodes) * replica[r, f.R_CONTEXT]
    predicted = prefill_ns(s, decodes + work - full * room) + (full + 1) * reads
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
