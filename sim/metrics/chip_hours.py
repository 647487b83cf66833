"""Chip-hours by use, from the log alone: every chip is at each instant in exactly one use, and the sum is the pod.

Uses, each chip in the first that applies: `drained`; `down` (its host is not up); held by a job: the job's stage, where
running is divided into `useful`, `slowed` and `lost`; free: `stranded` (its cube is unusable; whole-cube slices only,
since smaller slices and `any_host` need no whole cube), `spare`, `blocked`, `fragmented` (a job waits that it can not
serve), `empty`. All in whole chip-microseconds, so sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sim.histories import ComponentKind
from sim.trace import FULL_SPEED_PPM, Placed, Stage, Trace, Verb
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE, CHIPS_PER_HOST, HOSTS_PER_CUBE, IN_RACK_LINKS_PER_CUBE


class Use(StrEnum):
    """What a chip is doing."""

    DRAINED = "drained"
    DOWN = "down"
    DETECTING = "detecting"
    EVICTING = "evicting"
    WAITING = "waiting"
    RECONFIGURING = "reconfiguring"
    PREFLIGHT = "preflight"
    RESTORING = "restoring"
    MIGRATING = "migrating"
    CHECKPOINTING = "checkpointing"
    HELD_IDLE = "held_idle"
    USEFUL = "useful"
    SLOWED = "slowed"
    LOST = "lost"
    STRANDED = "stranded"
    SPARE = "spare"
    BLOCKED = "blocked"
    FRAGMENTED = "fragmented"
    EMPTY = "empty"
    UNACCOUNTED = "unaccounted"


_STAGE_OR_SPEED = frozenset((Verb.STAGE.value, Verb.SPEED.value))
_IS_UP_AFTER = {Verb.FAIL.value: False, Verb.REPAIR.value: True}
_IS_DRAINED_AFTER = {Verb.DRAIN.value: True, Verb.UNDRAIN.value: False}
_USE_OF_STAGE = {stage.value: Use.USEFUL if stage is Stage.RUNNING else Use(stage.value) for stage in Stage}


@dataclass(slots=True)
class _Job:
    """What a job makes of its chips, how far it lags when it runs, and what it holds: how much of which units.

    `chips` are those that it holds and that are up.
    """

    use: Use = Use.WAITING
    lag_ppm: int = 0
    units: tuple[int, ...] = ()
    unit_chips: int = 0
    chips: int = 0

    @property
    def is_queued(self) -> bool:
        """Whether the job waits and holds nothing."""
        return self.use is Use.WAITING and not self.units


class _Pod:
    """The pod as the log tells it, row by row, in units: cubes where slices are made of whole ones, otherwise hosts.

    Chips that enter a use count for all the time that is left to the horizon; when they leave it they take back what
    is left then.
    """

    def __init__(self, trace: Trace, warmup_us: int) -> None:
        whole_cubes = trace.slice_chips >= CHIPS_PER_CUBE and trace.fabric is not Fabric.ANY_HOST
        self.unit_hosts = HOSTS_PER_CUBE if whole_cubes else 1
        self.unit_chips = self.unit_hosts * CHIPS_PER_HOST
        units, cubes = trace.hosts // self.unit_hosts, -(-trace.hosts // HOSTS_PER_CUBE)
        self.left_us = trace.horizon_us - warmup_us
        self.chip_us = dict.fromkeys(Use, 0)
        self.slowed_ppm_us = 0
        self.hosts_out = [0] * units
        self.shared_out = [0] * cubes
        self.drained = [False] * cubes
        self.up = [self.unit_chips] * units
        self.jobs_on: list[list[_Job]] = [[] for _ in range(units)]
        self.jobs: dict[int, _Job] = {}
        self.queued = self.open = 0
        self._open(trace.chips)

    def turn(self, kind: str, component: int, up: bool) -> None:
        """A component fails or comes back."""
        step = -1 if up else 1
        if kind == ComponentKind.HOST:
            unit = component // self.unit_hosts
            self.hosts_out[unit] += step
            self._recount([unit])
        elif kind in (ComponentKind.RACK, ComponentKind.IN_RACK_LINK):
            cube = component if kind == ComponentKind.RACK else component // IN_RACK_LINKS_PER_CUBE
            self.shared_out[cube] += step
            self._recount(self._units_of(cube))

    def drain(self, cube: int, drained: bool) -> None:
        """A free cube is taken out of service or put back."""
        units = self._units_of(cube)
        for unit in units:
            self._count(unit, -1)
        self.drained[cube] = drained
        for unit in units:
            self._count(unit, 1)

    def _units_of(self, cube: int) -> range:
        per_cube = HOSTS_PER_CUBE // self.unit_hosts
        return range(cube * per_cube, min((cube + 1) * per_cube, len(self.up)))

    def _recount(self, units: Iterable[int]) -> None:
        """Count units anew after a component of theirs has changed."""
        for unit in units:
            self._count(unit, -1)
            shared_out = self.shared_out[unit * self.unit_hosts // HOSTS_PER_CUBE]
            self.up[unit] = 0 if shared_out else self.unit_chips - CHIPS_PER_HOST * self.hosts_out[unit]
            self._count(unit, 1)

    def _count(self, unit: int, sign: int) -> None:
        """Add (1) or take away (-1) the chips of a unit where they belong now."""
        if self.drained[unit * self.unit_hosts // HOSTS_PER_CUBE]:
            self._add(Use.DRAINED, sign * self.unit_chips)
            return
        up = free = self.up[unit]
        self._add(Use.DOWN, sign * (self.unit_chips - up))
        for job in self.jobs_on[unit]:
            chips = min(up, job.unit_chips)
            self._hold(job, sign * chips)
            free -= chips
        if up == self.unit_chips:
            self._open(sign * free)
        else:
            self._add(Use.STRANDED, sign * free)

    def occupy(self, placed: Placed) -> None:
        """A job takes hosts."""
        job = self.jobs[placed.job]
        self._queue(job, -1)
        job.units = placed.hosts if self.unit_hosts == 1 else placed.cubes
        job.unit_chips = placed.chips_per_host * self.unit_hosts
        for unit in job.units:
            self.jobs_on[unit].append(job)
        self._move(job, 1)

    def release(self, number: int) -> None:
        """A job gives its hosts back."""
        job = self.jobs[number]
        self._move(job, -1)
        for unit in job.units:
            self.jobs_on[unit].remove(job)
        job.units = ()
        self._queue(job, 1)

    def _move(self, job: _Job, sign: int) -> None:
        """Move the chips of a job's units from the free ones to the job (1) or back (-1), all at once."""
        ups = [self.up[unit] for unit in job.units]
        sound = ups.count(self.unit_chips)
        stranded = sum(ups) - sound * self.unit_chips
        self._open(-sign * sound * job.unit_chips)
        self._add(Use.STRANDED, -sign * stranded)
        self._hold(job, sign * (sound * job.unit_chips + stranded))

    def enter(self, number: int, stage: str, speed_ppm: int) -> None:
        """A job enters a stage, or changes its speed (`stage` is empty)."""
        if number not in self.jobs:
            self.jobs[number] = _Job()
            self._queue(self.jobs[number], 1)
        job = self.jobs[number]
        chips = job.chips
        self._queue(job, -1)
        self._hold(job, -chips)
        job.use = _USE_OF_STAGE[stage] if stage else job.use
        job.lag_ppm = FULL_SPEED_PPM - speed_ppm if job.use is Use.USEFUL else 0
        self._hold(job, chips)
        self._queue(job, 1)

    def _queue(self, job: _Job, step: int) -> None:
        """Count a job that may stand in the queue; while any does, open chips are fragments."""
        if job.is_queued:
            open_chips = self.open
            self._open(-open_chips)
            self.queued += step
            self._open(open_chips)

    def _hold(self, job: _Job, chips: int) -> None:
        """Add chips that are up to those of a job."""
        job.chips += chips
        self._add(job.use, chips)
        self.slowed_ppm_us += chips * job.lag_ppm * self.left_us

    def _open(self, chips: int) -> None:
        """Add chips to those that a job could take."""
        self.open += chips
        self._add(Use.FRAGMENTED if self.queued else Use.EMPTY, chips)

    def _add(self, use: Use, chips: int) -> None:
        self.chip_us[use] += chips * self.left_us


def chip_us_by_use(trace: Trace, warmup_us: int = 0) -> dict[Use, int]:
    """Chip-microseconds of every use from the warm-up to the horizon; `unaccounted` is what is missing to the pod."""
    pod = _Pod(trace, warmup_us)
    for time_us, verb, kind, component, job, stage, value in trace.rows:
        pod.left_us = trace.horizon_us - max(time_us, warmup_us)
        if verb in _STAGE_OR_SPEED:
            pod.enter(job, stage, value)
        elif verb in _IS_UP_AFTER:
            pod.turn(kind, component, _IS_UP_AFTER[verb])
        elif verb in _IS_DRAINED_AFTER:
            pod.drain(component, _IS_DRAINED_AFTER[verb])
        elif verb == Verb.OCCUPY:
            pod.occupy(trace.placements[value])
        elif verb == Verb.RELEASE:
            pod.release(job)
    totals = pod.chip_us
    slowed = pod.slowed_ppm_us // FULL_SPEED_PPM
    totals[Use.SLOWED] += slowed
    totals[Use.USEFUL] -= slowed
    totals[Use.UNACCOUNTED] = trace.chips * (trace.horizon_us - warmup_us) - sum(totals.values())
    return totals


def chip_hours_by_use(trace: Trace, warmup_us: int = 0) -> dict[Use, float]:
    """The same in chip-hours."""
    return {use: chip_us / 3.6e9 for use, chip_us in chip_us_by_use(trace, warmup_us).items()}
