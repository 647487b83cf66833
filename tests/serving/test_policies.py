"""Every policy is exact: macro, single, looked-at and uncompiled runs agree, and so does the naive reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.serving import cases
from tests.serving.cases import Case
from tests.serving.test_exactness import ALL, check_workload, compiled_digests, uncompiled_digests

FAST, PLAIN = 40, 8


@dataclass(frozen=True)
class Policy:
    """How its workloads are drawn, and which counts they must reach per workload, so that the comparison has teeth."""

    draw: Callable[..., Case]
    least: dict[str, float]

    def check(self, seeds: range) -> None:
        """Compare all ways of running the workloads `seeds`, twice each (whole costs and any), and their counts."""
        totals: Counter[str] = Counter()
        for seed in seeds:
            check_workload(seed, totals, self.draw)
        for name, per_workload in self.least.items():
            assert totals[name] >= per_workload * len(seeds), (name, totals[name])


POLICIES = {
    "static": Policy(cases.draw_static_case, {"losses": 1, "completed": 10, "padded_tokens": 50, "refused": 0.1}),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_workloads_agree(policy: str) -> None:
    """Goal: macro steps change nothing, and the rules are those of the reference. Method: random workloads with memory
    pressure, losses and slowdowns in macro steps, in single steps, looked at, and by the naive reference."""
    POLICIES[policy].check(range(FAST))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_a_thousand_workloads_agree(policy: str) -> None:
    """Goal and method: as above, for 1,000 workloads."""
    POLICIES[policy].check(range(ALL))


@pytest.mark.parametrize("policy", POLICIES)
def test_plain_python_agrees(policy: str) -> None:
    """Goal: the same code runs uncompiled with the same bits. Method: some workloads under NUMBA_DISABLE_JIT=1."""
    draw = POLICIES[policy].draw
    assert uncompiled_digests(0, PLAIN, draw=draw.__name__) == compiled_digests(0, PLAIN, draw)
