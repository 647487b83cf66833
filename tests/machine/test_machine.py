"""The machine by itself: verbs in any order without a clock, refused contradictions, circuits as in the ocs room."""

from __future__ import annotations

from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ocs.circuits import circuits_of
from sim.condition import KINDS, component_counts
from sim.histories import ComponentKind
from sim.light import Light
from sim.machine import Machine
from sim.trace import FULL_SPEED_PPM, LOG, Stage, Verb
from topology.fabric import Fabric
from topology.placement import joined, place
from topology.pod import Pod
from topology.shape import Shape, shape_of_chips

POD = Pod(cubes=6)


@dataclass
class HandClock:
    """A clock that is set by hand."""

    now: int = 0


class Verbs(RuleBasedStateMachine):
    """Any sequence of verbs: the machine's own full check runs inside each, a model of ours beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock()
        self.machine = Machine(POD, Fabric.RECONFIGURABLE, self.clock, check_invariants=True)
        self.down: set[tuple[ComponentKind, int]] = set()
        self.known: set[tuple[ComponentKind, int]] = set()
        self.jobs: dict[int, tuple[int, ...]] = {}
        self.drained: set[int] = set()
        self.verbs = 0

    def component(self, data: st.DataObject) -> tuple[ComponentKind, int]:
        kind = data.draw(st.sampled_from(KINDS))
        return kind, data.draw(st.integers(0, min(component_counts(POD)[kind], 700) - 1))

    @rule(data=st.data())
    def fail_or_repair(self, data: st.DataObject) -> None:
        part = self.component(data)
        self.clock.now += 1
        if part in self.down:
            self.machine.repair(*part)
            self.down.discard(part)
            self.known.discard(part)
        else:
            self.machine.fail(*part)
            self.down.add(part)
        self.verbs += 1

    @precondition(lambda self: self.down - self.known)
    @rule(data=st.data())
    def detect(self, data: st.DataObject) -> None:
        part = data.draw(st.sampled_from(sorted(self.down - self.known)))
        self.machine.detect(*part)
        self.known.add(part)
        self.verbs += 1

    @rule(chips=st.sampled_from([4, 32, 64, 128, 256]))
    def occupy(self, chips: int) -> None:
        job = max(self.jobs, default=-1) + 1
        placement = place(Fabric.RECONFIGURABLE, POD, shape_of_chips(chips), self.machine.free_hosts())
        if placement is not None:
            self.machine.occupy(job, placement.hosts, cubes=placement.cubes, shape=placement.shape)
            assert self.machine.connect(job) == 48 * len(placement.cubes)
            self.jobs[job] = placement.hosts

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(sorted(self.jobs)))
        self.machine.release(job)
        del self.jobs[job]

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def run_or_be_refused(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(sorted(self.jobs)))
        if self.machine.is_hurt(job) or self.machine.trouble(job).hardware:
            with pytest.raises(AssertionError, match="can not run"):
                self.machine.set_stage(job, Stage.RUNNING, FULL_SPEED_PPM)
        else:
            self.machine.set_stage(job, Stage.RUNNING, FULL_SPEED_PPM)
            self.machine.set_stage(job, Stage.EVICTING)

    @rule(cube=st.integers(0, POD.cubes - 1))
    def drain_or_undrain(self, cube: int) -> None:
        if cube in self.drained:
            self.machine.undrain(cube)
            self.drained.discard(cube)
        elif self.machine.cube_is_free(cube):
            self.machine.drain(cube)
            self.drained.add(cube)

    @invariant()
    def hosts_are_up_as_the_model_says(self) -> None:
        for view, broken in ((self.machine.up, self.down), (self.machine.believed, self.known)):
            up = [
                (ComponentKind.HOST, host) not in broken
                and (ComponentKind.RACK, host // 16) not in broken
                and not any(kind is ComponentKind.IN_RACK_LINK and c // 80 == host // 16 for kind, c in sorted(broken))
                for host in range(POD.hosts)
            ]
            assert view.hosts_up().tolist() == up

    @invariant()
    def free_hosts_are_those_of_the_model(self) -> None:
        taken = {host for hosts in self.jobs.values() for host in hosts}
        free = self.machine.free_hosts()
        for host in range(POD.hosts):
            may = self.machine.believed.host_is_up(host) and host not in taken and host // 16 not in self.drained
            assert bool(free[host]) == may

    @invariant()
    def the_log_has_a_row_for_each_failure_detection_and_repair(self) -> None:
        rows = [row for row in self.machine.rows if row[1] in (Verb.FAIL, Verb.DETECT, Verb.REPAIR)]
        assert len(rows) == self.verbs


Verbs.TestCase.settings = settings(deadline=None, max_examples=25, stateful_step_count=30)
TestVerbs = Verbs.TestCase


def test_contradictions_are_refused() -> None:
    """Goal: a verb that contradicts the state stops the run. Method: one of each."""
    machine = Machine(POD, Fabric.RECONFIGURABLE, HandClock(), check_invariants=True)
    host = ComponentKind.HOST
    with pytest.raises(AssertionError, match="already up"):
        machine.repair(host, 0)
    with pytest.raises(AssertionError, match="nothing to detect"):
        machine.detect(host, 0)
    machine.fail(host, 0)
    with pytest.raises(AssertionError, match="already down"):
        machine.fail(host, 0)
    machine.occupy(1, range(16, 32), cubes=(1,), shape=Shape(4, 4, 4))
    with pytest.raises(AssertionError, match="taken"):
        machine.occupy(2, range(16, 20))
    with pytest.raises(AssertionError, match="already holds"):
        machine.occupy(1, range(32, 48), cubes=(2,), shape=Shape(4, 4, 4))
    with pytest.raises(AssertionError, match="held by a job"):
        machine.drain(1)
    machine.drain(2)
    with pytest.raises(AssertionError, match="drained"):
        machine.occupy(3, range(32, 48), cubes=(2,), shape=Shape(4, 4, 4))
    with pytest.raises(AssertionError, match="holds nothing"):
        machine.set_stage(9, Stage.RUNNING, FULL_SPEED_PPM)
    with pytest.raises(AssertionError, match="have a speed"):
        machine.set_stage(1, Stage.RUNNING)
    with pytest.raises(AssertionError, match="does not run"):
        machine.set_speed(1, 5)


def boxes(most: int) -> list[Shape]:
    """All shapes of up to `most` cubes, twisted ones too."""
    sides = range(4, 4 * most + 1, 4)
    plain = [Shape(x, y, z) for x in sides for y in sides for z in sides if x <= y <= z and x * y * z <= 64 * most]
    return plain + [Shape(s.x, s.y, s.z, twisted=True) for s in plain if s.is_twistable]


@pytest.mark.parametrize("shape", [*boxes(8), Shape(8, 8, 16, twisted=True), Shape(12, 16, 16)], ids=str)
def test_the_machine_makes_the_circuits_of_the_ocs_room(shape: Shape) -> None:
    """Goal: the compact rings are the 48 switches' circuits. Method: for every shape of up to 8 cubes and two larger,
    on cubes in a scrambled order, each circuit of the ocs room is a join of the machine's, 16 to each."""
    pod = Pod(cubes=64)
    cubes = tuple(np.random.Generator(np.random.PCG64(7)).permutation(64)[: shape.cubes].tolist())
    light = Light(pod)
    cut, made = light.connect(0, cubes, shape)
    rows = circuits_of(joined(shape, cubes))
    assert (cut, made) == (0, len(rows))
    expected = sorted((switch // 16, plus, minus) for switch, plus, minus in rows.tolist())
    assert sorted(join for join in light.joins(0) for _ in range(16)) == expected
    light.check({0: cubes})
    assert light.disconnect(0) == len(rows)
    light.check({})


def test_faces_that_a_static_slice_uses() -> None:
    """Goal: under static wiring only ends between cubes of the slice matter. Method: a block of 4 along z on the v4
    grid (a ring), a pair (one link), a single cube (none)."""
    pod = Pod(cubes=64)
    machine = Machine(pod, Fabric.STATIC_ALIGNED, HandClock())
    for job, cubes, faces in ((0, (0, 1, 2, 3), 8), (1, (4, 5), 2), (2, (9,), 0)):
        hosts = [host for cube in cubes for host in range(cube * 16, cube * 16 + 16)]
        machine.occupy(job, hosts, cubes=cubes)
        assert len(machine.faces(job)) == faces


def test_the_log_is_a_declared_table() -> None:
    """Goal: the log can be stored. Method: the columns of a short log."""
    machine = Machine(POD, Fabric.RECONFIGURABLE, HandClock())
    machine.fail(ComponentKind.OCS, 3)
    table = LOG.make([dict(zip(LOG.names, row, strict=True)) for row in machine.rows])
    assert table.iloc[0].tolist() == [0, "fail", "ocs", 3, -1, "", 0]
