"""Speed of the token kernel: requests per second of one core, drawing left out, building the service and measures in.

A replica of Llama-3 70B on one cube (64 TPU v4 chips), paged KV, Poisson arrivals at a share of the rate that it
completes when requests never lack. One untimed run warms the compiled code; each number is the median of five runs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from typing import Any

import numpy as np

from sim.streams import Streams
from tests.shared_data import SHARED_DATA
from workloads.arrivals import arrival_times_ns, poisson_gaps
from workloads.catalogue.chips import chip_by_key
from workloads.catalogue.models import model_by_key
from workloads.collectives import circuit_slice
from workloads.costs.tables import replica_pass_costs
from workloads.kv_cache import PrefixSharing, kv_memory
from workloads.requests import Requests
from workloads.serving.batching import Batching, ChunkedPrefill, ContinuousBatching, Disaggregated
from workloads.serving.capacity import saturated_requests_per_s
from workloads.serving.router import LeastOutstanding
from workloads.serving.service import Service, ServiceConfig
from workloads.traces.reading import read_trace

REPEATS = 5
REQUESTS = 1_000_000
LOADS = (0.3, 0.7, 0.95)
MAX_BATCH = 256
SHARED_REQUESTS = 20_000


def service_config(batching: Batching) -> ServiceConfig:
    """One replica of Llama-3 70B on a cube."""
    model, chip, network = model_by_key("llama3_70b"), chip_by_key("tpu_v4"), circuit_slice((4, 4, 4))
    costs = replica_pass_costs(model, chip, network, max_batch=MAX_BATCH)
    blocks = kv_memory(model, chip, network).blocks
    return ServiceConfig(costs=costs, blocks=blocks, batching=batching, ttft_limit_s=2.0, tpot_limit_s=0.06)


def fixed_requests(count: int, rate_per_s: float, prompt: int, output: int) -> Requests:
    """`count` Poisson arrivals of requests of one size."""
    gaps = poisson_gaps(Streams(1, 0).uniforms("bench.arrivals", 0, count))
    sizes = (np.full(count, tokens, dtype=np.int64) for tokens in (prompt, output))
    return Requests(arrival_times_ns(gaps, rate_per_s), *sizes)


def saturation_per_s(config: ServiceConfig, prompt: int, output: int) -> float:
    """Requests per second of a replica that never lacks requests."""
    return saturated_requests_per_s(config, fixed_requests(20_000, 1.0, prompt, output))


def speed(config: ServiceConfig, requests: Requests, repeats: int = REPEATS) -> float:
    """Requests per second of wall time, median of `repeats`."""
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        measures = Service(config, requests).finish()
        taken.append(time.perf_counter() - began)
        assert measures.count("completed") == requests.count
    return requests.count / statistics.median(taken)


def prefix_sharing_case(repeats: int = REPEATS) -> dict[str, Any]:
    """Prompts of 8,192 tokens in blocks of 16, of which 4,096 are one of 64 texts, on one replica of the base cases.

    One block operation is a block looked for and found, stored, left by its last or another request, or taken.
    """
    config = replace(service_config(ContinuousBatching(max_batch=MAX_BATCH)), kv=PrefixSharing())
    rng = np.random.default_rng(1)
    counts = np.full(SHARED_REQUESTS, 512)
    own = np.arange(SHARED_REQUESTS)[:, None] * 256 + np.arange(256)[None, :] + (1 << 40)
    text = rng.integers(0, 64, size=SHARED_REQUESTS)[:, None] * 256 + np.arange(256)[None, :]
    ids = np.concatenate([text, own], axis=1).ravel()
    base = fixed_requests(SHARED_REQUESTS, 2.0, 8192, 64)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    requests = replace(base, hash_ids=ids, hash_offsets=offsets, hash_block_tokens=16)
    measures = Service(config, requests).finish()
    stored, hits = measures.count("prefix_stored"), measures.count("prefix_hits")
    operations = hits + stored + (hits + stored) + measures.count("prefix_taken")
    requests_per_s = speed(config, requests, repeats)
    return {
        "requests_per_s": requests_per_s,
        "block_operations_per_s": requests_per_s * operations / SHARED_REQUESTS,
        "hit_share": measures.prefix_hit_share,
    }


def disaggregated_case(count: int, repeats: int = REPEATS) -> dict[str, Any]:
    """Two prefill and two decode replicas of the base cases, 0.7 of the rate at which their queue never empties."""
    base = service_config(ContinuousBatching(max_batch=MAX_BATCH))
    link_s = base.costs.transfer_s_per_token(200e9)
    pools = Disaggregated(prefill_replicas=2, transfer_s_per_token=link_s, layers=80, max_batch=MAX_BATCH)
    config = replace(base, batching=pools, replicas=4, router=LeastOutstanding())
    at_once = fixed_requests(20_000, 1e9, 512, 256)
    rate_per_s = 0.7 * Service(config, at_once).finish().requests_per_s
    requests = fixed_requests(count, rate_per_s, 512, 256)
    return {"requests_per_s": speed(config, requests, repeats), "measures": True, "load": 0.7}


def azure_hour_case(repeats: int = REPEATS) -> dict[str, Any] | None:
    """The hour of the Azure conversation trace of 2023 on two cubes with chunked prefill (scenario `azure_hour`).

    None where the trace does not lie beside the checkout.
    """
    path = SHARED_DATA / "llm_requests" / "azure_2023_conv.csv"
    if not path.exists():
        return None
    requests = read_trace(path).requests
    config = replace(service_config(ChunkedPrefill(budget=1024, max_batch=MAX_BATCH)), replicas=2)
    requests_per_s = speed(config, requests, repeats)
    return {"requests_per_s": requests_per_s, "seconds": requests.count / requests_per_s, "measures": True}


def compile_cpu_s() -> float:
    """CPU seconds of the first call of the kernel in a fresh process with an empty cache."""
    code = (
        "import time; from tests.bench.token_kernel import *\n"
        "config, few = service_config(ContinuousBatching(max_batch=MAX_BATCH)), fixed_requests(10, 1.0, 512, 256)\n"
        "service = Service(config, few); began = time.process_time()\n"
        "service.finish(); print(time.process_time() - began)"
    )
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"OPTICUBE_CACHE": empty},
            capture_output=True,
            text=True,
            check=True,
        )
    return float(done.stdout)


def token_kernel_cases(count: int = REQUESTS, repeats: int = REPEATS) -> dict[str, dict[str, Any]]:
    """All cases of the bars: name -> requests_per_s, measures, load, step_by_step."""
    cases: dict[str, dict[str, Any]] = {}

    def add(name: str, config: ServiceConfig, requests: Requests, load: float) -> None:
        cases[name] = {
            "requests_per_s": speed(config, requests, repeats),
            "measures": config.measures,
            "load": load,
            "step_by_step": config.step_by_step,
        }

    kinds: dict[str, Batching] = {
        "continuous": ContinuousBatching(max_batch=MAX_BATCH),
        "chunked": ChunkedPrefill(budget=1024, max_batch=MAX_BATCH),
    }
    configs = {name: service_config(batching) for name, batching in kinds.items()}
    for config in configs.values():
        Service(config, fixed_requests(1000, 1.0, 512, 256)).finish()
    for name, config in configs.items():
        capacity_per_s = saturation_per_s(config, 512, 256)
        for load in LOADS:
            requests = fixed_requests(count, load * capacity_per_s, 512, 256)
            add(f"{name}_load_{load:g}", config, requests, load)
            add(f"{name}_load_{load:g}_no_measures", replace(config, measures=False), requests, load)
    long = configs["continuous"]
    idle = fixed_requests(count, 0.01 * saturation_per_s(long, 512, 2048), 512, 2048)
    add("long_output_load_0.01", long, idle, 0.01)
    add("long_output_load_0.01_step_by_step", replace(long, step_by_step=True), idle.first(count // 10), 0.01)
    many = replace(configs["continuous"], replicas=16, router=LeastOutstanding())
    rate_per_s = 0.7 * 16 * saturation_per_s(many, 512, 256)
    add("least_outstanding_16", many, fixed_requests(count, rate_per_s, 512, 256), 0.7)
    cases["disaggregated"] = disaggregated_case(count, repeats)
    cases["prefix_sharing"] = prefix_sharing_case(repeats)
    if (hour := azure_hour_case(repeats)) is not None:
        cases["azure_hour"] = hour
    return cases
