"""Measures of services replication by replication, so that two runs can be compared with an error.

The windows, losses and histories behind a measure are dealt into n groups: group k of n holds numbers k, k + n,
k + 2 n, ... of each. Every measure is computed from each group alone, so a replication carries all of its randomness,
except that of the rate of requests where it is a load: that is a share of a capacity, which is found once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sim.build import Setup
from sim.metrics.replicas import ReplicaTimes
from sim.studies.service_rows import service_measures, weighted_services
from sim.studies.serving import ServiceOutcome, ServingOutcome

Row = dict[str, Any]
ONCE = ("offered_requests_per_s", "capacity_requests_per_s", "load_of_capacity", "simulated_share")
"""Measures that are found once for all windows: they have no replications."""


def groups_of(outcome: ServingOutcome, replicas: ReplicaTimes | None) -> int:
    """Number of groups: as many as there are windows, or histories where there are fewer of those (but not one)."""
    windows = min(len(service.steady[0]) for service in outcome.services)
    histories = 1 if replicas is None else len(replicas.time_us)
    return windows if histories == 1 else min(windows, histories)


def group_of(
    outcome: ServingOutcome, replicas: ReplicaTimes | None, number: int, groups: int
) -> tuple[ServingOutcome, ReplicaTimes | None]:
    """Windows, losses and histories of one group; a single history, or losses too few to be dealt, are in every one."""

    def dealt(service: ServiceOutcome) -> ServiceOutcome:
        steady = tuple(windows[number::groups] for windows in service.steady)
        tokens = service.tokens
        if tokens is not None:
            tokens = replace(tokens, traffic=tokens.traffic[number::groups] or tokens.traffic)
        losses = service.losses[number::groups] or service.losses
        disturbance = service.disturbance
        if disturbance is not None:
            disturbance = disturbance.of_repetitions(number, groups)
        curve = service.curve.of_repetitions(number, groups)
        return replace(service, steady=steady, losses=losses, tokens=tokens, curve=curve, disturbance=disturbance)

    own = replicas
    if replicas is not None and len(replicas.time_us) > 1:
        own = replace(
            replicas, time_us=replicas.time_us[number::groups], losses=replicas.losses[number::groups]
        )  # fmt: skip
    return ServingOutcome(services=tuple(map(dealt, outcome.services))), own


def service_replication_rows(
    setup: Setup, outcome: ServingOutcome, replicas: ReplicaTimes | None, host_availability: float
) -> list[Row]:
    """Rows of the table `service_replications` for one sweep point."""
    place: Row = {"fabric": setup.fabric.value, "host_availability": host_availability}
    groups = groups_of(outcome, replicas)
    rows: list[Row] = []
    for number in range(groups):
        for weighted in weighted_services(setup, *group_of(outcome, replicas, number, groups)):
            named = place | {"service": weighted.outcome.section.name, "replication": number}
            measures = {name: each for name, each in service_measures(weighted).items() if name not in ONCE}
            rows += [named | {"measure": name, "value": estimate.value} for name, estimate in measures.items()]
    return rows
