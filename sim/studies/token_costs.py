"""What a token of a service moves through each memory, and what more chips could not shorten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from sim.scenario import Scenario
from sim.scenario_batching import DisaggregatedSection
from sim.scenario_services import ServiceSection
from sim.studies.service_parts import Calibration
from sim.studies.windows import WARM_SHARE, WindowTask, steady_parts
from sim.token_costs import KV_MOVED, SliceParts
from topology.shape import Shape, parse_shape
from workloads.catalogue.stacks import constants_of
from workloads.costs.floors import step_floor_s, step_parts_s
from workloads.costs.layouts import bytes_per_value
from workloads.costs.levels import Level, ladder_of
from workloads.costs.replica import ReplicaCosts
from workloads.serving.fields import BLOCK_TOKENS
from workloads.serving.pass_log import ended_passes
from workloads.serving.served_traffic import ServedTraffic, traffic_of_passes
from workloads.serving.service import Service

TOLD_PASSES = 1_000
"""Passes after the warm-up of a window over which traffic is summed."""
TRAFFIC_WINDOWS = 4
"""At most so many repetitions of the window are told pass by pass."""


@dataclass(frozen=True, kw_only=True)
class TokenCosts:
    """Traffic of each repetition, the ladder of the chips of a replica, and a decode step over slices."""

    traffic: tuple[ServedTraffic, ...]
    ladder: tuple[Level, ...]
    chips: int
    slices: tuple[SliceParts, ...]


def replica_of_service(scenario: Scenario, section: ServiceSection, shape: Shape) -> ReplicaCosts | None:
    """What a replica of the service on a slice of `shape` costs (one part of it, if cut); None where it can not be."""
    network, known = section.network_of(shape), scenario.catalogue
    if network is None:
        return None
    model, chip = known.models[section.model], known.chips[section.chip]
    return ReplicaCosts(
        model=model,
        chip=chip,
        network=network,
        attention=section.attention,
        weight_value_bytes=bytes_per_value(section.weights, "weights"),
        kv_value_bytes=bytes_per_value(section.kv, "kv"),
        constants=constants_of(chip, model=model),
    )


def traffic_window(scenario: Scenario, task: WindowTask) -> ServedTraffic:
    """Sum the traffic of a stretch of the steady window with all replicas up, after its warm-up (a task)."""
    assert scenario.serving is not None
    section = scenario.serving.services[task.service]
    config, requests, streams = steady_parts(scenario, task)
    replica = replica_of_service(scenario, section, section.shape())
    assert replica is not None, "the scenario was checked: the model fits"
    service = Service(config, requests, streams.uniforms)
    service.advance(int(requests.arrival_ns[int(WARM_SHARE * requests.count)]))
    before = _kv_moved_tokens(service, section, requests.hash_block_tokens or 0)
    until_ns = int(requests.arrival_ns[-1])
    passes = list(islice(ended_passes(service, until_ns), TOLD_PASSES))
    naive = section.scores == "in_memory"
    found = traffic_of_passes(replica, section.layout, section.prefill_layout, passes, naive_attention=naive)
    after = _kv_moved_tokens(service, section, requests.hash_block_tokens or 0)
    kv_bytes = replica.model.kv_bytes_per_token(replica.kv_value_bytes)
    for level, tokens in after.items():
        if tokens > before[level]:
            found.bytes.setdefault(level, {})[KV_MOVED] = (tokens - before[level]) * kv_bytes
    return found


def _kv_moved_tokens(service: Service, section: ServiceSection, piece_tokens: int) -> dict[str, int]:
    """Tokens so far whose KV went over links: between parts, to and from host memory, to and from a remote store."""
    blocks = service.total("swap_blocks_out") + service.total("swap_blocks_in")
    pieces = sum(service.total(name) for name in ("pieces_to_host", "host_hits", "remote_hits"))
    remote = service.total("pieces_to_remote") + service.total("remote_hits")
    moved = {"host_link": BLOCK_TOKENS * blocks + piece_tokens * pieces, "network": piece_tokens * remote, "ici": 0}
    if isinstance(section.batching, DisaggregatedSection):
        moved[section.batching.over] += service.total("kv_transfer_tokens")
    return moved


def slices_of_service(
    scenario: Scenario, section: ServiceSection, ladder: Sequence[Calibration], traffic: ServedTraffic
) -> tuple[SliceParts, ...]:
    """A decode step at the service's mean batch and context, on every slice of the ladder."""
    batch, context = max(1, round(traffic.batch_mean)), round(traffic.context_mean)
    found = []
    for each in ladder:
        replica = replica_of_service(scenario, section, parse_shape(each.shape))
        if replica is not None:
            found.append(
                SliceParts(
                    shape=each.shape,
                    chips=each.chips,
                    fits=each.fits,
                    parts_s=step_parts_s(replica, batch, context, section.layout),
                    floor_s=step_floor_s(replica, batch, context, section.layout),
                )
            )
    return tuple(found)


def costs_of_tokens(
    scenario: Scenario, section: ServiceSection, ladder: Sequence[Calibration], traffic: Sequence[ServedTraffic]
) -> TokenCosts | None:
    """All of it for one service; `traffic` by repetition. None where no window made a token."""
    replica = replica_of_service(scenario, section, section.shape())
    told = tuple(each for each in traffic if each.tokens)
    if replica is None or not told:
        return None
    decodes = told[0].sequence_steps > 0
    return TokenCosts(
        traffic=told,
        ladder=ladder_of(replica),
        chips=replica.chips,
        slices=slices_of_service(scenario, section, ladder, told[0]) if decodes else (),
    )
