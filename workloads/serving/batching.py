"""Batching plug-ins: how many tokens one pass may carry, and how many sequences may run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

NO_LIMIT = 1 << 40
"""Tokens of a pass, or sequences, when there is no limit."""
LONGEST_WAIT_S = 1e9
"""Well inside the clock of int64 nanoseconds."""


@dataclass(frozen=True, kw_only=True)
class ContinuousBatching:
    """Requests join and leave at every pass; whole prompts are computed in the pass that admits them.

    `max_batch` is the most sequences that run at once (None: as many as the KV cache holds).
    """

    kind: Literal["continuous"] = "continuous"
    max_batch: int | None = None

    def __post_init__(self) -> None:
        """Refuse an empty batch."""
        check_max_batch(self.max_batch)

    def token_budget(self) -> int:
        """Most tokens of one pass."""
        return NO_LIMIT


@dataclass(frozen=True, kw_only=True)
class ChunkedPrefill:
    """As continuous, but a pass carries at most `budget` tokens: decodes first, prompts in chunks with what is left.

    `budget` must be greater than the largest batch, `max_batch`, or prompts could wait for ever behind decodes.
    """

    kind: Literal["chunked_prefill"] = "chunked_prefill"
    budget: int
    max_batch: int | None = 256

    def __post_init__(self) -> None:
        """Refuse a batch that may fill the budget."""
        check_max_batch(self.max_batch)
        if self.max_batch is None:
            raise ValueError("chunked_prefill needs a max_batch below its budget")
        if self.budget <= self.max_batch:
            raise ValueError(f"budget must be greater than the largest batch ({self.max_batch}), not {self.budget}")

    def token_budget(self) -> int:
        """Most tokens of one pass."""
        return self.budget


@dataclass(frozen=True, kw_only=True)
class StaticBatching:
    """A batch is formed from the queue of an empty replica, padded, and held until its longest answer ends.

    It begins when `max_batch` requests wait, or when the head of the queue has waited for `wait_s` since its arrival.
    """

    kind: Literal["static"] = "static"
    max_batch: int = 32
    wait_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse an empty batch and a wait that is no time."""
        check_max_batch(self.max_batch)
        if not 0 <= self.wait_s <= LONGEST_WAIT_S:
            raise ValueError(f"wait_s must lie between 0 and {LONGEST_WAIT_S:g} s, not {self.wait_s:g}")

    def token_budget(self) -> int:
        """Most tokens of one pass."""
        return NO_LIMIT


@dataclass(frozen=True, kw_only=True)
class Disaggregated:
    """The first `prefill_replicas` replicas compute prompts, the others decode; KV moves between them over links.

    `transfer_s_per_token`: seconds to move the KV of one token over the link of a replica (see the method of that name
    of `PassCosts`): ICI inside a slice, the network between slices; `layers`: those of the model, whose KV streams
    while they are computed. `decode_blocks`: KV blocks of a decode replica (None: as many as a prefill replica).
    `budget`: most prompt tokens of one pass (None: whole prompts, as many as wait). `max_batch`: most sequences of one
    replica.
    """

    kind: Literal["disaggregated"] = "disaggregated"
    prefill_replicas: int
    transfer_s_per_token: float
    layers: int = 1
    decode_blocks: int | None = None
    budget: int | None = None
    max_batch: int | None = 256

    def __post_init__(self) -> None:
        """Refuse pools without replicas, and links without an end."""
        check_max_batch(self.max_batch)
        if self.prefill_replicas < 1 or self.layers < 1 or (self.budget is not None and self.budget < 1):
            raise ValueError("prefill_replicas, layers and the budget must be at least 1")
        if self.decode_blocks is not None and self.decode_blocks < 1:
            raise ValueError("decode replicas need at least one block of KV cache")
        if not (math.isfinite(self.transfer_s_per_token) and self.transfer_s_per_token >= 0):
            raise ValueError(f"transfer_s_per_token of {self.transfer_s_per_token:g}: write seconds of at least 0")

    def token_budget(self) -> int:
        """Most tokens of one pass."""
        return NO_LIMIT if self.budget is None else self.budget


Batching = ContinuousBatching | ChunkedPrefill | StaticBatching | Disaggregated


def check_max_batch(max_batch: int | None) -> None:
    """Raise ValueError unless `max_batch` is None or at least 1."""
    if max_batch is not None and max_batch < 1:
        raise ValueError(f"max_batch must be at least 1, not {max_batch}")
