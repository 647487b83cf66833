"""Claims that are decided by direct computation: costs of passes, prices, routes around dead light."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ocs.fault_names import dead_links_of_names
from sim.claims.verdicts import Finding, Verdict, verdict_of
from sim.prices import PricesSection, machine_cost
from sim.report.words import listed, number, percent, seconds
from topology.fabric import Fabric
from topology.pod import Pod, pod_of_generation
from topology.routing.degraded import degradation
from topology.shape import parse_shape
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.models import MODELS
from workloads.costs.asking import replica_on
from workloads.costs.passes import Phase, pass_cost, pass_seconds
from workloads.costs.replica import ReplicaCosts

MODEL, SHAPE, CONTEXT = "llama3_70b", "4x4x4", 2048
BATCHES = (1, 16, 64, 256)
RATES = {"arithmetic": "peak_flops_per_s", "memory": "hbm_bytes_per_s", "links": "link_bytes_per_s"}


def optics_are_cheap() -> Finding:
    """Share of light in the capital, by size of the pod."""
    prices = PricesSection()

    def share(cubes: int) -> float:
        return machine_cost(prices, Pod(cubes=cubes), Fabric.RECONFIGURABLE).links_share

    least = next(cubes for cubes in range(1, 1000) if share(cubes) < 0.05)
    v4 = machine_cost(prices, pod_of_generation("v4"), Fabric.RECONFIGURABLE).links_share
    numbers = f"{percent(v4, 1)} of a v4 pod, {percent(share(8), 1)} of eight cubes, which need all 48 switches too; "
    return Finding(
        verdict=verdict_of([share(cubes) < 0.05 for cubes in (8, 64, 144)]),
        numbers=f"{numbers}under 5 % from {least} cubes on (default prices: assumptions, held to the published 5 %)",
    )


def moving_costs_more() -> Finding:
    """Seconds of arithmetic at the peak against bytes at full rates, level by level."""
    outcomes, said = [], []
    for phase, batch in (*((Phase.DECODE, batch) for batch in BATCHES), (Phase.PREFILL, 1)):
        replica = _replica()
        cost = pass_cost(replica, phase, batch, CONTEXT)
        tokens = batch * (CONTEXT if phase is Phase.PREFILL else 1)
        arithmetic = 2.0 * replica.model.parameters * tokens / (replica.chips * replica.chip.peak_flops_per_s)
        moved = {
            "memory": float(sum(cost.bytes["hbm"].values())) / (replica.chips * replica.chip.hbm_bytes_per_s),
            "links": float(sum(cost.bytes["ici"].values())) / (replica.chips * 6 * replica.chip.link_bytes_per_s),
        }
        outcomes += [value > arithmetic for value in moved.values()]
        name = f"a prompt of {CONTEXT:,}" if phase is Phase.PREFILL else f"a step of {batch}"
        levels = ", ".join(f"{level} {number(value / arithmetic)}" for level, value in moved.items())
        said.append(f"{name}: {levels}")
    return Finding(
        verdict=verdict_of(outcomes), numbers=f"times the arithmetic, at full rates: {'; '.join(said)} (70B, {SHAPE})"
    )


def one_blocked_flow_slows_all() -> Finding:
    """A step of a batch with one rate at a tenth, the others as they are."""
    base = _step_s()
    slower = {name: _step_s({rate: 0.1}) / base for name, rate in RATES.items()}
    said = listed([f"{name} {number(ratio)} times" for name, ratio in slower.items()])
    return Finding(
        verdict=verdict_of([ratio > 1.5 for ratio in slower.values()]),
        numbers=f"a step of 64 takes, with a tenth of {said} as long",
    )


def local_optimisation_fails() -> Finding:
    """Gains of doubling one rate, and of doubling all: the rigid layers keep the rest."""
    base = _step_s()
    alone = {name: base / _step_s({rate: 2.0}) for name, rate in RATES.items()}
    every = base / _step_s(dict.fromkeys(RATES.values(), 2.0))
    said = listed([f"{name} {number(gain)}" for name, gain in alone.items()])
    return Finding(
        verdict=verdict_of([gain < 1 + 0.5 * (every - 1) for gain in alone.values()]),
        numbers=f"a step of 64 gets faster by doubling {said} times alone, {number(every)} times by doubling all three "
        "(twice would be all; fixed times and hops stay)",
    )


def sequence_limits_latency() -> Finding:
    """The time of a step at batch 1 over sizes of the slice: from some size on, chips do not help."""
    shapes = ("4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16", "16x16x16")
    times = {shape: float(pass_seconds(_replica(shape), Phase.DECODE, 1, CONTEXT)) for shape in shapes}
    best = min(times, key=lambda shape: times[shape])
    gain, more = times[shapes[0]] / times[best], parse_shape(shapes[-1]).chips // parse_shape(shapes[0]).chips
    said = ", ".join(f"{shape} {seconds(value)}" for shape, value in times.items())
    return Finding(
        verdict=Verdict.HOLDS if gain < more / 4 else Verdict.FAILS,
        numbers=f"a step of one sequence: {said}; {more} times the chips: at best {number(gain)} times as fast",
    )


def faults_stay_local() -> Finding:
    """What a dead switch leaves of collectives in a slice whose routes go around it."""
    outcomes, said = [], []
    for text in ("4x4x4", "4x4x8", "4x8x8"):
        shape = parse_shape(text)
        left = degradation(shape, dead_links_of_names(shape, ["ocs:z:5"]), "wild_first")
        every, ring = left.all_to_all_kept, min(left.ring_kept)
        outcomes += [every >= 0.9, ring >= 0.9]
        said.append(f"{text} keeps {percent(every, 0)} of all-to-all, {percent(ring, 0)} of the struck ring")
    return Finding(verdict=verdict_of(outcomes), numbers=f"one dead switch: {'; '.join(said)}")


def _replica(shape: str = SHAPE, times: dict[str, float] | None = None) -> ReplicaCosts:
    chip = CHIPS["tpu_v4"]
    rates: dict[str, Any] = {rate: factor * float(getattr(chip, rate)) for rate, factor in (times or {}).items()}
    return replica_on(MODELS[MODEL], replace(chip, **rates), shape)[0]


def _step_s(times: dict[str, float] | None = None) -> float:
    """Seconds of a decode step of 64 sequences, some rates of the chip multiplied."""
    return float(pass_seconds(_replica(times=times), Phase.DECODE, 64, CONTEXT))
