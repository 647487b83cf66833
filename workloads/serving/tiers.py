"""Tiers below the cache of a replica: shared pieces whose blocks are taken move to host memory, then to a remote store.

The rules:

- A piece that leaves HBM goes to the host; where that is full its least recently left piece goes to the remote store,
  and from there out of the system. Each replica has a host and a share of the remote store of its own (assumption:
  replicas do not read each other's). Writing is in the background: counted, without time (assumption).
- A leading run goes on in the tiers where the cache ends. What is found there is moved up at admission: it takes blocks
  as if it were computed, and its reading adds ns per piece, by tier, to the pass that begins (category `swap`; nothing
  is overlapped: an upper bound).
- A piece that is computed while a copy of it lies below leaves that copy where it is, until it is written over.
- A loss clears the host of the replica; its share of the remote store survives.

Both tiers of a replica are one list, the most recently left last; the host holds the newest, up to `R_LOWER_EDGE`.
"""

from __future__ import annotations

from topology.compilation import kernel_part, kernel_routine
from workloads.serving import fields as f
from workloads.serving.fields import State
from workloads.serving.lists import link_newest, unlink
from workloads.serving.numbers import find_number, forget_number

HOST, REMOTE = 1, 2


@kernel_part
def find_lower(s: State, r: int, number: int) -> int:
    """The entry of a number in the tiers of replica r; NO_SLOT where it is in none."""
    size = s.common[f.C_LOWER_BUCKETS]
    entry: int = s.lower_bucket[find_number(s.lower_bucket, r * size, size, number), f.HASH_ENTRY]
    return entry


@kernel_routine
def take_lower(s: State, r: int, e: int) -> int:
    """Entry e leaves the tiers of replica r; return the tier in which it was."""
    lower, replica, size = s.lower, s.replica, s.common[f.C_LOWER_BUCKETS]
    tier: int = lower[e, f.E_REFERENCES]
    unlink(lower, e, replica, r, f.R_LOWER_OLDEST, f.R_LOWER_NEWEST)
    if tier == HOST:
        replica[r, f.R_LOWER_HOST] -= 1
        if replica[r, f.R_LOWER_EDGE] == e:
            replica[r, f.R_LOWER_EDGE] = lower[e, f.E_NEWER]
    else:
        replica[r, f.R_LOWER_REMOTE] -= 1
    forget_number(s.lower_bucket, r * size, size, lower[e, f.E_ID])
    lower[e, f.E_NEWER] = replica[r, f.R_LOWER_SPARE]
    replica[r, f.R_LOWER_SPARE] = e
    return tier


@kernel_routine
def put_lower(s: State, r: int, number: int) -> None:
    """A piece leaves the cache of replica r: it is the most recently left of its host."""
    lower, replica, common = s.lower, s.replica, s.common
    e = find_lower(s, r, number)
    if e != f.NO_SLOT:
        take_lower(s, r, e)
    e = replica[r, f.R_LOWER_SPARE]
    replica[r, f.R_LOWER_SPARE] = lower[e, f.E_NEWER]
    lower[e, f.E_ID], lower[e, f.E_REFERENCES] = number, HOST
    link_newest(lower, e, replica, r, f.R_LOWER_OLDEST, f.R_LOWER_NEWEST)
    if replica[r, f.R_LOWER_HOST] == 0:
        replica[r, f.R_LOWER_EDGE] = e
    size = common[f.C_LOWER_BUCKETS]
    place = find_number(s.lower_bucket, r * size, size, number)
    s.lower_bucket[place, f.HASH_ID], s.lower_bucket[place, f.HASH_ENTRY] = number, e
    replica[r, f.R_LOWER_HOST] += 1
    common[f.N_TO_HOST] += common[f.C_HOST_PIECES] > 0
    if replica[r, f.R_LOWER_HOST] > common[f.C_HOST_PIECES]:
        push_down(s, r)


@kernel_part
def push_down(s: State, r: int) -> None:
    """The host of replica r is over-full: its least recently left piece goes to the remote store, or is dropped."""
    replica, common = s.replica, s.common
    edge = replica[r, f.R_LOWER_EDGE]
    s.lower[edge, f.E_REFERENCES] = REMOTE
    replica[r, f.R_LOWER_EDGE] = s.lower[edge, f.E_NEWER]
    replica[r, f.R_LOWER_HOST] -= 1
    replica[r, f.R_LOWER_REMOTE] += 1
    if replica[r, f.R_LOWER_REMOTE] > common[f.C_REMOTE_PIECES]:
        take_lower(s, r, replica[r, f.R_LOWER_OLDEST])
        common[f.N_DROPPED] += 1
    if common[f.C_REMOTE_PIECES] > 0:
        common[f.N_TO_REMOTE] += 1


@kernel_routine
def clear_host_tier(s: State, r: int) -> None:
    """The host of replica r holds no piece."""
    while s.replica[r, f.R_LOWER_HOST] > 0:
        take_lower(s, r, s.replica[r, f.R_LOWER_NEWEST])


@kernel_routine
def fetch_run(s: State, r: int, i: int, run: int) -> None:
    """Slot i is admitted to replica r with a noted `run`: what lies below leaves the tiers, and is read in the pass."""
    hashes, replica, common = s.hashes, s.replica, s.common
    host = remote = 0
    for place in range(s.slot[i, f.S_HASH_AT], s.slot[i, f.S_HASH_AT] + run):
        if hashes[place, f.HASH_ENTRY] == f.NO_SLOT:
            e = find_lower(s, r, hashes[place, f.HASH_ID])
            if e != f.NO_SLOT:
                replica[r, f.R_FREE] -= common[f.C_UNIT]
                if take_lower(s, r, e) == HOST:
                    host += 1
                else:
                    remote += 1
    if host + remote > 0:
        extra = max(1, int(host * s.pace[r, f.P_HOST_PIECE] + remote * s.pace[r, f.P_REMOTE_PIECE] + 0.5))
        replica[r, f.R_EXTRA] += extra
        common[f.N_TIER_NS] += extra
        common[f.N_HOST_HITS] += host
        common[f.N_REMOTE_HITS] += remote
