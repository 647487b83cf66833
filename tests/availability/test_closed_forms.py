"""Closed forms against the published tables, and against sums done another way."""

from __future__ import annotations

import math

import pytest

from sim.closed_forms import (
    CubeOdds,
    binomial_at_least,
    binomial_pmf,
    capacity_pmf,
    cliff_chips,
    cubes_for_promise,
    cubes_held,
    expected_share,
    guaranteed_share,
    hosts_up_pmf,
    machine_repair_availability,
    productive_share,
    renewal_failures_per_s,
    young_interval_s,
)
from topology.fabric import Fabric

SIZES = (64, 128, 256, 512, 1024, 2048, 3072, 4096)
OCS, ALIGNED, BOXES, ANY = (
    Fabric.RECONFIGURABLE,
    Fabric.STATIC_ALIGNED,
    Fabric.STATIC_CONTIGUOUS,
    Fabric.ANY_HOST,
)
# tpu_fabric.md 4.2, percent: (fabric, host availability) -> one value per size
EXPECTED = {
    (ALIGNED, 0.990): (85.15, 72.50, 52.56, 27.63, 7.63, 0.58, 0.03, 0.00),
    (ALIGNED, 0.995): (92.29, 85.18, 72.56, 52.64, 27.71, 7.68, 1.60, 0.59),
    (ALIGNED, 0.999): (98.41, 96.85, 93.80, 87.98, 77.40, 59.91, 34.78, 35.90),
    (OCS, 0.990): (85.15, 84.36, 82.80, 79.57, 74.74, 50.00, 74.20, 0.00),
    (OCS, 0.995): (92.29, 91.51, 89.97, 86.87, 75.15, 50.29, 75.00, 0.59),
    (OCS, 0.999): (98.41, 97.73, 95.97, 91.99, 83.97, 67.95, 75.00, 35.90),
}
GUARANTEED = {
    (ALIGNED, 0.990): (76.6, 56.2, 31.2, 0, 0, 0, 0, 0),
    (ALIGNED, 0.995): (85.9, 71.9, 50.0, 25.0, 0, 0, 0, 0),
    (ALIGNED, 0.999): (95.3, 90.6, 81.2, 62.5, 25.0, 0, 0, 0),
    (OCS, 0.990): (76.6, 75.0, 75.0, 75.0, 75.0, 50.0, 75.0, 0),
    (OCS, 0.995): (85.9, 84.4, 81.2, 75.0, 75.0, 50.0, 75.0, 0),
    (OCS, 0.999): (95.3, 93.8, 93.8, 87.5, 75.0, 50.0, 75.0, 0),
}


@pytest.mark.parametrize(("fabric", "host"), list(EXPECTED))
def test_the_published_curves(fabric: Fabric, host: float) -> None:
    """Goal: tpu_fabric.md 4.2, all points. Method: `expected` to 0.005, `guaranteed` to the printed digit."""
    odds = CubeOdds(host=host)
    for chips, expected, guaranteed in zip(SIZES, EXPECTED[fabric, host], GUARANTEED[fabric, host], strict=True):
        value, held = expected_share(fabric, 64, chips, odds), guaranteed_share(fabric, 64, chips, odds, 0.97)
        assert value is not None
        assert held is not None
        assert 100.0 * value == pytest.approx(expected, abs=0.0051)
        assert 100.0 * held == pytest.approx(guaranteed, abs=0.0501)


def test_less_than_a_cube() -> None:
    """Goal: closed forms h, h, h, h^2, h^4, h^8 (measures.md). Method: 1 to 32 chips, host availability 0.98."""
    odds = CubeOdds(host=0.98)
    for chips, power in ((1, 1), (2, 1), (4, 1), (8, 2), (16, 4), (32, 8)):
        assert expected_share(OCS, 64, chips, odds) == pytest.approx(0.98**power)
        assert expected_share(BOXES, 64, chips, odds) == pytest.approx(0.98**power)
    assert expected_share(ANY, 64, 1, odds) == pytest.approx(0.98)


def test_racks_and_links_count() -> None:
    """Goal: p = h^16 x rack x links^80. Method: one-cube slices on the fabrics that have cubes."""
    odds = CubeOdds(host=0.99, rack=0.995, in_rack_link=0.9999)
    p = 0.99**16 * 0.995 * 0.9999**80
    for fabric in (OCS, ALIGNED, BOXES):
        assert expected_share(fabric, 64, 64, odds) == pytest.approx(p)
    assert expected_share(ALIGNED, 64, 1024, odds) == pytest.approx(p**16)
    assert expected_share(OCS, 64, 4, odds) == pytest.approx(0.99 * 0.995 * 0.9999**80)
    assert hosts_up_pmf(8, odds).sum() == pytest.approx(1.0)
    mean = float((hosts_up_pmf(8, odds) * range(129)).sum())
    assert mean == pytest.approx(128 * 0.99 * 0.995 * 0.9999**80)


def test_no_closed_form_for_boxes() -> None:
    """Goal: blank, never a guess. Method: static_contiguous above one cube."""
    odds = CubeOdds(host=0.99)
    assert expected_share(BOXES, 64, 1024, odds) is None
    assert guaranteed_share(BOXES, 64, 1024, odds, 0.97) is None
    assert capacity_pmf(BOXES, 64, 128, odds) is None
    assert cubes_for_promise(BOXES, {1024: 3}, odds, 0.97) is None


@pytest.mark.parametrize(("host", "ocs", "static"), [(0.99, 63, 1424), (0.995, 56, 368), (0.999, 51, 96)])
def test_cubes_for_three_slices_of_1024(host: float, ocs: int, static: int) -> None:
    """Goal: issue 2: 63 / 56 / 51 reconfigurable, 1,424 / 368 / 96 static at 97 % of the time. Method: closed form."""
    odds = CubeOdds(host=host)
    assert cubes_for_promise(OCS, {1024: 3}, odds, 0.97) == ocs
    assert cubes_for_promise(ALIGNED, {1024: 3}, odds, 0.97) == static
    needed = cubes_for_promise(ANY, {1024: 3}, odds, 0.97)
    assert needed is not None
    assert binomial_at_least(16 * needed, host, 768) >= 0.97 > binomial_at_least(16 * (needed - 1), host, 768)


def test_promises_of_several_sizes() -> None:
    """Goal: mixed promises are held and no cube is wasted needlessly. Method: check the odds of the blocks by hand."""
    odds = CubeOdds(host=0.995)
    promise = {1024: 2, 256: 3, 64: 5, 32: 3}
    # 3 half cubes fill two whole ones
    assert cubes_for_promise(OCS, promise, odds, 0.97) == next(
        c for c in range(51, 200) if binomial_at_least(c, odds.cube, 32 + 12 + 5 + 2) >= 0.97
    )
    static = cubes_for_promise(ALIGNED, promise, odds, 0.97)
    alone = [cubes_for_promise(ALIGNED, {c: k}, odds, 0.97) for c, k in ((1024, 2), (256, 3), (64, 7))]
    assert static is not None
    assert sum(n for n in alone if n is not None) <= static <= 1.3 * sum(n for n in alone if n is not None)
    assert cubes_for_promise(ALIGNED, {64: 7}, odds, 0.97) == cubes_for_promise(OCS, {64: 7}, odds, 0.97)
    assert cubes_for_promise(OCS, promise, CubeOdds(host=0.995, rack=0.99), 0.97) > 60  # type: ignore[operator]
    shaky = CubeOdds(host=0.995, rack=0.99)
    needed = cubes_for_promise(ANY, {1024: 1}, shaky, 0.97)
    assert needed is not None
    assert hosts_up_pmf(needed, shaky)[256:].sum() >= 0.97 > hosts_up_pmf(needed - 1, shaky)[256:].sum()


def test_promises_out_of_reach() -> None:
    """Goal: not possible is said, not computed for ever. Method: whole pods of 4096 on static blocks at 99 %."""
    assert cubes_for_promise(ALIGNED, {4096: 3}, CubeOdds(host=0.99), 0.97) is None
    assert cubes_for_promise(ALIGNED, {4096: 3, 64: 1}, CubeOdds(host=0.99), 0.97) is None
    assert cubes_for_promise(OCS, {1024: 3}, CubeOdds(host=0.99), 0.97, most=60) is None


@pytest.mark.parametrize(("p", "cubes"), [(0.93, 129), (0.94, 130), (0.945, 131), (0.95, 132), (0.96, 134)])
def test_cubes_held_of_144(p: float, cubes: int) -> None:
    """Goal: results_to_reproduce 4 (130 of 144 at 95 %). Method: binomial."""
    assert cubes_held(144, p, 0.95) == cubes


def test_the_cliff() -> None:
    """Goal: the smallest slice under 50 %. Method: published curves at 99 and 99.9 %."""
    at = {f: {c: expected_share(f, 64, c, CubeOdds(host=0.99)) or 0.0 for c in SIZES} for f in (OCS, ALIGNED)}
    assert cliff_chips(at[ALIGNED]) == 512
    assert cliff_chips(at[OCS]) == 4096
    assert cliff_chips({64: 0.9, 128: 0.5}) is None


@pytest.mark.parametrize(
    ("components", "life", "repair", "crews", "availability"),
    [
        (1024, 1000, 20, 8, 0.390625000),
        (1024, 1000, 20, 20, 0.957764678),
        (1024, 1000, 20, 24, 0.979040394),
        (1024, 1000, 20, 32, 0.980378606),
        (1024, 1000, 20, None, 0.980392157),
        (64, 1000, 24, 2, 0.955161872),
    ],
)
def test_machine_repair(components: int, life: float, repair: float, crews: int | None, availability: float) -> None:
    """Goal: the table of results_to_reproduce 1. Method: M/M/R//N to nine digits."""
    assert machine_repair_availability(components, life, repair, crews) == pytest.approx(availability, abs=6e-10)


def test_checkpoints_and_renewal() -> None:
    """Goal: Young's table, and the productive share near its optimum. Method: minutes as published; a scan."""
    assert young_interval_s(474, 5) == pytest.approx(68.9, abs=0.06)
    assert young_interval_s(33.07, 2) == pytest.approx(11.5, abs=0.06)
    assert young_interval_s(1440, 5) == pytest.approx(120.0)
    best = max(range(10, 400), key=lambda dt: productive_share(dt, 5.0, 10.0, 1 / 474))
    assert best == pytest.approx(young_interval_s(474, 5), rel=0.05)
    assert productive_share(1.0, 0.0, 0.0, 1e-9) == pytest.approx(1.0)
    assert renewal_failures_per_s(10, 90.0, 10.0) == pytest.approx(0.1)


def test_binomial_pieces() -> None:
    """Goal: the two binomial routes agree. Method: incomplete beta against a sum of exact terms."""
    pmf = binomial_pmf(64, 0.85)
    for least in (0, 1, 40, 55, 64):
        assert binomial_at_least(64, 0.85, least) == pytest.approx(math.fsum(pmf[least:].tolist()), abs=1e-12)
    assert binomial_at_least(4, 0.5, 5) == 0.0
    assert binomial_pmf(3, 1.0).tolist() == [0, 0, 0, 1]
    assert binomial_pmf(3, 0.0).tolist() == [1, 0, 0, 0]
