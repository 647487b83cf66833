"""Chip-hours by use, from the log alone: every chip is at each instant in exactly one use, and the sum is the pod.

Uses, each chip in the first that applies: `drained`; `down` (its host is not up); held by a job: the job's stage, where
running is divided into `useful`, `slowed` and `lost`; free: `stranded` (its cube is unusable; whole-cube slices only,
since smaller slices and `any_host` need no whole cube), `spare`, `blocked`, `fragmented` (a job waits that it can not
serve), `empty`. All in whole chip-microseconds, so sums are exact.
"""

from __future__ import annotations

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


_NOBODY = -1


class _Pod:
    """The pod as the log tells it, row by row: chips that are down, held by job, and free by cube."""

    def __init__(self, trace: Trace) -> None:
        cubes = -(-trace.hosts // HOSTS_PER_CUBE)
        self.whole_cubes = trace.slice_chips >= CHIPS_PER_CUBE and trace.fabric is not Fabric.ANY_HOST
        self.host_up = [True] * trace.hosts
        self.shared_out = [0] * cubes
        self.hosts_out = [0] * cubes
        self.drained = [False] * cubes
        self.owner = [_NOBODY] * cubes
        self.on_host: list[dict[int, int]] = [{} for _ in range(trace.hosts)]
        self.stage: dict[int, Stage] = {}
        self.lag_ppm: dict[int, int] = {}
        self.queued = 0
        self.held: dict[int, int] = {}
        self.in_stage = dict.fromkeys(Stage, 0)
        self.lagging = 0
        self.holds: dict[int, Placed] = {}
        self.down = self.drained_chips = self.stranded = self.open = 0
        for cube in range(cubes):
            self._recount(cube, 1)

    def _count(self, host: int, sign: int) -> None:
        """Add (1) or take away (-1) the chips of a host where they belong now (slices of hosts)."""
        cube = host // HOSTS_PER_CUBE
        if self.drained[cube]:
            self.drained_chips += sign * CHIPS_PER_HOST
        elif self.shared_out[cube] or not self.host_up[host]:
            self.down += sign * CHIPS_PER_HOST
        else:
            free = CHIPS_PER_HOST
            for job, chips in self.on_host[host].items():
                self._hold(job, sign * chips)
                free -= chips
            self.open += sign * free

    def turn(self, kind: str, component: int, up: bool) -> None:
        """A component fails or comes back; the hosts of its cube are counted anew."""
        step = -1 if up else 1
        if kind == ComponentKind.HOST:
            cube = component // HOSTS_PER_CUBE
        elif kind == ComponentKind.RACK:
            cube = component
        elif kind == ComponentKind.IN_RACK_LINK:
            cube = component // IN_RACK_LINKS_PER_CUBE
        else:
            return
        self._recount(cube, -1)
        if kind == ComponentKind.HOST:
            self.host_up[component] = up
            self.hosts_out[cube] += step
        else:
            self.shared_out[cube] += step
        self._recount(cube, 1)

    def drain(self, cube: int, drained: bool) -> None:
        """A cube is taken out of service or put back."""
        self._recount(cube, -1)
        self.drained[cube] = drained
        self._recount(cube, 1)

    def _recount(self, cube: int, sign: int) -> None:
        """Add (1) or take away (-1) the chips of a cube where they belong now."""
        if not self.whole_cubes:
            for host in range(cube * HOSTS_PER_CUBE, min((cube + 1) * HOSTS_PER_CUBE, len(self.host_up))):
                self._count(host, sign)
            return
        if self.drained[cube]:
            self.drained_chips += sign * CHIPS_PER_CUBE
            return
        up = 0 if self.shared_out[cube] else CHIPS_PER_CUBE - CHIPS_PER_HOST * self.hosts_out[cube]
        self.down += sign * (CHIPS_PER_CUBE - up)
        if self.owner[cube] != _NOBODY:
            self._hold(self.owner[cube], sign * up)
        elif up < CHIPS_PER_CUBE:
            self.stranded += sign * up
        else:
            self.open += sign * up

    def occupy(self, placed: Placed) -> None:
        """A job takes hosts."""
        self._queue(placed.job, -1)
        self.held[placed.job] = 0
        self.holds[placed.job] = placed
        if self.whole_cubes:
            self._own(placed.cubes, placed.job)
            return
        for host in placed.hosts:
            self._count(host, -1)
            self.on_host[host][placed.job] = placed.chips_per_host
            self._count(host, 1)

    def release(self, job: int) -> None:
        """A job gives its hosts back."""
        placed = self.holds.pop(job)
        if self.whole_cubes:
            self._own(placed.cubes, _NOBODY)
        else:
            for host in placed.hosts:
                self._count(host, -1)
                del self.on_host[host][job]
                self._count(host, 1)
        del self.held[job]
        self._queue(job, 1)

    def _own(self, cubes: tuple[int, ...], owner: int) -> None:
        """Whole cubes get an owner, or lose theirs."""
        for cube in cubes:
            self._recount(cube, -1)
            self.owner[cube] = owner
            self._recount(cube, 1)

    def _hold(self, job: int, chips: int) -> None:
        """Add chips to what a job holds of hosts that are up."""
        self.held[job] += chips
        self.in_stage[self.stage[job]] += chips
        self.lagging += chips * self.lag_ppm[job]

    def enter(self, job: int, stage: Stage, speed_ppm: int) -> None:
        """A job enters a stage, or changes its speed; one that waits and holds nothing is in the queue."""
        chips = self.held.get(job, 0)
        self._queue(job, -1)
        if chips:
            self._hold(job, -chips)
        self.stage[job] = stage
        self.lag_ppm[job] = FULL_SPEED_PPM - speed_ppm if stage is Stage.RUNNING else 0
        if chips:
            self._hold(job, chips)
        self._queue(job, 1)

    def _queue(self, job: int, sign: int) -> None:
        if self.stage.get(job) is Stage.WAITING and job not in self.holds:
            self.queued += sign


def chip_us_by_use(trace: Trace, warmup_us: int = 0) -> dict[Use, int]:
    """Chip-microseconds of every use from the warm-up to the horizon; `unaccounted` is what is missing to the pod."""
    pod = _Pod(trace)
    totals = dict.fromkeys(Use, 0)
    slowed_ppm_us, last_us = 0, warmup_us
    for time_us, verb, kind, component, job, stage, value in [*trace.rows, (trace.horizon_us, "", "", -1, -1, "", 0)]:
        if time_us > last_us:
            slowed_ppm_us += _add(totals, pod, time_us - last_us)
            last_us = time_us
        if verb in (Verb.FAIL, Verb.REPAIR):
            pod.turn(kind, component, verb == Verb.REPAIR)
        elif verb in (Verb.DRAIN, Verb.UNDRAIN):
            pod.drain(component, verb == Verb.DRAIN)
        elif verb == Verb.OCCUPY:
            pod.occupy(trace.placements[value])
        elif verb == Verb.RELEASE:
            pod.release(job)
        elif verb in (Verb.STAGE, Verb.SPEED):
            pod.enter(job, Stage(stage) if verb == Verb.STAGE else pod.stage[job], value)
    slowed = slowed_ppm_us // FULL_SPEED_PPM
    totals[Use.SLOWED] += slowed
    totals[Use.USEFUL] -= slowed
    totals[Use.UNACCOUNTED] = trace.chips * (trace.horizon_us - warmup_us) - sum(totals.values())
    return totals


def _add(totals: dict[Use, int], pod: _Pod, length_us: int) -> int:
    """Add a stretch of time without transitions; return the slowed part of running, in millionths."""
    totals[Use.DRAINED] += pod.drained_chips * length_us
    totals[Use.DOWN] += pod.down * length_us
    totals[Use.STRANDED] += pod.stranded * length_us
    totals[Use.FRAGMENTED if pod.queued else Use.EMPTY] += pod.open * length_us
    for stage, chips in pod.in_stage.items():
        totals[Use.USEFUL if stage is Stage.RUNNING else Use(stage.value)] += chips * length_us
    return pod.lagging * length_us


def chip_hours_by_use(trace: Trace, warmup_us: int = 0) -> dict[Use, float]:
    """The same in chip-hours."""
    return {use: chip_us / 3.6e9 for use, chip_us in chip_us_by_use(trace, warmup_us).items()}
