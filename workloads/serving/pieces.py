"""Requests as the kernel reads them: rows of numbers, a bounded piece at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workloads.requests import Requests
from workloads.serving import fields as f


class Piece(NamedTuple):
    """Some requests in order of arrival."""

    rows: NDArray[np.int64]
    """[requests, `Q_`]."""
    hashes: NDArray[np.int64]
    """Numbers of the shared pieces of their prompts, one request after the other; empty where nothing is shared."""


def piece_tokens(requests: Requests) -> int:
    """Tokens of one shared piece of a prompt; ValueError where requests name none, or not in whole blocks."""
    tokens = requests.hash_block_tokens
    if tokens is None:
        raise ValueError("prefix_sharing needs requests that name the blocks of their prompts: none of these does")
    if tokens % f.BLOCK_TOKENS:
        raise ValueError(f"shared blocks of {tokens} tokens: they must be whole blocks of {f.BLOCK_TOKENS}")
    return tokens


def in_pieces(requests: Iterable[Requests], hash_tokens: int, most: int) -> Iterator[Piece]:
    """Pieces of at most `most` requests, one empty piece first; `hash_tokens`: of a shared piece (0: none is shared).

    Only whole pieces of a prompt count; ValueError where parts differ in the tokens of a piece or in the samples of a
    prompt, which no part and no piece cuts. Requests of sessions are one piece, however many.
    """
    nothing = np.zeros(0, dtype=np.int64)
    yield Piece(np.zeros((0, f.REQUEST_SIZE), dtype=np.int64), nothing)
    samples, count = None, 0
    for part in requests:
        samples = part.samples if samples is None else samples
        if part.samples != samples or count % samples:
            raise ValueError("all requests of a service must have as many samples of each prompt, in the same part")
        count += part.count
        if hash_tokens and piece_tokens(part) != hash_tokens:
            raise ValueError("all requests of a service must name blocks of the same size")
        longest = most if part.previous is None else max(part.count, 1)  # turns of sessions stay at hand
        longest = max(samples, longest - longest % samples)
        for start in range(0, part.count, longest):
            stop = min(start + longest, part.count)
            rows = np.zeros((stop - start, f.REQUEST_SIZE), dtype=np.int64)
            rows[:, f.Q_ARRIVAL] = part.arrival_ns[start:stop]
            rows[:, f.Q_INPUT] = part.input_tokens[start:stop]
            rows[:, f.Q_OUTPUT] = part.output_tokens[start:stop]
            hashes = nothing
            if part.previous is not None:
                later = np.flatnonzero(part.previous >= 0)
                rows[later, f.Q_FOLLOWS] = 1
                rows[part.previous[later], f.Q_NEXT] = later
            if hash_tokens and part.hash_ids is not None and part.hash_offsets is not None:
                offsets = part.hash_offsets[start : stop + 1]
                hashes = part.hash_ids[offsets[0] : offsets[-1]]
                rows[:, f.Q_HASH_AT] = offsets[:-1] - offsets[0]
                rows[:, f.Q_HASHES] = np.minimum(np.diff(offsets), rows[:, f.Q_INPUT] // hash_tokens)
            yield Piece(rows, hashes)
