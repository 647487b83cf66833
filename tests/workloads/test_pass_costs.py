"""The table that the token kernel eats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workloads.pass_costs import DENSE_TOKENS, GRID_RATIO, synthetic_pass_costs, token_grid


def test_grid_is_dense_then_geometric() -> None:
    """Goal: every count to 4096, then steps of 5 % to at least the largest pass. Method: direct."""
    grid = token_grid(1_000_000)
    assert np.array_equal(grid[:DENSE_TOKENS], np.arange(1, DENSE_TOKENS + 1))
    assert grid[-1] >= 1_000_000
    assert np.all(grid[DENSE_TOKENS:] <= np.ceil(grid[DENSE_TOKENS - 1 : -1] * GRID_RATIO))
    assert token_grid(1).size == DENSE_TOKENS


def test_time_is_affine_in_the_context_and_goes_on_beyond_the_grid() -> None:
    """Goal: the formula of the module. Method: straight-line costs, on, between and beyond grid points."""
    costs = synthetic_pass_costs(max_tokens=10_000, pair_s=1e-12)
    assert costs.decode_s(3, 500) == pytest.approx(4e-3 + 3e-3 + 3 * 2.5e-6 + 500e-9)
    assert costs.decode_s(300, 500) == pytest.approx(7e-3 + 300 * 2.5e-6 + 500e-9)
    for tokens in (1, 4096, 5001, 10_000, 50_000):
        pairs = tokens * (tokens + 1) / 2
        assert costs.prefill_s(tokens) == pytest.approx(7e-3 + 2.5e-6 * tokens + 1e-12 * pairs)


def test_broken_tables_are_refused() -> None:
    """Goal: a wrong table never reaches the kernel. Method: one fault each."""
    costs = synthetic_pass_costs()
    with pytest.raises(ValueError, match="start at 1"):
        replace(costs, grid_tokens=costs.grid_tokens + 1)
    grid = costs.grid_tokens.copy()
    grid[5:] += 1
    with pytest.raises(ValueError, match="every count"):
        replace(costs, grid_tokens=grid)
    with pytest.raises(ValueError, match="decode_parts_s"):
        replace(costs, decode_parts_s=costs.decode_parts_s[:, :3])
    with pytest.raises(ValueError, match="prefill_parts_s"):
        replace(costs, prefill_parts_s=-costs.prefill_parts_s)
    with pytest.raises(ValueError, match="context token"):
        replace(costs, prefill_pair_s=float("nan"))
    with pytest.raises(ValueError, match="at least one"):
        replace(costs, kv_read_s_per_token=np.zeros(1))
