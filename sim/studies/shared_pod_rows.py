"""Rows of the tables of a shared pod: measures by machine, waits by cause, chip-hours, paired differences, one day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.measure_names import SHARED_POD_MEASURES
from sim.metrics.intervals import mean_estimate
from sim.metrics.measure_rows import rows_of_measures
from sim.metrics.shared_pod import WaitCause
from sim.scenario_studies import SharedService
from sim.studies.shared_machines import SharedMachine
from workloads.autoscaling import ReplicaCurve

if TYPE_CHECKING:
    from sim.studies.shared_pod import SharedPodSample

Row = dict[str, Any]
Samples = Mapping[str, Sequence["SharedPodSample"]]
SHOWN_S = 2 * 86_400.0
"""The story of a pod shows so much time."""
US_PER_HOUR = 3_600_000_000


def rows_of_shared_pod(
    machines: Sequence[SharedMachine],
    services: Sequence[SharedService],
    curves: Sequence[ReplicaCurve],
    samples: Samples,
) -> dict[str, list[Row]]:
    """Rows by table; `samples` are the replications of each machine by its kind."""
    names = [service.name for service in services]
    return {
        "shared_pod": [row for machine in machines for row in _measures(machine, names, samples[machine.kind])],
        "shared_pod_waits": [row for machine in machines for row in _waits(machine.kind, names, samples[machine.kind])],
        "shared_pod_chip_hours": [
            row for machine in machines for row in _chip_hours(machine.kind, samples[machine.kind])
        ],
        "shared_pod_differences": list(_differences(machines, samples)),
        "service_replications": list(_singles(machines, samples)),
        "shared_pod_day": list(_day(machines, names, samples)),
        "replica_curves": [
            {"service": name, "requests_per_s": rate, "in_time_per_s": in_time, "capacity_per_s": curve.capacity_per_s}
            for name, curve in zip(names, curves, strict=True)
            for rate, in_time in zip(curve.rates_per_s, curve.in_time_per_s, strict=True)
        ],
    }


def _measures(machine: SharedMachine, names: Sequence[str], samples: Sequence[SharedPodSample]) -> Iterator[Row]:
    of_machine: Row = {"machine": machine.kind, "cubes": machine.setup.pod.chips // 64}
    for service in ("", *names):
        told = {name: of for name, of in SHARED_POD_MEASURES.items() if (service, name) in samples[0].measures}
        values = {name: [one.measures[service, name] for one in samples] for name in told}
        for row in rows_of_measures(told, values.__getitem__):
            yield of_machine | {"service": service or None} | row


def _waits(machine: str, names: Sequence[str], samples: Sequence[SharedPodSample]) -> Iterator[Row]:
    for service in names:
        means = {cause: float(np.mean([one.wait_s[service, cause.value] for one in samples])) for cause in WaitCause}
        whole = sum(means.values())
        for cause, seconds in means.items():
            yield {
                "machine": machine,
                "service": service,
                "cause": cause.value,
                "seconds_per_day": seconds,
                "share": seconds / whole if whole else 0.0,
            }


def _chip_hours(machine: str, samples: Sequence[SharedPodSample]) -> Iterator[Row]:
    whole_us = sum(samples[0].chip_us.values())
    for use in samples[0].chip_us:
        mean_us = float(np.mean([one.chip_us[use] for one in samples]))
        yield {
            "machine": machine,
            "use": use.value,
            "chip_hours": mean_us / US_PER_HOUR,
            "share": mean_us / whole_us,
        }


def _differences(machines: Sequence[SharedMachine], samples: Samples) -> Iterator[Row]:
    """Every measure of the first machine minus that of each of the others, replication by replication."""
    first = machines[0].kind
    for other in machines[1:]:
        for service, measure in samples[first][0].measures:
            pairs = zip(samples[first], samples[other.kind], strict=True)
            values = [mine.measures[service, measure] - its.measures[service, measure] for mine, its in pairs]
            values = [value for value in values if not math.isnan(value)]
            if not values:
                continue
            estimate = mean_estimate(values)
            yield {
                "machine": first,
                "against": other.kind,
                "service": service or None,
                "measure": measure,
                "difference": estimate.value,
                "ci_low": estimate.ci_low,
                "ci_high": estimate.ci_high,
                "replications": estimate.n,
            }


def _singles(machines: Sequence[SharedMachine], samples: Samples) -> Iterator[Row]:
    """Every measure of the first machine, and what it is over that of the others, replication by replication."""
    first, *others = (samples[machine.kind] for machine in machines)
    for number, mine in enumerate(first):
        for (service, measure), value in mine.measures.items():
            named: Row = {"service": service or None, "replication": number}
            yield named | {"measure": measure, "value": value}
            for other in others:
                over = f"{measure}_over_{other[number].machine}"
                yield named | {"measure": over, "value": value - other[number].measures[service, measure]}


def _day(machines: Sequence[SharedMachine], names: Sequence[str], samples: Samples) -> Iterator[Row]:
    """The two days of the first replication in which the first machine has most losses, on all machines."""
    series = samples[machines[0].kind][0].series
    time_s = series["time_s"]
    losses = series["training_losses"] + sum(series[f"losses {name}"] for name in names)
    starts = np.arange(time_s[0], max(time_s[0] + 1, time_s[-1] - SHOWN_S + 1), 86_400.0)
    felt = [float(losses[(time_s >= start) & (time_s < start + SHOWN_S)].sum()) for start in starts]
    start = starts[int(np.argmax(felt))]
    for machine in machines:
        own = samples[machine.kind][0].series
        for place in np.flatnonzero((time_s >= start) & (time_s < start + SHOWN_S)).tolist():
            for name in names:
                yield {
                    "machine": machine.kind,
                    "service": name,
                    "time_s": own["time_s"][place],
                    "demand_per_s": own[f"demand {name}"][place],
                    "replicas_wanted": own[f"wanted {name}"][place],
                    "replicas_up": own[f"up {name}"][place],
                    "training_cubes": own["training_cubes"][place],
                    "cubes_out": own["cubes_out"][place],
                    "serving_losses": own[f"losses {name}"][place],
                    "training_losses": own["training_losses"][place],
                }
