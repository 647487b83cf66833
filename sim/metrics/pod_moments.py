"""What happens on a pod beside what its cubes do, from the log alone, for the timeline: failures and moves as instants,
what is wrong with switches, circuits in use."""

from __future__ import annotations

from typing import NamedTuple

from sim.condition import cube_of
from sim.histories import ComponentKind
from sim.trace import Trace, Verb
from topology.pod import HOSTS_PER_CUBE

DEAD, REPAIR, DRAINED, RETIRED = "dead", "in repair", "drained", "retired"


class Moment(NamedTuple):
    """Something that happens to a cube at an instant: a part of it fails, or a job that was elsewhere moves in."""

    cube: int
    what: str
    time_us: int


class SwitchStretch(NamedTuple):
    """One stretch [start_us, end_us) of one switch: `dead` until that is noticed, then `in repair`;
    `drained`; `retired`."""

    switch: int
    what: str
    start_us: int
    end_us: int


class CircuitCount(NamedTuple):
    """Circuits that jobs hold from an instant on."""

    time_us: int
    circuits: int


class PodMoments(NamedTuple):
    """All of it for one replication, each in order of time (stretches in order of their ends)."""

    moments: tuple[Moment, ...]
    switches: tuple[SwitchStretch, ...]
    circuits: tuple[CircuitCount, ...]


def moments_of(trace: Trace, most: int) -> PodMoments:
    """At most the first `most` of each kind."""
    return PodMoments(
        tuple(_moments(trace)[:most]), tuple(switch_stretches(trace)[:most]), tuple(_circuit_counts(trace)[:most])
    )


def _moments(trace: Trace) -> list[Moment]:
    """Failures of everything that belongs to a cube, and cubes that a job takes after it has held others."""
    found: list[Moment] = []
    last: dict[int, tuple[int, ...]] = {}
    for time_us, verb, kind, component, job, _, value in trace.rows:
        if verb == Verb.FAIL and kind != ComponentKind.OCS:
            what = f"{kind.replace('_', ' ')} {component} fails"
            found.append(Moment(cube_of(ComponentKind(kind), component), what, time_us))
        elif verb == Verb.OCCUPY:
            cubes = tuple(dict.fromkeys(host // HOSTS_PER_CUBE for host in trace.placements[value].hosts))
            came = [cube for cube in cubes if cube not in last.get(job, cubes)]
            found += [Moment(cube, f"job {job} moves in", time_us) for cube in came]
            last[job] = cubes
    return found


def switch_stretches(trace: Trace) -> list[SwitchStretch]:
    """Stretches of all switches in order of their ends; those still open end with the horizon."""
    found: list[SwitchStretch] = []
    open_now: dict[int, tuple[str, int]] = {}
    enters = {
        Verb.FAIL.value: DEAD, Verb.DETECT.value: REPAIR, Verb.DRAIN.value: DRAINED, Verb.RETIRE.value: RETIRED
    }  # fmt: skip
    leaves = (Verb.REPAIR.value, Verb.UNDRAIN.value)
    for time_us, verb, kind, switch, _, _, _ in trace.rows:
        if kind != ComponentKind.OCS or (verb not in enters and verb not in leaves):
            continue
        if switch in open_now:
            what, start_us = open_now.pop(switch)
            if start_us < time_us:
                found.append(SwitchStretch(switch, what, start_us, time_us))
        if verb in enters:
            open_now[switch] = enters[verb], time_us
    rest = [SwitchStretch(switch, *stretch, trace.horizon_us) for switch, stretch in sorted(open_now.items())]
    return found + [stretch for stretch in rest if stretch.start_us < stretch.end_us]


def _circuit_counts(trace: Trace) -> list[CircuitCount]:
    """The circuits in use after every instant at which some were made or cut."""
    counts: dict[int, int] = {}
    now = 0
    for time_us, verb, _, _, _, _, value in trace.rows:
        if verb in (Verb.CONNECT, Verb.DISCONNECT):
            now += value if verb == Verb.CONNECT else -value
            counts[time_us] = now
    return [CircuitCount(*count) for count in counts.items()]
