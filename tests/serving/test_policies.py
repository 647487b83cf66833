"""Every policy is exact: macro, single, looked-at and uncompiled runs agree, and so does the naive reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.serving import cases
from tests.serving.cases import Case, run_kernel_on
from tests.serving.test_exactness import ALL, check_cuts, check_workload, compiled_digests, digest, uncompiled_digests
from workloads.serving import service as service_module

FAST, PLAIN, PIECES = 40, 8, 20


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
        check_cuts(totals, len(seeds))
        for name, per_workload in self.least.items():
            assert totals[name] >= per_workload * len(seeds), (name, totals[name])


POLICIES = {
    "central": Policy(cases.draw_central_case, {"losses": 1, "completed": 15, "evictions": 1, "refused": 0.1}),
    "clients": Policy(
        cases.draw_clients_case,
        {
            "losses": 1,
            "completed": 8,
            "evictions": 0.3,
            "rejected": 1,
            "timed_out": 1,
            "cancelled": 2,
            "attempts_timed_out": 5,
            "attempts_rejected": 5,
            "discarded_tokens": 5,
        },
    ),
    "slo_aware": Policy(cases.draw_slo_aware_case, {"losses": 1, "completed": 15, "evictions": 0.5, "refused": 0.1}),
    "static": Policy(cases.draw_static_case, {"losses": 1, "completed": 10, "padded_tokens": 50, "refused": 0.1}),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_workloads_agree(policy: str) -> None:
    """Goal: macro steps change nothing, and the rules are those of the reference. Method: random workloads with memory
    pressure, losses and slowdowns in macro steps, in single steps, looked at, and by the naive reference."""
    POLICIES[policy].check(range(FAST))


@pytest.mark.parametrize("policy", POLICIES)
def test_pieces_of_work_change_nothing(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: the kernel may return in the middle. Method: pieces of one to three decisions against the usual ones."""
    for seed in range(PIECES):
        case = POLICIES[policy].draw(seed, whole=False)
        monkeypatch.setattr(service_module, "WORK_COMPILED", 100_000)
        expected = digest(run_kernel_on(case))
        monkeypatch.setattr(service_module, "WORK_COMPILED", 1 + seed % 3)
        assert digest(run_kernel_on(case)) == expected


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
