"""Speed of a pod in operation: CPU seconds of one month, by size of the pod and by the load, and how they grow."""

from __future__ import annotations

import statistics
import time

from sim.build import build_setup
from sim.scenario import expand, load_scenario
from sim.studies.operations import sample_operations

REPEATS = 3


def pod_month_s() -> dict[str, float]:
    """Medians over replications of the CPU seconds of a pod-month of the scenario `operations`, measures included."""
    cases = {
        "v4_64_cubes": [],
        "tpu7x_144_cubes": ["pod={generation: tpu7x}"],
        "v4_static_contiguous": ["sweep={pod.fabric: [static_contiguous]}"],
    }
    return {name: _median_s(settings) for name, settings in cases.items()}


def _median_s(settings: list[str]) -> float:
    setup = build_setup(expand(load_scenario("operations", settings))[0].scenario)
    sample_operations(setup, 0)
    taken = []
    for replication in range(1, REPEATS + 1):
        began = time.process_time()
        sample_operations(setup, replication)
        taken.append(time.process_time() - began)
    return statistics.median(taken)
