"""A service told pass by pass: the same run, every token at its instant, and a ledger that adds up at each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.serving.cases import (
    Case,
    draw_case,
    draw_central_case,
    draw_clients_case,
    draw_static_case,
    no_check,
    run_kernel_on,
)
from tests.serving.pool_cases import draw_pool_case
from tests.serving.prefix_cases import draw_prefix_case
from tests.serving.session_cases import draw_session_case
from tests.serving.swap_cases import draw_swap_case, draw_tier_case
from tests.serving.test_exactness import bins
from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving import fields as f
from workloads.serving.drafts import Speculation
from workloads.serving.life import life_of
from workloads.serving.measures import ServiceMeasures
from workloads.serving.pass_log import EndedPass, ended_passes, ledger_now_ns, token_times_ns
from workloads.serving.service import Service, ServiceConfig

DRAWS = (
    draw_case, draw_static_case, draw_central_case, draw_clients_case, draw_pool_case, draw_prefix_case,
    draw_swap_case, draw_tier_case, draw_session_case,
)  # fmt: skip


def passes_of(case: Case, service: Service) -> Iterator[EndedPass]:
    """All passes of a workload, with what the machine does in between."""
    for verb, replica, at, speed in case.events:
        if at < case.horizon_ns:
            yield from ended_passes(service, at)
            if verb == "set_speed":
                service.set_speed(replica, speed, at)
            else:
                getattr(service, verb)(replica, at)
    yield from ended_passes(service, case.horizon_ns)


def same(one: ServiceMeasures, other: ServiceMeasures) -> bool:
    """Whether two runs are equal to the last bit."""
    assert one.record is not None
    assert other.record is not None
    return (
        {**one.totals, "segments": 0} == {**other.totals, "segments": 0}
        and np.array_equal(one.histograms, other.histograms)
        and one.ledger_ns == other.ledger_ns
        and np.array_equal(one.record.ledger_ns, other.record.ledger_ns)
        and np.array_equal(one.record.finish_ns, other.record.finish_ns)
    )


@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: draw.__name__)
def test_told_pass_by_pass_it_is_the_same_run(draw: Callable[[int], Case]) -> None:
    """Goal: telling changes nothing and nothing is left out. Method: random workloads under losses, evictions, clients:
    all measures equal those of the run that nobody looks at; the passes hold all steps, busy time and prompt tokens;
    gaps between the tokens that are told, binned, are the kernel's own histogram; records agree with the tokens; at
    each token the ledger adds up to the time since arrival."""
    tokens = evictions = losses = 0
    for seed in range(40):
        case = draw(seed)
        service = Service(case.config, case.requests, case.uniforms)
        times: dict[int, list[int]] = {}
        gaps: list[int] = []
        steps = busy = prompt_tokens = 0
        for ended in passes_of(case, service):
            steps, busy = steps + 1, busy + ended.end_ns - ended.begin_ns
            prompt_tokens += ended.prompt_tokens
            for request, number, slot in zip(ended.requests, ended.numbers, ended.slots, strict=True):
                mine = times.setdefault(int(request), [])
                if number == 1:
                    mine.clear()
                elif mine:
                    gaps.append(ended.end_ns - mine[-1])
                mine.append(ended.end_ns)
                assert len(mine) == number
                if service._state.slot[slot, f.S_ID] == request and number < case.requests.output_tokens[request]:
                    spent = ledger_now_ns(service._state, ended.replica, int(slot)).sum()
                    assert spent == ended.end_ns - service._state.record[request, f.X_ARRIVAL]
        told, plain = service.finish(case.horizon_ns), run_kernel_on(case, check=no_check)
        assert same(told, plain)
        assert (steps, busy) == (plain.count("steps"), plain.count("busy_ns"))
        static = draw is draw_static_case or case.config.batching.kind == "static"
        assert static or prompt_tokens == plain.count("prompt_tokens")
        assert bins(gaps) == {place: n for place, n in enumerate(plain.histograms[f.H_ITL].tolist()) if n}
        record = plain.record
        assert record is not None
        for request, mine in times.items():
            if record.status[request] == f.COMPLETED:
                assert mine[-1] == record.finish_ns[request]
                assert len(mine) == record.tokens[request]
        tokens += sum(map(len, times.values()))
        evictions, losses = evictions + plain.count("evictions"), losses + plain.count("losses")
    assert tokens > 3_000
    assert losses > 20
    assert evictions > 5 or draw is draw_static_case


def test_token_times_of_some_requests() -> None:
    """Goal: the instants of the tokens of the first requests, whatever comes after them. Method: three requests of
    known length alone; the first two are asked for, and the third has not come when they have left."""
    case = draw_case(3)
    requests = Requests(np.array([0, 10**9, 2 * 10**9]), np.array([5, 7, 9]), np.array([3, 1, 4]))
    service = Service(replace(case.config, record_requests=2), requests, case.uniforms)
    times = token_times_ns(service)
    assert service.now_ns < 2 * 10**9
    record = service.finish().record
    assert record is not None
    assert [len(each) for each in times] == [3, 1]
    assert [each[0] for each in times] == record.first_token_ns[:2].tolist()
    assert [each[-1] for each in times] == record.finish_ns[:2].tolist()


@pytest.mark.parametrize(
    "draw", [draw_case, draw_clients_case, draw_pool_case, draw_swap_case], ids=lambda draw: draw.__name__
)
def test_a_life_adds_up(draw: Callable[[int], Case]) -> None:
    """Goal: every nanosecond of a request is told once, token by token. Method: all requests of random workloads
    without losses; gaps add up to the life and each one's categories to the gap; the ledger in all is the record's;
    plain steps hold no waiting; what made others late (evictions, prompts, clients) is met."""
    reasons: set[str] = set()
    for seed in range(12):
        case = draw(seed)
        plain = Service(case.config, case.requests, case.uniforms).finish().record
        assert plain is not None
        for request in range(min(6, case.requests.count)):
            told = life_of(Service(case.config, case.requests, case.uniforms), request)
            if plain.status[request] in (f.REFUSED, f.FAILED_ROW):
                assert not told
                continue
            assert sum(each.gap_ns for each in told) == plain.finish_ns[request] - plain.arrival_ns[request]
            assert all(each.ledger_ns.sum() == each.gap_ns and (each.ledger_ns >= 0).all() for each in told)
            assert np.array_equal(sum(each.ledger_ns for each in told), plain.ledger_ns[request])
            if plain.status[request] == f.COMPLETED:
                assert [each.number for each in told][-1] == plain.tokens[request]
            for each in told:
                waited = each.ledger_ns[[f.L_QUEUE, f.L_KV_BLOCKED, f.L_RECOMPUTE, f.L_INTERFERENCE]].sum()
                assert waited == 0 or each.reason not in ("step", "prompt")
            reasons |= {each.reason for each in told}
    assert {"step", "queue", "prompts of others"} <= reasons
    expected: dict[Callable[[int], Case], str] = {
        draw_case: "no room for its cache",
        draw_clients_case: "sent again",
        draw_pool_case: "cache moved",
        draw_swap_case: "cache swapped",
    }
    assert expected[draw] in reasons


def test_accepted_drafts_are_told() -> None:
    """Goal: tokens that appear together are told together. Method: three drafts a step; every token of every request is
    told, gaps (some of them 0) binned are the kernel's own, lives add up."""
    rng = np.random.default_rng(1)
    count = 30
    requests = Requests(np.sort(rng.integers(0, 10**9, count)), *rng.integers(1, 80, (2, count)))
    draft = synthetic_pass_costs(fixed_s=1e-4, weights_s=1e-4)
    config = ServiceConfig(
        costs=synthetic_pass_costs(), blocks=200, replicas=2, record_requests=count,
        speculation=Speculation(length=3, acceptance=0.7, draft=draft),
    )  # fmt: skip
    luck = draw_case(0).uniforms
    plain = Service(config, requests, luck).finish()
    times = token_times_ns(Service(config, requests, luck))
    assert [len(each) for each in times] == requests.output_tokens.tolist()
    gaps = np.concatenate([np.diff(each) for each in times])
    assert bins(gaps.tolist()) == {place: n for place, n in enumerate(plain.histograms[f.H_ITL].tolist()) if n}
    assert np.count_nonzero(gaps == 0) > 0.3 * gaps.size
    assert plain.record is not None
    for request in range(0, count, 7):
        told = life_of(Service(config, requests, luck), request)
        assert all(each.ledger_ns.sum() == each.gap_ns for each in told)
        assert sum(each.gap_ns for each in told) == plain.record.finish_ns[request] - plain.record.arrival_ns[request]
