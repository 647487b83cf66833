"""Services in settings that nobody would choose: they run, and say what they leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.scenario import Scenario
from sim.simulation import run
from sim.studies.story import LOOKS_MAX
from sim.studies.windows import LOSS_REQUESTS_MAX, LossTimes, loss_window_s, losses_fit
from tests.run.cases import SERVED, loaded
from topology.errors import InputError

SMALL = ("sweep.pod.fabric=[reconfigurable]", "serving.windows.requests=100", "serving.windows.losses=1")


def served(*overrides: str) -> Scenario:
    """The small service on one fabric."""
    text = SERVED.replace("  delivered: {slice_chips: [256], horizon: 10 d, replications: 2}\n", "")
    return loaded(text, *SMALL, *overrides)


@pytest.mark.parametrize("router", ["random", "round_robin", "least_outstanding"])
def test_every_router_runs(router: str) -> None:
    """Goal: what can be written can be run. Method: a whole small run with each router."""
    table = run(served(f"serving.services.0.router={router}"), workers=1).service
    assert 0 < float(table.loc[table["measure"] == "tokens_in_time", "value"].iloc[0]) <= 1


@pytest.mark.parametrize("cache", ["{kind: paged}", "{kind: contiguous}", "{kind: contiguous, reserve: oracle}"])
@pytest.mark.parametrize("batching", ["{kind: continuous}", "{kind: chunked_prefill, budget: 512}"])
def test_every_cache_and_batching_runs(cache: str, batching: str) -> None:
    """Goal: what can be written can be run. Method: a whole small run with each pair, numbers of eight bits, one
    replica, no losses, one repetition.
    """
    settings = (f"cache={cache}", f"batching={batching}", "weights=int8", "kv=int8", "replicas=1")
    scenario = served(
        *(f"serving.services.0.{setting}" for setting in settings),
        "serving.windows.replications=1",
        "serving.windows.losses=0",
    )
    result = run(scenario, workers=1)
    assert "left out" not in " ".join(result.warnings)
    assert 0 < float(result.service.loc[result.service["measure"] == "tokens_in_time", "value"].iloc[0]) <= 1


def test_wide_limits_keep_the_load_below_what_can_be_served() -> None:
    """Goal: a load of 60 % never overloads. Method: limits of a year; the queue with all replicas up is stable."""
    result = run(served("serving.services.0.slo={ttft: 1 year, tpot: 1 year}"), workers=1)
    loads = result.service.loc[result.service["measure"] == "load_of_capacity", "value"]
    assert loads.between(0.5, 0.65).all()


def test_a_load_too_small_for_the_clock_is_refused() -> None:
    """Goal: a window that takes centuries is refused with the key. Method: a load of a millionth of a millionth."""
    with pytest.raises(
        InputError, match=r"serving\.services\.0\.load: 100 requests at .* take .* years; write a higher"
    ):
        run(served("serving.services.0.load=1e-12"), workers=1)


def test_a_trace_of_one_instant_is_refused_before_the_run(tmp_path: Path) -> None:
    """Goal: what can be known before a run is told before it. Method: a trace of one row."""
    trace = tmp_path / "one.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6,374,44\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"serving\.services\.0\.requests: all requests of the trace arrive at one"):
        served(f"serving.services.0.requests={{kind: trace, path: {trace}}}")


def test_long_recoveries_are_told_coarsely_and_left_out_aloud() -> None:
    """Goal: nothing is silently cut. Method: a restore of 60 days: the windows around losses are left out with a
    warning, the story has no more rows than can be drawn.
    """
    scenario = served("recovery.restore=60 d")
    assert not losses_fit(scenario, 10.0)
    result = run(scenario, workers=1)
    assert "chat: a recovery meets too many requests to be simulated; what losses cost is left out" in result.warnings
    story = result.failure_story
    assert len(story) <= 2 * (LOOKS_MAX + 2)
    assert story["tokens_per_s"].iloc[-10:].gt(0).any(), "the story ends with its requests"


def test_windows_around_losses_reach_beyond_the_recovery() -> None:
    """Goal: the whole cost of a loss is seen. Method: at the greatest rate that fits, requests arrive until the end."""
    scenario = served()
    length_s = loss_window_s(scenario)
    assert length_s > LossTimes.of(scenario, 60.0).back_ns * 1e-9
    assert losses_fit(scenario, LOSS_REQUESTS_MAX / length_s * 0.999)
    assert not losses_fit(scenario, LOSS_REQUESTS_MAX / length_s * 1.001)
