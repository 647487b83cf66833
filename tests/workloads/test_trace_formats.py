"""Readers of traces in all formats: check values of real files, quirks, guesses, and faults named by file and line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.shared_data import shared_file
from topology.errors import InputError
from workloads.traces.reading import cached_trace, format_of, read_trace
from workloads.traces.trace import Trace, TraceFormat

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"
BURST_3 = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "19440110.0,1722ac82,43,GPT-4,906,446,1352,Conversation log\n"
)
VIDUR = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n"
OWN = "arrival_s,input_tokens,output_tokens,ttft_s,end_to_end_s\n0,10,5,0.25,1.5\n"
MOONCAKE_ROW = {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}
RECORD = {
    "request_id": "bench-0", "input_toks": 2358, "output_toks": 531, "arrival_time": 1787267980.0827403,
    "queued_ts": 27536.660701067, "scheduled_ts": 27536.660721646, "first_token_ts": 27537.350135653,
    "last_token_ts": 27554.231018618,
}  # fmt: skip
RESULT: dict[str, Any] = {
    "backend": "vllm", "request_rate": 2.0, "input_lens": [10, 20], "output_lens": [3, 2], "start_times": [7.5, 8.25],
    "ttfts": [0.5, 0.25], "itls": [[0.125, 0.25], [0.5]], "errors": ["", ""],
}  # fmt: skip


def lines(*rows: dict[str, Any]) -> str:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def written(folder: Path, text: str) -> Path:
    """A file with exactly these characters."""
    path = folder / "trace"
    path.write_bytes(text.encode())
    return path


def quantiles(values: np.ndarray[Any, Any]) -> list[float]:
    """The percentiles that the READMEs state, rounded as there."""
    return [float(v) for v in np.quantile(values, [0, 0.01, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1]).round()]


def test_check_values_of_mooncake() -> None:
    """Goal: the reader gives what the data's README states. Method: every check value; prefixes by a walk."""
    trace = read_trace(shared_file("llm_requests/mooncake_conversation_0000_1200s.jsonl"))
    requests, seconds = trace.requests, trace.requests.arrival_ns * 1e-9
    gaps = np.diff(seconds)
    assert (trace.format, trace.failed_rows, trace.measured) == (TraceFormat.MOONCAKE, 0, None)
    assert requests.count == 3658
    assert seconds[-1] == pytest.approx(1199.999)
    assert np.unique(seconds).size == 401
    assert np.count_nonzero(gaps == 0) == 3257
    assert requests.rate_per_s == pytest.approx(3.0475, abs=5e-5)
    assert gaps.std(ddof=1) / gaps.mean() == pytest.approx(2.8539, abs=5e-5)
    for window_s, ratio, largest in ((10, 2.033, 53), (60, 1.959, 218)):
        counts = np.bincount((seconds // window_s).astype(int))[: int(seconds[-1] // window_s)]
        assert counts.var(ddof=1) / counts.mean() == pytest.approx(ratio, abs=5e-4)
        assert counts.max() == largest
    assert (int(requests.input_tokens.sum()), int(requests.output_tokens.sum())) == (49028610, 1274811)
    assert quantiles(requests.input_tokens) == [891, 894, 980, 2652, 7888, 16984, 29091, 43574, 94862, 123192]
    assert quantiles(requests.output_tokens) == [1, 3, 24, 155, 358, 479, 606, 701, 1161, 2000]
    assert requests.hash_ids is not None
    assert requests.hash_offsets is not None
    blocks = np.diff(requests.hash_offsets)
    assert np.array_equal(blocks, -(-requests.input_tokens // 512))
    assert (requests.hash_ids.size, np.unique(requests.hash_ids).size) == (97495, 66497)
    seen: set[int] = set()
    reused = 0
    for start, end in zip(requests.hash_offsets[:-1].tolist(), requests.hash_offsets[1:].tolist(), strict=True):
        own = requests.hash_ids[start:end].tolist()
        reused += next((place for place, each in enumerate(own) if each not in seen), len(own))
        seen.update(own)
    assert reused == 30998


def test_check_values_of_burstgpt() -> None:
    """Goal: the three published rows. Method: the README's check values."""
    trace = read_trace(shared_file("llm_requests/burstgpt_opening_rows.csv"))
    assert trace.format is TraceFormat.BURSTGPT
    assert trace.requests.count == 3
    assert (trace.requests.arrival_ns // 10**9 + 5).tolist() == [5, 45, 118]
    assert (int(trace.requests.input_tokens.sum()), int(trace.requests.output_tokens.sum())) == (1976, 524)


def test_check_values_of_measured_requests() -> None:
    """Goal: arrivals on one clock, stages on the other. Method: the check values of the README of timings."""
    trace = read_trace(shared_file("timings/vllm_rtx4090_llama31_8b_requests.jsonl"))
    requests, measured = trace.requests, trace.measured
    assert trace.format is TraceFormat.VLLM_REQUESTS
    assert measured is not None
    gaps = np.diff(requests.arrival_ns * 1e-9)
    assert requests.count == 300
    assert requests.arrival_ns[-1] * 1e-9 == pytest.approx(29.101, abs=5e-4)
    assert requests.rate_per_s == pytest.approx(10.275, abs=5e-4)
    assert gaps.std(ddof=1) / gaps.mean() == pytest.approx(0.942, abs=5e-4)
    assert (int(requests.output_tokens.sum()), int(requests.input_tokens.sum())) == (195753, 257239)
    ttft_s, end_to_end_s = measured.ttft_ns * 1e-9, measured.end_to_end_ns * 1e-9
    shares = [0, 0.01, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1]
    assert np.quantile(ttft_s, shares) == pytest.approx(
        [0.166, 0.316, 1.180, 35.262, 60.111, 104.212, 121.122, 122.739, 137.356, 137.843], abs=6e-4
    )
    tpot_ms = (end_to_end_s - ttft_s) / (requests.output_tokens - 1) * 1e3
    assert np.quantile(tpot_ms, shares) == pytest.approx(
        [21.49, 21.92, 29.40, 30.14, 30.76, 31.87, 38.13, 48.06, 56.00, 63.47], abs=6e-3
    )
    assert np.quantile(end_to_end_s, shares) == pytest.approx(
        [16.16, 16.74, 29.28, 56.42, 83.41, 123.31, 141.60, 148.98, 153.63, 154.45], abs=6e-3
    )


GUESSES = {
    TraceFormat.AZURE_2023: AZURE,
    TraceFormat.BURSTGPT: BURST_3,
    TraceFormat.VIDUR: VIDUR,
    TraceFormat.CSV: OWN,
    TraceFormat.MOONCAKE: lines(MOONCAKE_ROW),
    TraceFormat.VLLM_REQUESTS: lines(RECORD),
    TraceFormat.VLLM: json.dumps(RESULT, indent=1),
}


@pytest.mark.parametrize("form", list(TraceFormat))
def test_formats_are_told_by_their_content(tmp_path: Path, form: TraceFormat) -> None:
    """Goal: nobody has to name what is certain, packed or not. Method: one small file of every format."""
    path = written(tmp_path, "\ufeff\r\n" + GUESSES[form])
    assert format_of(path) is form
    packed = tmp_path / "trace.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_trace(packed).format is form
    assert read_trace(path, form).requests.count == read_trace(packed).requests.count
    assert cached_trace(path) is cached_trace(str(path))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "the file is empty; write `format:`"),
        ("\n \n", "the file is empty"),
        ("a,b,c\n1,2,3", "not certain from the first line; write `format:` with one of azure_2023, burstgpt"),
        ("{}", "not certain"),
        ("[1, 2]", "not certain"),
        ('{"timestamp": 1', "not certain"),
        ("arrival_s,input_tokens,output_tokens,arrived_at,num_prefill_tokens,num_decode_tokens\n", "vidur and csv"),
        (lines(MOONCAKE_ROW | RECORD), "mooncake and vllm_requests"),
    ],
)
def test_formats_that_are_not_certain_are_asked_for(tmp_path: Path, text: str, what: str) -> None:
    """Goal: no guess that could be wrong. Method: nothing, strangers, and rows that fit two formats."""
    with pytest.raises(InputError, match=what):
        read_trace(written(tmp_path, text))


def test_failed_rows_are_counted_and_left_out(tmp_path: Path) -> None:
    """Goal: an answer of 0 tokens is a failed request, no fault. Method: BurstGPT's own (0, 0, 0), and the others."""
    burst = written(tmp_path, BURST + "6,GPT-4,0,0,0,API log\n7,GPT-4,50,0,50,API log\n9,GPT-4,5,5,10,API log\n")
    trace = read_trace(burst)
    assert (trace.failed_rows, trace.requests.arrival_ns.tolist()) == (2, [0, 4 * 10**9])
    for text in (VIDUR + "1.5,7,0\n", OWN + "3,7,0\n", lines(MOONCAKE_ROW, MOONCAKE_ROW | {"output_length": 0})):
        assert read_trace(written(tmp_path, text)).failed_rows == 1
    result = RESULT | {"errors": ["", "Bad gateway"], "output_lens": [3, 0]}
    assert read_trace(written(tmp_path, json.dumps(result))).failed_rows == 1
    with pytest.raises(InputError, match="no requests below the header, 1 failed"):
        read_trace(written(tmp_path, VIDUR.replace("44", "0")))


def times(trace: Trace) -> list[int]:
    """Measured times of the first request: to the first token, to the last."""
    assert trace.measured is not None
    return [int(trace.measured.ttft_ns[0]), int(trace.measured.end_to_end_ns[0])]


def test_what_was_measured_comes_along(tmp_path: Path) -> None:
    """Goal: measured times, exact to the nanosecond, -1 where the file has none. Method: one file of each kind."""
    assert times(read_trace(written(tmp_path, OWN))) == [250_000_000, 1_500_000_000]
    assert times(read_trace(written(tmp_path, BURST_3))) == [-1, 43 * 10**9]
    assert times(read_trace(written(tmp_path, lines(RECORD)))) == [689_434_586, 17_570_317_551]
    assert times(read_trace(written(tmp_path, json.dumps(RESULT)))) == [500_000_000, 875_000_000]
    with_latencies = RESULT | {"latencies": [0.9, 0.75]}
    assert times(read_trace(written(tmp_path, json.dumps(with_latencies)))) == [500_000_000, 900_000_000]
    assert read_trace(written(tmp_path, VIDUR)).measured is None


def test_quirks_of_numbers(tmp_path: Path) -> None:
    """Goal: what real files write is read exactly. Method: long fractions of Vidur, whole numbers with a point, rows
    out of order, arrivals of old benchmarks at an infinite rate."""
    rows = VIDUR + "11.836632999999999,369.0,74\n5.8926549999999995,91,16.0\n\n"
    trace = read_trace(written(tmp_path, rows))
    assert trace.requests.arrival_ns.tolist() == [0, 5_892_655_000, 11_836_633_000]
    assert trace.requests.input_tokens.tolist() == [374, 91, 369]
    old = {name: value for name, value in RESULT.items() if name != "start_times"} | {"request_rate": "inf"}
    assert read_trace(written(tmp_path, json.dumps(old))).requests.arrival_ns.tolist() == [0, 0]
    no_prefix = lines({name: value for name, value in MOONCAKE_ROW.items() if name != "hash_ids"})
    assert read_trace(written(tmp_path, no_prefix)).requests.hash_ids is None
    late = lines(MOONCAKE_ROW | {"timestamp": 2.5}, MOONCAKE_ROW | {"hash_ids": [4]})
    hashes = read_trace(written(tmp_path, late)).requests
    assert hashes.hash_ids is not None
    assert hashes.hash_ids.tolist() == [4, 0, 1]


def mooncake(**changed: Any) -> str:
    """A good row, then one with changed fields (None: left out)."""
    row = {name: value for name, value in (MOONCAKE_ROW | changed).items() if value is not None}
    return lines(MOONCAKE_ROW) + json.dumps(row)


def record(**changed: Any) -> str:
    """The same for records of requests."""
    return lines(RECORD) + json.dumps({name: value for name, value in (RECORD | changed).items() if value is not None})


def result(**changed: Any) -> str:
    """A result of the benchmark with changed fields."""
    return json.dumps({name: value for name, value in (RESULT | changed).items() if value is not None})


FAULTY: dict[str, tuple[str, str, int, str]] = {
    # name: (format, text, line, what the fault says)
    "burst: total is no sum": ("burstgpt", BURST + "6,GPT-4,1,2,4,API log", 3, "Total tokens of 4 is not 1 + 2"),
    "burst: unknown log": ("burstgpt", BURST + "6,GPT-4,1,2,3,Chat", 3, "is neither Conversation log nor API log"),
    "burst: no model": ("burstgpt", BURST + "6,,1,2,3,API log", 3, "Model is empty"),
    "burst: before midnight": ("burstgpt", BURST + "-6,GPT-4,1,2,3,API log", 3, "lies before the start"),
    "burst: answered nothing": ("burstgpt", BURST + "6,GPT-4,0,2,2,API log", 3, "an empty prompt"),
    "burst: elapsed": ("burstgpt", BURST_3 + "6,,soon,GPT-4,1,2,3,API log", 3, "Elapsed time of 'soon' is no number"),
    "burst: header": ("burstgpt", BURST.replace("Model", "Modell"), 1, "missing column Model"),
    "csv: short row": ("csv", OWN + "1,2\n", 3, "no value for column 'output_tokens'"),
    "csv: long row": ("csv", OWN + "1,2,3,4,5,6\n", 3, "6 fields, and the header has 5"),
    "csv: no time": ("csv", OWN + "noon,2,3,,\n", 3, "arrival_s of 'noon' is no number"),
    "csv: time without end": ("csv", OWN + "inf,2,3,,\n", 3, "arrival_s of 'inf' is no number"),
    "csv: time beyond the clock": ("csv", OWN + "1e30,2,3,,\n", 3, "arrival_s of '1e30' is out of range"),
    "csv: half a token": ("csv", OWN + "1,2.5,3,,\n", 3, "input_tokens: '2.5' is not a whole number"),
    "csv: minus": ("csv", OWN + "1,2,-3,,\n", 3, "output_tokens: -3 tokens are out of range"),
    "csv: too many tokens": ("csv", OWN + "1,9999999999999999,3,,\n", 3, "tokens are out of range"),
    "csv: open quote": ("csv", OWN + '1,"2,3,,\n', 3, "no CSV"),
    "csv: a column twice": ("csv", OWN.replace("ttft_s", "arrival_s"), 1, "column arrival_s is there twice"),
    "csv: measured before 0": ("csv", OWN + "1,2,3,-1,\n", 3, "ttft_s of '-1' lies before the start"),
    "vidur: lengths alone": ("vidur", "num_prefill_tokens,num_decode_tokens\n1,2", 1, "missing column arrived_at"),
    "vidur: empty prompt": ("vidur", VIDUR + "1,0,5", 3, "num_prefill_tokens: 0 tokens, an empty prompt"),
    "mooncake: no JSON": ("mooncake", lines(MOONCAKE_ROW) + "{", 2, "no JSON (Expecting property name"),
    "mooncake: no object": ("mooncake", lines(MOONCAKE_ROW) + "7", 2, "7 is no JSON object"),
    "mooncake: field left out": ("mooncake", mooncake(input_length=None), 2, "missing field input_length"),
    "mooncake: field twice": ("mooncake", '{"timestamp": 1, "timestamp": 2}', 1, "a field is there twice"),
    "mooncake: text": ("mooncake", mooncake(timestamp="soon"), 2, "timestamp of 'soon' is no number"),
    "mooncake: truth": ("mooncake", mooncake(input_length=True), 2, "input_length: True is not a whole number"),
    "mooncake: negative time": ("mooncake", mooncake(timestamp=-1), 2, "timestamp of -1 lies before the start"),
    "mooncake: half a token": ("mooncake", mooncake(output_length=1.5), 2, "output_length: 1.5 is not a whole number"),
    "mooncake: not a number": ("mooncake", mooncake(timestamp=float("nan")), 2, "NaN is no number"),
    "mooncake: hashes no list": ("mooncake", mooncake(hash_ids=5), 2, "hash_ids of 5 is no list"),
    "mooncake: hash below 0": ("mooncake", mooncake(hash_ids=[0, -1]), 2, "below 0 or too large"),
    "mooncake: hash twice": ("mooncake", mooncake(hash_ids=[3, 3]), 2, "names a block twice"),
    "mooncake: too many": ("mooncake", mooncake(hash_ids=[1, 2, 3]), 2, "3 hash_ids for a prompt of 600 tokens"),
    "mooncake: some without": ("mooncake", mooncake(hash_ids=None), 2, "some rows have hash_ids and some have none"),
    "records: stages out of order": ("vllm_requests", record(first_token_ts=1.0), 2, "first_token_ts of 1.0 lies bef"),
    "records: no stage": ("vllm_requests", record(queued_ts=None), 2, "missing field queued_ts"),
    "records: empty prompt": ("vllm_requests", record(input_toks=0), 2, "input_toks: 0 tokens"),
    "result: lists differ": ("vllm", result(ttfts=[1.0]), 1, "ttfts has 1 entries, input_lens 2"),
    "result: no list": ("vllm", result(itls="fast"), 1, "itls is no list"),
    "result: not detailed": ("vllm", result(input_lens=None), 1, "missing field input_lens"),
    "result: no arrivals": ("vllm", result(start_times=None), 1, "when requests were sent is not known"),
    "result: several": ("vllm", result() + "\n" + result(), 1, "several results in one file"),
    "result: a list": ("vllm", "[]", 1, "is no result"),
    "result: below zero": ("vllm", result(ttfts=[-1.0, 1.0]), 1, "request 0: ttfts of -1.0 is below zero"),
    "result: end before start": ("vllm", result(latencies=[9, 0.1]), 1, "request 1: latencies of 0.1 is below ttfts"),
    "result: length": ("vllm", result(output_lens=[1, "x"]), 1, "request 1: output_lens: 'x' is not a whole number"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_faulty_rows_are_named_by_file_and_line(tmp_path: Path, name: str) -> None:
    """Goal: file, line, what is wrong, for over forty kinds. Method: one fault in a good file of each format."""
    form, text, line, what = FAULTY[name]
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_trace(path, form)
    fault = caught.value.faults[0]
    assert fault.where == f"{path}:{line}"
    assert what in fault.what
    assert fault.write
    assert len(str(fault)) < 1500


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"no gzip"], ids=["cut", "no gzip"])
def test_files_that_can_not_be_unpacked(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """Goal: no traceback. Method: damaged .gz files."""
    path = tmp_path / "trace.gz"
    path.write_bytes(damage(gzip.compress(OWN.encode())))
    with pytest.raises(InputError, match="not a complete gzip file"):
        read_trace(path)


def test_texts_that_would_hang_or_fill_memory_are_refused(tmp_path: Path) -> None:
    """Goal: hostile rows are faults. Method: deep nesting, numbers of thousands of digits and of huge exponents."""
    for value in ("[" * 100_000, "9" * 5000, "1e999999999", "1e-999999999999"):
        text = lines(MOONCAKE_ROW) + '{"timestamp": 0, "input_length": ' + value + ', "output_length": 3}'
        with pytest.raises(InputError) as caught:
            read_trace(written(tmp_path, text), "mooncake")
        assert len(str(caught.value)) < 1500
