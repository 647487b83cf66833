"""Prefixes that prompts share: a law of common beginnings, and how much an unlimited cache would find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workloads.requests import MAX_TOKENS, Requests

PIECE_TOKENS = 16
"""Tokens of a piece that a drawn prefix names: one block of the KV cache."""


@dataclass(frozen=True, kw_only=True)
class SharedPrefix:
    """Each prompt begins with one of `groups` texts of `tokens` tokens, as likely as any other (system prompts).

    A prompt shorter than that begins with as much of it as it holds.
    """

    groups: int
    tokens: int

    def __post_init__(self) -> None:
        """Refuse what shares nothing."""
        if self.groups < 1:
            raise ValueError(f"groups of {self.groups}: write a whole number of at least 1")
        if not PIECE_TOKENS <= self.tokens <= MAX_TOKENS // self.groups:
            raise ValueError(f"tokens of {self.tokens}: write a whole number of at least {PIECE_TOKENS} (one block)")

    def on(self, requests: Requests, u: NDArray[np.float64]) -> Requests:
        """The same requests with the numbers of their shared pieces; `u` (n,) uniforms choose the groups."""
        pieces = self.tokens // PIECE_TOKENS
        counts = np.minimum(requests.input_tokens // PIECE_TOKENS, pieces)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        group = np.minimum((u * self.groups).astype(np.int64), self.groups - 1)
        ids = np.repeat(group * pieces, counts) + within
        return replace(requests, hash_ids=ids, hash_offsets=offsets, hash_block_tokens=PIECE_TOKENS)


def with_shared_prefix(
    requests: Requests, law: SharedPrefix, uniforms: Callable[[str, int, int], NDArray[np.float64]], stream: str
) -> Requests:
    """The same requests with drawn prefixes: request i takes draw i of the stream, whatever else is drawn."""
    return law.on(requests, uniforms(f"{stream}.prefix", 0, requests.count))


def with_samples(requests: Requests, samples: int) -> Requests:
    """Each request asks for `samples` answers: so many requests at the same instant that share its prompt.

    With a cache that shares prefixes the prompt is computed once and its blocks are kept once, the partly filled last
    one until answers write to it (rules: `serving.samples`). Every prompt names all its whole blocks: those that it
    names already keep what they share, in pieces of one block; the others are its own. Numbers are new: give all
    requests of a service at once.
    """
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise ValueError(f"{samples!r} samples of a prompt: write a whole number of at least 1")
    places = np.repeat(np.arange(requests.count), samples)
    return replace(_in_blocks(requests).picked(places, requests.arrival_ns[places]), samples=samples)


def _in_blocks(requests: Requests) -> Requests:
    """The same requests with a number for each whole block of each prompt."""
    counts = requests.input_tokens // PIECE_TOKENS
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    ids = np.arange(offsets[-1], dtype=np.int64)
    if requests.hash_ids is not None and requests.hash_offsets is not None and requests.hash_block_tokens is not None:
        unit, rest = divmod(requests.hash_block_tokens, PIECE_TOKENS)
        if rest:
            raise ValueError(
                f"shared blocks of {requests.hash_block_tokens} tokens: write whole blocks of {PIECE_TOKENS}"
            )
        within = ids - np.repeat(offsets[:-1], counts)
        named = within < np.repeat(unit * np.diff(requests.hash_offsets), counts)
        pieces = np.repeat(requests.hash_offsets[:-1], counts) + within // unit
        numbers, dense = np.unique(requests.hash_ids, return_inverse=True)
        ids += unit * numbers.size
        ids[named] = unit * dense[pieces[named]] + within[named] % unit
    return replace(requests, hash_ids=ids, hash_offsets=offsets, hash_block_tokens=PIECE_TOKENS)


def reusable_pieces(requests: Requests) -> NDArray[np.int64]:
    """Leading pieces of each prompt (n,) that an unlimited cache would hold from the prompts before it.

    The last piece counts even where it is partial or holds the token that must be computed: this is what a trace
    shares, not what a replica reuses. Zeros where requests name no pieces.
    """
    found = np.zeros(requests.count, dtype=np.int64)
    if requests.hash_ids is None or requests.hash_offsets is None:
        return found
    numbers, offsets = requests.hash_ids.tolist(), requests.hash_offsets.tolist()
    seen: set[int] = set()
    for i in range(requests.count):
        own = numbers[offsets[i] : offsets[i + 1]]
        run = next((k for k, number in enumerate(own) if number not in seen), len(own))
        found[i] = run
        seen.update(own)
    return found
