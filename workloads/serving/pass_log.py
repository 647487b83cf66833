"""A service pass by pass: what each pass carried and which token of which request it made, outside the kernel.

The kernel runs macro steps and keeps counts. Here it is looked at, at each instant at which a pass ends: a look changes
nothing (it never re-anchors), so what is read is the very run that is measured, to the nanosecond. It takes some 50 us
per pass: for windows that are to be told token by token, not for long runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workloads.serving import fields as f
from workloads.serving.booking import elapsed_ns, leave_gauges
from workloads.serving.conservation import NotConservedError
from workloads.serving.fields import State
from workloads.serving.queues import SLOT_BITS, SLOT_MASK
from workloads.serving.service import Service

LOGGED = ("steps", "tokens", "prompt_tokens")
"""What the kernel counts and the passes must add up to: so must the bytes that are told from them."""
_elapsed_ns = getattr(elapsed_ns, "py_func", elapsed_ns)
_leave_gauges = getattr(leave_gauges, "py_func", leave_gauges)


class EndedPass(NamedTuple):
    """One pass of one replica that has just ended; times in ns.

    `decodes` sequences (padding of a static batch too) read `context_tokens` of cache; `chunks` are the prompt tokens
    that it computed by request, which read `cached_tokens` again; `copied_blocks` were read and written to part samples
    of a prompt. It made token number `numbers[k]` (from 1) of request
    `requests[k]`, kept in slot `slots[k]` until it left the system.
    """

    replica: int
    begin_ns: int
    end_ns: int
    decodes: int
    context_tokens: int
    cached_tokens: int
    copied_blocks: int
    chunks: tuple[int, ...]
    requests: NDArray[np.int64]
    numbers: NDArray[np.int64]
    slots: NDArray[np.int64]

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens that it computed."""
        return sum(self.chunks)


def ended_passes(service: Service, until_ns: int) -> Iterator[EndedPass]:
    """Advance the service to `until_ns`; yield each pass as it ends, in order of time (of one instant by replica).

    The service may be read between two passes, not changed; whoever stops early finds it at the end of the last pass.
    """
    service.advance(service.now_ns)  # the next requests are at hand then
    padded = bool(service._state.common[f.C_STATIC])  # passes of static batches compute more than prompts have
    before, seen = {name: service.total(name) for name in LOGGED[: 2 if padded else 3]}, [0, 0, 0]
    while True:
        instant_ns = min(_next_instant_ns(service), until_ns)
        ending = _ending_at(service._state, instant_ns)
        service.advance(instant_ns)
        if service.config.speculation is not None:
            ending = [_with_drafts(service._state, each) for each in ending]
        seen[0] += len(ending)
        seen[1] += sum(each.requests.size for each in ending)
        seen[2] += sum(each.prompt_tokens for each in ending)
        for (name, start), told in zip(before.items(), seen, strict=False):
            if service.total(name) - start != told:
                raise NotConservedError(f"{name}: {service.total(name) - start:,} and {told:,} seen pass by pass")
        yield from ending
        if instant_ns >= until_ns:
            return


def _next_instant_ns(service: Service) -> int:
    """The next instant at which a pass may end, or just after which one may begin: then it can not end unseen."""
    state, now_ns = service._state, service.now_ns
    common, slot = state.common, state.slot
    found = [f.FOREVER]
    for r in range(int(common[f.C_REPLICAS])):
        row = state.replica[r]
        if row[f.R_MODE] == f.PASS:
            found.append(_end_ns(state, r))
        elif row[f.R_MODE] == f.BOUNDARY:
            found.append(int(row[f.R_AT]) + 1)
        if row[f.R_MOVING] != f.NO_SLOT:
            found.append(int(slot[row[f.R_MOVING], f.S_JOIN_AT]) + 1)
    if common[f.C_NEXT] < state.request.shape[0]:
        found.append(int(state.request[common[f.C_NEXT], f.Q_ARRIVAL]) + 1)
    if common[f.C_EVENTS]:
        found.append(int(slot[slot[0, f.S_EVENTS], f.S_EVENT]) + 1)
    return max(min(found), now_ns + 1)


def _end_ns(state: State, r: int) -> int:
    """End of the pass in flight on replica r."""
    row = state.replica[r]
    return int(row[f.R_END]) if row[f.R_MIXED] else _step_ns(state, r, int(row[f.R_STEP]) + 1)


def _step_ns(state: State, r: int, step: int) -> int:
    """End of a step of the present segment of replica r."""
    pace = state.pace[r]
    return int(state.replica[r, f.R_ANCHOR]) + _elapsed_ns(step, float(pace[f.P_BASE]), float(pace[f.P_SLOPE]))


def _ending_at(state: State, instant_ns: int) -> list[EndedPass]:
    """The passes in flight that end at an instant, as they are before it."""
    return [
        _in_flight(state, r, instant_ns)
        for r in range(int(state.common[f.C_REPLICAS]))
        if state.replica[r, f.R_MODE] == f.PASS and _end_ns(state, r) == instant_ns
    ]


def _in_flight(state: State, r: int, end_ns: int) -> EndedPass:
    row, slot = state.replica[r], state.slot
    sequences = int(row[f.R_LIVE if state.common[f.C_STATIC] else f.R_DECODES])
    heap = row[f.R_HEAP : f.R_HEAP + sequences]
    slots = heap & SLOT_MASK
    numbers = slot[slots, f.S_OUTPUT] - ((heap >> SLOT_BITS) - row[f.R_STEPS]) + 1
    chunks: list[int] = []
    if row[f.R_MIXED]:
        begin_ns, computed = int(row[f.R_ANCHOR]), []
        i = int(row[f.R_FIRST_PREFILL])
        while i != f.NO_SLOT:
            if slot[i, f.S_CHUNK] > 0:  # a sample of the prompt before it computes nothing
                chunks.append(int(slot[i, f.S_CHUNK]))
            if slot[i, f.S_READY] + slot[i, f.S_CHUNK] == slot[i, f.S_TARGET]:
                computed.append(i)
            i = int(slot[i, f.S_NEXT])
        fresh = np.array(computed, dtype=np.int64)
        slots, numbers = np.append(slots, fresh), np.append(numbers, slot[fresh, f.S_SENT] + 1)
    else:
        begin_ns = _step_ns(state, r, int(row[f.R_STEP]))
    return EndedPass(
        replica=r,
        begin_ns=begin_ns,
        end_ns=end_ns,
        decodes=int(row[f.R_DECODES]),
        context_tokens=int(row[f.R_CONTEXT]),
        cached_tokens=int(row[f.R_CACHED]) if row[f.R_MIXED] else 0,
        copied_blocks=int(row[f.R_COPIED]) if row[f.R_MIXED] else 0,
        chunks=tuple(chunks),
        requests=slot[slots, f.S_ID],
        numbers=numbers,
        slots=slots,
    )


def _with_drafts(state: State, ended: EndedPass) -> EndedPass:
    """The same pass with all tokens that it made: drafts that were accepted appear with the one of a plain step."""
    if ended.chunks:
        return ended
    slot, steps = state.slot, state.replica[ended.replica, f.R_STEPS]
    sent = slot[ended.slots, f.S_OUTPUT] - (slot[ended.slots, f.S_END_STEP] - steps)
    made = sent - ended.numbers + 1
    first = np.repeat(np.cumsum(made) - made, made)
    numbers = np.repeat(ended.numbers, made) + np.arange(int(made.sum())) - first
    return ended._replace(requests=np.repeat(ended.requests, made), numbers=numbers, slots=np.repeat(ended.slots, made))


def token_times_ns(service: Service) -> list[list[int]]:
    """Run until all recorded requests have left; the instant of each of their tokens, by request.

    Of a request that was sent again the tokens of its last attempt.
    """
    recorded = service.config.record_requests
    times: list[list[int]] = [[] for _ in range(recorded)]
    for ended in ended_passes(service, f.FOREVER):
        for request, number in zip(ended.requests.tolist(), ended.numbers.tolist(), strict=True):
            if request < recorded:
                if number == 1:
                    times[request].clear()
                times[request].append(ended.end_ns)
        if service._state.record[:, f.X_STATUS].all():
            break
    return times


def ledger_now_ns(state: State, replica: int, slot: int) -> NDArray[np.int64]:
    """The ledger (categories,) of a request that has just been given a token: it adds up to its time since arrival."""
    one = state._replace(slot=state.slot[slot : slot + 1].copy())
    if one.slot[0, f.S_STATE] == f.DECODE:
        _leave_gauges(one, replica, 0)
    return one.slot[0, f.S_LEDGER : f.S_LEDGER + f.LEDGER_SIZE].copy()
