"""What every cube does over time, from the log alone: which job holds it and at what stage, and when it is out.

For pictures (one row per cube). Hosts of a flat machine are taken sixteen at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sim.histories import ComponentKind
from sim.trace import Stage, Trace, Verb
from topology.pod import HOSTS_PER_CUBE, IN_RACK_LINKS_PER_CUBE

UNUSABLE, DRAINED, SHARED = "unusable", "drained", "shared"
NO_JOB = -1


class CubeStretch(NamedTuple):
    """One stretch [start_us, end_us) of one cube: the stage of the `job` that holds it, `shared` by jobs of less than
    a cube, `unusable` (a host, the rack or a link of it is out) or `drained`; free time is left out. Checkpoints count
    as running."""

    cube: int
    what: str
    job: int
    start_us: int
    end_us: int


class _Cube:
    """What is known of a cube while the log is read."""

    __slots__ = ("drained", "jobs", "out", "since_us", "state")

    def __init__(self) -> None:
        self.out = 0
        self.drained = False
        self.jobs: dict[int, None] = {}
        self.state: tuple[str, int] | None = None
        self.since_us = 0

    def now(self, stages: dict[int, str], small: dict[int, None]) -> tuple[str, int] | None:
        """State and job; None while the cube is free."""
        if self.drained:
            return DRAINED, NO_JOB
        if self.out:
            return UNUSABLE, next(iter(self.jobs), NO_JOB)
        if not self.jobs:
            return None
        job = next(iter(self.jobs))
        return (SHARED, NO_JOB) if job in small or len(self.jobs) > 1 else (stages.get(job, "waiting"), job)


def cube_stretches(trace: Trace, most: int) -> Iterator[CubeStretch]:
    """Stretches of all cubes in order of their ends. Once there are `most` of them all end, and the story with them."""
    cubes = [_Cube() for _ in range(-(-trace.hosts // HOSTS_PER_CUBE))]
    stages: dict[int, str] = {}
    small: dict[int, None] = {}
    held: dict[int, tuple[int, ...]] = {}
    found, end_us = 0, trace.horizon_us
    for time_us, verb, kind, component, job, stage, value in trace.rows:
        hit: tuple[int, ...] = ()
        if verb in (Verb.FAIL, Verb.REPAIR):
            hit = _hit(kind, component)
            for cube in hit:
                cubes[cube].out += 1 if verb == Verb.FAIL else -1
        elif verb in (Verb.DRAIN, Verb.UNDRAIN) and not kind:
            hit = (component,)
            cubes[component].drained = verb == Verb.DRAIN
        elif verb == Verb.OCCUPY:
            placed = trace.placements[value]
            hit = tuple(dict.fromkeys(host // HOSTS_PER_CUBE for host in placed.hosts))
            held[job] = hit
            if len(placed.hosts) < HOSTS_PER_CUBE:
                small[job] = None
            for cube in hit:
                cubes[cube].jobs[job] = None
        elif verb == Verb.RELEASE:
            hit = held.pop(job)
            for cube in hit:
                del cubes[cube].jobs[job]
        elif verb == Verb.STAGE:
            stages[job] = Stage.RUNNING.value if stage == Stage.CHECKPOINTING else stage
            hit = held.get(job, ())
        if hit:
            for stretch in _closed(cubes, hit, stages, small, time_us):
                found += 1
                yield stretch
            if found >= most:
                end_us = time_us
                break
    yield from _closed(cubes, tuple(range(len(cubes))), stages, small, end_us, last=True)


def _closed(
    cubes: list[_Cube],
    hit: tuple[int, ...],
    stages: dict[int, str],
    small: dict[int, None],
    now_us: int,
    *,
    last: bool = False,
) -> Iterator[CubeStretch]:
    """End the stretch of every cube whose state has changed."""
    for number in hit:
        cube = cubes[number]
        state = cube.now(stages, small)
        if state == cube.state and not last:
            continue
        if cube.state is not None and cube.since_us < now_us:
            what, job = cube.state
            yield CubeStretch(number, what, job, cube.since_us, now_us)
        cube.state, cube.since_us = state, now_us


def _hit(kind: str, component: int) -> tuple[int, ...]:
    """The cube that a component takes out; none for those of the light."""
    if kind == ComponentKind.HOST:
        return (component // HOSTS_PER_CUBE,)
    if kind == ComponentKind.RACK:
        return (component,)
    return (component // IN_RACK_LINKS_PER_CUBE,) if kind == ComponentKind.IN_RACK_LINK else ()
