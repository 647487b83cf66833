"""The cost of one pass of a replica as plain arrays: what the token kernel eats.

A pass is one iteration of a batch through the model. Its time is affine in the context that it reads:

    time(pass) = sum of parts(T)                                  T = tokens of the pass
               + kv_read_s_per_token[B] * decode context          B = decoding sequences, context = sum of their tokens
               + prefill_pair_s * pairs                           pairs = (prompt token, earlier or same token) pairs
               + prefill_context_s_per_token * cached context     context that a later chunk of a prompt reads again

Every maximum or soft knee between compute and memory lies inside the parts, which depend on T alone. A pass that
carries prompt tokens takes `prefill_parts_s`, one that only decodes takes `decode_parts_s`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

PARTS = ("compute", "weights", "collectives", "fixed")
"""Columns of the parts of a pass: arithmetic, reading weights, moving data between chips, fixed time per layer."""

DENSE_TOKENS = 4096
"""The grid holds every token count up to this one; above it, a geometric ladder with linear interpolation."""

GRID_RATIO = 1.05
"""Ratio of neighbouring points of the ladder."""


def token_grid(max_tokens: int) -> NDArray[np.int64]:
    """Token counts 1, 2, ..., DENSE_TOKENS, then a geometric ladder (ratio 1.05) up to at least `max_tokens`."""
    points = list(range(1, DENSE_TOKENS + 1))
    while points[-1] < max_tokens:
        points.append(int(np.ceil(points[-1] * GRID_RATIO)))
    return np.array(points, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class PassCosts:
    """Seconds of a pass by part over a grid of token counts, and seconds per context token; see the module's text.

    `grid_tokens` (G,) starts 1, 2, ..., 4096; `decode_parts_s`, `prefill_parts_s` (G, 4) have the columns `PARTS`;
    between grid points the parts are interpolated linearly, beyond the last one the last slope goes on.
    `kv_read_s_per_token` (max_batch + 1,) is indexed by the number of decoding sequences and constant after its end
    (entry 0 is never used by a decode). The other fields are context for reports.
    """

    grid_tokens: NDArray[np.int64]
    decode_parts_s: NDArray[np.float64]
    prefill_parts_s: NDArray[np.float64]
    kv_read_s_per_token: NDArray[np.float64]
    prefill_pair_s: float
    prefill_context_s_per_token: float
    model: str = "synthetic"
    chip: str = "synthetic"
    shape: str = "1x1x1"
    chips: int = 1
    weight_bytes: float = 0.0
    kv_bytes_per_token: float = 0.0
    kv_replication: float = 1.0

    def __post_init__(self) -> None:
        """Check shapes, order and signs; raise ValueError saying which is wrong."""
        rows = self.grid_tokens.size
        if rows < 2 or self.grid_tokens[0] != 1 or np.any(np.diff(self.grid_tokens) <= 0):
            raise ValueError("grid_tokens must start at 1 and rise")
        dense = min(rows, DENSE_TOKENS)
        if not np.array_equal(self.grid_tokens[:dense], np.arange(1, dense + 1)):
            raise ValueError(f"grid_tokens must hold every count up to {DENSE_TOKENS} (or to its own end)")
        for name, parts in (("decode_parts_s", self.decode_parts_s), ("prefill_parts_s", self.prefill_parts_s)):
            if parts.shape != (rows, len(PARTS)) or not np.all(np.isfinite(parts)) or np.any(parts < 0):
                raise ValueError(f"{name} must be finite, not negative and of shape ({rows}, {len(PARTS)})")
        per_token = (self.kv_read_s_per_token, np.array([self.prefill_pair_s, self.prefill_context_s_per_token]))
        if any(np.any(values < 0) or not np.all(np.isfinite(values)) for values in per_token):
            raise ValueError("seconds per context token must be finite and not negative")
        if self.kv_read_s_per_token.size < 2:
            raise ValueError("kv_read_s_per_token needs an entry for at least one decoding sequence")

    def parts_s(self, tokens: int, *, prompt: bool) -> NDArray[np.float64]:
        """The four parts (4,) in seconds of a pass of `tokens` tokens; `prompt`: the pass carries prompt tokens."""
        parts = self.prefill_parts_s if prompt else self.decode_parts_s
        last = int(self.grid_tokens[-1])
        if tokens > last:
            slope = (parts[-1] - parts[-2]) / float(last - int(self.grid_tokens[-2]))
            return np.asarray(parts[-1] + slope * (tokens - last))
        return np.array([np.interp(tokens, self.grid_tokens, parts[:, column]) for column in range(len(PARTS))])

    def decode_s(self, batch: int, context_tokens: int) -> float:
        """Seconds of one decode step of `batch` sequences that read `context_tokens` tokens in all."""
        per_token = self.kv_read_s_per_token[min(batch, self.kv_read_s_per_token.size - 1)]
        return float(self.parts_s(batch, prompt=False).sum() + per_token * context_tokens)

    def prefill_s(self, prompt_tokens: int) -> float:
        """Seconds of one pass that computes a whole prompt alone: the time to first token of an idle replica."""
        pairs = prompt_tokens * (prompt_tokens + 1) // 2
        return float(self.parts_s(prompt_tokens, prompt=True).sum() + self.prefill_pair_s * pairs)

    def transfer_s_per_token(self, bytes_per_s: float) -> float:
        """Seconds to move the KV of one token over a link of `bytes_per_s` (all chips of a slice together, one way)."""
        return self.kv_bytes_per_token / bytes_per_s


def disaggregated_costs(prefill: PassCosts, decode: PassCosts) -> PassCosts:
    """Costs of a service whose prompts are computed on slices of one kind, and whose answers on slices of another.

    Both grids must be the same: make them with the same `max_tokens`.
    """
    if not np.array_equal(prefill.grid_tokens, decode.grid_tokens):
        raise ValueError("the grids of tokens of prefill and decode differ: make them with the same max_tokens")
    return replace(
        decode,
        prefill_parts_s=prefill.prefill_parts_s,
        prefill_pair_s=prefill.prefill_pair_s,
        prefill_context_s_per_token=prefill.prefill_context_s_per_token,
    )


def synthetic_pass_costs(
    *,
    fixed_s: float = 4e-3,
    per_token_s: float = 2e-6,
    weights_s: float = 3e-3,
    collectives_s_per_token: float = 5e-7,
    kv_read_s_per_token: float = 1e-9,
    pair_s: float = 0.0,
    context_s_per_token: float = 0.0,
    max_batch: int = 256,
    max_tokens: int = DENSE_TOKENS,
) -> PassCosts:
    """Straight-line costs for tests and benchmarks: parts linear in the tokens, reads the same for every batch."""
    grid = token_grid(max_tokens)
    parts = np.empty((grid.size, len(PARTS)))
    parts[:, 0] = per_token_s * grid
    parts[:, 1] = weights_s
    parts[:, 2] = collectives_s_per_token * grid
    parts[:, 3] = fixed_s
    return PassCosts(
        grid_tokens=grid,
        decode_parts_s=parts,
        prefill_parts_s=parts.copy(),
        kv_read_s_per_token=np.full(max_batch + 1, kv_read_s_per_token),
        prefill_pair_s=pair_s,
        prefill_context_s_per_token=context_s_per_token,
    )
