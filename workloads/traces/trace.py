"""What every reader of a trace gives: requests in order of arrival, how many rows had failed, what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from workloads.file_text import FaultList, shown_value
from workloads.requests import LATEST_NS, MAX_TOKENS, Requests

NOT_MEASURED = -1
"""In place of a time that the file does not have."""


class TraceFormat(StrEnum):
    """The formats of traces that are read."""

    AZURE_2023 = "azure_2023"
    BURSTGPT = "burstgpt"
    MOONCAKE = "mooncake"
    VIDUR = "vidur"
    VLLM = "vllm"
    VLLM_REQUESTS = "vllm_requests"
    CSV = "csv"


@dataclass(frozen=True, kw_only=True)
class TraceRow:
    """One request as a file has it; an `output_tokens` of 0 is a request that failed. Times in ns, -1: not measured."""

    arrival_ns: int
    input_tokens: int
    output_tokens: int
    hashes: tuple[int, ...] | None = None
    ttft_ns: int = NOT_MEASURED
    end_to_end_ns: int = NOT_MEASURED


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a real server took for each request, in ns (int64; -1: not in the file)."""

    ttft_ns: NDArray[np.int64]
    end_to_end_ns: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Requests of a file, arrivals counted from the first one; `failed_rows` have no answer and are left out."""

    format: TraceFormat
    requests: Requests
    failed_rows: int
    measured: Measured | None


def trace_of(
    path: str | Path,
    form: TraceFormat,
    rows: Sequence[TraceRow],
    faults: FaultList,
    hash_block_tokens: int | None = None,
) -> Trace:
    """The trace of the rows of a file, sorted by arrival (equal times keep their order), failed ones left out.

    InputError with all `faults` of the file, or where nothing is left, or where the clock can not span the arrivals.
    """
    faults.raise_if_any()
    kept = [row for row in rows if row.output_tokens > 0]
    if not kept:
        what = f"no requests below the header, {len(rows)} failed" if rows else "no requests below the header"
        raise refuse(str(path), what, "give a file with at least one request that was answered")
    first_ns = min(row.arrival_ns for row in kept)
    span_ns = max(row.arrival_ns for row in kept) - first_ns
    if span_ns > LATEST_NS:
        years = span_ns / 1e9 / (365 * 86_400)
        raise refuse(str(path), f"first and last request lie {years:,.0f} years apart", "mend the times")
    columns = [
        (row.arrival_ns - first_ns, row.input_tokens, row.output_tokens, row.ttft_ns, row.end_to_end_ns) for row in kept
    ]
    values = np.array(columns, dtype=np.int64)
    order = np.argsort(values[:, 0], kind="stable")
    times_ns, prompts, answers, ttft_ns, end_to_end_ns = (values[order, place].copy() for place in range(5))
    measured = Measured(ttft_ns=ttft_ns, end_to_end_ns=end_to_end_ns)
    nothing = np.all(ttft_ns == NOT_MEASURED) and np.all(end_to_end_ns == NOT_MEASURED)
    hashes = [kept[place].hashes for place in order.tolist()]
    return Trace(
        format=form,
        requests=_with_hashes(Requests(times_ns, prompts, answers), hashes, hash_block_tokens),
        failed_rows=len(rows) - len(kept),
        measured=None if nothing else measured,
    )


def _with_hashes(
    requests: Requests, hashes: Sequence[tuple[int, ...] | None], hash_block_tokens: int | None
) -> Requests:
    if hash_block_tokens is None or all(each is None for each in hashes):
        return requests
    known = [each or () for each in hashes]
    ids = np.fromiter(chain.from_iterable(known), dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in known])]).astype(np.int64)
    lengths = requests.input_tokens, requests.output_tokens
    return Requests(requests.arrival_ns, *lengths, ids, offsets, hash_block_tokens)


def tokens_of(value: int, name: str, least: int) -> int:
    """A whole number of tokens within [`least`, the most that is counted]; ValueError says what is wrong."""
    if value == 0 and least > 0:
        raise ValueError(f"{name}: 0 tokens, an empty prompt or a failed request")
    if not least <= value <= MAX_TOKENS:
        raise ValueError(f"{name}: {shown_value(value)} tokens are out of range")
    return value
