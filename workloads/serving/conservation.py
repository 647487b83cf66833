"""What every run of a service conserves, checked when it ends: requests, time, tokens, blocks, bytes.

All are whole numbers that the kernel keeps in two ways, so they must be equal, on every path and to the last one:

- requests: each one offered ends in one way; answers and first tokens have their times in the histograms;
- time: the integral of the number of requests in the system is the sum of the times that they are in it (Little's law
  as an identity of the path), and the categories of the ledger add up to it;
- tokens: those delivered are those that requests have when they leave, and those of attempts that were given up;
- blocks: once the last request has left, all blocks of every cache are free, or hold a prefix that nobody refers to (a
  pass that the horizon cuts keeps its own);
- bytes: of the blocks and pieces that went to a host or a remote store no more come back, or lie there, than went.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workloads.serving import fields as f
from workloads.serving.fields import State
from workloads.serving.measures import ServiceMeasures

ENDS = ("completed", "unfinished", "refused", "rejected", "timed_out", "cancelled")
"""Offered requests end in one of these ways."""


class NotConservedError(RuntimeError):
    """A run has lost or invented something: a fault of the kernel, never of its input."""


def require_conserved(measures: ServiceMeasures, state: State, warmup: Mapping[str, int], *, cut: bool) -> None:
    """Raise NotConservedError, with all that does not add up, for a run that has ended.

    `warmup`: its counts before the measured window; `cut`: the horizon found requests in the system.
    """
    equal = [*_requests(measures), *_tokens(measures, warmup), *([] if cut else _blocks(state))]
    if state.common[f.C_MEASURES]:
        equal += [*_times(measures), *_histograms(measures)]
    wrong = [f"{what}: {one:,} and {other:,}" for what, one, other in equal if one != other]
    wrong += [f"{what}: {back:,} of {went:,}" for what, went, back in _moves(measures, state, warmup) if back > went]
    if wrong:
        raise NotConservedError("; ".join(wrong))


def _requests(measures: ServiceMeasures) -> Iterator[tuple[str, int, int]]:
    yield "requests offered, ended", measures.offered, sum(map(measures.count, ENDS))


def _tokens(measures: ServiceMeasures, warmup: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Of the whole run: requests that a warm-up leaves in the system have tokens already."""
    made, kept, given_up = (
        measures.count(name) + warmup[name] for name in ("tokens", "sent_tokens", "discarded_tokens")
    )
    yield "tokens delivered, kept", made, kept + given_up


def _times(measures: ServiceMeasures) -> Iterator[tuple[str, int, int]]:
    count = measures.count
    yield "ns in the system, of requests", count("in_system_ns"), count("time_ns") + count("carried_ns")
    yield "ns of requests, in the ledger", count("time_ns"), sum(measures.ledger_ns)
    yield "ns of those caught, in the ledger", count("caught_time_ns"), sum(measures.caught_ledger_ns)


def _histograms(measures: ServiceMeasures) -> Iterator[tuple[str, int, int]]:
    started = measures.requests_in_ledger - measures.count("censored_ttft")
    yield "first tokens, their times", started, int(measures.histograms[f.H_TTFT].sum())
    yield "answers, their times", measures.count("completed"), int(measures.histograms[f.H_END_TO_END].sum())


def _blocks(state: State) -> Iterator[tuple[str, int, int]]:
    for r in range(int(state.common[f.C_REPLICAS])):
        yield f"blocks of replica {r}, free", int(state.replica[r, f.R_BLOCKS]), int(state.replica[r, f.R_FREE])


def _moves(measures: ServiceMeasures, state: State, warmup: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """What there is, or went to a memory in the whole run, and what is free, came back, went on or lies there."""

    def whole(name: str) -> int:
        return measures.count(name) + warmup[name]

    def held(column: int) -> int:
        return int(state.replica[:, column].sum())

    for r in range(int(state.common[f.C_REPLICAS])):
        yield f"free blocks of replica {r}", int(state.replica[r, f.R_BLOCKS]), int(state.replica[r, f.R_FREE])
    yield "blocks at hosts", whole("swap_blocks_out"), whole("swap_blocks_in")
    on = whole("pieces_to_remote") if state.common[f.C_HOST_PIECES] else 0
    yield "pieces at hosts", whole("pieces_to_host"), whole("host_hits") + on + held(f.R_LOWER_HOST)
    yield "pieces at remote stores", whole("pieces_to_remote"), whole("remote_hits") + held(f.R_LOWER_REMOTE)
