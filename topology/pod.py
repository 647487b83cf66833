"""Pods: how many cubes, on which grid, behind which switches; and pods without cubes, for comparison.

Numbering (design: machine, section 1): host h belongs to cube h // 16; cube (X, Y, Z) of a grid has the row-major index
(X * grid_y + Y) * grid_z + Z, which is 16 X + 4 Y + Z for TPU v4. Counts of chips, hosts, faces and switches are
those of Jouppi et al., "TPU v4", ISCA 2023, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from topology.errors import refuse

Grid = tuple[int, int, int]
"""Three whole numbers along x, y, z: the cubes of a pod, or of a box of cubes."""

CHIPS_PER_HOST = 4
HOSTS_PER_CUBE = 16
CHIPS_PER_CUBE = CHIPS_PER_HOST * HOSTS_PER_CUBE
CUBE_EDGE_CHIPS = 4
DIMENSIONS = 3
POSITIONS_PER_FACE = 16
OPTICAL_ENDS_PER_CUBE = 2 * DIMENSIONS * POSITIONS_PER_FACE
IN_RACK_LINKS_PER_CUBE = 80
"""Copper cables inside a rack; the other 64 of a cube's 144 inner links are board traces and belong to the hosts."""
SWITCHES_PER_POD = DIMENSIONS * POSITIONS_PER_FACE
V4_SWITCH_PORTS = 136
SPARE_PORTS = 8

STATED_GRIDS: dict[int, Grid] = {25: (5, 5, 1), 64: (4, 4, 4), 140: (4, 5, 7), 144: (4, 6, 6)}
"""Grids that the design states (assumption, editable); every other number of cubes takes `grid_nearest_cube`."""


@cache
def grid_nearest_cube(cubes: int) -> Grid:
    """The grid X <= Y <= Z of exactly `cubes` cubes with the least surface (the most cubic one): 48 -> (3, 4, 4)."""
    if cubes < 1:
        raise ValueError(f"a grid needs at least one cube, not {cubes}")
    best: tuple[int, Grid] | None = None
    for x in range(1, round(cubes ** (1 / 3)) + 2):
        if cubes % x:
            continue
        rest, y = cubes // x, x
        while y * y <= rest:
            if rest % y == 0:
                z = rest // y
                candidate = (x * y + y * z + x * z, (x, y, z))
                best = candidate if best is None else min(best, candidate)
            y += 1
    assert best is not None
    return best[1]


def stated_grid(cubes: int) -> Grid:
    """The grid that a pod of `cubes` cubes has unless a scenario says otherwise."""
    return STATED_GRIDS.get(cubes) or grid_nearest_cube(cubes)


def places_of(grid: Grid) -> list[Grid]:
    """All places of a grid or box, row-major, the last coordinate fastest: the order in which cubes are numbered."""
    return [(x, y, z) for x in range(grid[0]) for y in range(grid[1]) for z in range(grid[2])]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pod:
    """All cubes reachable by one set of 48 switches (under a static fabric: the same cubes without switches).

    `grid` (0, 0, 0) stands for the stated grid of that many cubes, `ports` 0 for switches as large as the pod needs:
    136 ports up to 64 cubes, else 2 x cubes + 8 (assumption). Raises InputError where the grid does not hold the cubes
    or the cubes do not fit the switches.
    """

    name: str = "custom"
    cubes: int
    grid: Grid = (0, 0, 0)
    ports: int = 0

    def __post_init__(self) -> None:
        """Fill in the stated grid and check that everything fits."""
        if self.cubes < 1:
            raise refuse("pod.cubes", f"{self.cubes} cubes are no pod", "write a whole number of at least 1")
        if tuple(self.grid) == (0, 0, 0):
            object.__setattr__(self, "grid", stated_grid(self.cubes))
        if (
            len(self.grid) != DIMENSIONS
            or min(self.grid) < 1
            or self.grid[0] * self.grid[1] * self.grid[2] != self.cubes
        ):
            fitting = "x".join(map(str, stated_grid(self.cubes)))
            raise refuse(
                "pod.grid",
                f"a grid of {'x'.join(map(str, self.grid))} does not hold exactly {self.cubes} cubes",
                f"write three whole numbers whose product is {self.cubes}, for example {fitting}",
            )
        if self.ports and 2 * self.cubes > self.ports:
            raise refuse(
                "pod.ports",
                f"{self.cubes} cubes need {2 * self.cubes} ports on each switch, which has {self.ports}",
                f"write at most {self.ports // 2} cubes, or switches of at least {2 * self.cubes} ports",
            )

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.cubes * HOSTS_PER_CUBE

    @property
    def chips(self) -> int:
        """Number of chips."""
        return self.cubes * CHIPS_PER_CUBE

    @property
    def switches(self) -> int:
        """Number of optical circuit switches of a reconfigurable pod."""
        return SWITCHES_PER_POD

    @property
    def switch_ports(self) -> int:
        """Ports of each switch, spare ones included."""
        return self.ports or max(V4_SWITCH_PORTS, 2 * self.cubes + SPARE_PORTS)

    @property
    def spare_ports(self) -> int:
        """Ports of each switch that carry no fibre."""
        return self.switch_ports - 2 * self.cubes

    def cube_at(self, x: int, y: int, z: int) -> int:
        """Index of the cube at (x, y, z) of the grid; coordinates wrap around the grid's edges."""
        grid_x, grid_y, grid_z = self.grid
        return (x % grid_x * grid_y + y % grid_y) * grid_z + z % grid_z

    def cube_coordinates(self, cube: int) -> Grid:
        """Coordinates (X, Y, Z) of a cube on the grid."""
        _, grid_y, grid_z = self.grid
        return cube // (grid_y * grid_z), cube // grid_z % grid_y, cube % grid_z


@dataclass(frozen=True, kw_only=True, slots=True)
class FlatPod:
    """A machine of `hosts` hosts without cubes or torus, for comparison: its only fabric is `any_host`."""

    name: str = "flat"
    hosts: int

    def __post_init__(self) -> None:
        """Check that there is a host."""
        if self.hosts < 1:
            raise refuse("pod.hosts", f"{self.hosts} hosts are no pod", "write a whole number of at least 1")

    @property
    def chips(self) -> int:
        """Number of chips (four to a host)."""
        return self.hosts * CHIPS_PER_HOST


AnyPod = Pod | FlatPod

POD_GENERATIONS: dict[str, Pod] = {
    "v4": Pod(name="v4", cubes=64, grid=(4, 4, 4), ports=136),
    "v5p": Pod(name="v5p", cubes=140, grid=(4, 5, 7), ports=288),
    "tpu7x": Pod(name="tpu7x", cubes=144, grid=(4, 6, 6), ports=296),
}
"""Pods by generation. Cubes: ISCA 2023 (v4); cloud documentation, 8,960 and 9,216 chips (v5p, TPU7x). Grids and ports
of the latter two are assumptions."""


def pod_of_generation(generation: str, where: str = "pod.generation") -> Pod:
    """The pod of a generation by name; InputError with the known names otherwise."""
    if generation not in POD_GENERATIONS:
        raise refuse(where, f"unknown pod generation {generation!r}", f"write one of {', '.join(POD_GENERATIONS)}")
    return POD_GENERATIONS[generation]
