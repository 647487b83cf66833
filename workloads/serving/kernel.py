"""The token kernel: many replicas of one service, every token of every request, exact and fast.

The rules are those of the serving page, sections 4 to 6. A replica is idle, at a boundary whose decision is still open,
in flight, or dead. In flight it is either in one pass that carries prompt tokens (`R_MIXED`) or in a segment: a run of
decode steps with a fixed running set, anchored at `R_ANCHOR`, of which `R_STEP` steps are committed and up to `R_PLAN`
no decision is due. A plan may be cut anywhere at no cost: at a boundary where nothing changes the segment goes
on from the same anchor. So every plan length gives the same run, down to the last bit.
"""

from __future__ import annotations

from topology.compilation import compiled_kernel, kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.blocks import blocks_of_next_step, most_blocks
from workloads.serving.booking import elapsed_ns, last_step_by
from workloads.serving.commits import commit_decode, commit_mixed
from workloads.serving.decisions import decide, plan_to
from workloads.serving.fields import State
from workloads.serving.losses import change_speed, close_at_horizon, detect_loss, lose_replica, return_replica
from workloads.serving.prefix import pieces_to_reuse, take_cached
from workloads.serving.queues import change_outstanding, choose_replica, enqueue_after
from workloads.serving.static_batches import commit_static


@kernel_routine
def settle(s: State, r: int, until: int) -> None:
    """Commit on replica r what ends at or before `until`, and decide at its boundaries before it."""
    replica = s.replica
    while True:
        if replica[r, f.R_MODE] == f.PASS:
            if replica[r, f.R_END] > until:
                return
            if s.common[f.C_STATIC]:
                commit_static(s, r)
            elif replica[r, f.R_MIXED]:
                commit_mixed(s, r)
            else:
                commit_decode(s, r, replica[r, f.R_PLAN])
        if replica[r, f.R_MODE] != f.BOUNDARY or replica[r, f.R_AT] >= until or s.common[f.C_WORK] <= 0:
            return
        decide(s, r)


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
def wake(s: State, r: int, t: int) -> None:
    """The queue of replica r has a new head at t: it is considered at the first boundary at or after t."""
    replica, pace = s.replica, s.pace
    if replica[r, f.R_MODE] == f.IDLE or (replica[r, f.R_MODE] == f.BOUNDARY and replica[r, f.R_AT] > t):
        replica[r, f.R_MODE] = f.BOUNDARY
        replica[r, f.R_AT] = t
    elif (
        replica[r, f.R_MODE] == f.PASS
        and not replica[r, f.R_MIXED]
        and replica[r, f.R_PLAN] > replica[r, f.R_STEP] + 1
        and replica[r, f.R_RUNNING] < s.common[f.C_MAX_BATCH]
    ):
        before = t - 1 - replica[r, f.R_ANCHOR]
        low, high = replica[r, f.R_STEP], replica[r, f.R_PLAN] - 1
        plan_to(s, r, 1 + last_step_by(before, low, high, pace[r, f.P_BASE], pace[r, f.P_SLOPE]))


@kernel_part
def arrive(s: State, r: int, row: int, t: int) -> None:
    """Request `row` of the chunk arrives at t and is routed to replica r (or to the router's room)."""
    replica, slot, common = s.replica, s.slot, s.common
    common[f.C_FREE_SLOTS] -= 1
    i = s.slot[common[f.C_FREE_SLOTS], f.S_FREE]
    whole = common[f.C_MEASURES] or common[f.C_RECORD_ROWS] > 0
    for column in range(f.S_FREE if whole else f.S_GAUGE):
        slot[i, column] = 0
    slot[i, f.S_ID] = common[f.C_FIRST_ID] + row
    slot[i, f.S_ARRIVAL] = slot[i, f.S_SINCE] = t
    slot[i, f.S_INPUT] = s.request[row, f.Q_INPUT]
    slot[i, f.S_OUTPUT] = s.request[row, f.Q_OUTPUT]
    slot[i, f.S_FIRST] = f.NO_SLOT
    slot[i, f.S_LUCK] = s.request[row, f.Q_LUCK]
    slot[i, f.S_CAUGHT] = replica[r, f.R_MODE] == f.DEAD
    slot[i, f.S_HASH_AT] = s.request[row, f.Q_HASH_AT]
    slot[i, f.S_HASHES] = s.request[row, f.Q_HASHES]
    if r < common[f.C_REPLICAS]:
        common[f.C_TURN] = r
    change_outstanding(s, r, t, 1)
    enqueue_after(s, r, i, replica[r, f.R_QUEUE_TAIL], t)
    if replica[r, f.R_QUEUE] == 1 or (common[f.C_STATIC] and replica[r, f.R_QUEUE] >= common[f.C_MAX_BATCH]):
        wake(s, r, t)


@kernel_part
def turn_away(s: State, row: int, t: int) -> bool:
    """Count request `row` of the chunk; True when it is a failed row, or needs more blocks than there are."""
    common = s.common
    prompt, output = s.request[row, f.Q_INPUT], s.request[row, f.Q_OUTPUT]
    status = 0
    if prompt < 1 or output < 1:
        status = f.FAILED_ROW
    elif most_blocks(s, prompt, output) > common[f.C_BLOCKS]:
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
        s.record[place, f.X_FIRST] = f.NO_SLOT
        s.record[place, f.X_FINISH] = f.NO_SLOT
        s.record[place, f.X_REPLICA] = f.NO_SLOT
        s.record[place, f.X_STATUS] = status
    return status != 0


@kernel_part
def run_until(s: State, until: int) -> int:
    """Advance all replicas to `until`, request by request; return DONE, or what is needed before the next call.

    AGAIN: the work of this call (`C_WORK`) is used up. NEED_REQUESTS: the chunk is used up. NEED_ROOM: no slot is free.
    """
    common = s.common
    replicas = common[f.C_REPLICAS]
    affine = common[f.C_ROUTER] == f.ROUTE_PREFIX_AFFINE
    every = affine or common[f.C_ROUTER] == f.ROUTE_LEAST_OUTSTANDING
    while True:
        row = common[f.C_NEXT]
        if row >= s.request.shape[0]:
            if not common[f.C_LAST_CHUNK]:
                return f.NEED_REQUESTS
            break
        t = s.request[row, f.Q_ARRIVAL]
        if t >= until:
            break
        if common[f.C_FREE_SLOTS] == 0:
            return f.NEED_ROOM
        if every:
            for r in range(replicas):
                settle(s, r, t)
                if affine:
                    look(s, r, t)
        most = pieces_to_reuse(s, s.request[row, f.Q_HASHES], s.request[row, f.Q_INPUT])
        chosen = choose_replica(s, s.request[row, f.Q_LUCK], s.request[row, f.Q_HASH_AT], most)
        settle(s, chosen, t)
        if common[f.C_WORK] <= 0:
            return f.AGAIN
        if not turn_away(s, row, t):
            arrive(s, chosen, row, t)
        common[f.C_NEXT] += 1
        common[f.C_WORK] -= 1
    for r in range(replicas):
        settle(s, r, until)
        if common[f.C_WORK] <= 0:
            return f.AGAIN
        look(s, r, until)
    return f.DONE


@compiled_kernel
def run_kernel(s: State, verb: int, r: int, t: int, speed: float) -> int:
    """The one entry of the kernel: apply a verb (`V_`) at t, all replicas being settled to t; return a status.

    One entry means one compilation of everything and one file in the cache.
    """
    if verb == f.V_RUN:
        return run_until(s, t)
    if verb == f.V_LOSE:
        lose_replica(s, r, t)
    elif verb == f.V_DETECT:
        detect_loss(s, r, t)
    elif verb == f.V_UP:
        return_replica(s, r, t)
    elif verb == f.V_SPEED:
        change_speed(s, r, speed)
    elif verb == f.V_CLOSE:
        close_at_horizon(s, t)
    return f.DONE
