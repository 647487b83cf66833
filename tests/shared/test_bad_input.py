"""What is wrong with a shared pod is said with the key to change."""

from __future__ import annotations

import pytest

from sim.scenario import scenario_of
from sim.strict_yaml import parse_document
from topology.errors import InputError

GOOD = """\
name: good
pod: {cubes: 8}
jobs: {always: {4x4x4: 2}}
scheduling: {queue: {kind: priority}}
study:
  shared_pod:
    horizon: 1 d
    services:
      - name: chat
        slice: 4x4x4
        replica_rate: 10 requests/s
        demand: {mean: 20 requests/s}
        most: 4
        cubes: 3
"""
CASES = {
    "flat pod": ("pod: {cubes: 8}", "pod: {kind: flat, hosts: 64, fabric: any_host}", "study.shared_pod: a flat"),
    "no queue of priorities": ("queue: {kind: priority}", "queue: {kind: easy}", "scheduling.queue: with `easy`"),
    "too many cubes": ("cubes: 3", "cubes: 8", "services.0.cubes: 8 cubes for serving leave nothing"),
    "cubes that hold no replica": ("slice: 4x4x4", "slice: 8x8x8", "services.0.cubes: 3 cubes hold no replica"),
    "larger than the pod": ("slice: 4x4x4", "slice: 8x8x16", "services.0.slice: a replica of 1,024 chips"),
    "no slice": ("        slice: 4x4x4\n", "", "services.0.name: no service of `serving` is called `chat`"),
    "no rate of a replica": ("        replica_rate: 10 requests/s\n", "", "services.0.name: no service of `serving`"),
    "rate without a unit": ("replica_rate: 10 requests/s", "replica_rate: 10", "services.0.replica_rate"),
    "rate of nothing": ("replica_rate: 10 requests/s", "replica_rate: 0 requests/s", "services.0.replica_rate"),
    "least above most": ("most: 4", "most: 4\n        least: 5", "services.0.least: at least 5 and at most 4"),
    "far too many": ("most: 4", "most: 200000", "services.0.most: 200,000 replicas"),
    "machine twice": ("horizon: 1 d", "horizon: 1 d\n    machines: [shared, shared]", "machines: a machine is named"),
    "no such machine": ("horizon: 1 d", "horizon: 1 d\n    machines: [rented]", "machines"),
    "looks too often": ("most: 4", "most: 4\n        every: 1 ms", "services.0.every: 86,400,000 looks"),
    "no file of rates": ("demand: {mean: 20 requests/s}", "demand: {kind: trace}", "services.0.demand: no file"),
    "file that is not there": (
        "demand: {mean: 20 requests/s}", "demand: {kind: trace, path: none.csv}", "demand.path: there is no file",
    ),
    "swing above all": ("{mean: 20 requests/s}", "{mean: 20 requests/s, swing: 1.5}", "services.0.demand"),
    "no steps": ("{mean: 20 requests/s}", "{kind: steps, rates: []}", "services.0.demand"),
    "unknown policy": ("most: 4", "most: 4\n        scaling: {kind: guess}", "services.0.scaling"),
    "negative count": ("most: 4", "most: 4\n        scaling: {kind: fixed, count: -1}", "services.0.scaling"),
    "unknown key": ("most: 4", "most: 4\n        drian: 60 s", "write `drain`"),
    "warm-up too long": ("name: good", "name: good\nrun: {warmup: 2 d}", "shared_pod.horizon: the horizon ends within"),
    "jobs for nobody": (
        GOOD.partition("study:")[2], " {promise: {slices: {4x4x4: 1}}}\n", "jobs: nobody asks about these jobs",
    ),
}  # fmt: skip


def test_the_base_is_good() -> None:
    """Goal: each case is bad for one reason. Method: the unedited scenario loads."""
    assert scenario_of(parse_document(GOOD.encode(), "good.yaml"), ()).study.shared_pod is not None


@pytest.mark.parametrize("name", list(CASES))
def test_bad_input(name: str) -> None:
    """Goal: a bad scenario is explained by the path of the key. Method: one edit, the fault that must be among those
    raised, no other kind of exception."""
    old, new, says = CASES[name]
    assert GOOD.count(old) == 1
    with pytest.raises(InputError) as caught:
        scenario_of(parse_document(GOOD.replace(old, new).encode(), "bad.yaml"), ())
    assert any(says in str(fault) for fault in caught.value.faults), "\n".join(map(str, caught.value.faults))
