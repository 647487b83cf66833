"""Preemption plug-ins: what becomes of the KV of a request that is evicted for want of blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Recompute:
    """It is dropped; prompt and sent tokens are computed again."""

    kind: Literal["recompute"] = "recompute"


@dataclass(frozen=True, kw_only=True)
class Swap:
    """It is written to the memory of the replica's hosts and read back, while `host_blocks` blocks have room there.

    `s_per_block`: seconds to move the KV of one block over the host links of all chips of a replica, one way (see
    `swap_s_per_token` of `PassCosts`).
    """

    kind: Literal["swap"] = "swap"
    host_blocks: int
    s_per_block: float

    def __post_init__(self) -> None:
        """Refuse hosts without memory, and links without an end."""
        if self.host_blocks < 1:
            raise ValueError(f"host_blocks of {self.host_blocks}: write at least 1, or recompute")
        if not (math.isfinite(self.s_per_block) and self.s_per_block >= 0):
            raise ValueError(f"s_per_block of {self.s_per_block:g}: write seconds of at least 0")


Preemption = Recompute | Swap
