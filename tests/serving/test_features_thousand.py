"""A thousand random workloads of swap, tiers and speculation, alone and together."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.serving import test_drafts, test_swap, test_tiers
from tests.serving.test_exactness import ALL


@pytest.mark.slow
def test_features_agree_on_a_thousand_workloads() -> None:
    """Goal and method: as their own fast tests, a thousand workloads in all, with whole and with any costs in turn.

    Those of tiers have swap too, those of speculation every other kind.
    """
    tests = (test_swap, test_tiers, test_drafts)
    totals: list[Counter[str]] = [Counter() for _ in tests]
    for seed in range(ALL):
        kind, number = seed % 3, seed // 3
        tests[kind].check_workload(number, totals[kind], (number // 8 % 2 == 0,))
    for test, found in zip(tests, totals, strict=True):
        test.check_totals(found, ALL // 6)
