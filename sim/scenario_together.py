"""Which keys of a service make sense together: caches, preemption, tiers, routers, kinds of batching."""

from __future__ import annotations

from collections.abc import Iterator

from sim.own_catalogue import Catalogue
from sim.scenario_batching import DisaggregatedSection, StaticSection
from sim.scenario_faults import nearest
from sim.scenario_memory import SwapSection
from sim.scenario_services import ServiceSection
from sim.scenario_speculation import blocks_beside_draft
from workloads.catalogue.chip import Chip
from workloads.kv_cache import BLOCK_TOKENS, Contiguous, Paged, PrefixSharing, blocks_for

Wrong = tuple[str, str, str]
"""The key that is wrong, why, and what to write."""
MOST_SAMPLES = 128
"""Answers to one prompt: a limit of ours, far above what is asked for (vLLM's paper measures up to 6)."""


def cache_faults(service: ServiceSection) -> Iterator[Wrong]:
    """What is wrong about the KV cache of a service, the deepest fault first (a trace is read for what it shares)."""
    yield from _cut_faults(service)
    yield from _preemption_faults(service)
    yield from _prefix_faults(service)
    yield from _sample_faults(service)


def _cut_faults(service: ServiceSection) -> Iterator[Wrong]:
    """Parts of a slice that hand over what they hold."""
    if not isinstance(service.batching, DisaggregatedSection):
        return
    cache = service.cache
    pieces = isinstance(cache, Contiguous) and cache.reserve == "max_model_len"
    if not (pieces or isinstance(cache, Paged | PrefixSharing)):
        what = "parts move blocks of a paged cache, or pieces of one length"
        yield "cache", what, "write `cache: {kind: paged}` or `{kind: contiguous}`"
    if service.router in ("central", "slo_aware"):
        yield "router", "parts that compute prompts take turns or the least busy one", "write another `router`"


def _preemption_faults(service: ServiceSection) -> Iterator[Wrong]:
    """What is evicted, and where it may go."""
    if not isinstance(service.preemption, SwapSection):
        return
    if isinstance(service.batching, StaticSection) or isinstance(service.cache, Contiguous):
        yield "preemption", "nothing is ever evicted where all is reserved at admission", "take the key out"
    elif isinstance(service.batching, DisaggregatedSection):
        what = "parts that decode send what they evict back to those that compute prompts"
        yield "preemption", what, "take the key out, or choose another `batching`"


def _prefix_faults(service: ServiceSection) -> Iterator[Wrong]:
    """Prefixes must be named to be shared."""
    shares = isinstance(service.cache, PrefixSharing)
    if shares and isinstance(service.batching, StaticSection):
        yield "cache", "static batches pad their prompts: they share no prefixes", "choose another `batching`"
    if not shares:
        advice = "write `cache: {kind: prefix_sharing}`"
        if service.router == "prefix_affine":
            yield "router", "a prefix-affine router needs a cache of prefixes", advice
        if service.tiers is not None:
            yield "tiers", "what moves below the cache are prefixes that prompts share", advice
    if service.shared_prefix is not None and service.names_prefixes:
        yield "shared_prefix", "the requests name their shared blocks already", "take the key out"
    if shares and service.samples == 1 and service.shared_prefix is None and not service.names_prefixes:
        what = "no request says which blocks of its prompt others share"
        advice = "write `shared_prefix: {groups: 8, tokens: 1024}`, requests with `sessions`, or a Mooncake file"
        yield "cache", what, advice


def _sample_faults(service: ServiceSection) -> Iterator[Wrong]:
    """Several answers to a prompt meet in one pass, on one replica, in a cache that shares blocks."""
    if service.samples == 1:
        return
    if service.samples > MOST_SAMPLES:
        yield (
            "samples",
            f"{service.samples:,} answers to each prompt",
            f"write at most {MOST_SAMPLES} (a limit of ours)",
        )
    if isinstance(service.batching, DisaggregatedSection):
        what = "parts that hand over what they hold do not share it between answers"
        yield "samples", what, "take the key out, or choose another `batching`"
    elif not isinstance(service.cache, PrefixSharing):
        what = "answers to one prompt share blocks of a cache that shares them"
        yield "samples", what, "write `cache: {kind: prefix_sharing}`"
    if getattr(service.requests, "sessions", None) is not None:
        yield "samples", "a user who comes back goes on from one answer", "take `samples` or `sessions` out"


def draft_faults(service: ServiceSection, known: Catalogue, recorded: int) -> Iterator[Wrong]:
    """A draft model must be known, fit beside the large one, and serve where passes speculate."""
    rule = service.speculation
    if rule is None:
        return
    if isinstance(service.batching, StaticSection | DisaggregatedSection):
        what = f"a {service.batching.kind} service does not speculate"
        yield "speculation", what, "take the key out, or choose another `batching`"
    elif recorded:
        what = "requests of services that speculate are not recorded token by token"
        yield "speculation", what, "take out `serving.windows.record`"
    elif rule.draft not in known.models:
        yield "speculation", f"model `{rule.draft}` is not known", nearest(rule.draft, list(known.models))
    elif service.model in known.models and service.chip in known.chips:
        network = service.network_of(service.shape())
        models = known.models[service.model], known.models[rule.draft]
        if network is not None and service.activation_reserve < service.utilisation:
            blocks = blocks_beside_draft(models, known.chips[service.chip], network, service.memory())
            if blocks < blocks_for(service.longest_reserved_tokens):
                what = f"{service.model} and {rule.draft} leave {blocks * BLOCK_TOKENS:,} tokens of cache"
                yield "speculation", what, "write a smaller draft model or a larger slice"


def link_faults(service: ServiceSection, chip: Chip) -> Iterator[Wrong]:
    """Links that a service needs and of which no source tells."""
    swaps, tiers = service.preemption, service.tiers
    if isinstance(swaps, SwapSection) and not (swaps.link or chip.host_link_bytes_per_s):
        what = f"no source tells the host link of {chip.name}"
        yield "preemption", what, "write `link`, such as `16 GB/s` per chip"
    if tiers is not None and tiers.host_memory and not (tiers.host_link or chip.host_link_bytes_per_s):
        what = f"no source tells the host link of {chip.name}"
        yield "tiers", what, "write `host_link`, such as `16 GB/s` per chip"
    if tiers is not None and tiers.remote_memory and not (tiers.remote_link or chip.network_bytes_per_s):
        what = f"no source tells what the network carries for one {chip.name}"
        yield "tiers", what, "write `remote_link`, such as `6.25 GB/s` per chip"
