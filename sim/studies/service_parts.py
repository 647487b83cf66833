"""From the section of a service to what the token kernel eats: costs of a pass, KV blocks, requests, rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

from sim.own_catalogue import Catalogue
from sim.scenario import Scenario
from sim.scenario_memory import preemption_rule
from sim.scenario_services import ServiceSection
from sim.scenario_speculation import blocks_beside_draft
from sim.streams import Streams
from topology.shape import Shape, parse_shape
from workloads.collectives import SliceNetwork
from workloads.costs.tables import replica_pass_costs
from workloads.kv_cache import Paged, PrefixSharing, blocks_for, kv_memory
from workloads.load.laws import RequestLaw, draw_requests
from workloads.prefixes import with_samples, with_shared_prefix
from workloads.requests import Requests
from workloads.serving.capacity import capacity_requests_per_s, saturated_requests_per_s
from workloads.serving.service import ServiceConfig

CAPACITY_REQUESTS = 20_000
"""Requests of the search for the capacity of a replica (design: interfaces, section 1)."""
LADDER_REQUESTS_LEAST = 2_000
"""Requests of the same search on the other shapes: as many as a window has, but at least these."""
LEAST_LOAD = 0.1
"""A slice meets the limits of a service where it does so at this share of its saturated rate (assumption)."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What one replica on one shape can do; rates are 0 where the limits are never met.

    `capacity_per_s`: greatest rate within the limits. `saturated_per_s`: completed when requests never run out.
    """

    shape: str
    chips: int
    fits: bool
    capacity_per_s: float
    saturated_per_s: float

    @property
    def meets(self) -> bool:
        """Whether it keeps the limits at a rate worth having: a tenth of what it could serve without limits."""
        return self.fits and self.capacity_per_s >= LEAST_LOAD * self.saturated_per_s


def replica_blocks(known: Catalogue, section: ServiceSection, network: SliceNetwork) -> int:
    """KV blocks of a replica, beside its draft model where it has one."""
    model, chip, settings = known.models[section.model], known.chips[section.chip], section.memory()
    if section.speculation is None:
        return kv_memory(model, chip, network, settings).blocks
    return blocks_beside_draft((model, known.models[section.speculation.draft]), chip, network, settings)


def service_config(scenario: Scenario, section: ServiceSection, shape: Shape, replicas: int) -> ServiceConfig | None:
    """The kernel's configuration of `replicas` replicas on slices of `shape`; None where the model does not fit.

    Costs are those of a slice formed by circuits, on every fabric: so fabrics differ in availability alone (favours
    static slices, whose tori wrap only on axes that span the pod).
    """
    known, network = scenario.catalogue, section.network_of(shape)
    if network is None:
        return None
    model, chip = known.models[section.model], known.chips[section.chip]
    longest = section.requests.longest_tokens
    blocks = replica_blocks(known, section, network)
    if blocks < blocks_for(section.longest_reserved_tokens):
        return None
    rule = section.batching_rule()
    pass_costs = partial(
        replica_pass_costs,
        chip=chip,
        network=network,
        layout=section.layout,
        attention=section.attention,
        weights=section.weights,
        kv=section.kv,
        max_batch=rule.max_batch,
        max_tokens=max(4096, 2 * longest),
    )
    costs = pass_costs(model, prefill_layout=section.prefill_layout, naive_attention=section.scores == "in_memory")
    draft = section.speculation and pass_costs(known.models[section.speculation.draft])
    apart = section.disaggregated_rule(costs, model.layers, replicas, section.link_of(shape, chip) or math.inf, blocks)
    return ServiceConfig(
        costs=costs,
        blocks=blocks,
        replicas=replicas * section.parts,
        batching=rule if apart is None else apart,
        router=section.router_rule(),
        kv=section.cache if apart is None or isinstance(section.cache, PrefixSharing) else Paged(),
        ttft_limit_s=section.slo.ttft,
        tpot_limit_s=section.slo.tpot,
        clients=section.clients.rule(),
        admission=section.admission.rule(),
        priorities=section.priorities,
        preemption=preemption_rule(section.preemption, chip, costs),
        speculation=section.speculation.rule(draft) if section.speculation and draft else None,
        tiers=None if section.tiers is None else section.tiers.rule(chip, costs),
    )


def service_requests(section: ServiceSection, rate_per_s: float, count: int, streams: Streams, about: str) -> Requests:
    """`count` requests of the service at a rate; `about` names the window, so that each has draws of its own."""
    stream = f"serving.{section.name}.{about}"
    return drawn(section, section.requests, rate_per_s, count, streams, stream)


def drawn(
    section: ServiceSection, law: RequestLaw, rate_per_s: float, count: int, streams: Streams, stream: str
) -> Requests:
    """`count` requests by `law` at a rate, with the beginnings that prompts of the service share, and their samples."""
    samples = section.samples
    requests = draw_requests(law, rate_per_s / samples, -(-count // samples), streams.uniforms, stream)
    if section.shared_prefix is not None:
        requests = with_shared_prefix(requests, section.shared_prefix, streams.uniforms, stream)
    return requests if samples == 1 else with_samples(requests, samples).first(count)


def ladder_shapes(section: ServiceSection) -> list[Shape]:
    """The shapes that are compared for a service: half a cube, one cube and more up to 1,024 chips, and its own."""
    texts = ["2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16"]
    own = section.shape()
    shapes = {str(shape): shape for shape in (*map(parse_shape, texts), own)}
    return sorted(shapes.values(), key=lambda shape: (shape.chips, str(shape)))


def calibrate(scenario: Scenario, index: int, shape_text: str) -> Calibration:
    """Find by bisection what one replica of service number `index` on a shape can do (a task)."""
    assert scenario.serving is not None
    section, shape = scenario.serving.services[index], parse_shape(shape_text)
    config = service_config(scenario, section, shape, 1)
    if config is None:
        return Calibration(shape=shape_text, chips=shape.chips, fits=False, capacity_per_s=0.0, saturated_per_s=0.0)
    own = shape_text == str(section.shape())
    asked = max(LADDER_REQUESTS_LEAST, scenario.serving.windows.requests)
    count = CAPACITY_REQUESTS if own else min(CAPACITY_REQUESTS, asked)
    law, streams, stream = section.requests.steady, Streams(scenario.run.seed, 0), f"serving.{section.name}.capacity"

    def drawn_at(rate_per_s: float) -> Requests:
        return drawn(section, law, rate_per_s, count, streams, stream)

    requests = drawn_at(1.0)
    return Calibration(
        shape=shape_text,
        chips=shape.chips,
        fits=True,
        capacity_per_s=capacity_requests_per_s(
            config, requests, section.slo.attainment, None if law.scales else drawn_at, streams.uniforms
        ),
        saturated_per_s=saturated_requests_per_s(config, requests, streams.uniforms),
    )


def offered_rate_per_s(section: ServiceSection, own: Calibration) -> float:
    """Requests per second that arrive at the whole service: its rate, its load of capacity, or its trace's own rate."""
    if section.rate is not None:
        return section.rate
    if section.load is not None:
        return section.load * section.replicas * own.capacity_per_s
    natural = section.requests.natural_rate_per_s
    assert natural is not None, "the scenario was checked"
    return natural * section.samples


def let_in_per_s(section: ServiceSection, own: Calibration, rate_per_s: float, replicas: int) -> float:
    """Requests per second, of those that arrive, that the service lets in with so many replicas up."""
    return min(rate_per_s, replicas * own.capacity_per_s) if section.admission.within_capacity else rate_per_s


def with_saturation(config: ServiceConfig, section: ServiceSection, saturated_per_s: float) -> ServiceConfig:
    """The same service, knowing what one of its replicas can do at most (the kernel counts parts of replicas)."""
    return replace(config, saturated_requests_per_s=saturated_per_s / section.parts)
