"""Chips, and how well a software stack uses them: two tables in which every number bears its source and mark.

Bytes are decimal unless a source says GiB. One-way and both-ways bandwidths are kept apart in the names.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from topology.errors import refuse
from workloads.provenance import Mark, Source

GIB = 2.0**30


class Interconnect(StrEnum):
    """How the chips of a replica are joined."""

    TORUS = "torus"
    """Links along the axes of a slice; an axis may or may not wrap around."""
    SWITCH = "switch"
    """One switch between all chips; every chip sends and receives at its full rate."""


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One accelerator. `link_bytes_per_s` is one way: of one of two links per axis, or of the chip (switch).

    `hop_s`: the time of one hop, which bounds a small collective from below (switch: the time of one step).
    """

    key: str
    name: str
    family: str
    interconnect: Interconnect
    peak_flops_per_s: float
    hbm_bytes: float
    hbm_bytes_per_s: float
    link_bytes_per_s: float
    hop_s: float
    sources: tuple[Source, ...]

    @property
    def critical_tokens(self) -> float:
        """FLOPs per byte of memory at which bf16 matrix products leave the memory bound: peak / HBM rate."""
        return self.peak_flops_per_s / self.hbm_bytes_per_s


@dataclass(frozen=True, kw_only=True)
class StackConstants:
    """How well one software stack uses one chip family: shares of the catalogue's peaks, and a fixed time per layer.

    `knee` is the power of the norm that joins compute and weight reading: 2 is a soft knee, large values a sharp one.
    At most three of the constants are fitted; `sources` says which, and on what.
    """

    family: str
    stack: str
    matmul_efficiency: float
    network_efficiency: float
    hbm_efficiency: float
    layer_fixed_s: float
    knee: float
    sources: tuple[Source, ...]

    def __post_init__(self) -> None:
        """Refuse shares outside (0, 1], a negative fixed time or a knee below 1."""
        shares = (self.matmul_efficiency, self.network_efficiency, self.hbm_efficiency)
        if not all(0 < share <= 1 for share in shares):
            raise ValueError("efficiencies must lie in (0, 1]")
        if self.layer_fixed_s < 0 or self.knee < 1:
            raise ValueError("layer_fixed_s must not be negative, and knee at least 1")


_BOOK = "JAX scaling book, chapter on TPUs"
_V4_PAPER = "Jouppi et al., TPU v4, ISCA 2023, Table 4"
_A100 = "NVIDIA A100 data sheet, as quoted in secondary texts"

TPU_V4 = Chip(
    key="tpu_v4",
    name="TPU v4",
    family="tpu",
    interconnect=Interconnect.TORUS,
    peak_flops_per_s=275e12,
    hbm_bytes=32 * GIB,
    hbm_bytes_per_s=1200e9,
    link_bytes_per_s=45e9,
    hop_s=1e-6,
    sources=(
        Source("interconnect", Mark.VERIFIED, "Jouppi et al., TPU v4, ISCA 2023, 2.2"),
        Source("peak_flops_per_s", Mark.VERIFIED, _V4_PAPER),
        Source("hbm_bytes", Mark.VERIFIED, _V4_PAPER),
        Source("hbm_bytes_per_s", Mark.VERIFIED, _V4_PAPER),
        Source("link_bytes_per_s", Mark.VERIFIED, _BOOK + ": 45 GB/s usable one way of a nominal 50"),
        Source("hop_s", Mark.VERIFIED, _BOOK + ": about 1 us per hop"),
    ),
)

A100_80GB = Chip(
    key="a100_80gb",
    name="A100-80GB SXM",
    family="a100",
    interconnect=Interconnect.SWITCH,
    peak_flops_per_s=312e12,
    hbm_bytes=80e9,
    hbm_bytes_per_s=2039e9,
    link_bytes_per_s=300e9,
    hop_s=8e-6,
    sources=(
        Source("interconnect", Mark.SECONDARY, _A100 + ": NVSwitch joins eight"),
        Source("peak_flops_per_s", Mark.SECONDARY, _A100),
        Source("hbm_bytes", Mark.SECONDARY, _A100),
        Source("hbm_bytes_per_s", Mark.SECONDARY, _A100),
        Source("link_bytes_per_s", Mark.SECONDARY, _A100 + ": 12 NVLink3 links, 300 GB/s each way in total"),
        Source("hop_s", Mark.DERIVED, "half of the all-reduce floor of about 16 us, Vidur profiles of a DGX A100"),
    ),
)

CHIPS = MappingProxyType({chip.key: chip for chip in (TPU_V4, A100_80GB)})
"""The catalogue, by key."""

_POPE_FIT = (
    "fitted on Pope et al., TPU v4: the seven rows seen in secondary texts (full weight) and sixteen recalled ones "
    "(a quarter of the weight in the squares; batch 4 left out), least squares of the logarithms"
)
_LMDEPLOY_FIT = "fitted on lmdeploy 0.1.0a1, Llama-2 70B, TP4, fp16: sixteen times per output token, batch 1 to 64"

TPU_JAX = StackConstants(
    family="tpu",
    stack="jax_partitioned",
    matmul_efficiency=0.79,
    network_efficiency=0.82,
    hbm_efficiency=0.90,
    layer_fixed_s=1.12e-4,
    knee=2.0,
    sources=(
        Source("matmul_efficiency", Mark.FITTED, _POPE_FIT),
        Source("network_efficiency", Mark.VERIFIED, _BOOK + ": measured all-gather at 0.82 of the link speed (v5e)"),
        Source("hbm_efficiency", Mark.ASSUMED, "nine tenths of the peak (the fit would go to 1)"),
        Source("layer_fixed_s", Mark.FITTED, _POPE_FIT),
        Source("knee", Mark.ASSUMED, "2-norm: fits decode better than a sharp maximum"),
    ),
)
"""Seven seen rows: mean error 4 %, worst 10 %. Recalled rows, batch 4 left out: prefill mean 2.5 % (worst 5 %), decode
mean 3.5 % (worst 8 %). Two constants are fitted; these rows hardly tell network from matrix efficiency."""

A100_LMDEPLOY = StackConstants(
    family="a100",
    stack="lmdeploy",
    matmul_efficiency=0.70,
    network_efficiency=0.56,
    hbm_efficiency=0.57,
    layer_fixed_s=0.0,
    knee=2.0,
    sources=(
        Source(
            "matmul_efficiency", Mark.VERIFIED, "Vidur profiles, A100-80GB: plateau of linear layers near 0.7 of peak"
        ),
        Source("network_efficiency", Mark.DERIVED, "Vidur profiles: all-reduce bus bandwidth 167 GB/s of 300"),
        Source("hbm_efficiency", Mark.FITTED, _LMDEPLOY_FIT),
        Source(
            "layer_fixed_s", Mark.FITTED, _LMDEPLOY_FIT + "; at its bound: the floor of the collectives explains it all"
        ),
        Source("knee", Mark.ASSUMED, "2-norm: fits A100 decode better than a sharp maximum"),
    ),
)
"""A first cut: decode rows of the fit within 14 %, mean 6 %; the first token of a prompt of 128 is 47 % too early."""

CONSTANTS = MappingProxyType({(entry.family, entry.stack): entry for entry in (TPU_JAX, A100_LMDEPLOY)})
"""The one table of constants, by (chip family, software stack)."""

DEFAULT_STACKS = MappingProxyType({"tpu": "jax_partitioned", "a100": "lmdeploy"})


def chip_by_key(key: str) -> Chip:
    """The chip of the catalogue that `key` names; InputError lists the known ones."""
    try:
        return CHIPS[key]
    except KeyError:
        raise refuse("chip", f"{key!r} is not in the catalogue", f"write one of {', '.join(CHIPS)}") from None


def constants_of(chip: Chip, stack: str | None = None) -> StackConstants:
    """The constants of `stack` (by default the family's usual one) on `chip`; InputError lists what is known."""
    name = stack or DEFAULT_STACKS.get(chip.family, "")
    try:
        return CONSTANTS[chip.family, name]
    except KeyError:
        known = ", ".join(stack for family, stack in CONSTANTS if family == chip.family)
        raise refuse(
            "stack", f"{name!r} is not known for chips of family {chip.family}", f"write one of {known}"
        ) from None
