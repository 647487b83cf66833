"""The token kernel is exact: every way of running a workload gives the same integers, and a naive reference agrees."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.serving.cases import Case, draw_case, no_check, run_kernel_on, run_naive_on
from tests.serving.naive import Naive, Request
from workloads.serving import fields as f
from workloads.serving.measures import RequestRecord, ServiceMeasures
from workloads.serving.service import Service

ROOT = Path(__file__).resolve().parents[2]
FAST, ALL = 150, 1000
LOOKS = 40
ALIKE = (
    "tokens", "steps", "prompt_tokens", "recomputed_tokens", "evictions", "losses", "kv_tokens_lost", "padded_tokens",
    "offered", "completed", "refused", "rejected", "timed_out", "cancelled", "attempts", "attempts_rejected",
    "attempts_timed_out", "discarded_tokens",
)  # fmt: skip
"""Counts that the reference keeps too."""
ENDS = ("completed", "unfinished", "refused", "rejected", "timed_out", "cancelled")
"""Offered requests end in one of these ways."""


def digest(measures: ServiceMeasures) -> str:
    """One text for everything that a run measured, to the last bit."""
    record = measures.record
    assert record is not None
    parts = [repr(measures.totals), repr(measures.ledger_ns), repr(measures.caught_ledger_ns), measures.verdict.value]
    parts += [repr((measures.window_ns, measures.replica_up_ns, measures.queue_end, measures.never_empty))]
    arrays = [measures.histograms, *(getattr(record, column.name) for column in fields(RequestRecord))]
    return hashlib.sha256("|".join(parts).encode() + b"".join(array.tobytes() for array in arrays)).hexdigest()


def check_ledger(measures: ServiceMeasures) -> None:
    """Every request's ledger sums to its time in the system; the totals are the sums of the requests."""
    record = measures.record
    assert record is not None
    inside = (record.status != f.REFUSED) & (record.status != f.FAILED_ROW)
    spent = np.where(inside, record.finish_ns - record.arrival_ns, 0)
    assert np.array_equal(record.ledger_ns.sum(axis=1), spent)
    assert (record.ledger_ns >= -8).all(), "only rounding may take a residual below zero, by nanoseconds"
    assert tuple(record.ledger_ns.sum(axis=0).tolist()) == measures.ledger_ns
    assert tuple(record.ledger_ns[record.caught].sum(axis=0).tolist()) == measures.caught_ledger_ns
    assert sum(measures.ledger_ns) == measures.count("time_ns") == measures.count("in_system_ns")


def check_conservation(measures: ServiceMeasures, case: Case) -> None:
    """Tokens delivered are those that requests have; nobody gets more than asked; every request is accounted for."""
    record = measures.record
    assert record is not None
    assert measures.count("tokens") == record.tokens.sum() + measures.count("discarded_tokens")
    done = record.status == f.COMPLETED
    asked = case.requests.output_tokens[: done.size]
    assert np.array_equal(record.tokens[done], asked[done])
    assert (record.tokens <= asked).all()
    offered = sum(measures.count(name) for name in ENDS)
    assert offered == measures.offered == (record.arrival_ns >= 0).sum()
    of_decodes = getattr(case.config.batching, "decode_blocks", None) or 0
    assert measures.count("most_blocks") <= max(case.config.blocks, of_decodes)
    gaps, expected = measures.histograms[f.H_ITL].sum(), (record.tokens[record.tokens > 0] - 1).sum()
    assert expected <= gaps <= expected + measures.count("discarded_tokens")


def check_against_naive(measures: ServiceMeasures, naive: Naive, case: Case) -> None:
    """Every request has the same life in both, the counts agree, and so do all gaps between tokens."""
    record = measures.record
    assert record is not None
    for request in naive.requests[: record.arrival_ns.size]:
        k = request.index
        assert record.status[k] == request.status
        if request.status in (f.REFUSED, f.FAILED_ROW):
            continue
        assert record.attempts[k] == request.attempt
        theirs = (request.first, request.finish, request.sent, request.evictions, request.caught)
        ours = (record.first_token_ns[k], record.finish_ns[k], record.tokens[k], record.evictions[k], record.caught[k])
        assert tuple(int(value) for value in ours) == theirs
        if request.status != f.UNFINISHED:
            ledger = {name: int(ns) for name, ns in zip(f.LEDGER, record.ledger_ns[k], strict=True) if ns}
            assert ledger == {name: ns for name, ns in request.ledger.items() if ns}
    for name in ALIKE:
        assert measures.count(name) == naive.count[name], name
    check_histograms(measures, naive)
    in_time = [request for request in naive.requests if request.status == f.COMPLETED and is_in_time(request, naive)]
    assert measures.count("in_time") == len(in_time)
    assert measures.count("in_time_tokens") == sum(request.output for request in in_time)


def is_in_time(request: Request, naive: Naive) -> bool:
    """Both limits met; a request of one token has no TPOT."""
    late = request.first - request.arrival > naive.rules.ttft_limit_ns
    slow = request.finish - request.first > naive.rules.tpot_limit_ns * (request.output - 1)
    return not (late or slow)


def bins(values: Iterable[int]) -> Counter[int]:
    """Histogram of whole numbers by the rule of the bins, said in another way."""
    counted: Counter[int] = Counter()
    for value in values:
        shift = max(0, value.bit_length() - 8)
        counted[shift * 128 + (value >> shift)] += 1
    return counted


def check_histograms(measures: ServiceMeasures, naive: Naive) -> None:
    """TTFT, TPOT, ITL, end to end hold exactly the reference's values, binned."""
    done = [request for request in naive.requests if request.status == f.COMPLETED]
    started = [request for request in naive.requests if request.first >= 0]
    expected = {
        f.H_TTFT: bins(request.first - request.arrival for request in started),
        f.H_TPOT: bins((q.finish - q.first) // (q.output - 1) for q in done if q.output > 1),
        f.H_ITL: bins(naive.gaps.elements()),
        f.H_END_TO_END: bins(request.finish - request.arrival for request in done),
    }
    for row, counted in expected.items():
        places = np.nonzero(measures.histograms[row])[0]
        assert {int(k): int(measures.histograms[row, k]) for k in places} == dict(counted)


def check_workload(
    seed: int,
    totals: Counter[str],
    draw: Callable[..., Case] = draw_case,
    *,
    counts: Sequence[str] = (),
    check: Callable[[Service], None] = no_check,
    reference: Callable[[Case], Naive] = run_naive_on,
    wholes: tuple[bool, ...] = (True, False),
) -> None:
    """All checks for one workload, with whole costs (against the reference) and with any costs.

    `counts` are those that this kind of workload has beside `ALIKE`; `check` is made at every look.
    """
    for whole in wholes:
        case = draw(seed, whole=whole)
        macro = run_kernel_on(case)
        assert digest(macro) == digest(run_kernel_on(case, step_by_step=True))
        assert digest(macro) == digest(run_kernel_on(case, looks=LOOKS, check=check))
        check_ledger(macro)
        check_conservation(macro, case)
        totals.update(macro.totals)
        if whole:
            naive = reference(case)
            check_against_naive(macro, naive, case)
            for name in counts:
                assert macro.count(name) == naive.count[name], name


def check_cuts(totals: Counter[str], workloads: int) -> None:
    """Requests were cut: by losses at least one a workload, by the horizon at least two."""
    assert totals["caught"] >= workloads
    assert totals["unfinished"] >= 2 * workloads


def test_macro_single_looked_at_and_reference_agree() -> None:
    """Goal: macro steps change nothing. Method: random workloads with evictions, losses and slowdowns are run in macro
    steps, in single steps, looked at 40 times, and by the naive reference; every integer must agree."""
    totals: Counter[str] = Counter()
    for seed in range(FAST):
        check_workload(seed, totals)
    assert totals["evictions"] >= FAST
    assert totals["losses"] >= FAST
    assert totals["completed"] > 10 * FAST
    assert totals["refused"] > 0
    check_cuts(totals, FAST)


@pytest.mark.slow
def test_a_thousand_workloads_agree() -> None:
    """Goal and method: as above, for 1,000 workloads with at least 1,000 evictions and 500 losses."""
    totals: Counter[str] = Counter()
    for seed in range(ALL):
        check_workload(seed, totals)
    assert totals["evictions"] >= 1000
    assert totals["losses"] >= 500
    check_cuts(totals, ALL)


def uncompiled_digests(first: int, last: int, before: str = "", draw: str = "draw_case") -> list[str]:
    """Digests of workloads first to last - 1, run in a fresh interpreter without compilation, after a line of code."""
    code = (
        "import numba; from tests.serving.test_exactness import *; from tests.serving.cases import *\n"
        "from tests.serving.prefix_cases import *; from tests.serving.pool_cases import *\n"
        "from tests.serving.swap_cases import *; from tests.serving.draft_cases import *\n"
        "from tests.serving.sample_cases import *\n"
        f"from tests.serving.session_cases import *\n{before}\n"
        "assert numba.config.DISABLE_JIT\n"
        f"for seed in range({first}, {last}): print(digest(run_kernel_on({draw}(seed, whole=seed % 2 == 0))))\n"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def compiled_digests(first: int, last: int, draw: Callable[..., Case] = draw_case) -> list[str]:
    """The same, compiled."""
    return [digest(run_kernel_on(draw(seed, whole=seed % 2 == 0))) for seed in range(first, last)]


def test_plain_python_agrees() -> None:
    """Goal: the same code runs uncompiled with the same bits. Method: some workloads under NUMBA_DISABLE_JIT=1, with
    warnings (integer overflow among them) as errors."""
    assert uncompiled_digests(0, 40) == compiled_digests(0, 40)


def test_plain_python_reads_beside_no_array() -> None:
    """Goal: compiled code, which does not check indices, reads nothing beside an array. Method: workloads of all kinds
    in plain Python, over arrays that refuse an index below 0 or beyond the end."""
    check = "from tests.serving.checked import check_indices; check_indices()"
    draws = "draw_static_case draw_central_case draw_slo_aware_case draw_clients_case draw_pool_case draw_sample_case"
    for (
        draw
    ) in f"{draws} draw_clients_prefix_case draw_swap_case draw_tier_case draw_draft_case draw_session_case".split():
        few = 13 if draw == "draw_session_case" else 4
        assert len(uncompiled_digests(0, few, check, draw)) == few


def test_sums_for_own_reads_may_start_anew() -> None:
    """Goal: the sums behind own KV reads restart after many steps without a trace. Method: in plain Python they restart
    after every five steps; the digests stay."""
    anew = "from workloads.serving import decisions; decisions.REBASE_STEPS = 5"
    assert uncompiled_digests(40, 60, anew) == compiled_digests(40, 60)


@pytest.mark.slow
def test_plain_python_agrees_on_a_thousand_workloads() -> None:
    """Goal and method: as above, for 1,000 workloads."""
    assert uncompiled_digests(0, ALL) == compiled_digests(0, ALL)
