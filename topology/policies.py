"""Who is next and where it goes: the first of the queue policies and of the placement policies, as plug-ins.

A policy is pure: it is shown what waits or what is free and returns a decision as data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topology.fabric import Fabric
from topology.placement import Placement, place
from topology.pod import AnyPod
from topology.shape import Shape


@dataclass(frozen=True, kw_only=True)
class Fifo:
    """First in, first out: only the head of the queue may start, so no job overtakes another."""

    kind: Literal["fifo"] = "fifo"

    def candidates(self, waiting: Sequence[int]) -> Sequence[int]:
        """The jobs, of those waiting in order of arrival, that may start now, in the order in which to try them."""
        return waiting[:1]


@dataclass(frozen=True, kw_only=True)
class FirstFit:
    """The first place that fits, in the order that `placement.place` states for each fabric."""

    kind: Literal["first_fit"] = "first_fit"

    def choose(
        self,
        fabric: Fabric,
        pod: AnyPod,
        shape: Shape,
        free_hosts: NDArray[np.bool_],
        avoid_cubes: NDArray[np.bool_] | None = None,
    ) -> Placement | None:
        """Where a slice of `shape` goes on the free and usable hosts (H,), or None where it does not fit."""
        return place(fabric, pod, shape, free_hosts, avoid_cubes)
