"""Reader of Mooncake's traces (JSON lines): arrivals in ms, lengths, and the blocks of prefixes that prompts share.

"Mooncake: Trading More Storage for Less Computation - A KVCache-centric Architecture for Serving LLM Chatbot", FAST
2025. `hash_ids` has one number per block of 512 prompt tokens, the last block possibly partial; equal leading numbers
are an equal prefix. Arrival times come in steps of some seconds, so many requests share one: they keep their order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workloads.file_text import FaultList, nanoseconds_of, read_log_text, shown_value
from workloads.traces.json_text import json_rows, whole_of
from workloads.traces.trace import Trace, TraceFormat, TraceRow, tokens_of, trace_of

MOONCAKE_BLOCK_TOKENS = 512
MOONCAKE_FIELDS = ("timestamp", "input_length", "output_length")
MOONCAKE_SOURCE = "https://github.com/kvcache-ai/Mooncake (FAST25-release/traces, Apache-2.0)"
MS_NS = 1_000_000
LARGEST_HASH = 2**62


def read_mooncake(path: str | Path) -> Trace:
    """The requests of a Mooncake trace with their prefixes; a file without `hash_ids` has none.

    An `output_length` of 0 is a failed request. InputError names by line what can not be a request.
    """
    faults = FaultList(path)
    rows: list[TraceRow] = []
    for line, row in json_rows(path, read_log_text(path, MOONCAKE_SOURCE, "trace"), MOONCAKE_FIELDS, faults):
        try:
            rows.append(_row(row))
        except ValueError as error:
            faults.add(line, str(error))
            continue
        if (rows[-1].hashes is None) is not (rows[0].hashes is None):
            faults.add(line, "some rows have hash_ids and some have none")
    return trace_of(path, TraceFormat.MOONCAKE, rows, faults, MOONCAKE_BLOCK_TOKENS)


def _row(row: dict[str, Any]) -> TraceRow:
    time_ns = nanoseconds_of(row["timestamp"], "timestamp", MS_NS)
    if time_ns < 0:
        raise ValueError(f"timestamp of {row['timestamp']} lies before the start")
    prompt = tokens_of(whole_of(row["input_length"], "input_length"), "input_length", 1)
    answer = tokens_of(whole_of(row["output_length"], "output_length"), "output_length", 0)
    hashes = None if row.get("hash_ids") is None else _hashes(row["hash_ids"], prompt)
    return TraceRow(arrival_ns=time_ns, input_tokens=prompt, output_tokens=answer, hashes=hashes)


def _hashes(value: Any, prompt: int) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError(f"hash_ids of {shown_value(value)} is no list")
    found = tuple(whole_of(each, "hash_ids") for each in value)
    if any(not 0 <= each < LARGEST_HASH for each in found):
        raise ValueError("hash_ids has a number below 0 or too large")
    if len(set(found)) < len(found):
        raise ValueError("hash_ids names a block twice, and a block holds all that is before it")
    blocks = -(-prompt // MOONCAKE_BLOCK_TOKENS)
    if len(found) > blocks:
        raise ValueError(f"{len(found)} hash_ids for a prompt of {prompt} tokens, which has {blocks} blocks")
    return found
