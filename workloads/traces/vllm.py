"""Readers of what vLLM measured: the result file of its benchmark, and records of requests with two clocks.

The benchmark (`vllm bench serve --save-result --save-detailed`) writes one JSON object with a list per quantity:
`input_lens`, `output_lens`, `start_times`, `ttfts`, `itls`, `latencies`, `errors`, in seconds. Request records are one
JSON object per line: arrival on the clock of the day, stages on a clock that only ever rises.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from topology.errors import refuse
from workloads.file_text import FaultList, nanoseconds_of, read_log_text, shown_value
from workloads.traces.json_text import json_rows, parsed_json, whole_of
from workloads.traces.trace import NOT_MEASURED, Trace, TraceFormat, TraceRow, tokens_of, trace_of

S_NS = 1_000_000_000
VLLM_SOURCE = "https://docs.vllm.ai (vllm bench serve --save-result --save-detailed)"
RESULT_FIELDS = ("input_lens", "output_lens")
STAGES = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
RECORD_FIELDS = ("input_toks", "output_toks", "arrival_time", *STAGES)
RECORDS_SOURCE = "https://github.com/casys-kaist/LLMServingSim (bench/examples, MIT)"


def read_vllm_requests(path: str | Path) -> Trace:
    """Requests that vLLM served, with their measured times, counted from when the server queued them.

    Arrivals come from `arrival_time` alone: the clock of the stages has another origin. InputError names faults by
    line.
    """
    faults = FaultList(path)
    rows: list[TraceRow] = []
    for line, row in json_rows(path, read_log_text(path, RECORDS_SOURCE, "trace"), RECORD_FIELDS, faults):
        try:
            rows.append(_record(row))
        except ValueError as error:
            faults.add(line, str(error))
    return trace_of(path, TraceFormat.VLLM_REQUESTS, rows, faults)


def _record(row: dict[str, Any]) -> TraceRow:
    stages_ns = [nanoseconds_of(row[name], name, S_NS) for name in STAGES]
    for (before, start_ns), (after, end_ns) in pairwise(zip(STAGES, stages_ns, strict=True)):
        if end_ns < start_ns:
            raise ValueError(f"{after} of {row[after]} lies before {before} of {row[before]}")
    return TraceRow(
        arrival_ns=nanoseconds_of(row["arrival_time"], "arrival_time", S_NS),
        input_tokens=tokens_of(whole_of(row["input_toks"], "input_toks"), "input_toks", 1),
        output_tokens=tokens_of(whole_of(row["output_toks"], "output_toks"), "output_toks", 0),
        ttft_ns=stages_ns[2] - stages_ns[0],
        end_to_end_ns=stages_ns[3] - stages_ns[0],
    )


def read_vllm(path: str | Path) -> Trace:
    """Requests of a result file of vLLM's benchmark with what the client measured; those with an error have failed.

    Arrivals are `start_times`; without them (older versions) only a run at a rate of `inf` has known ones, all at
    once. InputError names lists and places in them that are wrong.
    """
    result = _result(path)
    faults = FaultList(path, "entries")
    lists = _lists(path, result)
    rows: list[TraceRow] = []
    for place in range(len(lists["input_lens"])):
        try:
            rows.append(_entry({name: values[place] for name, values in lists.items()}))
        except ValueError as error:
            faults.add(1, f"request {place}: {error}")  # the benchmark writes everything on one line
    return trace_of(path, TraceFormat.VLLM, rows, faults)


def _result(path: str | Path) -> dict[str, Any]:
    text = read_log_text(path, VLLM_SOURCE, "result").strip()
    try:
        result = parsed_json(text)
    except ValueError as error:
        several = text.count("\n") and all(line.startswith("{") for line in text.split("\n") if line.strip())
        what = "several results in one file" if several else str(error)
        raise refuse(f"{path}:1", what, "give one result of the benchmark, not appended to another") from None
    if not isinstance(result, dict):
        raise refuse(f"{path}:1", f"{shown_value(result)} is no result", "give the JSON object of one benchmark")
    missing = [name for name in RESULT_FIELDS if result.get(name) is None]
    if missing:
        advice = "run the benchmark with --save-detailed, so that it keeps every request"
        raise refuse(f"{path}:1", f"missing field {', '.join(missing)}", advice)
    return result


def _lists(path: str | Path, result: dict[str, Any]) -> dict[str, list[Any]]:
    """The lists that are there, each with one entry per request; arrivals always."""
    names = ("input_lens", "output_lens", "start_times", "ttfts", "itls", "latencies", "errors")
    lists: dict[str, list[Any]] = {name: result[name] for name in names if result.get(name) is not None}
    for name, values in lists.items():
        if not isinstance(values, list):
            raise refuse(f"{path}:1", f"{name} is no list", "give the file as the benchmark wrote it")
        if len(values) != len(lists["input_lens"]):
            what = f"{name} has {len(values)} entries, input_lens {len(lists['input_lens'])}"
            raise refuse(f"{path}:1", what, "give the file as the benchmark wrote it")
    if "start_times" not in lists:
        if result.get("request_rate") != "inf":
            what = "missing field start_times: when requests were sent is not known"
            raise refuse(f"{path}:1", what, "run a newer benchmark, or one with --request-rate inf")
        lists["start_times"] = [0] * len(lists["input_lens"])
    return lists


def _entry(entry: dict[str, Any]) -> TraceRow:
    failed = bool(entry.get("errors"))
    answer = tokens_of(whole_of(entry["output_lens"], "output_lens"), "output_lens", 0)
    ttft_ns = _duration_ns(entry, "ttfts")
    end_to_end_ns = _duration_ns(entry, "latencies")
    if end_to_end_ns == NOT_MEASURED and ttft_ns != NOT_MEASURED and isinstance(entry.get("itls"), list):
        end_to_end_ns = ttft_ns + sum(nanoseconds_of(gap, "itls", S_NS) for gap in entry["itls"])
    if not failed and NOT_MEASURED < end_to_end_ns < ttft_ns:
        raise ValueError(f"latencies of {entry['latencies']} is below ttfts of {entry['ttfts']}")
    return TraceRow(
        arrival_ns=nanoseconds_of(entry["start_times"], "start_times", S_NS),
        input_tokens=tokens_of(whole_of(entry["input_lens"], "input_lens"), "input_lens", 0 if failed else 1),
        output_tokens=0 if failed else answer,
        ttft_ns=ttft_ns,
        end_to_end_ns=end_to_end_ns,
    )


def _duration_ns(entry: dict[str, Any], name: str) -> int:
    if entry.get(name) is None:
        return NOT_MEASURED
    time_ns = nanoseconds_of(entry[name], name, S_NS)
    if time_ns < 0:
        raise ValueError(f"{name} of {entry[name]} is below zero")
    return time_ns
