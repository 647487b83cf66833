"""From a service's configuration to the kernel's arrays, and larger arrays when a queue outgrows them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workloads.kv_cache import Contiguous, Paged, PrefixSharing
from workloads.pass_costs import PassCosts
from workloads.serving import fields as f
from workloads.serving.batching import NO_LIMIT, Batching, Disaggregated, StaticBatching
from workloads.serving.clients import Admission, Clients
from workloads.serving.drafts import Speculation
from workloads.serving.fields import State
from workloads.serving.logbins import BINS
from workloads.serving.preemption import Preemption, Swap, Tiers
from workloads.serving.prefix_state import new_cache, new_tiers
from workloads.serving.queues import SLOT_MASK
from workloads.serving.router import CentralQueue, PrefixAffine, Router

FIRST_SLOTS = 1024
KV_UNIT_BITS = 22
FINE = float(1 << 20)
FINER = float(1 << 40)
UNTIL = {"admission": f.UNTIL_ADMISSION, "first_token": f.UNTIL_FIRST_TOKEN, "answer": f.UNTIL_ANSWER}
RESERVES = {
    "max_model_len": f.RESERVE_MAX,
    "power_of_two": f.RESERVE_POWER_OF_TWO,
    "oracle": f.RESERVE_ORACLE,
}


def _nanoseconds(seconds: NDArray[np.float64], fine: float = FINE) -> NDArray[np.float64]:
    """Seconds as nanoseconds on a fine binary grid, so that whole nanoseconds are whole and sums are exact."""
    return np.rint(seconds * (1e9 * fine)) / fine


def limit_ns(limit_s: float | None) -> int:
    """A limit of time on the clock; none, or one beyond the clock's reach, is FOREVER."""
    return f.FOREVER if limit_s is None else round(min(limit_s * 1e9, float(f.FOREVER)))


def pass_table_ns(costs: PassCosts, shift: int) -> NDArray[np.float64]:
    """The kernel's table of pass times (columns `T_`), in ns; KV reads are whole multiples of 2^-`shift` ns."""
    grid, kv_s = costs.grid_tokens, costs.kv_read_s_per_token
    table = np.zeros((max(grid.size, kv_s.size), f.TABLE_SIZE))
    for column, parts_s in ((f.T_DECODE, costs.decode_parts_s), (f.T_PREFILL, costs.prefill_parts_s)):
        parts = _nanoseconds(parts_s)
        table[: grid.size, column] = parts.sum(axis=1)
        table[: grid.size, column + 1 : column + 5] = parts
    table[: grid.size, f.T_TOKENS] = grid
    table[: kv_s.size, f.T_KV] = np.rint(kv_s * (1e9 * 2.0**shift)) / 2.0**shift
    return table


def kv_shift(costs: PassCosts) -> int:
    """Bits behind the point in which nanoseconds per context token are kept: at most 22 bits in all for the largest."""
    largest_ns = float(costs.kv_read_s_per_token.max()) * 1e9
    if largest_ns == 0:
        return 0
    return max(0, min(50, KV_UNIT_BITS - int(np.ceil(np.log2(largest_ns)))))


def new_state(
    *,
    costs: PassCosts,
    blocks: int,
    replicas: int,
    batching: Batching,
    router: Router,
    kv: Paged | Contiguous | PrefixSharing,
    hash_tokens: int,
    samples: int,
    watermark: float,
    ttft_limit_ns: int,
    tpot_limit_ns: int,
    step_by_step: bool,
    measures: bool,
    clients: Clients,
    admission: Admission,
    priorities: tuple[float, ...],
    waste: bool,
    preemption: Preemption,
    tiers: Tiers | None,
    speculation: Speculation | None,
) -> State:
    """All replicas up, idle and empty at instant 0, and no request yet; `hash_tokens`: tokens of a shared piece.

    `samples`: answers of one prompt, one request after the other.
    """
    setting = np.zeros(f.COMMON_SIZE, dtype=np.int64)
    setting[f.C_REPLICAS] = replicas
    setting[f.C_MAX_BATCH] = batching.max_batch if batching.max_batch is not None else NO_LIMIT
    setting[f.C_BUDGET] = batching.token_budget()
    setting[f.C_BLOCKS] = blocks
    setting[f.C_WATERMARK] = int(watermark * blocks)
    set_cache(setting, batching, kv, hash_tokens)
    shares_tails = setting[f.C_UNIT] == 1 and not isinstance(batching, Disaggregated)
    setting[f.C_SAMPLES], setting[f.C_SAMPLED] = samples if shares_tails else 1, f.NO_SLOT
    setting[f.C_ROUTER] = router.code
    setting[f.C_ROUTED] = replicas
    setting[f.C_ROOM] = blocks
    if isinstance(router, PrefixAffine):
        setting[f.C_GUARD] = router.guard
    setting[f.C_STEP_BY_STEP] = step_by_step
    setting[f.C_MEASURES] = measures
    set_clients(setting, clients, admission)
    setting[f.C_CLASSES] = max(1, len(priorities))
    setting[f.C_WASTE] = waste
    if isinstance(preemption, Swap):
        setting[f.C_HOST_BLOCKS] = preemption.host_blocks
    setting[f.C_TTFT_LIMIT] = ttft_limit_ns
    setting[f.C_TPOT_LIMIT] = tpot_limit_ns
    setting[f.C_TURN] = -1
    setting[f.C_FREE_SLOTS] = FIRST_SLOTS
    grid = costs.grid_tokens
    setting[f.C_GRID] = grid.size
    setting[f.C_DENSE] = int(np.argmin(np.append(np.diff(grid), 2) == 1)) + 1
    setting[f.C_KV_ROWS] = costs.kv_read_s_per_token.size
    setting[f.C_KV_SHIFT] = shift = kv_shift(costs)
    decode_blocks = getattr(batching, "decode_blocks", None) or 0
    heap = heap_size(setting, FIRST_SLOTS, max(blocks, decode_blocks))
    replica = np.zeros((replicas + 1, f.R_HEAP + heap), dtype=np.int64)
    replica[:replicas, f.R_BELIEVED] = 1
    replica[:, f.R_FREE] = replica[:, f.R_BLOCKS] = blocks
    replica[:, [f.R_COMING_HEAD, f.R_COMING_TAIL, f.R_MOVING]] = f.NO_SLOT
    replica[:, f.R_CHANGED] = 1
    replica[:, [f.R_HEAD, f.R_TAIL, f.R_QUEUE_HEAD, f.R_QUEUE_TAIL, f.R_FIRST_PREFILL]] = f.NO_SLOT
    entry, bucket = new_cache(setting, replica)
    replica[:, f.R_CLASS_TAIL : f.R_CLASS_TAIL + f.CLASSES] = f.NO_SLOT
    replica[replicas, f.R_MODE] = f.IDLE if isinstance(router, CentralQueue) else f.DEAD
    pace = np.zeros((replicas + 1, f.PACE_SIZE))
    pace[:, [f.P_SPEED, f.P_NEXT_SPEED]] = 1.0
    prompt_s = np.array([costs.prefill_pair_s, costs.prefill_context_s_per_token])
    pace[:, [f.P_PAIR, f.P_CACHED]] = _nanoseconds(prompt_s, FINER)
    pace[:, f.P_KV_UNITS] = 2.0**shift
    if isinstance(preemption, Swap):
        pace[:, f.P_SWAP] = _nanoseconds(np.array(preemption.s_per_block), FINER)
    if speculation is not None:
        setting[f.C_DRAFTS], pace[:, f.P_ACCEPTED] = speculation.length, speculation.acceptance
    if tiers is not None:
        piece_s = int(setting[f.C_UNIT]) * np.array([tiers.host_s_per_block, tiers.remote_s_per_block])
        pace[:, [f.P_HOST_PIECE, f.P_REMOTE_PIECE]] = _nanoseconds(piece_s, FINER)
    lower, lower_bucket = new_tiers(setting, replica, tiers)
    if isinstance(batching, Disaggregated):
        set_pools(batching, setting, replica, pace, watermark)
    slot = np.zeros((FIRST_SLOTS, f.SLOT_SIZE), dtype=np.int64)
    slot[:, f.S_FREE] = np.arange(FIRST_SLOTS - 1, -1, -1)
    return State(
        common=setting,
        replica=replica,
        pace=pace,
        slot=slot,
        table=pass_table_ns(costs, shift),
        histogram=np.zeros((4, BINS), dtype=np.int64),
        request=np.zeros((0, f.REQUEST_SIZE), dtype=np.int64),
        record=np.zeros((0, f.RECORD_SIZE), dtype=np.int64),
        hashes=np.zeros((0, 2), dtype=np.int64),
        entry=entry,
        bucket=bucket,
        lower=lower,
        lower_bucket=lower_bucket,
        scratch=np.zeros(f.LEDGER_SIZE, dtype=np.int64),
    )


def set_cache(
    setting: NDArray[np.int64], batching: Batching, kv: Paged | Contiguous | PrefixSharing, hash_tokens: int
) -> None:
    """How blocks are given out; a static batch reserves all that its members need."""
    setting[f.C_PAGED] = not isinstance(kv, Contiguous)
    if isinstance(kv, PrefixSharing):
        setting[f.C_UNIT], setting[f.C_HASH_TOKENS] = hash_tokens // f.BLOCK_TOKENS, hash_tokens
    if isinstance(kv, Contiguous):
        setting[f.C_RESERVE] = RESERVES[kv.reserve]
        setting[f.C_RESERVE_TOKENS] = kv.max_model_len
    if isinstance(batching, StaticBatching):
        setting[f.C_STATIC] = 1
        setting[f.C_BATCH_WAIT] = round(batching.wait_s * 1e9)
        if isinstance(kv, Paged):
            setting[f.C_PAGED] = 0
            setting[f.C_RESERVE] = f.RESERVE_ORACLE


def set_clients(setting: NDArray[np.int64], clients: Clients, admission: Admission) -> None:
    """Patience, retries and limits of admission; FOREVER is no limit."""
    patience, retries = clients.patience, clients.retries
    setting[f.C_LIMITS] = admission != Admission()
    setting[f.C_CLIENTS] = clients != Clients() or admission != Admission()
    setting[f.C_PATIENCE] = f.FOREVER
    if patience is not None:
        setting[f.C_PATIENCE] = round(patience.limit_s * 1e9)
        setting[f.C_UNTIL] = UNTIL[patience.until]
    setting[f.C_ATTEMPTS] = retries.attempts
    setting[f.C_BACKOFF] = round(retries.backoff_s * 1e9)
    setting[f.C_JITTER] = round(retries.jitter * (1 << 32))
    for column, limit in ((f.C_MAX_QUEUE, admission.max_queue), (f.C_MAX_OUTSTANDING, admission.max_outstanding)):
        setting[column] = f.FOREVER if limit is None else limit
    longest_s = admission.max_predicted_ttft_s
    setting[f.C_MAX_TTFT] = f.FOREVER if longest_s is None else round(longest_s * 1e9)


def set_pools(
    batching: Disaggregated,
    setting: NDArray[np.int64],
    replica: NDArray[np.int64],
    pace: NDArray[np.float64],
    watermark: float,
) -> None:
    """Which replicas compute prompts and which decode, and what a transfer takes."""
    prefills = batching.prefill_replicas
    setting[f.C_PREFILLS] = setting[f.C_ROUTED] = prefills
    blocks = int(setting[f.C_BLOCKS]) if batching.decode_blocks is None else batching.decode_blocks
    setting[f.C_DECODE_WATERMARK] = int(watermark * blocks)
    setting[f.C_ROOM] = min(int(setting[f.C_BLOCKS]), blocks)
    replica[prefills:-1, [f.R_FREE, f.R_BLOCKS]] = blocks
    whole_s = batching.transfer_s_per_token
    pace[:, [f.P_TRANSFER, f.P_LAST_LAYER]] = _nanoseconds(np.array([whole_s, whole_s / batching.layers]), FINER)


def heap_size(setting: NDArray[np.int64], slots: int, blocks: int) -> int:
    """Most sequences that can decode on one replica: by slots of the kernel, by the batch, by blocks.

    Samples of a prompt may hold none but its blocks until they write.
    """
    return int(min(slots, setting[f.C_MAX_BATCH], blocks * int(setting[f.C_SAMPLES])))


def with_more_slots(state: State) -> State:
    """The same state with twice the slots; MemoryError beyond 16.7 million requests in the system at once."""
    old = state.slot.shape[0]
    slots = 2 * old
    if slots > SLOT_MASK + 1:
        raise MemoryError(f"more than {old} requests in the system at once: the service is far overloaded")
    slot = np.zeros((slots, f.SLOT_SIZE), dtype=np.int64)
    slot[:old] = state.slot
    free = int(state.common[f.C_FREE_SLOTS])
    slot[:old, f.S_FREE] = np.arange(slots - 1, old - 1, -1)
    slot[old : old + free, f.S_FREE] = state.slot[:free, f.S_FREE]
    state.common[f.C_FREE_SLOTS] = old + free
    replica = np.zeros(
        (state.replica.shape[0], f.R_HEAP + heap_size(state.common, slots, int(state.replica[:, f.R_BLOCKS].max()))),
        dtype=np.int64,
    )
    replica[:, : state.replica.shape[1]] = state.replica
    return state._replace(slot=slot, replica=replica)
