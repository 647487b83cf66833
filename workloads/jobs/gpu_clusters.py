"""Readers of GPU cluster data: jobs of Philly (2017), jobs and quotas of Helios (2020).

Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019, as reduced
by ElasticFlow; Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters",
SC 2021.
"""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from workloads.file_text import FaultList, number_of, read_log_text, whole_number_of
from workloads.jobs.job_log import JobLog, sorted_job_log

PHILLY_SOURCE = "https://github.com/pkusys/ElasticFlow (pollux/pollux_simulator/traces/philly.csv, Apache-2.0)"
PHILLY_COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
HELIOS_COLUMNS = (
    "job_id", "vc", "gpu_num", "state", "submit_time", "start_time", "end_time", "duration", "queue",
)  # fmt: skip
HELIOS_ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")
HELIOS_NOT_ENDED = ("RUNNING", "SUSPENDED")
HELIOS_JOBS_SOURCE = "https://github.com/S-Lab-System-Group/HeliosData (data/CLUSTER/cluster_log.csv)"
HELIOS_SOURCE = "https://github.com/S-Lab-System-Group/HeliosArtifact (analysis, Earth_gpu_number.csv, MIT)"

_EPOCH = datetime(1970, 1, 1)  # the log states no zone; only differences are used


def _rows(path: str | Path, text: str, faults: FaultList) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of the header and of every row that has as many fields; empty lines are passed by."""
    reader = csv.reader(io.StringIO(text, newline=""))
    width: int | None = None
    try:
        for row in reader:
            if not any(field.strip() for field in row):
                continue
            if width is None:
                width = len(row)
            if len(row) == width:
                yield reader.line_num, [field.strip() for field in row]
            else:
                faults.add(reader.line_num, f"{len(row)} fields, and the header has {width}")
    except csv.Error as error:
        faults.add(reader.line_num, f"no CSV ({error})")
    if width is None:
        raise refuse(str(path), "the file is empty", "give the CSV file with its header")


@dataclass(frozen=True, kw_only=True)
class _PhillyJob:
    """One row of the Philly log."""

    submitted_s: float
    run_s: float
    gpus: int
    cluster: str


def _philly_job(row: dict[str, str]) -> _PhillyJob:
    """One row; ValueError says what is wrong."""
    submitted = _time_of(row["timestamp"], "timestamp")
    run_s, gpus = number_of(row["duration"], "duration"), whole_number_of(row["num_gpus"], "num_gpus")
    if run_s < 0:
        raise ValueError(f"duration of {row['duration'][:40]!r} is below zero")
    if gpus < 1:
        raise ValueError(f"num_gpus of {row['num_gpus'][:40]!r}: a job has at least one")
    gpu_s = number_of(row["gpu_time"], "gpu_time")
    if not math.isclose(gpu_s, run_s * gpus, rel_tol=1e-9, abs_tol=1e-3):
        raise ValueError(f"gpu_time of {gpu_s:g} is not duration times num_gpus, {run_s * gpus:g}")
    return _PhillyJob(submitted_s=(submitted - _EPOCH).total_seconds(), run_s=run_s, gpus=gpus, cluster=row["cluster"])


def read_philly(path: str | Path) -> JobLog:
    """Jobs of the Philly log: `run_s` without waiting and pauses, `owner` the virtual cluster, numbers by row.

    Rows may be in any order and repeat (two equal rows are two jobs); empty lines are passed by. What a job requested
    and how long it waited is not known. InputError names by line what is wrong.
    """
    faults = FaultList(path)
    rows = _rows(path, read_log_text(path, PHILLY_SOURCE), faults)
    line, names = next(rows)
    missing = [name for name in PHILLY_COLUMNS if name not in names]
    if missing:
        what = f"missing column {', '.join(missing)}"
        raise refuse(f"{path}:{line}", what, f"the header must name {', '.join(PHILLY_COLUMNS)}")
    jobs: list[_PhillyJob] = []
    for line, row in rows:
        try:
            jobs.append(_philly_job(dict(zip(names, row, strict=True))))
        except ValueError as error:
            faults.add(line, str(error))
    faults.raise_if_any()
    unknown = [math.nan] * len(jobs)
    return sorted_job_log(
        str(path),
        [job.submitted_s for job in jobs],
        number=list(range(1, len(jobs) + 1)),
        wait_s=unknown,
        run_s=[job.run_s for job in jobs],
        requested_s=unknown,
        processors=[job.gpus for job in jobs],
        owner=[job.cluster for job in jobs],
    )


def _time_of(text: str, name: str) -> datetime:
    """An instant without a zone; ValueError where it is none."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name} of {text[:40]!r} is no time as 2020-06-09 18:41:01") from None
    if instant.tzinfo is not None:
        raise ValueError(f"{name} of {text[:40]!r} names a zone, and this log has none")
    return instant


@dataclass(frozen=True, kw_only=True)
class _HeliosJob:
    """One row of a Helios log; times in seconds, NaN: not known."""

    number: int
    submitted_s: float
    wait_s: float
    run_s: float
    gpus: int
    owner: str


def _helios_job(row: dict[str, str]) -> _HeliosJob:
    """One row; ValueError says what is wrong."""
    state = row["state"].upper()
    if state not in (*HELIOS_ENDED, *HELIOS_NOT_ENDED):
        raise ValueError(f"state of {row['state'][:40]!r}: not one of {', '.join((*HELIOS_ENDED, *HELIOS_NOT_ENDED))}")
    submitted = _time_of(row["submit_time"], "submit_time")
    gpus = whole_number_of(row["gpu_num"], "gpu_num")
    if gpus < 0:
        raise ValueError(f"gpu_num of {row['gpu_num'][:40]!r} is below zero")
    wait_s, run_s = (number_of(row[name], name) if row[name] else math.nan for name in ("queue", "duration"))
    if min(wait_s, run_s) < 0:
        raise ValueError(f"{'queue' if wait_s < 0 else 'duration'} is below zero")
    if row["start_time"] and row["end_time"] and state in HELIOS_ENDED:
        started, ended = _time_of(row["start_time"], "start_time"), _time_of(row["end_time"], "end_time")
        for name, stated_s, apart in (("duration", run_s, ended - started), ("queue", wait_s, started - submitted)):
            apart_s = apart.total_seconds()
            if abs(stated_s - apart_s) > 1:
                raise ValueError(f"{name} of {stated_s:g} is not what lies between its times, {apart_s:g}")
    return _HeliosJob(
        number=whole_number_of(row["job_id"], "job_id"),
        submitted_s=(submitted - _EPOCH).total_seconds(),
        wait_s=wait_s,
        run_s=run_s if state in HELIOS_ENDED else math.nan,
        gpus=gpus,
        owner=row["vc"],
    )


def read_helios(path: str | Path) -> JobLog:
    """Jobs of a Helios cluster (`cluster_log.csv`): `owner` the virtual cluster, `number` the `job_id`.

    Quirks: rows may be in any order; jobs without GPUs are jobs of 0 `processors`; those that run or are suspended when
    the log ends have no `run_s`; times that are left out are not known; other columns are passed by. What a job
    requested is not in it. InputError names by line what is wrong, also times that contradict `duration` or `queue` by
    more than a second, and a `job_id` given twice.
    """
    faults = FaultList(path)
    rows = _rows(path, read_log_text(path, HELIOS_JOBS_SOURCE), faults)
    line, names = next(rows)
    missing = [name for name in HELIOS_COLUMNS if name not in names]
    if missing:
        what = f"missing column {', '.join(missing)}"
        raise refuse(f"{path}:{line}", what, f"the header must name {', '.join(HELIOS_COLUMNS)}")
    jobs: dict[int, _HeliosJob] = {}
    for line, row in rows:
        try:
            job = _helios_job(dict(zip(names, row, strict=True)))
            if job.number in jobs:
                raise ValueError(f"job_id {job.number} is given twice")
            jobs[job.number] = job
        except ValueError as error:
            faults.add(line, str(error))
    faults.raise_if_any()
    own = list(jobs.values())
    return sorted_job_log(
        str(path),
        [job.submitted_s for job in own],
        number=[job.number for job in own],
        wait_s=[job.wait_s for job in own],
        run_s=[job.run_s for job in own],
        requested_s=[math.nan] * len(own),
        processors=[job.gpus for job in own],
        owner=[job.owner for job in own],
    )


@dataclass(frozen=True, kw_only=True)
class Quotas:
    """GPUs that each owner had on each day: `gpus` (days, owners); the days rise."""

    days: tuple[date, ...]
    owners: tuple[str, ...]
    gpus: NDArray[np.int64]

    @property
    def total(self) -> NDArray[np.int64]:
        """GPUs of all owners by day."""
        return np.asarray(self.gpus.sum(axis=1), dtype=np.int64)

    @property
    def changes(self) -> NDArray[np.int64]:
        """How many quotas are not what they were the day before, from the second day on."""
        return np.asarray(np.count_nonzero(np.diff(self.gpus, axis=0), axis=1), dtype=np.int64)

    def shares(self, day: date) -> dict[str, float]:
        """Share of each owner that has GPUs on the last day not after `day` (the first day before the start)."""
        row = max(0, bisect_right(self.days, day) - 1)
        total = int(self.gpus[row].sum())
        return {
            owner: gpus / total for owner, gpus in zip(self.owners, self.gpus[row].tolist(), strict=True) if gpus > 0
        }


def read_helios_quotas(path: str | Path) -> Quotas:
    """Quotas of a Helios cluster by day. InputError names, by line, days out of order and sums that are not `total`."""
    faults = FaultList(path)
    rows = _rows(path, read_log_text(path, HELIOS_SOURCE), faults)
    line, names = next(rows)
    owners = [name for name in names if name not in ("date", "total")]
    if names[0] != "date" or "total" not in names or not owners or len(dict.fromkeys(names)) < len(names):
        write = "the header must name date, then each virtual cluster once, and total"
        raise refuse(f"{path}:{line}", "not the header of a Helios quota file", write)
    days: list[date] = []
    gpus: list[list[int]] = []
    for line, row in rows:
        try:
            by_name = dict(zip(names, row, strict=True))
            day = date.fromisoformat(by_name["date"])
            numbers = [whole_number_of(by_name[name], name) for name in owners]
            total = whole_number_of(by_name["total"], "total")
            if min(numbers) < 0:
                raise ValueError("a quota is below zero")
            if sum(numbers) != total:
                raise ValueError(f"the quotas add up to {sum(numbers)}, not to the total of {total}")
            if days and day <= days[-1]:
                raise ValueError(f"{day} does not come after {days[-1]}")
        except ValueError as error:
            faults.add(line, str(error))
            continue
        days.append(day)
        gpus.append(numbers)
    faults.raise_if_any()
    if not days:
        raise refuse(str(path), "no days below the header", f"get the file from {HELIOS_SOURCE}")
    return Quotas(days=tuple(days), owners=tuple(owners), gpus=np.array(gpus, dtype=np.int64))
