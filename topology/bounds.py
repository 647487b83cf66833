"""What the links of a slice allow: all-to-all, ring collectives and nearest neighbours, with a floor of latency.

All-to-all is uniform over all N destinations, the chip itself included, on shortest routes. Without a twist each axis
carries its own hops whatever the order, so the most loaded link follows from one axis: of a ring of k chips
floor(k^2 / 4) / 2k of what a chip sends, of an open axis floor(k / 2) ceil(k / 2) / k in its middle. The two twisted
tori are k times the face-centred and the body-centred cubic lattice (Camarero et al.), which look alike along all
axes: an even split loads all links alike, and mean hops over links is the bound. Ring collectives: JAX scaling book,
chapter on sharding; V is the whole gathered array. Each chip takes in V (N - 1) / N over all its links at once; an
all-reduce does that twice. An axis without wraparound leaves its end chips one link.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topology.measures import (
    axis_diameter,
    axis_ends,
    axis_mean_hops,
    bisection_links,
    hop_counts,
    mean_hops_to_all,
    wraps_of,
)
from topology.provenance import Mark, Source
from topology.shape import Shape
from topology.torus import Wraps

LINK_BYTES_PER_S = 50e9
"""One link, each way, TPU v4 (V: Jouppi et al., ISCA 2023, Table 4)."""
HOP_S = 1e-6
"""One hop (V: JAX scaling book, "about 1 us")."""

LINK_OF_GENERATION = {"v4": LINK_BYTES_PER_S, "v5p": 100e9, "tpu7x": 100e9}
"""One link, each way. v4: above. v5p and TPU7x: 1,200 GB/s per chip, both directions of six links (V and V2: cloud
documentation)."""


class Collective(StrEnum):
    """What chips of a slice do together."""

    ALL_TO_ALL = "all_to_all"
    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    NEAREST_NEIGHBOUR = "nearest_neighbour"


@dataclass(frozen=True, kw_only=True, slots=True)
class SliceMeasures:
    """Distances, cuts and bounds of one slice. Rates are bytes per second and chip at full links, inf for one chip.

    all_to_all: bytes that each chip sends, evenly to all. ring_all_reduce, all_gather, reduce_scatter: bytes of the
    whole array. nearest_neighbour: bytes that the chip with fewest neighbours sends to all of them at once. `*_floor_s`
    is the least time of a small message: hops times the time of one.
    """

    shape: Shape
    wraps: Wraps
    diameter: int
    mean_hops: float
    bisection_links: int
    all_to_all_bytes_per_s: float
    ring_all_reduce_bytes_per_s: float
    all_gather_bytes_per_s: float
    reduce_scatter_bytes_per_s: float
    nearest_neighbour_bytes_per_s: float
    hop_s: float

    @property
    def chips(self) -> int:
        """Number of chips."""
        return self.shape.chips

    def bytes_per_s(self, collective: Collective) -> float:
        """The bound of a collective."""
        return {
            Collective.ALL_TO_ALL: self.all_to_all_bytes_per_s,
            Collective.ALL_REDUCE: self.ring_all_reduce_bytes_per_s,
            Collective.ALL_GATHER: self.all_gather_bytes_per_s,
            Collective.REDUCE_SCATTER: self.reduce_scatter_bytes_per_s,
            Collective.NEAREST_NEIGHBOUR: self.nearest_neighbour_bytes_per_s,
        }[collective]

    def floor_s(self, collective: Collective) -> float:
        """Least seconds of a collective of small messages; an all-reduce goes all the way twice."""
        hops = {Collective.ALL_REDUCE: 2 * self.diameter, Collective.NEAREST_NEIGHBOUR: min(1, self.diameter)}
        return hops.get(collective, self.diameter) * self.hop_s

    def time_s(self, collective: Collective, size_bytes: float) -> float:
        """Seconds of a collective of `size_bytes`: the larger of bandwidth term and latency floor; 0 for no bytes."""
        if size_bytes == 0.0:
            return 0.0
        return max(size_bytes / self.bytes_per_s(collective), self.floor_s(collective))

    def mix_s(self, mix: Mapping[Collective, float]) -> float:
        """Seconds of several collectives, one after the other: bytes by collective."""
        return sum(self.time_s(collective, size) for collective, size in mix.items())


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxMeasures:
    """Measures of many meshes and tori at once, each field an array (S,); as in `SliceMeasures`."""

    diameter: NDArray[np.int64]
    mean_hops: NDArray[np.float64]
    bisection_links: NDArray[np.int64]
    all_to_all_bytes_per_s: NDArray[np.float64]
    ring_all_reduce_bytes_per_s: NDArray[np.float64]
    all_gather_bytes_per_s: NDArray[np.float64]
    nearest_neighbour_bytes_per_s: NDArray[np.float64]


def link_load_of_all_to_all(lengths: ArrayLike, rings: ArrayLike) -> NDArray[np.float64]:
    """Load of the most loaded link of axes, one way, where each chip sends one unit in all; 0 on an axis of 1."""
    k = np.asarray(lengths, dtype=np.int64)
    ring = (k * k // 4) / (2 * k)
    open_axis = (k // 2) * (k - k // 2) / k
    return np.where(np.asarray(rings, dtype=np.bool_) & (k > 2), ring, open_axis)


def measure_boxes(dimensions: ArrayLike, rings: ArrayLike, link_bytes_per_s: float = LINK_BYTES_PER_S) -> BoxMeasures:
    """Measures of boxes (S, 3) whose axes close to rings or not (S, 3): any lengths, also those of static wiring."""
    lengths, closed = np.asarray(dimensions, dtype=np.int64), np.asarray(rings, dtype=np.bool_)
    chips, ends = lengths.prod(axis=-1), axis_ends(lengths, closed)
    cuts = np.where(lengths > 1, ends * chips[..., None] // lengths, np.iinfo(np.int64).max)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = axis_mean_hops(lengths, closed).sum(axis=-1) * chips / (chips - 1)
        all_to_all = link_bytes_per_s / link_load_of_all_to_all(lengths, closed).max(axis=-1)
        gather = ends.sum(axis=-1) * link_bytes_per_s * chips / (chips - 1)
    alone = chips == 1
    gather = np.where(alone, np.inf, gather)
    return BoxMeasures(
        diameter=axis_diameter(lengths, closed).sum(axis=-1),
        mean_hops=np.where(alone, 0.0, mean),
        bisection_links=np.where(alone, 0, cuts.min(axis=-1)),
        all_to_all_bytes_per_s=all_to_all,
        ring_all_reduce_bytes_per_s=gather / 2,
        all_gather_bytes_per_s=gather,
        nearest_neighbour_bytes_per_s=np.where(alone, np.inf, ends.sum(axis=-1) * link_bytes_per_s),
    )


def all_to_all_bytes_per_s(
    shape: Shape, wraps: Wraps | None = None, link_bytes_per_s: float = LINK_BYTES_PER_S
) -> float:
    """Bytes per second that each chip can send in a uniform all-to-all on shortest routes; inf for one chip."""
    rings = wraps_of(shape, wraps)
    if shape.twisted:
        return int(axis_ends(shape.dimensions, rings).sum()) * link_bytes_per_s / mean_hops_to_all(shape, rings)
    return float(measure_boxes([shape.dimensions], [rings], link_bytes_per_s).all_to_all_bytes_per_s[0])


def measure_slice(
    shape: Shape, wraps: Wraps | None = None, link_bytes_per_s: float = LINK_BYTES_PER_S, hop_s: float = HOP_S
) -> SliceMeasures:
    """All measures of a slice; `wraps` for boxes of static wiring. Raises ValueError for a twist without all rings."""
    rings, hops = wraps_of(shape, wraps), hop_counts(shape, wraps)
    box = measure_boxes([shape.dimensions], [rings], link_bytes_per_s)
    gather = float(box.all_gather_bytes_per_s[0])
    return SliceMeasures(
        shape=shape,
        wraps=rings,
        diameter=hops.diameter,
        mean_hops=hops.mean_hops,
        bisection_links=bisection_links(shape, rings),
        all_to_all_bytes_per_s=all_to_all_bytes_per_s(shape, rings, link_bytes_per_s),
        ring_all_reduce_bytes_per_s=gather / 2,
        all_gather_bytes_per_s=gather,
        reduce_scatter_bytes_per_s=gather,
        nearest_neighbour_bytes_per_s=float(box.nearest_neighbour_bytes_per_s[0]),
        hop_s=hop_s,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredAllToAll:
    """A published measurement of all-to-all: bytes per second and chip, or the gain of a twist over no twist."""

    shape: str
    bytes_per_s: float = math.nan
    twist_gain: float = math.nan
    source: Source


_ISCA = "Jouppi et al., ISCA 2023, 2.8: large transfers, 4 KiB DMAs"
MEASURED_ALL_TO_ALL = (
    MeasuredAllToAll(
        shape="4x4x4", bytes_per_s=75.9e9, source=Source("bytes_per_s", Mark.VERIFIED, "MATE, quoting NSDI 2024")
    ),
    MeasuredAllToAll(
        shape="4x4x8", bytes_per_s=40e9, source=Source("bytes_per_s", Mark.VERIFIED, "MATE, quoting ISCA 2023")
    ),
    MeasuredAllToAll(shape="4x4x8_twisted", twist_gain=1.63, source=Source("twist_gain", Mark.VERIFIED, _ISCA)),
    MeasuredAllToAll(shape="4x8x8_twisted", twist_gain=1.31, source=Source("twist_gain", Mark.VERIFIED, _ISCA)),
)
"""What was measured beside the bounds. Rates reach 0.759 (4x4x4) and 0.80 (4x4x8) of the bound; 1.63 x 40 = 65.2 GB/s
on the twisted 4x4x8 is 0.747 of its bound (D). So measured gains are 0.934 and 0.942 of the ideal ones as an
efficiency: a slice that loads all its links alike (4x4x4, twisted) gets 0.75 to 0.76 of its bound, one that waits for
its long axis while the others run at half load gets 0.80 (D; the cause is our reading)."""


def twist_gain(shape: Shape) -> float:
    """Bound of all-to-all with the twist over without it, of a twistable shape."""
    plain, twisted = Shape(*shape.dimensions), Shape(*shape.dimensions, True)
    return all_to_all_bytes_per_s(twisted) / all_to_all_bytes_per_s(plain)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredBeside:
    """A measurement and the share of its bound that it reached: of the rate, or of the twist's ideal gain."""

    measured: MeasuredAllToAll
    share_of_bound: float


def measured_beside(shape: Shape) -> MeasuredBeside | None:
    """What was measured of all-to-all on a whole slice of this shape on TPU v4; None where nothing is published."""
    for each in MEASURED_ALL_TO_ALL:
        if each.shape == str(shape):
            ratio = (
                each.bytes_per_s / all_to_all_bytes_per_s(shape)
                if math.isnan(each.twist_gain)
                else each.twist_gain / twist_gain(shape)
            )
            return MeasuredBeside(measured=each, share_of_bound=ratio)
    return None
