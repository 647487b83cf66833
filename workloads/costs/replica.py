"""Seconds of one pass by part, for a model on the chips of one replica, after Pope et al. (arXiv:2211.05102).

Time = fixed + collectives(T) + activations(T) + g(T) + reads of keys and values + attention over prompts, T the tokens
of the pass. Communication is added, not overlapped (closer to the published prefill rows than a maximum of all three);
g is the sum over matrices of the soft maximum (c^k + w^k)^(1/k) of computing and reading weights. Of a mixture only
the experts that some token chose are read: count (1 - (1 - active / count)^T) of them, chosen evenly.

Weight-gathered layouts use weights as they arrive (memory is some four times faster than the links): each chip reads
only its own shard. Weights of one byte halve what is read, not what is computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from workloads.catalogue.chip import Chip
from workloads.catalogue.model import BF16_BYTES, Matrix, Model, Part
from workloads.catalogue.stack import StackConstants
from workloads.collectives import SliceNetwork
from workloads.costs.layouts import (
    Attention,
    Layout,
    axes_of_gathering,
    best_x_axes,
    kv_replication,
    split_network,
)
from workloads.costs.transfers import Floats, Spread, Transfer, seconds_of
from workloads.pass_costs import PARTS

Tokens = NDArray[np.int64]


class PassPart(StrEnum):
    """The parts of a pass that do not depend on the context."""

    COMPUTE = "compute"
    WEIGHTS = "weights"
    ACTIVATIONS = "activations"
    COLLECTIVES = "collectives"
    FIXED = "fixed"
    SAMPLING = "sampling"


@dataclass(frozen=True, kw_only=True)
class ReplicaCosts:
    """A model on one replica's chips (of one stage after the other, if several); methods return seconds.

    Activations are bf16. `whole_prompts`: where weights are gathered, each prompt stays on the chips that share a copy
    of them (batches must be whole multiples of the copies).
    """

    model: Model
    chip: Chip
    network: SliceNetwork
    attention: Attention = Attention.HEADS_X_BATCH
    weight_value_bytes: float = BF16_BYTES
    kv_value_bytes: float = BF16_BYTES
    constants: StackConstants
    whole_prompts: bool = False
    x_axes: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        """Choose the axes that split the model width."""
        object.__setattr__(self, "x_axes", best_x_axes(self.model, self.chip, self.network))

    @property
    def chips(self) -> int:
        """Chips of the replica, of one stage if it is a pipeline."""
        return self.network.chips

    @property
    def spread(self) -> Spread:
        """Where the pass runs, as the transfers need it."""
        return Spread(
            model=self.model,
            chip=self.chip,
            network=self.network,
            x_axes=self.x_axes,
            attention=self.attention,
            weight_value_bytes=self.weight_value_bytes,
            whole_prompts=self.whole_prompts,
        )

    # -- parts of a pass ---------------------------------------------------------------------------------------------

    def breakdown_s(
        self, layout: Layout, tokens: Tokens, *, prompt: bool, sequences: Tokens | None = None
    ) -> dict[PassPart, Floats]:
        """Seconds by part of passes of `tokens` tokens; `prompt`: passes that carry prompt tokens.

        `sequences` get a token at the end of the pass: all tokens of a decode, one of a prompt, unless given.
        """
        given = (np.ones_like(tokens) if prompt else tokens) if sequences is None else sequences
        logits = tokens if prompt and self.constants.all_logits else given
        compute, weights = np.zeros(np.shape(tokens)), np.zeros(np.shape(tokens))
        for matrix in self.model.matrices:
            rows = logits if matrix.part is Part.EMBEDDING else tokens
            of_compute, of_weights = knee_split(
                self.compute_s(matrix, self.padded(layout, rows)) / self.constants.matmul_efficiency,
                self.read_s(matrix, rows) / self.constants.hbm_efficiency,
                self.constants.knee,
            )
            compute, weights = compute + of_compute, weights + of_weights
        fixed = self.constants.layer_fixed_s + (self.constants.prompt_layer_fixed_s if prompt else 0.0)
        sampling = self.constants.pass_fixed_s + self.constants.sequence_fixed_s * given
        return {
            PassPart.COMPUTE: compute,
            PassPart.WEIGHTS: weights,
            PassPart.ACTIVATIONS: self.elementwise_bytes(layout, tokens) / self._memory_rate(),
            PassPart.COLLECTIVES: seconds_of(
                self.transfers(layout, tokens, prompt=prompt), self.chip, self.constants, tokens
            ),
            PassPart.FIXED: np.full(np.shape(tokens), self.model.layers * fixed),
            PassPart.SAMPLING: sampling,
        }

    def parts_s(self, layout: Layout, tokens: Tokens, *, prompt: bool) -> Floats:
        """Seconds (..., 4) by `PARTS` for the token kernel: activations with compute, sampling with what is fixed."""
        by_part = self.breakdown_s(layout, tokens, prompt=prompt)
        parts = np.empty((*np.shape(tokens), len(PARTS)))
        parts[..., 0] = by_part[PassPart.COMPUTE] + by_part[PassPart.ACTIVATIONS]
        parts[..., 1] = by_part[PassPart.WEIGHTS]
        parts[..., 2] = by_part[PassPart.COLLECTIVES]
        parts[..., 3] = by_part[PassPart.FIXED] + by_part[PassPart.SAMPLING]
        return parts

    def padded(self, layout: Layout, tokens: Tokens) -> Tokens:
        """Tokens as they are computed: a weight-gathered layout gives each group of chips as many."""
        copies = self.copies(layout)
        return np.asarray(-(-tokens // copies) * copies)

    def copies(self, layout: Layout) -> int:
        """Groups of chips that each have all weights of a layer at once, where it is computed."""
        return self.network.part(axes_of_gathering(self.network, layout)).chips if layout.gathered_axes else 1

    def compute_s(self, matrix: Matrix, tokens: Tokens) -> Floats:
        """Seconds of one matrix's products at the peak."""
        rate = self.chips * self.chip.peak_flops_per_s
        return (2.0 * matrix.active_parameters / rate) * tokens.astype(np.float64)

    def read_bytes(self, matrix: Matrix, tokens: Tokens) -> Floats:
        """Bytes of one matrix that all chips read together, each weight once."""
        return matrix.parameters * self.weight_value_bytes * touched_share(matrix, tokens)

    def read_s(self, matrix: Matrix, tokens: Tokens) -> Floats:
        """Seconds of reading one matrix at the full rate of memory."""
        return self.read_bytes(matrix, tokens) / (self.chips * self.chip.hbm_bytes_per_s)

    def elementwise_bytes(self, layout: Layout, tokens: Tokens) -> Floats:
        """Bytes per chip that norms, sums and activation functions move, where the stack has them as own kernels."""
        if self.constants.elementwise_passes == 0.0:
            return np.zeros(np.shape(tokens))
        model = self.model
        outer, inner = self.shares(layout)
        gates, experts = (2 if model.gated else 1), model.experts
        d_ff = model.d_ff if experts is None else (experts.active + experts.shared) * experts.d_ff
        widths = self.constants.elementwise_passes * model.d_model / outer
        widths += 2.0 * (gates * d_ff + model.query_width + model.kv_width) / inner
        return BF16_BYTES * model.layers * widths * tokens.astype(np.float64)

    def shares(self, layout: Layout) -> tuple[int, int]:
        """Ways in which values of the model's width, and of inner widths, are split (tokens and widths together)."""
        if layout.gathered_axes:
            return self.copies(layout), self.chips
        over_x, over_yz = split_network(self.network, self.x_axes if layout is Layout.WEIGHT_STATIONARY_2D else ())
        return over_x.chips, over_yz.chips

    def transfers(self, layout: Layout, tokens: Tokens, *, prompt: bool) -> list[Transfer]:
        """All that moves between chips in a pass."""
        spread = self.spread
        return [
            *spread.weight_transfers(layout, tokens),
            *spread.attention_transfers(layout, tokens, prompt=prompt),
        ]

    def _memory_rate(self) -> float:
        """Bytes per second of one chip's memory as the stack uses it."""
        return self.chip.hbm_bytes_per_s * self.constants.hbm_efficiency

    # -- keys and values ---------------------------------------------------------------------------------------------

    @property
    def kv_ways(self) -> int:
        """Ways that K and V of one token are split over heads: none when sharded by batch, else at most the K heads."""
        return self.spread.kv_ways

    @property
    def kv_replication(self) -> float:
        """r: how often K and V are held, in reads and in capacity."""
        return kv_replication(self.model, self.chips, self.attention)

    def kv_bytes_per_chip(self, batch: Tokens) -> Floats:
        """Bytes that the busiest chip reads of each context token of a decode of `batch` sequences (balanced)."""
        kv_bytes = self.model.kv_bytes_per_token(self.kv_value_bytes)
        if self.attention is Attention.HEADS:
            return np.full(np.shape(batch), kv_bytes * self.kv_replication / self.chips)
        if self.attention is Attention.CONTEXT:
            return np.full(np.shape(batch), kv_bytes / self.chips)
        beyond = max(1, self.chips // self.kv_ways)
        return np.asarray(kv_bytes / (self.kv_ways * np.minimum(np.maximum(batch, 1), beyond)))

    @property
    def kv_reads_per_value(self) -> float:
        """How often a cached value comes from on-chip memory: once, or once per query head of its group."""
        if self.constants.shared_kv_reads or self.model.latent is not None:
            return 1.0
        return self.model.padded_heads / self.model.kv_heads

    def decode_pair_s(self, batch: Tokens) -> Floats:
        """Seconds of a query's arithmetic on one context token at the peak, in a decode of `batch` sequences.

        Spread over chips as the cache is; sharded by heads, each chip has query heads of its own.
        """
        flops = self.model.attention_flops_per_pair(decode=True)
        if self.attention is Attention.HEADS:
            share = np.full(np.shape(batch), 1.0 / min(self.chips, self.model.padded_heads))
        else:
            share = self.kv_bytes_per_chip(batch) / self.model.kv_bytes_per_token(self.kv_value_bytes)
        return np.asarray(share * (flops / self.chip.peak_flops_per_s))

    def kv_read_s_per_token(self, batch: Tokens) -> Floats:
        """Seconds per context token that a decode of `batch` sequences reads: from HBM, from L2 where that binds.

        Or of the arithmetic on it at the share of matrix products, where that takes longer: all heads of latent
        attention share one vector, which is 242 FLOP per byte in DeepSeek-V3. (README of deepseek-ai/FlashMLA: such a
        decode is bound by arithmetic, and reaches 660 of the 989 TFLOP/s of an H800.)
        """
        held = self.kv_bytes_per_chip(batch) / self.constants.kv_efficiency
        seconds = held / self.chip.hbm_bytes_per_s
        last = self.chip.on_chip[-1] if self.chip.on_chip else None
        if self.kv_reads_per_value > 1.0 and last is not None and last.bytes_per_s is not None:
            seconds = np.maximum(seconds, held * self.kv_reads_per_value / last.bytes_per_s)
        return np.maximum(seconds, self.decode_pair_s(batch) / self.constants.matmul_efficiency)

    def prefill_pair_s(self) -> float:
        """Seconds per causal (query, key) pair: 4 H h L FLOPs at the stack's share of the peak, over all chips.

        FlashAttention-2 reaches on an A100 the same share of the peak as plain matrix products (0.73 against 0.7);
        that it does so on TPUs is our assumption.
        """
        rate = self.chips * self.chip.peak_flops_per_s * self.constants.attention_efficiency
        return self.model.attention_flops_per_pair() / rate

    def prefill_context_s_per_token(self) -> float:
        """Seconds per cached token that a later chunk of its prompt reads again: each chip its heads, from memory."""
        kv_bytes = self.model.kv_bytes_per_token(self.kv_value_bytes)
        ways = min(self.chips, self.model.kv_shards)
        return kv_bytes / ways / (self.chip.hbm_bytes_per_s * self.constants.kv_efficiency)

    # -- whole passes ------------------------------------------------------------------------------------------------

    def decode_step_s(self, batch: int, context_tokens: float, layout: Layout = Layout.WEIGHT_STATIONARY_2D) -> float:
        """Seconds of one decode step of `batch` sequences that read `context_tokens` tokens in all."""
        count = np.array([batch], dtype=np.int64)
        parts = float(self.parts_s(layout, count, prompt=False).sum())
        return parts + float(self.kv_read_s_per_token(count)[0]) * context_tokens

    def prefill_s(self, batch: int, prompt_tokens: int, layout: Layout = Layout.WEIGHT_STATIONARY_2D) -> float:
        """Seconds of one pass over `batch` prompts of `prompt_tokens` tokens each."""
        tokens, sequences = (np.array([count], dtype=np.int64) for count in (batch * prompt_tokens, batch))
        parts = self.breakdown_s(layout, tokens, prompt=True, sequences=sequences)
        pairs = batch * self.prompt_pairs(prompt_tokens)
        return float(sum(part[0] for part in parts.values())) + self.prefill_pair_s() * pairs

    def prompt_pairs(self, prompt_tokens: float) -> float:
        """(query, key) pairs of a prompt: the causal half, or all of them where attention is naive."""
        if not self.constants.tiled_attention:
            return float(prompt_tokens) ** 2
        return prompt_tokens * (prompt_tokens + 1) / 2


def touched_share(matrix: Matrix, tokens: Tokens) -> Floats:
    """Share of a matrix's copies that some of `tokens` tokens chose, evenly: 1 - (1 - used / copies)^tokens."""
    if matrix.copies == 1:
        return np.ones(np.shape(tokens))
    return np.asarray(1.0 - (1.0 - matrix.used / matrix.copies) ** tokens.astype(np.float64))


def rows_of_a_copy(matrix: Matrix, tokens: Tokens) -> Floats:
    """Tokens that a copy of a matrix is multiplied with on the mean, if it was chosen at all."""
    chosen = matrix.copies * touched_share(matrix, np.maximum(tokens, 1))
    return np.asarray(matrix.used * tokens.astype(np.float64) / chosen)


def knee_split(compute: Floats, weights: Floats, knee: float) -> tuple[Floats, Floats]:
    """g = (c^k + w^k)^(1/k), shared out as c^k : w^k; the two shares add up to g."""
    larger = np.maximum(compute, weights)
    c, w = (compute / larger) ** knee, (weights / larger) ** knee
    total = larger * (c + w) ** (1.0 / knee)
    of_compute = total * (c / (c + w))
    return of_compute, total - of_compute
