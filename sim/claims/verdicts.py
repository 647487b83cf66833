"""What a claim is: a statement, how it is decided, and a verdict that is computed, never written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What the numbers say of a statement."""

    HOLDS = "holds"
    FAILS = "fails"
    DEPENDS = "depends"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A verdict and the numbers behind it, in a sentence with intervals where something was drawn."""

    verdict: Verdict
    numbers: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement. `cheap`: decided by direct computation in a second or so; others run scenarios."""

    statement: str
    scenario: str
    decide: Callable[[], Finding]
    cheap: bool


def verdict_of(outcomes: list[bool]) -> Verdict:
    """Holds where every case does, fails where none does, else it depends."""
    if all(outcomes):
        return Verdict.HOLDS
    return Verdict.DEPENDS if any(outcomes) else Verdict.FAILS
