"""Time of collectives on the chips of one replica: a bandwidth term and a latency term.

Formulas of the JAX scaling book (chapters on TPUs and sharding). V is the bytes of the whole gathered (or pre-reduced)
array; an axis gives a chip two links, so W = 2 x the one-way rate on a ring. A chip at the end of an axis without
wraparound has one link there, so such an axis counts half: collectives over it take twice as long. The functions that
end in `_s` give bounds, the larger of the two terms; `*_terms_s` give both, for software that does not overlap them.

Through switches a chip sends at its full rate, in log2 steps (10, 20, 30 us for an all-reduce of 2, 4, 8 A100s: Vidur
profiles). A replica of several nodes takes the ring over all of them: the network of a whole node carries it. Faults:
`ring_kept` and `all_to_all_kept` are what routing keeps of the rates (`topology.routing.degraded`); the all-to-all of a
twisted torus follows `topology.bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topology.bounds import all_to_all_bytes_per_s
from topology.errors import refuse
from topology.shape import Shape
from workloads.catalogue.chip import Chip, Interconnect

Seconds = NDArray[np.float64]


@dataclass(frozen=True)
class SliceNetwork:
    """The chips of one replica: lengths of its axes, and which of them wrap around (a switch has one axis).

    `ring_kept`: share of its rate that each axis keeps under faults (empty: all of it); `all_to_all_kept` likewise.
    """

    axes: tuple[int, ...]
    wraps: tuple[bool, ...]
    twisted: bool = False
    ring_kept: tuple[float, ...] = ()
    all_to_all_kept: float = 1.0

    def __post_init__(self) -> None:
        """Refuse empty axes, a number of wraps that differs from the number of axes, and a twist without rings."""
        if not self.axes or min(self.axes) < 1 or len(self.wraps) != len(self.axes):
            raise ValueError("a slice needs axes of at least 1 chip and one wrap flag per axis")
        if self.twisted and not (len(self.axes) == 3 and all(self.wraps)):
            raise ValueError("a twisted slice has three axes that all wrap around")
        if self.ring_kept and len(self.ring_kept) != len(self.axes):
            raise ValueError("ring_kept needs one share per axis")

    @property
    def chips(self) -> int:
        """Number of chips."""
        return int(np.prod(self.axes))

    @property
    def text(self) -> str:
        """The shape as people write it, such as 4x4x8."""
        return "x".join(str(length) for length in self.axes) + ("_twisted" if self.twisted else "")

    def part(self, indices: tuple[int, ...]) -> SliceNetwork:
        """The groups of chips that the axes `indices` span (a single chip for none)."""
        if indices == tuple(range(len(self.axes))):
            return self
        axes, wraps = tuple(self.axes[i] for i in indices), tuple(self.wraps[i] for i in indices)
        kept = tuple(self.ring_kept[i] for i in indices) if self.ring_kept else ()
        return SliceNetwork(axes or (1,), wraps or (False,), ring_kept=kept)


def circuit_slice(axes: tuple[int, ...]) -> SliceNetwork:
    """A slice formed by circuits: every axis wraps if it is made of whole 4x4x4 cubes, none if it is smaller."""
    whole = len(axes) == 3 and all(length % 4 == 0 for length in axes)
    return SliceNetwork(axes, (whole,) * len(axes))


def cabled_slice(axes: tuple[int, int, int], pod_axes: tuple[int, int, int]) -> SliceNetwork:
    """A box of a statically cabled torus of `pod_axes` chips: an axis wraps only where it spans the pod."""
    if any(length > whole for length, whole in zip(axes, pod_axes, strict=True)):
        raise refuse("slice", f"{axes} does not fit into a pod of {pod_axes} chips", "write a smaller shape")
    return SliceNetwork(axes, tuple(length == whole for length, whole in zip(axes, pod_axes, strict=True)))


def nodes(chip: Chip, network: SliceNetwork) -> int:
    """Nodes that a replica behind switches takes; 1 on a torus."""
    if chip.interconnect is Interconnect.TORUS or chip.node_chips is None:
        return 1
    return -(-network.chips // chip.node_chips)


def network_rate(chip: Chip, chips: int) -> float:
    """Bytes per second of one chip's share of the network between nodes; InputError where nobody knows it."""
    if chip.network_bytes_per_s is None:
        what = f"{chips} x {chip.name} are more than a node of {chip.node_chips}, and its network is unknown"
        raise refuse("chip", what, f"write at most {chip.node_chips} chips, or give the chip network_bytes_per_s")
    return chip.network_bytes_per_s


def crossing_share(chip: Chip, network: SliceNetwork, all_to_all: bool) -> float:
    """Share of the bytes that chips take in which comes from other nodes: 0 within one.

    One of n / nodes hops of a ring crosses; of an all-to-all what goes to the n - m of n - 1 others that are not among
    the m of the own node.
    """
    count = nodes(chip, network)
    if count == 1:
        return 0.0
    if not all_to_all:
        return count / network.chips
    return 1.0 - sum(own * (own - 1) for own in node_sizes(chip, network)) / (network.chips * (network.chips - 1))


def node_sizes(chip: Chip, network: SliceNetwork) -> list[int]:
    """Chips of the replica in each node: full ones, then what is left."""
    whole = chip.node_chips or network.chips
    return [min(whole, network.chips - first) for first in range(0, network.chips, whole)]


def sends_between_nodes(chip: Chip, chips: int, stages: int) -> int:
    """How many of the sends from stage to stage (of `chips` chips each) leave a node: whole stages fill it in turn."""
    if chip.node_chips is None:
        return 0
    return (stages - 1) // max(1, chip.node_chips // chips)


def gather_bytes_per_s(chip: Chip, network: SliceNetwork) -> float:
    """Bytes per second that the worst-placed chip can take in from the others, over all axes at once."""
    if chip.interconnect is Interconnect.SWITCH:
        if nodes(chip, network) == 1:
            return chip.link_bytes_per_s
        return min(chip.link_bytes_per_s, network_rate(chip, network.chips) * (chip.node_chips or 1))
    kept = network.ring_kept or (1.0,) * len(network.axes)
    ends = [2.0 if wraps and length > 2 else 1.0 for length, wraps in zip(network.axes, network.wraps, strict=True)]
    alive = [end * share for end, length, share in zip(ends, network.axes, kept, strict=True) if length > 1]
    return chip.link_bytes_per_s * sum(alive)


def hops(chip: Chip, network: SliceNetwork) -> float:
    """Hops of the longest way of a collective: half of each ring, the whole of each open axis; log2 through a switch.

    A replica of several nodes counts the steps inside one of them here, those between nodes in `latency_s`.
    """
    if chip.interconnect is Interconnect.SWITCH:
        inside = min(network.chips, chip.node_chips or network.chips)
        return float(np.log2(inside))
    return float(
        sum(
            length / 2 if wraps and length > 2 else length - 1
            for length, wraps in zip(network.axes, network.wraps, strict=True)
        )
    )


def steps(network: SliceNetwork) -> float:
    """Steps that software needs for a collective which waits for latency alone: doubling along each axis, log2 n.

    Rings and lines of 4 take two, as in the program of Pope et al. (half of an axis; longer ones take more there).
    """
    return float(np.log2(network.chips))


def latency_s(chip: Chip, network: SliceNetwork) -> float:
    """Seconds of a gather of nothing: its hops, and its steps between nodes."""
    between = np.log2(nodes(chip, network)) * (chip.network_hop_s or 0.0)
    return float(hops(chip, network) * chip.hop_s + between)


def gather_terms_s(chip: Chip, network: SliceNetwork, total_bytes: Seconds) -> tuple[Seconds, float]:
    """Bandwidth and latency terms of an all-gather (or, backwards, a reduce-scatter) of `total_bytes` in all."""
    chips = network.chips
    total = np.asarray(total_bytes, dtype=np.float64)
    if chips == 1:
        return np.zeros_like(total), 0.0
    return total * ((chips - 1) / chips) / gather_bytes_per_s(chip, network), latency_s(chip, network)


def all_gather_s(chip: Chip, network: SliceNetwork, total_bytes: Seconds, network_efficiency: float = 1.0) -> Seconds:
    """Seconds of an all-gather after which every chip holds `total_bytes`: max(V (n-1)/n / rate, hops x hop time)."""
    bandwidth, latency = gather_terms_s(chip, network, total_bytes)
    return np.maximum(bandwidth / network_efficiency, latency)


def reduce_scatter_s(
    chip: Chip, network: SliceNetwork, total_bytes: Seconds, network_efficiency: float = 1.0
) -> Seconds:
    """Seconds of a reduce-scatter of `total_bytes` per chip before it: the all-gather run backwards."""
    return all_gather_s(chip, network, total_bytes, network_efficiency)


def all_reduce_s(chip: Chip, network: SliceNetwork, total_bytes: Seconds, network_efficiency: float = 1.0) -> Seconds:
    """Seconds of an all-reduce: a reduce-scatter, then an all-gather."""
    return 2.0 * all_gather_s(chip, network, total_bytes, network_efficiency)


def all_to_all_terms_s(chip: Chip, network: SliceNetwork, total_bytes: Seconds) -> tuple[Seconds, float]:
    """Bandwidth and latency terms of an all-to-all of `total_bytes` over all chips: half cross the middle of each axis.

    A ring of k chips among n carries V k / (4 n W), a quarter of its all-gather if k = n; an open axis twice that. The
    slowest axis binds. Through a switch every chip sends V / n^2 to each other one, to those of other nodes through its
    share of the network; the larger of both times counts.
    """
    chips = network.chips
    total = np.asarray(total_bytes, dtype=np.float64)
    if chips == 1:
        return np.zeros_like(total), 0.0
    if chip.interconnect is Interconnect.SWITCH:
        own = node_sizes(chip, network)
        per_byte = (max(own) - 1) / chip.link_bytes_per_s
        if len(own) > 1:
            per_byte = max(per_byte, (chips - min(own)) / network_rate(chip, chips))
        return total * (per_byte / chips**2), latency_s(chip, network)
    if network.twisted:
        x, y, z = network.axes
        slowest = 1.0 / (chips * all_to_all_bytes_per_s(Shape(x, y, z, True), None, chip.link_bytes_per_s))
    else:
        slowest = max(
            length / (4.0 * chips * chip.link_bytes_per_s * (2.0 if wraps and length > 2 else 1.0))
            for length, wraps in zip(network.axes, network.wraps, strict=True)
            if length > 1
        )
    return total * slowest / network.all_to_all_kept, latency_s(chip, network)


def all_to_all_s(chip: Chip, network: SliceNetwork, total_bytes: Seconds, network_efficiency: float = 1.0) -> Seconds:
    """Seconds of an all-to-all: the larger of its two terms."""
    bandwidth, latency = all_to_all_terms_s(chip, network, total_bytes)
    return np.maximum(bandwidth / network_efficiency, latency)
