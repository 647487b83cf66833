"""The timeline of a pod in operation: Chrome's trace format as Perfetto takes it, and what it shows against the log."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from sim.build import build_setup
from sim.metrics.pod_moments import moments_of
from sim.result import Result
from sim.scenario import expand
from sim.simulation import run
from sim.studies.operations import play_operations
from sim.trace import Trace, Verb
from tests.run.cases import loaded
from topology.pod import HOSTS_PER_CUBE, SWITCHES_PER_POD

DAY_US = 86_400_000_000
SCENARIO = """\
name: timeline
pod: {cubes: 8, grid: 2x2x2}
failures:
  host: {failure_rate: 2 %/day, availability: 99 %}
  rack: {failure_rate: 1 %/day, repair: {kind: exponential, mean: 4 h}}
  optical_end: {failure_rate: 0.1 %/day, repair: {kind: exponential, mean: 4 h}}
  ocs: {failure_rate: 1 %/day, repair: {kind: exponential, mean: 24 h}}
sweep: {jobs.streams.0.load: [60 %, 95 %]}
jobs:
  streams:
    - load: 60 %
      slices: {kind: shares, shares: {4x4x8: 1, 4x4x4: 2, 2x2x4: 1}}
      durations: {mean: 12 h, cv: 1}
maintenance:
  cubes: {every: 10 d, length: 4 h, notice: 1 d, at_once: 1}
  switches: {every: 10 d, length: 2 h, notice: 1 h, at_once: 2}
study: {operations: {horizon: 10 d, replications: 1}}
"""


LOADS = ("60 %", "95 %")


@pytest.fixture(scope="module")
def result() -> Result:
    """The scenario, run once."""
    return run(loaded(SCENARIO), workers=1)


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    """The log of replication 0 of each point, played once more."""
    return [play_operations(build_setup(point.scenario), 0)[1] for point in expand(loaded(SCENARIO))]


def rows_of(timeline: dict[str, Any], process: str) -> dict[str, list[dict[str, Any]]]:
    """Events of one process by the name of their row, in the order of the file."""
    events = timeline["traceEvents"]
    (number,) = {e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == process}
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == number}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in names.values()}
    for event in events:
        if event["pid"] == number and event["ph"] in "Xi":
            rows[names[event["tid"]]].append(event)
    return rows


def test_perfetto_can_open_it(result: Result) -> None:
    """Goal: the rules of the JSON format hold. Method: fields of every kind of event, names of all rows, order of time,
    no overlap within a row, numbers that JSON can hold; both points have their jobs, cubes and switches."""
    timeline = json.loads(json.dumps(result.timeline, allow_nan=False))
    assert timeline == result.timeline
    events = timeline["traceEvents"]
    needed = {"M": {"args"}, "X": {"ts", "dur"}, "i": {"ts", "s"}, "C": {"ts", "args"}}
    assert {event["ph"] for event in events} == set(needed)
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    rows = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    kinds = ("jobs of the pod in operation", "cubes", "switches")
    assert list(processes.values()) == [f"{kind} ({load})" for load in LOADS for kind in kinds]
    ends: dict[tuple[int, int], int] = {}
    before = 0
    for event in events:
        assert {"ph", "name", "pid", "tid"} | needed[event["ph"]] <= set(event)
        assert event["name"]
        assert event["pid"] in processes
        if event["ph"] == "M":
            continue
        assert isinstance(event["ts"], int)
        assert before <= event["ts"] <= 10 * DAY_US
        before = event["ts"]
        row = event["pid"], event["tid"]
        assert event["tid"] >= 1
        if event["ph"] == "X":
            assert row in rows
            assert event["dur"] > 0
            assert event["ts"] >= ends.get(row, 0)
            ends[row] = event["ts"] + event["dur"]
        elif event["ph"] == "i":
            assert row in rows
            assert event["s"] == "t"
        else:
            assert all(math.isfinite(value) for value in event["args"].values())
    assert max(ends.values()) == 10 * DAY_US


@pytest.mark.parametrize("number", [0, 1])
def test_cubes_are_as_the_log_has_them(result: Result, traces: list[Trace], number: int) -> None:
    """Goal: rows of cubes tell when a cube is out and who moves. Method: at 200 instants, the cubes out by a count of
    failures and repairs in the log against the spans; as many instants as failures; each move follows a release."""
    trace, load = traces[number], LOADS[number]
    rows = rows_of(result.timeline, f"cubes ({load})")
    assert list(rows) == [f"cube {cube}" for cube in range(8)]
    spans = {cube: [e for e in rows[f"cube {cube}"] if e["ph"] == "X"] for cube in range(8)}
    for instant in range(200):
        time_us = (instant * 10 * DAY_US) // 200 + 12_345
        shown = {
            cube
            for cube, own in spans.items()
            for e in own
            if e["ts"] <= time_us < e["ts"] + e["dur"] and e["name"].endswith("unusable")
        }
        out, drained = [0] * 8, [False] * 8
        for row_us, verb, kind, component, *_ in trace.rows:
            if row_us > time_us:
                break
            if verb in (Verb.FAIL, Verb.REPAIR) and kind in ("host", "rack"):
                cube = component // HOSTS_PER_CUBE if kind == "host" else component
                out[cube] += 1 if verb == Verb.FAIL else -1
            elif verb in (Verb.DRAIN, Verb.UNDRAIN) and not kind:
                drained[component] = verb == Verb.DRAIN
        assert shown == {cube for cube in range(8) if out[cube] and not drained[cube]}
    instants = [e["name"] for own in rows.values() for e in own if e["ph"] == "i"]
    failures = [row for row in trace.rows if row[1] == Verb.FAIL and row[2] != "ocs"]
    assert sum(name.endswith("fails") for name in instants) == len(failures)
    moved = [name for name in instants if name.endswith("moves in")]
    released = {row[4] for row in trace.rows if row[1] == Verb.RELEASE}
    assert moved
    assert {int(name.split()[1]) for name in moved} <= released


@pytest.mark.parametrize("number", [0, 1])
def test_switches_are_as_the_log_has_them(result: Result, traces: list[Trace], number: int) -> None:
    """Goal: rows of switches and the count of circuits are right. Method: time out of service per state against the
    log's own pairs of rows; circuits against a running sum, never negative."""
    trace, load = traces[number], LOADS[number]
    rows = rows_of(result.timeline, f"switches ({load})")
    assert all(0 <= int(name.split()[1]) < SWITCHES_PER_POD for name in rows)
    spent_us = dict.fromkeys(("dead", "in repair", "drained"), 0)
    for event in (event for own in rows.values() for event in own):
        spent_us[event["name"]] += event["dur"]
    of_log = {"dead": ("fail", "detect"), "in repair": ("detect", "repair"), "drained": ("drain", "undrain")}
    for state, (first, last) in of_log.items():
        starts = [row[0] for row in trace.rows if row[1] == first and row[2] == "ocs"]
        ends = [row[0] for row in trace.rows if row[1] == last and row[2] == "ocs"]
        still_open = len(starts) - len(ends)
        assert spent_us[state] == sum(ends) + still_open * trace.horizon_us - sum(starts) > 0
    events = result.timeline["traceEvents"]
    (process,) = {e["pid"] for e in events if e["ph"] == "M" and e["args"].get("name") == f"switches ({load})"}
    counts = [(e["ts"], e["args"][""]) for e in events if e["ph"] == "C" and e["pid"] == process]
    now, wanted = 0, dict[int, int]()
    for time_us, verb, *_, value in trace.rows:
        if verb in (Verb.CONNECT, Verb.DISCONNECT):
            now += value if verb == Verb.CONNECT else -value
            wanted[time_us] = now
    assert counts == list(wanted.items())
    assert all(count >= 0 for _, count in counts)
    assert len(counts) > 10


def test_what_is_kept_is_bounded(traces: list[Trace]) -> None:
    """Goal: a long run keeps no more than it is told. Method: the first five of each kind are those of the whole."""
    whole, few = moments_of(traces[0], 10**9), moments_of(traces[0], 5)
    for all_of_kind, some in zip(whole, few, strict=True):
        assert list(some) == list(all_of_kind)[:5]
        assert len(all_of_kind) > 5


def test_a_static_pod_has_no_switches() -> None:
    """Goal: no row for what is not there. Method: the static pod, without what needs light; its cubes are shown."""
    setting = ["pod.fabric=static_aligned", "failures.ocs=null", "failures.optical_end=null", "sweep={}"]
    found = run(loaded(SCENARIO, *setting, "maintenance.switches=null"), workers=1).timeline["traceEvents"]
    names = [event["args"]["name"] for event in found if event["name"] == "process_name"]
    assert names == ["jobs of the pod in operation", "cubes"]
    assert "C" not in {event["ph"] for event in found}
