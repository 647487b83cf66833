"""The study `shared_pod`: replicas follow the day's demand beside training, on machines that are shared or divided.

All machines meet the same training jobs, the same demand and the same lives and repairs of their components; the cubes
that more money buys come last. So differences between machines are paired, replication by replication.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.build import Setup, seconds_to_us
from sim.condition import component_counts
from sim.executors import map_tasks
from sim.histories import US_PER_S
from sim.job_plans import plan_jobs
from sim.metrics.chip_hours import chip_us_by_use
from sim.metrics.ledger import JobLedger, job_ledgers
from sim.metrics.shared_pod import (
    ReplicaJob,
    ServiceOnPod,
    WaitCause,
    cubes_moved,
    cubes_out,
    held_chips,
    losses_at,
    service_on_pod,
    stages_by_job,
    told_to_make_way,
    training_chip_us,
)
from sim.metrics.uses import Use
from sim.prices import HOURS_PER_YEAR, machine_cost
from sim.scenario import Scenario
from sim.studies.job_plays import play_jobs
from sim.studies.serving import ServingOutcome
from sim.studies.shared_machines import (
    SharedMachine,
    curve_of_service,
    delays_of_service,
    machines_of,
    replicas_of,
)
from sim.studies.shared_pod_rows import rows_of_shared_pod
from sim.trace import FULL_SPEED_PPM, StageInterval, Trace, Verb
from topology.pod import CHIPS_PER_CUBE
from workloads.autoscaling import ReplicaCurve, served_in_time

Row = dict[str, Any]
Floats = NDArray[np.float64]
US_PER_DAY = 86_400 * US_PER_S
US_PER_HOUR = 3600 * US_PER_S
LOOK_US = 600 * US_PER_S
"""Between two looks of the series that pictures of a day are made of."""


@dataclass(frozen=True, kw_only=True)
class SharedPodSample:
    """One replication on one machine.

    `measures` by service (empty: of the pod) and name; `wait_s` seconds of waiting of replicas per day by service and
    cause; `chip_us` by use. `series` of the first replication: by name numbers (T,) at looks `LOOK_US` apart from the
    end of the warm-up, those of services as `NAME service`.
    """

    machine: str
    replication: int
    measures: Mapping[tuple[str, str], float]
    wait_s: Mapping[tuple[str, str], float]
    chip_us: Mapping[Use, int]
    series: Mapping[str, Floats]


def play_shared_pod(
    machine: SharedMachine, base: Setup, curves: tuple[ReplicaCurve, ...], replication: int, *, checks: bool = False
) -> tuple[list[ReplicaJob], dict[int, int], Trace]:
    """The replicas, the chips of training jobs by number, and the log of one replication on one machine.

    `base` is the setup of the scenario: its pod says how much training is asked for.
    """
    scenario, streams = base.scenario, base.streams(replication)
    study = scenario.study.shared_pod
    assert study is not None
    horizon_us = seconds_to_us(study.horizon)
    training = list(plan_jobs(scenario, base.pod, base.fabric, streams, horizon_us).jobs) if scenario.jobs else []
    jobs, replicas = replicas_of(machine, curves, first_number=len(training))
    trace = play_jobs(
        machine.setup,
        sorted([*training, *jobs], key=lambda job: (job.arrival_us, job.id)),
        replication,
        horizon_us,
        services={service.name: delays_of_service(scenario, service) for service in study.services},
        serving_cubes=machine.serving_cubes,
        check_invariants=checks,
    )
    return replicas, {job.id: job.chips for job in training}, trace


def sample_shared_pod(
    machine: SharedMachine, base: Setup, curves: tuple[ReplicaCurve, ...], replication: int
) -> SharedPodSample:
    """Play one replication on one machine and measure it after the warm-up (a task)."""
    study, warmup_us = base.scenario.study.shared_pod, seconds_to_us(base.scenario.run.warmup)
    assert study is not None
    replicas, training, trace = play_shared_pod(machine, base, curves, replication)
    stages, way = stages_by_job(trace), told_to_make_way(trace)
    days = (trace.horizon_us - warmup_us) / US_PER_DAY
    ledgers = job_ledgers(trace, warmup_us)
    measures = _of_pod(trace, ledgers, replicas, warmup_us, days)
    useful_us, training_us = training_chip_us(ledgers, replicas)
    usd_per_chip_us = _usd_per_chip_us(machine, days, training_us + _serving_us(ledgers, replicas))
    trained_usd = usd_per_chip_us * training_us * US_PER_HOUR
    measures["", "training_usd_per_chip_hour"] = trained_usd / useful_us if useful_us else float("nan")
    wait_s: dict[tuple[str, str], float] = {}
    found = []
    for number, (service, curve) in enumerate(zip(study.services, curves, strict=True)):
        own = [replica for replica in replicas if replica.service == number]
        of = service_on_pod(
            trace, stages, way, own,
            rates_at=service.demand.rates_per_s, served_at=partial(served_in_time, curve), warmup_us=warmup_us,
        )  # fmt: skip
        found.append(of)
        measures |= {(service.name, name): value for name, value in _of_service(of, days).items()}
        if curve.tokens_per_request is not None:
            held_us = _serving_us(ledgers, own)
            tokens = of.in_time * curve.tokens_per_request
            usd = usd_per_chip_us * held_us
            measures[service.name, "pod_usd_per_million_tokens"] = 1e6 * usd / tokens if tokens else float("nan")
        wait_s |= {(service.name, cause.value): of.wait_us[cause] / US_PER_S / days for cause in WaitCause}
    return SharedPodSample(
        machine=machine.kind,
        replication=replication,
        measures=measures,
        wait_s=wait_s,
        chip_us=chip_us_by_use(trace, warmup_us),
        series=_series(machine, base, trace, stages, found, replicas, training) if replication == 0 else {},
    )


def _serving_us(ledgers: Sequence[JobLedger], replicas: Sequence[ReplicaJob]) -> int:
    """Chip-microseconds that replicas hold."""
    serving = {replica.job for replica in replicas}
    return sum(
        ledger.chips * (sum(ledger.us.values()) - ledger.us[Use.WAITING]) for ledger in ledgers if ledger.job in serving
    )


def _usd_per_chip_us(machine: SharedMachine, days: float, held_us: int) -> float:
    """What the machine costs in the time measured, over the chip-microseconds that anybody holds; NaN for none."""
    scenario = machine.setup.scenario
    cost = machine_cost(scenario.prices, machine.setup.pod, machine.setup.fabric, scenario.repair.crews)
    return cost.usd_per_year * days * 24 / HOURS_PER_YEAR / held_us if held_us else float("nan")


def _of_pod(
    trace: Trace, ledgers: Sequence[JobLedger], replicas: Sequence[ReplicaJob], warmup_us: int, days: float
) -> dict[tuple[str, str], float]:
    useful_us, held_us = training_chip_us(ledgers, replicas)
    told = sum(row[1] == Verb.MAKE_WAY and row[0] >= warmup_us for row in trace.rows)
    preempted = sum(row[1] == Verb.PREEMPT and row[0] >= warmup_us for row in trace.rows)
    return {
        ("", "training_chip_hours_per_day"): useful_us / US_PER_HOUR / days,
        ("", "training_useful_share"): useful_us / held_us if held_us else float("nan"),
        ("", "serving_chip_hours_per_day"): _serving_us(ledgers, replicas) / US_PER_HOUR / days,
        ("", "cubes_moved_per_day"): cubes_moved(trace, replicas, warmup_us) / days,
        ("", "made_way_per_day"): (told + preempted) / days,
        ("", "pod_losses_per_day"): sum(ledger.losses for ledger in ledgers) / days,
    }


def _of_service(of: ServiceOnPod, days: float) -> dict[str, float]:
    whole_us = days * US_PER_DAY
    return {
        "pod_tokens_in_time": of.in_time / of.offered if of.offered else float("nan"),
        "pod_replicas_wanted": of.wanted_us / whole_us,
        "pod_replicas_up": of.up_us / whole_us,
        "pod_start_mean_s": of.start_us / of.starts / US_PER_S if of.starts else float("nan"),
    }


def _series(
    machine: SharedMachine,
    base: Setup,
    trace: Trace,
    stages: Mapping[int, Sequence[StageInterval]],
    services: Sequence[ServiceOnPod],
    replicas: Sequence[ReplicaJob],
    training: Mapping[int, int],
) -> dict[str, Floats]:
    """What the picture of a day shows, at regular looks; losses are counted from one look to the next."""
    study, warmup_us = base.scenario.study.shared_pod, seconds_to_us(base.scenario.run.warmup)
    assert study is not None
    looks = np.arange(warmup_us, trace.horizon_us, LOOK_US, dtype=np.int64)

    def counted(jobs: Sequence[int]) -> Floats:
        edges = np.append(looks, trace.horizon_us)
        return np.diff(np.searchsorted(losses_at(stages, jobs), edges)).astype(np.float64)

    counts = component_counts(machine.setup.pod)
    found = {
        "time_s": looks / US_PER_S,
        "training_cubes": held_chips(stages, training).at(looks) / CHIPS_PER_CUBE,
        "cubes_out": cubes_out(trace, counts).at(looks).astype(np.float64),
        "training_losses": counted(list(training)),
    }
    for number, (service, of) in enumerate(zip(study.services, services, strict=True)):
        own = [replica.job for replica in replicas if replica.service == number]
        found |= {
            f"demand {service.name}": service.demand.rates_per_s(looks / US_PER_S),
            f"wanted {service.name}": of.wanted.at(looks).astype(np.float64),
            f"up {service.name}": of.up.at(looks) / FULL_SPEED_PPM,
            f"losses {service.name}": counted(own),
        }
    return found


def curves_of_services(
    scenario: Scenario, serving: ServingOutcome | None, executor: Executor | None, advance: Callable[[int, str], None]
) -> tuple[ReplicaCurve, ...]:
    """The curves of the services of the study, whatever the fabric; none where it is not asked for."""
    study = scenario.study.shared_pod
    own = {each.section.name: each.own for each in (serving.services if serving is not None else ())}
    return tuple(
        curve_of_service(scenario, service, place, own.get(service.name), executor, advance)
        for place, service in enumerate(study.services if study is not None else ())
    )


def shared_pod_tables(
    setup: Setup,
    curves: tuple[ReplicaCurve, ...],
    executor: Executor | None,
    advance: Callable[[int, str], None],
    host_availability: float,
) -> dict[str, list[Row]]:
    """Rows of all tables of the study at one sweep point; none where it is not asked for. `curves`: of its services."""
    study = setup.scenario.study.shared_pod
    if study is None:
        return {}
    machines = machines_of(setup)
    tasks = [(machine, setup, curves, number) for machine in machines for number in range(study.replications)]
    samples: dict[str, list[SharedPodSample]] = {machine.kind: [] for machine in machines}
    for sample in map_tasks(executor, sample_shared_pod, tasks):
        samples[sample.machine].append(sample)
        advance(1, "the pod that serves and trains")
    place = {"fabric": setup.fabric.value, "host_availability": host_availability}
    tables = rows_of_shared_pod(machines, study.services, curves, samples)
    return {name: [place | row for row in rows] for name, rows in tables.items()}
