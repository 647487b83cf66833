"""Which shape should a job ask for: all shapes of a chip count, ranked for a mix of collectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from topology.bounds import HOP_S, LINK_BYTES_PER_S, Collective, SliceMeasures, measure_slice
from topology.errors import refuse
from topology.pod import CHIPS_PER_CUBE, CUBE_EDGE_CHIPS, Grid, Pod
from topology.shape import SUB_CUBE_SHAPES, Shape, shape_of_chips

MEBIBYTE = 2.0**20
JOB_MIXES: Mapping[str, Mapping[Collective, float]] = MappingProxyType(
    {
        "dense_training": {
            Collective.ALL_REDUCE: 128 * MEBIBYTE,
            Collective.ALL_GATHER: 64 * MEBIBYTE,
            Collective.REDUCE_SCATTER: 64 * MEBIBYTE,
        },
        "embeddings": {Collective.ALL_TO_ALL: 64 * MEBIBYTE, Collective.ALL_REDUCE: 16 * MEBIBYTE},
        "experts": {Collective.ALL_TO_ALL: 64 * MEBIBYTE, Collective.ALL_GATHER: 64 * MEBIBYTE},
        "small_messages": {Collective.ALL_REDUCE: 64 * 2.0**10, Collective.ALL_GATHER: 64 * 2.0**10},
    }
)
"""Bytes of each collective in one step, by name of the mix (all of them assumptions)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankedShape:
    """One shape, its measures, and the seconds that the mix takes on it at full links."""

    shape: Shape
    measures: SliceMeasures
    mix_s: float


def boxes_of_cubes(cubes: int) -> Iterator[Grid]:
    """All boxes i <= j <= k of exactly `cubes` cubes, the flattest first."""
    for i in range(1, cubes + 1):
        if i**3 > cubes:
            return
        if cubes % i == 0:
            rest = cubes // i
            for j in range(i, rest + 1):
                if j * j > rest:
                    break
                if rest % j == 0:
                    yield i, j, rest // j


def shapes_of_chips(chips: int, pod: Pod | None = None, where: str = "slice_chips") -> tuple[Shape, ...]:
    """All shapes of a chip count, twisted ones after their plain form, flattest first.

    4i x 4j x 4k with i <= j <= k (V: ISCA 2023, 2.5), or the one shape of less than a cube. Raises InputError for a
    number of chips that no slice has, or that `pod` does not have.
    """
    default = shape_of_chips(chips, where)
    if pod is not None and chips > pod.chips:
        raise refuse(where, f"{chips} chips do not fit the {pod.chips} of pod {pod.name}", f"write at most {pod.chips}")
    if default.dimensions in SUB_CUBE_SHAPES:
        return (default,)
    found = []
    for box in boxes_of_cubes(chips // CHIPS_PER_CUBE):
        plain = Shape(CUBE_EDGE_CHIPS * box[0], CUBE_EDGE_CHIPS * box[1], CUBE_EDGE_CHIPS * box[2])
        found.append(plain)
        if plain.is_twistable:
            found.append(Shape(*plain.dimensions, True))
    return tuple(found)


def rank_shapes(
    chips: int,
    mix: Mapping[Collective, float],
    pod: Pod | None = None,
    link_bytes_per_s: float = LINK_BYTES_PER_S,
    hop_s: float = HOP_S,
) -> tuple[RankedShape, ...]:
    """All shapes of a chip count, the fastest for a mix first: bytes of each collective in one step (not negative).

    Ties go to the shape with the larger bisection, then to the more cubic one. The mix runs over all chips at once: a
    job whose collectives each stay on one axis has reasons of its own. Raises InputError as `shapes_of_chips`, and
    for a mix without bytes.
    """
    if not mix or min(mix.values()) < 0 or not any(mix.values()):
        raise refuse("mix", "a mix needs bytes of at least one collective", "write for example {all_to_all: 1e6}")
    ranked = []
    for shape in shapes_of_chips(chips, pod):
        measures = measure_slice(shape, None, link_bytes_per_s, hop_s)
        ranked.append(RankedShape(shape=shape, measures=measures, mix_s=measures.mix_s(mix)))
    return tuple(sorted(ranked, key=lambda each: (each.mix_s, -each.measures.bisection_links, each.shape.z)))
