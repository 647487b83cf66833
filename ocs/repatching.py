"""Re-patching: a crew moves the fibre of a bad port to a spare one; how many moves, how long, what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ocs.switch import Switch
from ocs.wiring import Side
from topology.pod import SWITCHES_PER_POD, Pod
from topology.units import PositiveSeconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One fibre moved on one switch: the end of a cube, from a bad port to a spare one."""

    switch: int
    side: Side
    cube: int
    from_port: int
    to_port: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Repatched:
    """All switches after the crew's work, the moves in order, and the ends (switch, side, cube) with no spare left."""

    switches: tuple[Switch, ...]
    moves: tuple[Move, ...]
    left: tuple[tuple[int, Side, int], ...]


@dataclass(frozen=True, kw_only=True)
class RepatchCrew:
    """People who move fibres: `each` for one move, walk and test included (4 h, assumption), `crews` at once."""

    each: PositiveSeconds = 4 * 3600.0
    crews: int = 1

    def __post_init__(self) -> None:
        """Check that somebody works."""
        if self.crews < 1:
            raise ValueError(f"{self.crews} crews move nothing: write at least 1")

    def time_s(self, moves: int) -> float:
        """Seconds until the last of these moves is done, shared evenly among the crews."""
        return -(-moves // self.crews) * self.each

    def done_s(self, moves: int) -> tuple[float, ...]:
        """Seconds after which each of these moves, in order, is done."""
        return tuple((number // self.crews + 1) * self.each for number in range(moves))


def switches_of_pod(pod: Pod) -> tuple[Switch, ...]:
    """All 48 switches of a pod, dark, with fibres as they were first plugged in."""
    return (Switch(cubes=pod.cubes, ports=pod.switch_ports),) * SWITCHES_PER_POD


def repatch_bad_ports(switches: Sequence[Switch]) -> Repatched:
    """Move every end on a bad port to a spare port of its switch, lowest first; ends without a spare are left."""
    after, moves, left = list(switches), list[Move](), list[tuple[int, Side, int]]()
    for number, switch in enumerate(switches):
        for side, cube in switch.ends_on_bad_ports:
            if not after[number].spare_ports:
                left.append((number, side, cube))
                continue
            before = after[number].port_of(side, cube)
            after[number] = after[number].repatch(side, cube)
            to_port = after[number].port_of(side, cube)
            moves.append(Move(switch=number, side=side, cube=cube, from_port=before, to_port=to_port))
    return Repatched(switches=tuple(after), moves=tuple(moves), left=tuple(left))
