"""Sessions of several turns: a user comes back, and the prompt then holds all that was said before.

Returns are open loop or closed. Open: the time to the next turn counts from the arrival of the turn before, answer
included; a slow service does not delay a return, so give a return time that leaves room for the answer. Closed: it is
the time that a user thinks once the answer has ended (or was given up, cancelled, refused), and the token kernel brings
the next turn. New sessions start at the same rate in both (a partly open system: Schroeder, Wierman and
Harchol-Balter, Open Versus Closed: A Cautionary Tale, NSDI 2006). What a turn adds, its answer and what it remembers
are drawn ahead: the history holds a whole answer even where it was cut short (assumption).

Draws: session s is number s of every stream, its turn j is block j of the streams of lengths and returns. So no law
shifts the draws of another, and more requests change none of the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from topology.units import PositiveSeconds
from workloads.arrivals import Uniforms
from workloads.prefixes import PIECE_TOKENS
from workloads.requests import LATEST_NS, MAX_TOKENS, Requests

Floats = NDArray[np.float64]
Tokens = NDArray[np.int64]
TURNS, RETURNS = "turns", "returns"
MOST_TURNS = 64
SAMPLE_SESSIONS = 4096
"""Sessions from which the lead is taken, whatever the number of requests."""
LATE_SHARE = 1e-3
"""Share of turns that come later after the start of their session than the lead; they are missing at the start."""
_BLOCK_BITS, _PLACE_BITS = 24, 6
MOST_SESSIONS = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """Users who come back: `input` is then what a turn adds, and the prompt begins with the history before it.

    `turns`: mean number of turns, geometric, cut at 64. `return_mean`, `return_cv`: lognormal time to the arrival of
    the next turn, `return_after` the arrival of the turn before (open loop) or the end of its answer (closed loop).
    `max_context`: where prompt and answer would hold more tokens, the history is forgotten. `system_prompt`:
    tokens at the start of every prompt, the same for all. Blocks of `block_tokens` of history and system prompt have
    prefix hashes, so that a cache can share them; a block that is not full is shared with nobody.
    """

    turns: float
    return_mean: PositiveSeconds
    return_cv: float = 1.0
    return_after: Literal["arrival", "answer"] = "arrival"
    max_context: int
    system_prompt: int = 0
    block_tokens: int = 512

    def __post_init__(self) -> None:
        """Refuse what is no number of turns, no time, no context."""
        if not 1 <= self.turns <= MOST_TURNS / 4:
            raise ValueError(f"turns of {self.turns:g}: write a mean number between 1 and {MOST_TURNS // 4}")
        if not 0 < self.return_mean <= 1e9:
            what = f"return_mean of {self.return_mean:g} s"
            raise ValueError(f"{what}: write a time above 0 and of at most 1e9 s, such as `2 min`")
        if not 0.01 <= self.return_cv <= 20:
            raise ValueError(f"return_cv of {self.return_cv:g}: write a number between 0.01 and 20")
        if self.return_after not in ("arrival", "answer"):
            raise ValueError(f"return_after of {self.return_after}: write arrival or answer")
        if not 1 <= self.max_context <= MAX_TOKENS:
            raise ValueError(f"max_context of {self.max_context}: write a number of tokens of at least 1")
        if not 0 <= self.system_prompt < self.max_context:
            raise ValueError(f"system_prompt of {self.system_prompt}: write tokens below max_context, at least 0")
        if self.block_tokens < PIECE_TOKENS or self.block_tokens % PIECE_TOKENS:
            raise ValueError(f"block_tokens of {self.block_tokens}: write a multiple of {PIECE_TOKENS}, such as 512")
        if self.max_context // self.block_tokens >= 1 << _BLOCK_BITS:
            fewer = f"fewer than 2^{_BLOCK_BITS} blocks of {self.block_tokens} tokens, or longer blocks"
            raise ValueError(f"max_context of {self.max_context}: write {fewer}")

    @property
    def mean_turns(self) -> float:
        """Mean number of turns after the cut at 64."""
        stay = 1 - 1 / self.turns
        return (1 - stay**MOST_TURNS) / (1 - stay)

    def numbers(self, u: Floats) -> Tokens:
        """Turns of each session, by inversion."""
        if self.turns == 1:
            return np.ones(u.shape, dtype=np.int64)
        more = np.floor(np.log1p(-u) / math.log1p(-1 / self.turns))
        return np.asarray(np.minimum(1 + more, MOST_TURNS).astype(np.int64))

    def return_times_s(self, u: Floats) -> Floats:
        """Times to the next turn, by inversion."""
        sigma = math.sqrt(math.log1p(self.return_cv**2))
        inside = np.clip(u, 2.0**-54, 1 - 2.0**-53)
        return np.asarray(self.return_mean * np.exp(sigma * ndtri(inside) - sigma**2 / 2))


@dataclass(frozen=True)
class _Turn:
    """One turn of the sessions that have it, `session` their numbers; arrays in that order."""

    session: NDArray[np.int64]
    start_s: Floats
    prompt: Tokens
    answer: Tokens
    history_from: Tokens


DrawLengths = Callable[[int, int], tuple[Tokens, Tokens]]
"""(block, count) -> what a turn adds and its answer, in tokens."""


def session_requests(
    sessions: Sessions,
    starts_s: Callable[[int], Floats],
    rate_per_s: float,
    count: int,
    lengths: DrawLengths,
    uniforms: Uniforms,
    stream: str,
) -> Requests:
    """`count` requests of sessions that start at `starts_s` (as many as are asked for, rising).

    `rate_per_s` is of requests. The window begins a lead after the first session, so that from its start users are in
    the midst of their sessions: all but a share of 0.001 of the turns are there. In a closed loop the first turn of a
    session in the window comes as if answers before it had taken no time.
    """
    sample = [times_s for _, times_s in _starts(sessions, np.zeros(SAMPLE_SESSIONS), uniforms, stream)]
    lead_s = float(np.quantile(np.concatenate(sample), 1 - LATE_SHARE))
    wanted = 64 + math.ceil(1.1 * (count + lead_s * rate_per_s) / sessions.mean_turns)
    while True:
        first_s = starts_s(wanted)
        turns = _turns(sessions, first_s, lengths, uniforms, stream)
        arrival_s = np.concatenate([turn.start_s for turn in turns])
        inside = (arrival_s >= lead_s) & (arrival_s <= first_s[-1])
        if int(np.count_nonzero(inside)) >= count:
            return _merged(sessions, turns, np.flatnonzero(inside), arrival_s - lead_s, count)
        wanted *= 2


def _starts(
    sessions: Sessions, first_s: Floats, uniforms: Uniforms, stream: str
) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """Turn by turn, all sessions at once: the numbers of those that have it, and when it arrives."""
    number = sessions.numbers(uniforms(f"{stream}.{TURNS}", 0, first_s.size))
    arrival_s = first_s.copy()
    for turn in range(int(number.max())):
        there = np.flatnonzero(number > turn)
        if turn > 0:
            drawn = uniforms(f"{stream}.{RETURNS}", turn, int(there[-1]) + 1)
            arrival_s[there] += sessions.return_times_s(drawn[there])
        yield there, arrival_s[there]


def _turns(sessions: Sessions, first_s: Floats, lengths: DrawLengths, uniforms: Uniforms, stream: str) -> list[_Turn]:
    """Turn by turn, all sessions at once: when it arrives, how long prompt and answer are."""
    history = np.full(first_s.size, sessions.system_prompt, dtype=np.int64)
    history_from = np.zeros(first_s.size, dtype=np.int64)
    turns: list[_Turn] = []
    for turn, (there, arrival_s) in enumerate(_starts(sessions, first_s, uniforms, stream)):
        added, answer = (values[there] for values in lengths(turn, int(there[-1]) + 1))
        forget = history[there] + added + answer - 1 > sessions.max_context
        history[there[forget]] = sessions.system_prompt
        history_from[there[forget]] = turn
        prompt = history[there] + added
        turns.append(_Turn(there, arrival_s, prompt, answer, history_from[there]))
        history[there] = prompt + answer
    return turns


def _merged(
    sessions: Sessions, turns: list[_Turn], inside: NDArray[np.int64], arrival_s: Floats, count: int
) -> Requests:
    """The first `count` turns of all sessions in order of arrival, with their hashes."""
    session, prompt, answer, history_from = (
        np.concatenate([getattr(turn, name) for turn in turns])
        for name in ("session", "prompt", "answer", "history_from")
    )
    order = inside[np.lexsort((session[inside], arrival_s[inside]))][:count]
    arrival_ns = np.rint(np.minimum(arrival_s[order] * 1e9, LATEST_NS)).astype(np.int64)
    blocks = prompt[order] // sessions.block_tokens
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(blocks)])
    block = np.arange(offsets[-1]) - np.repeat(offsets[:-1], blocks)
    owner = (((session[order] + 1) << _PLACE_BITS) + history_from[order]) << _BLOCK_BITS
    of_all = block < sessions.system_prompt // sessions.block_tokens
    ids = np.where(of_all, block, np.repeat(owner, blocks) + block)
    previous = _turns_before(session[order]) if sessions.return_after == "answer" else None
    return Requests(arrival_ns, prompt[order], answer[order], ids, offsets, sessions.block_tokens, previous)


def _turns_before(session: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each request the one of the same session before it, -1 for the first."""
    together = np.argsort(session, kind="stable")
    same = np.flatnonzero(np.diff(session[together]) == 0)
    previous = np.full(session.size, -1, dtype=np.int64)
    previous[together[same + 1]] = together[same]
    return previous
