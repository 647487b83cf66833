"""The machine: the single owner of what is up and of who is where.

One verb per transition. Each verb changes the state, writes one row of the log, checks what is cheap to check, and
tells the listener whom it concerns. With `check_invariants=True` everything is counted anew after each verb. `up` is
the truth and decides what runs; `believed` is what the scheduler sees, and lags by detection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sim.condition import END, HOST, OCS, RACK, Condition, cube_of, hosts_of_cube, view
from sim.flaws import CubeState, Flaws, HiddenState
from sim.histories import ComponentKind
from sim.holdings import Holding, Trouble, faces_between, faces_of
from sim.light import Light
from sim.listener import Clock, Listener, NoListener
from sim.occupancy import Occupancy
from sim.trace import FULL_SPEED_PPM, Placed, Row, Stage, Verb
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_HOST, HOSTS_PER_CUBE, POSITIONS_PER_FACE, AnyPod, Pod
from topology.shape import Shape

_FAIL, _DETECT, _REPAIR, _STAGE = (verb.value for verb in (Verb.FAIL, Verb.DETECT, Verb.REPAIR, Verb.STAGE))
_NAMES = {kind: kind.value for kind in ComponentKind}
_STAGES = {stage: stage.value for stage in Stage}
"""Plain texts: the garbage collector leaves rows of plain texts and numbers alone, and there are very many."""


class Machine:
    """A pod under one fabric, from the start of a run. Verbs raise AssertionError when they contradict the state."""

    def __init__(self, pod: AnyPod, fabric: Fabric, clock: Clock, *, check_invariants: bool = False) -> None:
        """All is up and free. `clock` gives the time in whole microseconds."""
        self.pod = pod
        self.fabric = fabric
        self.up = Condition(pod)
        self.believed = Condition(pod)
        self.rows: list[Row] = []
        self.placements: list[Placed] = []
        self.listener: Listener = NoListener()
        self.light = Light(pod) if fabric.has_light and isinstance(pod, Pod) else None
        self._clock = clock
        self._check_all = check_invariants
        self._write = self.rows.append
        self._occupancy = Occupancy(pod, self.up.cubes)
        self.holdings = self._occupancy.holdings
        self._drained: set[int] = set()
        self._when_free: dict[int, Callable[[], object]] = {}
        self.flaws = Flaws()

    # Components -------------------------------------------------------------------------------------------------

    def fail(self, kind: ComponentKind, component: int, cause: str = "") -> None:
        """A component goes down; nobody knows yet. `cause` is empty for a failure of the component itself."""
        self.up.turn(kind, component, 0)
        self._write((self._clock.now, _FAIL, _NAMES[kind], component, -1, cause, 0))
        if self.holdings:
            for job in self._jobs_needing(kind, component):
                self.listener.lost(job)
        if self._check_all:
            self.check()

    def detect(self, kind: ComponentKind, component: int) -> None:
        """A component that is down becomes believed down."""
        assert not self.up.up[kind][component], f"{kind} {component} is up: nothing to detect"
        self.believed.turn(kind, component, 0)
        self._write((self._clock.now, _DETECT, _NAMES[kind], component, -1, "", 0))
        if self.holdings:
            for job in self._jobs_needing(kind, component):
                self.listener.informed(job)
        if self._check_all:
            self.check()

    def repair(self, kind: ComponentKind, component: int) -> None:
        """A component comes back, and everybody knows."""
        self.up.turn(kind, component, 1)
        if not self.believed.up[kind][component]:
            self.believed.turn(kind, component, 1)
        self._write((self._clock.now, _REPAIR, _NAMES[kind], component, -1, "", 0))
        if not self.flaws.is_clear(kind, component):
            self.clear(kind, component)
        if self.holdings:
            for job in self._jobs_needing(kind, component):
                self.listener.informed(job)
        self.listener.capacity_returned()
        if self._check_all:
            self.check()

    def notice(self, kind: ComponentKind, component: int) -> None:
        """A drain of a cube (kind `rack`) or of a switch is announced: no new slice takes the cube."""
        assert (kind, component) not in self.flaws.noticed, f"a drain of {kind} {component} is already announced"
        self.flaws.noticed[kind, component] = None
        self._write((self._clock.now, Verb.NOTICE.value, _NAMES[kind], component, -1, "", 0))

    def close(self, cube: int, when_free: Callable[[], object]) -> None:
        """The drain of a cube is due: who is on it is told to leave now; `when_free` is called once nobody is."""
        assert (RACK, cube) in self.flaws.noticed, f"a drain of cube {cube} has not been announced"
        self.believed.close(cube)
        if self.cube_is_free(cube):
            when_free()
            return
        self._when_free[cube] = when_free
        for job in sorted(self._occupancy.jobs_in[cube]):
            self.listener.noticed(job)

    def drain(self, cube: int) -> None:
        """Take a free cube out of service as planned."""
        assert cube not in self._drained, f"cube {cube} is already drained"
        assert self.cube_is_free(cube), f"cube {cube} is held by a job: move the job first"
        self._drained.add(cube)
        self.flaws.noticed.pop((RACK, cube), None)
        self.believed.reopen(cube)
        self._write((self._clock.now, Verb.DRAIN.value, "", cube, -1, "", 0))
        self._checked()

    def undrain(self, cube: int) -> None:
        """Put a drained cube back into service."""
        assert cube in self._drained, f"cube {cube} is not drained"
        self._drained.remove(cube)
        self._write((self._clock.now, Verb.UNDRAIN.value, "", cube, -1, "", 0))
        self.listener.capacity_returned()
        self._checked()

    def drain_switch(self, switch: int) -> None:
        """Take a switch that is up out of service as planned: its light paths go dark, and everybody knows."""
        self.flaws.noticed.pop((OCS, switch), None)
        self._turn_switch(switch, Verb.DRAIN, 0)
        for job in self._jobs_needing(OCS, switch):
            self.listener.dimmed(job)

    def undrain_switch(self, switch: int) -> None:
        """Put a drained switch back into service."""
        self._turn_switch(switch, Verb.UNDRAIN, 1)
        for job in self._jobs_needing(OCS, switch):
            self.listener.informed(job)
        self.listener.capacity_returned()

    def _turn_switch(self, switch: int, verb: Verb, up: int) -> None:
        self.up.turn(OCS, switch, up)
        self.believed.turn(OCS, switch, up)
        self._write((self._clock.now, verb.value, _NAMES[OCS], switch, -1, "", 0))
        self._checked()

    def retire(self, kind: ComponentKind, component: int) -> None:
        """A component that is believed down will not be repaired."""
        assert not self.believed.up[kind][component], f"{kind} {component} is in service and can not be retired"
        self._write((self._clock.now, Verb.RETIRE.value, _NAMES[kind], component, -1, "", 0))

    def onset(self, host: int, cause: str, speed_ppm: int = FULL_SPEED_PPM) -> None:
        """A hidden fault begins on a host that is up: nobody knows, but a slice runs at the pace of its slowest."""
        assert self.up.up[HOST][host], f"host {host} is down and hides nothing"
        assert host not in self.flaws.hidden, f"host {host} has a hidden fault already"
        self.flaws.hidden[host] = HiddenState(cause, self._clock.now, speed_ppm)
        self._write((self._clock.now, Verb.ONSET.value, _NAMES[HOST], host, -1, cause, speed_ppm))
        for job in self._jobs_needing(HOST, host):
            self.flaws.reaches(host, job, self._clock.now)
            self.listener.informed(job)

    def expose(self, host: int) -> None:
        """The silent corruption of a host is found: all that jobs did since it reached them is wrong."""
        for job, since_us in sorted(self.flaws.reached.pop(host, {}).items()):
            self.listener.poisoned(job, since_us)
            if job in self.holdings and host not in self.holdings[job].hosts:
                self.listener.lost(job)

    def degrade(self, kind: ComponentKind, component: int, cause: str) -> None:
        """A component that stays in service becomes known to be slow or to flap: its cube is degraded."""
        self.flaws.degraded[kind, component] = cause
        self._write((self._clock.now, Verb.DEGRADE.value, _NAMES[kind], component, -1, cause, 0))

    def clear(self, kind: ComponentKind, component: int) -> None:
        """Hidden faults and known flaws of a component are gone."""
        assert not self.flaws.is_clear(kind, component), f"{kind} {component} has no flaw"
        self.flaws.clear(kind, component)
        self._write((self._clock.now, Verb.CLEAR.value, _NAMES[kind], component, -1, "", 0))

    # Jobs -------------------------------------------------------------------------------------------------------

    def occupy(
        self,
        job: int,
        hosts: Sequence[int],
        *,
        cubes: tuple[int, ...] = (),
        shape: Shape | None = None,
        chips_per_host: int = CHIPS_PER_HOST,
    ) -> None:
        """Give hosts to a job that holds none; `cubes`, in order along x, y, z of `shape`, for whole-cube slices."""
        assert job not in self.holdings, f"job {job} already holds a slice"
        self._take(job, hosts, cubes, shape, chips_per_host)
        self._checked()

    def exchange(
        self, job: int, hosts: Sequence[int], *, cubes: tuple[int, ...] = (), shape: Shape | None = None
    ) -> int:
        """Give a job other hosts than it holds (some may stay) with their circuits; return how many were made."""
        old = self._give_back(job)
        self._take(job, hosts, cubes, shape, old.chips_per_host)
        made = self.connect(job)
        self.listener.capacity_returned()
        self._checked()
        return made

    def release(self, job: int) -> None:
        """Cut the circuits of a job and take everything back from it."""
        if self.light is not None and self.light.holds(job):
            self._write((self._clock.now, Verb.DISCONNECT.value, "", -1, job, "", self.light.disconnect(job)))
        self._give_back(job)
        self.listener.capacity_returned()
        self._checked()

    def connect(self, job: int) -> int:
        """Bring the circuits to a job's slice and return how many were made (0 without light, or below a cube)."""
        holding = self.holdings[job]
        if self.light is None or holding.shape is None or not holding.whole:
            return 0
        cut, made = self.light.connect(job, holding.placed.cubes, holding.shape)
        if cut:
            self._write((self._clock.now, Verb.DISCONNECT.value, "", -1, job, "", cut))
        if made:
            self._write((self._clock.now, Verb.CONNECT.value, "", -1, job, "", made))
        self._checked()
        return made

    def _take(
        self, job: int, hosts: Sequence[int], cubes: tuple[int, ...], shape: Shape | None, chips_per_host: int
    ) -> None:
        placed = Placed(len(self.placements), job, cubes, tuple(hosts), chips_per_host, shape)
        holding = Holding(placed, shape)
        assert self._drained.isdisjoint(holding.cubes), f"a host of {hosts} is drained"
        self._occupancy.take(holding)
        self.placements.append(placed)
        for host in self.flaws.hidden:
            if host in holding.hosts:
                self.flaws.reaches(host, job, self._clock.now)
        self._write((self._clock.now, Verb.OCCUPY.value, "", -1, job, "", placed.number))

    def _give_back(self, job: int) -> Placed:
        holding = self._occupancy.give_back(job)
        self._write((self._clock.now, Verb.RELEASE.value, "", -1, job, "", holding.placed.number))
        for cube in holding.cubes if self._when_free else ():
            if cube in self._when_free and self.cube_is_free(cube):
                self._when_free.pop(cube)()
        return holding.placed

    def set_stage(self, job: int, stage: Stage, speed_ppm: int = 0) -> None:
        """A job enters a stage; only `running` has a speed, in millionths, and needs its hosts to be in order."""
        holding, way_round = self.holdings.get(job), ""
        if holding is None:
            assert stage is Stage.WAITING, f"job {job} holds nothing and can not be {stage}"
        else:
            assert (stage is Stage.RUNNING) == (speed_ppm > 0), "running jobs, and only they, have a speed"
            if stage is Stage.RUNNING:
                assert not self.is_hurt(job), f"job {job} can not run: a component is down that nobody detected"
                trouble = self.trouble(job)
                assert not trouble.hardware, f"job {job} can not run on hosts that are down"
                way_round = trouble.way_round
            holding.stage = stage
            holding.speed_ppm = speed_ppm
            holding.way_round = way_round
        self._write((self._clock.now, _STAGE, way_round, -1, job, _STAGES[stage], speed_ppm))
        self._checked()

    def set_speed(self, job: int, speed_ppm: int) -> None:
        """Change the speed of a running job, or what it runs around (nothing happens when it has that speed)."""
        holding = self.holdings[job]
        assert holding.stage is Stage.RUNNING, f"job {job} does not run"
        assert 0 < speed_ppm <= FULL_SPEED_PPM, f"a speed of {speed_ppm} millionths"
        way_round = self.trouble(job).way_round
        if (holding.speed_ppm, holding.way_round) != (speed_ppm, way_round):
            holding.speed_ppm, holding.way_round = speed_ppm, way_round
            self._write((self._clock.now, Verb.SPEED.value, way_round, -1, job, "", speed_ppm))
            self._checked()

    def submit(self, job: int, chips: int, work_us: int | None) -> None:
        """A job arrives; None is work without end."""
        self._write((self._clock.now, Verb.SUBMIT.value, "", chips, job, "", -1 if work_us is None else work_us))

    def reject(self, job: int, chips: int, reason: str) -> None:
        """A job is turned away for a reason: `shape` or `resource`."""
        assert job not in self.holdings, f"job {job} holds a slice and can not be rejected"
        self._write((self._clock.now, Verb.REJECT.value, "", chips, job, reason, 0))

    def commit(self, job: int, productive_us: int) -> None:
        """A checkpoint of a job is complete: so much productive time can no longer be lost."""
        assert job in self.holdings, f"job {job} holds nothing and can not commit"
        self._write((self._clock.now, Verb.COMMIT.value, "", -1, job, "", productive_us))

    def lose(self, job: int, running_us: int) -> None:
        """A loss undoes the last `running_us` of a job's running."""
        assert running_us > 0, "a loss that undoes nothing is no row"
        self._write((self._clock.now, Verb.LOSE.value, "", -1, job, "", running_us))

    def ask_to_move(self, job: int, makes_room_for: int, cost_chip_us: int) -> None:
        """Tell a job to leave its slice for another place, so that one that waits fits; what that is to cost."""
        assert self.holdings[job].stage is Stage.RUNNING, f"job {job} does not run and is not to be moved"
        self._write((self._clock.now, Verb.MOVE.value, "", makes_room_for, job, "", cost_chip_us))
        self.listener.noticed(job)

    def reserve(self, job: int, chips: int, at_us: int) -> None:
        """So many free chips, which others could use, are held for a job that waits; 0 for job -1 ends that."""
        self._write((self._clock.now, Verb.RESERVE.value, "", chips, job, "", at_us))

    def preempt(self, job: int) -> None:
        """Take a job off its slice for another one: the listener is told, then everything is taken back from it."""
        assert job in self.holdings, f"job {job} holds nothing to be taken"
        self._write((self._clock.now, Verb.PREEMPT.value, "", -1, job, "", 0))
        self.listener.preempted(job)
        self.release(job)
        self.set_stage(job, Stage.WAITING)

    def make_way(self, job: int, makes_room_for: int, *, tell: bool) -> None:
        """A job that waits gets the place of this one once it has saved its state and left; `tell` it to leave now."""
        assert job in self.holdings, f"job {job} holds nothing to make way with"
        self._write((self._clock.now, Verb.MAKE_WAY.value, "", makes_room_for, job, "", 0))
        if tell:
            self.listener.noticed(job)

    def finish(self, job: int) -> None:
        """A job has done its work and gives everything back."""
        assert self.holdings[job].stage is Stage.RUNNING, f"job {job} does not run and can not finish"
        self._write((self._clock.now, Verb.FINISH.value, "", -1, job, "", 0))
        self.release(job)

    def leave(self, job: int) -> None:
        """A job that is not wanted any more goes: it gives back what it holds, or leaves the queue."""
        if job in self.holdings:
            self.release(job)
        self._write((self._clock.now, Verb.LEAVE.value, "", -1, job, "", 0))

    # Questions --------------------------------------------------------------------------------------------------

    def cube_is_free(self, cube: int) -> bool:
        """Whether no job holds any chip of the cube."""
        return not self._occupancy.jobs_in[cube]

    def free_hosts(self, chips_per_host: int = CHIPS_PER_HOST) -> NDArray[np.bool_]:
        """A fresh array (H,): hosts that a new slice may take, with at least so many free chips."""
        return np.asarray((self._occupancy.free_chips >= chips_per_host) & self.usable_hosts(), dtype=np.bool_)

    def usable_hosts(self) -> NDArray[np.bool_]:
        """A fresh array (H,): hosts, held or not, that slices may use.

        Believed up; their cube neither drained nor announced to be, nor degraded where those are not accepted.
        """
        usable = self.believed.hosts_up()
        for cube in (*self._drained, *self.flaws.noticed_cubes()):
            usable[cube * HOSTS_PER_CUBE : (cube + 1) * HOSTS_PER_CUBE] = False
        if not self.flaws.accept_degraded:
            usable &= ~np.repeat(self.degraded_cubes(), HOSTS_PER_CUBE)[: len(usable)]
        return usable

    def free_chips(self) -> NDArray[np.uint8]:
        """A fresh array (H,): chips of each host, usable or not, that no job holds."""
        return self._occupancy.free_chips.copy()

    def degraded_cubes(self) -> NDArray[np.bool_]:
        """A fresh array (C,): cubes with an optical end believed dead, or a component known to be slow or to flap."""
        dark, flawed = self.believed.dark_cubes(), self.flaws.flawed_cubes(self.up.cubes)
        return dark if flawed is None else dark | flawed

    def cube_state(self, cube: int) -> CubeState:
        """The state of a cube as the scheduler sees it."""
        if cube in self._drained:
            return CubeState.DRAINED
        if any(host in self.believed.dead_hosts for host in hosts_of_cube(cube)):
            return CubeState.UNHEALTHY
        return CubeState.DEGRADED if self.degraded_cubes()[cube] else CubeState.HEALTHY

    def pace_ppm(self, job: int) -> int:
        """The speed, in millionths, of the slowest host of a job (the truth: nobody may know why)."""
        return self.flaws.pace_ppm(self.holdings[job].hosts) if self.flaws.hidden else FULL_SPEED_PPM

    def free_chips_on(self, host: int) -> int:
        """Chips of a host that no job holds."""
        return int(self._occupancy.free_chips[host])

    def is_hurt(self, job: int) -> bool:
        """Whether the slice needs a component that is down and not yet believed down."""
        holding, up, believed = self.holdings[job], self.up, self.believed
        if not holding.hosts.isdisjoint(up.dead_hosts - believed.dead_hosts):
            return True
        if self.light is not None and holding.whole and up.switches_out > believed.switches_out:
            return True
        if up.ends_out_total == believed.ends_out_total:
            return False
        return any(up.ends_out[face] > believed.ends_out[face] for face in self.faces(job))

    def trouble(self, job: int) -> Trouble:
        """What is believed to be wrong with the slice of a job."""
        holding, believed = self.holdings[job], self.believed
        hardware = not holding.hosts.isdisjoint(believed.dead_hosts)
        switch = self.light is not None and holding.whole and believed.switches_out > 0
        end = believed.ends_out_total > 0 and any(believed.ends_out[face] for face in self.faces(job))
        return Trouble(hardware, switch, end)

    def faces(self, job: int) -> tuple[int, ...]:
        """The faces whose optical ends the slice of a job uses.

        With switches: all, since every ring closes through them. Under static wiring those between its cubes.
        """
        cubes = self.holdings[job].placed.cubes
        if not isinstance(self.pod, Pod) or self.fabric is Fabric.ANY_HOST:
            return ()
        return faces_between(self.pod, cubes) if self.light is None else faces_of(cubes)

    def _jobs_needing(self, kind: ComponentKind, component: int) -> list[int]:
        """Jobs whose slices need a component, in order of their numbers."""
        if kind is OCS:
            return sorted(job for job, holding in self.holdings.items() if holding.whole) if self.light else []
        jobs = self._occupancy.jobs_in[cube_of(kind, component)]
        if kind is HOST:
            return sorted(job for job, holding in jobs.items() if component in holding.hosts)
        if kind is END:
            face = component // POSITIONS_PER_FACE
            return sorted(job for job in jobs if face in self.faces(job))
        return sorted(jobs)

    # Invariants -------------------------------------------------------------------------------------------------

    def _checked(self) -> None:
        if self._check_all:
            self.check()

    def check(self) -> None:
        """Assert every invariant, all counted anew from the arrays and the holdings."""
        self.up.check()
        self.believed.check()
        for kind, bytes_up in self.up.up.items():
            slandered = np.flatnonzero(view(bytes_up) > view(self.believed.up[kind])).tolist()
            assert not slandered, f"{kind} {slandered} is up and believed down"
        self._occupancy.check()
        for job, holding in self.holdings.items():
            if holding.stage is Stage.RUNNING:
                open_hosts = [h for h in holding.placed.hosts if h // HOSTS_PER_CUBE not in self.believed.closed]
                assert self.believed.dead_hosts.isdisjoint(open_hosts), f"job {job} runs on air"
        for cube in sorted(self._drained):
            assert self.cube_is_free(cube), f"drained cube {cube} is held"
        if self.light is not None:
            self.light.check({job: h.placed.cubes for job, h in self.holdings.items() if h.whole})
