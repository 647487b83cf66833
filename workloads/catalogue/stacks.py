"""How well a software stack uses a family of chips: one table in which every number bears its source and mark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from topology.errors import refuse
from workloads.catalogue.chip import Chip
from workloads.provenance import Mark, Source


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


def _as_on_the_a100(family: str) -> StackConstants:
    """The shares of the A100's stack on another family of GPUs, until something is measured there."""
    text = "as fitted or measured on the A100"
    listed = tuple(Source(source.field, Mark.ASSUMED, text) for source in A100_LMDEPLOY.sources)
    return replace(A100_LMDEPLOY, family=family, stack="as_on_a100", sources=listed)


CONSTANTS = MappingProxyType(
    {
        (entry.family, entry.stack): entry
        for entry in (TPU_JAX, A100_LMDEPLOY, _as_on_the_a100("h100"), _as_on_the_a100("rtx_4090"))
    }
)
"""The one table of constants, by (chip family, software stack)."""

DEFAULT_STACKS = MappingProxyType(
    {"tpu": "jax_partitioned", "a100": "lmdeploy", "h100": "as_on_a100", "rtx_4090": "as_on_a100"}
)


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
