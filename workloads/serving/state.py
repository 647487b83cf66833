"""From a service's configuration to the kernel's arrays, and larger arrays when a queue outgrows them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workloads.kv_cache import Contiguous, Paged
from workloads.pass_costs import PassCosts
from workloads.serving import fields as f
from workloads.serving.batching import NO_LIMIT, Batching
from workloads.serving.fields import State
from workloads.serving.logbins import BINS
from workloads.serving.queues import SLOT_MASK
from workloads.serving.router import Router

FIRST_SLOTS = 1024
KV_UNIT_BITS = 22
FINE = float(1 << 20)
FINER = float(1 << 40)
RESERVES = {
    "max_model_len": f.RESERVE_MAX,
    "power_of_two": f.RESERVE_POWER_OF_TWO,
    "oracle": f.RESERVE_ORACLE,
}


def _nanoseconds(seconds: NDArray[np.float64], fine: float = FINE) -> NDArray[np.float64]:
    """Seconds as nanoseconds on a fine binary grid, so that whole nanoseconds are whole and sums are exact."""
    return np.rint(seconds * (1e9 * fine)) / fine


def pass_table_ns(costs: PassCosts) -> NDArray[np.float64]:
    """Times of passes in ns [grid, 10]: decode total, compute, weights, collectives, fixed; the same with prompts."""
    decode, prefill = _nanoseconds(costs.decode_parts_s), _nanoseconds(costs.prefill_parts_s)
    columns = [decode.sum(axis=1)[:, None], decode, prefill.sum(axis=1)[:, None], prefill]
    return np.ascontiguousarray(np.concatenate(columns, axis=1))


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
    kv: Paged | Contiguous,
    watermark: float,
    ttft_limit_ns: int,
    tpot_limit_ns: int,
    step_by_step: bool,
    measures: bool,
) -> State:
    """All replicas up, idle and empty at instant 0, and no request yet."""
    setting = np.zeros(f.SETTINGS, dtype=np.int64)
    setting[f.C_REPLICAS] = replicas
    setting[f.C_MAX_BATCH] = batching.max_batch if batching.max_batch is not None else NO_LIMIT
    setting[f.C_BUDGET] = batching.token_budget()
    setting[f.C_BLOCKS] = blocks
    setting[f.C_WATERMARK] = int(watermark * blocks)
    setting[f.C_PAGED] = isinstance(kv, Paged)
    if isinstance(kv, Contiguous):
        setting[f.C_RESERVE] = RESERVES[kv.reserve]
        setting[f.C_RESERVE_TOKENS] = kv.max_model_len
    setting[f.C_ROUTER] = router.code
    setting[f.C_STEP_BY_STEP] = step_by_step
    setting[f.C_MEASURES] = measures
    setting[f.C_TTFT_LIMIT] = ttft_limit_ns
    setting[f.C_TPOT_LIMIT] = tpot_limit_ns
    grid = np.ascontiguousarray(costs.grid_tokens, dtype=np.int64)
    setting[f.C_DENSE] = int(np.argmin(np.append(np.diff(grid), 2) == 1)) + 1
    setting[f.C_KV_SHIFT] = shift = kv_shift(costs)
    setting[f.C_TURN] = -1
    setting[f.C_FREE_SLOTS] = FIRST_SLOTS
    kv_units = np.rint(costs.kv_read_s_per_token * (1e9 * 2.0**shift)).astype(np.int64)
    prompt_s = np.array([costs.prefill_pair_s, costs.prefill_context_s_per_token])
    replica = np.zeros((replicas + 1, f.REPLICA_SIZE), dtype=np.int64)
    replica[:replicas, f.R_BELIEVED] = 1
    replica[:, f.R_FREE] = blocks
    replica[:, f.R_CHANGED] = 1
    replica[:, [f.R_HEAD, f.R_TAIL, f.R_QUEUE_HEAD, f.R_QUEUE_TAIL, f.R_FIRST_PREFILL]] = f.NO_SLOT
    replica[replicas, f.R_MODE] = f.DEAD
    pace = np.zeros((replicas + 1, f.PACE_SIZE))
    pace[:, [f.P_SPEED, f.P_NEXT_SPEED]] = 1.0
    empty = np.zeros(0, dtype=np.int64)
    return State(
        setting=setting,
        table=pass_table_ns(costs),
        grid=grid,
        kv_ns=kv_units / 2.0**shift,
        kv_units=kv_units,
        prompt_ns=_nanoseconds(prompt_s, FINER),
        replica=replica,
        pace=pace,
        phase=np.zeros((replicas + 1, f.BLOCK_TOKENS), dtype=np.int64),
        heap=np.zeros((replicas + 1, heap_size(setting, FIRST_SLOTS)), dtype=np.int64),
        slot=np.zeros((FIRST_SLOTS, f.SLOT_SIZE), dtype=np.int64),
        free_slot=np.arange(FIRST_SLOTS - 1, -1, -1, dtype=np.int64),
        total=np.zeros(f.TOTAL_SIZE, dtype=np.int64),
        histogram=np.zeros((4, BINS), dtype=np.int64),
        arrival_ns=empty,
        input_tokens=empty,
        output_tokens=empty,
        luck=empty,
        record=np.zeros((0, f.RECORD_SIZE), dtype=np.int64),
        scratch=np.zeros(f.LEDGER_SIZE, dtype=np.int64),
        sorted_slots=np.zeros(FIRST_SLOTS, dtype=np.int64),
    )


def heap_size(setting: NDArray[np.int64], slots: int) -> int:
    """Most sequences that can decode on one replica: by slots of the kernel, by the batch, by blocks."""
    return int(min(slots, setting[f.C_MAX_BATCH], setting[f.C_BLOCKS]))


def with_more_slots(state: State) -> State:
    """The same state with twice the slots; MemoryError beyond 16.7 million requests in the system at once."""
    old = state.slot.shape[0]
    slots = 2 * old
    if slots > SLOT_MASK + 1:
        raise MemoryError(f"more than {old} requests in the system at once: the service is far overloaded")
    slot = np.zeros((slots, f.SLOT_SIZE), dtype=np.int64)
    slot[:old] = state.slot
    free_slot = np.zeros(slots, dtype=np.int64)
    free = int(state.setting[f.C_FREE_SLOTS])
    free_slot[:old] = np.arange(slots - 1, old - 1, -1)
    free_slot[old : old + free] = state.free_slot[:free]
    state.setting[f.C_FREE_SLOTS] = old + free
    heap = np.zeros((state.heap.shape[0], heap_size(state.setting, slots)), dtype=np.int64)
    heap[:, : state.heap.shape[1]] = state.heap
    return state._replace(slot=slot, free_slot=free_slot, heap=heap, sorted_slots=np.zeros(slots, dtype=np.int64))
