"""Users who come back after their answers: equal in every way of running, and a closed network of queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import factorial

import numpy as np
import pytest
from scipy.special import stdtrit

from sim.streams import Streams
from tests.serving.cases import run_kernel_on
from tests.serving.session_cases import draw_session_case, run_naive_sessions_on
from tests.serving.test_exactness import check_cuts, check_workload, compiled_digests, uncompiled_digests
from topology.errors import InputError
from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests, joined
from workloads.serving.batching import ContinuousBatching
from workloads.serving.capacity import capacity_requests_per_s
from workloads.serving.clients import Clients, Patience
from workloads.serving.service import Service, ServiceConfig

FAST = 39
SECOND = 10**9
ALONE = ServiceConfig(
    costs=synthetic_pass_costs(
        fixed_s=1e-9, per_token_s=1e-6, weights_s=0.0, collectives_s_per_token=0.0, kv_read_s_per_token=0.0
    ),
    blocks=100_000,
    batching=ContinuousBatching(max_batch=1),
    record_requests=1_000_000,
)
"""One server: a prompt of n tokens and one token of answer take n microseconds and a nanosecond."""
USERS, SERVICE_S, THINK_S = 6, 1e-3, 4e-3
check_seed = partial(check_workload, draw=draw_session_case, reference=run_naive_sessions_on)


def check_totals(totals: Counter[str], workloads: int) -> None:
    """What the workloads must have met."""
    check_cuts(totals, workloads)
    assert totals["completed"] >= 10 * workloads
    for name in ("losses", "evictions", "timed_out", "cancelled"):
        assert totals[name] >= workloads // 2, name
    assert totals["rejected"] + totals["refused"] >= workloads // 2


def test_sessions_agree_in_every_way_of_running() -> None:
    """Goal: turns that wait for answers never change a result. Method: 39 random workloads of thirteen kinds (clients,
    prefixes, a central queue, pools, static batches, swap, tiers, drafts, ...) in macro steps, single steps, looked at
    40 times, and by the naive reference; think times of 0 ns among them."""
    totals: Counter[str] = Counter()
    for seed in range(FAST):
        check_seed(seed, totals)
    check_totals(totals, FAST)


def test_plain_python_agrees_on_sessions() -> None:
    """Goal: compiled and plain Python kernels give the same bits. Method: digests of 13 workloads from both."""
    assert uncompiled_digests(0, 13, "", "draw_session_case") == compiled_digests(0, 13, draw_session_case)


def closed_network(replication: int, turns: int) -> Requests:
    """`USERS` users for ever: exponential think times, service times exponential to a microsecond."""
    streams = Streams(11, replication)
    draws = [-np.log1p(-streams.uniforms(name, 0, USERS * turns)) for name in ("think", "work")]
    think_ns, prompts = np.rint(draws[0] * THINK_S * 1e9), 1 + np.floor(draws[1] * SERVICE_S * 1e6)
    planned = np.cumsum(think_ns.reshape(USERS, turns), axis=1).astype(np.int64)
    user, turn = np.divmod(np.argsort(planned, axis=None, kind="stable"), turns)
    place = np.zeros((USERS, turns), dtype=np.int64)
    place[user, turn] = np.arange(user.size)
    previous = np.where(turn > 0, place[user, turn - 1], -1)
    ones = np.ones(user.size, dtype=np.int64)
    return Requests(
        planned[user, turn], prompts.reshape(USERS, turns)[user, turn].astype(np.int64), ones, previous=previous
    )


def machine_repair(work_s: float) -> tuple[float, float]:
    """Throughput and mean response time of M/M/1//N: `USERS` machines that run and one who repairs them."""
    weights = [factorial(USERS) / factorial(USERS - n) * (work_s / THINK_S) ** n for n in range(USERS + 1)]
    per_s = (1 - weights[0] / sum(weights)) / work_s
    return per_s, USERS / per_s - THINK_S


def test_closed_network_is_the_machine_repair_model() -> None:
    """Goal: users who wait for answers make a closed network: M/M/1//N. Method: throughput and mean response time of
    ten replications of 6 users and some 10,000 turns against the closed form (Kleinrock, Queueing Systems 1, 3.8),
    interval t(0.9995), within 2 and 4 %; on each path, to the nanosecond, users = those in the system + those who
    think, at any time (so R = N / X - Z, the interactive response time law: Denning and Buzen 1978)."""
    horizon_ns = 12 * SECOND
    rates, responses = [], []
    for replication in range(10):
        requests = closed_network(replication, 3500)
        measures = Service(ALONE, requests).finish(horizon_ns)
        record = measures.record
        assert record is not None
        assert requests.previous is not None
        came, done = record.arrival_ns >= 0, record.status == 1
        later = np.flatnonzero(requests.previous >= 0)
        think_ns = np.zeros(requests.count, dtype=np.int64)
        think_ns[requests.previous[later]] = requests.arrival_ns[later] - requests.arrival_ns[requests.previous[later]]
        thought = np.minimum(think_ns, horizon_ns - record.finish_ns)[done].sum()
        first = requests.arrival_ns[requests.previous < 0].sum()
        assert measures.count("in_system_ns") + thought + first == USERS * horizon_ns
        assert came.sum() == measures.offered > 9_000
        rates.append(measures.requests_per_s)
        responses.append((record.finish_ns - record.arrival_ns)[done].mean() * 1e-9)
    work_s = 1e-6 / -np.expm1(-1e-6 / SERVICE_S) + 1e-9  # the mean of the geometric number of microseconds
    for found, formula, within in zip((rates, responses), machine_repair(work_s), (0.02, 0.04), strict=True):
        half_width = float(stdtrit(9, 0.9995)) * np.std(found, ddof=1) / np.sqrt(10)
        assert half_width < within * formula
        assert abs(np.mean(found) - formula) <= half_width


def test_a_turn_comes_when_its_user_has_thought() -> None:
    """Goal: the next turn counts from the end of the answer, from giving up, or from a refusal; none comes after the
    window of arrivals. Method: by hand, one server of some milliseconds."""
    arrivals, prompts = np.array([0, 0, 3, 5, 9]) * 1_000_000, np.array([2000, 4000, 1000, 1000, 1000])
    ones, previous = np.ones(5, dtype=np.int64), np.array([-1, -1, 0, 1, 2])
    requests = Requests(arrivals, prompts, ones, previous=previous)
    record = Service(ALONE, requests).finish().record
    assert record is not None
    assert record.arrival_ns.tolist() == [0, 0, 5_000_001, -1, -1]  # 6.000002 + 5 and 7.000003 + 6 ms are too late
    assert record.finish_ns.tolist() == [2_000_001, 6_000_002, 7_000_003, -1, -1]
    patient = replace(ALONE, clients=Clients(patience=Patience(limit_s=1e-3, until="admission")))
    record = Service(patient, requests).finish().record
    assert record is not None
    assert record.status.tolist() == [1, 6, 1, 1, 0]
    assert record.arrival_ns.tolist() == [0, 0, 5_000_001, 6_000_000, -1]  # (given up at 1 ms) + 5 ms
    record = Service(replace(ALONE, blocks=130), requests).finish().record
    assert record is not None
    assert record.status.tolist() == [1, 3, 1, 1, 0]
    assert record.arrival_ns.tolist() == [0, 0, 5_000_001, 5_000_000, -1]


def test_capacity_is_that_of_the_open_loop() -> None:
    """Goal: users who wait do not hide what is too much. Method: capacity with and without waiting is the same; the
    same load takes fewer requests when users wait."""
    requests = closed_network(0, 300)
    limited = replace(ALONE, ttft_limit_s=5e-3, record_requests=0)
    closed, opened = (capacity_requests_per_s(limited, each) for each in (requests, requests.open_loop))
    assert closed == opened > 0


def test_littles_law_with_sessions() -> None:
    """Goal: the integral of the number in the system is the sum of the times in it. Method: recorded paths."""
    for seed in range(26):
        measures = run_kernel_on(draw_session_case(seed))
        record = measures.record
        assert record is not None
        inside = (record.arrival_ns >= 0) & (record.status != 3)
        spent = int((record.finish_ns - record.arrival_ns)[inside].sum())
        assert spent == measures.count("in_system_ns") == sum(measures.ledger_ns)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: three([-1, 0]), "not every request says"),
        (lambda: three([-1, 1, 0]), "request 1: follows no request before it"),
        (lambda: three([-1, -2, 0]), "request 1: follows no request before it"),
        (lambda: three([-1, 0, 0]), "request 0: is followed by two"),
        (lambda: three([-1, 0, 1]).picked(np.array([1]), np.array([0])), "follow each other"),
        (lambda: joined([three([-1, 0, 1])] * 2), "come all at once"),
        (lambda: Service(ALONE, [three([-1, -1, -1]).first(1), three([-1, 0, 1])]).finish(), "only requests"),
    ],
)
def test_what_can_not_be_is_refused(make: Callable[[], object], match: str) -> None:
    """Goal: impossible sessions say what is wrong. Method: one of each."""
    with pytest.raises((ValueError, InputError), match=match):
        make()


def three(previous: list[int]) -> Requests:
    """Three requests that follow each other so."""
    ones = np.ones(3, dtype=np.int64)
    return Requests(np.arange(3) * SECOND, ones, ones, previous=np.array(previous))
