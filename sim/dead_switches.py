"""What several dead switches cost a slice: drawn sets of switches, by method of routing."""

from __future__ import annotations

import math
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.streams import Streams
from topology.errors import refuse
from topology.pod import POSITIONS_PER_FACE, SWITCHES_PER_POD
from topology.routing.degraded import Degradation, degradation
from topology.routing.faults import dead_links_of_switch
from topology.routing.methods import Method
from topology.shape import Shape


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
