"""A thousand random workloads each: swap, tiers, speculation, sessions, samples, pools with clients or prefixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.serving import test_drafts, test_pools, test_samples, test_sessions, test_swap, test_tiers
from tests.serving.cases import Case
from tests.serving.pool_cases import draw_clients_pool_case, draw_prefix_pool_case
from tests.serving.session_cases import draw_session_case
from tests.serving.test_exactness import ALL, check_cuts, compiled_digests, uncompiled_digests

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("check_seed", "check_totals"),
    [
        pytest.param(test_swap.check_seed, test_swap.check_totals, id="swap"),
        pytest.param(test_tiers.check_seed, test_tiers.check_totals, id="tiers"),
        pytest.param(test_drafts.check_seed, test_drafts.check_totals, id="drafts"),
        pytest.param(test_sessions.check_seed, test_sessions.check_totals, id="sessions"),
        pytest.param(test_samples.check_seed, test_samples.check_totals, id="samples"),
    ],
)
def test_features_agree_on_a_thousand_workloads(
    check_seed: Callable[..., None], check_totals: Callable[[Counter[str], int], None]
) -> None:
    """Goal and method: as their own fast tests, but with whole or with any costs in turn, so that half as many counts
    are asked for. Those of tiers have swap too, those of speculation every other kind, those of sessions and of samples
    all kinds."""
    totals: Counter[str] = Counter()
    for seed in range(ALL):
        check_seed(seed, totals, wholes=(seed // 40 % 2 == 0,))
    check_totals(totals, ALL // 2)


@pytest.mark.parametrize(
    ("draw", "counts"),
    [
        (draw_clients_pool_case, ("timed_out", "cancelled", "rejected", "losses", "kv_transfers", "discarded_tokens")),
        (draw_prefix_pool_case, ("prefix_hits", "host_hits", "kv_transfers", "losses")),
    ],
)
def test_pools_agree_on_a_thousand_workloads(draw: Callable[..., Case], counts: tuple[str, ...]) -> None:
    """Goal and method: as the fast tests of disaggregated replicas with clients, and with shared prefixes; each
    workload runs once, as above, so that half as many counts are asked for."""
    totals: Counter[str] = Counter()
    for seed in range(ALL):
        test_pools.check_seed(seed, totals, draw=draw, wholes=(seed // 40 % 2 == 0,))
    check_cuts(totals, ALL)
    for name in counts:
        assert totals[name] >= ALL // 2, name


def test_plain_python_agrees_on_a_thousand_workloads_of_all_kinds() -> None:
    """Goal: compiled and plain Python kernels give the same bits, whatever the policy. Method: digests of 1,000
    workloads, thirteen kinds in turn (batching, routers, clients, prefixes, pools, swap, tiers, drafts), in
    sessions."""
    expected = compiled_digests(0, ALL, draw_session_case)
    assert uncompiled_digests(0, ALL, "", "draw_session_case") == expected
