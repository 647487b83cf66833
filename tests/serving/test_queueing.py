"""The token kernel as a queue: Pollaczek-Khinchine for one request at a time, and Little's law on every path."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import stdtrit

from sim.streams import Streams
from tests.serving.cases import draw_case, draw_clients_case, run_kernel_on
from workloads.pass_costs import PassCosts, synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving.batching import ContinuousBatching
from workloads.serving.service import Service, ServiceConfig

CONFIDENCE = 0.9995
COSTS = synthetic_pass_costs(fixed_s=0.010, per_token_s=1e-4, kv_read_s_per_token=1e-7)


def one_at_a_time(costs: PassCosts = COSTS) -> ServiceConfig:
    """One replica that serves one request at a time."""
    return ServiceConfig(costs=costs, blocks=10_000, batching=ContinuousBatching(max_batch=1))


def service_times_s(requests: Requests) -> NDArray[np.float64]:
    """Time of each request alone on an idle replica: its prompt, then its decode steps."""
    prompts, outputs = requests.input_tokens, requests.output_tokens
    prefill = np.array([COSTS.prefill_s(int(tokens)) for tokens in np.unique(prompts)])
    seconds = prefill[np.searchsorted(np.unique(prompts), prompts)]
    steps = outputs - 1
    step_s = float(COSTS.parts_s(1, prompt=False).sum())
    context = steps * prompts + steps * (steps - 1) // 2
    return np.asarray(seconds + steps * step_s + COSTS.kv_read_s_per_token[1] * context)


def draw(replication: int, count: int, prompts: tuple[int, ...], outputs: tuple[int, ...]) -> Requests:
    """Poisson arrivals, one per second, with lengths taken evenly from short lists."""
    streams = Streams(7, replication)
    gaps = -np.log1p(-streams.uniforms("arrivals", 0, count))
    lengths = [
        np.array(values)[(streams.uniforms(name, 0, count) * len(values)).astype(np.int64)].astype(np.int64)
        for name, values in (("prompts", prompts), ("outputs", outputs))
    ]
    return Requests(np.cumsum(np.rint(gaps * 1e9).astype(np.int64)), *lengths)


def waits_against_formula(
    load: float, count: int, replications: int, prompts: tuple[int, ...], outputs: tuple[int, ...]
) -> tuple[float, float, float]:
    """Mean wait over replications, its half-width, and the Pollaczek-Khinchine mean, in seconds."""
    waits, formula = [], []
    for replication in range(replications):
        requests = draw(replication, count, prompts, outputs)
        choices = [(p, o) for p in prompts for o in outputs]
        each = Requests(
            np.zeros(len(choices), dtype=np.int64), *(np.array(column) for column in zip(*choices, strict=True))
        )
        times_s = service_times_s(each)
        rate_per_s = load / times_s.mean()
        scaled = Requests(
            np.rint(requests.arrival_ns / rate_per_s).astype(np.int64), requests.input_tokens, requests.output_tokens
        )
        measures = Service(one_at_a_time(), scaled).finish()
        assert measures.count("completed") == count
        waits.append(measures.ledger_s_per_request()["router_queue"])
        formula.append(rate_per_s * float(np.mean(times_s**2)) / (2 * (1 - load)))
    half_width = float(stdtrit(replications - 1, CONFIDENCE)) * np.std(waits, ddof=1) / np.sqrt(replications)
    return float(np.mean(waits)), float(half_width), formula[0]


@pytest.mark.parametrize("load", [0.3, 0.7, 0.9])
@pytest.mark.parametrize(
    ("prompts", "outputs"),
    [((100,), (1,)), ((20, 50, 2000), (1,)), ((16, 300), (1, 40))],
    ids=["M/D/1", "M/G/1", "decode"],
)
def test_waits_follow_pollaczek_khinchine(load: float, prompts: tuple[int, ...], outputs: tuple[int, ...]) -> None:
    """Goal: one request at a time is an M/G/1 queue (M/D/1 for equal lengths, without decode and with). Method: mean
    wait of ten replications of 200,000 requests against the formula; interval t(0.9995), within a tenth of it."""
    mean, half_width, formula = waits_against_formula(load, 200_000, 10, prompts, outputs)
    assert half_width <= 0.1 * formula
    assert abs(mean - formula) <= half_width


def test_time_alone_is_the_time_of_its_passes() -> None:
    """Goal: a request that waits for nobody takes the time of its prompt and steps. Method: far apart, one by one."""
    requests = Requests(np.array([0, 10**12]), np.array([300, 16]), np.array([50, 7]))
    config = ServiceConfig(costs=COSTS, blocks=1000, record_requests=2)
    record = Service(config, requests).finish().record
    assert record is not None
    assert np.allclose((record.finish_ns - record.arrival_ns) * 1e-9, service_times_s(requests), rtol=0, atol=2e-9)


def test_littles_law_on_every_path() -> None:
    """Goal: the integral of the number in the system is the sum of the times in it, on each path and to the nanosecond.
    Method: rebuild the path from the recorded arrivals and ends, and compare with the kernel's own integral."""
    for seed in range(60):
        measures = run_kernel_on((draw_case, draw_clients_case)[seed % 2](seed))
        record = measures.record
        assert record is not None
        inside = (record.status != 3) & (record.status != 4)
        instants = np.concatenate([record.arrival_ns[inside], record.finish_ns[inside]])
        changes = np.repeat([1, -1], inside.sum())
        order = np.argsort(instants, kind="stable")
        number = np.cumsum(changes[order])
        area = int((number[:-1] * np.diff(instants[order])).sum())
        assert area == measures.count("in_system_ns") == sum(measures.ledger_ns)
