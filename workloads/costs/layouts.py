"""Layouts: how weights meet tokens, and how keys and values are spread, after Pope et al. (arXiv:2211.05102).

Mesh X x YZ = n chips: the model width E is split X ways, the inner widths (F, H h) YZ ways, for both phases.

* `weight_stationary_1d`: weights stay, E whole (X = 1). Per pair of matrix products an all-gather and a reduce-scatter
  of T E over all chips, whatever their number.
* `weight_stationary_2d`: weights stay. Per pair: all-gather of T E / X over yz, reduce-scatter of the outgoing widths
  T (2F or F, H h, 2 K h) / YZ over x, all-gather of the returning widths T (F, H h) / YZ over x, reduce-scatter of
  T E / X over yz. A parallel block does attention and feed-forward in one such pair, a serial one in two.
* `weight_gathered_x`, `_xy`, `_xyz`: each group of N chips (along one, two, all axes) gathers the weights of a layer
  and takes T / N tokens; inside, the other chips share the work as in the one-dimensional layout.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import combinations

import numpy as np

from topology.errors import refuse
from workloads.catalogue.chip import Chip, Interconnect
from workloads.catalogue.model import BF16_BYTES, BYTES_PER_VALUE, Model
from workloads.collectives import SliceNetwork, all_gather_s


class Layout(StrEnum):
    """How the weights of a layer meet the tokens."""

    WEIGHT_STATIONARY_1D = "weight_stationary_1d"
    WEIGHT_STATIONARY_2D = "weight_stationary_2d"
    WEIGHT_GATHERED_X = "weight_gathered_x"
    WEIGHT_GATHERED_XY = "weight_gathered_xy"
    WEIGHT_GATHERED_XYZ = "weight_gathered_xyz"

    @property
    def gathered_axes(self) -> int:
        """Axes along which weights are gathered; 0 where they stay."""
        return {Layout.WEIGHT_GATHERED_X: 1, Layout.WEIGHT_GATHERED_XY: 2, Layout.WEIGHT_GATHERED_XYZ: 3}.get(self, 0)


class Attention(StrEnum):
    """How the keys and values of a decode step are spread over the chips."""

    HEADS = "heads"
    BATCH = "batch"
    HEADS_X_BATCH = "heads_x_batch"
    CONTEXT = "context"


def bytes_per_value(name: str, where: str) -> float:
    """Bytes of a number format by name (`bf16`, `int8`, `fp8`); InputError at `where` for an unknown one."""
    try:
        return BYTES_PER_VALUE[name]
    except KeyError:
        raise refuse(
            where, f"{name!r} is no known number format", f"write one of {', '.join(BYTES_PER_VALUE)}"
        ) from None


def kv_replication(model: Model, chips: int, attention: Attention) -> float:
    """r: how often K and V of a token are held on `chips` chips: max(1, chips / K) when sharded by heads, else once."""
    return max(1.0, chips / model.kv_shards) if attention is Attention.HEADS else 1.0


def block_widths(model: Model, d_ff: int | None = None) -> tuple[tuple[int, int], ...]:
    """(outgoing, returning) inner widths of each pair of collectives of a layer: one pair if parallel, else two.

    `d_ff`: inner width of the feed-forward block, 0 where none takes part. Left out it is the width that one token
    meets: of a mixture of experts, shared and chosen ones together.
    """
    attention = (model.query_width + model.kv_width, model.attention_out_width)
    if d_ff is None:
        experts = model.experts
        d_ff = model.d_ff if experts is None else (experts.active + experts.shared) * experts.d_ff
    ffn = ((2 if model.gated else 1) * d_ff, d_ff)
    if model.parallel_block:
        return ((attention[0] + ffn[0], attention[1] + ffn[1]),)
    return (attention, ffn) if d_ff else (attention,)


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


def axes_of_gathering(network: SliceNetwork, layout: Layout) -> tuple[int, ...]:
    """The axes over which weights are gathered: the longest first, the first of equals; all where there are no more."""
    longest = sorted(range(len(network.axes)), key=lambda axis: (-network.axes[axis], axis))
    return tuple(sorted(longest[: layout.gathered_axes]))
