"""Shapes of a replica as people write them: a slice of a torus, or GPUs as tensor x pipeline."""

from __future__ import annotations

import math
import re

from topology.errors import InputError, refuse
from topology.shape import parse_shape, shape_of_chips
from workloads.catalogue.chip import Chip, Interconnect
from workloads.collectives import SliceNetwork

CHIPS_MAX = 65_536
STAGES_MAX = 1024
_LENGTHS = re.compile(r"[1-9][0-9]{0,5}(x[1-9][0-9]{0,5}){0,2}")


def replica_shape(chip: Chip, text: str, where: str = "SHAPE") -> tuple[SliceNetwork, int]:
    """The network of a replica (of one stage) and its pipeline stages; InputError for what the chip can not form.

    On a torus of three axes: a slice, such as `2x2x4`, `4x4x4`, `4x4x8_twisted` or `v4-2048` (cores). On one of two:
    lengths of its axes, or of one, such as `4x8` or `8`. An axis closes to a ring where the chip's slices do. Behind a
    switch: `8` is tensor-parallel over eight, `8x3` three stages of eight.
    """
    plain = text.strip().lower()
    if chip.interconnect is Interconnect.TORUS and chip.axes == 3:
        return _cubic(chip, plain, where)
    if _LENGTHS.fullmatch(plain) is None:
        raise refuse(where, f"`{text[:40]}` is no shape for {chip.name}", f"write for example {_examples(chip)}")
    lengths = tuple(int(length) for length in plain.split("x"))
    product = math.prod(lengths)
    if product > CHIPS_MAX:
        raise refuse(where, f"`{plain}` has {product:,} chips, more than {CHIPS_MAX:,}", "write a smaller shape")
    if chip.interconnect is Interconnect.SWITCH:
        if len(lengths) > 2 or (len(lengths) == 2 and lengths[1] > STAGES_MAX):
            raise refuse(where, f"`{plain}` is no tensor x pipeline", f"write for example {_examples(chip)}")
        return SliceNetwork(lengths[:1], (False,)), lengths[1] if len(lengths) == 2 else 1
    if len(lengths) > chip.axes:
        raise refuse(where, f"`{plain}` has more axes than {chip.name}", f"write for example {_examples(chip)}")
    return SliceNetwork(lengths, tuple(length % chip.ring_chips == 0 for length in lengths)), 1


def _cubic(chip: Chip, text: str, where: str) -> tuple[SliceNetwork, int]:
    """A slice of a three-dimensional torus: whole cubes, or less than one without rings.

    One or two lengths name no slice: refused with the slice of as many chips, where there is one.
    """
    if _LENGTHS.fullmatch(text) is not None and text.count("x") < 2:
        what = f"`{text}` has fewer axes than a slice of {chip.name}"
        raise refuse(where, what, f"write `{_slice_of_as_many(text)}`, or for example {_examples(chip)}")
    shape = parse_shape(text, where)
    return SliceNetwork(shape.dimensions, shape.wraps, twisted=shape.twisted), 1


def _slice_of_as_many(lengths: str) -> str:
    """The default slice of as many chips, or of one cube where no slice has as many."""
    chips = math.prod(int(length) for length in lengths.split("x"))
    try:
        return str(shape_of_chips(min(chips, CHIPS_MAX)))
    except InputError:
        return "4x4x4"


def _examples(chip: Chip) -> str:
    """Shapes of such chips."""
    if chip.interconnect is Interconnect.SWITCH:
        return "`8` (tensor) or `8x3` (tensor x pipeline)"
    return {1: "`4`", 2: "`4x4` or `16x16`", 3: "`4x4x4` or `8x8x16`"}[chip.axes]
