"""Speculative decoding as a service is told of it: how many tokens are drafted, how many accepted, what both cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from workloads.pass_costs import PassCosts

MOST_DRAFTS = 32
"""Most tokens that a pass may draft: a limit of ours."""


@dataclass(frozen=True, kw_only=True)
class Speculation:
    """A draft model proposes `length` tokens, of which leading ones are accepted with probability `acceptance` each.

    `draft`: what a pass of the draft model costs on the same chips. `acceptance` is a number of the user's: it depends
    on both models and on the texts. Rules: see `speculation`.
    """

    length: int
    acceptance: float
    draft: PassCosts = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no number of drafts and no share."""
        if not 1 <= self.length <= MOST_DRAFTS:
            raise ValueError(f"length of {self.length}: write a number of drafts between 1 and {MOST_DRAFTS}")
        if not 0 <= self.acceptance <= 1:
            raise ValueError(f"acceptance must be a share in [0, 1], not {self.acceptance:g}")

    @property
    def tokens_per_pass(self) -> float:
        """Mean tokens of a sequence per pass, its end aside: (1 - alpha^(k + 1)) / (1 - alpha)."""
        return float(sum(self.acceptance**accepted for accepted in range(self.length + 1)))


def speculative_costs(costs: PassCosts, speculation: Speculation) -> PassCosts:
    """Costs of a service that speculates, its decode row B being a whole pass: k draft steps, one check of B (k + 1).

    The check reads each context once; drafts read that of the draft model k times, as long as when the pass begins.
    Passes with prompts compute them with both models, and read as if they drafted (an upper bound). ValueError where
    the grids of tokens differ.
    """
    draft, drafts = speculation.draft, speculation.length
    if not np.array_equal(costs.grid_tokens, draft.grid_tokens):
        raise ValueError("the grids of tokens of model and draft model differ: make them with the same max_tokens")
    checked = parts_at(costs, costs.grid_tokens * (drafts + 1))
    size = max(costs.kv_read_s_per_token.size, draft.kv_read_s_per_token.size)
    reads, draft_reads = (_longer(table.kv_read_s_per_token, size) for table in (costs, draft))
    return replace(
        costs,
        decode_parts_s=checked + drafts * draft.decode_parts_s,
        prefill_parts_s=costs.prefill_parts_s + draft.prefill_parts_s,
        kv_read_s_per_token=reads + drafts * draft_reads,
        prefill_pair_s=costs.prefill_pair_s + draft.prefill_pair_s,
        prefill_context_s_per_token=costs.prefill_context_s_per_token + draft.prefill_context_s_per_token,
    )


def parts_at(costs: PassCosts, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Decode parts (n, 4) in seconds of passes of `tokens` (n,), interpolated.

    Beyond the grid the last slope of each part goes on, but none falls.
    """
    grid, parts = costs.grid_tokens, costs.decode_parts_s
    within = np.stack([np.interp(tokens, grid, column) for column in parts.T], axis=1)
    slope = np.maximum(parts[-1] - parts[-2], 0.0) / float(grid[-1] - grid[-2])
    return np.asarray(within + np.maximum(tokens - grid[-1], 0)[:, np.newaxis] * slope)


def _longer(table: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """The table with its last entry repeated up to `size`."""
    return np.append(table, np.full(size - table.size, table[-1]))
