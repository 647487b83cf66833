"""Prefix sharing inside the kernel: equal leading pieces of prompts are kept once per replica.

A piece is `C_HASH_TOKENS` tokens of a prompt, `C_UNIT` blocks, named by a number; equal numbers are equal tokens after
equal tokens. The rules:

- Only leading whole pieces are shared. A request refers to a leading run of its pieces, from its admission until it
  stops running; the rest of its blocks are its own.
- At admission the longest leading run in the replica's cache is reused and not computed; the last token of a prompt is
  always computed. A piece is in the cache from the start of the pass that computes its last token (those admitted to
  the same pass share it). Where the number is already there, the pass stores no more of this prompt: what it computes
  are blocks of the request's own.
- A piece to which nobody refers stays until its blocks are taken, the least recently left first; of one request the
  last piece is left first, of requests that end together the first to arrive leaves first. A loss clears the cache.
- free + held (somebody refers to them) + cached (nobody does) = all blocks. `R_FREE` is free + cached: what can be
  taken.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.fields import State
from workloads.serving.lists import link_newest, unlink
from workloads.serving.numbers import find_number, forget_number
from workloads.serving.tiers import clear_host_tier, fetch_run, find_lower, put_lower


@kernel_part
def find_bucket(s: State, r: int, number: int) -> int:
    """The bucket of replica r that holds a number, or the empty one where it would be put."""
    size = s.common[f.C_BUCKETS]
    return find_number(s.bucket, r * size, size, number)


@kernel_part
def keep_no_more(s: State, r: int, e: int) -> None:
    """Entry e leaves the list of pieces of replica r to which nobody refers."""
    unlink(s.entry, e, s.replica, r, f.R_OLDEST, f.R_NEWEST)
    s.replica[r, f.R_KEPT] -= 1


@kernel_part
def keep(s: State, r: int, e: int) -> None:
    """Nobody refers to entry e any more: it is the most recently left of replica r."""
    link_newest(s.entry, e, s.replica, r, f.R_OLDEST, f.R_NEWEST)
    s.replica[r, f.R_KEPT] += 1


@kernel_routine
def clear_cache(s: State, r: int) -> None:
    """Replica r holds no piece."""
    entry, replica, entries = s.entry, s.replica, s.common[f.C_ENTRIES]
    for place in range(r * s.common[f.C_BUCKETS], (r + 1) * s.common[f.C_BUCKETS]):
        s.bucket[place, f.HASH_ENTRY] = f.NO_SLOT
    for e in range(r * entries, (r + 1) * entries):
        entry[e, f.E_NEWER] = e + 1
    entry[(r + 1) * entries - 1, f.E_NEWER] = f.NO_SLOT
    replica[r, f.R_SPARE] = r * entries
    if s.common[f.C_LOWER_BUCKETS] > 0:
        clear_host_tier(s, r)
    replica[r, f.R_KEPT] = 0
    replica[r, f.R_OLDEST] = replica[r, f.R_NEWEST] = f.NO_SLOT


@kernel_routine
def take_cached(s: State, r: int, reserved: int) -> None:
    """Take cached pieces, least recently left first, until `reserved` more blocks of replica r are free."""
    replica, entry, unit, size = s.replica, s.entry, s.common[f.C_UNIT], s.common[f.C_BUCKETS]
    while replica[r, f.R_KEPT] * unit > replica[r, f.R_FREE] - reserved:
        e = replica[r, f.R_OLDEST]
        keep_no_more(s, r, e)
        forget_number(s.bucket, r * size, size, entry[e, f.E_ID])
        if s.common[f.C_LOWER_BUCKETS] > 0:
            put_lower(s, r, entry[e, f.E_ID])
        entry[e, f.E_NEWER] = replica[r, f.R_SPARE]
        replica[r, f.R_SPARE] = e
        s.common[f.N_TAKEN] += 1


@kernel_routine
def find_run(s: State, r: int, at: int, most: int) -> int:
    """How many leading pieces, of the `most` whose numbers begin at `at`, replica r has; their entries are noted.

    The entry of a piece that lies below the cache is noted as NO_SLOT.
    """
    hashes, bucket = s.hashes, s.bucket
    run = 0
    while run < most:
        e = bucket[find_bucket(s, r, hashes[at + run, f.HASH_ID]), f.HASH_ENTRY]
        if e == f.NO_SLOT and (
            s.common[f.C_LOWER_BUCKETS] == 0 or find_lower(s, r, hashes[at + run, f.HASH_ID]) == f.NO_SLOT
        ):
            break
        hashes[at + run, f.HASH_ENTRY] = e
        run += 1
    return run


@kernel_part
def pieces_to_reuse(s: State, hashes: int, target: int) -> int:
    """Most of the `hashes` leading pieces that a prefill of `target` tokens may find: the last token is computed."""
    if s.common[f.C_UNIT] == 0:
        return 0
    most: int = min(hashes, (target - 1) // s.common[f.C_HASH_TOKENS])
    return most


@kernel_routine
def held_of_run(s: State, at: int, run: int) -> int:
    """Of a noted run, the pieces to which somebody refers."""
    held = 0
    for place in range(at, at + run):
        e = s.hashes[place, f.HASH_ENTRY]
        held += e != f.NO_SLOT and s.entry[e, f.E_REFERENCES] > 0
    return held


@kernel_routine
def refer_to_run(s: State, r: int, i: int, run: int, most: int) -> None:
    """Slot i is admitted to replica r and reuses a noted run, out of `most` pieces that it looked for."""
    entry, at = s.entry, s.slot[i, f.S_HASH_AT]
    for place in range(at, at + run):
        e = s.hashes[place, f.HASH_ENTRY]
        if e == f.NO_SLOT:
            continue
        if entry[e, f.E_REFERENCES] == 0:
            keep_no_more(s, r, e)
            s.replica[r, f.R_FREE] -= s.common[f.C_UNIT]
        entry[e, f.E_REFERENCES] += 1
    if s.common[f.C_LOWER_BUCKETS] > 0:
        fetch_run(s, r, i, run)
    s.slot[i, f.S_SHARED] = run
    s.common[f.N_LOOKED] += most
    s.common[f.N_HITS] += run
    s.common[f.N_HIT_TOKENS] += run * s.common[f.C_HASH_TOKENS]


@kernel_part
def put_entry(s: State, r: int, place: int, b: int) -> None:
    """The piece whose number stands at `place` has blocks of replica r from now on; b is its empty bucket."""
    replica, entry, hashes = s.replica, s.entry, s.hashes
    e = replica[r, f.R_SPARE]
    replica[r, f.R_SPARE] = entry[e, f.E_NEWER]
    s.bucket[b, f.HASH_ID], s.bucket[b, f.HASH_ENTRY] = hashes[place, f.HASH_ID], e
    entry[e, f.E_ID], entry[e, f.E_REFERENCES] = hashes[place, f.HASH_ID], 1
    hashes[place, f.HASH_ENTRY] = e


@kernel_routine
def store_pieces(s: State, r: int, i: int, computed: int) -> None:
    """Slot i has `computed` tokens of its prompt at the end of the pass that begins: its whole pieces can be found."""
    slot = s.slot
    whole = min(slot[i, f.S_HASHES], computed // s.common[f.C_HASH_TOKENS])
    for place in range(slot[i, f.S_HASH_AT] + slot[i, f.S_SHARED], slot[i, f.S_HASH_AT] + whole):
        b = find_bucket(s, r, s.hashes[place, f.HASH_ID])
        if s.bucket[b, f.HASH_ENTRY] != f.NO_SLOT:
            return
        put_entry(s, r, place, b)
        slot[i, f.S_SHARED] += 1
        s.common[f.N_STORED] += 1


@kernel_routine
def store_run(s: State, r: int, i: int, run: int) -> None:
    """What slot i, just admitted to replica r, reads from below has blocks of the cache, which are free by now."""
    hashes = s.hashes
    for place in range(s.slot[i, f.S_HASH_AT], s.slot[i, f.S_HASH_AT] + run):
        if hashes[place, f.HASH_ENTRY] == f.NO_SLOT:
            b = find_bucket(s, r, hashes[place, f.HASH_ID])
            e = s.bucket[b, f.HASH_ENTRY]
            if e == f.NO_SLOT:
                put_entry(s, r, place, b)
            else:
                s.entry[e, f.E_REFERENCES] += 1
                hashes[place, f.HASH_ENTRY] = e


@kernel_routine
def leave_run(s: State, r: int, i: int) -> None:
    """Slot i stops running on replica r: it refers to its pieces no more (blocks of its own aside)."""
    entry, at = s.entry, s.slot[i, f.S_HASH_AT]
    for place in range(at + s.slot[i, f.S_SHARED] - 1, at - 1, -1):
        e = s.hashes[place, f.HASH_ENTRY]
        entry[e, f.E_REFERENCES] -= 1
        if entry[e, f.E_REFERENCES] == 0:
            keep(s, r, e)
            s.replica[r, f.R_FREE] += s.common[f.C_UNIT]
    s.slot[i, f.S_SHARED] = 0
