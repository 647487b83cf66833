"""What a scenario says of speculative decoding, and the memory that a draft model takes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sim.scenario_parts import Section
from topology.units import ClosedShare
from workloads.catalogue.chip import Chip
from workloads.catalogue.model import Model
from workloads.collectives import SliceNetwork
from workloads.kv_cache import KvMemory, MemorySettings, kv_memory
from workloads.pass_costs import PassCosts
from workloads.serving.drafts import MOST_DRAFTS, Speculation


class SpeculationSection(Section):
    """A small model drafts tokens, the large one checks them all in one pass; leading ones that it accepts count."""

    draft: str
    """The draft model, by its key; it runs on the same chips, in the same number formats."""
    length: Annotated[int, Field(ge=1, le=MOST_DRAFTS)] = 4
    """Tokens that are drafted per pass."""
    acceptance: ClosedShare
    """Chance that a drafted token is accepted; it depends on both models and on the texts."""

    def rule(self, draft: PassCosts) -> Speculation:
        """The same for the token kernel, once it is known what the draft model costs."""
        return Speculation(length=self.length, acceptance=self.acceptance, draft=draft)


def blocks_beside_draft(
    models: tuple[Model, Model], chip: Chip, network: SliceNetwork, settings: MemorySettings
) -> int:
    """KV blocks of a replica that holds both models; a block has room for 16 tokens of both (0: weights leave none)."""
    large, small = (kv_memory(model, chip, network, settings) for model in models)
    return KvMemory(
        hbm_bytes=large.hbm_bytes,
        weight_bytes=large.weight_bytes + small.weight_bytes,
        activation_bytes=large.activation_bytes,
        usable_bytes=large.usable_bytes,
        block_bytes=large.block_bytes + small.block_bytes,
    ).blocks
