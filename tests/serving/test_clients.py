"""Clients by hand: patience, retries, cancellations, priorities, limits at the door; and a retry storm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sim.streams import Streams
from tests.serving.naive_clients import draw
from tests.serving.retry_storm import AGAIN, DOOR, ONCE, SLOW_UNTIL_S, served_by_second
from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving.batching import ContinuousBatching
from workloads.serving.clients import Admission, Cancellations, Clients, Patience, Retries, check_shares
from workloads.serving.router import CentralQueue, SloAware
from workloads.serving.service import Service, ServiceConfig

COSTS = synthetic_pass_costs()
ALONE = ServiceConfig(costs=COSTS, blocks=4000, batching=ContinuousBatching(max_batch=1), record_requests=100)
SECOND = 10**9


def uniforms(name: str, block: int, count: int) -> np.ndarray:
    """Draws of the requests."""
    return Streams(3, 0).uniforms(name, block, count)


def at_once(count: int, output: int = 500) -> Requests:
    """Requests that arrive together; one alone takes some seconds."""
    return Requests(np.zeros(count, dtype=np.int64), np.full(count, 64), np.full(count, output))


def test_a_storm_outlives_its_trigger() -> None:
    """Goal: retries make a slowdown of ten seconds last (metastable), patience alone does not, and a limit at the door
    ends it. Method: shares of answered requests by ten seconds of arrival, on the same requests."""
    after = SLOW_UNTIL_S // 10 + 1
    assert served_by_second(ONCE, Admission(), slow=True)[after:].min() > 0.95
    assert served_by_second(AGAIN, Admission(), slow=False).min() > 0.95
    assert served_by_second(AGAIN, Admission(), slow=True)[after:].mean() < 0.1
    assert served_by_second(AGAIN, DOOR, slow=True)[after:].min() > 0.95


def test_who_waits_too_long_leaves() -> None:
    """Goal: a request leaves the queue at its limit, to the nanosecond; one that runs stays. Method: two at once."""
    config = replace(ALONE, clients=Clients(patience=Patience(limit_s=0.5, until="admission")))
    measures = Service(config, at_once(2)).finish()
    record = measures.record
    assert record is not None
    assert record.status.tolist() == [1, 6]
    assert record.finish_ns[1] == SECOND // 2
    assert measures.ledger_s_per_request()["router_queue"] == pytest.approx(0.25)
    assert (measures.count("timed_out"), measures.count("completed"), measures.offered) == (1, 1, 2)


def test_who_runs_leaves_at_the_next_boundary() -> None:
    """Goal: an answer given up in mid-flight frees its place at the end of the step. Method: the next request starts
    there, and the tokens delivered stay counted."""
    config = replace(ALONE, clients=Clients(patience=Patience(limit_s=1.0, until="answer")))
    service = Service(config, Requests(np.array([0, SECOND - 1]), np.array([64, 64]), np.array([500, 10])))
    measures = service.finish()
    record = measures.record
    assert record is not None
    step_ns = round(COSTS.decode_s(1, 100) * 1e9)
    assert SECOND <= record.finish_ns[0] < SECOND + step_ns
    assert record.first_token_ns[1] == record.finish_ns[0] + round(COSTS.prefill_s(64) * 1e9)
    assert record.tokens[0] > 0
    assert measures.count("tokens") == record.tokens.sum()


def test_attempts_back_off() -> None:
    """Goal: attempt k + 1 comes backoff x 2^(k - 1) x (1 - jitter x u) after the end of attempt k. Method: a request
    that never gets in; its end is rebuilt from the named stream and the hash."""
    retries = Retries(attempts=3, backoff_s=0.25, jitter=0.5)
    config = replace(ALONE, clients=Clients(patience=Patience(limit_s=0.5), retries=retries))
    measures = Service(config, at_once(2, output=5000), uniforms).finish()
    record = measures.record
    assert record is not None
    seed = int(uniforms("serving.retries", 0, 2)[1] * 2**53)
    waits_ns = [int(SECOND // 4 * 2 ** (k - 1) * (1 - 0.5 * draw(seed, k) / 2**32)) for k in (1, 2)]
    assert record.finish_ns[1] == 3 * SECOND // 2 + sum(waits_ns)
    assert record.attempts.tolist() == [1, 3]
    assert measures.count("attempts_timed_out") == 3
    assert measures.ledger_s_per_request()["client_backoff"] * 2 == pytest.approx(sum(waits_ns) * 1e-9)


def test_limits_at_the_door() -> None:
    """Goal: rejected at once, by length of the queue, by outstanding, by the predicted time to first token. Method: ten
    at once against each limit; the fourth waits for three answers of four steps, one after the other."""
    steps, kv_s = 3 * 4, float(COSTS.kv_read_s_per_token[1])
    predicted_s = COSTS.prefill_s(64 * 4) + steps * COSTS.decode_s(1, 0) + kv_s * steps * (steps - 1) / 2
    for admission, taken in (
        (Admission(max_queue=3), 3),
        (Admission(max_outstanding=4), 4),
        (Admission(max_predicted_ttft_s=predicted_s * 1.0001), 4),
    ):
        measures = Service(replace(ALONE, admission=admission), at_once(10, output=5)).finish()
        assert measures.count("rejected") == 10 - taken
        assert measures.count("completed") == taken


def test_users_cancel() -> None:
    """Goal: the drawn share cancels, at times of the drawn mean. Method: a queue that never ends."""
    cancellations = Cancellations(share=0.5, mean_s=0.1)
    config = replace(ALONE, clients=Clients(cancellations=cancellations), record_requests=4000)
    measures = Service(config, at_once(4000), uniforms).finish(1000 * SECOND)
    record = measures.record
    assert record is not None
    gone = record.status == 7
    assert gone.mean() == pytest.approx(0.5, abs=0.03)
    assert record.finish_ns[gone].mean() * 1e-9 == pytest.approx(0.1, rel=0.1)


def test_the_higher_priority_goes_first() -> None:
    """Goal: first come, first served within a class, the higher class first. Method: the order of first tokens."""
    config = replace(ALONE, priorities=(0.3, 0.3, 0.4))
    record = Service(config, at_once(60, output=1), uniforms).finish().record
    assert record is not None
    classes = np.searchsorted([0.3, 0.6], uniforms("serving.priorities", 0, 60), "right")
    assert np.argsort(record.first_token_ns).tolist() == sorted(range(60), key=lambda k: (classes[k], k))


def test_slo_aware_router_evens_prompts() -> None:
    """Goal: a long prompt counts for what it takes. Method: one long, then short ones: they go elsewhere until as much
    waits there."""
    prompts = np.array([3000, *[300] * 8])
    requests = Requests(np.zeros(9, dtype=np.int64), prompts, np.ones(9, dtype=np.int64))
    record = Service(replace(ALONE, replicas=2, router=SloAware()), requests).finish().record
    assert record is not None
    assert record.replica.tolist() == [0, *[1] * 8]
    assert SloAware().replica_of([True, True, False], [2.0, 1.0, 0.0]) == 1
    assert SloAware().replica_of([False], [2.0]) is None


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Patience(limit_s=0.0), "limit_s"),
        (lambda: Retries(attempts=0), "attempts"),
        (lambda: Retries(attempts=16, backoff_s=1e6), "backoff_s"),
        (lambda: Retries(jitter=1.5), "jitter"),
        (lambda: Cancellations(share=-0.1, mean_s=1.0), "share"),
        (lambda: Cancellations(share=0.1, mean_s=float("nan")), "mean_s"),
        (lambda: Admission(max_queue=0), "max_queue"),
        (lambda: Admission(max_predicted_ttft_s=0.0), "max_predicted_ttft_s"),
        (lambda: check_shares((0.5, 0.6)), "add up to 1"),
        (lambda: check_shares((0.1,) * 10), "at most 8"),
        (lambda: replace(ALONE, router=CentralQueue(), admission=Admission(max_predicted_ttft_s=1.0)), "central"),
        (lambda: Service(replace(ALONE, priorities=(0.5, 0.5)), at_once(1)), "uniforms"),
    ],
)
def test_what_can_not_be_is_refused(make: Callable[[], object], match: str) -> None:
    """Goal: impossible settings say what is wrong. Method: one of each."""
    with pytest.raises(ValueError, match=match):
        make()
