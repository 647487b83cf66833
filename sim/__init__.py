"""The clock and everything above it: scenarios, failures, the machine, runs, measures, reports.

The public names load lazily (PEP 562), so that `opticube --help` imports neither numpy nor pandas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.break_evens import break_even as break_even
    from sim.conformance import check_placement_policy as check_placement_policy
    from sim.conformance import check_queue_policy as check_queue_policy
    from sim.own_policies import compare_policies as compare_policies
    from sim.result import Result as Result
    from sim.simulation import load as load
    from sim.simulation import run as run
    from sim.sizing import size_by_simulation as size_by_simulation
    from sim.sliders import play as play
    from sim.sweeps import sweep as sweep
    from sim.worths import worth as worth

_HOME = {
    "break_even": "sim.break_evens",
    "load": "sim.simulation",
    "play": "sim.sliders",
    "run": "sim.simulation",
    "size_by_simulation": "sim.sizing",
    "sweep": "sim.sweeps",
    "worth": "sim.worths",
    "Result": "sim.result",
    "check_placement_policy": "sim.conformance",
    "check_queue_policy": "sim.conformance",
    "compare_policies": "sim.own_policies",
}
__all__ = [
    "Result",
    "break_even",
    "check_placement_policy",
    "check_queue_policy",
    "compare_policies",
    "load",
    "play",
    "run",
    "size_by_simulation",
    "sweep",
    "worth",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sim' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
