"""Readers of published request traces: files that users have, by path. Nothing here is shipped with the project.

Faults are collected, by line, up to a bound; a file with faults gives no requests.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import numpy as np

from topology.errors import Fault, InputError, refuse
from workloads.requests import LATEST_NS, MAX_TOKENS, Requests

AZURE_2023_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
AZURE_2023_SOURCE = "https://github.com/Azure/AzurePublicDataset (AzureLLMInferenceTrace_conv.csv, CC BY 4.0)"
MAX_FAULTS = 20
"""Faults reported of one file; more are counted only."""

_TIMESTAMP = re.compile(r"(\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?")
_EPOCH = datetime(1970, 1, 1)  # the trace states no zone; only differences are used


def timestamp_ns(text: str) -> int:
    """Nanoseconds of `YYYY-MM-DD HH:MM:SS.fffffff` since 1970 (up to nine digits); ValueError for another form."""
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is no time")
    whole = datetime.fromisoformat(match[1].replace("T", " ")) - _EPOCH
    return (whole.days * 86_400 + whole.seconds) * 1_000_000_000 + int((match[2] or "0").ljust(9, "0"))


def _length(text: str) -> int:
    """A number of tokens of at least 1; ValueError says what is wrong."""
    stripped = text.strip()
    if not re.fullmatch(r"[+-]?\d{1,30}", stripped):
        raise ValueError(f"{text[:40]!r} is not a whole number of tokens")
    value = int(stripped)
    if value == 0:
        raise ValueError("0 tokens: an empty prompt or a failed request")
    if not 0 < value <= MAX_TOKENS:
        raise ValueError(f"{value} tokens are out of range")
    return value


def _rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, row by column name) of the CSV text; InputError where the header lacks a column."""
    reader = csv.reader(text.splitlines())
    header = next(reader, None)
    if header is None:
        raise refuse(str(path), "the file is empty", f"get it from {AZURE_2023_SOURCE}")
    names = [name.strip() for name in header]
    missing = [name for name in AZURE_2023_COLUMNS if name not in names]
    if missing:
        raise refuse(
            f"{path}:1", f"missing column {', '.join(missing)}", f"the header must name {', '.join(AZURE_2023_COLUMNS)}"
        )
    for row in reader:
        if row:
            yield reader.line_num, dict(zip(names, row, strict=False))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise refuse(str(path), "no such file", f"the trace is published at {AZURE_2023_SOURCE}") from None
    except UnicodeDecodeError:
        raise refuse(str(path), "not a UTF-8 text", "give the CSV file itself, unpacked") from None
    except OSError as error:
        raise refuse(str(path), f"can not be read ({error.strerror})", "give the path of a readable file") from None


def read_azure_2023(path: str | Path) -> Requests:
    """The requests of an Azure LLM inference trace of 2023 (conversation or code), arrivals from the first one on.

    Reads CR LF or LF line ends, a last line without one, seven digits of a second, a byte-order mark, columns in any
    order. Rows out of order of arrival are sorted (equal times keep their order). InputError names, by line, missing
    columns and fields, what is no number, and lengths of zero or less.
    """
    file = Path(path)
    arrivals: list[int] = []
    lengths: list[tuple[int, int]] = []
    faults: list[Fault] = []
    more = 0
    for line, row in _rows(file, _read_text(file)):
        try:
            time_text, *length_texts = (row[name] for name in AZURE_2023_COLUMNS)
            arrival_ns, (prompt, answer) = timestamp_ns(time_text), map(_length, length_texts)
        except (KeyError, ValueError) as error:
            what = f"no value for column {error}" if isinstance(error, KeyError) else str(error)
            more += len(faults) == MAX_FAULTS
            if len(faults) < MAX_FAULTS:
                faults.append(Fault(f"{file}:{line}", what, "mend or remove the row"))
            continue
        arrivals.append(arrival_ns)
        lengths.append((prompt, answer))
    if more:
        faults.append(Fault(str(file), f"{more} more faulty rows", "mend or remove them"))
    if not faults and not arrivals:
        faults.append(Fault(str(file), "no requests below the header", f"get the file from {AZURE_2023_SOURCE}"))
    if arrivals and max(arrivals) - min(arrivals) > LATEST_NS:
        years = (max(arrivals) - min(arrivals)) / 1e9 / (365 * 86_400)
        faults.append(Fault(str(file), f"first and last request lie {years:,.0f} years apart", "mend the times"))
    if faults:
        raise InputError(faults)
    first_ns = min(arrivals)
    times_ns = np.array([arrival - first_ns for arrival in arrivals], dtype=np.int64)
    tokens = np.array(lengths, dtype=np.int64)
    order = np.argsort(times_ns, kind="stable")
    return Requests(times_ns[order], tokens[order, 0].copy(), tokens[order, 1].copy())


@lru_cache(maxsize=4)
def _read_again(path: str, size: int, modified_ns: int) -> Requests:
    return read_azure_2023(path)


def cached_azure_2023(path: str | Path) -> Requests:
    """`read_azure_2023`, kept in memory as long as the file's size and time of change stay the same."""
    file = Path(path)
    if not file.is_file():
        return read_azure_2023(file)
    status = file.stat()
    return _read_again(str(file), status.st_size, status.st_mtime_ns)
