"""opticube in Python: `from opticube import load, run, sweep, Result`."""

from __future__ import annotations

from sim import (
    Result,
    break_even,
    check_placement_policy,
    check_queue_policy,
    compare_policies,
    load,
    play,
    run,
    size_by_simulation,
    sweep,
    worth,
)

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
