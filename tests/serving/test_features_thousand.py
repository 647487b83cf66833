"""A thousand random workloads: swap, tiers, speculation, disaggregation with clients and prefixes, and mixtures."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.serving import test_drafts, test_pools, test_swap, test_tiers
from tests.serving.pool_cases import draw_clients_pool_case, draw_prefix_pool_case
from tests.serving.test_exactness import ALL


@pytest.mark.slow
def test_features_agree_on_a_thousand_workloads() -> None:
    """Goal and method: as their own fast tests, a thousand workloads in all, with whole and with any costs in turn.

    Those of tiers have swap too, those of speculation every other kind; disaggregated ones have clients or prefixes.
    """
    tests = (test_swap, test_tiers, test_drafts)
    totals: list[Counter[str]] = [Counter() for _ in range(5)]
    for seed in range(ALL):
        kind, number = seed % 5, seed // 5
        wholes = (number // 8 % 2 == 0,)
        if kind < len(tests):
            tests[kind].check_seed(number, totals[kind], wholes=wholes)
        else:
            draw = draw_clients_pool_case if kind == 3 else draw_prefix_pool_case
            test_pools.check_seed(number, totals[kind], draw=draw, wholes=wholes)
    for test, found in zip(tests, totals, strict=False):
        test.check_totals(found, ALL // 10)
    assert min(totals[3][name] for name in ("timed_out", "cancelled", "rejected", "losses")) >= ALL // 10
    assert min(totals[4][name] for name in ("prefix_hits", "kv_transfers", "losses")) >= ALL // 10
