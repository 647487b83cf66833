"""One way to read any trace: by the format that is named, or by the content where it is certain."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from topology.errors import refuse
from workloads.file_text import read_log_text
from workloads.traces.csv_traces import CSV_FORMATS, header_of, read_csv_trace
from workloads.traces.json_text import parsed_json
from workloads.traces.mooncake import MOONCAKE_FIELDS, read_mooncake
from workloads.traces.trace import Trace, TraceFormat
from workloads.traces.vllm import RECORD_FIELDS, RESULT_FIELDS, read_vllm, read_vllm_requests

READERS: dict[TraceFormat, Callable[[str | Path], Trace]] = {
    **{each.form: partial(read_csv_trace, form=each) for each in CSV_FORMATS},
    TraceFormat.MOONCAKE: read_mooncake,
    TraceFormat.VLLM: read_vllm,
    TraceFormat.VLLM_REQUESTS: read_vllm_requests,
}
"""A reader takes a path and gives the trace, or raises InputError; one per format."""

JSON_FIELDS = {
    TraceFormat.MOONCAKE: MOONCAKE_FIELDS,
    TraceFormat.VLLM: RESULT_FIELDS,
    TraceFormat.VLLM_REQUESTS: RECORD_FIELDS,
}
PUBLISHED = "https://github.com/Azure/AzurePublicDataset (CC BY 4.0) and by others: see the list of formats"


def format_of(path: str | Path) -> TraceFormat:
    """The only format that the first row or header fits; InputError asks for it where none or several do."""
    text = read_log_text(path, PUBLISHED, "trace")
    start = text.lstrip()[:1]
    if start in ("{", "["):
        fits = _json_formats(text)
    else:
        names = header_of(text)
        fits = [each.form for each in CSV_FORMATS if each.fits(names)]
    if len(fits) != 1:
        what = "the file is empty" if not start else "the format is not certain from the first line"
        if len(fits) > 1:
            what = f"the first line fits {' and '.join(fits)}"
        raise refuse(str(path), what, f"write `format:` with one of {', '.join(TraceFormat)}")
    return fits[0]


def _json_formats(text: str) -> list[TraceFormat]:
    """Formats that the first object fits: the first line, or the whole text where that is no object."""
    for part in (text.lstrip().split("\n", 1)[0], text):
        try:
            row = parsed_json(part)
        except ValueError:
            continue
        if isinstance(row, dict):
            return [form for form, fields in JSON_FIELDS.items() if all(name in row for name in fields)]
    return []


def read_trace(path: str | Path, form: TraceFormat | str | None = None) -> Trace:
    """The trace of a file in the format `form`, or in the one that its content shows; InputError names faults by line.

    `.gz` is unpacked.
    """
    return READERS[TraceFormat(form) if form is not None else format_of(path)](path)


@lru_cache(maxsize=4)
def _read_again(path: str, form: str | None, size: int, modified_ns: int) -> Trace:
    return read_trace(path, form)


def cached_trace(path: str | Path, form: TraceFormat | str | None = None) -> Trace:
    """`read_trace`, kept in memory as long as the file's size and time of change stay the same."""
    file = Path(path)
    if not file.is_file():
        return read_trace(file, form)
    status = file.stat()
    return _read_again(str(file), None if form is None else str(form), status.st_size, status.st_mtime_ns)
