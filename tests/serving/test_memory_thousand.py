"""A thousand random workloads of what moves KV between memories: swap and tiers, alone and together."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.serving import test_swap, test_tiers
from tests.serving.test_exactness import ALL


@pytest.mark.slow
def test_memory_agrees_on_a_thousand_workloads() -> None:
    """Goal and method: as the fast tests of swap and of tiers, each with whole costs and with any costs in turn."""
    swaps: Counter[str] = Counter()
    tiers: Counter[str] = Counter()
    for seed in range(ALL):
        whole = (seed // 40 % 2 == 0,)
        if seed % 2:
            test_swap.check_workload(seed // 2, swaps, whole)
        else:
            test_tiers.check_workload(seed // 2, tiers, whole)
    test_swap.check_totals(swaps, ALL // 4)
    test_tiers.check_totals(tiers, ALL // 4)
