"""What the machine knows beside up and down: hidden faults, components known to be degraded, announced drains.

State only: the machine's verbs change it, and write the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.condition import cube_of
from sim.histories import ComponentKind
from sim.trace import FULL_SPEED_PPM


class CubeState(StrEnum):
    """The state of a cube as the scheduler sees it, the first that applies."""

    DRAINED = "drained"
    UNHEALTHY = "unhealthy"
    DEGRADED = "degraded"
    HEALTHY = "healthy"


class HiddenState(NamedTuple):
    """A hidden fault of a host: its cause, its onset, the speed in millionths that it leaves."""

    cause: str
    since_us: int
    speed_ppm: int


class Flaws:
    """Hidden faults by host, components known to be degraded, drains announced, all in order of onset.

    `reached`: for each host with a hidden fault, the jobs that ran on it since, and from when on.
    """

    def __init__(self) -> None:
        """Nothing is wrong and nothing is announced."""
        self.hidden: dict[int, HiddenState] = {}
        self.degraded: dict[tuple[ComponentKind, int], str] = {}
        self.noticed: dict[tuple[ComponentKind, int], None] = {}
        self.reached: dict[int, dict[int, int]] = {}
        self.accept_degraded = True

    def is_clear(self, kind: ComponentKind, component: int) -> bool:
        """Whether neither a hidden fault nor a known flaw is on a component."""
        hides = kind is ComponentKind.HOST and component in self.hidden
        return not hides and (kind, component) not in self.degraded

    def clear(self, kind: ComponentKind, component: int) -> None:
        """The component is as good as new."""
        if kind is ComponentKind.HOST:
            self.hidden.pop(component, None)
            self.reached.pop(component, None)
        self.degraded.pop((kind, component), None)

    def pace_ppm(self, hosts: frozenset[int]) -> int:
        """The speed of the slowest of these hosts, in millionths of the healthy one."""
        slow = [state.speed_ppm for host, state in self.hidden.items() if host in hosts]
        return min(slow, default=FULL_SPEED_PPM)

    def reaches(self, host: int, job: int, now_us: int) -> None:
        """A job runs on a host with a hidden fault, from now on or since before."""
        self.reached.setdefault(host, {}).setdefault(job, now_us)

    def flawed_cubes(self, cubes: int) -> NDArray[np.bool_] | None:
        """A fresh array (C,): cubes with a component known to be slow or to flap; None where there are none."""
        if not self.degraded:
            return None
        flawed = np.zeros(cubes, dtype=np.bool_)
        flawed[[cube_of(kind, component) for kind, component in self.degraded]] = True
        return flawed

    def noticed_cubes(self) -> Iterable[int]:
        """Cubes whose drain is announced and not yet begun."""
        return (component for kind, component in self.noticed if kind is ComponentKind.RACK)
