"""The reader of the Azure 2023 trace: check values of the real file, quirks, faults by line."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from tests.shared_data import shared_file
from topology.errors import InputError
from workloads.file_text import MAX_FAULTS
from workloads.load.replay import TraceRequests
from workloads.requests import Requests
from workloads.traces.csv_traces import AZURE_2023, read_csv_trace, timestamp_ns
from workloads.traces.reading import cached_trace

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
ROW = "2023-11-16 18:15:46.6805900,374,44"


def read_azure(path: Path) -> Requests:
    """The requests of a file in the format of Azure."""
    return read_csv_trace(path, AZURE_2023).requests


def written(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    """A file with exactly these characters."""
    path = folder / "trace.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_times_that_lie_centuries_apart_are_refused(tmp_path: Path) -> None:
    """Goal: no overflow of the clock in ns. Method: rows at both ends of the calendar, in both orders."""
    rows = ["9999-12-31 23:59:59.9,3,4", "0001-01-01 00:00:00,374,5", "2023-11-16 18:15:46,5,5"]
    for lines in (rows, rows[::-1]):
        with pytest.raises(InputError, match="first and last request lie 10,006 years apart; mend the times"):
            read_azure(written(tmp_path, "\n".join([HEADER, *lines])))


def test_a_trace_can_be_stretched_to_any_rate(tmp_path: Path) -> None:
    """Goal: few requests of a long trace at a low rate fit the clock. Method: the first two of 1,000, a billion times
    slower than they were: their gap is right, whatever becomes of the later ones.
    """
    rows = [f"2023-11-16 18:{at // 60:02}:{at % 60:02},3,4" for at in range(1000)]
    law = TraceRequests(path=str(written(tmp_path, "\n".join([HEADER, *rows]))))
    drawn = law.draw(law.natural_rate_per_s * 1e-7, 2, lambda *_: np.zeros(0), "x")
    assert drawn.arrival_ns.tolist() == [0, pytest.approx(10**16, rel=1e-9)]
    assert law.draw(law.natural_rate_per_s * 1e-9, 900, lambda *_: np.zeros(0), "x").count == 900


def test_check_values_of_the_real_file() -> None:
    """Goal: the reader gives what the data's README states. Method: every check value."""
    requests = read_azure(shared_file("llm_requests/azure_2023_conv.csv"))
    seconds = requests.arrival_ns * 1e-9
    gaps = np.diff(seconds)
    assert requests.count == 19366
    assert seconds[-1] == pytest.approx(3501.722, abs=5e-4)
    assert requests.arrival_ns[-1] == timestamp_ns("2023-11-16 19:14:08.4025270") - timestamp_ns(
        "2023-11-16 18:15:46.6805900"
    )
    assert requests.rate_per_s == pytest.approx(5.5301, abs=5e-5)
    assert gaps.std(ddof=1) / gaps.mean() == pytest.approx(1.0942, abs=5e-5)
    assert np.count_nonzero(gaps == 0) == 0
    assert requests.input_tokens.sum() == 22361870
    assert requests.output_tokens.sum() == 4088665
    for window_s, ratio, largest in ((10, 3.868, 98), (60, 16.411, 507)):
        counts = np.bincount((seconds // window_s).astype(int))[: int(seconds[-1] // window_s)]
        assert counts.var(ddof=1) / counts.mean() == pytest.approx(ratio, abs=5e-4)
        assert counts.max() == largest
    shares = [0, 0.01, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1]
    prompts, answers = (np.quantile(v, shares).round() for v in (requests.input_tokens, requests.output_tokens))
    assert prompts.tolist() == [2, 29, 207, 396, 1020, 1189, 2734, 4083, 4142, 14050]
    assert answers.tolist() == [7, 16, 54, 85, 129, 395, 424, 451, 601, 1000]
    assert requests.input_tokens.mean() == pytest.approx(1154.70, abs=5e-3)
    assert requests.output_tokens.mean() == pytest.approx(211.13, abs=5e-3)


def test_the_real_file_is_read_once() -> None:
    """Goal: replications do not read the file again. Method: the second call is the same object and fast."""
    path = shared_file("llm_requests/azure_2023_conv.csv")
    first = cached_trace(path)
    start = time.perf_counter()
    assert cached_trace(str(path)) is first
    assert time.perf_counter() - start < 0.05


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}\r\n{ROW}\r\n2023-11-16 18:15:50.9951690,396,109",
        f"{HEADER}\n{ROW}\n2023-11-16 18:15:50.9951690,396,109\n",
        f"\ufeff{HEADER}\r\n{ROW}\r\n\r\n2023-11-16 18:15:50.995169,396,109\r\n",
        "GeneratedTokens,ContextTokens,TIMESTAMP\n44,374,2023-11-16T18:15:46.68059\n109,396,2023-11-16 18:15:50.995169",
        f"{HEADER}\n2023-11-16 18:15:46.680590+00:00,374,44\n2023-11-16 18:15:50.995169Z,396,109\n",
        f"{HEADER}, Extra \n2023-11-16 18:15:50.9951690, 396 ,109,x\n{ROW},y\n",
    ],
    ids=[
        "CR LF, no final end",
        "LF",
        "byte-order mark, blank line, six digits",
        "other column order",
        "zone of UTC, as in 2024",
        "unsorted, more",
    ],
)
def test_quirks_that_are_read(tmp_path: Path, text: str) -> None:
    """Goal: all these files hold the same two requests. Method: compare arrays."""
    requests = read_azure(written(tmp_path, text))
    assert requests.arrival_ns.tolist() == [0, 4_314_579_000]
    assert requests.input_tokens.tolist() == [374, 396]
    assert requests.output_tokens.tolist() == [44, 109]


def test_whole_seconds_and_equal_times_keep_their_order(tmp_path: Path) -> None:
    """Goal: a time without fraction is read; ties keep the file's order. Method: three rows, two at one instant."""
    rows = ["2023-11-16 18:00:01,1,1", "2023-11-16 18:00:00.0000000,2,2", "2023-11-16 18:00:00,3,3"]
    requests = read_azure(written(tmp_path, "\n".join([HEADER, *rows])))
    assert requests.input_tokens.tolist() == [2, 3, 1]
    assert requests.arrival_ns.tolist() == [0, 0, 1_000_000_000]


FAULTY_ROWS = {
    "no number": ("2023-11-16 18:15:46.6805900,many,44", "'many' is not a whole number"),
    "fraction": ("2023-11-16 18:15:46.6805900,3.5,44", "'3.5' is not a whole number"),
    "empty length": ("2023-11-16 18:15:46.6805900,,44", "'' is not a whole number"),
    "zero prompt": ("2023-11-16 18:15:46.6805900,0,44", "0 tokens"),
    "zero answer": ("2023-11-16 18:15:46.6805900,5,0", "failed request"),
    "negative": ("2023-11-16 18:15:46.6805900,-5,44", "-5 tokens are out of range"),
    "huge": ("2023-11-16 18:15:46.6805900,99999999999999999999,44", "out of range"),
    "no time": ("yesterday,5,44", "'yesterday' is no time"),
    "no such day": ("2023-02-30 18:15:46,5,44", "day is out of range"),
    "short row": ("2023-11-16 18:15:46.6805900,5", "no value for column 'GeneratedTokens'"),
}


@pytest.mark.parametrize("name", FAULTY_ROWS)
def test_faulty_rows_are_named_by_line(tmp_path: Path, name: str) -> None:
    """Goal: file, line, what is wrong. Method: a good row, the faulty one on line 3, a good one."""
    row, what = FAULTY_ROWS[name]
    path = written(tmp_path, "\r\n".join([HEADER, ROW, row, ROW]))
    with pytest.raises(InputError) as caught:
        read_azure(path)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].where == f"{path}:3"
    assert what in caught.value.faults[0].what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "empty"),
        (HEADER, "no requests"),
        ("TIMESTAMP,ContextTokens\n2023-11-16 18:15:46,5", "missing column GeneratedTokens"),
        ("a;b;c\n1;2;3", "missing column TIMESTAMP, ContextTokens, GeneratedTokens"),
    ],
)
def test_files_without_requests_are_refused(tmp_path: Path, text: str, what: str) -> None:
    """Goal: helpful refusal of a wrong file. Method: the text of the fault."""
    with pytest.raises(InputError, match=what):
        read_azure(written(tmp_path, text))


def test_unreadable_paths_are_refused(tmp_path: Path) -> None:
    """Goal: no traceback for a wrong path; the publisher is named. Method: absent, a folder, not UTF-8."""
    with pytest.raises(InputError, match=r"published at https://github\.com/Azure"):
        cached_trace(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="can not be read"):
        read_azure(tmp_path)
    with pytest.raises(InputError, match="not a UTF-8 text"):
        read_azure(written(tmp_path, HEADER + "\n\u00e9", "latin-1"))


def test_many_faults_are_counted_not_printed(tmp_path: Path) -> None:
    """Goal: a wrong file does not flood the terminal. Method: 100 faulty rows: 20 named, 80 counted."""
    path = written(tmp_path, "\n".join([HEADER, *["x,1,1"] * 100]))
    with pytest.raises(InputError) as caught:
        read_azure(path)
    assert len(caught.value.faults) == MAX_FAULTS + 1
    assert "80 more faulty rows" in str(caught.value.faults[-1])
