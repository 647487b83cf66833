"""Requests of a service: arrays of arrivals and lengths, and of the prefixes that prompts share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topology.errors import Fault, InputError, refuse

MAX_TOKENS = 2**40
"""Above any request: keeps sums of lengths far from the end of int64."""
LATEST_NS = 2**60
"""No request arrives later (36 years): the token kernel's clock ends at twice that."""
OPTIONAL = ("hash_ids", "hash_offsets", "previous")


@dataclass(frozen=True)
class Requests:
    """Requests in order of arrival: `arrival_ns` from the start of the window, lengths in tokens (int64).

    Arrivals do not fall (equal times keep their order); prompts and answers have at least one token.

    Where prompts share prefixes, request i names the blocks of its prompt, each of `hash_block_tokens` tokens, by the
    numbers `hash_ids[hash_offsets[i] : hash_offsets[i + 1]]`: equal leading numbers are equal leading tokens. The last
    block may be partial; blocks past the last number are shared with nobody. All three are None without prefixes.

    Where users come back (closed loop), `previous[i]` is the request of the same session before request i, -1 for the
    first. Request i then comes `arrival_ns[i] - arrival_ns[previous[i]]`, its think time, after that one has left the
    system, and not at all after `arrival_ns[-1]`; `arrival_ns` are the arrivals if answers took no time.

    `samples`: so many requests in a row are answers to one prompt, which comes once (see `prefixes.with_samples`).
    """

    arrival_ns: NDArray[np.int64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    hash_ids: NDArray[np.int64] | None = None
    hash_offsets: NDArray[np.int64] | None = None
    hash_block_tokens: int | None = None
    previous: NDArray[np.int64] | None = None
    samples: int = 1

    def __post_init__(self) -> None:
        """Check kinds of arrays, lengths, order, bounds, hashes; InputError names the first request that is wrong."""
        self._check_arrays()
        sizes = {self.arrival_ns.size, self.input_tokens.size, self.output_tokens.size}
        if len(sizes) != 1:
            raise InputError(Fault("requests", "arrivals and lengths differ in number", "give one of each per request"))
        early = np.diff(self.arrival_ns, prepend=self.arrival_ns[:1]) < 0
        checks = (
            (self.arrival_ns < 0, "arrives before the window starts", "count arrivals from the start"),
            (self.arrival_ns > LATEST_NS, "arrives later than in 36 years", "count nanoseconds from the start"),
            (early, "arrives before the one ahead of it", "sort by arrival"),
            (self.input_tokens < 1, "has an empty prompt", "leave it out"),
            (self.output_tokens < 1, "has an empty answer (a failed request)", "leave it out"),
            (
                self.input_tokens > MAX_TOKENS,
                "has a prompt of more than 2^40 tokens",
                "write one that a model can read",
            ),
            (self.output_tokens > MAX_TOKENS, "has an answer of more than 2^40 tokens", "write a shorter one"),
        )
        faults = [Fault(f"request {int(np.argmax(bad))}", what, write) for bad, what, write in checks if np.any(bad)]
        if faults:
            raise InputError(faults)
        self._check_hashes()
        self._check_previous()
        self._check_samples()

    def _check_arrays(self) -> None:
        """Anything but int64 would be cut to whole numbers, or compared as something else, on its way to the kernel."""
        for name in ("arrival_ns", "input_tokens", "output_tokens", "hash_ids", "hash_offsets", "previous"):
            column = getattr(self, name)
            if name in OPTIONAL and column is None:
                continue
            if not isinstance(column, np.ndarray) or column.dtype != np.int64 or column.ndim != 1:
                array = isinstance(column, np.ndarray)
                kind = f"{column.ndim}-dimensional array of {column.dtype}" if array else type(column).__name__
                write = "give one whole number per request, such as `np.array([0, 5], dtype=np.int64)`"
                raise refuse("requests", f"`{name}` is a {kind}, not an array of int64 of one dimension", write)
        for name, number in (("samples", self.samples), ("hash_block_tokens", self.hash_block_tokens)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int | np.integer)):
                raise refuse("requests", f"`{name}` is {number!r}, not a whole number", "write a whole number")

    def _check_samples(self) -> None:
        if self.samples == 1:
            return
        if self.samples < 1 or self.previous is not None:
            what = (
                f"{self.samples} samples of a prompt" if self.samples < 1 else "turns of sessions have several samples"
            )
            raise refuse("requests", what, "give at least 1, and sessions one")
        first = np.arange(self.count) // self.samples * self.samples
        other = np.zeros(self.count, dtype=np.bool_)
        for column in (self.arrival_ns, self.input_tokens):
            other |= column != column[first]
        if np.any(other):
            where = f"request {int(np.argmax(other))}"
            raise refuse(where, "is a sample of another prompt", "repeat arrival and prompt of the first sample")

    def _check_previous(self) -> None:
        if self.previous is None:
            return
        if self.previous.size != self.count:
            raise refuse("requests", "not every request says which one it follows", "give -1 for those that do not")
        follows = self.previous[self.previous >= 0]
        wrong = (self.previous < -1) | (self.previous >= np.arange(self.count))
        if np.any(wrong):
            where = f"request {int(np.argmax(wrong))}"
            raise refuse(where, "follows no request before it", "name an earlier one, or -1")
        numbers, times = np.unique(follows, return_counts=True)
        if np.any(times > 1):
            where = f"request {int(numbers[np.argmax(times > 1)])}"
            raise refuse(where, "is followed by two requests", "one turn of a session follows another")

    def _check_hashes(self) -> None:
        ids, offsets, block = self.hash_ids, self.hash_offsets, self.hash_block_tokens
        if ids is None or offsets is None or block is None:
            if not (ids is None and offsets is None and block is None):
                what = "prefix hashes come with their offsets and the tokens of a block"
                raise refuse("requests", what, "give all three or none")
            return
        if not 1 <= block <= MAX_TOKENS:
            raise refuse("requests", f"{block} tokens in a block of a prefix", "give at least 1, and at most 2^40")
        counts = np.diff(offsets)
        if offsets.size != self.count + 1 or offsets[0] != 0 or offsets[-1] != ids.size or np.any(counts < 0):
            what = "offsets of prefix hashes do not cut them into one piece per request"
            raise refuse("requests", what, "give the running sum of their numbers, from 0")
        many = counts > -(-self.input_tokens // block)
        if np.any(many):
            where = f"request {int(np.argmax(many))}"
            raise refuse(where, "has more prefix hashes than blocks of its prompt", "give one per block")
        if np.any(ids < 0):
            where = f"request {int(np.searchsorted(offsets, np.argmax(ids < 0), side='right')) - 1}"
            raise refuse(where, "has a prefix hash below 0", "number blocks from 0")

    @property
    def count(self) -> int:
        """Number of requests."""
        return int(self.arrival_ns.size)

    @property
    def rate_per_s(self) -> float:
        """Mean arrival rate: gaps over the time from the first to the last arrival (0 below two requests)."""
        if self.count < 2 or self.arrival_ns[-1] == self.arrival_ns[0]:
            return 0.0
        return (self.count - 1) / (float(self.arrival_ns[-1] - self.arrival_ns[0]) * 1e-9)

    def first(self, count: int) -> Requests:
        """The first `count` requests."""
        few = self.open_loop.picked(np.arange(min(count, self.count)), self.arrival_ns[:count])
        previous = None if self.previous is None else self.previous[:count]
        return replace(few, previous=previous, samples=self.samples)

    @property
    def open_loop(self) -> Requests:
        """The same requests, each at its arrival whatever becomes of the others."""
        return self if self.previous is None else replace(self, previous=None)

    def picked(self, places: NDArray[np.int64], arrival_ns: NDArray[np.int64]) -> Requests:
        """The requests at `places` (some perhaps often, some never), arriving at `arrival_ns`, each on its own."""
        if self.previous is not None:
            raise refuse("requests", "turns of sessions follow each other", "pick from those of an open loop")
        lengths = self.input_tokens[places], self.output_tokens[places]
        if self.hash_ids is None or self.hash_offsets is None:
            return Requests(arrival_ns, *lengths)
        starts = self.hash_offsets[places]
        counts = self.hash_offsets[places + 1] - starts
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        ids = self.hash_ids[np.repeat(starts, counts) + within]
        return Requests(arrival_ns, *lengths, ids, offsets, self.hash_block_tokens)

    def arriving(self, arrival_ns: NDArray[np.int64]) -> Requests:
        """The same requests at other times, one for each."""
        return replace(self, arrival_ns=arrival_ns)


def joined(parts: Sequence[Requests]) -> Requests:
    """One after the other, in one; prefix blocks are of one size or there are none in any part."""
    if len(parts) == 1:
        return parts[0]
    if any(part.previous is not None for part in parts):
        raise refuse("requests", "sessions come all at once", "give their requests in one part")
    samples = parts[0].samples if parts else 1
    if any(part.samples != samples for part in parts):
        raise refuse("requests", "some prompts have more samples than others", "give as many of each")
    columns = [
        np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(part, name) for part in parts)])
        for name in ("arrival_ns", "input_tokens", "output_tokens")
    ]
    ids = [part.hash_ids for part in parts if part.hash_ids is not None]
    if not ids:
        return Requests(columns[0], columns[1], columns[2], samples=samples)
    counts = np.concatenate([np.diff(part.hash_offsets) for part in parts if part.hash_offsets is not None])
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    pieces = np.concatenate(ids), offsets, parts[0].hash_block_tokens
    return Requests(columns[0], columns[1], columns[2], *pieces, samples=samples)
