"""Maps of a torus onto itself that keep a set of dead links: which sources, channels and faults are alike.

A map is x -> M x + t with M a permutation and reflection of the axes and t a translation by chips (round the rings).
Loads depend on the graph only, so translations need not be by whole cubes: all 16 positions of a switch are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from topology.pod import DIMENSIONS
from topology.routing.channels import CHANNELS_PER_CHIP, Torus

Matrix = NDArray[np.int64]
Map = tuple[Matrix, NDArray[np.int64]]
"""M (3, 3) and t (3,)."""

_UNIT = np.eye(DIMENSIONS, dtype=np.int64)


def linear_maps(torus: Torus) -> list[Matrix]:
    """All M that carry the torus onto itself (with a suitable t), the identity first."""
    kinds = [(torus.dimensions[a], torus.rings[a]) for a in range(DIMENSIONS)]
    lattice = np.diag(torus.dimensions) - np.array(torus.shifts)
    found = []
    for order in permutations(range(DIMENSIONS)):
        if any(kinds[a] != kinds[order[a]] for a in range(DIMENSIONS)) and not torus.is_twisted:
            continue
        for signs in product((1, -1), repeat=DIMENSIONS):
            matrix = np.zeros((DIMENSIONS, DIMENSIONS), dtype=np.int64)
            for a in range(DIMENSIONS):
                matrix[order[a], a] = signs[a]
            if not torus.is_twisted or not torus.reduced(lattice @ matrix.T).any():
                found.append(matrix)
    return found


def images_of_links(torus: Torus, matrix: Matrix, links: NDArray[np.int64]) -> tuple[Matrix, NDArray[np.int64]]:
    """Under M: start of the image of each link, whole coordinates (k, 3) not yet brought back; and its axis (k,)."""
    chip, axis = np.divmod(links, DIMENSIONS)
    starts = np.stack(np.unravel_index(chip, torus.dimensions), axis=1) @ matrix.T
    turned = np.abs(matrix).argmax(axis=0)[axis]
    backwards = matrix[turned, axis] < 0
    starts[backwards] -= _UNIT[turned[backwards]]
    return starts, turned


def _anchors(torus: Torus, matrix: Matrix) -> NDArray[np.int64]:
    """The t that M needs along axes that are no rings: there a reflection must land in the slice again."""
    reflected = matrix.sum(axis=1) < 0
    return np.where(reflected & ~np.array(torus.rings), np.array(torus.dimensions) - 1, 0)


@dataclass(frozen=True, kw_only=True)
class FaultSymmetry:
    """All maps that keep `links` (numbers, rising) dead and the rest alive."""

    torus: Torus
    links: NDArray[np.int64]

    @cached_property
    def by_matrix(self) -> list[tuple[Matrix, NDArray[np.int64]]]:
        """Per M of the group: the t (m, 3) that go with it. Not for a set without dead links: there t is free."""
        found = []
        for matrix in linear_maps(self.torus):
            starts, axes = images_of_links(self.torus, matrix, self.links)
            to = np.stack(np.unravel_index(self.links // DIMENSIONS, self.torus.dimensions), axis=1)
            moves = (to - starts[0])[self.links % DIMENSIONS == axes[0]]
            fixed = ~np.array(self.torus.rings)
            moves = moves[(moves[:, fixed] == _anchors(self.torus, matrix)[fixed]).all(axis=1)]
            images = self.torus.reduced(starts[None] + moves[:, None]) * DIMENSIONS + axes
            kept = (np.sort(images, axis=1) == self.links).all(axis=1)
            if kept.any():
                found.append((matrix, moves[kept]))
        return found

    @cached_property
    def generators(self) -> list[Map]:
        """Maps that generate the group: all its translations, and one map for each other M."""
        if self.links.size == 0:
            turns = [(m, _anchors(self.torus, m)) for m in linear_maps(self.torus)]
            return turns + [(_UNIT, _UNIT[a]) for a in range(DIMENSIONS) if self.torus.rings[a]]
        translations = [(self.by_matrix[0][0], t) for t in self.by_matrix[0][1]]
        return translations + [(matrix, moves[0]) for matrix, moves in self.by_matrix[1:]]

    @cached_property
    def elements(self) -> list[Map]:
        """All maps of the group."""
        if self.links.size:
            return [(matrix, move) for matrix, moves in self.by_matrix for move in moves]
        free = [
            range(length if ring else 1) for length, ring in zip(self.torus.dimensions, self.torus.rings, strict=True)
        ]
        moves = np.stack(np.meshgrid(*free, indexing="ij"), axis=-1).reshape(-1, DIMENSIONS).astype(np.int64)
        turns = [(matrix, _anchors(self.torus, matrix)) for matrix in linear_maps(self.torus)]
        return [(matrix, anchor + move) for matrix, anchor in turns for move in moves]

    def fixing(self, chip: int) -> list[Map]:
        """The maps of the group that leave this chip where it is."""
        at = np.array(self.torus.coordinates(chip), dtype=np.int64)
        if self.links.size == 0:
            turns = [(m, at - m @ at) for m in linear_maps(self.torus)]
            fixed = ~np.array(self.torus.rings)
            return [(m, move) for m, move in turns if (move[fixed] == _anchors(self.torus, m)[fixed]).all()]
        found: list[Map] = []
        for matrix, moves in self.by_matrix:
            still = np.flatnonzero(self.torus.reduced(moves + matrix @ at) == chip)
            found.extend((matrix, moves[i]) for i in still[:1])
        return found


def chip_image(torus: Torus, by: Map) -> NDArray[np.int64]:
    """Where each chip (N,) goes under a map."""
    matrix, move = by
    return torus.reduced(torus.all_coordinates() @ matrix.T + move)


def channel_image(torus: Torus, by: Map) -> NDArray[np.int64]:
    """Where each channel (N * 6,) goes under a map."""
    matrix = by[0]
    turned = np.abs(matrix).argmax(axis=0)
    backwards = matrix.sum(axis=0) < 0
    ways = [2 * turned[way // 2] + (way % 2 ^ int(backwards[way // 2])) for way in range(CHANNELS_PER_CHIP)]
    image: NDArray[np.int64] = chip_image(torus, by)[:, None] * CHANNELS_PER_CHIP + np.array(ways)
    return image.reshape(-1)


def orbits(images: list[NDArray[np.int64]], size: int) -> NDArray[np.int32]:
    """Number of the orbit of each of `size` things under the group that these images generate."""
    if not images:
        return np.arange(size, dtype=np.int32)
    start = np.tile(np.arange(size), len(images))
    ones = np.ones(start.size, dtype=np.int8)
    graph = coo_array((ones, (start, np.concatenate(images))), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class Quotient:
    """One source per class of sources that are alike, and the classes of channels.

    `sources` (s,) with `weights` (s,) the sizes of their classes; `channel_class` (N * 6,), `class_size`.
    """

    sources: NDArray[np.int64]
    weights: NDArray[np.float64]
    channel_class: NDArray[np.int32]
    class_size: NDArray[np.int64]

    def shared(self, load: NDArray[np.float64]) -> NDArray[np.float64]:
        """Loads of all sources from the weighted loads of the chosen ones: the mean over each class of channels."""
        totals = np.bincount(self.channel_class, weights=load, minlength=self.class_size.size)
        means: NDArray[np.float64] = (totals / self.class_size)[self.channel_class]
        return means


def quotient(symmetry: FaultSymmetry, *, translations_only: bool = False) -> Quotient:
    """The classes of sources and channels under the symmetry of a fault.

    Routes that treat the axes differently, as dimension order does, have the symmetry of the translations only.
    """
    torus = symmetry.torus
    maps = [by for by in symmetry.generators if not translations_only or np.array_equal(by[0], _UNIT)]
    chip_class = orbits([chip_image(torus, by) for by in maps], torus.chips)
    channel_class = orbits([channel_image(torus, by) for by in maps], torus.head.size)
    _, sources, counts = np.unique(chip_class, return_index=True, return_counts=True)
    return Quotient(
        sources=sources.astype(np.int64),
        weights=counts.astype(np.float64),
        channel_class=channel_class,
        class_size=np.bincount(channel_class),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalForm:
    """A set of dead links moved to the least of its images: equal for faults that are alike, and only for these.

    `links` are numbers, rising; axis a of the fault is axis `turned[a]` of its normal form.
    """

    links: tuple[int, ...]
    turned: tuple[int, int, int]


def normal_form(torus: Torus, links: NDArray[np.int64]) -> NormalForm:
    """The normal form of a set of dead links (numbers, rising)."""
    if links.size == 0:
        return NormalForm(links=(), turned=(0, 1, 2))
    fixed = ~np.array(torus.rings)
    best: NormalForm | None = None
    for matrix in linear_maps(torus):
        starts, axes = images_of_links(torus, matrix, links)
        moves = np.where(fixed, _anchors(torus, matrix), -starts)
        images = np.sort(torus.reduced(starts[None] + moves[:, None]) * DIMENSIONS + axes, axis=1)
        least = tuple(images[np.lexsort(images.T[::-1])[0]].tolist())
        if best is None or least < best.links:
            x, y, z = np.abs(matrix).argmax(axis=0).tolist()
            best = NormalForm(links=least, turned=(x, y, z))
    assert best is not None
    return best
