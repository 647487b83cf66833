"""What a job holds, what is believed to be wrong with it, and which faces of its cubes it uses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sim.condition import SIDES_PER_CUBE
from sim.histories import ComponentKind
from sim.trace import Placed, Stage
from topology.pod import HOSTS_PER_CUBE, Pod
from topology.shape import Shape


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is believed to be wrong with the slice of a job."""

    hardware: bool
    switch: bool
    end: bool

    @property
    def light(self) -> bool:
        """Whether a light path of the slice is dead."""
        return self.switch or self.end

    @property
    def way_round(self) -> str:
        """Kind of the dead component that carries no light and that a running slice runs around, empty for none."""
        if self.switch:
            return ComponentKind.OCS.value
        return ComponentKind.OPTICAL_END.value if self.end else ""


class Holding:
    """What a job holds now: its placement, its stage and its speed."""

    __slots__ = ("cubes", "hosts", "index", "placed", "shape", "speed_ppm", "stage", "way_round")

    def __init__(self, placed: Placed, shape: Shape | None) -> None:
        """`index` and `hosts` are the hosts of the placement as array and as set, `cubes` the cubes they are in.

        `way_round`: what a running slice runs around (see `Trouble`).
        """
        self.placed = placed
        self.shape = shape
        self.index = np.array(placed.hosts, dtype=np.int64)
        self.hosts = frozenset(placed.hosts)
        self.cubes = placed.cubes or tuple(sorted({host // HOSTS_PER_CUBE for host in placed.hosts}))
        self.stage = Stage.WAITING
        self.speed_ppm = 0
        self.way_round = ""

    @property
    def whole(self) -> bool:
        """Whether the slice is made of whole cubes."""
        return bool(self.placed.cubes)


@lru_cache(maxsize=4096)
def faces_of(cubes: tuple[int, ...]) -> tuple[int, ...]:
    """All faces of these cubes."""
    return tuple(cube * SIDES_PER_CUBE + side for cube in cubes for side in range(SIDES_PER_CUBE))


@lru_cache(maxsize=4096)
def faces_between(pod: Pod, cubes: tuple[int, ...]) -> tuple[int, ...]:
    """The faces of these cubes that face another of them (or itself, where the pod is one cube thick)."""
    inside, faces = frozenset(cubes), []
    for cube in cubes:
        place = pod.cube_coordinates(cube)
        for side in range(SIDES_PER_CUBE):
            neighbour = list(place)
            neighbour[side // 2] += 1 - 2 * (side % 2)
            if pod.cube_at(neighbour[0], neighbour[1], neighbour[2]) in inside:
                faces.append(cube * SIDES_PER_CUBE + side)
    return tuple(faces)
