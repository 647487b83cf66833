"""`opticube run --ideal`: avoidable causes removed one by one and together, held against the ledger.

Every trial meets the same draws, so changes are paired. The ledger says what a cause takes; removing it may give less
(what waited for it waits for something else) or more (what it delayed was delayed by others too). The interaction is
log(together) - sum of log(single), each over the scenario as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sim.causes import JOB_CAUSES, SERVICE_CAUSES, Cause
from sim.metrics.intervals import Estimate
from sim.metrics.uses import RUN_USES
from sim.points import Advance
from sim.run_tables import make_table
from sim.scenario import Point, Scenario
from sim.trials import Trial, Trials, Values, log_ratio, mean_of, paired, single_point, with_settings
from topology.errors import InputError

Row = dict[str, Any]
AS_IT_IS, TOGETHER, SUM, INTERACTION = "as it is", "all together", "sum of the single ones", "interaction"


@dataclass(frozen=True, kw_only=True)
class _Measure:
    """What is compared: a measure of slices, of the pod in operation, or of a service."""

    name: str
    unit: str
    slice_chips: int | None = None
    service: str | None = None

    def of(self, trial: Trial) -> Values:
        """Its values in a trial."""
        if self.service is not None:
            return trial.of_service(self.service, self.name)
        return trial.of_jobs(self.name, self.slice_chips)

    def booked(self, trial: Trial, names: Sequence[str]) -> float | None:
        """What the ledger of a trial has under these names, in the measure's unit; None where nothing is booked."""
        if self.name == "delivered":  # which counts all running, slowed and undone as well
            names = [name for name in names if name not in RUN_USES]
        if not names:
            return None
        table, key, value = self._ledger(trial)
        return float(table.loc[table[key].isin(list(names)), value].sum()) if len(table) else None

    def _ledger(self, trial: Trial) -> tuple[pd.DataFrame, str, str]:
        if self.service is not None:
            table = trial.tables["ledger"]
            rows = table[(table["service"] == self.service) & (table["scope"] == "all")]
            return rows, "category", "seconds_per_request"
        if self.slice_chips is None:
            return trial.tables["operations_chip_hours"], "use", "share"
        table = trial.tables["chip_hours"]
        return table[table["slice_chips"] == self.slice_chips], "use", "share"


def ideal_table(points: Sequence[Point], executor: Executor | None, advance: Advance) -> pd.DataFrame | None:
    """The table `ideal` of a run's points; None where they measure nothing that has causes."""
    trials = Trials(executor=executor, advance=advance)
    parts = []
    for point in points:
        rows = [*_job_rows(point.scenario, trials), *_service_rows(point.scenario, trials)]
        if rows:
            parts.append(make_table("ideal", rows, point.settings))
    return pd.concat(parts, ignore_index=True) if parts else None


def _job_rows(scenario: Scenario, trials: Trials) -> list[Row]:
    """Slices in demand without end, and the pod in operation."""
    study = scenario.study
    if study.delivered is None and study.operations is None:
        return []
    alone = with_settings(single_point(scenario), {"serving": None, "study.availability": None})
    measures = [_Measure(name="goodput", unit="1")] if study.operations is not None else []
    if study.delivered is not None:
        measures += [_Measure(name="delivered", unit="1", slice_chips=chips) for chips in study.delivered.slice_chips]
    return list(_rows(alone, JOB_CAUSES, measures, trials))


def _service_rows(scenario: Scenario, trials: Trials) -> list[Row]:
    """Seconds of a request and tokens in time, at the rates of the services as they are."""
    if scenario.serving is None:
        return []
    settings = {"study.delivered": None, "study.operations": None, "jobs": None}
    alone = with_settings(single_point(scenario), settings)
    first = trials.play(alone)
    rates: dict[str, object] = {}
    for index, section in enumerate(scenario.serving.services):
        if section.load is not None:
            rate = first.estimate_of_service(section.name, "offered_requests_per_s")
            rates |= {f"serving.services.{index}.load": None, f"serving.services.{index}.rate": f"{rate!r} 1/s"}
    measures = [
        _Measure(name=name, unit=unit, service=section.name)
        for section in scenario.serving.services
        for name, unit in (("request_mean_s", "s"), ("tokens_in_time", "1"))
    ]
    return list(_rows(with_settings(alone, rates), SERVICE_CAUSES, measures, trials))


def _rows(scenario: Scenario, causes: Sequence[Cause], measures: Sequence[_Measure], trials: Trials) -> Iterator[Row]:
    """For each measure: as it is, without each cause, their sum, without all of them, and the interaction."""
    present = [(cause, cause.without(scenario)) for cause in causes]
    present = [(cause, settings) for cause, settings in present if settings]
    base = trials.play(scenario)
    played = [(cause, _played(scenario, settings, trials)) for cause, settings in present]
    singles = [(cause, trial) for cause, trial in played if trial is not None]
    everything = {key: value for _, settings in present for key, value in settings.items()}
    together = _played(scenario, everything, trials)
    for measure in measures:
        place = _place(base, measure)
        before = measure.of(base)
        yield place | _line(AS_IT_IS, Estimate(value=mean_of(before)), None)
        for cause, trial in singles:
            change = paired(measure.of(trial), before)
            yield place | _line(cause.name, change, _signed(measure, measure.booked(base, cause.booked)))
        if together is None or not singles:
            continue
        values = [measure.of(trial) for _, trial in singles]
        total = {number: sum(each[number] for each in values) - (len(values) - 1) * before[number] for number in before}
        yield place | _line(SUM, paired(total, before), None)
        yield place | _line(TOGETHER, paired(measure.of(together), before), None)
        yield place | _line(INTERACTION, _interaction(before, values, measure.of(together)), None) | {"unit": "ln"}


def _played(scenario: Scenario, settings: Mapping[str, object], trials: Trials) -> Trial | None:
    """The trial without a cause; None where the scenario can not be without it."""
    try:
        return trials.play(with_settings(scenario, settings))
    except InputError:
        return None


def _signed(measure: _Measure, booked: float | None) -> float | None:
    """What the ledger says that removing a cause changes: shares rise, seconds fall; of tokens in time nothing."""
    if booked is None or measure.name == "tokens_in_time":
        return None
    return -booked if measure.unit == "s" else booked


def _interaction(base: Values, singles: Sequence[Values], together: Values) -> Estimate:
    """log(together / base) - sum of log(single / base), replication by replication."""
    parts = {
        number: sum(log_ratio(single[number], base[number]) for single in singles)
        for number in base
        if all(number in single for single in singles)
    }
    logs = {number: log_ratio(together[number], base[number]) for number in parts if number in together}
    known = {number: value for number, value in logs.items() if math.isfinite(value - parts[number])}
    return paired(known, parts)


def _place(trial: Trial, measure: _Measure) -> Row:
    return {
        "fabric": trial.scenario.pod.fabric.value,
        "host_availability": trial.host_availability,
        "slice_chips": measure.slice_chips,
        "service": measure.service,
        "measure": measure.name,
        "unit": measure.unit,
    }


def _line(cause: str, change: Estimate, ledger: float | None) -> Row:
    bounds = {"ci_low": change.ci_low, "ci_high": change.ci_high}
    return {"cause": cause, "value": change.value, **bounds, "ledger": ledger, "n": change.n}
