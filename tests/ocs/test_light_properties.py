"""Properties of switches and plans under long random histories: matchings, plans that lead where they say, labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocs.blast import Part, blast_radius
from ocs.churn import circuits_of_replacement
from ocs.circuits import Circuits, carry_out, circuits_of, dark_switches, no_circuits, plan_reconfiguration
from ocs.repatching import repatch_bad_ports
from ocs.switch import DARK, Switch
from ocs.wiring import SIDES, Side
from topology.placement import joined
from topology.pod import Pod
from topology.ranking import shapes_of_chips
from topology.shape import Shape

SHAPES = [shape for cubes in range(1, 9) for shape in shapes_of_chips(64 * cubes)]


def check_matching(switch: Switch) -> None:
    """Circuits one to one and on good ports only; every end in a port of its own; spares are what is left."""
    lit = [minus for minus in switch.minus_of_plus if minus != DARK]
    assert len(lit) == len(set(lit)) == switch.circuits
    plugged = [switch.port_of(side, cube) for side in SIDES for cube in range(switch.cubes)]
    assert len(plugged) == len(set(plugged))
    spare, bad = set(switch.spare_ports), set(switch.bad_ports)
    assert set(plugged) | spare | bad == set(range(switch.ports))
    assert not set(plugged) & spare
    assert not spare & bad
    for plus, minus in enumerate(switch.minus_of_plus):
        if minus != DARK:
            assert switch.partner_of(Side.MINUS, minus) == plus
            assert not {switch.port_of(Side.PLUS, plus), switch.port_of(Side.MINUS, minus)} & bad


@pytest.mark.parametrize("seed", [1, 2])
def test_ports_stay_a_matching_under_thousands_of_verbs(seed: int) -> None:
    """Goal: no history breaks the matching. Method: 4,000 random connects, releases, port faults, mendings and moves on
    one switch; what is refused changes nothing; checked after each."""
    rng = np.random.default_rng(seed)
    switch, refused, done = Switch(cubes=6, ports=16), 0, [0] * 5
    for _ in range(4000):
        verb = int(rng.choice(5, p=[0.4, 0.25, 0.1, 0.1, 0.15]))
        a, b, port = (int(n) for n in rng.integers([6, 6, 16]))
        try:
            if verb == 0:
                switch = switch.connect((Side.PLUS, a), (Side.MINUS, b))
            elif verb == 1:
                switch = switch.disconnect(a)
            elif verb == 2:
                switch = switch.fail_port(port)
            elif verb == 3:
                switch = switch.mend_port(port)
            else:
                switch = repatch_bad_ports([switch]).switches[0]
            done[verb] += 1
        except ValueError:
            refused += 1
        check_matching(switch)
    assert min(done) > 200
    assert refused > 200


def test_bad_ports_are_refused_until_moved_or_mended() -> None:
    """Goal: a bad port takes no circuit. Method: fail under light, connect, move, connect, fail the spares, mend."""
    switch = Switch(cubes=2, ports=5).connect((Side.PLUS, 0), (Side.MINUS, 1)).fail_port(3)
    assert switch.circuits == 0
    assert switch.ends_on_bad_ports == ((Side.MINUS, 1),)
    with pytest.raises(ValueError, match="on a bad port; move its fibre first"):
        switch.connect((Side.PLUS, 0), (Side.MINUS, 1))
    moved = switch.repatch(Side.MINUS, 1)
    assert moved.port_of(Side.MINUS, 1) == 4
    assert moved.connect((Side.PLUS, 0), (Side.MINUS, 1)).circuits == 1
    stuck = moved.fail_port(0)
    assert repatch_bad_ports([stuck]).left == ((0, Side.PLUS, 0),)
    assert stuck.mend_port(0).connect((Side.PLUS, 0), (Side.MINUS, 0)).circuits == 1
    assert moved.mend_port(3).spare_ports == (3,)
    with pytest.raises(ValueError, match="no port 5"):
        switch.fail_port(5)
    with pytest.raises(ValueError, match="would use a bad port"):
        Switch(cubes=2, ports=5, minus_of_plus=(0, DARK), bad_ports=(2,))
    with pytest.raises(ValueError, match="rising"):
        Switch(cubes=2, ports=5, bad_ports=(3, 2))


def _circuits(data: st.DataObject, cubes: int) -> Circuits:
    """Circuits of some slices on disjoint cubes of a pod."""
    order = data.draw(st.permutations(range(cubes)))
    rows = [no_circuits()]
    for _ in range(data.draw(st.integers(0, 4))):
        if not order:
            break
        shape = data.draw(st.sampled_from([shape for shape in SHAPES if shape.cubes <= len(order)]))
        rows.append(circuits_of(joined(shape, order[: shape.cubes])))
        order = order[shape.cubes :]
    return np.concatenate(rows)


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_a_plan_leads_from_old_to_new(data: st.DataObject) -> None:
    """Goal: a plan applied to the old circuits gives the new ones, and to itself it is empty. Method: any two sets of
    slices on a pod of twelve cubes; the matching after the plan is that of the new circuits made from dark."""
    old, new = _circuits(data, 12), _circuits(data, 12)
    before, after = (carry_out(plan_reconfiguration(no_circuits(), rows), dark_switches(12)) for rows in (old, new))
    plan = plan_reconfiguration(old, new)
    assert np.array_equal(carry_out(plan, before), after)
    assert len(plan.cut) + len(plan.keep) == len(old)
    assert len(plan.make) + len(plan.keep) == len(new)
    same = plan_reconfiguration(new, new)
    assert len(same.cut) == len(same.make) == 0
    assert np.array_equal(carry_out(same, after), after)


@given(shape=st.sampled_from(SHAPES), seed=st.integers(0, 2**20), number=st.integers(0, 10**6), data=st.data())
@settings(max_examples=60, deadline=None)
def test_labels_of_cubes_mean_nothing(shape: Shape, seed: int, number: int, data: st.DataObject) -> None:
    """Goal: which cubes make a slice changes nothing but labels. Method: put the slice on other cubes; circuits, plan
    sizes and blast radius are the same after renaming."""
    pod = Pod(cubes=12, ports=32)
    other = np.random.default_rng(seed).permutation(12)
    one, two = joined(shape, range(shape.cubes)), joined(shape, other[: shape.cubes].tolist())
    renamed = circuits_of(one).copy()
    renamed[:, 1:] = other[renamed[:, 1:]]
    order = np.lexsort((renamed[:, 2], renamed[:, 1], renamed[:, 0]))
    assert np.array_equal(renamed[order], circuits_of(two))
    part = data.draw(st.sampled_from([Part.SWITCH, Part.FIBRE, Part.HOST, Part.IN_RACK_LINK, Part.RACK]))
    per_cube = {Part.FIBRE: 96, Part.HOST: 16, Part.IN_RACK_LINK: 80, Part.RACK: 1}.get(part)
    index = number % 48 if per_cube is None else number % (12 * per_cube)
    moved = index if per_cube is None else int(other[index // per_cube]) * per_cube + index % per_cube
    first, second = blast_radius(pod, {0: one}, part, index), blast_radius(pod, {0: two}, part, moved)
    assert first.slices == second.slices
    assert sorted(other[list(first.cubes)].tolist()) == list(second.cubes)


def test_replacing_a_cube_costs_what_its_faces_need() -> None:
    """Goal: circuits of a replacement are known. Method: two per switch, one where a cube closed on itself."""
    for shape in SHAPES:
        rings = sum(1 if cubes == 1 else 2 for cubes in shape.box)
        if not shape.twisted:
            assert circuits_of_replacement(shape) == 16 * rings
    assert circuits_of_replacement(Shape(4, 4, 8, True)) == 96
