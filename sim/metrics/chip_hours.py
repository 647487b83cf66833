"""Chip-hours by use, from the log alone: every chip is at each instant in exactly one use, and the sum is the pod.

Uses, each chip in the first that applies: `drained`; `down` (its host is not up); held by a job: the job's stage, where
running is divided into `useful`, `slowed` and `lost` (what a loss undoes); free: `stranded` (its cube is unusable;
whole-cube slices only, since smaller slices and `any_host` need no whole cube), `spare`, `blocked` (reserved, or held
back by policy), `fragmented` (a job waits that it can not serve), `empty`. All in whole chip-microseconds, so sums are
exact. Blocked are as many free chips as the jobs behind a reservation would take at the last scheduling pass if it were
not there, tried in the order of the queue, each that does not fit passed by; and those kept free for moves under way.
They are counted, not pointed at, and never more than what is free beside the spares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sim.histories import ComponentKind
from sim.metrics.uses import USE_OF_STAGE
from sim.metrics.uses import Use as Use
from sim.trace import FULL_SPEED_PPM, Placed, Trace, Verb
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE, CHIPS_PER_HOST, HOSTS_PER_CUBE, IN_RACK_LINKS_PER_CUBE

_STAGE_OR_SPEED = frozenset((Verb.STAGE.value, Verb.SPEED.value))
_GONE = frozenset((Verb.REJECT.value, Verb.LEAVE.value))
_IS_UP_AFTER = {Verb.FAIL.value: False, Verb.REPAIR.value: True}
_IS_DRAINED_AFTER = {Verb.DRAIN.value: True, Verb.UNDRAIN.value: False}


class _Stretch(NamedTuple):
    """Running of a job at one speed: what a later loss may undo."""

    start_us: int
    end_us: int
    chips: int
    lag_ppm: int


@dataclass(slots=True, eq=False)
class _Job:
    """What a job makes of its chips, how far it lags when it runs, and what it holds, by cube.

    `hosts_in` are its hosts in each cube, None for all of them; `chips` are those that it holds and that are up;
    `stretches` its running so far, without the one in progress since `since_us`.
    """

    use: Use = Use.WAITING
    lag_ppm: int = 0
    hosts_in: dict[int, tuple[int, ...] | None] = field(default_factory=dict)
    chips_per_host: int = 0
    chips: int = 0
    since_us: int = 0
    running_chips: int = 0
    stretches: list[_Stretch] = field(default_factory=list)

    @property
    def is_queued(self) -> bool:
        """Whether the job waits and holds nothing."""
        return self.use is Use.WAITING and not self.hosts_in


class _Pod:
    """The pod as the log tells it, row by row, cube by cube (a flat pod in runs of 16 hosts).

    Chips that enter a use count for all the time that is left to the horizon; when they leave it they take back what
    is left then.
    """

    def __init__(self, trace: Trace, warmup_us: int) -> None:
        self.strands = trace.slice_chips >= CHIPS_PER_CUBE and trace.fabric is not Fabric.ANY_HOST
        self.warmup_us = warmup_us
        self.now_us = warmup_us
        self.left_us = trace.horizon_us - warmup_us
        self.chip_us = dict.fromkeys(Use, 0)
        self.slowed_ppm_us = 0
        firsts = range(0, trace.hosts, HOSTS_PER_CUBE)
        self.cube_hosts = [min(HOSTS_PER_CUBE, trace.hosts - first) for first in firsts]
        self.hosts_out: list[set[int]] = [set() for _ in firsts]
        self.shared_out = [0] * len(firsts)
        self.drained = [False] * len(firsts)
        self.jobs_in: list[list[_Job]] = [[] for _ in firsts]
        self.jobs: dict[int, _Job] = {}
        self.queued = self.open = 0
        self.spare_chips = trace.spare_chips
        self.reserved_chips = 0
        self._open(trace.chips)

    def at(self, time_us: int, horizon_us: int) -> None:
        """The clock goes on."""
        self.now_us = max(time_us, self.warmup_us)
        self.left_us = horizon_us - self.now_us

    def turn(self, kind: str, component: int, up: bool) -> None:
        """A component fails or comes back."""
        if kind == ComponentKind.HOST:
            cube = component // HOSTS_PER_CUBE
            self._count(cube, -1)
            if up:
                self.hosts_out[cube].remove(component)
            else:
                self.hosts_out[cube].add(component)
            self._count(cube, 1)
        elif kind in (ComponentKind.RACK, ComponentKind.IN_RACK_LINK):
            cube = component if kind == ComponentKind.RACK else component // IN_RACK_LINKS_PER_CUBE
            self._count(cube, -1)
            self.shared_out[cube] += -1 if up else 1
            self._count(cube, 1)

    def drain(self, cube: int, drained: bool) -> None:
        """A free cube is taken out of service or put back."""
        self._count(cube, -1)
        self.drained[cube] = drained
        self._count(cube, 1)

    def _up_in(self, cube: int, hosts: tuple[int, ...] | None) -> int:
        """How many of these hosts of a cube (None: of all) are up."""
        if self.shared_out[cube]:
            return 0
        out = self.hosts_out[cube]
        if hosts is None:
            return self.cube_hosts[cube] - len(out)
        return len(hosts) - sum(host in out for host in hosts) if out else len(hosts)

    def _count(self, cube: int, sign: int) -> None:
        """Add (1) or take away (-1) the chips of a cube where they belong now."""
        chips = CHIPS_PER_HOST * self.cube_hosts[cube]
        if self.drained[cube]:
            self._add(Use.DRAINED, sign * chips)
            return
        free = up = CHIPS_PER_HOST * self._up_in(cube, None)
        self._add(Use.DOWN, sign * (chips - up))
        for job in self.jobs_in[cube]:
            held = job.chips_per_host * self._up_in(cube, job.hosts_in[cube])
            self._hold(job, sign * held)
            free -= held
        self._free(cube, sign * free)

    def _free(self, cube: int, chips: int) -> None:
        """Add chips of a cube to those that are free: stranded where whole cubes are wanted and this is none."""
        if self.strands and (self.shared_out[cube] or self.hosts_out[cube]):
            self._add(Use.STRANDED, chips)
        else:
            self._open(chips)

    def occupy(self, placed: Placed) -> None:
        """A job takes hosts."""
        job = self.jobs[placed.job]
        self._queue(job, -1)
        if placed.cubes:
            job.hosts_in = dict.fromkeys(placed.cubes)
        else:
            by_cube: dict[int, list[int]] = {}
            for host in placed.hosts:
                by_cube.setdefault(host // HOSTS_PER_CUBE, []).append(host)
            job.hosts_in = {cube: tuple(hosts) for cube, hosts in by_cube.items()}
        job.chips_per_host = placed.chips_per_host
        for cube in job.hosts_in:
            self.jobs_in[cube].append(job)
        self._move(job, 1)

    def release(self, number: int) -> None:
        """A job gives its hosts back."""
        job = self.jobs[number]
        self._close(job)
        self._move(job, -1)
        for cube in job.hosts_in:
            self.jobs_in[cube].remove(job)
        job.hosts_in = {}
        self._queue(job, 1)

    def _move(self, job: _Job, sign: int) -> None:
        """Move the chips that a job holds from the free ones to the job (1) or back (-1)."""
        total = opened = 0
        for cube, hosts in job.hosts_in.items():
            chips = job.chips_per_host * self._up_in(cube, hosts)
            total += chips
            if self.strands and (self.shared_out[cube] or self.hosts_out[cube]):
                self._add(Use.STRANDED, -sign * chips)
            else:
                opened += chips
        self._open(-sign * opened)
        self._hold(job, sign * total)

    def enter(self, number: int, stage: str, speed_ppm: int) -> None:
        """A job enters a stage, or changes its speed (`stage` is empty)."""
        if number not in self.jobs:
            self.jobs[number] = _Job()
            self._queue(self.jobs[number], 1)
        job = self.jobs[number]
        self._close(job)
        chips = job.chips
        self._queue(job, -1)
        self._hold(job, -chips)
        job.use = USE_OF_STAGE[stage] if stage else job.use
        job.lag_ppm = FULL_SPEED_PPM - speed_ppm if job.use is Use.USEFUL else 0
        job.since_us, job.running_chips = self.now_us, chips
        self._hold(job, chips)
        self._queue(job, 1)

    def _close(self, job: _Job) -> None:
        """Note down the stretch of running that ends now."""
        if job.use is Use.USEFUL and job.hosts_in and job.since_us < self.now_us:
            job.stretches.append(_Stretch(job.since_us, self.now_us, job.running_chips, job.lag_ppm))
        job.since_us = self.now_us

    def lose(self, number: int, undone_us: int) -> None:
        """The last `undone_us` of a job's running turn out lost; what lies before the warm-up is not counted."""
        job = self.jobs[number]
        self._close(job)
        while undone_us and job.stretches:
            start_us, end_us, chips, lag_ppm = job.stretches.pop()
            lost_us = min(undone_us, end_us - start_us)
            undone_us -= lost_us
            self.chip_us[Use.USEFUL] -= chips * lost_us
            self.chip_us[Use.LOST] += chips * lost_us
            self.slowed_ppm_us -= chips * lost_us * lag_ppm
            if lost_us < end_us - start_us:
                job.stretches.append(_Stretch(start_us, end_us - lost_us, chips, lag_ppm))

    def finish(self, number: int) -> None:
        """A job is done, or turned away: it asks for nothing any more."""
        job = self.jobs.pop(number, None)
        if job is not None:
            self._queue(job, -1)

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
        """Add chips to those that a job could take; the first of them are the spares, the next what is reserved."""
        spare_before, kept_before = min(self.open, self.spare_chips), min(self.open, self._kept_chips)
        self.open += chips
        spare, kept = min(self.open, self.spare_chips) - spare_before, min(self.open, self._kept_chips) - kept_before
        self._add(Use.SPARE, spare)
        self._add(Use.BLOCKED, kept - spare)
        self._add(Use.FRAGMENTED if self.queued else Use.EMPTY, chips - kept)

    @property
    def _kept_chips(self) -> int:
        return self.spare_chips + self.reserved_chips

    def reserve(self, chips: int) -> None:
        """So many of the chips that are open are held for a job that waits."""
        open_chips = self.open
        self._open(-open_chips)
        self.reserved_chips = chips
        self._open(open_chips)

    def _add(self, use: Use, chips: int) -> None:
        self.chip_us[use] += chips * self.left_us


def chip_us_by_use(trace: Trace, warmup_us: int = 0) -> dict[Use, int]:
    """Chip-microseconds of every use from the warm-up to the horizon; `unaccounted` is what is missing to the pod."""
    pod = _Pod(trace, warmup_us)
    for time_us, verb, kind, component, job, stage, value in trace.rows:
        pod.at(time_us, trace.horizon_us)
        if verb in _STAGE_OR_SPEED:
            pod.enter(job, stage, value)
        elif verb in _IS_UP_AFTER:
            pod.turn(kind, component, _IS_UP_AFTER[verb])
        elif verb in _IS_DRAINED_AFTER:
            if kind in ("", "cube"):
                pod.drain(component, _IS_DRAINED_AFTER[verb])
        elif verb == Verb.OCCUPY:
            pod.occupy(trace.placements[value])
        elif verb == Verb.RELEASE:
            pod.release(job)
        elif verb == Verb.LOSE:
            pod.lose(job, value)
        elif verb == Verb.RESERVE:
            pod.reserve(component)
        elif verb in _GONE:
            pod.finish(job)
    totals = pod.chip_us
    slowed = pod.slowed_ppm_us // FULL_SPEED_PPM
    totals[Use.SLOWED] += slowed
    totals[Use.USEFUL] -= slowed
    totals[Use.UNACCOUNTED] = trace.chips * (trace.horizon_us - warmup_us) - sum(totals.values())
    return totals


def chip_hours_by_use(trace: Trace, warmup_us: int = 0) -> dict[Use, float]:
    """The same in chip-hours."""
    return {use: chip_us / 3.6e9 for use, chip_us in chip_us_by_use(trace, warmup_us).items()}
