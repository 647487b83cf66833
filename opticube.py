"""opticube in Python: `from opticube import load, run, sweep, Result`."""

from __future__ import annotations

from sim import Result, load, run, sweep

__all__ = ["Result", "load", "run", "sweep"]
