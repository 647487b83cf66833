"""What single changes of a machine are worth: `worth(scenario, knobs)`, behind the command `opticube worth`.

Each knob is turned alone, everything else and every draw equal (`sim.trials`); differences are paired. Where a service
states its `load` as a share of capacity, as many more users come as a change makes room for; with a `rate` they do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from sim.executors import open_executor
from sim.knobs import turned
from sim.metrics.intervals import Estimate
from sim.prices import HOURS_PER_YEAR, S_PER_YEAR
from sim.report.words import count_words, number, percent
from sim.scenario import Scenario
from sim.simulation import Progress
from sim.tables import Column, DType, TableSpec
from sim.trials import ToldTrials, Trial, Values, mean_of, paired, single_point
from topology.errors import refuse

CAPACITY_ERROR = 0.01
"""A capacity is found to 1 % (`sim.studies.service_parts`): where it changed, intervals of tokens are no narrower."""
MILLION = 1e6


def _figure(name: str, unit: str, meaning: str) -> tuple[Column, ...]:
    """A change with its interval."""
    return (
        Column(name, DType.FLOAT, unit, meaning),
        Column(f"{name}_low", DType.FLOAT, unit, "lower end of its paired 95 % interval; blank where none was seen"),
        Column(f"{name}_high", DType.FLOAT, unit, "upper end"),
    )


WORTH = TableSpec(
    "worth",
    "knob, the largest change first",
    (
        Column("knob", DType.TEXT, "", "its name"),
        Column("turned", DType.TEXT, "", "what it changes"),
        *_figure("tokens", "1", "tokens in time per second, relative change"),
        *_figure("delivered", "1", "`delivered` at the headline slice size, relative change"),
        *_figure("chip_hours", "chip h", "chip-hours in slices that run, per year, at that size"),
        Column("usd_per_year", DType.FLOAT, "USD", "what a year costs more"),
        *_figure("usd_per_million", "1", "money per million tokens in time, relative change"),
        Column("change", DType.FLOAT, "1", "what it is ranked by: the larger of the changes of tokens and delivered"),
    ),
)


@dataclass(frozen=True)
class Worth:
    """What each knob is worth: `table` in order, the answer as a `sentence`; `base` are the values before any change.

    `slice_chips` is the size that `delivered` is about: the largest of the study.
    """

    scenario: Scenario
    table: pd.DataFrame
    base: Mapping[str, float]
    slice_chips: int | None

    @property
    def sentence(self) -> str:
        """Which change is worth most and which least; where arithmetic is among them, its rank."""
        names, changes = [str(name) for name in self.table["knob"]], [float(each) for each in self.table["change"]]
        if len(names) < 2:
            return f"{names[0]}: {_signed(changes[0])}." if names else ""
        ends = (f"{names[at]} ({_signed(changes[at])})" for at in (0, -1))
        said = "Worth most: {}; least: {}.".format(*ends)
        places = [place for place, text in enumerate(self.table["turned"]) if "peak_flops_per_s" in str(text)]
        if not places:
            return said
        rank = f"{_ordinal(places[0] + 1)} of {count_words(len(names))}"
        behind = names[places[0] + 1 :]
        if not behind:
            return f"{said} Arithmetic ranks last, {rank}."
        return f"{said} Arithmetic does not rank last: it is {rank}, before {', '.join(behind)}."

    def _repr_html_(self) -> str:
        body = self.table.to_html(index=False, na_rep="", float_format=lambda value: f"{value:.4g}")
        return f"<p><strong>{escape(self.scenario.name)}</strong>: {escape(self.sentence)}</p>{body}"


def worth(
    scenario: Scenario,
    knobs: Sequence[str] | Mapping[str, str] = (),
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Worth:
    """What each knob is worth, largest first; by name, or texts such as `repair.crews=+1` or `recovery.circuits=x0.1`.

    Without any, those of the scenario's `study.worth`. A sweep is asked at its first point. InputError where a knob is
    wrong, or the scenario measures neither `delivered` nor services.
    """
    named = _named(scenario, knobs)
    if scenario.serving is None and scenario.study.delivered is None:
        what = "the scenario measures nothing that a knob could change"
        raise refuse(scenario.name, what, "add `study.delivered` or `serving`")
    base = single_point(scenario)
    changed = {name: turned(base, text) for name, text in named.items()}
    with open_executor(workers, executor) as pool:
        trials = ToldTrials(pool, progress, 1 + len(changed))
        before = trials.play(base, "as it is")
        chips = max(before.delivered_sizes, default=None)
        rows = [
            {"knob": name, "turned": named[name]} | _changes(before, trials.play(other, name), chips)
            for name, other in changed.items()
        ]
    rows.sort(key=lambda row: -abs(float(row["change"])))
    return Worth(scenario=scenario, table=WORTH.make(rows), base=_base(before, chips), slice_chips=chips)


def _named(scenario: Scenario, knobs: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    if knobs:
        if isinstance(knobs, Mapping):
            return dict(knobs)
        twice = next((text for place, text in enumerate(knobs) if text in knobs[:place]), None)
        if twice is not None:
            raise refuse(f"--knob {twice}", "the same knob is there twice", "leave one of them out")
        return {text: text for text in knobs}
    if scenario.study.worth is None:
        raise refuse(scenario.name, "no knob is named", "write `--knob KEY=VALUE`, or `study.worth.knobs`")
    return dict(scenario.study.worth.knobs)


def _base(trial: Trial, chips: int | None) -> dict[str, float]:
    return {
        "tokens_in_time_per_s": mean_of(trial.tokens_in_time_per_s),
        "delivered": mean_of(trial.of_jobs("delivered", chips)),
        "chip_hours_per_year": mean_of(_hours_per_year(trial, chips)),
        "usd_per_year": trial.cost.usd_per_year,
        "usd_per_million_tokens_in_time": mean_of(_usd_per_million(trial)),
    }


def _changes(base: Trial, changed: Trial, chips: int | None) -> dict[str, Any]:
    """The columns of one knob."""
    tokens = paired(changed.tokens_in_time_per_s, base.tokens_in_time_per_s, _relative)
    money = paired(_usd_per_million(changed), _usd_per_million(base), _relative)
    if _capacities(base) != _capacities(changed):
        tokens, money = (_no_narrower(estimate, CAPACITY_ERROR) for estimate in (tokens, money))
    delivered = paired(changed.of_jobs("delivered", chips), base.of_jobs("delivered", chips), _relative)
    hours = paired(_hours_per_year(changed, chips), _hours_per_year(base, chips))
    known = [estimate.value for estimate in (tokens, delivered) if math.isfinite(estimate.value)]
    return {
        **_columns("tokens", tokens),
        **_columns("delivered", delivered),
        **_columns("chip_hours", hours),
        "usd_per_year": changed.cost.usd_per_year - base.cost.usd_per_year,
        **_columns("usd_per_million", money),
        "change": max(known, key=abs, default=math.nan),
    }


def _columns(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_low": estimate.ci_low, f"{name}_high": estimate.ci_high}


def _relative(changed: float, base: float) -> float:
    return changed / base - 1.0 if base > 0 else math.nan


def _no_narrower(estimate: Estimate, half: float) -> Estimate:
    """The estimate with an error of its own beside that of its replications, in quadrature."""
    own = 0.0 if math.isnan(estimate.half_width) else estimate.half_width
    wide = math.hypot(own, half)
    return Estimate(
        value=estimate.value, ci_low=estimate.value - wide, ci_high=estimate.value + wide, n=estimate.n
    )  # fmt: skip


def _hours_per_year(trial: Trial, chips: int | None) -> Values:
    """Chip-hours a year in slices that run."""
    whole = trial.cost.chips * HOURS_PER_YEAR
    return {number: share * whole for number, share in trial.of_jobs("delivered", chips).items()}


def _usd_per_million(trial: Trial) -> Values:
    """Money of the whole pod over its tokens in time."""
    per_s = trial.cost.usd_per_year / S_PER_YEAR
    tokens = trial.tokens_in_time_per_s
    return {number: MILLION * per_s / rate for number, rate in tokens.items() if rate > 0}


def _capacities(trial: Trial) -> list[float]:
    return [trial.estimate_of_service(name, "capacity_requests_per_s") for name in trial.services]


def _signed(change: float) -> str:
    """A change in percent: as many digits as it takes to see it."""
    if not math.isfinite(change) or change == 0:
        return "no change"
    sign = "+" if change > 0 else "-"
    size = percent(abs(change), 1) if abs(change) >= 0.0995 else f"{number(100 * abs(change))} %"
    return f"{sign}{size}"


def _ordinal(place: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
    return words[place - 1] if place <= len(words) else f"number {place}"
