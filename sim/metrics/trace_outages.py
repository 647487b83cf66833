"""Outages read back from a log: what was really down, crews, drains and all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.histories import ComponentKind, Outages, sorted_outages
from sim.trace import Trace, Verb
from topology.pod import HOSTS_PER_CUBE


def outages_of_trace(trace: Trace, counts: dict[ComponentKind, int], kinds: Sequence[ComponentKind]) -> list[Outages]:
    """The outages of each kind in a log, those in progress at the end cut at the horizon.

    `counts` holds the number of components of each kind (see `sim.condition.component_counts`).
    """
    open_since: dict[tuple[str, int], int] = {}
    found: dict[str, list[tuple[int, int, int]]] = {kind.value: [] for kind in kinds}
    for time_us, verb, kind_name, component, _, _, _ in trace.rows:
        if kind_name not in found:
            continue
        if verb == Verb.FAIL:
            open_since[kind_name, component] = time_us
        elif verb == Verb.REPAIR:
            found[kind_name].append((component, open_since.pop((kind_name, component)), time_us))
    for (kind_name, component), start_us in open_since.items():
        found[kind_name].append((component, start_us, trace.horizon_us))
    outages = []
    for kind in kinds:
        rows = np.array(found[kind.value], dtype=np.int64).reshape(-1, 3)
        outages.append(sorted_outages(kind, counts[kind], trace.horizon_us, rows[:, 0], rows[:, 1], rows[:, 2]))
    return outages


def drained_cubes(trace: Trace) -> Outages:
    """The planned drains of cubes in a log, as outages of their racks; those in progress at the end end with it."""
    since: dict[int, int] = {}
    rows: list[tuple[int, int, int]] = []
    for time_us, verb, kind, component, _, _, _ in trace.rows:
        if kind:
            continue
        if verb == Verb.DRAIN:
            since[component] = time_us
        elif verb == Verb.UNDRAIN:
            rows.append((component, since.pop(component), time_us))
    rows += [(cube, start_us, trace.horizon_us) for cube, start_us in since.items()]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    racks = trace.hosts // HOSTS_PER_CUBE
    return sorted_outages(ComponentKind.RACK, racks, trace.horizon_us, table[:, 0], table[:, 1], table[:, 2])
