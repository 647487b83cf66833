"""Slices that people asked for: one day of TPU v4, November 2022 (V: Jouppi et al., ISCA 2023, Table 2).

Percent as printed; the weighting (by slices or by chip time) is not stated there. Sub-cube slices are 29 % in all.
"""

from __future__ import annotations

from topology.shape import Shape, parse_shape

POPULARITY_PERCENT: dict[str, float] = {
    "1x1x1": 2.1, "1x1x2": 0.4, "1x2x2": 6.7, "2x2x2": 4.7, "2x2x4": 6.4, "2x4x4": 8.9,
    "4x4x4": 13.9,
    "4x4x8_twisted": 16.0, "4x4x8": 1.5, "4x4x12": 0.7,
    "4x8x8_twisted": 9.2, "4x8x8": 1.5, "4x4x16": 1.0, "4x8x12": 0.1,
    "8x8x8": 9.6, "4x8x16": 1.7, "4x4x32": 0.6, "8x8x12": 0.7,
    "8x8x16_twisted": 1.8, "8x8x16": 1.4, "4x16x16": 0.3, "4x4x64": 0.1, "4x8x32": 0.1, "8x12x16": 0.1,
    "4x4x96": 0.1, "8x8x24": 0.1,
    "8x16x16_twisted": 1.4, "8x16x16": 0.3, "12x16x16": 5.7, "4x4x192": 0.4,
}  # fmt: skip
"""Percent of slices by shape, as printed."""


def popular_shapes() -> tuple[tuple[Shape, float], ...]:
    """All shapes of the published table with their share, normalised to a sum of 1."""
    total = sum(POPULARITY_PERCENT.values())
    return tuple((parse_shape(text), percent / total) for text, percent in POPULARITY_PERCENT.items())


def mean_cubes() -> float:
    """Mean cubes of a slice of one cube or more, if the percentages count slices (D)."""
    whole = [(shape.cubes, share) for shape, share in popular_shapes() if not shape.is_sub_cube]
    return sum(cubes * share for cubes, share in whole) / sum(share for _, share in whole)
