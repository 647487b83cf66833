"""Shapes: texts, default shapes, twists, and bad texts as data."""

from __future__ import annotations

import pytest

from topology.errors import InputError
from topology.shape import SUB_CUBE_SHAPES, Shape, hosts_of_chips, parse_shape, shape_of_chips

# text, what the message must say to write
BAD_TEXTS = [
    ("", "such as 8x8x16"),
    ("1024", "such as 8x8x16"),
    ("8x8", "such as 8x8x16"),
    ("8x8x16x1", "such as 8x8x16"),
    ("8x8xz", "such as 8x8x16"),
    ("8x8x-16", "such as 8x8x16"),
    ("0x4x4", "such as 8x8x16"),
    ("08x8x16", "such as 8x8x16"),
    ("8.0x8x16", "such as 8x8x16"),
    ("8 x 8 x 16", "such as 8x8x16"),
    ("8X8X16", "such as 8x8x16"),
    ("8×8×16", "such as 8x8x16"),
    ("٤x٤x٤", "such as 8x8x16"),
    ("9999999x4x4", "such as 8x8x16"),
    ("4x4x8_twist", "4x4x8_twisted"),
    ("4x4x" + "8" * 5000, "such as 8x8x16"),
    ("4x4x6", "multiples of 4, for example 4x4x8"),
    ("2x2x8", "multiples of 4, for example 4x4x8"),
    ("1x2x4", "one of 1x1x1, 1x1x2, 1x2x2, 2x2x2, 2x2x4, 2x4x4"),
    ("1x1x4", "multiples of 4"),
    ("16x8x8", "write 8x8x16"),
    ("2x1x1", "write 1x1x2"),
    ("4x4x4_twisted", "write 4x4x4, or for example 4x4x8_twisted"),
    ("8x8x8_twisted", "write 8x8x8"),
    ("4x4x12_twisted", "write 4x4x12"),
    ("4x8x16_twisted", "write 4x8x16"),
    ("1x1x2_twisted", "write 1x1x2"),
    ("2x2x4_twisted", "write 2x2x4"),
    ("v4-2049", "v4-2048"),
    ("v4-100", "multiple of 64"),
    ("v4-0", "such as 8x8x16"),
    ("v6-2048", "such as 8x8x16"),
    (None, "such as 8x8x16"),
    (1024, "such as 8x8x16"),
    (True, "such as 8x8x16"),
    (["8x8x16"], "such as 8x8x16"),
]


@pytest.mark.parametrize(("text", "remedy"), BAD_TEXTS)
def test_bad_texts_name_place_and_remedy(text: object, remedy: str) -> None:
    """Goal: every bad text is refused with where and what to write. Method: data-driven cases, one line each."""
    with pytest.raises(InputError) as caught:
        parse_shape(text, where="serving.services.0.slice")
    (fault,) = caught.value.faults
    assert fault.where == "serving.services.0.slice"
    assert remedy in fault.write
    assert "\n" not in str(fault)
    assert len(str(fault)) < 300


@pytest.mark.parametrize("text", ["1x1x1", "2x4x4", "4x4x4", "4x4x8", "4x4x8_twisted", "8x16x16_twisted", "4x4x192"])
def test_texts_come_back(text: str) -> None:
    """Goal: a shape prints as it is written. Method: parse and print."""
    assert str(parse_shape(text)) == text
    assert parse_shape(f" {text} ") == parse_shape(text)


def test_names_that_count_cores() -> None:
    """Goal: v4-2048 and v5p-2048 are 1024 chips. Method: parse both, and the smallest of the cloud's names."""
    assert str(parse_shape("v4-2048")) == str(parse_shape("v5p-2048")) == "8x8x16"
    assert str(parse_shape("v4-8")) == "1x2x2"


def test_default_shapes() -> None:
    """Goal: the stated default of each size. Method: the eight sizes of the main study, and those below a cube."""
    stated = {
        64: "4x4x4",
        128: "4x4x8",
        256: "4x8x8",
        512: "8x8x8",
        1024: "8x8x16",
        2048: "8x16x16",
        3072: "12x16x16",
        4096: "16x16x16",
    }
    assert {chips: str(shape_of_chips(chips)) for chips in stated} == stated
    for dimensions in SUB_CUBE_SHAPES:
        shape = Shape(*dimensions)
        assert shape_of_chips(shape.chips) == shape


@pytest.mark.parametrize("chips", [0, -64, 3, 63, 65, 100, 64.0 * 1.5])
def test_sizes_that_are_none(chips: int) -> None:
    """Goal: a size that is no slice is refused. Method: sizes between the allowed ones."""
    with pytest.raises(InputError, match="multiple of 64"):
        shape_of_chips(chips)


def test_counts_and_wraps() -> None:
    """Goal: chips, hosts, cubes and rings of a shape. Method: one shape below a cube and one above."""
    tray, large = parse_shape("1x1x2"), parse_shape("8x8x16")
    assert (tray.chips, tray.hosts, tray.cubes, tray.box, tray.wraps) == (2, 1, 0, (0, 0, 0), (False, False, False))
    assert (large.chips, large.hosts, large.cubes, large.box) == (1024, 256, 16, (2, 2, 4))
    assert large.wraps == (True, True, True)
    assert [hosts_of_chips(c) for c in (1, 2, 4, 8, 16, 32, 64, 128)] == [1, 1, 1, 2, 4, 8, 16, 32]


def test_twists_shift_by_whole_cubes() -> None:
    """Goal: the shifts of the design. Method: both families, and that untwisted shapes shift nothing."""
    assert parse_shape("4x4x8_twisted").wrap_shifts == ((0, 0, 4), (0, 0, 4), (0, 0, 0))
    assert parse_shape("8x16x16_twisted").wrap_shifts == ((0, 8, 8), (0, 0, 0), (0, 0, 0))
    assert parse_shape("8x16x16").wrap_shifts == ((0, 0, 0), (0, 0, 0), (0, 0, 0))
    twistable = [s for s in ("4x4x4", "4x4x8", "4x8x8", "8x8x8", "4x8x16", "12x12x24") if parse_shape(s).is_twistable]
    assert twistable == ["4x4x8", "4x8x8", "12x12x24"]
