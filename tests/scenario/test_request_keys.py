"""Keys of `requests:`: every kind of arrival, length and session loads, is echoed, and comes back from its text."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.effective import effective_settings
from sim.input_files import input_paths
from sim.scenario import Scenario, resolved_yaml, scenario_of
from sim.strict_yaml import parse_document
from topology.errors import InputError

SERVED = """\
name: served
pod: {cubes: 2, grid: 1x1x2}
serving:
  weights: healthy
  windows: {requests: 200, replications: 1, losses: 0}
  services:
    - name: chat
      model: llama3_70b
      slice: 4x4x4
      LOAD
      requests: REQUESTS
      slo: {ttft: 2 s, tpot: 60 ms}
"""
LENGTHS = (
    "input: {kind: empirical, of: mooncake_conversation_prompts}, output: {kind: empirical, quantiles: [1, 9, 400]}"
)
SESSIONS = "sessions: {turns: 3, return_mean: 2 min, max_context: 200000, system_prompt: 1024}"
KINDS = {
    "poisson": f"{{kind: poisson, {LENGTHS}, rank_correlation: 0.08}}",
    "gamma": f"{{kind: gamma, cv: 2, {LENGTHS}, {SESSIONS}}}",
    "diurnal": f"{{kind: diurnal, swing: 60 %, peak: 15 h, {LENGTHS}}}",
    "on_off": f"{{kind: on_off, on_time: 20 s, off_time: 1 min, off_share: 10 %, {LENGTHS}}}",
    "pairs": "{pairs: {path: FILE}}",
    "trace": "{kind: trace, path: FILE, share: 50 %, loop: false}",
}


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A trace of twelve requests, two of which failed."""
    path = tmp_path / "own.csv"
    rows = [f"{second},100,{0 if second in (3, 7) else 20}" for second in range(12)]
    path.write_text("\n".join(["arrival_s,input_tokens,output_tokens", *rows]))
    return str(path)


def loaded(requests: str, trace: str, load: str = "rate: 2 requests/s") -> Scenario:
    """A scenario with these requests."""
    text = SERVED.replace("LOAD", load).replace("REQUESTS", requests).replace("FILE", trace)
    return scenario_of(parse_document(text.encode(), "test.yaml"), ())


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_requests_is_a_scenario(name: str, trace: str) -> None:
    """Goal: what loads is written out and loads again to the same; files are known as inputs. Method: every kind."""
    scenario = loaded(KINDS[name], trace)
    again = scenario_of(parse_document(resolved_yaml(scenario).encode(), "again.yaml"), ())
    assert again == scenario
    assert input_paths(scenario) == ([trace] if name in ("pairs", "trace") else [])


def test_the_run_says_what_its_files_and_users_are(trace: str) -> None:
    """Goal: the format that was found, rows that failed, returns. Method: the effective configuration."""
    said = {label: value for label, value, _ in effective_settings(loaded(KINDS["trace"], trace))}
    assert said["chat: trace"] == "csv, 10 requests; 2 failed rows are left out"
    said = {label: value for label, value, _ in effective_settings(loaded(KINDS["gamma"], trace))}
    assert "back 2 min after the arrival of a turn, at most 200,000 tokens" in said["chat: sessions"]
    closed = KINDS["gamma"].replace("turns: 3", "turns: 3, return_after: answer")
    said = {label: value for label, value, _ in effective_settings(loaded(closed, trace))}
    assert "back 2 min after the end of its answer" in said["chat: sessions"]


@pytest.mark.parametrize(
    ("requests", "load", "says"),
    [
        ("{kind: trace, path: FILE, rate_factor: 2}", "rate: 1 requests/s", "both say how fast the trace runs"),
        ("{kind: trace, path: FILE, rate_factor: 2}", "load: 0.5", "both say how fast the trace runs"),
        ("{kind: trace, path: FILE, format: mooncake}", "load: 0.5", "own.csv:1: no JSON"),
        ("{kind: trace, path: FILE, format: bloom}", "load: 0.5", "`bloom` is not known here; write"),
        ("{kind: trace, path: FILE, share: 0 %}", "load: 0.5", "share of 0; write a share of the requests"),
        ("{pairs: {path: FILE.no}}", "load: 0.5", "no such file; the trace is published at"),
        ("{pairs: {path: FILE}}", "replicas: 1", "nothing says how many requests arrive"),
    ],
)
def test_faults_of_files(requests: str, load: str, says: str, trace: str) -> None:
    """Goal: one line for what does not fit together. Method: one fault each."""
    with pytest.raises(InputError) as caught:
        loaded(requests, trace, load)
    fault = caught.value.faults[0]
    assert says in str(fault)
    assert len(str(fault)) < 1500
