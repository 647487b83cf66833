"""One optical circuit switch: a partial matching of + ends and - ends, with spare ports.

A circuit joins one + end to one - end, strictly one to one; + to + is refused. Every cube has one + and one - end on
a switch. Ports: the + end of cube c is plugged into port c, its - end into port C + c; the rest are spare. A port
that fails loses its circuit and takes none until it is mended; taking over a bad port is a crew's re-patch of a dark
fibre to a spare port, not a command (assumption).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ocs.wiring import Side

DARK = -1
"""Partner of an end without a circuit."""


@dataclass(frozen=True, kw_only=True)
class Switch:
    """The state of one switch with two ends for each of `cubes` cubes; every verb returns a new state.

    Raises ValueError for more ends than ports, and, from its verbs, for what a switch can not do.
    """

    cubes: int
    ports: int
    minus_of_plus: tuple[int, ...] = ()
    """Per cube, the cube whose - end its + end is joined to, or DARK. Left out: all dark."""
    port_of_plus: tuple[int, ...] = ()
    port_of_minus: tuple[int, ...] = ()
    bad_ports: tuple[int, ...] = ()
    """Ports that carry no light, in rising order."""
    plus_of_minus: tuple[int, ...] = field(init=False, compare=False)
    """The same matching from the other side."""

    def __post_init__(self) -> None:
        """Fill in the dark state and check that circuits and ports are matchings."""
        if 2 * self.cubes > self.ports:
            raise ValueError(f"{self.cubes} cubes have {2 * self.cubes} ends, more than the {self.ports} ports")
        if not self.minus_of_plus:
            object.__setattr__(self, "minus_of_plus", (DARK,) * self.cubes)
        if not self.port_of_plus:
            object.__setattr__(self, "port_of_plus", tuple(range(self.cubes)))
        if not self.port_of_minus:
            object.__setattr__(self, "port_of_minus", tuple(range(self.cubes, 2 * self.cubes)))
        plus_of_minus = [DARK] * self.cubes
        for plus, minus in enumerate(self.minus_of_plus):
            if minus != DARK:
                if plus_of_minus[minus] != DARK:
                    raise ValueError(f"the - end of cube {minus} would be in two circuits")
                plus_of_minus[minus] = plus
        object.__setattr__(self, "plus_of_minus", tuple(plus_of_minus))
        plugged = self.port_of_plus + self.port_of_minus
        if len(set(plugged)) != 2 * self.cubes or not all(0 <= port < self.ports for port in plugged):
            raise ValueError("every end needs a port of its own")
        bad = set(self.bad_ports)
        if list(self.bad_ports) != sorted(bad) or not all(0 <= port < self.ports for port in self.bad_ports):
            raise ValueError(f"bad ports must be numbers from 0 to {self.ports - 1}, rising")
        for cube, minus in enumerate(self.minus_of_plus if bad else ()):
            if minus != DARK and (self.port_of_plus[cube] in bad or self.port_of_minus[minus] in bad):
                raise ValueError(f"the circuit at the + end of cube {cube} would use a bad port")

    @property
    def circuits(self) -> int:
        """Number of circuits that are made."""
        return self.cubes - self.minus_of_plus.count(DARK)

    @property
    def spare_ports(self) -> tuple[int, ...]:
        """Good ports into which no end is plugged, in rising order."""
        taken = set(self.port_of_plus + self.port_of_minus + self.bad_ports)
        return tuple(port for port in range(self.ports) if port not in taken)

    @property
    def ends_on_bad_ports(self) -> tuple[tuple[Side, int], ...]:
        """Ends, (side, cube), that wait for a crew, in the order of their ports."""
        at_ports = (self.end_at_port(port) for port in self.bad_ports)
        return tuple(end for end in at_ports if end is not None)

    def end_at_port(self, port: int) -> tuple[Side, int] | None:
        """The end, (side, cube), that is plugged into a port, or None for a port without fibre."""
        self._check_port(port)
        for side, plugged in ((Side.PLUS, self.port_of_plus), (Side.MINUS, self.port_of_minus)):
            if port in plugged:
                return side, plugged.index(port)
        return None

    def port_of(self, side: Side, cube: int) -> int:
        """The port into which an end is plugged."""
        self._check_cube(cube)
        return self.port_of_plus[cube] if side is Side.PLUS else self.port_of_minus[cube]

    def partner_of(self, side: Side, cube: int) -> int:
        """The cube at the other end of an end's circuit, or DARK."""
        self._check_cube(cube)
        return self.minus_of_plus[cube] if side is Side.PLUS else self.plus_of_minus[cube]

    def connect(self, one: tuple[Side, int], other: tuple[Side, int]) -> Switch:
        """Join two ends, each (side, cube), given in any order: one must be a + end and one a - end, both dark."""
        if one[0] is other[0]:
            raise ValueError(f"a circuit joins a + end to a - end, not {one[0].value} to {other[0].value}")
        (_, plus), (_, minus) = (one, other) if one[0] is Side.PLUS else (other, one)
        for side, cube in ((Side.PLUS, plus), (Side.MINUS, minus)):
            if self.partner_of(side, cube) != DARK:
                raise ValueError(f"the {side.value} end of cube {cube} is in a circuit already; cut that first")
            if self.port_of(side, cube) in self.bad_ports:
                raise ValueError(f"the {side.value} end of cube {cube} is on a bad port; move its fibre first")
        return replace(self, minus_of_plus=_with(self.minus_of_plus, plus, minus))

    def disconnect(self, plus: int) -> Switch:
        """Cut the circuit at the + end of a cube."""
        if self.partner_of(Side.PLUS, plus) == DARK:
            raise ValueError(f"the + end of cube {plus} is in no circuit")
        return replace(self, minus_of_plus=_with(self.minus_of_plus, plus, DARK))

    def repatch(self, side: Side, cube: int) -> Switch:
        """Move the fibre of a dark end to the first spare port (a crew's work); its old port is left without fibre."""
        if self.partner_of(side, cube) != DARK:
            raise ValueError(f"the {side.value} end of cube {cube} carries a circuit; cut it before moving the fibre")
        spare = self.spare_ports
        if not spare:
            raise ValueError("no port is spare")
        if side is Side.PLUS:
            return replace(self, port_of_plus=_with(self.port_of_plus, cube, spare[0]))
        return replace(self, port_of_minus=_with(self.port_of_minus, cube, spare[0]))

    def fail_port(self, port: int) -> Switch:
        """The port carries no light from now on; the circuit through it, if any, is cut."""
        end = self.end_at_port(port)
        dark = self.minus_of_plus
        if end is not None and self.partner_of(*end) != DARK:
            plus = end[1] if end[0] is Side.PLUS else self.plus_of_minus[end[1]]
            dark = _with(dark, plus, DARK)
        return replace(self, minus_of_plus=dark, bad_ports=tuple(sorted({*self.bad_ports, port})))

    def mend_port(self, port: int) -> Switch:
        """The port is good again; no circuit comes back by itself."""
        self._check_port(port)
        return replace(self, bad_ports=tuple(bad for bad in self.bad_ports if bad != port))

    def _check_port(self, port: int) -> None:
        """Refuse ports that this switch does not have."""
        if not 0 <= port < self.ports:
            raise ValueError(f"no port {port}: this switch has ports 0 to {self.ports - 1}")

    def _check_cube(self, cube: int) -> None:
        """Refuse cubes that this switch does not serve."""
        if not 0 <= cube < self.cubes:
            raise ValueError(f"no cube {cube}: this switch serves cubes 0 to {self.cubes - 1}")


def _with(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    """A copy of a tuple with one value changed."""
    return (*values[:index], value, *values[index + 1 :])
