"""Runs of services under changing rates, bursts and users who come back."""

from __future__ import annotations

import numpy as np
import pytest

from sim import run
from sim.result import Result
from sim.scenario import Scenario, scenario_of
from sim.streams import Streams
from sim.strict_yaml import parse_document
from sim.studies.service_parts import service_requests

pytestmark = pytest.mark.slow

SERVED = """\
name: served
pod: {cubes: 2, grid: 1x1x2}
serving:
  weights: healthy
  windows: {requests: 4000, replications: 1, losses: 0}
  services:
    - name: chat
      model: llama3_70b
      slice: 4x4x4
      load: 0.5
      cache: {kind: CACHE}
      requests: {REQUESTS, input: {mean: 512, cv: 1, max: 2048}, output: {mean: 64, cv: 1, max: 256}}
      slo: {ttft: 1 s, tpot: 60 ms, attainment: 90 %}
"""
SESSIONS = "sessions: {turns: 4, return_mean: 20 s, max_context: 8192, system_prompt: 512}"


def served(kind: str, cache: str = "paged", requests: int = 4000) -> Result:
    """A run with requests of this kind, and so many of them in a window."""
    text = SERVED.replace("REQUESTS", kind).replace("CACHE", cache).replace("requests: 4000", f"requests: {requests}")
    return run(scenario_of(parse_document(text.encode(), "kinds.yaml"), ()), workers=1)


def values(result: Result) -> dict[str, float]:
    """Measures of the service by name."""
    return dict(zip(result.service["measure"], result.service["value"], strict=True))


def sampled(samples: int) -> Scenario:
    """The service with so many answers to each prompt, at a rate."""
    text = SERVED.replace("REQUESTS", "kind: poisson").replace("CACHE", "prefix_sharing").replace("4000", "1200")
    text = text.replace(
        "load: 0.5", f"rate: 8 requests/s\n      shared_prefix: {{groups: 4, tokens: 64}}\n      samples: {samples}"
    )
    return scenario_of(parse_document(text.encode(), "kinds.yaml"), ())


def test_answers_to_one_prompt_share_it() -> None:
    """Goal: `samples` reaches the kernel, and rates stay those of answers. Method: four answers to a prompt at the rate
    of one: the same prompts, come four times more rarely; all but the first compute nothing, and all but the last copy
    a block, where the prompt does not fill it (15 of 16); more fits, and HBM moves less for a token."""
    one, four = sampled(1).serving, sampled(4).serving
    assert one is not None
    assert four is not None
    few, many = (
        service_requests(serving.services[0], rate, count, Streams(1, 0), "steady")
        for serving, rate, count in ((one, 2.0, 100), (four, 8.0, 398))
    )
    assert many.samples == 4
    assert many.count == 398
    for name in ("arrival_ns", "input_tokens", "output_tokens"):
        assert np.array_equal(getattr(many, name)[::4], getattr(few, name))
    alone, shared = (values(run(sampled(samples), workers=1)) for samples in (1, 4))
    assert shared["offered_requests_per_s"] == alone["offered_requests_per_s"] == 8
    assert shared["samples_joined_share"] == pytest.approx(0.75, abs=0.02)
    assert shared["copied_blocks_per_request"] == pytest.approx(0.75 * 15 / 16, rel=0.05)
    assert "samples_joined_share" not in alone
    assert shared["capacity_requests_per_s"] > alone["capacity_requests_per_s"]
    assert shared["hbm_bytes_per_token"] < alone["hbm_bytes_per_token"]


def test_bursts_cost_capacity() -> None:
    """Goal: bursts of minutes are felt, and last as long at any rate. Method: the capacity for a third of the time at
    full rate is well below that of the same mean rate without bursts, and not below a quarter of it."""
    steady, bursts = (
        values(served(kind)) for kind in ("kind: poisson", "kind: on_off, on_time: 1 min, off_time: 2 min")
    )
    ratio = bursts["capacity_requests_per_s"] / steady["capacity_requests_per_s"]
    assert 0.25 < ratio < 0.6


def test_windows_that_only_fill_and_drain_are_warned_of() -> None:
    """Goal: rates of a window that is shorter than its requests are not taken for rates of the service. Method: 100
    requests at once and 4,000, of a service that keeps up."""
    short, long = served("kind: poisson", requests=100), served("kind: poisson")
    (warning,) = short.warnings
    assert "its windows of 100 requests mostly fill and drain" in warning
    assert values(short)["requests_per_s"] < 0.8 * values(short)["offered_requests_per_s"]
    assert long.warnings == ()
    assert values(long)["requests_per_s"] > 0.8 * values(long)["offered_requests_per_s"]


def test_hours_are_seen_whole_or_warned_of() -> None:
    """Goal: a window that sees a part of the day says so; capacity is that of a steady rate. Method: a day, and a
    period of some seconds."""
    steady, day = served("kind: poisson"), served("kind: diurnal, swing: 60 %")
    assert values(day)["capacity_requests_per_s"] == values(steady)["capacity_requests_per_s"]
    (warning,) = day.warnings
    assert "of a period, from its hour 0" in warning
    assert served("kind: diurnal, swing: 60 %, period: 20 s, peak: 5 s").warnings == ()


def test_what_users_come_back_with_is_found() -> None:
    """Goal: histories are reused by a cache that shares prefixes. Method: the same requests with both caches: hits, and
    more capacity with sharing."""
    paged, sharing = values(served(SESSIONS)), values(served(SESSIONS, "prefix_sharing"))
    assert "prefix_hit_share" not in paged
    assert 0.3 < sharing["prefix_hit_share"] < 1
    assert sharing["capacity_requests_per_s"] > 1.2 * paged["capacity_requests_per_s"]
