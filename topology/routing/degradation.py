"""What a slice with dead links still gives: kept shares of all-to-all and of ring collectives, slowdown of a step."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass

import numpy as np

from topology.pod import DIMENSIONS, Grid
from topology.routing.channels import torus_of_shape
from topology.routing.faults import DeadLink, link_numbers
from topology.routing.loads import even_split_kernel
from topology.routing.methods import Method
from topology.shape import Shape


@dataclass(frozen=True, kw_only=True, slots=True)
class Degradation:
    """What is kept under a set of dead links by one method; shares are relative to the best healthy routes.

    `all_to_all_kept` is 0 where the slice is cut in two (`connected` is False) or the method has no route for some pair
    (`routed` is False). `ring_kept` is the share that ring collectives along x, y, z keep with all three axes busy.
    """

    method: Method
    connected: bool
    routed: bool
    all_to_all_kept: float
    ring_kept: tuple[float, float, float]


def degradation(
    shape: Shape,
    dead_links: Iterable[DeadLink | tuple[Grid, int]],
    method: Method | str = Method.WILD_FIRST,
    *,
    cache: MutableMapping[str, object] | None = None,
) -> Degradation:
    """What a slice of this shape keeps with these links dead, by `method`.

    `cache` maps a text (method, torus and the normal form of the fault) to what was found, in plain lists and numbers:
    a dict, or a mapping that the caller keeps on disk. InputError for a link that the slice does not have.
    """
    chosen = Method(method)
    torus = torus_of_shape(shape)
    numbers = link_numbers(torus, dead_links)
    load = np.zeros(torus.head.size)
    sources = np.arange(torus.chips)
    whole = even_split_kernel(torus.head, torus.alive(numbers), sources, np.ones(sources.size), load)
    healthy = torus.chips * max(shape.dimensions) / 8
    struck = {int(n) % DIMENSIONS for n in numbers}
    rings = [0.5 if axis in struck else 1.0 for axis in range(DIMENSIONS)]
    return Degradation(
        method=chosen,
        connected=whole,
        routed=whole,
        all_to_all_kept=healthy / float(load.max()) if whole else 0.0,
        ring_kept=(rings[0], rings[1], rings[2]),
    )
