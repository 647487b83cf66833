"""Small scenarios and helpers of the tests of whole runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sim.result import Result
from sim.run_folder import read_tables, table_bytes
from sim.scenario import Scenario, scenario_of
from sim.strict_yaml import parse_document

ROOT = Path(__file__).resolve().parents[2]

MACHINE = """\
name: machine
description: eight cubes that fail a lot
pod: {cubes: 8, grid: 2x2x2}
failures:
  host: {availability: 99 %, repair: {kind: exponential, mean: 10 h}}
  rack: {failure_rate: 1 %/day, repair: {mean: 4 h}}
  ocs: {failure_rate: 1 %/day, repair: {kind: exponential, mean: 24 h}}
sweep:
  pod.fabric: [reconfigurable, static_aligned]
  failures.host.availability: [98 %, 99 %]
study:
  availability: {slice_chips: [64, 256], time_share: 90 %, horizon: 30 d, replications: 3}
  delivered: {slice_chips: [256], horizon: 10 d, replications: 2}
  promise: {slices: {4x4x8: 2}, time_share: 90 %}
run: {seed: 5}
"""
"""Four points, a quarter of a second."""

PROMISE = """\
name: promise
failures:
  host: {availability: 99 %, repair: {kind: exponential, mean: 10 h}}
study: {promise: {slices: {4x4x8: 2}, time_share: 90 %}}
"""
"""A closed form: hardly any time at all."""

SERVED = """\
name: served
pod: {cubes: 8, grid: 2x2x2}
failures:
  host: {availability: 97 %, repair: {kind: exponential, mean: 10 h}}
sweep:
  pod.fabric: [reconfigurable, static_aligned]
study:
  availability: {slice_chips: [64, 256], time_share: 90 %, horizon: 30 d, replications: 3}
  delivered: {slice_chips: [256], horizon: 10 d, replications: 2}
serving:
  windows: {requests: 400, replications: 2, losses: 3, record: 150}
  load_curve: {loads: [0.5, 1, 1.5], requests: 400}
  disturbance: {start: 4 s, length: 2 s, horizon: 16 s, step: 2 s}
  services:
    - name: chat
      model: llama3_70b
      slice: 4x4x8
      replicas: 3
      load: 0.6
      batching: {kind: chunked_prefill, budget: 1024}
      requests:
        kind: poisson
        input: {kind: lognormal, mean: 1024, cv: 1, max: 4096}
        output: {kind: lognormal, mean: 128, cv: 1, min: 2, max: 512}
      slo: {ttft: 2 s, tpot: 60 ms, attainment: 90 %}
run: {seed: 5}
"""
"""Two points with a service, some two seconds."""


def loaded(text: str, *overrides: str) -> Scenario:
    """The scenario of a text."""
    return scenario_of(parse_document(text.encode(), "test.yaml"), overrides)


def bytes_of(result: Result) -> dict[str, bytes]:
    """Every table of a result as the bytes of its file."""
    found = {name: table_bytes(table) for name, table in result.tables.items()}
    found["summary"] = result.summary.to_csv(index=False, lineterminator="\n").encode()
    return found


def files_of(folder: Path) -> dict[str, bytes]:
    """The tables of a run folder, as `bytes_of` has them."""
    found = {file.stem: file.read_bytes() for file in sorted((folder / "tables").glob("*.parquet"))}
    return found | {"summary": (folder / "summary.csv").read_bytes()}


def differing(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    """Names of the tables that are not the same, byte for byte, or there only once."""
    return [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]


def every_name(folder: Path) -> list[str]:
    """All files below a folder, as sorted relative paths."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def environment(**changes: str) -> dict[str, str]:
    """The environment of a subprocess that uses this tree from any working directory."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **changes}


def opticube(*arguments: str, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "from sim.start import main; main()", *arguments],
        cwd=cwd,
        env=options.pop("env", environment()),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def children_of(process: int) -> Sequence[int]:
    """Process ids of the children of a process (Linux)."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


OPERATED = """\
name: operated
pod: {cubes: 4, grid: 1x2x2}
failures:
  host: {failure_rate: 2 %/day, availability: 97 %}
jobs:
  streams:
    - {load: 60 %, slices: {kind: shares, shares: {4x4x4: 1}}, durations: {mean: 6 h, cv: 1}}
    - {name: quick, profile: quick, load: 20 %, durations: {mean: 6 h, cv: 1}}
scheduling: {queue: {kind: priority, notice: true}}
study:
  operations: {horizon: 5 d, replications: 2, promise: {slices: {4x4x4: 3}}}
  fleet: {pods: 2, horizon: 2 d}
  shared_pod:
    horizon: 2 d
    replications: 2
    services:
      - {name: chat, slice: 4x4x4, replica_rate: 10 requests/s, demand: {mean: 12 requests/s}, most: 2, cubes: 2}
  large_job: {job: {work: 1 d}, replications: 2}
  passes:
    tables:
      - group: two_rows
        source: nobody
        mark: R
        model: llama3_8b
        chip: tpu_v4
        shape: 2x2x2
        what: decode
        rows: [{batch: 4, input: 100, output: 3, seconds: 30 ms}, {batch: 8, input: 100, output: 3, seconds: 30 ms}]
    grid: {models: [llama3_8b, llama3_70b], slices: [2x2x2, smallest], contexts: [1000, 100000000]}
"""


def tamper(folder: Path, name: str, change: float, row: int = 0) -> None:
    """Add `change` to the value in one row of a stored table."""
    file = folder / ("summary.csv" if name == "summary" else f"tables/{name}.parquet")
    table = read_tables(folder)[name]
    table.loc[table.index == row, "value"] += change
    file.write_bytes(table.to_csv(index=False).encode() if name == "summary" else table_bytes(table))


def printed_json(capsys: pytest.CaptureFixture[str]) -> Any:
    """The one document on standard output; standard error must be empty."""
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)
