"""The second route to availability: the log of transitions, replayed row by row in plain Python.

Slow on purpose, and it shares nothing with `sim.metrics.segments`: it keeps a count of outages per component, asks
`topology.placement.capacity` after every instant, and adds up time. The tests hold both routes against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from sim.histories import ComponentKind, Outages
from sim.metrics.availability import CapacityTimes
from topology.fabric import Fabric
from topology.placement import capacity
from topology.pod import HOSTS_PER_CUBE, IN_RACK_LINKS_PER_CUBE, AnyPod

Transition = tuple[int, str, int, bool]
"""time_us, kind of component, its index, whether it is up from then on (or, with overlaps, one outage less)."""


def transitions_of(outages: Sequence[Outages], until_us: int) -> list[Transition]:
    """Histories as a log: two rows per outage, in order of time, up to the horizon (half-open)."""
    rows: list[Transition] = []
    for population in outages:
        kind = str(population.kind)
        for component, start_us, end_us in zip(
            population.component.tolist(), population.start_us.tolist(), population.end_us.tolist(), strict=True
        ):
            rows += [(start_us, kind, component, False), (end_us, kind, component, True)]
    return sorted((row for row in rows if row[0] < until_us), key=itemgetter(0))


def transitions_of_log(rows: Iterable[tuple[int, str, str, int, int, str, int]]) -> list[Transition]:
    """The failures and repairs among the rows of a machine's log (`sim.trace`)."""
    return [(row[0], row[2], row[3], row[1] == "repair") for row in rows if row[1] in ("fail", "repair")]


def _hosts_hit(kind: str, component: int) -> range:
    """The hosts that a component takes out of action; none for light."""
    if kind == ComponentKind.HOST:
        return range(component, component + 1)
    per_cube = {ComponentKind.RACK: 1, ComponentKind.IN_RACK_LINK: IN_RACK_LINKS_PER_CUBE}.get(ComponentKind(kind))
    if per_cube is None:
        return range(0)
    first = component // per_cube * HOSTS_PER_CUBE
    return range(first, first + HOSTS_PER_CUBE)


def times_from_log(
    transitions: Sequence[Transition], pod: AnyPod, fabric: Fabric, slice_chips: int, until_us: int, *, from_us: int = 0
) -> CapacityTimes:
    """Time at each capacity in [from, until), by replaying the transitions in order of time."""
    against = [0] * pod.hosts
    time_us: dict[int, int] = {}
    now_us, slices = from_us, capacity(fabric, pod, slice_chips, np.ones(pod.hosts, dtype=np.bool_))
    for instant_us, together in groupby(transitions, key=itemgetter(0)):
        if instant_us >= until_us:
            break
        if instant_us > now_us:
            time_us[slices] = time_us.get(slices, 0) + instant_us - now_us
            now_us = instant_us
        for _, kind, component, up in together:
            for host in _hosts_hit(kind, component):
                against[host] += -1 if up else 1
        slices = capacity(fabric, pod, slice_chips, np.array([count == 0 for count in against], dtype=np.bool_))
    time_us[slices] = time_us.get(slices, 0) + until_us - now_us
    row = np.zeros((1, max(time_us) + 1), dtype=np.int64)
    for slices, duration_us in sorted(time_us.items()):
        row[0, slices] = duration_us
    return CapacityTimes(fabric=fabric, slice_chips=slice_chips, pod_chips=pod.chips, time_us=row)
