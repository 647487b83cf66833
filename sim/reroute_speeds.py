"""How fast a slice runs around dead light: at the stated speed, or as the routing room says for its shape and traffic.

By the routing room: a slice whose steps wait for the network for a share w of a healthy step's time, and keeps a share
k of the traffic in question on wild-first routes, runs at 1 / (1 + w (1 / k - 1)). Traffic: `all_to_all`, or `rings`
(ring collectives with all three axes busy, the axis that loses most). k is that of one dead switch of the dimension
(the positions are alike). Several dead parts: the product of their k. A dead optical end takes one of the links that
its switch would, and counts as that switch (both assumptions; the second is a bound from below).
"""

from __future__ import annotations

import math
from functools import lru_cache

from sim.machine import Machine
from sim.policies import RecoveryPolicy
from sim.trace import FULL_SPEED_PPM
from topology.pod import CHIPS_PER_CUBE, DIMENSIONS, POSITIONS_PER_FACE
from topology.shape import Shape, shape_of_chips

POSITION = 5
_LEAST_PPM = 1


@lru_cache(maxsize=1024)
def kept_share(shape: Shape, dimension: int, traffic: str) -> float:
    """Share of its traffic that a slice keeps with one switch of a dimension dead; 0 where there is no way round."""
    from sim.disk_cache import routes_cache
    from topology.routing.degraded import degradation  # most runs need no routes
    from topology.routing.faults import dead_links_of_switch

    left = degradation(shape, dead_links_of_switch(shape, dimension, POSITION), cache=routes_cache())
    if not left.routed:
        return 0.0
    return left.all_to_all_kept if traffic == "all_to_all" else min(left.ring_kept)


def rerouted_speed(recovery: RecoveryPolicy, shape: Shape, dead: tuple[int, int, int]) -> float:
    """Share of the healthy speed of a slice with so many dead switches or ends along x, y, z."""
    if recovery.reroute_traffic == "none":
        return recovery.rerouted_speed
    kept = math.prod(
        kept_share(shape, dimension, recovery.reroute_traffic) ** count for dimension, count in enumerate(dead) if count
    )
    return 1 / (1 + recovery.reroute_network_share * (1 / kept - 1)) if kept > 0 else 0.0


def mean_rerouted_speed(recovery: RecoveryPolicy, slice_chips: int, switches: int) -> float:
    """The same for slices of a size with dead switches of any dimension alike: the mean speed of one to their power."""
    if recovery.reroute_traffic == "none" or slice_chips < CHIPS_PER_CUBE:
        return recovery.rerouted_speed
    shape = shape_of_chips(slice_chips)
    ones = [rerouted_speed(recovery, shape, (axis == 0, axis == 1, axis == 2)) for axis in range(DIMENSIONS)]
    return float((sum(ones) / DIMENSIONS) ** switches)


def dead_by_dimension(machine: Machine, job: int) -> tuple[int, int, int]:
    """How many switches, and optical ends of the slice of a job, are believed dead along x, y, z."""
    believed, dead = machine.believed, [0] * DIMENSIONS
    for switch in believed.dead_switches() if machine.light is not None else ():
        dead[switch // POSITIONS_PER_FACE] += 1
    for face in machine.faces(job) if believed.ends_out_total else ():
        dead[face % (2 * DIMENSIONS) // 2] += believed.ends_out[face]
    return dead[0], dead[1], dead[2]


def rerouted_ppm(recovery: RecoveryPolicy, machine: Machine, job: int) -> int:
    """The speed, in millionths, at which a job runs around what is believed dead.

    On fabrics without switches it is the stated one: the routing room knows boxes of fixed wiring only whole.
    """
    shape = machine.holdings[job].shape
    if recovery.reroute_traffic == "none" or machine.light is None or shape is None:
        return round(recovery.rerouted_speed * FULL_SPEED_PPM)
    speed = rerouted_speed(recovery, shape, dead_by_dimension(machine, job))
    return max(_LEAST_PPM, round(speed * FULL_SPEED_PPM))
