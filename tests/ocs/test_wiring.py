"""Numbers of ends and switches, and which chip sits at which end."""

from __future__ import annotations

from collections import Counter

import pytest

from ocs.wiring import SIDES, OpticalEnd, Side, end_of_number, face_chip, switch_number


def test_numbers_of_ends_come_back() -> None:
    """Goal: numbers and ends are one to one. Method: all ends of three cubes, both ways, against the stated formula."""
    for number in range(3 * 96):
        end = end_of_number(number)
        assert end.number == number
        side = 0 if end.side is Side.PLUS else 1
        assert number == end.cube * 96 + end.dimension * 32 + side * 16 + end.position


def test_each_pair_of_ends_has_its_own_switch() -> None:
    """Goal: the + and - end of one dimension and position share a switch, and no others of the cube. Method: count."""
    landing = Counter(end_of_number(number).switch for number in range(96))
    assert landing == dict.fromkeys(range(48), 2)
    for dimension in range(3):
        for position in range(16):
            plus, minus = (OpticalEnd(5, dimension, side, position) for side in SIDES)
            assert plus.switch == minus.switch == switch_number(dimension, position) == 16 * dimension + position


def test_ends_sit_on_their_faces_opposite_each_other() -> None:
    """Goal: + is at coordinate 3, - at 0, and a pair differs in nothing else. Method: all 48 pairs."""
    for dimension in range(3):
        faces: dict[Side, set[tuple[int, int, int]]] = {side: set() for side in SIDES}
        for position in range(16):
            plus, minus = (face_chip(dimension, side, position) for side in SIDES)
            assert (plus[dimension], minus[dimension]) == (3, 0)
            assert [a for axis, a in enumerate(plus) if axis != dimension] == [
                a for axis, a in enumerate(minus) if axis != dimension
            ]
            faces[Side.PLUS].add(plus)
            faces[Side.MINUS].add(minus)
        assert [len(chips) for chips in faces.values()] == [16, 16]
    assert OpticalEnd(0, 1, Side.PLUS, 6).chip == (1, 3, 2)


@pytest.mark.parametrize(("cube", "dimension", "position"), [(-1, 0, 0), (0, 3, 0), (0, 0, 16), (0, -1, 0)])
def test_ends_that_are_none(cube: int, dimension: int, position: int) -> None:
    """Goal: numbers out of range are refused. Method: one case per field."""
    with pytest.raises(ValueError, match="no optical end"):
        OpticalEnd(cube, dimension, Side.PLUS, position)
