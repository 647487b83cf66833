"""One switch: a matching of + and - ends at every moment, whatever is asked of it."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ocs.switch import DARK, Switch
from ocs.wiring import SIDES, Side

CUBES = 5
ends = st.tuples(st.sampled_from(SIDES), st.integers(0, CUBES - 1))


class SwitchMachine(RuleBasedStateMachine):
    """Random verbs on one switch, beside a plain set of circuits kept by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.switch = Switch(cubes=CUBES, ports=2 * CUBES + 3)
        self.circuits: list[tuple[int, int]] = []

    @rule(one=ends, other=ends)
    def connect(self, one: tuple[Side, int], other: tuple[Side, int]) -> None:
        by_side = dict([one, other])
        taken = len(by_side) == 2 and any(
            by_side[Side.PLUS] == plus or by_side[Side.MINUS] == minus for plus, minus in self.circuits
        )
        if len(by_side) < 2 or taken:
            with pytest.raises(ValueError, match=r"joins a \+ end to a - end|in a circuit already"):
                self.switch.connect(one, other)
        else:
            self.switch = self.switch.connect(one, other)
            self.circuits.append((by_side[Side.PLUS], by_side[Side.MINUS]))

    @rule(plus=st.integers(0, CUBES - 1))
    def disconnect(self, plus: int) -> None:
        if any(plus == lit for lit, _ in self.circuits):
            self.switch = self.switch.disconnect(plus)
            self.circuits = [pair for pair in self.circuits if pair[0] != plus]
        else:
            with pytest.raises(ValueError, match="in no circuit"):
                self.switch.disconnect(plus)

    @rule(end=ends)
    def repatch(self, end: tuple[Side, int]) -> None:
        side, cube = end
        lit = any(cube == pair[SIDES.index(side)] for pair in self.circuits)
        if lit:
            with pytest.raises(ValueError, match="cut it before"):
                self.switch.repatch(side, cube)
            return
        spare = self.switch.spare_ports
        self.switch = self.switch.repatch(side, cube)
        assert self.switch.port_of(side, cube) == spare[0]

    @invariant()
    def is_a_matching(self) -> None:
        assert self.switch.circuits == len(self.circuits)
        for plus, minus in self.circuits:
            assert self.switch.partner_of(Side.PLUS, plus) == minus
            assert self.switch.partner_of(Side.MINUS, minus) == plus
        lit = [minus for minus in self.switch.minus_of_plus if minus != DARK]
        assert len(lit) == len(set(lit))

    @invariant()
    def ports_are_a_matching(self) -> None:
        plugged = Counter(self.switch.port_of(side, cube) for side, cube in product(SIDES, range(CUBES)))
        assert set(plugged.values()) == {1}
        assert not set(plugged) & set(self.switch.spare_ports)
        assert len(plugged) + len(self.switch.spare_ports) == self.switch.ports


TestSwitchMachine = SwitchMachine.TestCase
TestSwitchMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_every_pair_of_ends_of_a_small_switch() -> None:
    """Goal: exactly the + to - pairs can be joined. Method: all pairs of ends of a switch of three cubes."""
    switch = Switch(cubes=3, ports=6)
    every = list(product(SIDES, range(3)))
    for one, other in product(every, every):
        if one[0] is other[0]:
            with pytest.raises(ValueError, match=r"joins a \+ end to a - end"):
                switch.connect(one, other)
        else:
            joined = switch.connect(one, other)
            assert joined.circuits == 1
            assert joined.partner_of(*one) == other[1]
            assert joined.partner_of(*other) == one[1]
            assert switch.circuits == 0


def test_what_a_switch_refuses() -> None:
    """Goal: faults name the remedy. Method: too few ports, no spare port, unknown cubes, two circuits on one end."""
    with pytest.raises(ValueError, match="more than the 136 ports"):
        Switch(cubes=69, ports=136)
    with pytest.raises(ValueError, match="no port is spare"):
        Switch(cubes=2, ports=4).repatch(Side.PLUS, 0)
    with pytest.raises(ValueError, match="cubes 0 to 1"):
        Switch(cubes=2, ports=4).connect((Side.PLUS, 2), (Side.MINUS, 0))
    with pytest.raises(ValueError, match="two circuits"):
        Switch(cubes=2, ports=4, minus_of_plus=(1, 1))
    with pytest.raises(ValueError, match="port of its own"):
        Switch(cubes=2, ports=6, port_of_plus=(0, 2))
    assert len(Switch(cubes=64, ports=136).spare_ports) == 8
