"""What a scenario says of the KV memory of a service: how blocks are given out, and what becomes of what is evicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Tag

from sim.scenario_parts import kind_or
from topology.units import Bytes, BytesPerSecond
from workloads.catalogue.chip import Chip
from workloads.kv_cache import BLOCK_TOKENS, Contiguous, Paged, PrefixSharing
from workloads.pass_costs import PassCosts
from workloads.serving.preemption import Preemption, Recompute, Swap

HOST_MEMORY_BYTES = 4 * 2.0**30
"""Host memory for swapped blocks, per chip: the default of vLLM's `--swap-space` per GPU (its list of arguments)."""

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
    link: BytesPerSecond | None = None

    def rule(self, chip: Chip, costs: PassCosts) -> Preemption:
        """The same for the token kernel; a memory below one block is recompute."""
        link = self.link or chip.host_link_bytes_per_s
        assert link is not None, "the scenario was checked"
        block_bytes = BLOCK_TOKENS * costs.kv_bytes_per_token * costs.kv_replication
        blocks = int(self.host_memory * costs.chips / block_bytes)
        return Swap(host_blocks=blocks, s_per_block=block_bytes / (link * costs.chips)) if blocks > 0 else Recompute()


PreemptionSection = Annotated[
    Annotated[RecomputeSection, Tag("recompute")] | Annotated[SwapSection, Tag("swap")], kind_or("recompute")
]


def preemption_rule(section: RecomputeSection | SwapSection, chip: Chip, costs: PassCosts) -> Preemption:
    """What becomes of the evicted, for the token kernel, once chip and costs are known."""
    return section.rule(chip, costs) if isinstance(section, SwapSection) else Recompute()
