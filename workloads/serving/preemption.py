"""What becomes of KV for which HBM has no room: preemption plug-ins for requests, tiers for shared prefixes."""

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

    `s_per_block`: seconds to move the KV of one block, all copies, over the host links of all chips of a replica
    together, one way.
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


@dataclass(frozen=True, kw_only=True)
class Tiers:
    """Memory below the cache of a replica, in blocks, to which pieces move whose blocks are taken.

    `host_s_per_block`, `remote_s_per_block`: seconds to read the KV of one block from the host, or from the remote
    store (through the host, at what is narrower). Rules: see `tiers`.
    """

    host_blocks: int
    host_s_per_block: float
    remote_blocks: int = 0
    remote_s_per_block: float = 0.0

    def __post_init__(self) -> None:
        """Refuse tiers without memory, and links without an end."""
        if min(self.host_blocks, self.remote_blocks) < 0 or self.host_blocks + self.remote_blocks < 1:
            raise ValueError("tiers need at least one block: leave them out for none")
        for seconds in (self.host_s_per_block, self.remote_s_per_block):
            if not (math.isfinite(seconds) and seconds >= 0):
                raise ValueError(f"{seconds:g} s per block of a tier: write seconds of at least 0")
