"""What several dead switches cost a slice: drawn sets of switches, by method of routing."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.streams import Streams
from topology.errors import refuse
from topology.pod import DIMENSIONS, POSITIONS_PER_FACE, SWITCHES_PER_POD
from topology.routing.degraded import Degradation, degradation
from topology.routing.faults import dead_links_of_switch
from topology.routing.methods import Method
from topology.shape import Shape, parse_shape


@dataclass(frozen=True, kw_only=True, eq=False)
class SwitchSlowdowns:
    """Slowdown (1 = none, inf where the slice is cut or lacks a route) with so many switches dead.

    `by_method`: (D, S) by name of the method, over `dead` (D) and S drawn orders in which switches die; the sets of one
    order are nested, and the same for every method.
    """

    dead: tuple[int, ...]
    orders: NDArray[np.int64]
    by_method: dict[str, NDArray[np.float64]]


def all_to_all_slowdown(left: Degradation) -> float:
    """Time of an all-to-all over that without faults."""
    return 1 / left.all_to_all_kept if left.connected and left.routed and left.all_to_all_kept > 0 else math.inf


def slowdown_by_dead_switches(
    shape: Shape,
    dead: Sequence[int],
    methods: Sequence[Method | str],
    *,
    orders: int = 5,
    seed: int = 1,
    slowdown: Callable[[Degradation], float] = all_to_all_slowdown,
    cache: MutableMapping[str, dict[str, Any]] | None = None,
) -> SwitchSlowdowns:
    """Slowdowns of a slice for each number of dead switches, over drawn orders of dying; InputError for less than a
    cube, which has no light, and for more switches than there are."""
    if shape.is_sub_cube:
        raise refuse("shape", f"{shape} is less than a cube and has no light", "write a shape of whole cubes")
    if not dead or min(dead) < 0 or max(dead) > SWITCHES_PER_POD:
        what = f"{list(dead)} are no numbers of dead switches"
        raise refuse("dead", what, f"write numbers from 0 to {SWITCHES_PER_POD}")
    drawn = Streams(seed, 0).uniforms("dead_switches", 0, orders * SWITCHES_PER_POD)
    in_order = np.argsort(drawn.reshape(orders, SWITCHES_PER_POD), axis=1, kind="stable")
    found = {Method(method).value: np.ones((len(dead), orders)) for method in methods}
    for name, values in found.items():
        for row, count in enumerate(dead):
            for column in range(orders):
                links = [
                    link
                    for switch in sorted(in_order[column, :count].tolist())
                    for link in dead_links_of_switch(shape, *divmod(switch, POSITIONS_PER_FACE))
                ]
                if links:
                    values[row, column] = slowdown(degradation(shape, links, name, cache=cache))
    return SwitchSlowdowns(dead=tuple(dead), orders=in_order, by_method=found)


TABLE_SHAPES = ("4x4x4", "4x4x8", "8x8x8", "8x8x16", "16x16x16")
TABLE_POSITION = 5
"""All 16 positions of a dimension are alike on a slice of whole cubes without a twist."""


def kept_with_one_dead_switch(
    shapes: Sequence[str] = TABLE_SHAPES,
    methods: Sequence[Method | str] = tuple(Method),
    cache: MutableMapping[str, dict[str, Any]] | None = None,
) -> dict[tuple[str, str], tuple[Degradation, Degradation, Degradation]]:
    """What a method keeps on a shape when one switch of x, of y, of z is dead, by (shape, method)."""
    found = {}
    for text in shapes:
        shape = parse_shape(text)
        for method in methods:
            x, y, z = (
                degradation(shape, dead_links_of_switch(shape, dimension, TABLE_POSITION), method, cache=cache)
                for dimension in range(DIMENSIONS)
            )
            found[text, Method(method).value] = (x, y, z)
    return found


def dead_switch_page(found: dict[tuple[str, str], tuple[Degradation, Degradation, Degradation]]) -> str:
    """The page `docs/dead_switch.md`: shares kept in percent, with virtual channels and the greatest gap."""
    lines = [PAGE_HEAD]
    for (shape, method), by_dimension in found.items():
        kept = [f"{100 * left.all_to_all_kept:.1f}" if left.routed else "no route" for left in by_dimension]
        rings = [
            f"{100 * left.ring_kept[dimension]:.1f}" if left.ring_kept[dimension] else "no route"
            for dimension, left in enumerate(by_dimension)
        ]
        gap = max(left.gap for left in by_dimension)
        channels = max((left.virtual_channels or 0 for left in by_dimension), default=0)
        proof = str(channels) if channels else ""
        if not all(left.deadlock_free for left in by_dimension if left.routed):
            proof = "not proved"
        lines.append(f"| {shape} | {method} | {' | '.join(kept)} | {100 * gap:.1f} | {' | '.join(rings)} | {proof} |")
    return "\n".join([*lines, ""])


PAGE_HEAD = """# What one dead switch takes

Share in percent that a slice keeps when one of the 48 switches is dead, beside the best routes without a fault, by
dimension of the switch. Published for TPU v4: all-to-all 92.2 to 101.7 %, struck rings half (NSDI 2024, 5.3).

* `dimension_order` has no route where the dimension has two or more cubes: the dead switch cuts each struck ring once
  per cube.
* `even_split` uses all shortest paths alike. `wild_first` hops aside first; one or no hop per dimension, then dimension
  order. `optimal` minimises the load of the busiest link, by linear program or, where that gets too large, within the
  gap.
* Gap: no routes of that form keep more than so much (in percent) on top, the greatest of the three.
* Rings: what ring collectives keep on the struck axis, with all three axes busy.
* Channels: virtual channels under which the routes are proved free of deadlock, the most of the three. Wild-first
  needs 3 whatever the fault, and is what `opticube topology` recommends.

`opticube topology 8x8x8 --fail ocs:x:0` gives one row with more detail.

| shape | method | x dead | y dead | z dead | gap | rings x | rings y | rings z | channels |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


if __name__ == "__main__":
    from sim.disk_cache import routes_cache

    sys.stdout.write(dead_switch_page(kept_with_one_dead_switch(cache=routes_cache())))
