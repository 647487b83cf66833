"""The token kernel: many replicas of one service, every token of every request, exact and fast.

The rules are those of the serving page, sections 4 to 6. A replica is idle, at a boundary whose decision is still open,
in flight, or dead. In flight it is either in one pass that carries prompt tokens (`R_MIXED`) or in a segment: a run of
decode steps with a fixed running set, anchored at `R_ANCHOR`, of which `R_STEP` steps are committed and up to `R_PLAN`
no decision is due. A plan may be cut anywhere at no cost: at a boundary where nothing changes the segment goes
on from the same anchor. So every plan length gives the same run, down to the last bit.
"""

from __future__ import annotations

from topology.compilation import compiled_kernel, kernel_part, kernel_routine
from topology.kernel_state import pinned
from workloads.serving import fields as f
from workloads.serving.blocks import blocks_of_next_step, is_over_length, most_blocks
from workloads.serving.booking import elapsed_ns, last_step_by
from workloads.serving.client_events import begin_attempt, client_acts, end_attempt
from workloads.serving.client_queue import forget_client
from workloads.serving.commits import commit_decode, commit_mixed
from workloads.serving.decisions import decide
from workloads.serving.fields import State
from workloads.serving.losses import change_speed, close_at_horizon, detect_loss, lose_replica, return_replica
from workloads.serving.plans import plan_to, wake, wake_all
from workloads.serving.prediction import is_over_limits, route
from workloads.serving.prefix import pieces_to_reuse, take_cached
from workloads.serving.queues import change_outstanding, choose_replica, enqueue_last
from workloads.serving.samples import note_routed, replica_of_sample
from workloads.serving.static_batches import commit_static
from workloads.serving.swap import book_swap
from workloads.serving.transfers import end_transfers
from workloads.serving.turns import end_turn, is_overtaken, next_client, take_slot


@kernel_routine
def soonest_replica(s: State, until: int) -> int:
    """The replica whose pass ends by `until`, or whose boundary lies before it, first; of one instant the lowest.

    At one instant ends of passes come before boundaries, and transfers of disaggregated replicas end in between.
    """
    replica = s.replica
    while True:
        first, moving, soonest = f.NO_SLOT, False, 3 * until + 2
        for r in range(s.common[f.C_REPLICAS]):
            if replica[r, f.R_MODE] == f.PASS and 3 * replica[r, f.R_END] < soonest:
                first, moving, soonest = r, False, 3 * replica[r, f.R_END]
            elif replica[r, f.R_MODE] == f.BOUNDARY and 3 * replica[r, f.R_AT] + 2 < soonest:
                first, moving, soonest = r, False, 3 * replica[r, f.R_AT] + 2
            if replica[r, f.R_MOVING] != f.NO_SLOT:
                end = 3 * s.slot[replica[r, f.R_MOVING], f.S_JOIN_AT] + 1
                if end < soonest:
                    first, moving, soonest = r, True, end
        if not moving:
            return first
        end_transfers(s, first, soonest // 3)


@kernel_routine
def settle(s: State, first: int, last: int, until: int) -> None:
    """On replicas `first` to `last` - 1 commit what ends at or before `until`, and decide at boundaries before it.

    One after the other; those that wait for each other (a central queue, transfers, sessions) all together, in order
    of time. Returns when the work is used up, or when a user has come back before `until`.
    """
    replica, common = s.replica, s.common
    turns = common[f.C_TURNS] > 0
    together = turns or common[f.C_ROUTER] == f.ROUTE_CENTRAL or common[f.C_PREFILLS] > 0
    r = first
    while common[f.C_WORK] > 0 and not (turns and next_client(s, until) != f.NO_SLOT):
        if together:
            r = soonest_replica(s, until)
        if r == f.NO_SLOT or r >= last:
            return
        if replica[r, f.R_MODE] == f.PASS and replica[r, f.R_END] <= until:
            if not replica[r, f.R_MIXED]:
                commit_decode(s, r, replica[r, f.R_PLAN])
            elif not s.common[f.C_STATIC]:
                if replica[r, f.R_EXTRA] > 0:
                    book_swap(s, r)
                commit_mixed(s, r)
            if s.common[f.C_STATIC]:
                commit_static(s, r)
        elif replica[r, f.R_MODE] == f.BOUNDARY and replica[r, f.R_AT] < until:
            decide(s, r)
        else:
            r += 1


@kernel_routine
def look(s: State, r: int, until: int) -> None:
    """Commit the steps in flight on replica r that end at or before `until`; the segment keeps its anchor.

    When one ends at `until` itself, its boundary stays open: events and arrivals of that instant come first.
    """
    replica, pace = s.replica, s.pace
    if replica[r, f.R_MODE] == f.PASS and not replica[r, f.R_MIXED]:
        after = until - replica[r, f.R_ANCHOR]
        low, high = replica[r, f.R_STEP], replica[r, f.R_PLAN]
        k = last_step_by(after, low, high, pace[r, f.P_BASE], pace[r, f.P_SLOPE])
        if k > low and elapsed_ns(k, pace[r, f.P_BASE], pace[r, f.P_SLOPE]) == after:
            plan_to(s, r, k)
        commit_decode(s, r, k)
        if s.common[f.C_UNIT] > 0 and replica[r, f.R_MODE] == f.PASS:
            take_cached(s, r, blocks_of_next_step(s, r))


@kernel_part
def arrive(s: State, i: int, row: int, t: int) -> None:
    """Request `row` of the chunk arrives at t in slot i."""
    slot, common = s.slot, s.common
    whole = common[f.C_MEASURES] or common[f.C_RECORD_ROWS] > 0
    for column in range(f.S_FREE if whole else f.S_GAUGE):
        slot[i, column] = 0
    slot[i, f.S_ID] = common[f.C_FIRST_ID] + row
    slot[i, f.S_ORDER] = common[f.C_ARRIVED]
    common[f.C_ARRIVED] += 1
    slot[i, f.S_ARRIVAL] = slot[i, f.S_SINCE] = t
    slot[i, f.S_INPUT] = s.request[row, f.Q_INPUT]
    slot[i, f.S_OUTPUT] = s.request[row, f.Q_OUTPUT]
    slot[i, f.S_FIRST] = f.NO_SLOT
    slot[i, f.S_LUCK] = s.request[row, f.Q_LUCK]
    slot[i, f.S_HASH_AT] = s.request[row, f.Q_HASH_AT]
    slot[i, f.S_HASHES] = s.request[row, f.Q_HASHES]
    slot[i, f.S_CLASS] = s.request[row, f.Q_CLASS]
    slot[i, f.S_SEED] = s.request[row, f.Q_SEED]
    if common[f.C_CLIENTS]:
        slot[i, f.S_CANCEL] = t + s.request[row, f.Q_CANCEL]


@kernel_part
def pass_row(s: State) -> None:
    """The next request of the chunk has come: on to the next one that comes by itself."""
    common, request = s.common, s.request
    common[f.C_NEXT] += 1
    if common[f.C_TURNS]:
        while common[f.C_NEXT] < request.shape[0] and request[common[f.C_NEXT], f.Q_FOLLOWS]:
            common[f.C_NEXT] += 1


@kernel_part
def send(s: State, r: int, i: int, t: int) -> None:
    """An attempt of slot i is routed to replica r (or to the router's room) at t, and waits there or is rejected."""
    replica, slot, common = s.replica, s.slot, s.common
    if r < common[f.C_REPLICAS]:
        common[f.C_TURN] = r
    note_routed(s, r, i)
    rejected = False
    if common[f.C_CLIENTS]:
        begin_attempt(s, i, t)
        rejected = common[f.C_LIMITS] != 0 and is_over_limits(s, r, slot[i, f.S_INPUT])
    change_outstanding(s, r, t, 1)
    if rejected:
        end_attempt(s, r, i, t, f.REJECTED)
        return
    if replica[r, f.R_MODE] == f.DEAD:
        slot[i, f.S_CAUGHT] = 1
    enqueue_last(s, r, i, t)
    if replica[r, f.R_QUEUE_HEAD] == i or (common[f.C_STATIC] and replica[r, f.R_QUEUE] >= common[f.C_MAX_BATCH]):
        if r < common[f.C_REPLICAS]:
            wake(s, r, t)
        elif common[f.C_ROUTER] == f.ROUTE_CENTRAL:
            wake_all(s, t)


@kernel_part
def turn_away(s: State, row: int, t: int) -> bool:
    """Count request `row` of the chunk; True when it is a failed row, or never fits."""
    common = s.common
    prompt, output = s.request[row, f.Q_INPUT], s.request[row, f.Q_OUTPUT]
    status = 0
    if prompt < 1 or output < 1:
        status = f.FAILED_ROW
    elif most_blocks(s, prompt, output) > common[f.C_ROOM] or is_over_length(s, prompt + output - 1):
        status = f.REFUSED
    if t >= common[f.C_MEASURE_FROM]:
        if status == f.FAILED_ROW:
            common[f.N_FAILED_ROWS] += 1
        else:
            common[f.N_OFFERED] += 1
            common[f.N_OFFERED_TOKENS] += output
        if status == f.REFUSED:
            common[f.N_REFUSED] += 1
    place = common[f.C_FIRST_ID] + row - common[f.C_RECORD_FROM]
    if 0 <= place < common[f.C_RECORD_ROWS]:
        s.record[place, f.X_ARRIVAL] = t
        s.record[place, f.X_STATUS] = status
    return status != 0


@kernel_routine
def best_replica(s: State, row: int, i: int) -> int:
    """Replica for the request in slot i (NO_SLOT: for request `row` of the chunk), by the state of all."""
    slot, request = s.slot, s.request
    if i == f.NO_SLOT:
        most = pieces_to_reuse(s, request[row, f.Q_HASHES], request[row, f.Q_INPUT])
        return route(s, request[row, f.Q_INPUT], request[row, f.Q_LUCK], request[row, f.Q_HASH_AT], most)
    most = pieces_to_reuse(s, slot[i, f.S_HASHES], slot[i, f.S_INPUT])
    return route(s, slot[i, f.S_INPUT], slot[i, f.S_LUCK], slot[i, f.S_HASH_AT], most)


@kernel_routine
def machine_event(s: State, verb: int, r: int, t: int, speed: float) -> None:
    """Apply a verb of the machine (`V_`) at t, all replicas being settled to t."""
    if verb == f.V_LOSE:
        lose_replica(s, r, t)
    elif verb == f.V_DETECT:
        detect_loss(s, r, t)
    elif verb == f.V_UP:
        return_replica(s, r, t)
    elif verb == f.V_SPEED:
        change_speed(s, r, t, speed)
    elif verb == f.V_CLOSE:
        close_at_horizon(s, t)


@kernel_routine
def run_events(s: State, until: int) -> int:
    """Advance all replicas to `until`: arrivals, clients and what the replicas do, in order of time.

    Return as `run_kernel` does.
    """
    slot, common = s.slot, s.common
    replicas, router = common[f.C_REPLICAS], common[f.C_ROUTER]
    pools = common[f.C_PREFILLS] > 0
    by_state = router > f.ROUTE_ROUND_ROBIN or pools
    by_step = router == f.ROUTE_PREFIX_AFFINE or router == f.ROUTE_SLO_AWARE
    turns = common[f.C_TURNS] > 0
    while True:
        row, t, arrives = common[f.C_NEXT], until, False
        if row < s.request.shape[0]:
            arrives = s.request[row, f.Q_ARRIVAL] < until
            t = min(t, s.request[row, f.Q_ARRIVAL])
        elif not common[f.C_LAST_CHUNK]:
            return f.NEED_REQUESTS
        i = next_client(s, t + int(arrives))
        if i != f.NO_SLOT:
            t, arrives = slot[i, f.S_EVENT], slot[i, f.S_STATE] == f.THINKING
            row = slot[i, f.S_ID] if arrives else row
        elif arrives and common[f.C_FREE_SLOTS] == 0:
            return f.NEED_ROOM
        routes = arrives or (i != f.NO_SLOT and slot[i, f.S_STATE] == f.AWAY)
        everyone = t == until or router == f.ROUTE_CENTRAL or pools or turns or (routes and by_state)
        chosen = slot[max(i, 0), f.S_ROW]
        follows = f.NO_SLOT
        if routes:
            follows = replica_of_sample(s, common[f.C_FIRST_ID] + row if arrives else slot[i, f.S_ID])
        if follows != f.NO_SLOT:
            chosen = follows
        elif routes and not by_state:
            chosen = choose_replica(s, s.request[row, f.Q_LUCK] if arrives else slot[i, f.S_LUCK], 0, 0)
        settle(s, 0 if everyone else chosen, replicas if everyone else chosen + 1, t)
        if common[f.C_WORK] <= 0:
            return f.AGAIN
        if turns and is_overtaken(s, i, t, arrives):
            continue
        if t == until or (routes and by_step):
            for each in range(replicas):
                look(s, each, t)
        if t == until:
            return f.DONE
        common[f.C_WORK] -= 1
        if routes and by_state and follows == f.NO_SLOT:
            chosen = best_replica(s, row, f.NO_SLOT if arrives else i)
        if routes and common[f.C_MAX_TTFT] < f.FOREVER and not by_step:
            look(s, chosen, t)
        if i != f.NO_SLOT and slot[i, f.S_STATE] == f.MOVING:
            look(s, slot[i, f.S_ROW], t)  # steps until now have had its blocks beside theirs
        if arrives:
            if i == f.NO_SLOT:
                i = take_slot(s)
                pass_row(s)
            else:
                forget_client(s, i)
            arrive(s, i, row, t)
            if turn_away(s, row, t):
                end_turn(s, i, t)
                i = f.NO_SLOT
        elif next_client(s, t + 1) != i or not client_acts(s, i, t):
            i = f.NO_SLOT
        if i != f.NO_SLOT:
            send(s, chosen, i, t)


@compiled_kernel
def run_kernel(s: State, verb: int, r: int, until: int, speed: float) -> int:
    """The one entry of the kernel: a verb of the machine, or V_RUN: advance all replicas to `until`.

    Return DONE, or what is needed before the next call. AGAIN: the work of this call (`C_WORK`) is used up.
    NEED_REQUESTS: the chunk is used up. NEED_ROOM: no slot is free. One entry means one compilation of everything and
    one file in the cache.
    """
    state = pinned(s)
    if verb != f.V_RUN:
        machine_event(state, verb, r, until, speed)
        return f.DONE
    return run_events(state, until)
