"""Policies of one's own on a pod in operation, beside the scenario's, on the same draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from opticube import compare_policies, load
from sim.measure_names import OPERATIONS_MEASURES
from sim.scenario import Scenario
from topology.errors import InputError
from topology.policies import FirstFit
from workloads.jobs.queue_policies import Fifo, ShortestFirst
from workloads.jobs.queueing import Decision, QueueView, Start

SMALL = """\
name: small
pod: {cubes: 8, grid: 2x2x2}
failures:
  host: {failure_rate: 1 %/day, repair: {kind: exponential, mean: 8 h}}
jobs:
  streams:
    - name: mix
      load: 200 %
      slices: {kind: shares, shares: {4x4x4: 5, 4x8x8: 1}}
      durations: {kind: lognormal, mean: 4 h, cv: 2}
sweep:
  pod.fabric: [reconfigurable, static_aligned]
study: {operations: {horizon: 2 d, replications: 6}}
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """An overloaded small pod, first in first out."""
    path = tmp_path_factory.mktemp("own") / "small.yaml"
    path.write_text(SMALL)
    return load(path)


@dataclass(frozen=True, kw_only=True)
class Everything:
    """A broken policy: it starts whatever waits."""

    kind: Literal["everything"] = "everything"

    def decide(self, view: QueueView) -> Sequence[Decision]:
        """Start them all."""
        return [Start(job=one.job) for one in view.waiting]


def test_the_same_policy_changes_nothing(small: Scenario) -> None:
    """Goal: what is compared differs by the policy alone. Method: the scenario's own policies passed as one's own:
    every measure of every replication is the same, on both fabrics."""
    table = compare_policies(small, queue=Fifo(), placement=FirstFit())
    assert list(table["measure"]) == [*OPERATIONS_MEASURES] * 2
    assert list(dict.fromkeys(table["fabric"])) == ["reconfigurable", "static_aligned"]
    known = table.dropna(subset="difference")
    assert len(known) > 20
    assert (known["difference"] == 0).all()
    np.testing.assert_array_equal(table["scenario"], table["yours"])


def test_another_policy_is_told_apart(small: Scenario) -> None:
    """Goal: a policy has the effect that theory gives it. Method: shortest first shortens the mean wait of an
    overloaded queue, by more than the paired interval; arrivals are the same."""
    table = compare_policies(small, queue=ShortestFirst(overtake=True))
    waits = table[table["measure"] == "wait_mean_s"]
    assert len(waits) == 2
    assert (waits["ci_high"] < 0).all()
    np.testing.assert_allclose(waits["difference"], waits["yours"] - waits["scenario"])
    assert (table[table["measure"] == "jobs_arrived"]["difference"] == 0).all()


def test_what_can_not_be_compared_is_refused(small: Scenario) -> None:
    """Goal: a fault is named before anything runs. Method: a policy that starts what does not fit; a scenario without a
    pod in operation."""
    with pytest.raises(InputError, match="does not fit"):
        compare_policies(small, queue=Everything())
    with pytest.raises(InputError, match=r"study\.operations"):
        compare_policies(load("smoke"), queue=Fifo())
