"""Sweeps from Python: a scenario with lists of values in place of single ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from sim.result import Result
from sim.scenario import Scenario, resweep
from sim.simulation import Progress, run


def sweep(
    scenario: Scenario,
    keys: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Run a scenario at every combination of `keys`, such as `{"pod.fabric": ["reconfigurable", "any_host"]}`.

    A name with named levels sets several keys at once: `{"data": {"poor": {KEY: VALUE}, "good": {}}}`.
    The keys replace the scenario's own `sweep:`. Values are written as in a scenario file (`"99.5 %"`, `"12 h"`). The
    tables have a column for each key. Everything else is as in `run`; InputError where a key or value is wrong.
    """
    wider = resweep(scenario, keys)
    return run(wider, out=out, workers=workers, executor=executor, resume=resume, progress=progress)
