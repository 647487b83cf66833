"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers per job, comments begin with `;`.

Format: Feitelson, "The Standard Workload Format", cs.huji.ac.il/labs/parallel/workload/swf.html. -1: not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from workloads.file_text import FaultList, number_of, read_log_text
from workloads.jobs.job_log import JobLog, sorted_job_log

SWF_SOURCE = "https://www.cs.huji.ac.il/labs/parallel/workload (Parallel Workloads Archive)"

SWF_FIELDS = (
    "job",
    "submit_s",
    "wait_s",
    "run_s",
    "processors",
    "cpu_s",
    "memory_kb",
    "requested_processors",
    "requested_s",
    "requested_memory_kb",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_s",
)
"""Names of the 18 fields, in order."""

_MAY_HAVE_DECIMALS = frozenset(
    ("wait_s", "run_s", "cpu_s", "memory_kb", "requested_s", "requested_memory_kb", "think_s")
)


@dataclass(frozen=True, kw_only=True)
class SwfLog:
    """A file in Standard Workload Format: `header` by name (repeated ones are joined), `fields` (jobs, 18)."""

    path: str
    header: Mapping[str, str]
    fields: NDArray[np.float64]

    def field(self, name: str) -> NDArray[np.float64]:
        """One field by its name in `SWF_FIELDS`, one value per job in the order of the file; -1: not known."""
        return self.fields[:, SWF_FIELDS.index(name)]

    @property
    def machine_processors(self) -> int | None:
        """`MaxProcs` of the header, else `MaxNodes`; None where neither is a number."""
        for name in ("MaxProcs", "MaxNodes"):
            text = self.header.get(name, "").split(" ")[0]
            if text.isascii() and text.isdigit() and len(text) <= 12 and int(text) > 0:
                return int(text)
        return None

    def jobs(self) -> JobLog:
        """The jobs: allocated processors, or those requested where the former are not known."""
        allocated, asked = self.field("processors"), self.field("requested_processors")
        processors = np.where(allocated > 0, allocated, np.maximum(asked, 0))
        known = {name: np.where(self.field(name) < 0, math.nan, self.field(name)) for name in SWF_FIELDS[2:9]}
        return sorted_job_log(
            self.path,
            self.field("submit_s").tolist(),
            number=self.field("job").astype(np.int64).tolist(),
            wait_s=known["wait_s"].tolist(),
            run_s=known["run_s"].tolist(),
            requested_s=known["requested_s"].tolist(),
            processors=processors.astype(np.int64).tolist(),
            owner=["" if user < 0 else f"user{user:.0f}" for user in self.field("user").tolist()],
            machine_processors=self.machine_processors,
        )


def _job_of(line: str) -> list[float]:
    """The 18 numbers of a line; ValueError says what is wrong."""
    texts = line.split()
    if len(texts) != len(SWF_FIELDS):
        raise ValueError(f"{len(texts)} fields, and a job has {len(SWF_FIELDS)}")
    values = []
    for name, text in zip(SWF_FIELDS, texts, strict=True):
        value = number_of(text, name)
        if name not in _MAY_HAVE_DECIMALS and value != int(value) and name != "submit_s":
            raise ValueError(f"{name} of {text[:40]!r} is not whole")
        if value < 0 and (value != -1 or name in ("job", "submit_s")):
            raise ValueError(f"{name} of {text[:40]!r} is below zero")
        values.append(value)
    return values


def read_swf(path: str | Path) -> SwfLog:
    """Read a log in Standard Workload Format, packed (.gz) or not.

    Takes leading blanks, files without a header, CR LF, a last line without an end, decimals where fields are times or
    memory, jobs out of order. InputError names by line what has not 18 numbers or a number that can not be.
    """
    faults = FaultList(path)
    header: dict[str, str] = {}
    jobs: list[list[float]] = []
    for number, line in enumerate(read_log_text(path, SWF_SOURCE).splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith(";"):
            name, colon, value = stripped.lstrip("; ").partition(":")
            if colon:
                header[name.strip()] = (
                    f"{header[name.strip()]}; {value.strip()}" if name.strip() in header else value.strip()
                )
        elif stripped:
            try:
                jobs.append(_job_of(stripped))
            except ValueError as error:
                faults.add(number, str(error))
    faults.raise_if_any()
    if not jobs:
        raise refuse(str(path), "there are no jobs in it", f"get a log from {SWF_SOURCE}")
    return SwfLog(path=str(path), header=header, fields=np.array(jobs, dtype=np.float64))
