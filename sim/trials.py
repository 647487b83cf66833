"""One scenario and changes of it, played on the same draws: what was measured, and paired differences.

A trial is one sweep point. Draw k of a component, job or request is the same in every trial of a scenario
(`sim.streams`), so replications of two trials are pairs. What points of a run share (services that see no difference)
is simulated once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from sim.metrics.intervals import Estimate, mean_estimate
from sim.overrides import split_key, with_value, without
from sim.points import Advance, PointRunner
from sim.prices import MachineCost, machine_cost
from sim.scenario import Point, Scenario, scenario_of
from sim.strict_yaml import Document

Values = Mapping[int, float]
"""A measure by number of replication."""
UNMEASURED = (
    "study.promise",
    "study.passes",
    "study.shared_pod",
    "study.fleet",
    "study.large_job",
    "study.worth",
    "study.operations.promise",
    "serving.load_curve",
    "serving.disturbance",
    "serving.effects",
    "expect",
)
"""Parts of a scenario that a trial leaves out: they say nothing of what is compared."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What one trial measured."""

    scenario: Scenario
    host_availability: float
    tables: Mapping[str, pd.DataFrame]
    cost: MachineCost

    def of_jobs(self, form: str, slice_chips: int | None = None) -> Values:
        """A measure of slices or of a pod in operation (`delivered`, `goodput`, ...) by replication; may be empty."""
        table = self.tables.get("replications")
        if table is None:
            return {}
        rows = table[table["form"] == form]
        rows = rows[rows["slice_chips"].isna() if slice_chips is None else rows["slice_chips"] == slice_chips]
        return _by_replication(rows)

    def of_service(self, service: str, measure: str) -> Values:
        """A measure of one service by replication; may be empty."""
        table = self.tables.get("service_replications")
        if table is None:
            return {}
        return _by_replication(table[(table["service"] == service) & (table["measure"] == measure)])

    def estimate_of_service(self, service: str, measure: str) -> float:
        """The estimate of a measure of one service, as the table `service` has it; NaN without."""
        table = self.tables["service"]
        rows = table[(table["service"] == service) & (table["measure"] == measure)]
        return float(rows["value"].iloc[0]) if len(rows) else math.nan

    @property
    def services(self) -> list[str]:
        """Names of the services, in order."""
        return [] if self.scenario.serving is None else [each.name for each in self.scenario.serving.services]

    @property
    def tokens_in_time_per_s(self) -> Values:
        """Tokens in time per second of all services together."""
        serving = self.scenario.serving
        total: dict[int, float] = {}
        for section in serving.services if serving is not None else ():
            chips = section.replicas * section.shape().chips
            for number, chip_s in self.of_service(section.name, "chip_s_per_token_in_time").items():
                total[number] = total.get(number, 0.0) + (chips / chip_s if chip_s > 0 else 0.0)
        return total

    @property
    def delivered_sizes(self) -> Sequence[int]:
        """Slice sizes of the study `delivered`."""
        study = self.scenario.study.delivered
        return () if study is None else study.slice_chips


def _by_replication(rows: pd.DataFrame) -> dict[int, float]:
    return {int(number): float(value) for number, value in zip(rows["replication"], rows["value"], strict=True)}


def paired(
    changed: Values, base: Values, of: Callable[[float, float], float] = lambda changed, base: changed - base
) -> Estimate:
    """Mean over replications of `of` both values of a pair, with its paired t-interval; NaN without any pair."""
    values = [of(changed[number], base[number]) for number in sorted(changed) if number in base]
    values = [value for value in values if math.isfinite(value)]
    return mean_estimate(values) if values else Estimate(value=math.nan, n=0)


def mean_of(values: Values) -> float:
    """Mean over replications; NaN without any."""
    return float(np.mean(list(values.values()))) if values else math.nan


def log_ratio(changed: float, base: float) -> float:
    """Natural logarithm of a ratio; NaN where it has none."""
    return math.log(changed / base) if changed > 0 and base > 0 else math.nan


def with_settings(scenario: Scenario, settings: Mapping[str, object], place: str | None = None) -> Scenario:
    """The scenario with values at keys (None takes a key out); InputError where a key or a value is wrong.

    `place`: where the settings were written, for faults; the keys themselves where it is None.
    """
    document = Document(place or scenario.name, scenario.model_dump(mode="json", exclude_unset=True))
    for key, value in settings.items():
        path = split_key(key)
        document = without(document, path, key) if value is None else with_value(document, path, value, place or key)
    return scenario_of(document)


def single_point(scenario: Scenario) -> Scenario:
    """The first point of a scenario, without what a trial leaves out, and without jobs that nobody asks about then."""
    data = scenario.model_dump(mode="json", exclude_unset=True)
    data.pop("sweep", None)
    if scenario.study.operations is None:
        data.pop("jobs", None)
    for key in UNMEASURED:
        here = data
        *above, last = key.split(".")
        for part in above:
            here = (here.get(part) if isinstance(here, dict) else None) or {}
        here.pop(last, None)
    return scenario_of(Document(scenario.name, data))


class ToldTrials:
    """Trials that tell how many of them have been played, and which one is."""

    def __init__(
        self, executor: Executor | None, progress: Callable[[int, int, str], None] | None, trials: int
    ) -> None:
        """`progress` is called with trials played, `trials` in all, and what is being played."""
        self._trials = Trials(executor=executor, advance=self._inside)
        self._progress, self._count, self._done, self._name = progress, trials, 0, ""

    def play(self, scenario: Scenario, name: str) -> Trial:
        """The trial of a scenario, told under a name."""
        self._name = name
        self._inside(0, "")
        trial = self._trials.play(scenario)
        self._done += 1
        self._inside(0, "")
        return trial

    def _inside(self, tasks: int, about: str) -> None:
        """Some tasks of the present trial are done."""
        if self._progress is not None:
            self._progress(self._done, self._count, self._name)


@dataclass(kw_only=True)
class Trials:
    """Plays trials, each once, on one executor."""

    executor: Executor | None
    advance: Advance = lambda tasks, about: None
    _found: dict[str, Trial] = field(default_factory=dict)
    _runner: PointRunner = field(init=False)

    def __post_init__(self) -> None:
        """One runner for all trials: it keeps the services that they share."""
        self._runner = PointRunner(executor=self.executor, advance=self.advance)

    def play(self, scenario: Scenario) -> Trial:
        """The trial of a scenario without a sweep."""
        key = json.dumps(scenario.model_dump(mode="json"), sort_keys=True)
        if key not in self._found:
            (result,) = self._runner.run_group([Point(index=0, settings={}, scenario=scenario)])
            self._found[key] = Trial(
                scenario=scenario,
                host_availability=float(result.values["host_availability"]),
                tables=result.tables,
                cost=machine_cost(scenario.prices, scenario.pod.build(), scenario.pod.fabric, scenario.repair.crews),
            )
        return self._found[key]
