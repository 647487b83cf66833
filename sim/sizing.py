"""Sizes of machines that keep a promise, by simulation; `opticube size --simulate` is made of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import pandas as pd

from sim.cli_size import SHARE
from sim.closed_forms import cubes_for_promise
from sim.executors import map_tasks, open_executor
from sim.histories import ComponentKind
from sim.metrics.intervals import Estimate, mean_estimate
from sim.points import history_groups
from sim.quantities import AdviceError, parse_quantity
from sim.report.words import fabric_words
from sim.scenario import Scenario, expand
from sim.simulation import Progress
from sim.studies.promised_size import (
    Held,
    LeastCubes,
    PromisedSize,
    fits_somewhere,
    least_by_halving,
    least_in_turn,
    sample_share_held,
)
from sim.tables import Column, DType, TableSpec
from topology.errors import Fault, InputError, refuse
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE, CHIPS_PER_HOST
from topology.shape import parse_shape
from topology.units import Unit

MOST_CUBES = 2_000
"""Larger machines are not tried."""
BOXES_MOST = 4
"""Boxes are not looked for on machines so many times as large as do where cubes can be joined at will."""
LOOKS = ((1, 0.3), (4, 0.06))
"""First looks at a size of boxes: one that misses the promise by so much in so many replications is left at that."""

SIZES = TableSpec(
    "sizes",
    "fabric, for one set of slices",
    (
        Column("fabric", DType.TEXT, "", "how cubes or hosts are joined"),
        Column("held", DType.TEXT, "", "possible: the slices could be formed; running: jobs run on all of them"),
        Column("time_share", DType.FLOAT, "1", "share of time for which all are to be held at once"),
        Column("cubes", DType.INT_OR_NONE, "cubes", "fewest cubes whose mean keeps the promise; blank: none tried do"),
        Column("cubes_low", DType.INT_OR_NONE, "cubes", "fewest cubes whose upper 95 % limit keeps it"),
        Column("cubes_high", DType.INT_OR_NONE, "cubes", "fewest cubes whose lower 95 % limit keeps it"),
        Column("share", DType.FLOAT, "1", "share of time for which `cubes` cubes hold all, mean over replications"),
        Column("ci_low", DType.FLOAT, "1", "lower end of its 95 % interval"),
        Column("ci_high", DType.FLOAT, "1", "upper end of its 95 % interval"),
        Column("replications", DType.INT, "", "histories of each size"),
        Column("spares", DType.INT_OR_NONE, "cubes", "cubes beyond those that the slices fill"),
        Column("closed_form", DType.INT_OR_NONE, "cubes", "the same by closed form; blank where none holds"),
    ),
)


def size_by_simulation(
    scenario: Scenario,
    slices: Mapping[str, int],
    time_share: float | str = 0.97,
    *,
    fabrics: Sequence[Fabric | str] = tuple(Fabric),
    held: Held | str = Held.POSSIBLE,
    horizon: str = "365 d",
    replications: int = 32,
    level: float = 0.95,
    most: int = MOST_CUBES,
    workers: int | None = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """The fewest cubes that hold `slices`, such as `{"8x8x16": 3}`, for a share of the time: a row per fabric.

    The machine fails, is repaired and recovers as `scenario` says; how many cubes it has is what is sought. With `held`
    "running" a slice counts while a job runs on it, which takes the time of every recovery too. Raises InputError for a
    scenario whose machine can not be made larger: with a log, without cubes, or with a sweep of more than fabrics.
    """
    question = PromisedSize(
        scenario=_single(scenario),
        slices={parse_shape(text): count for text, count in slices.items()},
        held=Held(held),
        horizon_s=_quantity("horizon", horizon, Unit("s", open_ends=True)),
    )
    share = _quantity("time_share", time_share, SHARE)
    _check_crews(question, share)
    with open_executor(workers, executor) as pool:
        search = _Search(question, share, replications, level, most, pool, progress)
        rows = [_row(question, fabric, share, search.least(fabric), replications) for fabric in map(Fabric, fabrics)]
    return SIZES.make(rows)


def _check_crews(question: PromisedSize, time_share: float) -> None:
    """Refuse what no machine can hold: R crews, a repair of D each, keep at most R * life / D hosts up of any number.

    In the long run hosts that are up fail as fast as crews mend: up / life <= R / D.
    """
    repair = question.scenario.repair
    smallest = question.setup(Fabric.RECONFIGURABLE, question.fewest_cubes)
    crews, mode = repair.crews_for("host"), smallest.mode(ComponentKind.HOST)
    if crews is None or mode is None or repair.two_stage is not None:
        return
    at_work_s = mode.repair.mean_s - (0.0 if mode.overhead_s else question.scenario.health.rest_s("host"))
    most_up = crews * mode.life.mean_s / at_work_s if at_work_s > 0 else math.inf
    wanted = question.chips // CHIPS_PER_HOST
    if most_up < time_share * wanted:
        raise refuse(
            "repair.crews",
            f"{crews} {'crew keeps' if crews == 1 else 'crews keep'} at most {most_up:,.0f} hosts up in the long run, "
            f"on a machine of any size, and the slices need {wanted:,}",
            f"write at least {math.ceil(time_share * wanted * at_work_s / mode.life.mean_s)}, or a shorter repair",
        )


class _Search:
    """The search on one question: every size of every fabric is simulated once, as tasks on the executor."""

    def __init__(
        self,
        question: PromisedSize,
        time_share: float,
        replications: int,
        level: float,
        most: int,
        executor: Executor | None,
        progress: Progress | None,
    ) -> None:
        self._question, self._share, self._level, self._most = question, time_share, level, most
        self._replications, self._executor, self._progress = replications, executor, progress
        self._found: dict[tuple[Fabric, int], Estimate] = {}
        self._tasks = 0

    def least(self, fabric: Fabric) -> LeastCubes:
        """The answer for one fabric."""
        question, fewest = self._question, self._question.fewest_cubes
        boxes = fabric is Fabric.STATIC_CONTIGUOUS and max(d.slice_chips for d in question.demands) > CHIPS_PER_CUBE
        share_of = self._share_of(Fabric.RECONFIGURABLE if boxes else fabric)
        found = least_by_halving(
            share_of,
            self._share,
            fewest=fewest,
            most=self._most,
            hint=(_closed_form(question, fabric, self._share) or fewest) if question.is_drawn else fewest,
            unit=question.unit(fabric),
        )
        if not boxes or found.low is None:
            return found if not boxes else replace(found, cubes=None, high=None, share=None)
        # boxes never hold more than cubes that can be joined at will
        most = min(self._most, BOXES_MOST * found.low)
        sizes = (cubes for cubes in range(found.low, most + 1) if fits_somewhere(question, cubes))
        return least_in_turn(self._share_of(fabric, looks=True), self._share, sizes)

    def _share_of(self, fabric: Fabric, *, looks: bool = False) -> Callable[[int], Estimate]:
        def share_of(cubes: int) -> Estimate:
            if (fabric, cubes) not in self._found:
                shares: list[float] = []
                for count, far in (*(LOOKS if looks else ()), (self._replications, 0.0)):
                    shares += self._sample(fabric, cubes, range(len(shares), min(count, self._replications)))
                    if sum(shares) / len(shares) < self._share - far:
                        break
                self._found[fabric, cubes] = mean_estimate(shares, level=self._level)
            return self._found[fabric, cubes]

        return share_of

    def _sample(self, fabric: Fabric, cubes: int, replications: range) -> list[float]:
        tasks = [(self._question, fabric, cubes, replication) for replication in replications]
        shares = list(map_tasks(self._executor, sample_share_held, tasks))
        self._tasks += len(tasks)
        if self._progress is not None:
            self._progress(self._tasks, self._tasks, f"machines of many sizes, {fabric_words(fabric.value)}")
        return shares


def _closed_form(question: PromisedSize, fabric: Fabric, time_share: float) -> int | None:
    """By closed form: for the machine as it is where that holds, else as a place from which to search."""
    odds = question.setup(fabric, question.fewest_cubes).odds
    wanted = {demand.slice_chips: demand.replicas for demand in question.demands}
    return cubes_for_promise(fabric, wanted, odds, time_share, most=MOST_CUBES)


def _row(
    question: PromisedSize, fabric: Fabric, time_share: float, least: LeastCubes, replications: int
) -> dict[str, Any]:
    share = least.share or Estimate(value=float("nan"))
    holds = question.held is Held.POSSIBLE and question.setup(fabric, question.fewest_cubes).is_independent
    return {
        "fabric": fabric.value,
        "held": question.held.value,
        "time_share": time_share,
        "cubes": least.cubes,
        "cubes_low": least.low,
        "cubes_high": least.high,
        "share": share.value,
        "ci_low": share.ci_low,
        "ci_high": share.ci_high,
        "replications": replications,
        "spares": None if least.cubes is None else least.cubes - question.fewest_cubes,
        "closed_form": _closed_form(question, fabric, time_share) if holds else None,
    }


def _single(scenario: Scenario) -> Scenario:
    """The one machine that a scenario is about, whatever its fabric."""
    groups = history_groups(expand(scenario))
    if len(groups) > 1:
        keys = [key for key in scenario.sweep if key != "pod.fabric"]
        write = f"take it out with `--set sweep.{keys[0]}=null`"
        raise refuse("--scenario", f"the sweep of `{keys[0]}` makes several machines, one is sized at a time", write)
    single = groups[0][0].scenario
    if single.pod.kind == "flat":
        raise refuse("--scenario", "a flat machine has no cubes to be counted", "name a scenario of cubes")
    if single.failures.log is not None:
        what = "the log of a machine says nothing of a larger one"
        raise refuse("--scenario", what, "write the law that `opticube log` fits to it in place of `failures.log`")
    return single


def _quantity(where: str, value: float | str, unit: Unit) -> float:
    if isinstance(value, float):
        return value
    try:
        return parse_quantity(value, unit)
    except AdviceError as advice:
        raise InputError(Fault(where, advice.what, advice.write)) from None
