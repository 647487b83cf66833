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

LOW_31 = (1 << 31) - 1
GOLDEN = 2_654_435_769
"""2^32 over the golden ratio: multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4)."""


@kernel_part
def home_of(s: State, r: int, number: int) -> int:
    """The bucket of replica r where the search for a number begins."""
    mask = s.common[f.C_BUCKETS] - 1
    folded = ((number & LOW_31) ^ (number >> 31)) & LOW_31
    home: int = r * s.common[f.C_BUCKETS] + ((folded * GOLDEN) >> 20 & mask)
    return home


@kernel_part
def find_bucket(s: State, r: int, number: int) -> int:
    """The bucket of replica r that holds a number, or the empty one where it would be put."""
    bucket, size = s.bucket, s.common[f.C_BUCKETS]
    end = (r + 1) * size
    place = home_of(s, r, number)
    while bucket[place, f.HASH_ENTRY] != f.NO_SLOT and bucket[place, f.HASH_ID] != number:
        place += 1
        if place == end:
            place -= size
    return place


@kernel_part
def forget_number(s: State, r: int, number: int) -> None:
    """Empty the bucket of a number, and move back those behind it that would not be found any more."""
    bucket, size = s.bucket, s.common[f.C_BUCKETS]
    first = r * size
    hole = find_bucket(s, r, number)
    place = hole
    while True:
        place = first + ((place - first + 1) & (size - 1))
        if bucket[place, f.HASH_ENTRY] == f.NO_SLOT:
            break
        home = home_of(s, r, bucket[place, f.HASH_ID])
        if (place - home) & (size - 1) >= (place - hole) & (size - 1):
            bucket[hole, f.HASH_ID] = bucket[place, f.HASH_ID]
            bucket[hole, f.HASH_ENTRY] = bucket[place, f.HASH_ENTRY]
            hole = place
    bucket[hole, f.HASH_ENTRY] = f.NO_SLOT


@kernel_part
def unlink(s: State, r: int, e: int) -> None:
    """Entry e leaves the list of pieces of replica r to which nobody refers."""
    entry, replica = s.entry, s.replica
    older, newer = entry[e, f.E_OLDER], entry[e, f.E_NEWER]
    if older == f.NO_SLOT:
        replica[r, f.R_OLDEST] = newer
    else:
        entry[older, f.E_NEWER] = newer
    if newer == f.NO_SLOT:
        replica[r, f.R_NEWEST] = older
    else:
        entry[newer, f.E_OLDER] = older
    replica[r, f.R_KEPT] -= 1


@kernel_part
def link_newest(s: State, r: int, e: int) -> None:
    """Nobody refers to entry e any more: it is the most recently left of replica r."""
    entry, replica = s.entry, s.replica
    newest = replica[r, f.R_NEWEST]
    entry[e, f.E_OLDER], entry[e, f.E_NEWER] = newest, f.NO_SLOT
    if newest == f.NO_SLOT:
        replica[r, f.R_OLDEST] = e
    else:
        entry[newest, f.E_NEWER] = e
    replica[r, f.R_NEWEST] = e
    replica[r, f.R_KEPT] += 1


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
    replica[r, f.R_KEPT] = 0
    replica[r, f.R_OLDEST] = replica[r, f.R_NEWEST] = f.NO_SLOT


@kernel_routine
def take_cached(s: State, r: int, reserved: int) -> None:
    """Take cached pieces, least recently left first, until `reserved` more blocks of replica r are free."""
    replica, entry, unit = s.replica, s.entry, s.common[f.C_UNIT]
    while replica[r, f.R_KEPT] * unit > replica[r, f.R_FREE] - reserved:
        e = replica[r, f.R_OLDEST]
        unlink(s, r, e)
        forget_number(s, r, entry[e, f.E_ID])
        entry[e, f.E_NEWER] = replica[r, f.R_SPARE]
        replica[r, f.R_SPARE] = e
        s.common[f.N_TAKEN] += 1


@kernel_routine
def find_run(s: State, r: int, at: int, most: int) -> int:
    """How many leading pieces, of the `most` whose numbers begin at `at`, replica r has; their entries are noted."""
    hashes, bucket = s.hashes, s.bucket
    run = 0
    while run < most:
        e = bucket[find_bucket(s, r, hashes[at + run, f.HASH_ID]), f.HASH_ENTRY]
        if e == f.NO_SLOT:
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
        held += s.entry[s.hashes[place, f.HASH_ENTRY], f.E_REFERENCES] > 0
    return held


@kernel_routine
def refer_to_run(s: State, r: int, i: int, run: int, most: int) -> None:
    """Slot i is admitted to replica r and reuses a noted run, out of `most` pieces that it looked for."""
    entry, at = s.entry, s.slot[i, f.S_HASH_AT]
    for place in range(at, at + run):
        e = s.hashes[place, f.HASH_ENTRY]
        if entry[e, f.E_REFERENCES] == 0:
            unlink(s, r, e)
            s.replica[r, f.R_FREE] -= s.common[f.C_UNIT]
        entry[e, f.E_REFERENCES] += 1
    s.slot[i, f.S_SHARED] = run
    s.common[f.N_LOOKED] += most
    s.common[f.N_HITS] += run
    s.common[f.N_HIT_TOKENS] += run * s.common[f.C_HASH_TOKENS]


@kernel_routine
def store_pieces(s: State, r: int, i: int, computed: int) -> None:
    """Slot i has `computed` tokens of its prompt at the end of the pass that begins: its whole pieces can be found."""
    slot, replica, entry, bucket, hashes = s.slot, s.replica, s.entry, s.bucket, s.hashes
    whole = min(slot[i, f.S_HASHES], computed // s.common[f.C_HASH_TOKENS])
    for place in range(slot[i, f.S_HASH_AT] + slot[i, f.S_SHARED], slot[i, f.S_HASH_AT] + whole):
        number = hashes[place, f.HASH_ID]
        b = find_bucket(s, r, number)
        if bucket[b, f.HASH_ENTRY] != f.NO_SLOT:
            return
        e = replica[r, f.R_SPARE]
        replica[r, f.R_SPARE] = entry[e, f.E_NEWER]
        bucket[b, f.HASH_ID], bucket[b, f.HASH_ENTRY] = number, e
        entry[e, f.E_ID], entry[e, f.E_REFERENCES] = number, 1
        hashes[place, f.HASH_ENTRY] = e
        slot[i, f.S_SHARED] += 1
        s.common[f.N_STORED] += 1


@kernel_routine
def leave_run(s: State, r: int, i: int) -> None:
    """Slot i stops running on replica r: it refers to its pieces no more (blocks of its own aside)."""
    entry, at = s.entry, s.slot[i, f.S_HASH_AT]
    for place in range(at + s.slot[i, f.S_SHARED] - 1, at - 1, -1):
        e = s.hashes[place, f.HASH_ENTRY]
        entry[e, f.E_REFERENCES] -= 1
        if entry[e, f.E_REFERENCES] == 0:
            link_newest(s, r, e)
            s.replica[r, f.R_FREE] += s.common[f.C_UNIT]
    s.slot[i, f.S_SHARED] = 0
