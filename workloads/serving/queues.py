"""Lists and heaps of the token kernel: who waits where, who runs, who ends next."""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.fields import State
from workloads.serving.prefix import find_run

SLOT_BITS = 24
SLOT_MASK = (1 << SLOT_BITS) - 1


@kernel_part
def push_heap(s: State, r: int, key: int, size: int) -> None:
    """Add `key` to the heap of replica r, which holds `size` keys."""
    heap = s.replica
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        if heap[r, f.R_HEAP + parent] <= key:
            break
        heap[r, f.R_HEAP + hole] = heap[r, f.R_HEAP + parent]
        hole = parent
    heap[r, f.R_HEAP + hole] = key


@kernel_part
def sift_down(s: State, r: int, hole: int, key: int, size: int) -> None:
    """Put `key` into the `hole` of the heap of replica r or below it; the heap holds `size` keys."""
    heap = s.replica
    child = 2 * hole + 1
    while child + 1 < size:
        child += int(heap[r, f.R_HEAP + child + 1] < heap[r, f.R_HEAP + child])
        if heap[r, f.R_HEAP + child] >= key:
            heap[r, f.R_HEAP + hole] = key
            return
        heap[r, f.R_HEAP + hole] = heap[r, f.R_HEAP + child]
        hole = child
        child = 2 * hole + 1
    if child < size and heap[r, f.R_HEAP + child] < key:
        heap[r, f.R_HEAP + hole] = heap[r, f.R_HEAP + child]
        hole = child
    heap[r, f.R_HEAP + hole] = key


@kernel_part
def remove_from_heap(s: State, r: int, i: int, size: int) -> None:
    """Take the key of slot i out of the heap of replica r, which holds `size` keys (an eviction: rare)."""
    heap = s.replica
    place = 0
    while (heap[r, f.R_HEAP + place] & SLOT_MASK) != i:
        place += 1
    last = heap[r, f.R_HEAP + size - 1]
    if place == size - 1:
        return
    if place > 0 and heap[r, f.R_HEAP + ((place - 1) >> 1)] > last:
        while place > 0 and heap[r, f.R_HEAP + ((place - 1) >> 1)] > last:
            heap[r, f.R_HEAP + place] = heap[r, f.R_HEAP + ((place - 1) >> 1)]
            place = (place - 1) >> 1
        heap[r, f.R_HEAP + place] = last
    else:
        sift_down(s, r, place, last, size - 1)


@kernel_part
def append_running(s: State, r: int, i: int) -> None:
    """Slot i becomes the youngest admitted of replica r."""
    replica, slot = s.replica, s.slot
    tail = replica[r, f.R_TAIL]
    slot[i, f.S_PREVIOUS] = tail
    slot[i, f.S_NEXT] = f.NO_SLOT
    if tail == f.NO_SLOT:
        replica[r, f.R_HEAD] = i
    else:
        slot[tail, f.S_NEXT] = i
    replica[r, f.R_TAIL] = i
    replica[r, f.R_RUNNING] += 1


@kernel_part
def remove_running(s: State, r: int, i: int) -> None:
    """Slot i no longer runs on replica r."""
    replica, slot = s.replica, s.slot
    before, after = slot[i, f.S_PREVIOUS], slot[i, f.S_NEXT]
    if before == f.NO_SLOT:
        replica[r, f.R_HEAD] = after
    else:
        slot[before, f.S_NEXT] = after
    if after == f.NO_SLOT:
        replica[r, f.R_TAIL] = before
    else:
        slot[after, f.S_PREVIOUS] = before
    replica[r, f.R_RUNNING] -= 1


@kernel_part
def clear_replica(s: State, r: int, mode: int) -> None:
    """Nothing runs on replica r and all its blocks are free."""
    replica = s.replica
    replica[r, f.R_MODE] = mode
    replica[r, f.R_FREE] = replica[r, f.R_BLOCKS]
    replica[r, f.R_DECODES] = replica[r, f.R_CONTEXT] = replica[r, f.R_RUNNING] = replica[r, f.R_LIVE] = 0
    replica[r, f.R_HEAD] = replica[r, f.R_TAIL] = f.NO_SLOT
    replica[r, f.R_COPIES] = 0
    replica[r, f.R_CHANGED] = 1
    for phase in range(f.BLOCK_TOKENS):
        replica[r, f.R_PHASE + phase] = 0


@kernel_routine
def youngest_of_lowest(s: State, r: int) -> int:
    """Of the sequences that run on replica r, the youngest admitted among those of the lowest priority."""
    slot = s.slot
    found = i = s.replica[r, f.R_TAIL]
    while i != f.NO_SLOT:
        if slot[i, f.S_CLASS] > slot[found, f.S_CLASS]:
            found = i
        i = slot[i, f.S_PREVIOUS]
    youngest: int = found
    return youngest


@kernel_part
def blocked_until(s: State, r: int, t: int) -> int:
    """Time in ns, up to t, in which the head of the queue of replica r lacked KV blocks."""
    replica = s.replica
    total: int = replica[r, f.R_BLOCKED_SUM]
    if replica[r, f.R_BLOCKED]:
        total += t - replica[r, f.R_BLOCKED_SINCE]
    return total


@kernel_part
def set_blocked(s: State, r: int, t: int, blocked: int) -> None:
    """From t on the head of the queue of replica r lacks KV blocks (1) or does not (0)."""
    replica = s.replica
    if replica[r, f.R_BLOCKED] != blocked:
        replica[r, f.R_BLOCKED_SUM] = blocked_until(s, r, t)
        replica[r, f.R_BLOCKED_SINCE] = t
        replica[r, f.R_BLOCKED] = blocked


@kernel_part
def enqueue_after(s: State, r: int, i: int, before: int, t: int) -> None:
    """Slot i waits at replica r from t on, behind slot `before` (NO_SLOT: at the head)."""
    replica, slot = s.replica, s.slot
    after = replica[r, f.R_QUEUE_HEAD] if before == f.NO_SLOT else slot[before, f.S_NEXT]
    slot[i, f.S_NEXT] = after
    slot[i, f.S_PREVIOUS] = before
    slot[i, f.S_ROW] = r
    if after != f.NO_SLOT:
        slot[after, f.S_PREVIOUS] = i
    if s.common[f.C_CLASSES] > 1 and (after == f.NO_SLOT or slot[after, f.S_CLASS] > slot[i, f.S_CLASS]):
        replica[r, f.R_CLASS_TAIL + slot[i, f.S_CLASS]] = i
    replica[r, f.R_QUEUE_TOKENS] += slot[i, f.S_INPUT] + slot[i, f.S_SENT]
    if before == f.NO_SLOT:
        replica[r, f.R_QUEUE_HEAD] = i
    else:
        slot[before, f.S_NEXT] = i
    if after == f.NO_SLOT:
        replica[r, f.R_QUEUE_TAIL] = i
    if replica[r, f.R_QUEUE] == 0:
        replica[r, f.R_QUEUE_SINCE] = t
    replica[r, f.R_QUEUE] += 1
    slot[i, f.S_STATE] = f.WAITING
    slot[i, f.S_BLOCKED] = blocked_until(s, r, t)


@kernel_part
def enqueue_by_arrival(s: State, r: int, i: int, t: int) -> None:
    """Slot i, which returns from elsewhere at t, waits at replica r ahead of the first younger one.

    The last one inserted in the same return is R_CURSOR: those that return come in order of arrival. With priorities
    the search begins at the head of its class.
    """
    replica, slot = s.replica, s.slot
    before = replica[r, f.R_CURSOR]
    if s.common[f.C_CLASSES] > 1:
        before = last_of_class(s, r, slot[i, f.S_CLASS] - 1)
    after = replica[r, f.R_QUEUE_HEAD] if before == f.NO_SLOT else slot[before, f.S_NEXT]
    order, priority = slot[i, f.S_ORDER], slot[i, f.S_CLASS]
    while after != f.NO_SLOT and slot[after, f.S_CLASS] <= priority and slot[after, f.S_ORDER] < order:
        before = after
        after = slot[after, f.S_NEXT]
    enqueue_after(s, r, i, before, t)
    replica[r, f.R_CURSOR] = i


@kernel_part
def last_of_class(s: State, r: int, priority: int) -> int:
    """The last slot that waits at replica r with this priority or a higher one (NO_SLOT: there is none)."""
    for kind in range(priority, -1, -1):
        if s.replica[r, f.R_CLASS_TAIL + kind] != f.NO_SLOT:
            last: int = s.replica[r, f.R_CLASS_TAIL + kind]
            return last
    return f.NO_SLOT


@kernel_part
def enqueue_last(s: State, r: int, i: int, t: int) -> None:
    """Slot i waits at replica r from t on, behind all of its priority."""
    before = s.replica[r, f.R_QUEUE_TAIL]
    if s.common[f.C_CLASSES] > 1:
        before = last_of_class(s, r, s.slot[i, f.S_CLASS])
    enqueue_after(s, r, i, before, t)


@kernel_part
def enqueue_first(s: State, r: int, i: int, t: int) -> None:
    """Slot i waits at replica r from t on, ahead of all of its priority."""
    before = f.NO_SLOT
    if s.common[f.C_CLASSES] > 1:
        before = last_of_class(s, r, s.slot[i, f.S_CLASS] - 1)
    enqueue_after(s, r, i, before, t)


@kernel_part
def remove_from_queue(s: State, r: int, i: int) -> None:
    """Slot i no longer waits at replica r."""
    replica, slot = s.replica, s.slot
    before, after = slot[i, f.S_PREVIOUS], slot[i, f.S_NEXT]
    if before == f.NO_SLOT:
        replica[r, f.R_QUEUE_HEAD] = after
    else:
        slot[before, f.S_NEXT] = after
    if after == f.NO_SLOT:
        replica[r, f.R_QUEUE_TAIL] = before
    else:
        slot[after, f.S_PREVIOUS] = before
    if s.common[f.C_CLASSES] > 1 and replica[r, f.R_CLASS_TAIL + slot[i, f.S_CLASS]] == i:
        same = before != f.NO_SLOT and slot[before, f.S_CLASS] == slot[i, f.S_CLASS]
        replica[r, f.R_CLASS_TAIL + slot[i, f.S_CLASS]] = before if same else f.NO_SLOT
    replica[r, f.R_QUEUE] -= 1
    replica[r, f.R_QUEUE_TOKENS] -= slot[i, f.S_INPUT] + slot[i, f.S_SENT]


@kernel_part
def pop_queue(s: State, r: int) -> int:
    """Take the head of the queue of replica r (not empty) and return its slot."""
    i: int = s.replica[r, f.R_QUEUE_HEAD]
    remove_from_queue(s, r, i)
    return i


@kernel_part
def sift_by_arrival(s: State, root: int, size: int) -> None:
    """One step of a heap sort of column `S_SORTED` by order of arrival."""
    slot = s.slot
    moved = slot[root, f.S_SORTED]
    order = slot[moved, f.S_ORDER]
    child = 2 * root + 1
    while child < size:
        later = slot[slot[child, f.S_SORTED], f.S_ORDER]
        if child + 1 < size and slot[slot[child + 1, f.S_SORTED], f.S_ORDER] > later:
            child += 1
        if slot[slot[child, f.S_SORTED], f.S_ORDER] <= order:
            break
        slot[root, f.S_SORTED] = slot[child, f.S_SORTED]
        root = child
        child = 2 * root + 1
    slot[root, f.S_SORTED] = moved


@kernel_routine
def sort_by_arrival(s: State, count: int) -> None:
    """Sort the first `count` slots in column `S_SORTED` by order of arrival."""
    slot = s.slot
    start = count // 2 - 1
    for root in range(start, -1, -1):
        sift_by_arrival(s, root, count)
    for end in range(count - 1, 0, -1):
        first, last = slot[0, f.S_SORTED], slot[end, f.S_SORTED]
        slot[0, f.S_SORTED], slot[end, f.S_SORTED] = last, first
        sift_by_arrival(s, 0, end)


@kernel_part
def change_outstanding(s: State, r: int, t: int, change: int) -> None:
    """At t the number of requests routed to replica r and unfinished changes; its integral over time is kept."""
    replica = s.replica
    s.common[f.N_AREA] += replica[r, f.R_OUTSTANDING] * (t - replica[r, f.R_AREA_AT])
    replica[r, f.R_AREA_AT] = t
    replica[r, f.R_OUTSTANDING] += change


@kernel_routine
def affine_replica(s: State, at: int, most: int) -> int:
    """As `choose_replica`, for a request whose `most` shareable pieces have their numbers at `at`.

    The longest leading run in a replica's cache wins, then the fewest outstanding, then the lowest index; a replica
    with more than `C_GUARD` requests above the fewest outstanding is left out.
    """
    replica, replicas = s.replica, s.common[f.C_ROUTED]
    fewest = f.FOREVER
    for r in range(replicas):
        if replica[r, f.R_BELIEVED]:
            fewest = min(fewest, replica[r, f.R_OUTSTANDING])
    nobody = s.common[f.C_REPLICAS]
    chosen: int = nobody
    longest = -1
    for r in range(replicas):
        if replica[r, f.R_BELIEVED] and replica[r, f.R_OUTSTANDING] <= fewest + s.common[f.C_GUARD]:
            run = find_run(s, r, at, most)
            fewer = chosen == nobody or replica[r, f.R_OUTSTANDING] < replica[chosen, f.R_OUTSTANDING]
            if run > longest or (run == longest and fewer):
                chosen, longest = r, run
    return chosen


@kernel_part
def choose_replica(s: State, luck: int, at: int, most: int) -> int:
    """Replica for a request, among those believed up; the router's own room (index `replicas`) when none is.

    The prefix-affine router looks for its `most` shareable pieces, whose numbers are at `at`.
    """
    replica, common = s.replica, s.common
    kind, replicas = common[f.C_ROUTER], common[f.C_ROUTED]
    chosen: int = common[f.C_REPLICAS]
    nobody = chosen
    if kind == f.ROUTE_PREFIX_AFFINE:
        return affine_replica(s, at, most)
    if kind == f.ROUTE_LEAST_OUTSTANDING:
        for r in range(replicas):
            if replica[r, f.R_BELIEVED] and (
                chosen == nobody or replica[r, f.R_OUTSTANDING] < replica[chosen, f.R_OUTSTANDING]
            ):
                chosen = r
    elif kind == f.ROUTE_ROUND_ROBIN:
        for step in range(1, replicas + 1):
            turn: int = (common[f.C_TURN] + step) % replicas
            if replica[turn, f.R_BELIEVED]:
                return turn
    elif kind == f.ROUTE_RANDOM:
        believed = 0
        for r in range(replicas):
            believed += replica[r, f.R_BELIEVED]
        place = (luck * believed) >> f.LUCK_BITS
        for r in range(replicas):
            if replica[r, f.R_BELIEVED]:
                if place == 0:
                    return r
                place -= 1
    return chosen
