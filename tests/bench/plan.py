"""Time of a reconfiguration plan of a full pod, and how it grows with the pod."""

from __future__ import annotations

import json
import time

import numpy as np

from ocs.circuits import Circuits, carry_out, circuits_of, dark_switches, no_circuits, plan_reconfiguration
from topology.placement import joined
from topology.shape import Shape, shape_of_chips

PODS = (16, 64, 144, 576)
"""Cubes of the pods: up to four times the largest one built."""
SLICES = (1, 2, 4, 8)
"""Cubes of the slices that fill a pod, by turns."""


def full_pod(cubes: int, seed: int) -> list[tuple[Shape, list[int]]]:
    """Slices on shuffled cubes until none is left."""
    free = np.random.default_rng(seed).permutation(cubes).tolist()
    slices = []
    while free:
        size = min(SLICES[len(slices) % len(SLICES)], len(free))
        slices.append((shape_of_chips(64 * size), free[:size]))
        free = free[size:]
    return slices


def circuits_of_slices(slices: list[tuple[Shape, list[int]]]) -> Circuits:
    """All circuits of the pod."""
    return np.concatenate([circuits_of(joined(shape, cubes)) for shape, cubes in slices])


def plan_s(cubes: int, rounds: int = 7) -> dict[str, float]:
    """Seconds (medians) to list the circuits of both states, to plan between them, and to carry the plan out."""
    old, new = full_pod(cubes, 1), full_pod(cubes, 2)
    dark, taken = dark_switches(cubes), []
    for _ in range(rounds):
        began = time.perf_counter()
        before, after = circuits_of_slices(old), circuits_of_slices(new)
        listed = time.perf_counter()
        plan = plan_reconfiguration(before, after)
        planned = time.perf_counter()
        lit = carry_out(plan_reconfiguration(no_circuits(), before), dark)
        carried = time.perf_counter()
        carry_out(plan, lit)
        taken.append((listed - began, planned - listed, time.perf_counter() - carried))
    listing, planning, carrying = np.median(np.array(taken), axis=0).tolist()
    return {"circuits_s": listing, "plan_s": planning, "carry_out_s": carrying}


def plan_of_full_pods() -> dict[str, object]:
    """Times by number of cubes, and the power with which the whole grows from the v4 pod to the largest (1: linear)."""
    by_cubes = {cubes: plan_s(cubes) for cubes in PODS}
    totals = {cubes: sum(parts.values()) for cubes, parts in by_cubes.items()}
    growth = np.log(totals[PODS[-1]] / totals[64]) / np.log(PODS[-1] / 64)
    return {"by_cubes": {str(cubes): parts for cubes, parts in by_cubes.items()}, "growth_power": float(growth)}


if __name__ == "__main__":
    print(json.dumps(plan_of_full_pods()))
