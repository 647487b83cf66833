"""One accelerator: rates and sizes of its memories and links.

Bytes are decimal unless a source says GiB. One-way and both-ways bandwidths are kept apart in the names. What no
source tells is None, never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from workloads.provenance import Source

GIB = 2.0**30


class Interconnect(StrEnum):
    """How the chips of a replica are joined."""

    TORUS = "torus"
    """Links along the axes of a slice; an axis may or may not wrap around."""
    SWITCH = "switch"
    """One switch between all chips of a node; every chip sends and receives at its full rate."""


@dataclass(frozen=True, kw_only=True)
class OnChip:
    """A memory on the chip: all its bytes over `units` equal parts, and its rate in all (None: no source tells)."""

    name: str
    bytes: float
    units: int = 1
    bytes_per_s: float | None = None

    @property
    def unit_bytes(self) -> float:
        """Bytes of one part, such as one SM."""
        return self.bytes / self.units


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One accelerator. `link_bytes_per_s` is one way: of one of two links per axis, or of the chip (switch).

    `hop_s`: the time of one hop, which bounds a small collective from below (switch: the time of one step).
    `axes`, `ring_chips`: dimensions of its torus, and the chips of which an axis must be made to close to a ring.
    `node_chips`: chips behind one switch; beyond them a replica goes over the network (`network_bytes_per_s`, one way,
    per chip; a step between nodes takes `network_hop_s`). `host_link_bytes_per_s`: one way too. `on_chip`: its
    memories, the nearest to the arithmetic first.
    """

    key: str
    name: str
    family: str
    interconnect: Interconnect
    peak_flops_per_s: float
    int8_ops_per_s: float | None = None
    fp8_flops_per_s: float | None = None
    hbm_bytes: float
    hbm_bytes_per_s: float
    link_bytes_per_s: float
    hop_s: float
    axes: int = 3
    ring_chips: int = 4
    node_chips: int | None = None
    host_link_bytes_per_s: float | None = None
    network_bytes_per_s: float | None = None
    network_hop_s: float | None = None
    on_chip: tuple[OnChip, ...] = ()
    sources: tuple[Source, ...]

    def __post_init__(self) -> None:
        """Refuse rates and sizes that no chip has."""
        needed = (self.peak_flops_per_s, self.hbm_bytes, self.hbm_bytes_per_s, self.link_bytes_per_s)
        optional = (
            self.int8_ops_per_s,
            self.fp8_flops_per_s,
            self.host_link_bytes_per_s,
            self.network_bytes_per_s,
            self.node_chips,
        )
        if min(needed) <= 0 or self.hop_s < 0 or any(value is not None and value <= 0 for value in optional):
            raise ValueError(f"chip {self.key}: every rate and size must be above 0, hop_s at least 0")
        if not 1 <= self.axes <= 3 or self.ring_chips < 1:
            raise ValueError(f"chip {self.key}: 1 to 3 axes, and rings of at least 1 chip")

    @property
    def critical_tokens(self) -> float:
        """FLOPs per byte of memory at which bf16 matrix products leave the memory bound: peak / HBM rate."""
        return self.peak_flops_per_s / self.hbm_bytes_per_s

    @property
    def nearest(self) -> OnChip | None:
        """The on-chip memory next to the arithmetic; None where no source tells."""
        return self.on_chip[0] if self.on_chip else None
