"""Shapes of a chip count, and which of them suits a mix of collectives."""

from __future__ import annotations

from itertools import product

import pytest

from topology.bounds import Collective, measure_slice
from topology.errors import InputError
from topology.pod import POD_GENERATIONS
from topology.popularity import POPULARITY_PERCENT, mean_cubes, popular_shapes
from topology.ranking import JOB_MIXES, rank_shapes, shapes_of_chips
from topology.shape import Shape


@pytest.mark.parametrize("chips", [64, 128, 256, 320, 768, 1024, 3072, 8960, 9216])
def test_all_shapes_of_a_chip_count(chips: int) -> None:
    """Goal: none is missing. Method: every triple of multiples of 4, sorted, twisted where it can be."""
    cubes = chips // 64
    sides = [side for side in range(1, cubes + 1) if cubes % side == 0]
    triples = [t for t in product(sides, repeat=3) if t[0] <= t[1] <= t[2] and t[0] * t[1] * t[2] == cubes]
    expected = {Shape(4 * x, 4 * y, 4 * z) for x, y, z in triples}
    expected |= {Shape(*shape.dimensions, True) for shape in expected if shape.is_twistable}
    found = shapes_of_chips(chips)
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_shapes_below_a_cube_and_counts_that_are_none() -> None:
    """Goal: sizes below a cube have one shape, others are refused. Method: 1 to 32 chips, odd ones, too many."""
    assert [str(shapes_of_chips(chips)[0]) for chips in (1, 2, 4, 8, 16, 32)] == [
        "1x1x1", "1x1x2", "1x2x2", "2x2x2", "2x2x4", "2x4x4",
    ]  # fmt: skip
    for chips in (0, 3, 65, -64):
        with pytest.raises(InputError, match="no whole number of cubes"):
            shapes_of_chips(chips)
    with pytest.raises(InputError, match="do not fit the 4096 of pod v4"):
        shapes_of_chips(8192, POD_GENERATIONS["v4"])
    assert shapes_of_chips(8192, POD_GENERATIONS["tpu7x"])


def test_published_shapes_are_among_them() -> None:
    """Goal: all shapes of the popularity table exist. Method: look each up; the printed totals."""
    for shape, _ in popular_shapes():
        assert shape in shapes_of_chips(shape.chips)
    assert sum(share for _, share in popular_shapes()) == pytest.approx(1.0)
    twisted = sum(percent for text, percent in POPULARITY_PERCENT.items() if text.endswith("_twisted"))
    assert twisted == pytest.approx(28, abs=0.5)
    assert 8 < mean_cubes() < 10


def test_ranking_for_mixes() -> None:
    """Goal: the published advice comes out: bisection for all-to-all, few hops for small messages, twists where they
    can be. Method: rankings of 512 and 128 chips by the stated mixes."""
    assert [str(each.shape) for each in rank_shapes(512, JOB_MIXES["embeddings"])] == ["8x8x8", "4x8x16", "4x4x32"]
    for name in ("embeddings", "experts", "small_messages"):
        assert str(rank_shapes(128, JOB_MIXES[name])[0].shape) == "4x4x8_twisted"
    seconds = [each.mix_s for each in rank_shapes(3072, JOB_MIXES["dense_training"])]
    assert seconds == sorted(seconds)


def test_seconds_of_a_mix_are_the_sum() -> None:
    """Goal: a mix is its parts. Method: two collectives on one shape, one of them by its latency floor."""
    measures = measure_slice(Shape(8, 8, 8))
    mix = {Collective.ALL_TO_ALL: 50e9, Collective.NEAREST_NEIGHBOUR: 1.0}
    assert measures.mix_s(mix) == pytest.approx(1.0 + 1e-6)
    (best, *_) = rank_shapes(512, mix)
    assert best.mix_s == measures.mix_s(mix)


@pytest.mark.parametrize("mix", [{}, {Collective.ALL_REDUCE: 0.0}, {Collective.ALL_REDUCE: -1.0}])
def test_empty_mixes_are_refused(mix: dict[Collective, float]) -> None:
    """Goal: a ranking needs something to rank by. Method: no collective, no bytes, negative bytes."""
    with pytest.raises(InputError, match="bytes of at least one collective"):
        rank_shapes(512, mix)
