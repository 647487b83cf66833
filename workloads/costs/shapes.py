"""Shapes of a replica as people write them: a slice of a torus, or GPUs as tensor x pipeline."""

from __future__ import annotations

import re

from topology.errors import refuse
from topology.shape import parse_shape
from workloads.catalogue.chip import Chip, Interconnect
from workloads.collectives import SliceNetwork

CHIPS_MAX = 65_536
STAGES_MAX = 1024
_LENGTHS = re.compile(r"[1-9][0-9]{0,5}(x[1-9][0-9]{0,5}){0,2}")


def replica_shape(chip: Chip, text: str, where: str = "SHAPE") -> tuple[SliceNetwork, int]:
    """The network of a replica (of one stage) and its pipeline stages; InputError for what the chip can not form.

    On a torus: lengths of as many axes as the chip has, or fewer, such as `4x4x4`, `4x8` or `8`; `4x4x8_twisted`. An
    axis closes to a ring where the chip's slices do. Behind a switch: `8` is tensor-parallel over eight, `8x3` three
    stages of eight.
    """
    plain = text.strip().lower()
    if chip.interconnect is Interconnect.TORUS and chip.axes == 3 and plain.count("x") == 2:
        return _cubic(plain, where)
    if _LENGTHS.fullmatch(plain) is None:
        raise refuse(where, f"`{text[:40]}` is no shape for {chip.name}", f"write for example {_examples(chip)}")
    lengths = tuple(int(length) for length in plain.split("x"))
    product = 1
    for length in lengths:
        product *= length
    if product > CHIPS_MAX:
        raise refuse(where, f"`{plain}` has {product:,} chips, more than {CHIPS_MAX:,}", "write a smaller shape")
    if chip.interconnect is Interconnect.SWITCH:
        if len(lengths) > 2 or (len(lengths) == 2 and lengths[1] > STAGES_MAX):
            raise refuse(where, f"`{plain}` is no tensor x pipeline", f"write for example {_examples(chip)}")
        return SliceNetwork(lengths[:1], (False,)), lengths[1] if len(lengths) == 2 else 1
    if len(lengths) > chip.axes:
        raise refuse(where, f"`{plain}` has more axes than {chip.name}", f"write for example {_examples(chip)}")
    if chip.axes == 3:
        return SliceNetwork(lengths, (False,) * len(lengths)), 1
    return SliceNetwork(lengths, tuple(length % chip.ring_chips == 0 for length in lengths)), 1


def _cubic(text: str, where: str) -> tuple[SliceNetwork, int]:
    """A slice of a three-dimensional torus: whole cubes, or less than one without rings."""
    shape = parse_shape(text, where)
    return SliceNetwork(shape.dimensions, shape.wraps, twisted=shape.twisted), 1


def _examples(chip: Chip) -> str:
    """Shapes of such chips."""
    if chip.interconnect is Interconnect.SWITCH:
        return "`8` (tensor) or `8x3` (tensor x pipeline)"
    return {1: "`4`", 2: "`4x4` or `16x16`", 3: "`4x4x4` or `8x8x16`"}[chip.axes]
