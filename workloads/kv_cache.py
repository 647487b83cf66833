"""The memory of keys and values on a replica: how many blocks it has, what a request reserves, what fits.

Blocks of a replica = floor((chips x HBM x utilisation - weights - activation reserve) / (16 x KV bytes per token x r)),
where r is how often K and V are held (`kv_replication`) and the activation reserve is a share of all HBM. The cache
counts as balanced over the chips.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from topology.errors import refuse
from workloads.catalogue.chip import Chip
from workloads.catalogue.model import Model
from workloads.collectives import SliceNetwork, circuit_slice
from workloads.costs.layouts import Attention, bytes_per_value, kv_replication

BLOCK_TOKENS = 16
"""Tokens of one block: vLLM's default (Kwon et al., arXiv:2309.06180)."""

UTILISATION = 0.9
ACTIVATION_RESERVE = 0.05

SLICE_LADDER: tuple[tuple[int, int, int], ...] = (
    (1, 1, 1),
    (1, 1, 2),
    (1, 2, 2),
    (2, 2, 2),
    (2, 2, 4),
    (2, 4, 4),
    (4, 4, 4),
    (4, 4, 8),
    (4, 8, 8),
    (8, 8, 8),
    (8, 8, 16),
    (8, 16, 16),
    (12, 16, 16),
    (16, 16, 16),
)
"""Shapes from one chip to a v4 pod, in the order in which the smallest slice is looked for."""


def blocks_for(tokens: int) -> int:
    """Blocks that hold `tokens` tokens of one request."""
    return -(-tokens // BLOCK_TOKENS)


@dataclass(frozen=True, kw_only=True)
class KvMemory:
    """Memory of one replica in bytes, and what it means in blocks of 16 tokens."""

    hbm_bytes: float
    weight_bytes: float
    activation_bytes: float
    usable_bytes: float
    block_bytes: float

    @property
    def blocks(self) -> int:
        """Blocks of the replica (0 where the weights leave no room)."""
        room = self.usable_bytes - self.weight_bytes - self.activation_bytes
        return max(0, math.floor(room / self.block_bytes))

    @property
    def tokens(self) -> int:
        """Tokens that all blocks hold."""
        return self.blocks * BLOCK_TOKENS


@dataclass(frozen=True, kw_only=True)
class MemorySettings:
    """How a replica uses its memory: number formats, and shares of all HBM (`utilisation`, `activation_reserve`)."""

    attention: Attention = Attention.HEADS_X_BATCH
    weights: str = "bf16"
    kv: str = "bf16"
    utilisation: float = UTILISATION
    activation_reserve: float = ACTIVATION_RESERVE

    def __post_init__(self) -> None:
        """Refuse shares that leave nothing."""
        if not 0 < self.utilisation <= 1 or not 0 <= self.activation_reserve < self.utilisation:
            raise ValueError("0 <= activation_reserve < utilisation <= 1 must hold")


DEFAULT_SETTINGS = MemorySettings()


def kv_memory(model: Model, chip: Chip, network: SliceNetwork, settings: MemorySettings = DEFAULT_SETTINGS) -> KvMemory:
    """Memory of a replica of `model` on the chips of `network`."""
    hbm_bytes = network.chips * chip.hbm_bytes
    replication = kv_replication(model, network.chips, settings.attention)
    return KvMemory(
        hbm_bytes=hbm_bytes,
        weight_bytes=model.weight_bytes(bytes_per_value(settings.weights, "weights")),
        activation_bytes=hbm_bytes * settings.activation_reserve,
        usable_bytes=hbm_bytes * settings.utilisation,
        block_bytes=BLOCK_TOKENS * model.kv_bytes_per_token(bytes_per_value(settings.kv, "kv")) * replication,
    )


def smallest_slice_that_fits(
    model: Model,
    chip: Chip,
    longest_tokens: int,
    settings: MemorySettings = DEFAULT_SETTINGS,
    ladder: Iterable[tuple[int, int, int]] = SLICE_LADDER,
) -> tuple[int, int, int] | None:
    """The first shape of `ladder` on which the weights and one request of `longest_tokens` fit; None if none does."""
    for shape in ladder:
        if kv_memory(model, chip, circuit_slice(shape), settings).blocks >= blocks_for(longest_tokens):
            return shape
    return None


def require_fit(
    model: Model,
    chip: Chip,
    network: SliceNetwork,
    longest_tokens: int,
    settings: MemorySettings = DEFAULT_SETTINGS,
    where: str = "slice",
) -> KvMemory:
    """The memory of a replica on which one request of `longest_tokens` fits; else InputError with the smallest slice.

    `longest_tokens` is the cache of the longest request at its end: prompt + answer - 1.
    """
    memory = kv_memory(model, chip, network, settings)
    if memory.blocks >= blocks_for(longest_tokens):
        return memory
    what = (
        f"{model.name} on {network.text} ({network.chips} x {chip.name}) leaves {memory.tokens:,} tokens of cache "
        f"beside {memory.weight_bytes / 1e9:,.0f} GB of weights in {memory.hbm_bytes / 1e9:,.0f} GB; "
        f"the longest request needs {longest_tokens:,}"
    )
    smallest = smallest_slice_that_fits(model, chip, longest_tokens, settings)
    if smallest is None:
        raise refuse(where, what, "no slice up to 16x16x16 holds it: write a shorter request or a smaller model")
    raise refuse(where, what, f"write {'x'.join(map(str, smallest))} or larger")


@dataclass(frozen=True, kw_only=True)
class Paged:
    """Blocks are taken as tokens come: a request holds what its tokens need, rounded up to a block."""

    kind: Literal["paged"] = "paged"

    def reserved_tokens(self, input_tokens: int, output_tokens: int) -> int:
        """Tokens reserved for a request when its prompt is admitted."""
        return blocks_for(input_tokens) * BLOCK_TOKENS


@dataclass(frozen=True, kw_only=True)
class PrefixSharing:
    """Paged, and equal leading pieces of prompts are kept once: requests name the pieces of their prompts (traces)."""

    kind: Literal["prefix_sharing"] = "prefix_sharing"

    def reserved_tokens(self, input_tokens: int, output_tokens: int) -> int:
        """Tokens reserved for a request when its prompt is admitted and nothing of it is found."""
        return blocks_for(input_tokens) * BLOCK_TOKENS


@dataclass(frozen=True, kw_only=True)
class Contiguous:
    """One piece per request, reserved at admission: `max_model_len`, the next power of two, or its need (`oracle`)."""

    kind: Literal["contiguous"] = "contiguous"
    reserve: Literal["max_model_len", "power_of_two", "oracle"] = "max_model_len"
    max_model_len: int = 8192

    def __post_init__(self) -> None:
        """Refuse a longest request below one block."""
        if self.max_model_len < BLOCK_TOKENS:
            raise ValueError(f"max_model_len of {self.max_model_len}: write a whole number of at least {BLOCK_TOKENS}")

    def reserved_tokens(self, input_tokens: int, output_tokens: int) -> int:
        """Tokens reserved for a request from admission to its end (its cache ends at in + out - 1 tokens)."""
        final = input_tokens + output_tokens - 1
        if self.reserve == "oracle":
            return blocks_for(final) * BLOCK_TOKENS
        if self.reserve == "power_of_two":
            return max(BLOCK_TOKENS, 1 << (final - 1).bit_length())
        return blocks_for(max(self.max_model_len, final)) * BLOCK_TOKENS
