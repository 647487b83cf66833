"""What to serve a model on: fronts of cost per token and latency over slices, batches and layouts; what fits.

Cost is chip-seconds per token and latency seconds per pass (prefill) or per token (decode), as Pope et al. draw them
(arXiv:2211.05102, figure 1). A decode step counts at the middle of the answer. Memory: weights and the cache of the
whole batch at its full length, within `MemorySettings`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from workloads.catalogue.chip import Chip, Interconnect
from workloads.catalogue.model import Model
from workloads.costs.asking import replica_on
from workloads.costs.layouts import Attention, Layout, kv_replication
from workloads.costs.passes import Phase, pass_cost
from workloads.costs.replica import ReplicaCosts
from workloads.kv_cache import DEFAULT_SETTINGS, SLICE_LADDER, MemorySettings

BATCHES = tuple(2**power for power in range(11))
FLAT_LADDER = ("1", "1x2", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
SWITCH_LADDER = ("1", "2", "4", "8", "16", "32", "64")
STATIONARY = (Layout.WEIGHT_STATIONARY_1D, Layout.WEIGHT_STATIONARY_2D)
SPREADS = (Attention.HEADS, Attention.BATCH, Attention.HEADS_X_BATCH, Attention.CONTEXT)


def shape_ladder(chip: Chip) -> tuple[str, ...]:
    """Shapes from one chip upwards that are looked at for a chip."""
    if chip.interconnect is Interconnect.SWITCH:
        alone = chip.network_bytes_per_s is None
        return tuple(shape for shape in SWITCH_LADDER if not alone or int(shape) <= (chip.node_chips or 1))
    if chip.axes == 3:
        return tuple("x".join(map(str, shape)) for shape in SLICE_LADDER)
    return FLAT_LADDER if chip.axes == 2 else ("1", "2", "4")


def cache_bytes_per_token(replica: ReplicaCosts) -> float:
    """Bytes of one token's cache on all chips, replicas of K and V counted."""
    held = replica.model.kv_bytes_per_token(replica.kv_value_bytes)
    return held * kv_replication(replica.model, replica.chips, replica.attention)


def maximum_context(
    replica: ReplicaCosts, batch: int, stages: int = 1, *, cache_share: float | None = None,
    settings: MemorySettings = DEFAULT_SETTINGS,
) -> float:  # fmt: skip
    """Tokens that each of `batch` sequences can hold: in `cache_share` of all memory, or in what weights leave.

    Chips hold what they read: sharded by batch, one sequence lies on one chip, whatever the others have left.
    """
    hbm_bytes = replica.chip.hbm_bytes * replica.chips * stages
    if cache_share is not None:
        room = cache_share * hbm_bytes
    else:
        weights = replica.model.weight_bytes(replica.weight_value_bytes)
        room = (settings.utilisation - settings.activation_reserve) * hbm_bytes - weights
    on_busiest = float(replica.kv_bytes_per_chip(np.array([batch]))[0])
    return max(0.0, room / (batch * replica.chips * on_busiest))


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What is served: prompt and answer in tokens, and number formats."""

    input_tokens: int
    output_tokens: int
    weights: str = "bf16"
    kv: str = "bf16"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One way to run a phase: latency in seconds (per pass, per token), cost in chip-seconds per token."""

    phase: Phase
    shape: str
    chips: int
    batch: int
    layout: Layout
    attention: Attention
    latency_s: float
    cost_chip_s: float
    mfu: float
    binds: str


def choices(
    model: Model,
    chip: Chip,
    workload: Workload,
    phase: Phase,
    *,
    shapes: Sequence[str] | None = None,
    settings: MemorySettings = DEFAULT_SETTINGS,
) -> tuple[Choice, ...]:
    """All ways that fit, in order of shape, attention, layout and batch.

    A prefill takes the same time whatever the spread of the cache that it leaves: that decides what fits.
    """
    found: list[Choice] = []
    for shape in shapes if shapes is not None else shape_ladder(chip):
        for attention in SPREADS:
            replica, stages = replica_on(
                model, chip, shape, attention=attention, weights=workload.weights, kv=workload.kv
            )
            found += _of_replica(replica, stages, shape, workload, phase, settings)
    return tuple(found)


def _of_replica(
    replica: ReplicaCosts, stages: int, shape: str, workload: Workload, phase: Phase, settings: MemorySettings
) -> Iterator[Choice]:
    """All batches and layouts of one replica that fit."""
    decode = phase is Phase.DECODE
    held = workload.input_tokens + (workload.output_tokens if decode else 0)
    batches = [batch for batch in BATCHES if maximum_context(replica, batch, stages, settings=settings) >= held]
    if not batches:
        return
    middle = workload.input_tokens + workload.output_tokens // 2 if decode else workload.input_tokens
    chips = replica.chips * stages
    for layout in STATIONARY if decode else tuple(Layout):
        cost = pass_cost(replica, phase, batches, middle, layout, stages)
        for index, batch in enumerate(batches):
            tokens = batch if decode else batch * workload.input_tokens
            seconds = float(cost.seconds[index])
            yield Choice(
                phase=phase,
                shape=shape,
                chips=chips,
                batch=batch,
                layout=layout,
                attention=replica.attention,
                latency_s=seconds,
                cost_chip_s=chips * seconds / tokens,
                mfu=float(cost.mfu[index]),
                binds=str(cost.binds[index]),
            )


def front(found: Sequence[Choice], latency_limit_s: float = np.inf, chips_limit: float = np.inf) -> tuple[Choice, ...]:
    """The choices within the limits that no other beats in both latency and cost, from the fastest to the cheapest."""
    allowed = [each for each in found if each.latency_s <= latency_limit_s and each.chips <= chips_limit]
    best: list[Choice] = []
    for each in sorted(allowed, key=lambda choice: (choice.latency_s, choice.cost_chip_s, choice.chips)):
        if not best or each.cost_chip_s < best[-1].cost_chip_s:
            best.append(each)
    return tuple(best)


def smallest_shape(
    model: Model,
    chip: Chip,
    workload: Workload,
    settings: MemorySettings = DEFAULT_SETTINGS,
    *,
    batch: int = 1,
    attention: Attention = Attention.HEADS_X_BATCH,
) -> str | None:
    """The first shape of the chip's ladder that holds the weights and `batch` whole requests; None if none does."""
    for shape in shape_ladder(chip):
        replica, stages = replica_on(model, chip, shape, attention=attention, weights=workload.weights, kv=workload.kv)
        if maximum_context(replica, batch, stages, settings=settings) >= workload.input_tokens + workload.output_tokens:
            return shape
    return None
