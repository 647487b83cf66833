"""A service from outside: verbs, policies, refusals, measures, verdicts, capacity."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import simpy
from numpy.typing import NDArray

from sim.streams import Streams
from tests.serving.cases import draw_case, run_kernel_on
from tests.serving.test_exactness import digest
from workloads.kv_cache import Contiguous
from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving import service as service_module
from workloads.serving.batching import ChunkedPrefill, ContinuousBatching
from workloads.serving.capacity import at_rate, capacity_requests_per_s, saturated_requests_per_s
from workloads.serving.measures import LEDGER_CATEGORIES, QueueVerdict
from workloads.serving.router import LeastOutstanding, RandomRouter, RoundRobin
from workloads.serving.service import Service, ServiceConfig

COSTS = synthetic_pass_costs(kv_read_s_per_token=1e-9)
CONFIG = ServiceConfig(costs=COSTS, blocks=4000, ttft_limit_s=0.5, tpot_limit_s=0.04, record_requests=10_000)
SECOND = 10**9


def poisson(count: int, rate_per_s: float, prompt: int = 512, output: int = 64) -> Requests:
    """Requests of one size."""
    gaps = -np.log1p(-Streams(3, 0).uniforms("arrivals", 0, count)) * (1e9 / rate_per_s)
    return Requests(np.cumsum(np.rint(gaps).astype(np.int64)), np.full(count, prompt), np.full(count, output))


def uniforms(name: str, block: int, count: int) -> NDArray[np.float64]:
    """Luck of the random router."""
    return Streams(3, 0).uniforms(name, block, count)


def test_prompt_and_steps() -> None:
    """Goal: prefill emits token 1 and out - 1 steps follow. Method: one request of 16 tokens in, 3 out."""
    measures = Service(CONFIG, Requests(np.array([5]), np.array([16]), np.array([3]))).finish()
    assert (measures.count("tokens"), measures.count("steps"), measures.count("prompt_tokens")) == (3, 3, 16)
    assert measures.record is not None
    assert measures.record.ttft_ns[0] == round(COSTS.prefill_s(16) * 1e9)


def test_chunks_of_requests_change_nothing() -> None:
    """Goal: long runs feed requests piece by piece, in flat memory. Method: whole against pieces of many sizes; the
    number of slots stays at its start."""
    requests = poisson(5000, 60)
    for router in (RandomRouter(), RoundRobin(), LeastOutstanding()):
        config = replace(CONFIG, replicas=3, router=router)
        cuts = [0, 1, 2, 700, 700, 4999, 5000]
        pieces = (
            Requests(requests.arrival_ns[a:b], requests.input_tokens[a:b], requests.output_tokens[a:b])
            for a, b in pairwise(cuts)
        )
        fed = Service(config, pieces, uniforms)
        assert digest(Service(config, requests, uniforms).finish()) == digest(fed.finish())
        assert fed._state.slot.shape[0] == 1024


def test_pieces_out_of_order_are_refused() -> None:
    """Goal: a wrong feed is not served quietly. Method: a second piece that begins before the first ends."""
    service = Service(CONFIG, iter([poisson(10, 1.0), poisson(10, 1.0)]))
    with pytest.raises(ValueError, match="order of arrival"):
        service.finish()


def test_a_call_of_the_kernel_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: Ctrl-C is answered: the kernel returns after a bounded piece of work, and pieces change nothing. Method:
    pieces of 7 decisions against the usual ones."""
    expected = digest(Service(CONFIG, poisson(500, 60)).finish())
    monkeypatch.setattr(service_module, "WORK_COMPILED", 7)
    monkeypatch.setattr(service_module, "WORK_PLAIN", 7)
    assert digest(Service(CONFIG, poisson(500, 60)).finish()) == expected


def test_from_a_simpy_process() -> None:
    """Goal: the verbs can be called from a process whose clock counts microseconds. Method: a loss, its detection and
    return, with a reader of tokens beside; the story is told by the counts."""
    env = simpy.Environment()
    service = Service(replace(CONFIG, replicas=2), poisson(4000, 40))
    seen: list[int] = []

    def fail() -> Generator[simpy.Event, None, None]:
        yield env.timeout(20_000_000)
        service.lose(0, env.now * 1000)
        yield env.timeout(5_000_000)
        service.detect(0, env.now * 1000)
        yield env.timeout(10_000_000)
        service.up(0, env.now * 1000)

    def read() -> Generator[simpy.Event, None, None]:
        while True:
            yield env.timeout(1_000_000)
            service.advance(env.now * 1000)
            seen.append(service.tokens_delivered)

    env.process(fail())
    env.process(read())
    env.run(until=50_000_000)
    measures = service.finish(50 * SECOND)
    assert np.all(np.diff(seen) >= 0)
    per_s = np.diff(seen)
    assert per_s[20:24].mean() < 0.75 * per_s[5:19].mean()
    assert measures.count("losses") == 1
    assert measures.count("caught") > 0
    assert measures.replica_up_ns == (50 + 35) * SECOND
    caught = measures.ledger_s_per_request(caught=True)
    assert caught["undetected_dead_replica"] > 1
    assert caught["recompute"] > 0
    assert measures.ledger_s_per_request()["no_replica_up"] == 0


def test_no_replica_up() -> None:
    """Goal: with no replica up requests wait in the router. Method: lose the only one, detect, return later."""
    service = Service(CONFIG, Requests(np.array([2 * SECOND]), np.array([100]), np.array([10])))
    service.lose(0, SECOND)
    service.detect(0, SECOND)
    service.up(0, 5 * SECOND)
    measures = service.finish()
    assert measures.ledger_s_per_request()["no_replica_up"] == pytest.approx(3.0)
    assert measures.record is not None
    assert measures.record.caught[0]


def test_requests_that_wait_for_ever_need_a_horizon() -> None:
    """Goal: a run without a horizon says why it can not end. Method: lose the only replica."""
    service = Service(CONFIG, poisson(5, 1.0))
    service.lose(0, 0)
    with pytest.raises(ValueError, match="horizon"):
        service.finish()


def test_slowdown_is_booked_as_degraded() -> None:
    """Goal: a replica at half speed takes twice the time; the extra is `degraded`. Method: one request, both ways."""
    request = Requests(np.array([0]), np.array([160]), np.array([20]))
    healthy = Service(CONFIG, request).finish()
    slow = Service(CONFIG, request)
    slow.set_speed(0, 0.5, 0)
    measures = slow.finish()
    assert measures.count("time_ns") == pytest.approx(2 * healthy.count("time_ns"), abs=2)
    assert measures.ledger_s_per_request()["degraded"] == pytest.approx(healthy.count("time_ns") * 1e-9, abs=2e-9)


def test_refused_and_failed_rows_are_counted() -> None:
    """Goal: a request that needs more blocks than the replica has is refused; a row without an answer is a failed row.
    Method: one of each beside a good one (`Requests` itself takes no empty answer)."""
    requests = Requests(np.array([0, 1, 2]), np.array([100, 70_000, 100]), np.array([5, 5, 5]))
    requests.output_tokens[2] = 0
    measures = Service(CONFIG, requests).finish()
    assert (measures.offered, measures.count("refused"), measures.count("failed_rows")) == (2, 1, 1)
    assert measures.count("completed") == 1
    assert measures.attainment == 0.5
    assert measures.record is not None
    assert measures.record.status.tolist() == [1, 3, 4]


def test_contiguous_takes_more_room() -> None:
    """Goal: a reserve for the longest request admits fewer. Method: greatest batch, paged against contiguous."""
    requests = poisson(300, 200)
    small = replace(CONFIG, blocks=600)
    paged = Service(small, requests).finish()
    whole = Service(replace(small, kv=Contiguous(reserve="max_model_len", max_model_len=2048)), requests).finish()
    assert whole.count("most_decodes") <= 600 // 128
    assert paged.count("most_decodes") > 2 * whole.count("most_decodes")
    assert whole.count("evictions") == 0
    assert whole.ledger_s_per_request()["kv_blocked"] > 0


def test_chunks_shorten_the_longest_gap() -> None:
    """Goal: chunked prefill bounds the gap between tokens. Method: long prompts beside decodes."""
    requests = poisson(400, 10, prompt=4000, output=200)
    config = replace(CONFIG, blocks=20_000)
    whole = Service(config, requests).finish()
    chunked = Service(replace(config, batching=ChunkedPrefill(budget=512, max_batch=256)), requests).finish()
    assert chunked.itl_s(0.999) < 0.7 * whole.itl_s(0.999)
    assert chunked.ttft_s(0.5) > whole.ttft_s(0.5)


@pytest.mark.parametrize("limit_s", [4400.0, 3.5e7, 1e300, float("inf"), None])
def test_long_limits_are_limits(limit_s: float | None) -> None:
    """Goal: a limit that the clock can hardly hold is no short one. Method: every answer is within it, and with the
    limits' own product beyond 64 bits too; one of a nanosecond is met by none."""
    requests = poisson(50, 5.0, output=3000)
    served = Service(replace(CONFIG, ttft_limit_s=limit_s, tpot_limit_s=limit_s), requests).finish()
    assert served.count("in_time") == served.count("completed") == 50
    assert Service(replace(CONFIG, tpot_limit_s=1e-9), requests).finish().count("in_time") == 0


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ChunkedPrefill(budget=256, max_batch=256), "greater than the largest batch"),
        (lambda: ChunkedPrefill(budget=256, max_batch=None), "max_batch"),
        (lambda: ContinuousBatching(max_batch=0), "at least 1"),
        (lambda: replace(CONFIG, blocks=0), "blocks of 0: write a whole number of at least 1"),
        (lambda: replace(CONFIG, blocks=1.5), "blocks of 1.5"),
        (lambda: replace(CONFIG, replicas=float("nan")), "replicas of nan"),
        (lambda: replace(CONFIG, record_requests=-1), "record_requests of -1: write a whole number of at least 0"),
        (lambda: replace(CONFIG, ttft_limit_s=float("nan")), "ttft_limit_s of nan: write seconds above 0"),
        (lambda: replace(CONFIG, tpot_limit_s=-1.0), "tpot_limit_s of -1.0: write seconds above 0"),
        (lambda: replace(CONFIG, watermark=1.0), "watermark"),
        (lambda: Service(replace(CONFIG, router=RandomRouter()), poisson(1, 1.0)), "uniforms"),
        (lambda: Service(CONFIG, poisson(1, 1.0)).lose(1, 0), "replica"),
        (lambda: Service(CONFIG, poisson(1, 1.0)).detect(0, 0), "is up"),
        (lambda: Service(CONFIG, poisson(1, 1.0)).set_speed(0, 0.0, 0), "speed"),
        (lambda: Service(CONFIG, poisson(1, 1.0)).advance(-1), "back"),
    ],
)
def test_what_can_not_be_is_refused(make: Callable[[], object], match: str) -> None:
    """Goal: impossible settings and calls say what is wrong. Method: one of each."""
    with pytest.raises(ValueError, match=match):
        make()


def test_routers_spread() -> None:
    """Goal: round robin takes turns; the least outstanding gets the next, ties to the lowest; random is even. Method:
    the replica of each request."""
    requests = poisson(3000, 90)
    replicas = {}
    for router in (RandomRouter(), RoundRobin(), LeastOutstanding()):
        record = Service(replace(CONFIG, replicas=3, router=router), requests, uniforms).finish().record
        assert record is not None
        replicas[router.kind] = record.replica
    assert np.array_equal(replicas["round_robin"], np.arange(3000) % 3)
    shares = np.bincount(replicas["random"]) / 3000
    assert np.abs(shares - 1 / 3).max() < 0.04
    assert replicas["least_outstanding"][0] == 0


def test_plain_routers_say_the_same_rule() -> None:
    """Goal: the plug-in's method is what the kernel does. Method: the random router's choices, rebuilt."""
    requests = poisson(500, 30)
    record = Service(replace(CONFIG, replicas=3, router=RandomRouter()), requests, uniforms).finish().record
    assert record is not None
    luck = (uniforms("serving.router", 0, 500) * float(1 << 40)).astype(np.int64)
    router = RandomRouter()
    assert record.replica.tolist() == [router.replica_of([True] * 3, [0] * 3, 0, int(value)) for value in luck]
    assert RoundRobin().replica_of([True, False, True], [0, 0, 0], 0, 0) == 2
    assert LeastOutstanding().replica_of([False, True, True], [0, 4, 4], 0, 0) == 1
    assert LeastOutstanding().replica_of([False, False], [0, 0], 0, 0) is None


def test_warm_up_is_left_out() -> None:
    """Goal: after a warm-up only later requests count. Method: offered and completed ones, and the ledger's sum."""
    requests = poisson(2000, 40)
    service = Service(CONFIG, requests)
    service.measure_from(20 * SECOND)
    measures = service.finish()
    later = requests.arrival_ns >= 20 * SECOND
    assert measures.offered == measures.count("completed") == later.sum()
    record = measures.record
    assert record is not None
    assert measures.count("time_ns") == (record.finish_ns - record.arrival_ns)[later].sum() == sum(measures.ledger_ns)


def test_measures_merge() -> None:
    """Goal: measures of replications add up. Method: counts, percentiles, verdicts of two windows together."""
    first, second = (run_kernel_on(draw_case(seed)) for seed in (5, 6))
    both = first + second
    assert both.offered == first.offered + second.offered
    assert np.array_equal(both.histograms, first.histograms + second.histograms)
    assert both.count("most_decodes") == max(first.count("most_decodes"), second.count("most_decodes"))
    assert sum(both.ledger_ns) == both.count("time_ns")
    assert both.verdicts == (first.verdict, second.verdict)
    assert ((both + first) + second).offered == (both + both).offered


def test_percentiles_are_good_to_half_a_percent() -> None:
    """Goal: a percentile from bins is off by at most 0.5 %. Method: against the recorded requests."""
    measures = Service(CONFIG, poisson(3000, 60)).finish()
    assert measures.record is not None
    ttft_ns = np.sort(measures.record.ttft_ns)
    for share in (0.01, 0.5, 0.9, 0.99, 1.0):
        exact = ttft_ns[int(np.ceil(share * ttft_ns.size)) - 1] * 1e-9
        assert measures.ttft_s(share) == pytest.approx(exact, rel=0.005)


def test_measures_off_changes_no_token() -> None:
    """Goal: measures only watch. Method: counts of requests, tokens, steps with and without."""
    requests = poisson(2000, 80)
    on, off = (Service(replace(CONFIG, measures=measures), requests).finish() for measures in (True, False))
    for name in ("tokens", "steps", "segments", "completed", "most_blocks"):
        assert on.count(name) == off.count(name)
    assert on.record is not None
    assert off.record is not None
    assert np.array_equal(on.record.finish_ns, off.record.finish_ns)


def test_queue_verdicts() -> None:
    """Goal: a queue is called stable, backlogged or overloaded. Method: half, and twice, the saturated rate."""
    saturated = saturated_requests_per_s(CONFIG, poisson(2000, 1.0))
    config = replace(CONFIG, saturated_requests_per_s=saturated)
    horizon_ns = 60 * SECOND
    half = Service(config, poisson(20_000, 0.5 * saturated)).finish(horizon_ns)
    twice = Service(config, poisson(20_000, 2 * saturated)).finish(horizon_ns)
    assert half.verdict is QueueVerdict.STABLE
    assert twice.verdict is QueueVerdict.OVERLOADED
    assert (half + twice).verdict is QueueVerdict.OVERLOADED
    unknown = Service(CONFIG, poisson(20_000, 2 * saturated)).finish(horizon_ns)
    assert unknown.verdict is QueueVerdict.OVERLOADED


def test_capacity_is_the_greatest_rate_in_time() -> None:
    """Goal: at the capacity attainment holds, 2 % above it does not. Method: bisection, then both sides."""
    requests = poisson(4000, 1.0)
    config = replace(CONFIG, ttft_limit_s=0.1)
    capacity = capacity_requests_per_s(config, requests, 0.9)

    def attainment(rate_per_s: float) -> float:
        return Service(config, at_rate(requests, rate_per_s / (4000e9 / requests.arrival_ns[-1]))).finish().attainment

    assert attainment(capacity) >= 0.9
    assert attainment(1.03 * capacity) < 0.9
    assert capacity_requests_per_s(replace(CONFIG, ttft_limit_s=1e-6), requests) == 0.0


def test_capacity_is_never_above_what_can_be_served() -> None:
    """Goal: wide limits do not make a replica faster than it is. Method: limits that all requests meet, however they
    queue; the capacity is the saturated rate, and above it the queue of a long run grows.
    """
    requests = poisson(4000, 1.0)
    wide = replace(CONFIG, ttft_limit_s=1e6, tpot_limit_s=1e6)
    capacity = capacity_requests_per_s(wide, requests, 0.9)
    assert capacity == saturated_requests_per_s(wide, requests)


def test_very_slow_requests_fit_the_clock() -> None:
    """Goal: no instant overflows. Method: arrivals slowed down until most of them lie beyond the clock are left out."""
    slow = at_rate(poisson(1000, 1.0), 1e-8)
    assert 1 <= slow.count < 1000
    assert 0 <= slow.arrival_ns.min() <= slow.arrival_ns.max() <= 2**60
    assert at_rate(poisson(1000, 1.0), 1e-300).count == 1


def test_speed_of_a_small_run() -> None:
    """Goal: the fast path stays fast. Method: a tenth of the bar for 100,000 requests, compiled (a busy machine may be
    several times slower)."""
    from tests.bench.token_kernel import fixed_requests, service_config, speed

    config = service_config(ContinuousBatching(max_batch=256))
    requests = fixed_requests(100_000, 30.0, 512, 256)
    speed(config, requests.first(100), repeats=1)
    assert speed(config, requests, repeats=1) > 1e5


def test_a_pass_with_prompts_may_be_faster_than_a_step() -> None:
    """Goal: nobody is held up by a prompt beside which the step takes less time (the layout of prompts may be faster).
    Method: passes with prompts take half of what the same step alone does; of the first request no time is
    interference, and its parts are halved for that pass."""
    halves = replace(COSTS, prefill_parts_s=COSTS.decode_parts_s / 2, kv_read_s_per_token=np.zeros(2))
    requests = Requests(np.array([0, 10**9]), np.array([64, 1]), np.array([200, 1]))
    record = Service(replace(CONFIG, costs=halves), requests).finish().record
    assert record is not None
    ledger = dict(zip(LEDGER_CATEGORIES, record.ledger_ns[0].tolist(), strict=True))
    step_ns = halves.decode_parts_s[0] * 1e9
    assert ledger["interference"] == 0
    beside_ns = halves.parts_s(2, prompt=True) * 1e9
    assert beside_ns.sum() < step_ns.sum()
    compute_ns = 198 * step_ns[0] + beside_ns.sum() * step_ns[0] / step_ns.sum()
    assert ledger["decode_compute"] == pytest.approx(compute_ns, abs=9)
