"""What every run conserves is checked when it ends, whatever its kind, with a warm-up or without; and is noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.serving.cases import Case
from tests.serving.draft_cases import draw_draft_case
from tests.serving.pool_cases import draw_clients_pool_case, draw_prefix_pool_case
from tests.serving.prefix_cases import draw_clients_prefix_case
from tests.serving.session_cases import draw_session_case
from tests.serving.swap_cases import draw_swap_case, draw_tier_case
from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving import fields as f
from workloads.serving.conservation import NotConservedError
from workloads.serving.measures import ServiceMeasures
from workloads.serving.preemption import Swap
from workloads.serving.service import Service, ServiceConfig

WARM = 60
TIGHT = ServiceConfig(
    costs=synthetic_pass_costs(),
    blocks=40,
    replicas=2,
    record_requests=1000,
    preemption=Swap(host_blocks=10, s_per_block=1e-4),
)


def warmed_up(case: Case) -> ServiceMeasures | None:
    """A workload measured from its middle arrival on; None where its horizon comes before that."""
    service, from_ns = Service(case.config, case.requests, case.uniforms), 0
    events = [event for event in case.events if event[2] < case.horizon_ns]
    from_ns = int(case.requests.arrival_ns[case.requests.count // 2])
    if from_ns > case.horizon_ns:
        return None
    for verb, replica, at, speed in sorted([*events, ("measure_from", 0, from_ns, 1.0)], key=lambda each: each[2]):
        if verb == "measure_from":
            service.measure_from(at)
        elif verb == "set_speed":
            service.set_speed(replica, speed, at)
        else:
            getattr(service, verb)(replica, at)
    return service.finish(case.horizon_ns)


@pytest.mark.parametrize(
    "draw",
    [draw_session_case, draw_draft_case, draw_swap_case, draw_tier_case, draw_clients_pool_case, draw_prefix_pool_case,
     draw_clients_prefix_case],
)  # fmt: skip
def test_runs_with_a_warm_up_conserve(draw: Callable[..., Case]) -> None:
    """Goal: requests in the system when measuring begins are no leak. Method: random workloads of every kind (sessions
    run all of them) measured from the middle on: `finish` checks; answers and time against the record."""
    for seed in range(WARM):
        case = draw(seed)
        measures = warmed_up(case)
        if measures is None:
            continue
        record, from_ns = measures.record, int(case.requests.arrival_ns[case.requests.count // 2])
        assert record is not None
        ended = record.finish_ns > from_ns
        assert measures.count("answered") == np.count_nonzero(ended & (record.status == f.COMPLETED))
        early = ended & (record.arrival_ns < from_ns) & (record.arrival_ns >= 0)
        inside = early & (record.status != f.REFUSED) & (record.status != f.FAILED_ROW)
        assert measures.count("carried_ns") == int((record.finish_ns[inside] - from_ns).sum())


def busy() -> tuple[Service, Requests]:
    """A service in the middle of its work, its cache tight enough for evictions to the host."""
    rng = np.random.default_rng(2)
    requests = Requests(np.arange(60) * 10**7, rng.integers(50, 200, size=60), rng.integers(1, 90, size=60))
    service = Service(TIGHT, requests)
    service.advance(3 * 10**8)
    return service, requests


def test_nothing_is_found_where_nothing_is_lost() -> None:
    """Goal: no false alarm, and the rest below starts from what is right. Method: all done, and cut by a horizon."""
    service, requests = busy()
    measures = service.finish()
    assert measures.count("completed") == measures.count("answered") == requests.count
    assert measures.count("swap_blocks_out") > 0
    assert measures.count("sent_tokens") == requests.output_tokens.sum() == measures.count("tokens")
    assert measures.count("carried_ns") == 0
    assert busy()[0].finish(4 * 10**8).count("unfinished") > 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("N_COMPLETED", "requests offered, ended: 60 and 61"),
        ("N_TOKENS", "tokens delivered, kept"),
        ("N_DISCARDED", "tokens delivered, kept"),
        ("N_AREA", "ns in the system, of requests"),
        ("N_LEDGER", "ns of requests, in the ledger"),
        ("N_CAUGHT_TIME", "ns of those caught, in the ledger"),
        ("N_CENSORED_TTFT", "first tokens, their times: 59 and 60"),
        ("N_BLOCKS_IN", "blocks at hosts"),
        ("N_HOST_HITS", "pieces at hosts: 1 of 0"),
        ("N_REMOTE_HITS", "pieces at remote stores: 1 of 0"),
    ],
)
def test_one_too_many_is_noticed(name: str, says: str) -> None:
    """Goal: nothing is lost or invented without a word. Method: one request, token, nanosecond or block too many, in
    each place where the kernel counts."""
    service, _ = busy()
    more = 10_000 if name == "N_BLOCKS_IN" else 1
    service._state.common[getattr(f, name)] += more
    with pytest.raises(NotConservedError, match=says):
        service.finish()


def test_a_block_that_is_not_given_back_is_noticed() -> None:
    """Goal: as above, for the cache. Method: one free block fewer; without measures too."""
    for measures in (True, False):
        service = Service(replace(TIGHT, measures=measures), busy()[1])
        service._state.replica[1, f.R_FREE] -= 1
        with pytest.raises(NotConservedError, match="blocks of replica 1, free: 40 and 39"):
            service.finish()
