"""Where a slice goes: placement policies as plug-ins.

A policy is pure: it is shown what is free and returns a `Placement` or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topology.fabric import Fabric
from topology.placement import Placement, place
from topology.pod import AnyPod
from topology.shape import Shape


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
