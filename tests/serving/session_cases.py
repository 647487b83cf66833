"""Random workloads of users who come back after their answers, on services of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tests.serving.cases import (
    Case,
    draw_case,
    draw_central_case,
    draw_clients_case,
    draw_slo_aware_case,
    draw_static_case,
    run_naive_on,
)
from tests.serving.draft_cases import draw_draft_case
from tests.serving.naive import Naive
from tests.serving.pool_cases import (
    draw_clients_pool_case,
    draw_pool_case,
    draw_prefix_pool_case,
    run_naive_pools_on,
)
from tests.serving.prefix_cases import draw_clients_prefix_case, draw_prefix_case
from tests.serving.swap_cases import draw_swap_case, draw_tier_case
from workloads.serving.batching import Disaggregated

DRAWS: tuple[Callable[..., Case], ...] = (
    draw_case, draw_clients_case, draw_prefix_case, draw_central_case, draw_pool_case, draw_static_case,
    draw_slo_aware_case, draw_clients_prefix_case, draw_swap_case, draw_tier_case, draw_draft_case,
    draw_clients_pool_case, draw_prefix_pool_case,
)  # fmt: skip


def draw_previous(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Each request begins a session, or follows the last one of some session."""
    share = float(rng.choice([0.3, 0.7, 0.95]))
    last: list[int] = []
    previous = np.full(count, -1, dtype=np.int64)
    for k in range(count):
        if last and rng.random() < share:
            session = int(rng.integers(len(last)))
            previous[k], last[session] = last[session], k
        else:
            last.append(k)
    return previous


def draw_session_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed` of one of thirteen kinds, in sessions; many think for no time at all."""
    case, rng = DRAWS[seed % len(DRAWS)](seed, whole=whole), np.random.default_rng([seed, 11])
    return replace(case, requests=replace(case.requests, previous=draw_previous(rng, case.requests.count)))


def run_naive_sessions_on(case: Case) -> Naive:
    """The reference of the kind."""
    pools = isinstance(case.config.batching, Disaggregated)
    return run_naive_pools_on(case) if pools else run_naive_on(case)
