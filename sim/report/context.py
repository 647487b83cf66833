"""What a report knows besides the tables of a run: its name, settings, limits and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

Tables = Mapping[str, pd.DataFrame]


class Setting(NamedTuple):
    """One line of the effective configuration; `mark` is its source, or "assumption" where the value is ours."""

    label: str
    value: str
    mark: str = ""

    @property
    def is_assumption(self) -> bool:
        """True where the value is a guess of this project that the user may want to replace."""
        return self.mark.strip().lower().startswith("assum")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceLimits:
    """The promise of a service to its users: time to first token, time per later token, share of requests."""

    ttft_s: float
    tpot_s: float
    attainment: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportContext:
    """All that the page and the terminal print and that is not in a table.

    `settings` are (label, value, mark) in the order in which they are printed; `limits` holds the promise of each
    service by its name; `seed`, `wall_time_s` and `hall`, the grid of cubes, may be unknown (a report of tables alone).
    `pictures` are the names of those that are asked for, None where all are.
    """

    name: str
    description: str = ""
    settings: Sequence[tuple[str, str, str]] = ()
    warnings: Sequence[str] = ()
    limits: Mapping[str, ServiceLimits] = field(default_factory=dict)
    version: str = ""
    seed: int | None = None
    wall_time_s: float | None = None
    hall: tuple[int, int, int] | None = None
    pictures: Sequence[str] | None = None

    def marked_settings(self) -> list[Setting]:
        """The settings as named tuples."""
        return [Setting(*setting) for setting in self.settings]


def table_of(tables: Tables, name: str) -> pd.DataFrame:
    """The table `name`, or an empty frame without columns where the run has none."""
    table = tables.get(name)
    return pd.DataFrame() if table is None else table


def is_absent(tables: Tables, name: str) -> bool:
    """True where the run has no table `name`, or one without rows."""
    return table_of(tables, name).empty


ABSENT = {
    "availability": "no availability curves: the scenario has no `study.availability`",
    "promise": "no promises: the scenario has no `study.promise`",
    "cliff": "no cliffs: the scenario has no `study.availability`",
    "service": "no service: the scenario has no `serving`",
    "slice_sizes": "no comparison of slice sizes: the scenario has no `serving`",
    "ledger": "no ledger of requests: the scenario has no `serving`",
    "traffic": "no bytes by level of memory: the scenario has no `serving`",
    "token_floor": "no time per token over chips: the scenario has no `serving`",
    "request_life": "no request was followed: the scenario has no `serving.windows.record`",
    "disturbance": "no slowdown: the scenario has no `serving.disturbance`",
    "effects": "no comparison of combinations: the scenario has no `serving.effects`",
    "chip_hours": "no account of chip-hours: the scenario has no `study.delivered`",
    "operations": "no pod in operation: the scenario has no `study.operations`",
    "operations_chip_hours": "no account of a pod in operation: the scenario has no `study.operations`",
    "large_job": "no very large job: the scenario has no `study.large_job`",
    "measured_times": "no measured times to compare with: the scenario has no `study.passes.tables`",
    "errors_of_times": "no measured times to compare with: the scenario has no `study.passes.tables`",
    "passes": "no passes over models and contexts: the scenario has no `study.passes.grid`",
    "job_sizes": "no jobs by size: the scenario has no `study.operations`",
    "job_profiles": "no jobs by profile: no job of the scenario has one",
    "failures_felt": "no failures in operation: the scenario has no `study.operations`, or nothing failed",
    "recovery_stages": "no recoveries: the scenario has no `study.operations`, or no job was lost",
    "cube_story": "no cubes over time: the scenario has neither `study.operations` nor `study.delivered`",
    "slice_story": "no slices over time: the scenario has neither `study.operations` nor `study.delivered`",
    "switch_story": "no switches over time: no switch of the run was out",
    "promise_months": "no promise by month: the scenario has no `study.operations.promise`",
    "waterfall": "no waterfall: the scenario has no `serving`",
    "ideal": "no avoidable causes: run it with --ideal",
    "flows": "no flows: the report is of tables alone",
    "fleet": "no several pods: the scenario has no `study.fleet`",
    "fleet_queues": "no pods behind one queue: the scenario has no `study.fleet.one_queue`",
    "fleet_waits": "no waits for several pods: the scenario has no `study.fleet.one_queue`",
    "shared_pod": "no pod that serves and trains: the scenario has no `study.shared_pod`",
    "shared_pod_waits": "no waits of replicas: the scenario has no `study.shared_pod`",
    "shared_pod_day": "no day of a shared pod: the scenario has no `study.shared_pod`",
    "failure_story": "no failure followed token by token: the scenario has no `serving`, or no loss was drawn",
}


def absence(name: str) -> str:
    """Why a picture or section of table `name` is empty, in words for the reader."""
    return "Not in this run: " + ABSENT.get(name, f"no table `{name}`") + "."
