"""Distances and cuts of a slice: diameter, mean hops, bisection; exact, from closed forms over whole arrays.

Without a twist the distance between two chips is a sum over axes, so everything follows from one axis at a time. A
twisted torus looks the same from every chip, and is the quotient of all places by a lattice: the distance is the least
over the lattice's points. On an axis of 2 the neighbour and the wraparound are one chip; an axis of 1 has no links.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topology.pod import DIMENSIONS
from topology.shape import Shape
from topology.torus import ALL_WRAPS, Wraps

LATTICE_REACH = 2
"""Multiples of each generator, both ways, among which the nearest point of a twist's lattice lies (tested)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HopCounts:
    """Shortest paths of a slice: `diameter` in hops and `mean_hops` over distinct pairs of chips (0 for one chip)."""

    diameter: int
    mean_hops: float


def axis_diameter(lengths: ArrayLike, rings: ArrayLike) -> NDArray[np.int64]:
    """Longest distance along axes of these lengths: floor(k / 2) of a ring, k - 1 of an open axis; any shape."""
    k = np.asarray(lengths, dtype=np.int64)
    return np.where(np.asarray(rings, dtype=np.bool_), k // 2, k - 1)


def axis_mean_hops(lengths: ArrayLike, rings: ArrayLike) -> NDArray[np.float64]:
    """Mean distance along axes over all pairs, a place with itself included: floor(k^2 / 4) / k, or (k^2 - 1) / 3k."""
    k = np.asarray(lengths, dtype=np.int64)
    return np.where(np.asarray(rings, dtype=np.bool_), (k * k // 4) / k, (k * k - 1) / (3 * k))


def axis_ends(lengths: ArrayLike, rings: ArrayLike) -> NDArray[np.int64]:
    """Links that the worst-placed chip has along axes: 2 on a ring, 1 at the end of an open axis or on an axis of 2."""
    k = np.asarray(lengths, dtype=np.int64)
    return np.where(k == 1, 0, np.where(np.asarray(rings, dtype=np.bool_) & (k > 2), 2, 1))


def wraps_of(shape: Shape, wraps: Wraps | None) -> Wraps:
    """The axes that close to rings: those of a slice formed by circuits unless given; a twist needs all of them."""
    found = shape.wraps if wraps is None else wraps
    if shape.twisted and found != ALL_WRAPS:
        raise ValueError(f"{shape} is twisted: all three of its axes close to rings")
    return found


def hop_counts(shape: Shape, wraps: Wraps | None = None) -> HopCounts:
    """Diameter and mean hops over distinct pairs of chips; `wraps` as in `wraps_of`."""
    diameter, over_all = _hops(shape, wraps)
    return HopCounts(diameter=diameter, mean_hops=over_all * shape.chips / (shape.chips - 1) if over_all else 0.0)


def mean_hops_to_all(shape: Shape, wraps: Wraps | None = None) -> float:
    """Mean hops over all pairs, a chip with itself included: what uniform all-to-all traffic travels."""
    return _hops(shape, wraps)[1]


def _hops(shape: Shape, wraps: Wraps | None) -> tuple[int, float]:
    rings = wraps_of(shape, wraps)
    if shape.twisted:
        distances = distances_from_origin(shape)
        return int(distances.max()), float(distances.sum()) / shape.chips
    lengths = shape.dimensions
    return int(axis_diameter(lengths, rings).sum()), float(axis_mean_hops(lengths, rings).sum())


def distances_from_origin(shape: Shape) -> NDArray[np.int64]:
    """Hops from chip (0, 0, 0) of a slice with all axes closed, twisted or not, to each chip: (x, y, z) array."""
    lattice = np.diag(np.array(shape.dimensions)) - np.array(shape.wrap_shifts)
    steps = np.arange(-LATTICE_REACH, LATTICE_REACH + 1)
    multiples = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, DIMENSIONS)
    least = np.full(shape.dimensions, np.iinfo(np.int64).max)
    along = [np.arange(length) for length in shape.dimensions]
    for x, y, z in np.unique(multiples @ lattice, axis=0).tolist():
        far = (
            np.abs(along[0] - x)[:, None, None] + np.abs(along[1] - y)[None, :, None] + np.abs(along[2] - z)[None, None]
        )
        np.minimum(least, far, out=least)
    return least


def bisection_links(shape: Shape, wraps: Wraps | None = None) -> int:
    """Fewest links that a plane across one axis cuts when it halves the slice (an axis of odd length: as nearly as it
    goes).

    Links count once, whatever their two directions carry; 0 for a single chip. For a twisted torus the wraparound
    links that the twist carries across the plane count too, and the figure is an upper bound of the least cut over
    all halvings.
    """
    rings, lengths = wraps_of(shape, wraps), shape.dimensions
    ends = axis_ends(lengths, rings).tolist()
    cuts = [
        ends[axis] * shape.chips // length + _carried_across(shape, axis)
        for axis, length in enumerate(lengths)
        if length > 1
    ]
    return min(cuts, default=0)


def _carried_across(shape: Shape, axis: int) -> int:
    """Wraparound links of the other axes whose twist carries them across the middle plane of `axis`."""
    length = shape.dimensions[axis]
    at = np.arange(length)
    crossing = 0
    for other in range(DIMENSIONS):
        shift = shape.wrap_shifts[other][axis]
        if other != axis and shift:
            moved = (at + shift) % length
            share = int(np.count_nonzero((at < length // 2) != (moved < length // 2)))
            crossing += share * shape.chips // (shape.dimensions[other] * length)
    return crossing
