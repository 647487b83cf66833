"""Jobs as a log has them: arrays by job, in order of submission, whatever format they came from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse


@dataclass(frozen=True, kw_only=True)
class JobLog:
    """Jobs of a log; times in seconds from its first submission (float64, NaN: not known), `processors` 0: not known.

    `submit_s` does not fall; jobs submitted at one time keep the order of the log. `machine_processors`: how many the
    logged machine had, None where the log does not say.
    """

    source: str
    number: NDArray[np.int64]
    submit_s: NDArray[np.float64]
    wait_s: NDArray[np.float64]
    run_s: NDArray[np.float64]
    requested_s: NDArray[np.float64]
    processors: NDArray[np.int64]
    owner: tuple[str, ...]
    machine_processors: int | None = None

    @property
    def count(self) -> int:
        """Number of jobs."""
        return len(self.number)

    @property
    def work_processor_s(self) -> float:
        """Run time times processors over all jobs, what is not known counted as 0."""
        return float(np.nansum(self.run_s * self.processors))


def sorted_job_log(
    source: str,
    submit_s: list[float],
    *,
    number: list[int],
    wait_s: list[float],
    run_s: list[float],
    requested_s: list[float],
    processors: list[int],
    owner: list[str],
    machine_processors: int | None = None,
) -> JobLog:
    """A job log from lists in the order of the file; InputError where there are no jobs."""
    if not submit_s:
        raise refuse(source, "there are no jobs in it", "give a log with at least one job")
    submit = np.array(submit_s, dtype=np.float64)
    order = np.argsort(submit, kind="stable")
    seconds = [np.array(values, dtype=np.float64)[order] for values in (wait_s, run_s, requested_s)]
    return JobLog(
        source=source,
        number=np.array(number, dtype=np.int64)[order],
        submit_s=submit[order] - submit.min(),
        wait_s=seconds[0],
        run_s=seconds[1],
        requested_s=seconds[2],
        processors=np.array(processors, dtype=np.int64)[order],
        owner=tuple(owner[place] for place in order.tolist()),
        machine_processors=machine_processors,
    )
