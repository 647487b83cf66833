"""Which slices jobs ask for: shares by shape, of jobs or of chip-time; and the mix of November 2022."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.errors import InputError
from topology.shape import Shape, parse_shape

NOVEMBER_2022_PERCENT: Mapping[str, float] = {
    "1x1x1": 2.1,
    "1x1x2": 0.4,
    "1x2x2": 6.7,
    "2x2x2": 4.7,
    "2x2x4": 6.4,
    "2x4x4": 8.9,
    "4x4x4": 13.9,
    "4x4x8_twisted": 16.0,
    "4x4x8": 1.5,
    "4x4x12": 0.7,
    "4x8x8_twisted": 9.2,
    "4x8x8": 1.5,
    "4x4x16": 1.0,
    "4x8x12": 0.1,
    "8x8x8": 9.6,
    "4x8x16": 1.7,
    "4x4x32": 0.6,
    "8x8x12": 0.7,
    "8x8x16_twisted": 1.8,
    "8x8x16": 1.4,
    "4x16x16": 0.3,
    "4x4x64": 0.1,
    "4x8x32": 0.1,
    "8x12x16": 0.1,
    "4x4x96": 0.1,
    "8x8x24": 0.1,
    "8x16x16_twisted": 1.4,
    "8x16x16": 0.3,
    "12x16x16": 5.7,
    "4x4x192": 0.4,
}
"""Slices on one day of November 2022 in per cent, as printed (Jouppi et al., ISCA 2023, Table 2). The weighting is not
stated there, and rounding leaves the sum at 97.5: shares are normalised."""

WEIGHTINGS = ("count", "chip_time")


def _probabilities(weights: Mapping[str, float], by: str) -> tuple[tuple[Shape, ...], NDArray[np.float64]]:
    """Shapes in their order, and the probability that a job asks for each.

    By chip-time, with durations that do not depend on the slice, a share w of chip-time is w / chips of the jobs.
    """
    shapes = tuple(parse_shape(text) for text in weights)
    share = np.array(list(weights.values()), dtype=np.float64)
    if by == "chip_time":
        share = share / np.array([shape.chips for shape in shapes])
    return shapes, share / share.sum()


def _check_weighting(by: str) -> None:
    if by not in WEIGHTINGS:
        raise ValueError(f"by must be count or chip_time, not {by!r}")


@dataclass(frozen=True, kw_only=True)
class SlicesByShare:
    """Shapes with their weights, of jobs (`by: count`) or of chip-time (`by: chip_time`); they need not add up to 1."""

    kind: Literal["shares"] = "shares"
    shares: Mapping[str, float]
    by: Literal["count", "chip_time"] = "count"

    def __post_init__(self) -> None:
        """Refuse shapes and weights that are none."""
        _check_weighting(self.by)
        if not self.shares:
            raise ValueError("shares of no shape: write at least one, such as `shares: {8x8x16: 1}`")
        for text, weight in self.shares.items():
            try:
                parse_shape(text)
            except InputError as error:
                raise ValueError(f"{error.faults[0].what}; {error.faults[0].write}") from None
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"share of {text} of {weight:g}: write a number of at least 0")
        if not sum(self.shares.values()) > 0:
            raise ValueError("all shares are 0: write at least one above 0")

    def shapes(self, u: NDArray[np.float64]) -> list[Shape]:
        """One shape per uniform."""
        return _drawn(u, *_probabilities(self.shares, self.by))

    @property
    def mean_chips(self) -> float:
        """Mean chips of a slice over jobs."""
        return _mean_chips(*_probabilities(self.shares, self.by))


@dataclass(frozen=True, kw_only=True)
class November2022:
    """The slice mix of one day of November 2022; `by` says what its per cent are of (assumption: count)."""

    kind: Literal["november_2022"] = "november_2022"
    by: Literal["count", "chip_time"] = "count"

    def __post_init__(self) -> None:
        """Refuse a weighting that is none."""
        _check_weighting(self.by)

    def shapes(self, u: NDArray[np.float64]) -> list[Shape]:
        """One shape per uniform."""
        return _drawn(u, *_probabilities(NOVEMBER_2022_PERCENT, self.by))

    @property
    def mean_chips(self) -> float:
        """Mean chips of a slice over jobs."""
        return _mean_chips(*_probabilities(NOVEMBER_2022_PERCENT, self.by))


def _drawn(u: NDArray[np.float64], shapes: tuple[Shape, ...], share: NDArray[np.float64]) -> list[Shape]:
    places = np.minimum(np.searchsorted(np.cumsum(share), u, side="right"), len(shapes) - 1)
    return [shapes[place] for place in places.tolist()]


def _mean_chips(shapes: tuple[Shape, ...], share: NDArray[np.float64]) -> float:
    return float(np.array([shape.chips for shape in shapes]) @ share)


SliceMix: TypeAlias = SlicesByShare | November2022
"""The mixes that a scenario can name under `slices:` (`kind` tells them apart)."""
