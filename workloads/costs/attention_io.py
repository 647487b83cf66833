"""Traffic of attention between HBM and the chip, naive or tiled (FlashAttention), for N tokens of one head of width d.

Naive: every kernel writes its N x N values to HBM and the next one reads them. Tiled: blocks of K and V of M / 4d rows
stay on the chip (M: values that one unit's memory holds) while all of Q and O goes by, so Q and O are moved once per
block: Theta(N^2 d^2 / M) values (Dao et al., FlashAttention, as quoted in secondary texts).

Passes counted (values of N x N, or of N x d per block), with masking and dropout as in training:
forward   naive: S written; mask, softmax, dropout read and write; P V reads: 8.  tiled: Q read, O read and written: 3.
backward  naive: dP written; dropout, softmax (which reads P too), mask read and write; dS read twice, P once: 11.
          tiled: Q, O, dO read, dQ read and written: 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from topology.errors import refuse
from workloads.catalogue.chip import Chip

NAIVE_FORWARD, NAIVE_BACKWARD = 8, 11
"""Passes over N x N values with masking and dropout."""
NAIVE_INFERENCE = 4
"""The same at inference with the mask folded into the softmax: S written and read, P written and read."""
TILED_FORWARD, TILED_BACKWARD = 3, 5
"""Passes over N x d values per block of K and V."""


@dataclass(frozen=True, kw_only=True)
class AttentionIo:
    """Bytes between HBM and the chip of `heads` heads of width `head_dim`, self-attention over `tokens` tokens."""

    tokens: int
    head_dim: int
    heads: int = 1
    value_bytes: float = 2.0

    @property
    def strip_bytes(self) -> float:
        """N x d values of all heads, such as all keys."""
        return self.heads * self.value_bytes * self.tokens * self.head_dim

    def naive_bytes(self, *, training: bool = False) -> float:
        """Scores through HBM."""
        square, strip = float(self.tokens) ** 2, float(self.tokens) * self.head_dim
        passes = NAIVE_FORWARD + NAIVE_BACKWARD if training else NAIVE_INFERENCE
        strips = 4 + 8 if training else 4
        return self.heads * self.value_bytes * (passes * square + strips * strip)

    def tiled_bytes(self, chip: Chip, *, training: bool = False) -> float:
        """Scores stay on the chip. InputError where the chip's on-chip memory is unknown."""
        near = chip.nearest
        if near is None:
            raise refuse(
                "chip", f"no source tells the on-chip memory of {chip.name}", "choose another chip, or give it on_chip"
            )
        rows = max(1, math.floor(near.unit_bytes / self.value_bytes / (4 * self.head_dim)))
        blocks = math.ceil(self.tokens / rows)
        strip = float(self.tokens) * self.head_dim
        forward = 2.0 + TILED_FORWARD * blocks
        backward = 6.0 + TILED_BACKWARD * blocks if training else 0.0
        return self.heads * self.value_bytes * (forward + backward) * strip
