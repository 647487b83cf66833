"""Time of collectives on the chips of one replica: bandwidth term against latency floor.

Formulas of the JAX scaling book (chapters on TPUs and sharding). V is the bytes of the whole gathered (or pre-reduced)
array; an axis gives a chip two links, so W = 2 x the one-way rate on a ring. A chip at the end of an axis without
wraparound has one link there, so such an axis counts half: collectives over it take twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from workloads.catalogue.chip import Chip, Interconnect

Seconds = NDArray[np.float64]


@dataclass(frozen=True)
class SliceNetwork:
    """The chips of one replica: lengths of its axes, and which of them wrap around (a switch has one axis)."""

    axes: tuple[int, ...]
    wraps: tuple[bool, ...]

    def __post_init__(self) -> None:
        """Refuse empty axes and a number of wraps that differs from the number of axes."""
        if not self.axes or min(self.axes) < 1 or len(self.wraps) != len(self.axes):
            raise ValueError("a slice needs axes of at least 1 chip and one wrap flag per axis")

    @property
    def chips(self) -> int:
        """Number of chips."""
        return int(np.prod(self.axes))

    @property
    def text(self) -> str:
        """The shape as people write it, such as 4x4x8."""
        return "x".join(str(length) for length in self.axes)

    def part(self, indices: tuple[int, ...]) -> SliceNetwork:
        """The groups of chips that the axes `indices` span (a single chip for none)."""
        axes, wraps = tuple(self.axes[i] for i in indices), tuple(self.wraps[i] for i in indices)
        return SliceNetwork(axes or (1,), wraps or (False,))


def circuit_slice(axes: tuple[int, ...]) -> SliceNetwork:
    """A slice formed by circuits: every axis wraps if it is made of whole 4x4x4 cubes, none if it is smaller."""
    whole = len(axes) == 3 and all(length % 4 == 0 for length in axes)
    return SliceNetwork(axes, (whole,) * len(axes))


def cabled_slice(axes: tuple[int, int, int], pod_axes: tuple[int, int, int]) -> SliceNetwork:
    """A box of a statically cabled torus of `pod_axes` chips: an axis wraps only where it spans the pod."""
    if any(length > whole for length, whole in zip(axes, pod_axes, strict=True)):
        raise refuse("slice", f"{axes} does not fit into a pod of {pod_axes} chips", "write a smaller shape")
    return SliceNetwork(axes, tuple(length == whole for length, whole in zip(axes, pod_axes, strict=True)))


def gather_bytes_per_s(chip: Chip, network: SliceNetwork) -> float:
    """Bytes per second that the worst-placed chip can take in from the others, over all axes at once."""
    if chip.interconnect is Interconnect.SWITCH:
        return chip.link_bytes_per_s
    ends = [2.0 if wraps and length > 2 else 1.0 for length, wraps in zip(network.axes, network.wraps, strict=True)]
    return chip.link_bytes_per_s * sum(end for end, length in zip(ends, network.axes, strict=True) if length > 1)


def hops(chip: Chip, network: SliceNetwork) -> float:
    """Hops of the longest way of a collective: half of each ring, the whole of each open axis; one through a switch."""
    if chip.interconnect is Interconnect.SWITCH:
        return 1.0 if network.chips > 1 else 0.0
    return float(
        sum(
            length / 2 if wraps and length > 2 else length - 1
            for length, wraps in zip(network.axes, network.wraps, strict=True)
        )
    )


def all_gather_s(chip: Chip, network: SliceNetwork, total_bytes: Seconds, network_efficiency: float = 1.0) -> Seconds:
    """Seconds of an all-gather after which every chip holds `total_bytes`: max(V (n-1)/n / rate, hops x hop time)."""
    chips = network.chips
    if chips == 1:
        return np.zeros_like(total_bytes, dtype=np.float64)
    rate = gather_bytes_per_s(chip, network) * network_efficiency
    moved = np.asarray(total_bytes, dtype=np.float64) * ((chips - 1) / chips)
    return np.maximum(moved / rate, hops(chip, network) * chip.hop_s)


def reduce_scatter_s(
    chip: Chip, network: SliceNetwork, total_bytes: Seconds, network_efficiency: float = 1.0
) -> Seconds:
    """Seconds of a reduce-scatter of `total_bytes` per chip before it: the all-gather run backwards."""
    return all_gather_s(chip, network, total_bytes, network_efficiency)


def all_reduce_s(chip: Chip, network: SliceNetwork, total_bytes: Seconds, network_efficiency: float = 1.0) -> Seconds:
    """Seconds of an all-reduce: a reduce-scatter, then an all-gather."""
    return 2.0 * all_gather_s(chip, network, total_bytes, network_efficiency)


def all_to_all_s(chip: Chip, network: SliceNetwork, total_bytes: Seconds, network_efficiency: float = 1.0) -> Seconds:
    """Seconds of an all-to-all of `total_bytes` over all chips: half of them cross the middle of each axis.

    A ring of k chips among n carries V k / (4 n W), a quarter of its all-gather if k = n; an open axis twice that. The
    slowest axis binds. Through a switch every chip sends and receives its V / n.
    """
    chips = network.chips
    total = np.asarray(total_bytes, dtype=np.float64)
    if chips == 1:
        return np.zeros_like(total)
    link = chip.link_bytes_per_s * network_efficiency
    if chip.interconnect is Interconnect.SWITCH:
        return np.maximum(total * (chips - 1) / chips**2 / link, chip.hop_s)
    slowest = max(
        length / (4.0 * chips * link * (2.0 if wraps and length > 2 else 1.0))
        for length, wraps in zip(network.axes, network.wraps, strict=True)
        if length > 1
    )
    return np.maximum(total * slowest, hops(chip, network) * chip.hop_s)
