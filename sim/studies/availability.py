"""The study `availability`: `expected`, `guaranteed` and `expected_with_light` from failure histories.

One history per (host availability, replication) is shared by all sizes and fabrics of a sweep. A task returns the time
at each capacity; rows of the tables are made from those of all replications.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim import closed_forms
from sim.build import Setup, replications_of, seconds_to_us
from sim.condition import component_counts
from sim.histories import ComponentKind, Outages
from sim.metrics.availability import (
    CapacityTimes,
    expected_share,
    guaranteed_share,
    light_sample,
    single_history,
    stacked,
    switch_edges,
    time_at_capacity,
    window_edges,
)
from sim.metrics.intervals import Estimate, agrees_with, mean_estimate
from sim.metrics.replicas import ReplicaDemand, ReplicaTimes, time_with_replicas
from sim.metrics.segments import segments_of
from sim.metrics.trace_outages import outages_of_trace
from sim.reroute_speeds import mean_rerouted_speed
from sim.scenario import Scenario
from sim.studies.delivered import play
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE, FlatPod

Ints = NDArray[np.int64]
Key = tuple[Fabric, int]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class AvailabilitySample:
    """What one history gives: per fabric and size the time at each capacity and the value of the light form.

    `capacity` holds one row, or a row per day where the history is a log. `replicas` holds the time with each number of
    replicas of the services up. `hosts_up` is the mean share of hosts up, `failure_draws` a digest of the outages.
    """

    replication: int
    capacity: Mapping[Key, CapacityTimes]
    with_light: Mapping[Key, float]
    replicas: Mapping[Fabric, ReplicaTimes]
    hosts_up: float
    failure_draws: str


def span_us(setup: Setup) -> tuple[int, int]:
    """First and last instant that are measured: after the warm-up, before the horizon (the end of a log's window)."""
    study = setup.scenario.study.availability
    assert study is not None
    return seconds_to_us(setup.scenario.run.warmup), setup.log_window_us or seconds_to_us(study.horizon)


def replication_count(scenario: Scenario) -> int:
    """Histories of the study; 0 where it is not asked for."""
    study = scenario.study.availability
    return 0 if study is None else replications_of(scenario, study.replications)


def sample_histories(setup: Setup, fabrics: Sequence[Fabric], replication: int) -> AvailabilitySample:
    """Draw (or replay) one history and measure every fabric and size on it.

    Where crews are scarce, outages depend on who waits for whom: then the history is played by SimPy, without jobs. It
    is one history for all fabrics here too, that of the machine with every component that the scenario names: what a
    fabric's numbers are does not depend on which others are run beside it.
    """
    span = span_us(setup)
    if setup.scenario.repair.crews is None:
        outages = setup.histories(replication, span[1])
    else:
        fabric = Fabric.ANY_HOST if isinstance(setup.pod, FlatPod) else Fabric.RECONFIGURABLE
        trace = play(replace(setup, fabric=fabric), CHIPS_PER_CUBE, replication, span[1], jobs=0)
        outages = outages_of_trace(trace, component_counts(setup.pod), setup.kinds)
    return measure_outages(setup, outages, span, fabrics, replication, daily=bool(setup.logs))


def replica_demands(setup: Setup) -> tuple[ReplicaDemand, ...]:
    """The services' slices in order, where their weights come from this study."""
    serving = setup.scenario.serving
    if serving is None or serving.weights != "availability":
        return ()
    return tuple(
        ReplicaDemand(service=service.name, slice_chips=service.shape().chips, replicas=service.replicas)
        for service in serving.services
    )


def measure_outages(
    setup: Setup,
    outages: Sequence[Outages],
    span: tuple[int, int],
    fabrics: Sequence[Fabric],
    replication: int,
    *,
    daily: bool = False,
) -> AvailabilitySample:
    """Measure every fabric and size on one set of outages; `daily` keeps a row per day for the bootstrap."""
    from_us, until_us = span
    switches = next((part for part in outages if part.kind is ComponentKind.OCS), None)
    days = window_edges(from_us, until_us) if daily else np.array(span, dtype=np.int64)
    light_edges, dead = (days, days[:-1] * 0) if switches is None else switch_edges(switches, *span)
    edges = np.unique(np.concatenate((days, light_edges)))
    segments = segments_of(setup.pod, outages, until_us, from_us=from_us, edges_us=edges)
    recovery, study = setup.scenario.recovery, setup.scenario.study.availability
    assert study is not None
    demands = replica_demands(setup)
    capacity: dict[Key, CapacityTimes] = {}
    with_light: dict[Key, float] = {}
    for fabric in fabrics:
        for chips in study.slice_chips:
            fine = time_at_capacity(segments, setup.pod, fabric, chips, edges_us=edges)
            capacity[fabric, chips] = _gathered(fine, edges, days)
            if switches is not None:
                with_light[fabric, chips] = light_sample(
                    _gathered(fine, edges, light_edges),
                    dead,
                    opt_in=recovery.reroute_opt_in,
                    kept=partial(mean_rerouted_speed, recovery, chips),
                )
    hosts_up = float(segments.hosts_up @ segments.duration_us / (segments.total_us * setup.pod.hosts))
    return AvailabilitySample(
        replication=replication,
        capacity=capacity,
        with_light=with_light,
        replicas={f: time_with_replicas(segments, setup.pod, f, demands) for f in fabrics} if demands else {},
        hosts_up=hosts_up,
        failure_draws=outages_digest(outages),
    )


def outages_digest(outages: Sequence[Outages]) -> str:
    """Digest of a history: equal exactly when every outage of every population is."""
    digest = hashlib.sha256()
    for part in outages:
        digest.update(part.kind.value.encode())
        for column in (part.component, part.start_us, part.end_us):
            digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()[:16]


def _gathered(times: CapacityTimes, edges: Ints, coarse: Ints) -> CapacityTimes:
    """Rows of windows between `edges` added up to windows between `coarse`, which are some of the edges."""
    if len(edges) == len(coarse):
        return times
    firsts = np.searchsorted(edges[:-1], coarse[:-1])
    return replace(times, time_us=np.add.reduceat(times.time_us, firsts, axis=0))


def availability_rows(setup: Setup, samples: Sequence[AvailabilitySample], host_availability: float) -> list[Row]:
    """Rows of the table `availability` for the fabric of `setup` (forms expected, guaranteed, expected_with_light)."""
    study = setup.scenario.study.availability
    assert study is not None
    rows: list[Row] = []
    for chips in study.slice_chips:
        key = (setup.fabric, chips)
        if setup.scenario.failures.log is not None:
            rows += _log_rows(setup, samples, key, host_availability)
            continue
        times = stacked([sample.capacity[key] for sample in samples])
        closed = _closed_forms(setup, chips, study.time_share)
        estimates = {"expected": expected_share(times), "guaranteed": guaranteed_share(times, study.time_share)}
        if samples[0].with_light:
            estimates["expected_with_light"] = mean_estimate([sample.with_light[key] for sample in samples])
        for form, estimate in estimates.items():
            row = estimate_row(setup, chips, form, estimate, host_availability)
            row["closed_form"] = closed.get(form)
            row["agrees"] = _agreement(form, estimate, closed.get(form))
            rows.append(row)
    return rows


def _closed_forms(setup: Setup, chips: int, time_share: float) -> dict[str, float | None]:
    cubes = getattr(setup.pod, "cubes", None)
    if not setup.is_independent or cubes is None:
        return {}
    return {
        "expected": closed_forms.expected_share(setup.fabric, cubes, chips, setup.odds),
        "guaranteed": closed_forms.guaranteed_share(setup.fabric, cubes, chips, setup.odds, time_share),
    }


def _agreement(form: str, estimate: Estimate, closed: float | None) -> bool | None:
    """`expected` agrees within its t-bound; `guaranteed`, a step function, only when it is the same step."""
    if closed is None:
        return None
    return math.isclose(estimate.value, closed, abs_tol=1e-9) if form == "guaranteed" else agrees_with(estimate, closed)


def _log_rows(setup: Setup, samples: Sequence[AvailabilitySample], key: Key, host_availability: float) -> list[Row]:
    """Rows of a real history: value and interval as means over shuffles of the placement, and the spread of values."""
    study = setup.scenario.study.availability
    assert study is not None
    rows: list[Row] = []
    found = [single_history(sample.capacity[key], study.time_share, setup.streams(0)) for sample in samples]
    for number, form in enumerate(("expected", "guaranteed")):
        values = [pair[number].value for pair in found]
        estimate = _over_shuffles([pair[number] for pair in found])
        row = estimate_row(setup, key[1], form, estimate, host_availability)
        if len(values) > 1:
            row["shuffle_low"], row["shuffle_high"] = min(values), max(values)
        rows.append(row)
    if samples[0].with_light:
        light = mean_estimate([sample.with_light[key] for sample in samples])
        rows.append(estimate_row(setup, key[1], "expected_with_light", light, host_availability))
    return rows


def _over_shuffles(estimates: Sequence[Estimate]) -> Estimate:
    """Mean over shuffles. Intervals come from the same days drawn again in every shuffle, so their ends are averaged.

    A shuffle without variation counts with its value; without variation in any there is no interval.
    """
    value = mean_estimate([each.value for each in estimates]).value
    varies = [not math.isnan(each.half_width) for each in estimates]
    if not any(varies):
        return replace(estimates[0], value=value)
    ends = [
        (each.ci_low, each.ci_high) if vary else (each.value,) * 2 for each, vary in zip(estimates, varies, strict=True)
    ]
    low, high = (mean_estimate([pair[end] for pair in ends]).value for end in (0, 1))
    return replace(estimates[0], value=value, ci_low=low, ci_high=high)


def estimate_row(setup: Setup, chips: int, form: str, estimate: Estimate, host_availability: float) -> Row:
    """One row of the table `availability`, closed form left blank."""
    study = setup.scenario.study.availability
    time_share = study.time_share if study is not None and form == "guaranteed" else None
    return {
        "fabric": setup.fabric.value,
        "host_availability": host_availability,
        "slice_chips": chips,
        "form": form,
        "time_share": time_share,
        "value": estimate.value,
        "ci_low": None if math.isnan(estimate.ci_low) else estimate.ci_low,
        "ci_high": None if math.isnan(estimate.ci_high) else estimate.ci_high,
        "replications": estimate.n,
        "closed_form": None,
        "agrees": None,
        "shuffle_low": None,
        "shuffle_high": None,
    }


def replication_rows(setup: Setup, samples: Sequence[AvailabilitySample], host_availability: float) -> list[Row]:
    """Rows of the table `replications`: the value of every form that is a mean, history by history."""
    study = setup.scenario.study.availability
    assert study is not None
    rows: list[Row] = []
    for chips in study.slice_chips:
        key = (setup.fabric, chips)
        for sample in samples:
            values = {"expected": _whole(sample.capacity[key])}
            if sample.with_light:
                values["expected_with_light"] = sample.with_light[key]
            for form, value in values.items():
                rows.append(
                    {
                        "fabric": setup.fabric.value,
                        "host_availability": host_availability,
                        "slice_chips": chips,
                        "form": form,
                        "replication": sample.replication,
                        "value": value,
                    }
                )
    return rows


def _whole(times: CapacityTimes) -> float:
    return float(replace(times, time_us=times.time_us.sum(axis=0, keepdims=True)).samples[0])
