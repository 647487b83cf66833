"""The central queue: one queue, first come, first served, for all replicas; each pulls at its own boundaries.

It lies in the row of the router's room (index `replicas`), whose mode is DEAD while no replica is alive and IDLE
otherwise. Boundaries of all replicas are taken in order of time, those of one instant by index, so that of several
replicas that could take a request at one instant the lowest does. An idle replica is at a boundary as soon as
something waits. What is evicted goes back to the head of the central queue, and any replica may take it; what a loss
takes down stays with the dead replica until detection, then returns in order of arrival.

Ledger of a request that waits here: `no_replica_up` while none is alive; `kv_blocked` while the last decision of some
replica that is alive found that the head lacks blocks; `router_queue` otherwise.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.booking import book_wait
from workloads.serving.fields import State
from workloads.serving.plans import reconsider, wake_all
from workloads.serving.queues import blocked_until, change_outstanding, set_blocked


@kernel_part
def queue_row(s: State, r: int) -> int:
    """Row of the queue from which replica r admits: its own, or the central one."""
    central: int = s.common[f.C_ROUTER] == f.ROUTE_CENTRAL
    return s.common[f.C_REPLICAS] if central else r


@kernel_part
def move_between(s: State, t: int, source: int, target: int) -> None:
    """A request goes from one row to another at t (central queue and replica)."""
    if source != target:
        change_outstanding(s, source, t, -1)
        change_outstanding(s, target, t, 1)


@kernel_routine
def wake_others(s: State, r: int, t: int) -> None:
    """Replica r has changed the central queue at t: the others see it at their next decision.

    Those of lower index have decided at t already, where they had a boundary then.
    """
    replica = s.replica
    waiting = replica[s.common[f.C_REPLICAS], f.R_QUEUE] > 0
    for other in range(s.common[f.C_REPLICAS]):
        may_take = waiting and replica[other, f.R_RUNNING] < s.common[f.C_MAX_BATCH]
        if other == r or not (may_take or replica[other, f.R_BLOCKED]):
            continue
        late = other < r and replica[other, f.R_MODE] == f.PASS
        reconsider(s, other, t + int(late))


@kernel_routine
def change_blocked(s: State, r: int, t: int, blocked: int) -> None:
    """From t on replica r finds the contrary; the central queue is blocked while any replica finds so."""
    set_blocked(s, r, t, blocked)
    room = queue_row(s, r)
    if room != r:
        some = 0
        for other in range(room):
            some |= s.replica[other, f.R_BLOCKED]
        set_blocked(s, room, t, some)


@kernel_part
def note_blocked(s: State, r: int, t: int, blocked: int) -> None:
    """From t on replica r finds that the head of its queue lacks KV blocks (1), or not (0)."""
    if s.replica[r, f.R_BLOCKED] != blocked:
        change_blocked(s, r, t, blocked)


@kernel_part
def book_room(s: State, t: int, mode: int) -> None:
    """The last replica dies, or the first returns, at t: close the waits in the central queue, and note its mode."""
    slot, room = s.slot, s.common[f.C_REPLICAS]
    i = s.replica[room, f.R_QUEUE_HEAD]
    while i != f.NO_SLOT:
        book_wait(s, room, i, t)
        slot[i, f.S_BLOCKED] = blocked_until(s, room, t)
        i = slot[i, f.S_NEXT]
    s.replica[room, f.R_MODE] = mode


@kernel_routine
def note_alive(s: State, t: int) -> None:
    """A replica has died or returned at t: while none is alive, the central queue waits for one."""
    room = s.common[f.C_REPLICAS]
    mode = f.DEAD
    for r in range(room):
        if s.replica[r, f.R_MODE] != f.DEAD:
            mode = f.IDLE
    if s.replica[room, f.R_MODE] != mode:
        book_room(s, t, mode)
    if s.replica[room, f.R_QUEUE] > 0:
        wake_all(s, t)
