"""Seconds of one pass by part, for a model on the chips of one replica, after Pope et al. (arXiv:2211.05102).

Mesh X x YZ = n chips: the model width E is split X ways, the inner widths (F, H h) YZ ways, for both phases.

* `weight_stationary_2d`: weights stay. Per pair of matrix products: all-gather of T E / X over yz, reduce-scatter of
  the outgoing widths T (2F or F, H h, 2 K h) / YZ over x, all-gather of the returning widths T (F, H h) / YZ over x,
  reduce-scatter of T E / X over yz. A parallel block does attention and feed-forward in one such pair, a serial two.
* `weight_gathered_xyz`: every chip gathers the weights of a layer and computes its own T / n tokens. The gathered
  weights are used as they arrive (memory is some four times faster than the links): each chip reads only its own shard.

Attention. Decode: `heads` replicates K and V r = max(1, n / K) times; `batch` divides reads by min(n, B) and pays two
all-to-alls; `heads_x_batch` does so over the K heads first and the batch beyond them. Prefill: always over heads, and
over the queries of the prompt beyond them (whatever is chosen for decode); each chip gathers K and V of its heads.

Time = fixed + collectives(T) + g(T) + reads: communication is added, not overlapped (closer to the published prefill
rows than a maximum of all three), and g is the soft maximum (c^k + w^k)^(1/k) of computing and reading weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from workloads.catalogue.chip import Chip, Interconnect
from workloads.catalogue.model import BF16_BYTES, BYTES_PER_VALUE, Model
from workloads.catalogue.stacks import StackConstants, constants_of
from workloads.collectives import SliceNetwork, all_gather_s, all_to_all_s, reduce_scatter_s
from workloads.pass_costs import PARTS, PassCosts, token_grid

Floats = NDArray[np.float64]


class Layout(StrEnum):
    """How the weights of a layer meet the tokens."""

    WEIGHT_STATIONARY_2D = "weight_stationary_2d"
    WEIGHT_GATHERED_XYZ = "weight_gathered_xyz"


class Attention(StrEnum):
    """How the keys and values of a decode step are spread over the chips."""

    HEADS = "heads"
    BATCH = "batch"
    HEADS_X_BATCH = "heads_x_batch"


def bytes_per_value(name: str, where: str) -> float:
    """Bytes of a number format by name (`bf16`, `int8`); InputError at `where` for an unknown one."""
    try:
        return BYTES_PER_VALUE[name]
    except KeyError:
        raise refuse(
            where, f"{name!r} is no known number format", f"write one of {', '.join(BYTES_PER_VALUE)}"
        ) from None


@dataclass(frozen=True, kw_only=True)
class ReplicaCosts:
    """A model on one replica's chips; all methods return seconds. Activations are bf16."""

    model: Model
    chip: Chip
    network: SliceNetwork
    attention: Attention = Attention.HEADS_X_BATCH
    weight_value_bytes: float = BF16_BYTES
    kv_value_bytes: float = BF16_BYTES
    constants: StackConstants
    x_axes: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        """Choose the axes that split the model width."""
        object.__setattr__(self, "x_axes", best_x_axes(self.model, self.chip, self.network))

    @property
    def chips(self) -> int:
        """Chips of the replica."""
        return self.network.chips

    # -- parts of a pass ---------------------------------------------------------------------------------------------

    def parts_s(self, layout: Layout, tokens: NDArray[np.int64], *, prompt: bool) -> Floats:
        """Seconds (..., 4) by `PARTS` of passes of `tokens` tokens; `prompt`: passes that carry prompt tokens."""
        spread = tokens
        if layout is Layout.WEIGHT_GATHERED_XYZ:
            spread = -(-tokens // self.chips) * self.chips
        rate = self.chips * self.chip.peak_flops_per_s * self.constants.matmul_efficiency
        compute = (2.0 * self.model.executed_parameters / rate) * spread.astype(np.float64)
        weights = self.model.weight_bytes(self.weight_value_bytes) / self._memory_rate()
        parts = np.empty((*np.shape(tokens), len(PARTS)))
        parts[..., 0], parts[..., 1] = knee_split(compute, np.full(np.shape(tokens), weights), self.constants.knee)
        parts[..., 2] = self.model.layers * (
            self._weight_layout_s(layout, tokens) + self._attention_s(layout, tokens, prompt)
        )
        parts[..., 3] = self.model.layers * self.constants.layer_fixed_s
        return parts

    def _memory_rate(self) -> float:
        return self.chips * self.chip.hbm_bytes_per_s * self.constants.hbm_efficiency

    def _weight_layout_s(self, layout: Layout, tokens: NDArray[np.int64]) -> Floats:
        """Seconds of the collectives of one layer that the layout of the weights needs."""
        chip, network, efficiency = self.chip, self.network, self.constants.network_efficiency
        if layout is Layout.WEIGHT_GATHERED_XYZ:
            gathered = np.full(np.shape(tokens), self.model.layer_parameters * self.weight_value_bytes)
            return all_gather_s(chip, network, gathered, efficiency)
        over_x, over_yz = split_network(network, self.x_axes)
        activations = BF16_BYTES * tokens.astype(np.float64)
        total = np.zeros(np.shape(tokens))
        for outgoing, returning in block_widths(self.model):
            width = activations * (self.model.d_model / over_x.chips)
            total += all_gather_s(chip, over_yz, width, efficiency) + reduce_scatter_s(chip, over_yz, width, efficiency)
            total += reduce_scatter_s(chip, over_x, activations * (outgoing / over_yz.chips), efficiency)
            total += all_gather_s(chip, over_x, activations * (returning / over_yz.chips), efficiency)
        return total

    def _attention_s(self, layout: Layout, tokens: NDArray[np.int64], prompt: bool) -> Floats:
        """Seconds of the collectives of one layer that attention needs beyond those of the weights."""
        model, chip, network, efficiency = self.model, self.chip, self.network, self.constants.network_efficiency
        activations = BF16_BYTES * tokens.astype(np.float64)
        total = np.zeros(np.shape(tokens))
        query_width = model.padded_heads * model.head_dim
        kv_width = 2 * model.kv_heads * model.head_dim
        by_batch = not prompt and self.attention is not Attention.HEADS and self.chips > self.kv_ways
        if by_batch or layout is Layout.WEIGHT_GATHERED_XYZ:
            total += all_to_all_s(chip, network, activations * (query_width + kv_width), efficiency)
            total += all_to_all_s(chip, network, activations * query_width, efficiency)
        if prompt and self.chips > model.kv_heads:
            heads_per_chip = max(1.0, model.kv_heads / min(self.chips, model.padded_heads))
            held = activations * (2.0 * heads_per_chip * model.head_dim)
            total += all_gather_s(chip, network, held, efficiency)
        return total

    # -- keys and values ---------------------------------------------------------------------------------------------

    @property
    def kv_ways(self) -> int:
        """Ways that K and V of one token are split over heads: none when sharded by batch, else at most the K heads."""
        return 1 if self.attention is Attention.BATCH else min(self.chips, self.model.kv_heads)

    @property
    def kv_replication(self) -> float:
        """r: how often K and V are held, in reads and in capacity."""
        return kv_replication(self.model, self.chips, self.attention)

    def kv_read_s_per_token(self, batch: NDArray[np.int64]) -> Floats:
        """Seconds per context token read by a decode of `batch` sequences (balanced over the chips that hold some)."""
        kv_bytes = self.model.kv_bytes_per_token(self.kv_value_bytes)
        rate = self.chip.hbm_bytes_per_s * self.constants.hbm_efficiency
        if self.attention is Attention.HEADS:
            return np.full(np.shape(batch), kv_bytes * self.kv_replication / self.chips / rate)
        beyond = max(1, self.chips // self.kv_ways)
        return np.asarray(kv_bytes / (self.kv_ways * np.minimum(np.maximum(batch, 1), beyond)) / rate)

    def prefill_pair_s(self) -> float:
        """Seconds per causal (query, key) pair: 4 H h L FLOPs, tiled, at the matrix efficiency, over all chips.

        FlashAttention-2 reaches on an A100 the same share of the peak as plain matrix products (0.73 against 0.7);
        that it does so on other chips is our assumption.
        """
        rate = self.chips * self.chip.peak_flops_per_s * self.constants.matmul_efficiency
        return self.model.attention_flops_per_pair() / rate

    def prefill_context_s_per_token(self) -> float:
        """Seconds per cached token that a later chunk of its prompt reads again: each chip its heads, from memory."""
        kv_bytes = self.model.kv_bytes_per_token(self.kv_value_bytes)
        ways = min(self.chips, self.model.kv_heads)
        return kv_bytes / ways / (self.chip.hbm_bytes_per_s * self.constants.hbm_efficiency)

    # -- whole passes ------------------------------------------------------------------------------------------------

    def decode_step_s(self, batch: int, context_tokens: float, layout: Layout = Layout.WEIGHT_STATIONARY_2D) -> float:
        """Seconds of one decode step of `batch` sequences that read `context_tokens` tokens in all."""
        count = np.array([batch], dtype=np.int64)
        parts = float(self.parts_s(layout, count, prompt=False).sum())
        return parts + float(self.kv_read_s_per_token(count)[0]) * context_tokens

    def prefill_s(self, batch: int, prompt_tokens: int, layout: Layout = Layout.WEIGHT_STATIONARY_2D) -> float:
        """Seconds of one pass over `batch` prompts of `prompt_tokens` tokens each."""
        tokens = np.array([batch * prompt_tokens], dtype=np.int64)
        pairs = batch * prompt_tokens * (prompt_tokens + 1) / 2
        return float(self.parts_s(layout, tokens, prompt=True).sum()) + self.prefill_pair_s() * pairs


def kv_replication(model: Model, chips: int, attention: Attention) -> float:
    """r: how often K and V of a token are held on `chips` chips: max(1, chips / K) when sharded by heads, else once."""
    return max(1.0, chips / model.kv_heads) if attention is Attention.HEADS else 1.0


def block_widths(model: Model) -> tuple[tuple[int, int], ...]:
    """(outgoing, returning) inner widths of each pair of collectives of a layer: one pair if parallel, else two."""
    query = model.padded_heads * model.head_dim
    attention = (query + 2 * model.kv_heads * model.head_dim, query)
    ffn = ((2 if model.gated else 1) * model.d_ff, model.d_ff)
    if model.parallel_block:
        return ((attention[0] + ffn[0], attention[1] + ffn[1]),)
    return attention, ffn


def split_network(network: SliceNetwork, x_axes: tuple[int, ...]) -> tuple[SliceNetwork, SliceNetwork]:
    """The groups over which x and yz collectives run."""
    rest = tuple(axis for axis in range(len(network.axes)) if axis not in x_axes)
    return network.part(x_axes), network.part(rest)


def best_x_axes(model: Model, chip: Chip, network: SliceNetwork) -> tuple[int, ...]:
    """The axes for x whose collectives carry the fewest seconds per token.

    Both x and yz get at least one axis longer than 1, where there are two; else x is empty and the layout is the
    one-dimensional one (so too through a switch).
    """
    axes = [axis for axis, length in enumerate(network.axes) if length > 1]
    if chip.interconnect is Interconnect.SWITCH or len(axes) < 2:
        return ()
    choices = [choice for count in range(1, len(axes)) for choice in combinations(axes, count)]
    many = np.array([BF16_BYTES * 2.0**24])
    inner = sum(sum(pair) for pair in block_widths(model))
    outer = 2.0 * len(block_widths(model)) * model.d_model

    def seconds(choice: tuple[int, ...]) -> float:
        over_x, over_yz = split_network(network, choice)
        outer_s = all_gather_s(chip, over_yz, many * (outer / over_x.chips))
        inner_s = all_gather_s(chip, over_x, many * (inner / over_yz.chips))
        return float((outer_s + inner_s)[0])

    return min(choices, key=seconds)


def knee_split(compute: Floats, weights: Floats, knee: float) -> tuple[Floats, Floats]:
    """g = (c^k + w^k)^(1/k), shared out as c^k : w^k; the two shares add up to g."""
    larger = np.maximum(compute, weights)
    c, w = (compute / larger) ** knee, (weights / larger) ** knee
    total = larger * (c + w) ** (1.0 / knee)
    of_compute = total * (c / (c + w))
    return of_compute, total - of_compute


def replica_pass_costs(
    model: Model,
    chip: Chip,
    network: SliceNetwork,
    *,
    layout: Layout = Layout.WEIGHT_STATIONARY_2D,
    prefill_layout: Layout | None = None,
    attention: Attention = Attention.HEADS_X_BATCH,
    weights: str = "bf16",
    kv: str = "bf16",
    max_batch: int | None = 256,
    max_tokens: int = 2**20,
    constants: StackConstants | None = None,
) -> PassCosts:
    """Tables for the token kernel. `prefill_layout` None takes the faster of the two layouts at every token count.

    `max_batch` None is unlimited: reads per token are constant once every chip has a sequence. `max_tokens`: the grid
    reaches at least so far. `constants` default to the usual stack of the chip's family.
    """
    replica = ReplicaCosts(
        model=model,
        chip=chip,
        network=network,
        attention=attention,
        weight_value_bytes=bytes_per_value(weights, "weights"),
        kv_value_bytes=bytes_per_value(kv, "kv"),
        constants=constants or constants_of(chip),
    )
    grid = token_grid(max_tokens)
    choices = tuple(Layout) if prefill_layout is None else (prefill_layout,)
    prefill = np.stack([replica.parts_s(choice, grid, prompt=True) for choice in choices])
    faster = np.argmin(prefill.sum(axis=2), axis=0)
    last_batch = max(1, replica.chips if max_batch is None else min(max_batch, math.prod(network.axes)))
    return PassCosts(
        grid_tokens=grid,
        decode_parts_s=replica.parts_s(layout, grid, prompt=False),
        prefill_parts_s=prefill[faster, np.arange(grid.size)],
        kv_read_s_per_token=replica.kv_read_s_per_token(np.arange(last_batch + 1, dtype=np.int64)),
        prefill_pair_s=replica.prefill_pair_s(),
        prefill_context_s_per_token=replica.prefill_context_s_per_token(),
        model=model.key,
        chip=chip.key,
        shape=network.text,
        chips=replica.chips,
        weight_bytes=model.weight_bytes(replica.weight_value_bytes),
        kv_bytes_per_token=model.kv_bytes_per_token(replica.kv_value_bytes),
        kv_replication=replica.kv_replication,
    )
