"""The measured times that come with opticube: those that its scenarios compare with, read out of them."""

from __future__ import annotations

from functools import cache

from sim.scenario import load_scenario
from workloads.accuracy.rows import MeasuredRow

HOLDERS = ("pope_palm540b", "a100_llama70b")
"""Shipped scenarios that hold them."""


@cache
def shipped_times() -> tuple[MeasuredRow, ...]:
    """All rows, in the order of their scenarios."""
    studies = [load_scenario(name).study.passes for name in HOLDERS]
    return tuple(row for study in studies if study is not None for table in study.tables for row in table.measured())
