"""Sessions inside the kernel: the next turn of a session comes a think time after the one before has left.

Rows of `request` are all turns of all sessions, in order of the instants at which they would come if answers took no
time (`Q_ARRIVAL`): the think time is the difference between a turn's and that of the turn before, whatever the service
does. The rules:

- A turn ends when its request leaves the system: with its answer, or given up for good (rejected or timed out in its
  last attempt, cancelled), or refused because it never fits. Its user then thinks, and the next turn comes.
- No turn comes after the last instant of the rows: there the window of arrivals ends.
- Who thinks is not in the system. Returns count as what clients do: at one instant after ends of passes and before
  arrivals of new sessions, in order of arrival of the turns before.

A completion may bring a turn before the next event that is known: so with sessions all replicas are settled in order
of time, and no further than the first return.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.client_queue import schedule_client
from workloads.serving.fields import State


@kernel_part
def take_slot(s: State) -> int:
    """A free slot (there is one) is taken."""
    s.common[f.C_FREE_SLOTS] -= 1
    taken: int = s.slot[s.common[f.C_FREE_SLOTS], f.S_FREE]
    return taken


@kernel_routine
def end_turn(s: State, i: int, t: int) -> None:
    """The request of slot i has left at t: the slot is its user's, who thinks about the next turn, or it is free."""
    slot, common, request = s.slot, s.common, s.request
    if common[f.C_TURNS]:
        row = slot[i, f.S_ID]  # all requests are in one chunk, the first
        after = request[row, f.Q_NEXT]
        at = t + request[after, f.Q_ARRIVAL] - request[row, f.Q_ARRIVAL]
        if after > 0 and at <= request[request.shape[0] - 1, f.Q_ARRIVAL]:
            slot[i, f.S_ID] = after
            slot[i, f.S_STATE] = f.THINKING
            schedule_client(s, i, at)
            return
    slot[common[f.C_FREE_SLOTS], f.S_FREE] = i
    common[f.C_FREE_SLOTS] += 1


@kernel_part
def next_client(s: State, before: int) -> int:
    """The slot whose client does something first, and before an instant (NO_SLOT: none does)."""
    if s.common[f.C_EVENTS] == 0 or s.slot[s.slot[0, f.S_EVENTS], f.S_EVENT] >= before:
        return f.NO_SLOT
    first: int = s.slot[0, f.S_EVENTS]
    return first


@kernel_part
def is_overtaken(s: State, i: int, t: int, arrives: bool) -> bool:
    """Whether the event at t, of slot i or of none, is the next no more: a request has left, and its user comes first.

    It may be the same slot: its user has the answer and meant to lose patience at t.
    """
    if next_client(s, t + int(arrives or i != f.NO_SLOT)) != i:
        return True
    slot = s.slot
    return i != f.NO_SLOT and (slot[i, f.S_EVENT] != t or (slot[i, f.S_STATE] == f.THINKING) != arrives)
