"""What moves between the chips of a replica in one pass, by layout: whole arrays, the groups they move in, how often.

Norms. Where the model's width is split (two dimensions), each norm of a layer, one of a parallel block and two of a
serial one, sums its squares over x: an all-reduce of four bytes per token, of which only hops and steps count (so the
program of Pope et al., two_d_parallel_xmap.py).

Attention. Decode: `heads` moves K and V of the new tokens to all chips where these are more than K heads, if the width
is split (else each chip computes its own), and nothing more; `batch` pays two all-to-alls (queries, keys, values in;
the output back); `heads_x_batch` likewise where chips are more than K heads; `context` gathers the queries and reduces
the parts of the output. Prefill: always over heads, and over the queries of the prompt beyond them (whatever is chosen
for decode); each chip gathers K and V of its heads. Where weights are gathered and prompts stay whole on the chips of
one copy of them (`whole_prompts`), attention needs these chips only. Experts lie on chips of their own where there are
as many experts as chips (two all-to-alls of the tokens' active copies per layer); else each expert is split like a
dense block.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from workloads.catalogue.chip import Chip
from workloads.catalogue.model import BF16_BYTES, Model
from workloads.catalogue.stack import StackConstants
from workloads.collectives import SliceNetwork, all_to_all_terms_s, gather_terms_s, hops, latency_s, steps
from workloads.costs.layouts import Attention, Layout, axes_of_gathering, block_widths, split_network

Floats = NDArray[np.float64]


class Move(StrEnum):
    """A collective, as far as its cost goes: a reduce-scatter is a gather backwards."""

    GATHER = "gather"
    ALL_TO_ALL = "all_to_all"


class Carries(StrEnum):
    """What a transfer carries."""

    WEIGHTS = "weights"
    ACTIVATIONS = "activations"


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """`times` collectives of whole arrays of `total_bytes` in groups of `network`, over a whole pass."""

    move: Move
    network: SliceNetwork
    total_bytes: Floats
    times: float
    carries: Carries = Carries.ACTIVATIONS

    @property
    def bytes_per_chip(self) -> Floats:
        """Bytes that one chip takes in."""
        chips = self.network.chips
        share = (chips - 1) / chips if self.move is Move.GATHER else (chips - 1) / chips**2
        return self.times * self.total_bytes * share

    def bandwidth_s(self, chip: Chip) -> Floats:
        """Seconds at the full rate of the links, without latency."""
        terms = gather_terms_s if self.move is Move.GATHER else all_to_all_terms_s
        return self.times * terms(chip, self.network, self.total_bytes)[0]

    def floor_s(self, chip: Chip) -> float:
        """Least seconds of all its hops, at the chip's own time of a hop."""
        return self.times * latency_s(chip, self.network) if self.network.chips > 1 else 0.0

    def seconds(self, chip: Chip, constants: StackConstants) -> Floats:
        """Seconds as the software does it: bytes at its share of the rate, then hops, then its own time."""
        if self.network.chips == 1:
            return np.zeros_like(self.total_bytes)
        software = constants.collective_fixed_s + constants.step_s * steps(self.network)
        latency = latency_s(chip, self.network) + software
        return self.bandwidth_s(chip) / constants.network_efficiency + self.times * latency


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Where a pass runs: the model, the chips of one pipeline stage, the axes of x, how the cache is spread."""

    model: Model
    chip: Chip
    network: SliceNetwork
    x_axes: tuple[int, ...]
    attention: Attention
    weight_value_bytes: float
    whole_prompts: bool = False

    @property
    def kv_ways(self) -> int:
        """Ways that K and V of one token are split over heads: none when sharded by batch, else at most the K heads."""
        return 1 if self.attention is Attention.BATCH else min(self.network.chips, self.model.kv_shards)

    @property
    def experts_apart(self) -> bool:
        """Whether experts lie on chips of their own."""
        experts = self.model.experts
        return experts is not None and experts.count >= self.network.chips > 1

    # -- weights meet tokens -----------------------------------------------------------------------------------------

    def weight_transfers(self, layout: Layout, tokens: NDArray[np.int64]) -> list[Transfer]:
        """The collectives that the layout of the weights needs."""
        if layout.gathered_axes:
            return self._gathered(layout, tokens)
        x_axes = self.x_axes if layout is Layout.WEIGHT_STATIONARY_2D else ()
        over_x, over_yz = split_network(self.network, x_axes)
        activations = BF16_BYTES * tokens.astype(np.float64)
        found: list[Transfer] = []
        for layers, (outgoing, returning) in self._pairs():
            width = activations * (self.model.d_model / over_x.chips)
            found.append(Transfer(move=Move.GATHER, network=over_yz, total_bytes=width, times=2.0 * layers))
            for inner in (outgoing, returning):
                split = activations * (inner / over_yz.chips)
                found.append(Transfer(move=Move.GATHER, network=over_x, total_bytes=split, times=layers))
        norms = 2.0 * len(block_widths(self.model)) * self.model.layers
        found.append(Transfer(move=Move.GATHER, network=over_x, total_bytes=0.0 * activations, times=norms))
        return found + self._expert_transfers(tokens)

    def _pairs(self) -> list[tuple[int, tuple[int, int]]]:
        """Pairs of collectives, each with the layers that have it; of experts on chips of their own the shared ones."""
        experts = self.model.experts
        if not self.experts_apart or experts is None:
            return [(self.model.layers, pair) for pair in block_widths(self.model)]
        mixed = block_widths(self.model, experts.shared * experts.d_ff)
        found = [(self.model.layers - experts.dense_layers, pair) for pair in mixed]
        if experts.dense_layers:
            found += [(experts.dense_layers, pair) for pair in block_widths(self.model, self.model.d_ff)]
        return found

    def _expert_transfers(self, tokens: NDArray[np.int64]) -> list[Transfer]:
        experts = self.model.experts
        if not self.experts_apart or experts is None:
            return []
        layers = self.model.layers - experts.dense_layers
        copies = BF16_BYTES * tokens.astype(np.float64) * (experts.active * self.model.d_model)
        return [Transfer(move=Move.ALL_TO_ALL, network=self.network, total_bytes=copies, times=2.0 * layers)]

    def _gathered(self, layout: Layout, tokens: NDArray[np.int64]) -> list[Transfer]:
        over_n, rest = split_network(self.network, axes_of_gathering(self.network, layout))
        held = self.model.layer_parameters * self.weight_value_bytes / rest.chips
        activations = BF16_BYTES * tokens.astype(np.float64) * (self.model.d_model / over_n.chips)
        pairs, layers = len(block_widths(self.model)), self.model.layers
        return [
            Transfer(
                move=Move.GATHER,
                network=over_n,
                total_bytes=np.full(np.shape(tokens), held),
                times=layers,
                carries=Carries.WEIGHTS,
            ),
            Transfer(move=Move.GATHER, network=rest, total_bytes=activations, times=2.0 * layers * pairs),
        ]

    # -- attention ---------------------------------------------------------------------------------------------------

    def attention_transfers(self, layout: Layout, tokens: NDArray[np.int64], *, prompt: bool) -> list[Transfer]:
        """The collectives that attention needs beyond those of the weights."""
        if prompt and self.whole_prompts and layout.gathered_axes:
            return self._attention_of_whole_prompts(layout, tokens)
        model, network, layers = self.model, self.network, float(self.model.layers)
        activations = BF16_BYTES * tokens.astype(np.float64)
        query, back, held = model.query_width, model.attention_out_width, model.kv_width
        found: list[Transfer] = []

        def move(kind: Move, width: float) -> Transfer:
            return Transfer(move=kind, network=network, total_bytes=activations * width, times=layers)

        beyond_heads = not prompt and self.attention is not Attention.HEADS and network.chips > self.kv_ways
        if layout.gathered_axes or (beyond_heads and self.attention is not Attention.CONTEXT):
            found += [move(Move.ALL_TO_ALL, query + held), move(Move.ALL_TO_ALL, back)]
        elif beyond_heads:
            found += [move(Move.GATHER, query + held), move(Move.GATHER, back)]
        width_is_split = layout is Layout.WEIGHT_STATIONARY_2D and bool(self.x_axes)
        gathers = prompt or (self.attention is Attention.HEADS and width_is_split)
        if gathers and network.chips > model.kv_shards:
            found.append(move(Move.GATHER, held * self._kv_share_of(network.chips)))
        return found

    def _attention_of_whole_prompts(self, layout: Layout, tokens: NDArray[np.int64]) -> list[Transfer]:
        """Heads are spread over the chips that share a copy of the weights: each gathers K and V of its heads there."""
        over_n, rest = split_network(self.network, axes_of_gathering(self.network, layout))
        if rest.chips <= self.model.kv_shards:
            return []
        values = BF16_BYTES * tokens.astype(np.float64) * (self.model.kv_width / over_n.chips)
        total = values * self._kv_share_of(rest.chips)
        return [Transfer(move=Move.GATHER, network=rest, total_bytes=total, times=float(self.model.layers))]

    def _kv_share_of(self, chips: int) -> float:
        """Share of K and V that each of so many chips, more than heads of K, needs for its heads of Q."""
        shards = self.model.kv_shards
        return max(1.0, shards / min(chips, self.model.padded_heads)) / shards


def seconds_of(transfers: list[Transfer], chip: Chip, constants: StackConstants, like: NDArray[np.int64]) -> Floats:
    """Seconds of transfers one after the other, shaped like the token counts `like`."""
    total = np.zeros(np.shape(like))
    for each in transfers:
        total = total + each.seconds(chip, constants)
    return total


def hops_of(transfers: list[Transfer], chip: Chip) -> float:
    """Hops of all transfers of a pass, one after the other."""
    return sum(each.times * hops(chip, each.network) for each in transfers if each.network.chips > 1)
