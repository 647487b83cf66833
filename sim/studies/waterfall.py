"""From the peak of the chips to tokens in time, step by step: what is left of a service's arithmetic, and of what.

peak          every chip multiplies all the time: peak FLOP/s over 2 N FLOP per token of prompt and answer (N:
              parameters that a token meets; attention left out)
memory-bound  each replica serves one request at a time at the bounds of the hardware: it waits for weights and cache
batched       each replica serves as many at once as its rules let it, requests never run out (the token kernel)
placed        as many replicas as the fabric can form in time
delivered     less the time that losses take until a replica serves again
in time       tokens of requests within both limits, at the load of the scenario
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sim.build import Setup
from sim.prices import STATIC
from sim.scenario_services import ServiceSection
from sim.streams import Streams
from sim.studies.service_parts import service_requests
from workloads.catalogue.stacks import constants_of
from workloads.collectives import circuit_slice
from workloads.costs.layouts import Layout, bytes_per_value
from workloads.costs.passes import Phase, pass_cost
from workloads.costs.replica import ReplicaCosts

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]

STEPS = ("peak", "memory-bound", "batched", "placed", "delivered", "in time")
SAMPLE = 4_000
"""Requests from which the mean lengths are taken."""
S_PER_DAY = 86_400.0


def waterfall_rows(setup: Setup, rows: Rows, host_availability: float) -> list[Row]:
    """Rows of the table `waterfall` of one sweep point; services whose model does not fit their slice are left out."""
    scenario = setup.scenario
    if scenario.serving is None:
        return []
    place = {"fabric": setup.fabric.value, "host_availability": host_availability}
    found = []
    for section in scenario.serving.services:
        measures = {r["measure"]: float(r["value"]) for r in rows.get("service", ()) if r["service"] == section.name}
        values = dict(zip(STEPS, _values(setup, section, measures), strict=True))
        peak = values["peak"]
        found += [
            place
            | {"service": section.name, "step": step, "tokens_per_s": value, "share_of_peak": value / peak}
            for step, value in values.items()
        ]  # fmt: skip
    return found


def _values(setup: Setup, section: ServiceSection, measures: Mapping[str, float]) -> Iterator[float]:
    """Tokens of answers per second of the whole service after each step."""
    replica = _replica(setup, section)
    streams = Streams(setup.scenario.run.seed, 0)
    requests = service_requests(section, 1.0, SAMPLE, streams, "waterfall")
    prompt, answer = (float(np.mean(tokens)) for tokens in (requests.input_tokens, requests.output_tokens))
    idle = sum(each.parameters - each.active_parameters for each in replica.model.matrices)
    flops = 2.0 * (replica.model.parameters - idle) * (prompt + answer)
    chips = section.replicas * section.shape().chips
    yield chips * replica.chip.peak_flops_per_s * answer / flops
    yield section.replicas * answer / _alone_s(replica, round(prompt), answer)
    saturated = measures["offered_requests_per_s"] / measures["load_of_capacity"] * answer
    yield saturated
    placed = saturated * measures["replicas_up_mean"] / section.replicas
    yield placed
    lost = measures["losses_per_day"] * _back_s(setup) / S_PER_DAY / section.replicas
    yield max(0.0, placed - saturated * lost)
    per_token = measures["chip_s_per_token_in_time"]
    yield chips / per_token if math.isfinite(per_token) else 0.0


def _replica(setup: Setup, section: ServiceSection) -> ReplicaCosts:
    known = setup.scenario.catalogue
    model, chip = known.models[section.model], known.chips[section.chip]
    return ReplicaCosts(
        model=model,
        chip=chip,
        network=circuit_slice(section.shape().dimensions),
        attention=section.attention,
        weight_value_bytes=bytes_per_value(section.weights, "weights"),
        kv_value_bytes=bytes_per_value(section.kv, "kv"),
        constants=constants_of(chip, model=model),
    )


def _alone_s(replica: ReplicaCosts, prompt: int, answer: float) -> float:
    """Seconds of one request alone, all parts of each pass overlapped at the catalogue's peaks."""
    middle = round(prompt + answer / 2)
    prefill = min(float(pass_cost(replica, Phase.PREFILL, 1, prompt, each).lower_bound_s) for each in Layout)
    step = min(float(pass_cost(replica, Phase.DECODE, 1, middle, each).lower_bound_s) for each in Layout)
    return prefill + answer * step


def _back_s(setup: Setup) -> float:
    """Seconds that a loss takes beside the time for which the fabric can not form the replica at all."""
    recovery = setup.scenario.recovery
    start = recovery.circuits + recovery.preflight + recovery.restore
    return start if setup.fabric in STATIC else setup.health.detection_s("host") + recovery.evict + start
