"""The least greatest load of a slice without faults: what kept shares are relative to."""

from __future__ import annotations

from functools import cache

import numpy as np

from topology.pod import DIMENSIONS
from topology.routing.channels import Torus
from topology.routing.optimal import best_flows


@cache
def best_healthy_load(torus: Torus) -> float:
    """The least greatest load of a channel under uniform all-to-all, units of one pair's traffic; 0 for one chip.

    Without a twist: an axis of L chips puts N L / 8 on each channel of a ring of even length (N (L^2 - 1) / (8 L) if
    odd) and N L / 4 on the middle of a line (N (L^2 - 1) / (4 L) if odd); the cut across the middle, or the hops that
    must be made along the axis, admit no less, and dimension order reaches it. With a twist: by linear program, one
    source.
    """
    if torus.is_twisted:
        return best_flows(torus, np.empty(0, dtype=np.int64)).greatest
    loads = []
    for axis in range(DIMENSIONS):
        length = torus.dimensions[axis]
        pairs = length * length if length % 2 == 0 else length * length - 1
        loads.append(torus.chips * pairs / ((8 if torus.rings[axis] else 4) * length))
    return max(loads)
