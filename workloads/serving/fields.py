"""Layout of the token kernel's state: which column of which flat array means what.

Everything is int64 unless said otherwise; times are in nanoseconds and end in `_ns` or are called an instant. The
kernel reads these constants as `f.NAME`, so that compiled and plain Python runs share one layout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK_TOKENS = 16
"""Tokens of one block of the paged KV cache, the unit of allocation."""
NO_SLOT = -1
FOREVER = 1 << 61
"""An instant after every horizon."""

# Status of one call of the kernel.
DONE, AGAIN, NEED_REQUESTS, NEED_ROOM = range(4)

# Verbs of the kernel: run to an instant; what the machine does to a replica; close at the horizon.
V_RUN, V_LOSE, V_DETECT, V_UP, V_SPEED, V_CLOSE = range(6)

# Modes of a replica: nothing to do, at an undecided boundary, a pass or a run of passes in flight, dead.
IDLE, BOUNDARY, PASS, DEAD = range(4)

# States of a request; who is THINKING is between two turns of a session: the next request is not in the system yet.
WAITING, PREFILL, DECODE, LOST, AWAY, MOVING, THINKING = range(7)

# Categories of the waiting ledger of a request, in the order of the columns of a ledger.
LEDGER = (
    "no_replica_up",
    "undetected_dead_replica",
    "router_queue",
    "kv_blocked",
    "client_backoff",
    "prefill_compute",
    "decode_compute",
    "weights",
    "own_kv_reads",
    "others_kv_reads",
    "collectives",
    "fixed",
    "interference",
    "recompute",
    "swap",
    "degraded",
    "kv_transfer",
)
(
    L_NO_REPLICA,
    L_DEAD,
    L_QUEUE,
    L_KV_BLOCKED,
    L_BACKOFF,
    L_PREFILL,
    L_DECODE,
    L_WEIGHTS,
    L_OWN_KV,
    L_OTHERS_KV,
    L_COLLECTIVES,
    L_FIXED,
    L_INTERFERENCE,
    L_RECOMPUTE,
    L_SWAP,
    L_DEGRADED,
    L_TRANSFER,
) = range(len(LEDGER))
LEDGER_SIZE = len(LEDGER)

# Cumulative counters of a replica's decode time; a request takes a snapshot when it joins, the difference at its end.
G_DECODE, G_WEIGHTS, G_KV, G_COLLECTIVES, G_FIXED, G_INTERFERENCE, G_DEGRADED, G_OWN_1, G_OWN_2 = range(9)
GAUGES = 9
TIME_GAUGES = 7

# Settings.
(
    C_REPLICAS,
    C_MAX_BATCH,
    C_BUDGET,
    C_BLOCKS,
    C_WATERMARK,
    C_PAGED,
    C_RESERVE,
    C_RESERVE_TOKENS,
    C_ROUTER,
    C_STEP_BY_STEP,
    C_MEASURES,
    C_TTFT_LIMIT,
    C_TPOT_LIMIT,
    C_DENSE,
    C_KV_SHIFT,
    C_MEASURE_FROM,
    C_RECORD_FROM,
    C_RECORD_ROWS,
    C_NEXT,
    C_LAST_CHUNK,
    C_FIRST_ID,
    C_FREE_SLOTS,
    C_TURN,
    C_WORK,
    C_GRID,
    C_KV_ROWS,
    C_STATIC,
    C_BATCH_WAIT,
    C_UNIT,
    C_HASH_TOKENS,
    C_ENTRIES,
    C_BUCKETS,
    C_GUARD,
    C_CLIENTS,
    C_PATIENCE,
    C_UNTIL,
    C_ATTEMPTS,
    C_BACKOFF,
    C_JITTER,
    C_EVENTS,
    C_CLASSES,
    C_LIMITS,
    C_MAX_QUEUE,
    C_MAX_OUTSTANDING,
    C_MAX_TTFT,
    C_ROUTED,
    C_PREFILLS,
    C_DECODE_WATERMARK,
    C_ROOM,
    C_WASTE,
    C_HOST_BLOCKS,
    C_HOST_PIECES,
    C_REMOTE_PIECES,
    C_LOWER_BUCKETS,
    C_DRAFTS,
    C_TURNS,
    C_ARRIVED,
    C_SAMPLES,
    C_TAILS,
    C_SAMPLED,
    C_SAMPLED_TO,
) = range(61)
SETTINGS = 61
"""`C_UNIT`: blocks of one shared piece of a prefix (0: prefixes are not shared), of `C_HASH_TOKENS` tokens.
`C_HOST_BLOCKS`: of host memory by replica, for those that are evicted (0: they are computed again). `C_LOWER_BUCKETS`:
of the hash table of the tiers below the cache (0: there are none). `C_DRAFTS`: tokens that are drafted per pass.
`C_TURNS`: whether some requests come after others have left; `C_ARRIVED`: how many have come. `C_SAMPLES`: answers to
one prompt that share its blocks (1: none do); `C_TAILS`: tails that were shared so far; `C_SAMPLED`: the prompt that
was routed last, to row `C_SAMPLED_TO`."""

# Kinds of reserve of a contiguous cache, and of routers.
RESERVE_MAX, RESERVE_POWER_OF_TWO, RESERVE_ORACLE = range(3)
ROUTE_RANDOM, ROUTE_ROUND_ROBIN, ROUTE_LEAST_OUTSTANDING, ROUTE_PREFIX_AFFINE, ROUTE_CENTRAL, ROUTE_SLO_AWARE = range(6)
LUCK_BITS = 40
SEED_BITS = 53

# How long a client waits for its limit: until its request is admitted, or has a token, or its whole answer.
UNTIL_ADMISSION, UNTIL_FIRST_TOKEN, UNTIL_ANSWER = range(3)
CLASSES = 8
"""Most classes of priority, a limit of ours; 0 is the highest."""

# Columns of a replica (row `replicas` is the router's own waiting room, used while no replica is believed up).
(
    R_BELIEVED,
    R_MODE,
    R_AT,
    R_END,
    R_ANCHOR,
    R_STEP,
    R_PLAN,
    R_MIXED,
    R_CHANGED,
    R_DECODES,
    R_CONTEXT,
    R_FREE,
    R_RUNNING,
    R_HEAD,
    R_TAIL,
    R_QUEUE_HEAD,
    R_QUEUE_TAIL,
    R_QUEUE,
    R_QUEUE_SINCE,
    R_OUTSTANDING,
    R_STEPS,
    R_ORIGIN,
    R_BLOCKED,
    R_BLOCKED_SINCE,
    R_BLOCKED_SUM,
    R_FIRST_PREFILL,
    R_PROMPT_TOKENS,
    R_PAIRS,
    R_CACHED,
    R_AREA_AT,
    R_CURSOR,
    R_LIVE,
    R_KEPT,
    R_OLDEST,
    R_NEWEST,
    R_SPARE,
    R_QUEUE_TOKENS,
    R_BLOCKS,
    R_LINK,
    R_LINK_FROM,
    R_LINK_TAKEN,
    R_COMING_HEAD,
    R_COMING_TAIL,
    R_COMING,
    R_MOVING,
    R_FRESH,
    R_HOST,
    R_EXTRA,
    R_LOWER_OLDEST,
    R_LOWER_NEWEST,
    R_LOWER_EDGE,
    R_LOWER_SPARE,
    R_LOWER_HOST,
    R_LOWER_REMOTE,
    R_RESERVED,
    R_COPIES,
    R_COPIED,
    R_TAILS,
    R_CLASS_TAIL,
) = range(59)
R_GAUGE = R_CLASS_TAIL + CLASSES
R_BOOKED = R_GAUGE + GAUGES
"""What is booked of the present segment, by time gauge, then busy time, then batch and KV occupancy."""
BOOKED = TIME_GAUGES + 3
R_PHASE = R_BOOKED + BOOKED
"""Decoding sequences by (KV length - steps of the replica) modulo 16."""
R_HEAP = R_PHASE + BLOCK_TOKENS
"""From here on: binary heap of (last step of a decoding sequence << 24 | slot)."""

# Float columns of a replica's pace: nanoseconds of the present segment or pass.
(
    P_BASE,
    P_SLOPE,
    P_HEALTHY_BASE,
    P_HEALTHY_SLOPE,
    P_COMPUTE,
    P_WEIGHTS,
    P_COLLECTIVES,
    P_KV,
    P_SPEED,
    P_NEXT_SPEED,
    P_PAIR,
    P_CACHED,
    P_KV_UNITS,
    P_TRANSFER,
    P_LAST_LAYER,
    P_SWAP,
    P_HOST_PIECE,
    P_REMOTE_PIECE,
    P_ACCEPTED,
) = range(19)
PACE_SIZE = 19
"""The last nine are constant: ns per (prompt, context) token pair, per cached token read again, units per ns of KV; ns
per token moved to a decode replica, of all layers and of the last one; ns per block written to the host or read; ns
per shared piece read from the host, or from the remote store; the chance that a drafted token is accepted."""

# Columns of the table of pass times (float, ns): decode total and parts, prefill total and parts;
# the tokens of the row; and, by decoding sequences, ns per context token read.
T_DECODE, T_PREFILL, T_TOKENS, T_KV = 0, 5, 10, 11
TABLE_SIZE = 12

# Columns of the requests of a chunk: instant, lengths, a uniform in [0, 2^40) for the random router; where in `hashes`
# the numbers of its prompt begin, and how many there are; class of priority; when the user cancels, in ns after the
# arrival; the seed of its own draws. In sessions: the row of the next turn (0: none), and whether a turn comes before.
Q_ARRIVAL, Q_INPUT, Q_OUTPUT, Q_LUCK, Q_HASH_AT, Q_HASHES, Q_CLASS, Q_CANCEL, Q_SEED, Q_NEXT, Q_FOLLOWS = range(11)
REQUEST_SIZE = 11

# Columns of a slot (a request in the system): its number, its place in the order of arrivals, ...
(
    S_ID,
    S_ORDER,
    S_ARRIVAL,
    S_INPUT,
    S_OUTPUT,
    S_SENT,
    S_STATE,
    S_NEXT,
    S_PREVIOUS,
    S_TARGET,
    S_READY,
    S_CHUNK,
    S_END_STEP,
    S_BLOCKS,
    S_FIRST,
    S_LAST,
    S_REDO,
    S_SINCE,
    S_BLOCKED,
    S_CAUGHT,
    S_EVICTIONS,
    S_LUCK,
    S_OWN_BASE,
    S_OWN_SUM,
    S_PADDING,
    S_HASH_AT,
    S_HASHES,
    S_SHARED,
    S_ROW,
    S_CLASS,
    S_SEED,
    S_ATTEMPT,
    S_DEADLINE,
    S_CANCEL,
    S_EVENT,
    S_PLACE,
    S_LEAVING,
    S_SOURCE,
    S_SOURCE_BLOCKS,
    S_BEGAN,
    S_JOIN_AT,
    S_FRESH,
    S_JOINED,
    S_HOST,
    S_HOST_TOKENS,
    S_TAIL,
    S_GAUGE,
) = range(47)
S_LEDGER = S_GAUGE + GAUGES
S_FREE = S_LEDGER + LEDGER_SIZE
"""Not of the slot: a stack of free slots, and a work space for slots in order of arrival."""
S_SORTED = S_FREE + 1
S_EVENTS = S_SORTED + 1
"""Not of the slot either: the heap of slots whose clients will do something, by instant and order of arrival."""
SLOT_SIZE = S_EVENTS + 1

# Totals; they stand behind the settings in one array.
(
    N_OFFERED,
    N_OFFERED_TOKENS,
    N_FAILED_ROWS,
    N_REFUSED,
    N_COMPLETED,
    N_UNFINISHED,
    N_CENSORED_TTFT,
    N_IN_TIME,
    N_IN_TIME_TOKENS,
    N_TOKENS,
    N_PROMPT_TOKENS,
    N_RECOMPUTED,
    N_EVICTIONS,
    N_LOSSES,
    N_CAUGHT,
    N_TOKENS_LOST,
    N_STEPS,
    N_SEGMENTS,
    N_BUSY,
    N_BATCH,
    N_KV,
    N_MOST_DECODES,
    N_MOST_BLOCKS,
    N_AREA,
    N_TIME,
    N_CAUGHT_TIME,
    N_PADDED,
    N_LOOKED,
    N_HITS,
    N_HIT_TOKENS,
    N_STORED,
    N_TAKEN,
    N_REJECTED,
    N_TIMED_OUT,
    N_CANCELLED,
    N_ATTEMPTS,
    N_ATTEMPTS_REJECTED,
    N_ATTEMPTS_TIMED_OUT,
    N_DISCARDED,
    N_TRANSFERS,
    N_TRANSFER_TOKENS,
    N_TRANSFER_NS,
    N_HELD_STEPS,
    N_USED_STEPS,
    N_RESERVED_STEPS,
    N_EXTERNAL_STEPS,
    N_SWAPS_OUT,
    N_SWAPS_IN,
    N_BLOCKS_OUT,
    N_BLOCKS_IN,
    N_SWAP_NS,
    N_HOST_FULL,
    N_HOST_HITS,
    N_REMOTE_HITS,
    N_TO_HOST,
    N_TO_REMOTE,
    N_DROPPED,
    N_TIER_NS,
    N_DRAFTED,
    N_ACCEPTED,
    N_ANSWERED,
    N_SENT,
    N_CARRIED_TIME,
    N_JOINED,
    N_COPIES,
    N_LEDGER,
) = range(SETTINGS, SETTINGS + 66)
N_CAUGHT_LEDGER = N_LEDGER + LEDGER_SIZE
COMMON_SIZE = N_CAUGHT_LEDGER + LEDGER_SIZE
MAXIMA = (N_MOST_DECODES, N_MOST_BLOCKS)
"""Totals that merge by their greatest, not by their sum."""
OCCUPANCY_NS = 1e-6
"""Batch and KV occupancy are integrated in sequence- and token-milliseconds."""

# Histograms.
H_TTFT, H_TPOT, H_ITL, H_END_TO_END = range(4)

# Columns of the numbers of shared pieces (the number; the entry that holds it, while a request refers to it), of a
# bucket of the hash table (the number, the entry), and of an entry: its number, how many requests refer to it, its
# neighbours in the list of those that nobody refers to.
HASH_ID, HASH_ENTRY = range(2)
E_ID, E_REFERENCES, E_OLDER, E_NEWER = range(4)

# Columns of the record of a request; the ledger follows.
X_ARRIVAL, X_FIRST, X_FINISH, X_TOKENS, X_REPLICA, X_STATUS, X_CAUGHT, X_EVICTIONS, X_ATTEMPTS, X_LEDGER = range(10)
RECORD_SIZE = X_LEDGER + LEDGER_SIZE
COMPLETED, UNFINISHED, REFUSED, FAILED_ROW, REJECTED, TIMED_OUT, CANCELLED = range(1, 8)
"""Status of a recorded request; 0 is a request that has not left the system yet."""


class State(NamedTuple):
    """All that the kernel knows, as flat arrays (shapes in brackets)."""

    common: NDArray[np.int64]
    """Settings (`C_`), then totals (`N_`)."""
    replica: NDArray[np.int64]
    """[replicas + 1, `R_` and a heap of the decodes]."""
    pace: NDArray[np.float64]
    """[replicas + 1, `P_`]."""
    slot: NDArray[np.int64]
    """[slots, `S_`]."""
    table: NDArray[np.float64]
    """Pass times in ns [rows, `T_`]."""
    histogram: NDArray[np.int64]
    """[4 (`H_`), bins]."""
    request: NDArray[np.int64]
    """The present chunk of requests [requests, `Q_`]."""
    record: NDArray[np.int64]
    """[recorded requests, `X_` and ledger]."""
    hashes: NDArray[np.int64]
    """Numbers of the shared pieces of prompts in the system and in the chunk [numbers, `HASH_`]."""
    entry: NDArray[np.int64]
    """Pieces in the caches of the replicas, as many rows for each replica as it has room for [entries, `E_`]."""
    bucket: NDArray[np.int64]
    """Their hash tables, one after the other [replicas x buckets, `HASH_`]."""
    lower: NDArray[np.int64]
    """Pieces in the tiers below, as many rows for each replica [entries, `E_`; the tier in place of references]."""
    lower_bucket: NDArray[np.int64]
    """Their hash tables [replicas x buckets, `HASH_`]."""
    scratch: NDArray[np.int64]
    """[`LEDGER_SIZE`]: one pass of one request, or of the decodes, by category."""
