"""What a scenario says of the KV memory of a service: how blocks are given out, and what becomes of what is evicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Tag

from sim.scenario_parts import Section, kind_or
from topology.units import Bytes, Unit
from workloads.catalogue.chip import Chip
from workloads.kv_cache import BLOCK_TOKENS, Contiguous, Paged, PrefixSharing
from workloads.pass_costs import PassCosts
from workloads.serving.preemption import Preemption, Recompute, Swap, Tiers

HOST_MEMORY_BYTES = 4 * 2.0**30
"""Host memory for swapped blocks, per chip: the default of vLLM's `--swap-space` per GPU (its list of arguments)."""

TIER_MEMORY_BYTES = 56 * 2.0**30
"""Host memory for prefixes, per chip: about 450 GiB per 8 v5e in a published TPU set-up with such a cache."""

ChipLink = Annotated[float, Unit("byte/s", low=1e3, high=1e18)]
"""Bounds far outside of any machine, those of the rates of a chip of one's own."""

Cache = Annotated[
    Annotated[Paged, Tag("paged")]
    | Annotated[Contiguous, Tag("contiguous")]
    | Annotated[PrefixSharing, Tag("prefix_sharing")],
    kind_or("paged"),
]


@dataclass(frozen=True, kw_only=True)
class RecomputeSection:
    """It is dropped; prompt and sent tokens are computed again."""

    kind: Literal["recompute"] = "recompute"


@dataclass(frozen=True, kw_only=True)
class SwapSection:
    """It is written to the memory of the slice's hosts and read back; where that is full it is computed again.

    Each chip moves what it holds over a host link of its own. The time is added to the pass that begins (category
    `swap` of the ledger): nothing is overlapped, an upper bound.
    """

    kind: Literal["swap"] = "swap"
    host_memory: Bytes = HOST_MEMORY_BYTES
    link: ChipLink | None = None

    def rule(self, chip: Chip, costs: PassCosts) -> Preemption:
        """The same for the token kernel; a memory below one block is recompute."""
        blocks, s_per_block = _tier(self.host_memory, self.link or chip.host_link_bytes_per_s, costs)
        return Swap(host_blocks=blocks, s_per_block=s_per_block) if blocks > 0 else Recompute()


class TiersSection(Section):
    """Memory below the KV cache, per chip of a replica: shared prefixes whose blocks are taken move down, and come up
    when they are found; reading takes time (category `swap` of the ledger), writing is in the background."""

    host_memory: Bytes = TIER_MEMORY_BYTES
    """Memory of the hosts for prefixes, per chip."""
    host_link: ChipLink | None = None
    """What the host link of a chip carries, one way; the chip's own where it is left out."""
    remote_memory: Bytes = 0.0
    """Share of a replica in a remote store, per chip; 0: there is none."""
    remote_link: ChipLink | None = None
    """What the network carries for one chip, one way; the chip's own where it is left out."""

    def rule(self, chip: Chip, costs: PassCosts) -> Tiers | None:
        """The same for the token kernel; None where neither holds a block."""
        host_link, network = self.host_link or chip.host_link_bytes_per_s, self.remote_link or chip.network_bytes_per_s
        host, host_s = _tier(self.host_memory, host_link, costs)
        remote, remote_s = _tier(self.remote_memory, network, costs)
        if host + remote == 0:
            return None
        return Tiers(host_blocks=host, host_s_per_block=host_s, remote_blocks=remote, remote_s_per_block=remote_s)


def _tier(memory_bytes: float, link_bytes_per_s: float | None, costs: PassCosts) -> tuple[int, float]:
    """Blocks of a replica in memory of so many bytes per chip, and seconds per block over one link per chip."""
    if memory_bytes == 0:
        return 0, 0.0
    assert link_bytes_per_s is not None, "the scenario was checked"
    block_bytes = BLOCK_TOKENS * costs.kv_bytes_per_token * costs.kv_replication
    return int(memory_bytes * costs.chips / block_bytes), block_bytes / (link_bytes_per_s * costs.chips)


PreemptionSection = Annotated[
    Annotated[RecomputeSection, Tag("recompute")] | Annotated[SwapSection, Tag("swap")], kind_or("recompute")
]


def preemption_rule(section: RecomputeSection | SwapSection, chip: Chip, costs: PassCosts) -> Preemption:
    """What becomes of the evicted, for the token kernel, once chip and costs are known."""
    return section.rule(chip, costs) if isinstance(section, SwapSection) else Recompute()
