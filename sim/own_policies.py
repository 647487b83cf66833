"""A pod in operation under policies of one's own: a scenario's YAML names shipped policies only, Python plays any."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from sim.build import Setup, build_setup
from sim.conformance import check_placement_policy, check_queue_policy
from sim.measure_names import OPERATIONS_MEASURES
from sim.metrics.intervals import Estimate, mean_estimate
from sim.scenario import Scenario, expand
from sim.studies.operations import operations_count, sample_operations
from sim.tables import Column, DType, TableSpec
from topology.errors import Fault, InputError, refuse
from workloads.jobs.fitting import PlacementPolicy
from workloads.jobs.queueing import QueuePolicy

KEEP = "see `opticube.check_queue_policy` and `check_placement_policy` for the rules"

OWN_POLICIES = TableSpec(
    "own_policies",
    "fabric and measure",
    (
        Column("point", DType.INT, "", "number of the sweep point"),
        Column("fabric", DType.TEXT, "", "reconfigurable, static_aligned, static_contiguous or any_host"),
        Column("measure", DType.TEXT, "", "a measure of a pod in operation"),
        Column("unit", DType.TEXT, "", "unit of the values"),
        Column("scenario", DType.FLOAT, "see unit", "mean under the scenario's own policies"),
        Column("yours", DType.FLOAT, "see unit", "mean under the policies that were passed"),
        Column("difference", DType.FLOAT, "see unit", "yours - scenario, mean over paired replications"),
        Column("ci_low", DType.FLOAT, "see unit", "lower end of the paired 95 % t-interval"),
        Column("ci_high", DType.FLOAT, "see unit", "upper end of the paired 95 % t-interval"),
        Column("replications", DType.INT, "", "pairs"),
        Column("better", DType.TEXT, "", "higher or lower: which way is an improvement; blank where neither"),
    ),
)


def compare_policies(
    scenario: Scenario, *, queue: QueuePolicy | None = None, placement: PlacementPolicy | None = None
) -> pd.DataFrame:
    """What policies of one's own change on the pod in operation of `scenario`: a row per sweep point and measure.

    `queue` and `placement` stand in for those of `scheduling`; jobs, failures and all draws are the same, so that
    replications are paired. It plays in this process, so that a class of a notebook will do. Raises InputError where
    the scenario has no `study.operations`, or a policy does not keep the rules (`check_queue_policy`).
    """
    if scenario.study.operations is None:
        raise refuse("study.operations", "the scenario has no pod in operation", "write `study: {operations: {}}`")
    faults = [] if queue is None else [Fault("queue", text, KEEP) for text in check_queue_policy(queue)]
    if placement is not None:
        faults += [Fault("placement", text, KEEP) for text in check_placement_policy(placement)]
    if faults:
        raise InputError(faults)
    own = {"queue": queue, "placement": placement}
    rows = []
    for point in expand(scenario):
        scheduling = point.scenario.scheduling.model_copy(update={k: v for k, v in own.items() if v is not None})
        setups = [build_setup(point.scenario.model_copy(update=update)) for update in ({}, {"scheduling": scheduling})]
        base, yours = (_replications(setup) for setup in setups)
        for measure, (unit, better) in OPERATIONS_MEASURES.items():
            before, after = ([one[measure] for one in each] for each in (base, yours))
            change = _mean([mine - its for mine, its in zip(after, before, strict=True)])
            rows.append(
                {
                    "point": point.index,
                    "fabric": setups[0].fabric.value,
                    "measure": measure,
                    "unit": unit,
                    "scenario": _mean(before).value,
                    "yours": _mean(after).value,
                    "difference": change.value,
                    "ci_low": change.ci_low,
                    "ci_high": change.ci_high,
                    "replications": change.n,
                    "better": better,
                }
            )
    return OWN_POLICIES.make(rows)


def _replications(setup: Setup) -> list[dict[str, float]]:
    return [dict(sample_operations(setup, number).measures) for number in range(operations_count(setup.scenario))]


def _mean(values: Sequence[float]) -> Estimate:
    """The mean of what is there: NaN is a replication with nothing to measure."""
    known = [value for value in values if not math.isnan(value)]
    return mean_estimate(known) if known else Estimate(value=math.nan, n=0)
