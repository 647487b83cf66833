"""Batching plug-ins: how many tokens one pass may carry, and how many sequences may run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NO_LIMIT = 1 << 40
"""Tokens of a pass, or sequences, when there is no limit."""


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


Batching = ContinuousBatching | ChunkedPrefill


def check_max_batch(max_batch: int | None) -> None:
    """Raise ValueError unless `max_batch` is None or at least 1."""
    if max_batch is not None and max_batch < 1:
        raise ValueError(f"max_batch must be at least 1, not {max_batch}")
