"""What clients will do next: a heap of slots by instant (`S_EVENT`), those of one instant in order of arrival.

A slot has one place in the heap at most: its deadline or its user's cancellation, whichever comes first, while its
request is in the system, the boundary at which it leaves once its client is gone, and the end of its backoff.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.fields import State

MASK_32 = (1 << 32) - 1
MIX = 0x45D9F3B
"""Multiplier of a public 32-bit hash, found by a search for one whose input bits each flip half of the output's (Stack
Overflow, "What integer hash function are good that accepts an integer hash key?")."""
WHOLE_DRAW = 1.0 / (1 << 32)
"""A draw times this lies in [0, 1)."""


@kernel_part
def is_sooner(s: State, i: int, j: int) -> bool:
    """Whether slot i is ahead of slot j."""
    slot = s.slot
    if slot[i, f.S_EVENT] != slot[j, f.S_EVENT]:
        return bool(slot[i, f.S_EVENT] < slot[j, f.S_EVENT])
    return bool(slot[i, f.S_ORDER] < slot[j, f.S_ORDER])


@kernel_part
def put_event(s: State, place: int, i: int) -> None:
    """Slot i stands at `place` of the heap (`S_PLACE` is one more: 0 is nowhere)."""
    s.slot[place, f.S_EVENTS] = i
    s.slot[i, f.S_PLACE] = place + 1


@kernel_routine
def schedule_client(s: State, i: int, at: int) -> None:
    """The client of slot i does something at the instant `at`, and not when it meant to before (FOREVER: never)."""
    slot, common = s.slot, s.common
    moved, place, size = i, slot[i, f.S_PLACE] - 1, common[f.C_EVENTS]
    slot[i, f.S_EVENT] = at
    if at < f.FOREVER:
        if place < 0:
            place = size
            size += 1
    else:
        if place < 0:
            return
        slot[i, f.S_PLACE] = 0
        size -= 1
        moved = slot[size, f.S_EVENTS]
    common[f.C_EVENTS] = size
    if place == size:
        return
    while place > 0 and is_sooner(s, moved, slot[(place - 1) >> 1, f.S_EVENTS]):
        put_event(s, place, slot[(place - 1) >> 1, f.S_EVENTS])
        place = (place - 1) >> 1
    child = 2 * place + 1
    while child < size:
        if child + 1 < size and is_sooner(s, slot[child + 1, f.S_EVENTS], slot[child, f.S_EVENTS]):
            child += 1
        if not is_sooner(s, slot[child, f.S_EVENTS], moved):
            break
        put_event(s, place, slot[child, f.S_EVENTS])
        place = child
        child = 2 * place + 1
    put_event(s, place, moved)


@kernel_routine
def forget_client(s: State, i: int) -> None:
    """The client of slot i has nothing more to do."""
    schedule_client(s, i, f.FOREVER)


@kernel_part
def mixed_bits(value: int) -> int:
    """32 well-mixed bits of 32 bits (two rounds of multiply and fold; products stay below 2^63)."""
    for _ in range(2):
        value = (((value >> 16) ^ value) * MIX) & MASK_32
    return (value >> 16) ^ value


@kernel_part
def own_draw(s: State, i: int, number: int) -> int:
    """Draw `number` of the request in slot i, uniform in [0, 2^32): the same whatever else happens.

    A hash of the request's seed, which comes from a named stream, and of the number.
    """
    seed = s.slot[i, f.S_SEED]
    return mixed_bits(mixed_bits((seed & MASK_32) ^ mixed_bits(number & MASK_32)) ^ (seed >> 32))
