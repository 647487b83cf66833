"""What the token kernel books at each commit: the ledger's counters, histograms, occupancy.

Everything that depends on a run of k passes is a closed form of k counted from the segment's anchor, rounded once; what
is booked is the difference to what was booked before. So a macro step, single steps and a look book the same integers.
"""

from __future__ import annotations

import math

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.fields import State
from workloads.serving.logbins import bin_low, bin_of
from workloads.serving.queues import blocked_until


@kernel_part
def elapsed_ns(k: int, base: float, slope: float) -> int:
    """End of step k of a segment, from its anchor: round(k base + slope k (k - 1) / 2)."""
    return int(k * base + slope * (k * (k - 1) // 2) + 0.5)


@kernel_part
def last_step_by(after_ns: int, low: int, high: int, base: float, slope: float) -> int:
    """Greatest k in [low, high] whose end is at most `after_ns` from the anchor (low when there is none above it)."""
    half = base - 0.5 * slope
    guess = 2.0 * after_ns / (half + math.sqrt(half * half + 2.0 * slope * after_ns))
    k = high if guess >= high else max(low, int(guess))
    while k < high and elapsed_ns(k + 1, base, slope) <= after_ns:
        k += 1
    while k > low and elapsed_ns(k, base, slope) > after_ns:
        k -= 1
    return k


@kernel_part
def table_row(s: State, tokens: int) -> tuple[int, float]:
    """Row of the table of pass times at or below `tokens`, and the weight of the next row (above 1 beyond its end)."""
    dense = s.common[f.C_DENSE]
    if tokens <= dense:
        return tokens - 1, 0.0
    table = s.table
    low, high = dense - 1, s.common[f.C_GRID] - 1
    if low == high:
        low -= 1
    while high - low > 1:
        middle = (low + high) >> 1
        if table[middle, f.T_TOKENS] <= tokens:
            low = middle
        else:
            high = middle
    return low, (tokens - table[low, f.T_TOKENS]) / (table[low + 1, f.T_TOKENS] - table[low, f.T_TOKENS])


@kernel_part
def table_value(s: State, row: int, weight: float, column: int) -> float:
    """A pass time in ns between two rows of the table."""
    value: float = s.table[row, column]
    if weight > 0.0:
        value += weight * (s.table[row + 1, column] - value)
    return value


@kernel_part
def kv_ns(s: State, decodes: int) -> float:
    """Nanoseconds per context token that a step of `decodes` sequences reads: constant after the table's end."""
    value: float = s.table[min(decodes, s.common[f.C_KV_ROWS] - 1), f.T_KV]
    return value


@kernel_part
def kv_units(s: State, r: int, decodes: int) -> int:
    """The same as a whole number of units of 2^-`C_KV_SHIFT` ns, exactly."""
    return int(kv_ns(s, decodes) * s.pace[r, f.P_KV_UNITS])


@kernel_part
def tokens_read(s: State, r: int) -> int:
    """Tokens of context whose time the decodes of a pass of replica r read: theirs, and blocks copied, in and out."""
    tokens: int = s.replica[r, f.R_CONTEXT] + 2 * f.BLOCK_TOKENS * s.replica[r, f.R_COPIED]
    return tokens


@kernel_part
def clear_scratch(s: State) -> None:
    """No time in any category."""
    for column in range(f.LEDGER_SIZE):
        s.scratch[column] = 0


@kernel_part
def count_gaps(s: State, k1: int, k2: int, base: float, slope: float, weight: int) -> None:
    """Add the gaps of steps k1 + 1 to k2 of a segment, `weight` deliveries each: an arithmetic progression."""
    gaps = s.histogram
    k = k1 + 1
    last = bin_of(int(base + slope * (k2 - 1) + 0.5))
    while k <= k2:
        first = bin_of(int(base + slope * (k - 1) + 0.5))
        if first == last:
            gaps[f.H_ITL, first] += weight * (k2 - k + 1)
            return
        edge = bin_low(first + 1)
        end = min(k2, max(k, int((edge - base) / slope)))
        while int(base + slope * end + 0.5) < edge:
            end += 1
        while int(base + slope * (end - 1) + 0.5) >= edge:
            end -= 1
        gaps[f.H_ITL, first] += weight * (end - k + 1)
        k = end + 1


@kernel_part
def book_gauge(s: State, r: int, gauge: int, value: int) -> None:
    """A closed form of the present segment has grown to `value`: add what is new to a gauge of replica r."""
    replica = s.replica
    replica[r, f.R_GAUGE + gauge] += value - replica[r, f.R_BOOKED + gauge]
    replica[r, f.R_BOOKED + gauge] = value


@kernel_part
def book_total(s: State, r: int, place: int, name: int, value: int) -> None:
    """A closed form of the present segment has grown to `value`: add what is new to a total."""
    replica = s.replica
    s.common[name] += value - replica[r, f.R_BOOKED + place]
    replica[r, f.R_BOOKED + place] = value


@kernel_part
def book_decode(s: State, r: int, k: int, live: int) -> None:
    """Book the steps of the present segment of replica r up to step k (before its counters advance).

    Each delivers `live` tokens: padding delivers none.
    """
    replica, pace = s.replica, s.pace
    base, slope, healthy_slope = pace[r, f.P_BASE], pace[r, f.P_SLOPE], pace[r, f.P_HEALTHY_SLOPE]
    decodes, step = replica[r, f.R_DECODES], replica[r, f.R_STEP]
    pairs = float(k * (k - 1) // 2)
    duration = elapsed_ns(k, base, slope)
    healthy = elapsed_ns(k, pace[r, f.P_HEALTHY_BASE], healthy_slope)
    compute = int(k * pace[r, f.P_COMPUTE])
    weights = int(k * pace[r, f.P_WEIGHTS])
    collectives = int(k * pace[r, f.P_COLLECTIVES])
    kv = int(k * pace[r, f.P_KV] + healthy_slope * pairs)
    book_gauge(s, r, f.G_DECODE, compute)
    book_gauge(s, r, f.G_WEIGHTS, weights)
    book_gauge(s, r, f.G_COLLECTIVES, collectives)
    book_gauge(s, r, f.G_KV, kv)
    book_gauge(s, r, f.G_FIXED, healthy - compute - weights - collectives - kv)
    book_gauge(s, r, f.G_DEGRADED, duration - healthy)
    units = kv_units(s, r, decodes)
    m = k - step
    replica[r, f.R_GAUGE + f.G_OWN_1] += units * m
    age = replica[r, f.R_STEPS] - replica[r, f.R_ORIGIN]
    replica[r, f.R_GAUGE + f.G_OWN_2] += units * (m * age + m * (m - 1) // 2)
    book_total(s, r, f.TIME_GAUGES, f.N_BUSY, duration)
    book_total(s, r, f.TIME_GAUGES + 1, f.N_BATCH, int(decodes * duration * f.OCCUPANCY_NS))
    context = replica[r, f.R_CONTEXT] - decodes * step
    tokens = base * context * k + (context * slope + decodes * base) * pairs
    tokens += decodes * slope * pairs * (2 * k - 1) / 3.0
    book_total(s, r, f.TIME_GAUGES + 2, f.N_KV, int(tokens * f.OCCUPANCY_NS))
    count_gaps(s, step, k, base, slope, live)


@kernel_part
def decode_share_of_pass(s: State, r: int, healthy: int) -> None:
    """Split a pass that carries prompts, `healthy` ns long, into the gauges of its decodes (in `scratch`).

    What it takes beyond a step of theirs alone is interference. It may take less, where the layout of prompts is
    faster: then its time, reads of the cache aside, is split as that of their step is.
    """
    replica, scratch = s.replica, s.scratch
    decodes = replica[r, f.R_DECODES]
    row, weight = table_row(s, decodes)
    reads = kv_ns(s, decodes) * tokens_read(s, r)
    kv = int(reads)
    alone = int(table_value(s, row, weight, f.T_DECODE) + reads + 0.5)
    clear_scratch(s)
    scratch[f.G_KV] = kv
    part = 1.0
    if healthy < alone:
        part = (healthy - kv) / (alone - kv)
        alone = healthy
    scratch[f.G_DECODE] = int(part * table_value(s, row, weight, f.T_DECODE + 1))
    scratch[f.G_WEIGHTS] = int(part * table_value(s, row, weight, f.T_DECODE + 2))
    scratch[f.G_COLLECTIVES] = int(part * table_value(s, row, weight, f.T_DECODE + 3))
    scratch[f.G_FIXED] = alone - kv - scratch[f.G_DECODE] - scratch[f.G_WEIGHTS] - scratch[f.G_COLLECTIVES]
    scratch[f.G_INTERFERENCE] = healthy - alone


@kernel_part
def overlap_with_lost(s: State, i: int) -> int:
    """Tokens of the chunk of slot i in flight that had been computed before and were lost."""
    slot = s.slot
    ready = slot[i, f.S_READY]
    overlap: int = max(0, min(ready + slot[i, f.S_CHUNK], slot[i, f.S_REDO]) - ready)
    return overlap


@kernel_part
def prompt_share_of_pass(s: State, r: int, i: int, healthy: int) -> None:
    """Split a pass, `healthy` ns long, into the ledger of slot i, whose prompt it computes (in `scratch`).

    A sample that computes nothing waits for the one before it, which computes the prompt of both.
    """
    replica, slot, scratch = s.replica, s.slot, s.scratch
    clear_scratch(s)
    while slot[i, f.S_CHUNK] == 0:
        i = slot[i, f.S_PREVIOUS]
    if overlap_with_lost(s, i) > 0:
        scratch[f.L_RECOMPUTE] = healthy
        return
    ready, chunk, decodes = slot[i, f.S_READY], slot[i, f.S_CHUNK], replica[r, f.R_DECODES]
    pairs = chunk * ready + chunk * (chunk + 1) // 2
    tokens = decodes + replica[r, f.R_PROMPT_TOKENS]
    row, weight = table_row(s, tokens)
    compute = table_value(s, row, weight, f.T_PREFILL + 1)
    pair_ns, cached_ns = s.pace[r, f.P_PAIR], s.pace[r, f.P_CACHED]
    reads = kv_ns(s, decodes) * tokens_read(s, r)
    scratch[f.L_PREFILL] = int(compute * chunk / tokens + pair_ns * pairs)
    scratch[f.L_WEIGHTS] = int(table_value(s, row, weight, f.T_PREFILL + 2))
    scratch[f.L_COLLECTIVES] = int(table_value(s, row, weight, f.T_PREFILL + 3))
    scratch[f.L_OWN_KV] = int(cached_ns * ready)
    scratch[f.L_OTHERS_KV] = int(reads + cached_ns * (replica[r, f.R_CACHED] - ready))
    others = compute * (tokens - chunk) / tokens + pair_ns * (replica[r, f.R_PAIRS] - pairs)
    scratch[f.L_INTERFERENCE] = int(others)
    named = scratch[f.L_PREFILL] + scratch[f.L_WEIGHTS] + scratch[f.L_COLLECTIVES] + scratch[f.L_OWN_KV]
    scratch[f.L_FIXED] = healthy - named - scratch[f.L_OTHERS_KV] - scratch[f.L_INTERFERENCE]


@kernel_part
def book_mixed(s: State, r: int) -> None:
    """Book the pass with prompts that replica r has just ended, for its decodes and for the replica."""
    replica = s.replica
    duration = replica[r, f.R_END] - replica[r, f.R_ANCHOR]
    healthy = int(s.pace[r, f.P_HEALTHY_BASE] + 0.5)
    decodes = replica[r, f.R_DECODES]
    if decodes > 0:
        decode_share_of_pass(s, r, healthy)
        for gauge in range(f.TIME_GAUGES - 1):
            replica[r, f.R_GAUGE + gauge] += s.scratch[gauge]
        replica[r, f.R_GAUGE + f.G_DEGRADED] += duration - healthy - replica[r, f.R_EXTRA]
        units = kv_units(s, r, decodes)
        replica[r, f.R_GAUGE + f.G_OWN_1] += units
        replica[r, f.R_GAUGE + f.G_OWN_2] += units * (replica[r, f.R_STEPS] - replica[r, f.R_ORIGIN])
        s.histogram[f.H_ITL, bin_of(duration)] += decodes
    s.common[f.N_BUSY] += duration
    s.common[f.N_BATCH] += int(replica[r, f.R_RUNNING] * duration * f.OCCUPANCY_NS)
    held = replica[r, f.R_CONTEXT] + replica[r, f.R_CACHED]
    s.common[f.N_KV] += int(held * duration * f.OCCUPANCY_NS)


@kernel_part
def book_prompt(s: State, r: int, i: int) -> None:
    """Book the pass with prompts that replica r has just ended into the ledger of slot i, whose prompt it computed."""
    slot = s.slot
    duration = s.replica[r, f.R_END] - s.replica[r, f.R_ANCHOR]
    healthy = int(s.pace[r, f.P_HEALTHY_BASE] + 0.5)
    prompt_share_of_pass(s, r, i, healthy)
    for category in range(f.L_PREFILL, f.L_DEGRADED):
        slot[i, f.S_LEDGER + category] += s.scratch[category]
    slot[i, f.S_LEDGER + f.L_SWAP] += s.replica[r, f.R_EXTRA]
    slot[i, f.S_LEDGER + f.L_DEGRADED] += duration - healthy - s.replica[r, f.R_EXTRA]


@kernel_part
def join_gauges(s: State, r: int, i: int, kv_tokens: int) -> None:
    """Slot i, with `kv_tokens` in the cache, begins to decode on replica r: remember where its counters stand."""
    replica, slot = s.replica, s.slot
    for gauge in range(f.GAUGES):
        slot[i, f.S_GAUGE + gauge] = replica[r, f.R_GAUGE + gauge]
    slot[i, f.S_OWN_BASE] = kv_tokens - (replica[r, f.R_STEPS] - replica[r, f.R_ORIGIN])
    slot[i, f.S_OWN_SUM] = 0


@kernel_part
def leave_gauges(s: State, r: int, i: int) -> None:
    """Slot i ends decoding on replica r: add what the counters gained since it joined to its ledger."""
    replica, slot = s.replica, s.slot
    g, q, n = f.R_GAUGE, f.S_GAUGE, f.S_LEDGER
    ones = replica[r, g + f.G_OWN_1] - slot[i, q + f.G_OWN_1]
    own = slot[i, f.S_OWN_SUM] + slot[i, f.S_OWN_BASE] * ones + replica[r, g + f.G_OWN_2] - slot[i, q + f.G_OWN_2]
    reads = replica[r, g + f.G_KV] - slot[i, q + f.G_KV]
    own = min(own >> s.common[f.C_KV_SHIFT], reads)
    slot[i, n + f.L_OWN_KV] += own
    slot[i, n + f.L_OTHERS_KV] += reads - own
    slot[i, n + f.L_DECODE] += replica[r, g + f.G_DECODE] - slot[i, q + f.G_DECODE]
    slot[i, n + f.L_WEIGHTS] += replica[r, g + f.G_WEIGHTS] - slot[i, q + f.G_WEIGHTS]
    slot[i, n + f.L_COLLECTIVES] += replica[r, g + f.G_COLLECTIVES] - slot[i, q + f.G_COLLECTIVES]
    slot[i, n + f.L_FIXED] += replica[r, g + f.G_FIXED] - slot[i, q + f.G_FIXED]
    slot[i, n + f.L_INTERFERENCE] += replica[r, g + f.G_INTERFERENCE] - slot[i, q + f.G_INTERFERENCE]
    slot[i, n + f.L_DEGRADED] += replica[r, g + f.G_DEGRADED] - slot[i, q + f.G_DEGRADED]


@kernel_routine
def rebase_own_reads(s: State, r: int) -> None:
    """Count steps from now on, so that the sums for own KV reads stay small; every difference stays what it was."""
    replica, slot = s.replica, s.slot
    g, q = f.R_GAUGE, f.S_GAUGE
    age = replica[r, f.R_STEPS] - replica[r, f.R_ORIGIN]
    i = replica[r, f.R_HEAD]
    while i != f.NO_SLOT:
        if slot[i, f.S_STATE] == f.DECODE:
            ones = replica[r, g + f.G_OWN_1] - slot[i, q + f.G_OWN_1]
            twos = replica[r, g + f.G_OWN_2] - slot[i, q + f.G_OWN_2]
            slot[i, f.S_OWN_SUM] += slot[i, f.S_OWN_BASE] * ones + twos
            slot[i, f.S_OWN_BASE] += age
            slot[i, q + f.G_OWN_1] = replica[r, g + f.G_OWN_1]
            slot[i, q + f.G_OWN_2] = 0
        i = slot[i, f.S_NEXT]
    replica[r, g + f.G_OWN_2] = 0
    replica[r, f.R_ORIGIN] = replica[r, f.R_STEPS]


@kernel_part
def book_wait(s: State, r: int, i: int, t: int) -> None:
    """Slot i has waited at replica r until t (it may be dead, or the router's room: none is up): book it."""
    slot = s.slot
    wait = t - slot[i, f.S_SINCE]
    slot[i, f.S_SINCE] = t
    if s.replica[r, f.R_MODE] == f.DEAD:
        slot[i, f.S_LEDGER + (f.L_NO_REPLICA if r == s.common[f.C_REPLICAS] else f.L_DEAD)] += wait
    else:
        blocked = blocked_until(s, r, t) - slot[i, f.S_BLOCKED]
        slot[i, f.S_LEDGER + f.L_KV_BLOCKED] += blocked
        slot[i, f.S_LEDGER + f.L_QUEUE] += wait - blocked


@kernel_part
def measure_leaving(s: State, i: int, t: int, completed: bool) -> None:
    """Slot i leaves the system at t: histograms, in-time tokens, ledger."""
    slot, common = s.slot, s.common
    arrival, first, tokens = slot[i, f.S_ARRIVAL], slot[i, f.S_FIRST], slot[i, f.S_OUTPUT]
    if completed:
        s.histogram[f.H_END_TO_END, bin_of(t - arrival)] += 1
        in_time = first - arrival <= common[f.C_TTFT_LIMIT]
        if tokens >= 2:
            s.histogram[f.H_TPOT, bin_of((t - first) // (tokens - 1))] += 1
            in_time = in_time and (t - first + tokens - 2) // (tokens - 1) <= common[f.C_TPOT_LIMIT]  # no overflow
        if in_time:
            common[f.N_IN_TIME] += 1
            common[f.N_IN_TIME_TOKENS] += tokens
    elif first == f.NO_SLOT:
        common[f.N_CENSORED_TTFT] += 1
    common[f.N_TIME] += t - arrival
    for category in range(f.LEDGER_SIZE):
        common[f.N_LEDGER + category] += slot[i, f.S_LEDGER + category]
    if slot[i, f.S_CAUGHT]:
        common[f.N_CAUGHT] += 1
        common[f.N_CAUGHT_TIME] += t - arrival
        for category in range(f.LEDGER_SIZE):
            common[f.N_CAUGHT_LEDGER + category] += slot[i, f.S_LEDGER + category]
