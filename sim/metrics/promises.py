"""Cubes needed for a promise where no closed form exists: boxes on the torus of cubes, by simulation.

In the long run the machine is found in a random state: each cube usable with probability p, independently. Many such
states are drawn once, and the smallest machine is sought that holds the promise in a share of them. The draw of a cube
is the same for machines of all sizes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sim.closed_forms import CubeOdds, cubes_for_promise
from sim.metrics.replicas import take_boxes
from sim.streams import Streams
from topology.boxes import contiguous_table, standard_box
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE, CHIPS_PER_HOST, HOSTS_PER_CUBE, Pod, grid_nearest_cube
from topology.shape import parse_shape

Bools = NDArray[np.bool_]

SNAPSHOTS = 2000
FIRST_LOOK = 200
"""States of a first look; a machine that misses the promise by far in these is not looked at again."""
MOST_CUBES = 400
_MOST_STEPS = 1000


def slices_text(slices: Mapping[str, int]) -> str:
    """The promised slices as a text: `8x8x16:3`."""
    return ", ".join(f"{shape}:{count}" for shape, count in slices.items())


def chips_promised(slices: Mapping[str, int]) -> dict[int, int]:
    """The promised slices (shape -> how many) by chips."""
    chips: dict[int, int] = {}
    for shape, count in slices.items():
        size = parse_shape(shape).chips
        chips[size] = chips.get(size, 0) + count
    return chips


def _cubes_of(slices: Mapping[int, int]) -> dict[int, int]:
    """Cubes per slice -> how many, largest first; slices of less than a cube as the whole cubes that they fill."""
    wanted: dict[int, int] = {}
    for chips, count in sorted(slices.items(), reverse=True):
        size = max(1, chips // CHIPS_PER_CUBE)
        hosts = count * max(1, chips // CHIPS_PER_HOST)
        wanted[size] = wanted.get(size, 0) + (count if chips >= CHIPS_PER_CUBE else -(-hosts // HOSTS_PER_CUBE))
    return wanted


def share_held_in_boxes(pod: Pod, wanted: Mapping[int, int], usable: Bools) -> float:
    """Share of the states `usable` (S, C) in which boxes for all of `wanted` (cubes -> count) lie on usable cubes.

    Sizes are placed one after the other, in the order given: with several sizes this is a lower bound.
    """
    free, held = usable.copy(), np.ones(len(usable), dtype=np.bool_)
    for cubes, count in wanted.items():
        found = np.zeros(len(free), dtype=np.int64)
        take_boxes(free, contiguous_table(pod, cubes), count, _MOST_STEPS, found)
        held &= found == count
    return float(held.mean())


def cubes_for_promise_in_boxes(
    slices: Mapping[int, int], odds: CubeOdds, time_share: float, streams: Streams, *, most: int = MOST_CUBES
) -> int | None:
    """Fewest cubes of a `static_contiguous` machine that hold `slices` (chips -> count) for a share of the time.

    The grid of C cubes is the one nearest to a cube (X <= Y <= Z); numbers of cubes whose grid has no room for a box
    are passed over. None if `most` cubes are not enough. A share of 2,000 states is good to about 0.4 points.
    """
    wanted = _cubes_of(slices)
    fewest = cubes_for_promise(Fabric.RECONFIGURABLE, slices, odds, time_share, most=most)
    if fewest is None:
        return None
    states = np.stack([streams.uniforms("promise.states", block, most) for block in range(SNAPSHOTS)]) < odds.cube
    for cubes in range(fewest, most + 1):
        grid = grid_nearest_cube(cubes)
        if any(standard_box(grid, size) is None for size in wanted):
            continue
        pod = Pod(cubes=cubes, grid=grid)
        usable = np.ascontiguousarray(states[:, :cubes])
        if share_held_in_boxes(pod, wanted, usable[:FIRST_LOOK]) < time_share - 0.06:
            continue
        if share_held_in_boxes(pod, wanted, usable) >= time_share:
            return cubes
    return None
