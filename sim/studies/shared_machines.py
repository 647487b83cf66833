"""The machines that the study of a shared pod compares, and what each service gives its replicas on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from sim.build import Setup, build_setup, seconds_to_us
from sim.executors import map_tasks
from sim.metrics.shared_pod import ReplicaJob
from sim.prices import PricesSection, machine_cost
from sim.processes.operations import ReplicaDelays
from sim.scenario import Scenario
from sim.scenario_parts import PodSection
from sim.scenario_services import ServiceSection
from sim.scenario_studies import MachineKind, SharedService
from sim.studies.service_parts import Calibration
from sim.studies.windows import WindowTask, steady_window
from topology.errors import refuse
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE, CHIPS_PER_HOST, Pod
from topology.shape import Shape, parse_shape
from workloads.autoscaling import (
    FixedReplicas,
    ReplicaCurve,
    ScalingPolicy,
    curve_of,
    flat_curve,
    terms_of,
    wanted_replicas,
)
from workloads.catalogue.model import BYTES_PER_VALUE
from workloads.jobs.job import Job, JobKind, make_job

LOADS = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)
"""Shares of a replica's capacity at which the token kernel says what it serves in time."""


@dataclass(frozen=True, kw_only=True)
class SharedMachine:
    """One machine: its parts, the cubes kept for serving (0: shared), and replicas always on by service if it has any.

    `kind` is `shared`, `fixed` or `fixed_equal_money`.
    """

    kind: MachineKind
    setup: Setup
    serving_cubes: int
    always_on: tuple[int, ...]


def service_of(scenario: Scenario, name: str) -> tuple[int, ServiceSection] | None:
    """The service of `serving` that bears a name, with its number; None where there is none."""
    services = scenario.serving.services if scenario.serving is not None else ()
    return next(((index, each) for index, each in enumerate(services) if each.name == name), None)


def shape_of_service(scenario: Scenario, service: SharedService) -> Shape:
    """The slice of one replica."""
    known = service_of(scenario, service.name)
    if known is not None:
        return known[1].shape()
    assert service.slice is not None, "the scenario was checked"
    return parse_shape(service.slice)


def delays_of_service(scenario: Scenario, service: SharedService) -> ReplicaDelays:
    """What a replica takes to load its weights and to be ready, and to drain.

    Every host loads its part of the weights: over the network and then its chips' links to it, whichever is slower.
    """
    known, shape = service_of(scenario, service.name), shape_of_service(scenario, service)
    weight_bytes, host_link = service.weights, None
    if known is not None:
        section, catalogue = known[1], scenario.catalogue
        host_link = catalogue.chips[section.chip].host_link_bytes_per_s
        if weight_bytes is None:
            weight_bytes = catalogue.models[section.model].weight_bytes(BYTES_PER_VALUE[section.weights])
    hosts = max(1, shape.chips // CHIPS_PER_HOST)
    rate = hosts * service.weights_rate
    if host_link is not None:
        rate = min(rate, shape.chips * host_link)
    return ReplicaDelays(weights_s=service.ready + (weight_bytes or 0.0) / rate, drain_s=service.drain)


def curve_of_service(
    scenario: Scenario,
    service: SharedService,
    place: int,
    own: Calibration | None,
    executor: Executor | None,
    advance: Callable[[int, str], None],
) -> ReplicaCurve:
    """What one replica serves in time over its rate, from the token kernel; flat where its rate is given.

    `own`: what a replica of the service of `serving` with its name can do; None without one. Raises InputError where
    the limits of the service are never met.
    """
    if service.replica_rate is not None:
        return flat_curve(service.replica_rate)
    known = service_of(scenario, service.name)
    assert known is not None, "the scenario was checked"
    assert own is not None, "services are calibrated first"
    if not own.meets:
        what = f"no rate of requests meets the limits of {service.name} on {own.shape}"
        raise refuse(f"study.shared_pod.services.{place}.name", what, "write wider limits under its `slo`")
    tasks = [
        WindowTask(
            service=known[0], rate_per_s=load * own.capacity_per_s, saturated_per_s=own.saturated_per_s, repetition=0
        )
        for load in LOADS
    ]
    windows = list(map_tasks(executor, steady_window, [(scenario, task, 1) for task in tasks]))
    points = [(task.rate_per_s, window.measures.tokens_in_time) for task, window in zip(tasks, windows, strict=True)]
    advance(1, f"{service.name}: what a replica serves")
    offered = sum(window.measures.offered for window in windows)
    return curve_of(own.capacity_per_s, points, sum(w.measures.count("offered_tokens") for w in windows) / offered)


def money_in_cubes(pod: Pod, fabric: Fabric, prices: PricesSection) -> int:
    """Cubes, wired for good, that cost as much a year (capital and energy) as a pod with this fabric, rounded down."""
    whole = machine_cost(prices, pod, fabric).usd_per_year
    each = machine_cost(prices, pod, Fabric.STATIC_ALIGNED).usd_per_year / pod.cubes
    return math.floor(whole / each + 1e-9) if each else pod.cubes


def machines_of(setup: Setup) -> list[SharedMachine]:
    """The machines that the study asks for, in its order. The divided ones are wired for good, in aligned blocks."""
    study, pod = setup.scenario.study.shared_pod, setup.pod
    assert study is not None
    assert isinstance(pod, Pod), "the scenario was checked"
    found = []
    for kind in study.machines:
        if kind == "shared":
            found.append(SharedMachine(kind=kind, setup=setup, serving_cubes=0, always_on=()))
            continue
        prices = setup.scenario.prices
        cubes = money_in_cubes(pod, setup.fabric, prices) if kind == "fixed_equal_money" else pod.cubes
        section = setup.scenario.pod.model_copy(update={"fabric": Fabric.STATIC_ALIGNED})
        if cubes != pod.cubes:
            section = PodSection(cubes=cubes, fabric=Fabric.STATIC_ALIGNED)
        own = [round(service.cubes * cubes / pod.cubes) for service in study.services]
        shapes = [shape_of_service(setup.scenario, service) for service in study.services]
        found.append(
            SharedMachine(
                kind=kind,
                setup=build_setup(setup.scenario.model_copy(update={"pod": section})),
                serving_cubes=sum(own),
                always_on=tuple(part * CHIPS_PER_CUBE // shape.chips for part, shape in zip(own, shapes, strict=True)),
            )
        )
    return found


def replicas_of(
    machine: SharedMachine, curves: tuple[ReplicaCurve, ...], first_number: int
) -> tuple[list[Job], list[ReplicaJob]]:
    """Replicas as jobs of the machine, numbered from `first_number` on, in order of arrival by service."""
    scenario = machine.setup.scenario
    study = scenario.study.shared_pod
    assert study is not None
    horizon_us = seconds_to_us(study.horizon)
    jobs: list[Job] = []
    replicas: list[ReplicaJob] = []
    for number, (service, curve) in enumerate(zip(study.services, curves, strict=True)):
        policy: ScalingPolicy = service.scaling
        least, most = service.least, service.most
        if machine.always_on:
            policy = FixedReplicas(count=machine.always_on[number])
            least, most = 0, machine.always_on[number]
        wanted = wanted_replicas(
            policy, service.demand.rates_per_s, capacity_per_s=curve.capacity_per_s, every_s=service.every,
            least=least, most=most, horizon_s=study.horizon,
        )  # fmt: skip
        shape = shape_of_service(scenario, service)
        for term in terms_of(wanted):
            identity = first_number + len(jobs)
            job = make_job(
                identity, machine.setup.pod, shape.chips, shape=shape, kind=JobKind.SERVING, arrival_us=term.from_us,
                priority=service.priority, owner=service.name,
            )  # fmt: skip
            jobs.append(replace(job, until_us=term.until_us))
            until_us = horizon_us if term.until_us is None else term.until_us
            replicas.append(ReplicaJob(job=identity, service=number, from_us=term.from_us, until_us=until_us))
    return jobs, replicas
