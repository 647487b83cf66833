"""Where light stops being worth its delays and its price: `break_even(scenario)`, behind `opticube break-even`.

Time: the reconfiguration (`recovery.circuits`) of a reconfigurable pod is swept from 1 s to 24 h while a static pod of
equal hardware keeps its own; both meet the same draws. Price: how many times the prices of light (switches, ends,
fibres) may rise until a static pod gives the same for the same money; exact, since capital is linear in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from sim.executors import open_executor
from sim.prices import S_PER_YEAR, MachineCost
from sim.report.words import category_words, number, seconds
from sim.scenario import Scenario
from sim.simulation import Progress
from sim.tables import Column, DType, TableSpec
from sim.trials import ToldTrials, Trial, mean_of, paired, single_point, with_settings
from topology.errors import refuse
from topology.fabric import Fabric

TIMES_S = (1.0, 10.0, 60.0, 600.0, 3600.0, 4 * 3600.0, 12 * 3600.0, 24 * 3600.0)
"""Times of reconfiguration that are tried."""

TIMES = TableSpec(
    "break_even_times",
    "slice size and time of reconfiguration",
    (
        Column("slice_chips", DType.INT, "chips", "chips per slice"),
        Column("circuits_s", DType.FLOAT, "s", "time of a reconfiguration"),
        Column("delivered", DType.FLOAT, "1", "`delivered` of the reconfigurable pod"),
        Column("static", DType.FLOAT, "1", "`delivered` of the static pod"),
        Column("difference", DType.FLOAT, "1", "reconfigurable minus static, mean of pairs"),
        Column("ci_low", DType.FLOAT, "1", "lower end of its paired 95 % interval"),
        Column("ci_high", DType.FLOAT, "1", "upper end"),
    ),
)
PRICES = TableSpec(
    "break_even_prices",
    "what is bought: chip-hours of a slice size, or tokens in time",
    (
        Column("bought", DType.TEXT, "", "tokens in time, or chip-hours in slices of a size"),
        Column("light", DType.FLOAT, "USD", "its cost on the reconfigurable pod: a chip-hour, or a million tokens"),
        Column("static", DType.FLOAT, "USD", "the same on the static pod"),
        Column(
            "price_factor",
            DType.FLOAT,
            "1",
            "times the prices of light at which both cost the same; below 1: light "
            "is dearer now; infinite: the static pod gives nothing",
        ),
    ),
)


@dataclass(frozen=True)
class BreakEven:
    """The tables of both questions, and the answers as sentences."""

    scenario: Scenario
    times: pd.DataFrame
    prices: pd.DataFrame

    @property
    def sentences(self) -> list[str]:
        """One answer for each slice size, one for each thing that is bought."""
        sizes = list(dict.fromkeys(int(size) for size in self.times["slice_chips"]))
        said = [_time_sentence(size, self.times[self.times["slice_chips"] == size]) for size in sizes]
        return said + [_price_sentence(row) for _, row in self.prices.iterrows()]

    def _repr_html_(self) -> str:
        body = self.times.to_html(index=False, na_rep="", float_format=lambda value: f"{value:.4g}")
        return f"<p><strong>{escape(self.scenario.name)}</strong>: {escape(' '.join(self.sentences))}</p>{body}"


def break_even(
    scenario: Scenario,
    *,
    times_s: Sequence[float] = TIMES_S,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> BreakEven:
    """Where a reconfigurable pod is no better than a static one of equal hardware, in time and in price.

    Needs `study.delivered`; services, where there are some, are asked for the price of their tokens too. A sweep is
    asked at its first point. InputError where there is nothing to compare.
    """
    if scenario.study.delivered is None:
        raise refuse(scenario.name, "nothing tells what slices get", "add `study.delivered`")
    if scenario.pod.kind == "flat":
        raise refuse("pod.kind", "a flat machine has no light", "ask it of a pod of cubes")
    base = single_point(scenario)
    light, wires = (with_settings(base, {"pod.fabric": fabric.value}) for fabric in _PAIR)
    alone = {"serving": None, "study.availability": None, "study.operations": None, "jobs": None}
    with open_executor(workers, executor) as pool:
        trials = ToldTrials(pool, progress, len(times_s) + len(_PAIR))
        whole = [trials.play(each, _TOLD) for each in (light, wires)]
        slowed = (with_settings(light, alone | {"recovery.circuits": f"{time_s!r} s"}) for time_s in times_s)
        swept = [trials.play(each, _TOLD) for each in slowed]
    rows = [row for time_s, trial in zip(times_s, swept, strict=True) for row in _time_rows(time_s, trial, whole[1])]
    rows.sort(key=lambda row: (row["slice_chips"], row["circuits_s"]))
    return BreakEven(scenario=scenario, times=TIMES.make(rows), prices=PRICES.make(list(_price_rows(*whole))))


_PAIR = (Fabric.RECONFIGURABLE, Fabric.STATIC_ALIGNED)
_TOLD = "light against wires"


def _time_rows(time_s: float, light: Trial, wires: Trial) -> Iterator[dict[str, Any]]:
    for chips in light.delivered_sizes:
        ours, theirs = (trial.of_jobs("delivered", chips) for trial in (light, wires))
        change = paired(ours, theirs)
        yield {
            "slice_chips": chips,
            "circuits_s": time_s,
            "delivered": mean_of(ours),
            "static": mean_of(theirs),
            "difference": change.value,
            "ci_low": change.ci_low,
            "ci_high": change.ci_high,
        }


def _price_rows(light: Trial, wires: Trial) -> Iterator[dict[str, Any]]:
    """Money per unit on both pods, and the factor on the prices of light that makes them equal."""
    for chips in light.delivered_sizes:
        gives = [mean_of(trial.of_jobs("delivered", chips)) for trial in (light, wires)]
        hours = [
            trial.cost.usd_per_chip_hour / share if share > 0 else math.inf
            for trial, share in _both(light, wires, gives)
        ]
        yield _price_row(f"chip-hours in slices of {chips:,} chips", hours, gives, light.cost, wires.cost)
    if light.services:
        gives = [mean_of(trial.tokens_in_time_per_s) for trial in (light, wires)]
        costs = [
            1e6 * trial.cost.usd_per_year / S_PER_YEAR / rate if rate > 0 else math.inf
            for trial, rate in _both(light, wires, gives)
        ]
        names = " and ".join(category_words(name) for name in light.services)
        yield _price_row(f"million tokens in time of {names}", costs, gives, light.cost, wires.cost)


def _both(light: Trial, wires: Trial, gives: Sequence[float]) -> Iterator[tuple[Trial, float]]:
    yield from zip((light, wires), gives, strict=True)


def _price_row(
    bought: str, costs: Sequence[float], gives: Sequence[float], light: MachineCost, wires: MachineCost
) -> dict[str, Any]:
    """(others + factor x capital of light) / what light gives = cost of wires / what wires give."""
    of_light = light.capital_usd_per_year * light.links_share
    affordable = math.inf if gives[1] <= 0 else gives[0] / gives[1] * wires.usd_per_year
    factor = (affordable - (light.usd_per_year - of_light)) / of_light if of_light > 0 else math.nan
    return {"bought": bought, "light": costs[0], "static": costs[1], "price_factor": factor}


def crossing_s(times_s: Sequence[float], differences: Sequence[float]) -> float:
    """The time at which a falling difference reaches zero, linear in the logarithm of the time between two tries.

    0 where it is nowhere above zero, infinite where it stays above.
    """
    if differences[0] <= 0:
        return 0.0
    for at in range(1, len(times_s)):
        if differences[at] <= 0:
            above, below = differences[at - 1], differences[at]
            low, high = math.log(times_s[at - 1]), math.log(times_s[at])
            return math.exp(low + (high - low) * above / (above - below))
    return math.inf


def _time_sentence(chips: int, rows: pd.DataFrame) -> str:
    times, differences = (rows[name].to_numpy(dtype=float) for name in ("circuits_s", "difference"))
    at = crossing_s(list(times), list(differences))
    slices = f"Slices of {chips:,} chips"
    best, worst = (f"{100 * value:+.1f} points" for value in (differences[0], differences[-1]))
    if at == 0.0:
        return f"{slices}: reconfiguring is no better than static wiring even in {seconds(times[0])} ({best})."
    if math.isinf(at):
        return f"{slices}: reconfiguring stays better than static wiring up to {seconds(times[-1])} ({best}, {worst})."
    first = f"{best} in {seconds(times[0])}{_limits(rows, list(times))}"
    return f"{slices}: reconfiguring is no better than static wiring from {seconds(at)} on ({first})."


def _limits(rows: pd.DataFrame, times_s: Sequence[float]) -> str:
    """Between which times the limits of the paired interval cross zero; nothing without an interval."""
    limits = [rows[name].to_numpy(dtype=float) for name in ("ci_low", "ci_high")]
    if not all(math.isfinite(value) for each in limits for value in each):
        return ""
    low, high = (crossing_s(times_s, list(each)) for each in limits)
    first = f"below {seconds(times_s[0])}" if low == 0.0 else seconds(low)
    last = f"over {seconds(times_s[-1])}" if math.isinf(high) else seconds(high)
    return f"; 95 %: {first} to {last}"


def _price_sentence(row: pd.Series) -> str:
    bought, factor = str(row["bought"]).capitalize(), float(row["price_factor"])
    if math.isinf(factor):
        return f"{bought}: static wiring gives none, at any price of light."
    if factor <= 0:
        return f"{bought}: static wiring is cheaper even if light were free."
    than = "is cheaper already: light would have to cost" if factor < 1 else "becomes cheaper once light costs"
    return f"{bought}: static wiring {than} {number(factor)} times its price."
