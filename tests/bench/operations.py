"""Speed of a pod in operation: CPU seconds of one month, by size of the pod and by the load, and how they grow."""

from __future__ import annotations

import statistics
import time

from sim.build import build_setup
from sim.scenario import expand, load_scenario
from sim.studies.operations import sample_operations

REPEATS = 3
CASES: dict[str, tuple[int, list[str]]] = {
    "v4_64_cubes": (64, []),
    "tpu7x_144_cubes": (144, ["pod={generation: tpu7x}"]),
    "ten_pods_640_cubes": (640, ["pod={cubes: 640}"]),
    "v4_static_contiguous": (64, ["sweep={pod.fabric: [static_contiguous]}"]),
}
"""Cubes and settings by name; ten pods are one machine of ten times the cubes under one queue, which is harder than ten
machines."""


def pod_month_s() -> dict[str, float]:
    """CPU seconds of a month of the scenario `operations`, medians over replications, measures included.

    `growth_NAME` is the time per cube over that of the v4 pod, under the same load: 1 is linear growth.
    """
    found = {name: _median_s(settings) for name, (_, settings) in CASES.items()}
    per_cube = {name: found[name] / cubes for name, (cubes, _) in CASES.items()}
    growth = {f"growth_{name}": per_cube[name] / per_cube["v4_64_cubes"] for name in list(CASES)[1:3]}
    return found | growth


def _median_s(settings: list[str]) -> float:
    setup = build_setup(expand(load_scenario("operations", settings))[0].scenario)
    sample_operations(setup, 0)
    taken = []
    for replication in range(1, REPEATS + 1):
        began = time.process_time()
        sample_operations(setup, replication)
        taken.append(time.process_time() - began)
    return statistics.median(taken)
