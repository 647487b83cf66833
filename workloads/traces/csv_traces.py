"""Readers of traces in CSV: Azure 2023, BurstGPT, Vidur, and one's own. Faults are collected by line, up to a bound."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from topology.errors import refuse
from workloads.file_text import FaultList, nanoseconds_of, read_log_text, shown_value
from workloads.traces.trace import NOT_MEASURED, Trace, TraceFormat, TraceRow, tokens_of, trace_of

S_NS = 1_000_000_000
BURSTGPT_LOGS = ("Conversation log", "API log")

_TIMESTAMP = re.compile(r"(\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:Z|\+00:00)?")
_WHOLE = re.compile(r"[+-]?\d{1,30}(\.0{1,9})?")
_EPOCH = datetime(1970, 1, 1)  # the trace states no zone; only differences are used


@dataclass(frozen=True, kw_only=True)
class CsvFormat:
    """One format: its columns (needed, and known besides), where it is published, and how a row is read."""

    form: TraceFormat
    columns: tuple[str, ...]
    more: tuple[str, ...] = ()
    published: str
    row: Callable[[dict[str, str]], TraceRow]

    def fits(self, names: list[str]) -> bool:
        """Whether a header has all columns that are needed."""
        return set(self.columns) <= set(names)


def timestamp_ns(text: str) -> int:
    """Nanoseconds of `YYYY-MM-DD HH:MM:SS.fffffff` since 1970; ValueError for another form.

    Up to nine digits; the zone of UTC may be written, as in the traces of 2024.
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{shown_value(text)} is no time")
    whole = datetime.fromisoformat(match[1].replace("T", " ")) - _EPOCH
    return (whole.days * 86_400 + whole.seconds) * S_NS + int((match[2] or "0").ljust(9, "0"))


def whole_tokens(text: str, name: str, least: int = 1) -> int:
    """A number of tokens (`374`, `374.0`) of at least `least`; ValueError says what is wrong with column `name`."""
    stripped = text.strip()
    if not _WHOLE.fullmatch(stripped):
        raise ValueError(f"{name}: {shown_value(text)} is not a whole number of tokens")
    return tokens_of(int(stripped.split(".")[0]), name, least)


def _since_start_ns(row: dict[str, str], name: str) -> int:
    time_ns = nanoseconds_of(row[name], name, S_NS)
    if time_ns < 0:
        raise ValueError(f"{name} of {shown_value(row[name])} lies before the start")
    return time_ns


def _optional_ns(row: dict[str, str], name: str) -> int:
    """A time that may be left out."""
    return _since_start_ns(row, name) if row.get(name, "").strip() else NOT_MEASURED


def _azure_row(row: dict[str, str]) -> TraceRow:
    time, prompt, answer = AZURE_2023.columns
    return TraceRow(
        arrival_ns=timestamp_ns(row[time]),
        input_tokens=whole_tokens(row[prompt], prompt),
        output_tokens=whole_tokens(row[answer], answer),
    )


def _burstgpt_row(row: dict[str, str]) -> TraceRow:
    time, model, prompt, answer, total, log = BURSTGPT.columns
    answered = whole_tokens(row[answer], answer, least=0)
    asked = whole_tokens(row[prompt], prompt, least=1 if answered else 0)
    whole = whole_tokens(row[total], total, least=0)
    if whole != asked + answered:
        raise ValueError(f"{total} of {whole} is not {asked} + {answered}")
    if not row[model].strip():
        raise ValueError(f"{model} is empty")
    if row[log].strip() not in BURSTGPT_LOGS:
        raise ValueError(f"{log} of {shown_value(row[log])} is neither {' nor '.join(BURSTGPT_LOGS)}")
    return TraceRow(
        arrival_ns=_since_start_ns(row, time),
        input_tokens=asked,
        output_tokens=answered,
        end_to_end_ns=_optional_ns(row, "Elapsed time"),
    )


def _vidur_row(row: dict[str, str]) -> TraceRow:
    time, prompt, answer = VIDUR.columns
    return TraceRow(
        arrival_ns=_since_start_ns(row, time),
        input_tokens=whole_tokens(row[prompt], prompt),
        output_tokens=whole_tokens(row[answer], answer, least=0),
        ttft_ns=_optional_ns(row, "prefill_e2e_time"),
        end_to_end_ns=_optional_ns(row, "request_e2e_time"),
    )


def _own_row(row: dict[str, str]) -> TraceRow:
    time, prompt, answer = OWN_CSV.columns
    return TraceRow(
        arrival_ns=_since_start_ns(row, time),
        input_tokens=whole_tokens(row[prompt], prompt),
        output_tokens=whole_tokens(row[answer], answer, least=0),
        ttft_ns=_optional_ns(row, "ttft_s"),
        end_to_end_ns=_optional_ns(row, "end_to_end_s"),
    )


AZURE_2023 = CsvFormat(
    form=TraceFormat.AZURE_2023,
    columns=("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    published="https://github.com/Azure/AzurePublicDataset (AzureLLMInferenceTrace_conv.csv, _code.csv, CC BY 4.0)",
    row=_azure_row,
)
BURSTGPT = CsvFormat(
    form=TraceFormat.BURSTGPT,
    columns=("Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type"),
    more=("Session ID", "Elapsed time"),
    published="https://github.com/HPMLL/BurstGPT (BurstGPT_1.csv, CC BY 4.0)",
    row=_burstgpt_row,
)
VIDUR = CsvFormat(
    form=TraceFormat.VIDUR,
    columns=("arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    more=("prefill_e2e_time", "request_e2e_time"),
    published="https://github.com/microsoft/vidur (data/processed_traces, MIT)",
    row=_vidur_row,
)
OWN_CSV = CsvFormat(
    form=TraceFormat.CSV,
    columns=("arrival_s", "input_tokens", "output_tokens"),
    more=("ttft_s", "end_to_end_s"),
    published="nowhere: it is your own",
    row=_own_row,
)
CSV_FORMATS = (AZURE_2023, BURSTGPT, VIDUR, OWN_CSV)


def header_of(text: str) -> list[str]:
    """Names of the columns in the first line that is not empty, without blanks around them."""
    line = next((line for line in io.StringIO(text) if line.strip()), "")
    return [name.strip() for name in next(csv.reader([line]), [])]


def read_csv_trace(path: str | Path, form: CsvFormat) -> Trace:
    """The requests of a CSV trace.

    Reads CR LF or LF line ends, a last line without one, a byte-order mark, empty lines, columns in any order and more
    of them, rows in any order. InputError names, by line, missing columns and fields and what can not be a request.
    """
    text = read_log_text(path, form.published, "trace")
    faults = FaultList(path, "rows")
    rows: list[TraceRow] = []
    for line, named in _named_rows(path, text, form, faults):
        try:
            rows.append(form.row(named))
        except ValueError as error:
            faults.add(line, str(error))
    return trace_of(path, form.form, rows, faults)


def _named_rows(
    path: str | Path, text: str, form: CsvFormat, faults: FaultList
) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, fields by column) of every row that has all fields that are needed."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names: list[str] | None = None
    try:
        for row in reader:
            if not any(field.strip() for field in row):
                continue
            if names is None:
                names = _names(path, reader.line_num, row, form)
                continue
            named = dict(zip(names, row, strict=False))
            missing = next((name for name in form.columns if name not in named), None)
            if missing is not None:
                faults.add(reader.line_num, f"no value for column {missing!r}")
            elif len(row) > len(names):
                faults.add(reader.line_num, f"{len(row)} fields, and the header has {len(names)}")
            else:
                yield reader.line_num, named
    except csv.Error as error:
        faults.add(reader.line_num, f"no CSV ({error})")
    if names is None:
        raise refuse(str(path), "the file is empty", f"get it from {form.published}")


def _names(path: str | Path, line: int, header: list[str], form: CsvFormat) -> list[str]:
    names = [name.strip() for name in header]
    missing = [name for name in form.columns if name not in names]
    if missing:
        advice = f"the header must name {', '.join(form.columns)}"
        raise refuse(f"{path}:{line}", f"missing column {', '.join(missing)}", advice)
    twice = next((name for name in (*form.columns, *form.more) if names.count(name) > 1), None)
    if twice is not None:
        raise refuse(f"{path}:{line}", f"column {twice} is there twice", "keep one of them")
    return names
