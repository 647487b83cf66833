"""Arrays behind prefix sharing: caches of the replicas, and the numbers of the pieces of prompts in the system."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workloads.serving import fields as f
from workloads.serving.fields import State
from workloads.serving.preemption import Tiers


def new_cache(setting: NDArray[np.int64], replica: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entries and buckets of empty caches (`setting` holds `C_UNIT`); the replicas' lists are set to empty.

    A cache has an entry for each piece that the blocks can hold, and four times the buckets at most (half of them or
    more stay empty).
    """
    replicas, unit = int(setting[f.C_REPLICAS]), int(setting[f.C_UNIT])
    replica[:, [f.R_OLDEST, f.R_NEWEST, f.R_SPARE]] = f.NO_SLOT
    if unit == 0:
        return np.zeros((0, 4), dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
    setting[f.C_ENTRIES] = entries = max(1, int(setting[f.C_BLOCKS]) // unit)
    setting[f.C_BUCKETS] = buckets_for(entries)
    replica[:replicas, f.R_SPARE] = np.arange(replicas) * entries
    return _all_spare(replicas, entries)


def buckets_for(entries: int) -> int:
    """Buckets of a hash table of so many entries: a power of two, of which half or more stay empty."""
    return 1 << (2 * entries - 1).bit_length()


def _all_spare(replicas: int, entries: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """As many entries for each replica, chained as spare from its first one on, and empty buckets."""
    entry = np.zeros((replicas * entries, 4), dtype=np.int64)
    entry[:, f.E_NEWER] = np.arange(1, replicas * entries + 1)
    entry[entries - 1 :: entries, f.E_NEWER] = f.NO_SLOT
    return entry, np.full((replicas * buckets_for(entries), 2), f.NO_SLOT, dtype=np.int64)


def new_tiers(
    setting: NDArray[np.int64], replica: NDArray[np.int64], tiers: Tiers | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entries and buckets of the tiers below the cache, empty; of no length where there are none."""
    lists = [f.R_LOWER_OLDEST, f.R_LOWER_NEWEST, f.R_LOWER_EDGE, f.R_LOWER_SPARE]
    replica[:, lists] = f.NO_SLOT
    replicas, unit = int(setting[f.C_REPLICAS]), int(setting[f.C_UNIT])
    host, remote = (0, 0) if tiers is None or unit == 0 else (tiers.host_blocks // unit, tiers.remote_blocks // unit)
    if tiers is None or host + remote == 0:
        return np.zeros((0, 4), dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
    setting[f.C_HOST_PIECES], setting[f.C_REMOTE_PIECES] = host, remote
    entries = host + remote + 1  # one more than they may hold: a piece comes before another is pushed out
    setting[f.C_LOWER_BUCKETS] = buckets_for(entries)
    replica[:replicas, f.R_LOWER_SPARE] = np.arange(replicas) * entries
    return _all_spare(replicas, entries)


def hashes_of_next_chunk(state: State, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Numbers of the requests in the system, then `ids`, those of the next chunk, and where these begin.

    The slots of the requests in the system are told where theirs lie now.
    """
    slot, free = state.slot, int(state.common[f.C_FREE_SLOTS])
    live = np.ones(slot.shape[0], dtype=bool)
    live[slot[:free, f.S_FREE]] = False
    places = np.nonzero(live)[0]
    counts = slot[places, f.S_HASHES]
    ends = np.cumsum(counts)
    kept = int(ends[-1]) if ends.size else 0
    within = np.arange(kept) - np.repeat(ends - counts, counts)
    hashes = np.full((kept + ids.size, 2), f.NO_SLOT, dtype=np.int64)
    hashes[:kept] = state.hashes[np.repeat(slot[places, f.S_HASH_AT], counts) + within]
    hashes[kept:, f.HASH_ID] = ids
    slot[places, f.S_HASH_AT] = ends - counts
    return hashes, kept
