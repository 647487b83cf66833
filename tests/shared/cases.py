"""Small pods that serve and train, as scenarios, and what they give."""

from __future__ import annotations

from typing import Any

from sim.build import Setup, build_setup
from sim.scenario import expand, scenario_of
from sim.strict_yaml import parse_document
from sim.studies.shared_machines import SharedMachine, curve_of_service, machines_of
from workloads.autoscaling import ReplicaCurve

NO_DELAYS = "{evict: 0 s, circuits: 0 s, preflight: 0 s, restore: 0 s}"
STEP = "{kind: steps, rates: [10 requests/s, 35 requests/s, 35 requests/s, 20 requests/s]}"
FAILING = "{host: {availability: 97 %, repair: {kind: exponential, mean: 10 h}}, ocs: {failure_rate: 2 %/day, repair: {mean: 12 h}}}"  # noqa: E501


def small(
    *,
    failures: str = "{}",
    recovery: str = "{}",
    demand: str = STEP,
    service: str = "",
    jobs: str = "{streams: [{name: mix, load: 90 %, slices: {kind: shares, shares: {4x4x4: 3, 4x4x8: 1}}, durations: {mean: 6 h, cv: 1}}]}",  # noqa: E501
    queue: str = "{kind: priority, notice: true, overtake: true}",
    horizon: str = "4 h",
    more: str = "",
) -> Setup:
    """Eight cubes, replicas of one cube that serve 10 requests/s each, all of it used."""
    text = f"""\
name: small
pod: {{cubes: 8}}
failures: {failures}
health: {{detection: 60 s}}
recovery: {recovery}
jobs: {jobs}
scheduling: {{queue: {queue}}}
checkpoint: {{kind: fixed, interval: 1 h, save: 60 s}}
study:
  shared_pod:
    horizon: {horizon}
    replications: 2
    services:
      - name: chat
        slice: 4x4x4
        replica_rate: 10 requests/s
        demand: {demand}
        scaling: {{kind: follow, load: 99.99999 %, hold: 0 s}}
        most: 6
        cubes: 4
        {service or "drain: 0 s"}
{more}
run: {{seed: 3}}
"""
    if jobs == "none":
        text = text.replace("jobs: none\n", "")
    return build_setup(expand(scenario_of(parse_document(text.encode(), "small.yaml"), ()))[0].scenario)


def parts(setup: Setup) -> tuple[dict[str, SharedMachine], tuple[ReplicaCurve, ...]]:
    """The machines by kind, and the curves of the services."""
    study = setup.scenario.study.shared_pod
    assert study is not None
    curves = tuple(
        curve_of_service(setup.scenario, one, place, None, None, lambda tasks, about: None)
        for place, one in enumerate(study.services)
    )
    return {machine.kind: machine for machine in machines_of(setup)}, curves


def rows_named(rows: list[Any], verb: str) -> list[Any]:
    """The rows of a log with a verb."""
    return [row for row in rows if row[1] == verb]
