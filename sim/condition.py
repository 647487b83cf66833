"""One view of what is up: a byte per component, and the sets and counters that answer every question at once.

The machine keeps two: the truth (`up`) and what the scheduler sees (`believed`), which lags by detection. A dead rack
or in-rack link takes the 16 hosts of its cube out; optical ends and switches never do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.histories import ComponentKind
from topology.pod import (
    HOSTS_PER_CUBE,
    IN_RACK_LINKS_PER_CUBE,
    OPTICAL_ENDS_PER_CUBE,
    POSITIONS_PER_FACE,
    SWITCHES_PER_POD,
    AnyPod,
    Pod,
)

HOST = ComponentKind.HOST
RACK = ComponentKind.RACK
LINK = ComponentKind.IN_RACK_LINK
END = ComponentKind.OPTICAL_END
OCS = ComponentKind.OCS
KINDS = tuple(ComponentKind)

SIDES_PER_CUBE = OPTICAL_ENDS_PER_CUBE // POSITIONS_PER_FACE
"""Faces of a cube: number dimension * 2 + side, where side 0 is + and 1 is -."""


def component_counts(pod: AnyPod) -> dict[ComponentKind, int]:
    """How many components of each kind a pod can have (a flat pod has hosts alone)."""
    if not isinstance(pod, Pod):
        return {HOST: pod.hosts, RACK: 0, LINK: 0, END: 0, OCS: 0}
    return {
        HOST: pod.hosts,
        RACK: pod.cubes,
        LINK: pod.cubes * IN_RACK_LINKS_PER_CUBE,
        END: pod.cubes * OPTICAL_ENDS_PER_CUBE,
        OCS: SWITCHES_PER_POD,
    }


def cube_of(kind: ComponentKind, component: int) -> int:
    """The cube that a component belongs to (switches belong to none: -1)."""
    if kind is HOST:
        return component // HOSTS_PER_CUBE
    if kind is RACK:
        return component
    if kind is LINK:
        return component // IN_RACK_LINKS_PER_CUBE
    if kind is END:
        return component // OPTICAL_ENDS_PER_CUBE
    return -1


def hosts_of_cube(cube: int) -> range:
    """The 16 hosts of a cube."""
    return range(cube * HOSTS_PER_CUBE, (cube + 1) * HOSTS_PER_CUBE)


def view(data: bytearray) -> NDArray[np.uint8]:
    """The bytes as an array that shares their memory."""
    return np.frombuffer(data, dtype=np.uint8)


class Condition:
    """A view of all components.

    `dead_hosts` are the hosts that do not work: they are down, or their rack or an in-rack link of their cube is.
    `shared_out` counts the latter per cube (one more where it is closed), `ends_out` the dead optical ends per face
    (cube * 6 + dimension * 2 + side).
    """

    def __init__(self, pod: AnyPod) -> None:
        """Everything is up."""
        self.hosts = pod.hosts
        self.cubes = -(-pod.hosts // HOSTS_PER_CUBE)
        self.up: dict[ComponentKind, bytearray] = {
            kind: bytearray(b"\x01") * count for kind, count in component_counts(pod).items()
        }
        self.dead_hosts: set[int] = set()
        self.shared_out = [0] * self.cubes
        self.ends_out = [0] * (self.cubes * SIDES_PER_CUBE)
        self.ends_out_total = 0
        self.switches_out = 0
        self.closed: set[int] = set()

    def turn(self, kind: ComponentKind, component: int, up: int) -> None:
        """Set one component up (1) or down (0); it must have been the other."""
        bytes_up = self.up[kind]
        assert bytes_up[component] != up, f"{kind} {component} is already {'up' if up else 'down'}"
        bytes_up[component] = up
        step = -1 if up else 1
        if kind is HOST:
            if self.shared_out[component // HOSTS_PER_CUBE]:
                pass  # its rack or a link keeps it dead
            elif up:
                self.dead_hosts.remove(component)
            else:
                self.dead_hosts.add(component)
        elif kind is OCS:
            self.switches_out += step
        elif kind is END:
            self.ends_out[component // POSITIONS_PER_FACE] += step
            self.ends_out_total += step
        else:
            self._turn_cube(cube_of(kind, component), step)

    def close(self, cube: int) -> None:
        """Count the hosts of a cube as not working from now on, whatever is up (a drain that is due)."""
        assert cube not in self.closed, f"cube {cube} is closed already"
        self.closed.add(cube)
        self._turn_cube(cube, 1)

    def reopen(self, cube: int) -> None:
        """Undo `close`; nothing happens where the cube is open."""
        if cube in self.closed:
            self.closed.remove(cube)
            self._turn_cube(cube, -1)

    def _turn_cube(self, cube: int, step: int) -> None:
        self.shared_out[cube] += step
        if not self.shared_out[cube]:
            self.dead_hosts.difference_update(
                host for host in hosts_of_cube(cube) if host < self.hosts and self.up[HOST][host]
            )
        elif step > 0:
            self.dead_hosts.update(host for host in hosts_of_cube(cube) if host < self.hosts)

    def host_is_up(self, host: int) -> bool:
        """Whether a host works: itself, its rack and its cube's in-rack links."""
        return host not in self.dead_hosts

    def dead_switches(self) -> list[int]:
        """Switches that are down, in order of number."""
        return [switch for switch, up in enumerate(self.up[OCS]) if not up] if self.switches_out else []

    def dark_cubes(self) -> NDArray[np.bool_]:
        """A fresh array (C,) of the cubes that have a dead optical end."""
        ends_out = np.array(self.ends_out).reshape(-1, SIDES_PER_CUBE)
        return np.asarray(ends_out.any(axis=1), dtype=np.bool_)

    def hosts_up(self) -> NDArray[np.bool_]:
        """A fresh array (H,) of the hosts that work."""
        up: NDArray[np.bool_] = np.ones(self.hosts, dtype=np.bool_)
        up[list(self.dead_hosts)] = False
        return up

    def check(self) -> None:
        """Assert that all counters agree with the bytes, counted anew."""
        down = {kind: np.flatnonzero(view(data) == 0).tolist() for kind, data in self.up.items()}
        shared_out = [0] * self.cubes
        ends_out = [0] * (self.cubes * SIDES_PER_CUBE)
        for kind in (RACK, LINK):
            for component in down[kind]:
                shared_out[cube_of(kind, component)] += 1
        for cube in sorted(self.closed):
            shared_out[cube] += 1
        for end in down[END]:
            ends_out[end // POSITIONS_PER_FACE] += 1
        assert shared_out == self.shared_out, "racks and in-rack links out per cube"
        assert ends_out == self.ends_out, "optical ends out per face"
        dead = [host for host, up in enumerate(self.up[HOST]) if not up or shared_out[host // HOSTS_PER_CUBE]]
        assert dead == sorted(self.dead_hosts), "hosts that do not work"
        assert self.ends_out_total == len(down[END]), "optical ends out"
        assert self.switches_out == len(down[OCS]), "switches out"
