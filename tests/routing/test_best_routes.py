"""Best routes: published shares, proofs by bounds, two independent ways to the same number."""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from topology.routing.best import best_routes, mixed_routes, wild_first_routes
from topology.routing.channels import CHANNELS_PER_CHIP, Torus, torus_of_shape
from topology.routing.faults import dead_links_of_switch, link_numbers
from topology.routing.healthy import best_healthy_load
from topology.routing.optimal import Flows, best_flows
from topology.routing.trees import any_path
from topology.shape import parse_shape

NONE = np.empty(0, dtype=np.int64)


def _switch(text: str, dimension: int, position: int = 5) -> tuple[Torus, NDArray[np.int64]]:
    shape = parse_shape(text)
    torus = torus_of_shape(shape)
    return torus, link_numbers(torus, dead_links_of_switch(shape, dimension, position))


def _check_flows(torus: Torus, links: NDArray[np.int64], flows: Flows) -> None:
    """Every chip gets one unit from every chosen source, over living channels only; loads are those of the flows."""
    heads = torus.head[torus.head >= 0]
    tails = np.flatnonzero(torus.head >= 0) // CHANNELS_PER_CHIP
    for source, flow in zip(flows.classes.sources.tolist(), flows.flow, strict=True):
        moved = flow[torus.head >= 0]
        net = np.bincount(heads, moved, torus.chips) - np.bincount(tails, moved, torus.chips)
        wanted = np.ones(torus.chips)
        wanted[source] = 1.0 - torus.chips
        assert np.allclose(net, wanted, atol=1e-6)
    assert not flows.flow[:, ~torus.alive(links)].any()
    assert flows.load.sum() == pytest.approx(float((flows.classes.weights @ flows.flow).sum()))


@pytest.mark.parametrize(
    ("text", "kept"),
    [("4x4x4", (31 / 32, 31 / 32, 31 / 32)), ("4x4x8", (1.0, 1.0, 15 / 16))],
)
def test_published_shares_of_best_routes(text: str, kept: tuple[float, float, float]) -> None:
    """Goal: 31/32 on 4x4x4; 1, 1, 15/16 on 4x4x8, within 10 s each. Method: linear program, its bound checked apart."""
    for dimension in range(3):
        torus, links = _switch(text, dimension)
        began = time.perf_counter()
        flows = best_flows(torus, links)
        assert time.perf_counter() - began < 10.0
        _check_flows(torus, links, flows)
        assert best_healthy_load(torus) / flows.greatest == pytest.approx(kept[dimension], abs=1e-6)
        assert flows.gap < 1e-6


def test_the_program_without_symmetry_agrees() -> None:
    """Goal: the symmetric program loses nothing. Method: the bound of its prices over all 64 sources, one by one."""
    torus, links = _switch("4x4x4", 1, 9)
    flows = best_flows(torus, links)
    alive = torus.alive(links)
    prices = np.exp(400.0 * (flows.load / flows.greatest - 1.0)) + 1e-9
    unused = np.zeros(torus.head.size)
    total = sum(any_path(torus.head, alive, prices, s, 0.0, unused, np.empty(0), 0.0) for s in range(torus.chips))
    assert total / prices[alive].sum() <= flows.greatest * (1 + 1e-9)


@pytest.mark.parametrize("text", ["4x4x8_twisted", "4x8x8_twisted"])
def test_twisted_slices_lose_little(text: str) -> None:
    """Goal: a twisted slice keeps the published share and more. Method: linear program, each dimension's switch."""
    torus, links = _switch(text, 0)
    assert 0.922 <= best_healthy_load(torus) / best_routes(torus, links).greatest <= 1.0 + 1e-9


@pytest.mark.parametrize(("text", "dimension"), [("4x4x4", 0), ("4x4x8", 2), ("8x8x8", 1)])
def test_mixing_agrees_with_the_program(text: str, dimension: int) -> None:
    """Goal: the approximation is one. Method: its gap by its own bound, and what the cut allows: 31/32 or 15/16."""
    torus, links = _switch(text, dimension)
    flows = mixed_routes(torus, links, gap=0.005)
    _check_flows(torus, links, flows)
    assert -1e-9 <= flows.gap <= 0.005
    exact = 31 / 32 if text == "4x4x4" else 15 / 16
    assert exact * 0.995 <= best_healthy_load(torus) / flows.greatest <= exact + 1e-9


@pytest.mark.parametrize(("text", "dimension"), list(product(["4x4x4", "4x4x8", "4x4x8_twisted"], range(3))))
def test_wild_first_reaches_the_best(text: str, dimension: int) -> None:
    """Goal: one extra hop per dimension is enough for one dead switch. Method: near the bound of any routes."""
    torus, links = _switch(text, dimension)
    found = wild_first_routes(torus, links)
    assert found is not None
    assert found.gap <= 0.0051
    any_routes = best_flows(torus, links)
    assert any_routes.bound * (1 - 1e-9) <= found.greatest <= any_routes.greatest * 1.006
    assert best_healthy_load(torus) / found.greatest >= 0.922


def test_wild_first_on_8x4x4_near_the_published_mean() -> None:
    """Goal: 98.8 % of fault-free on 8x4x4 under one or two lost links. Method: mean over single links and switches of
    each dimension; the published mean is of a cycle-level model, so within one point."""
    shape = parse_shape("4x4x8")
    torus = torus_of_shape(shape)
    kept = []
    for dimension in range(3):
        for links in ([((1, 2, 3), dimension)], dead_links_of_switch(shape, dimension, 5)):
            found = wild_first_routes(torus, link_numbers(torus, links))
            assert found is not None
            kept.append(best_healthy_load(torus) / found.greatest)
    assert sum(kept) / len(kept) == pytest.approx(0.988, abs=0.01)


def test_irregular_faults_by_sweeping() -> None:
    """Goal: faults without symmetry have routes with a stated gap. Method: two links of 4x4x8; the cut allows 31/32."""
    torus = torus_of_shape(parse_shape("4x4x8"))
    links = link_numbers(torus, [((1, 2, 3), 2), ((0, 1, 1), 0)])
    flows = best_routes(torus, links)
    _check_flows(torus, links, flows)
    assert 0.0 <= flows.gap <= 0.02
    assert 0.95 <= best_healthy_load(torus) / flows.greatest <= 31 / 32 + 1e-9
    wild = wild_first_routes(torus, links)
    assert wild is not None
    assert wild.bound * (1 - 1e-9) <= wild.greatest <= wild.bound * 1.05


@pytest.mark.slow
def test_8x8x8_by_linear_program_within_its_time() -> None:
    """Goal: 15/16 on 8x8x8 within 90 s. Method: the clock, the flows and the bound."""
    torus, links = _switch("8x8x8", 0)
    began = time.perf_counter()
    flows = best_flows(torus, links)
    assert time.perf_counter() - began < 90.0
    _check_flows(torus, links, flows)
    assert best_healthy_load(torus) / flows.greatest == pytest.approx(15 / 16, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "dimension"), list(product(["8x8x16", "16x16x16"], range(3))))
def test_large_slices_by_mixing(text: str, dimension: int) -> None:
    """Goal: gap at most 2 % within 5 minutes, and at least the published 92.2 %. Method: the clock and the bound."""
    torus, links = _switch(text, dimension)
    began = time.perf_counter()
    flows = best_routes(torus, links)
    assert time.perf_counter() - began < 300.0
    assert flows.gap <= 0.02
    _check_flows(torus, links, flows)
    assert best_healthy_load(torus) / flows.greatest >= 0.922
