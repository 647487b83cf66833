"""Amounts of a measure, as margins and conditions are written: `0.5 pp` of a share, `2 %` of the value, or bare."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

NUMBER = r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>pp|%|)"
_AMOUNT = re.compile(rf"\s*{NUMBER}\s*")

NOT_SHARES = ("slowdown_mean", "load_of_capacity")
"""Measures with unit 1 that are no shares."""


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A number in the unit of a measure, or (`is_relative`) a share of the size of a value."""

    number: float
    is_relative: bool

    def of(self, value: float) -> float:
        """The amount in the unit of the measure, where its value is `value`."""
        if not self.is_relative:
            return self.number
        return self.number * abs(value) if math.isfinite(value) else 0.0


def amount_of(number: str, unit: str) -> Amount:
    """The amount that a number with `pp`, `%` or nothing behind it means."""
    return Amount(number=float(number) * (0.01 if unit else 1.0), is_relative=unit == "%")


def parse_amount(text: str) -> Amount:
    """Read an amount; raises ValueError where it is none."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is no amount: write for example 0.5 pp (of a share), 2 % (of the value) or 0.01")
    return amount_of(match["number"], match["unit"])


def is_share(measure: str, unit: str) -> bool:
    """Whether a measure is a share, whose differences are told in percentage points."""
    return unit == "1" and measure not in NOT_SHARES


def default_margin(measure: str, unit: str) -> str:
    """By how much a measure may be worse unless its baseline says otherwise (assumption of ours)."""
    return "0.5 pp" if is_share(measure, unit) else "2 %"


def value_text(value: float | None, measure: str, unit: str) -> str:
    """A value for people."""
    if value is None or math.isnan(value):
        return "none"
    if is_share(measure, unit):
        return f"{100 * value:.5g} %"
    return f"{value:.6g}" if unit == "1" else f"{value:.6g} {unit}"


def difference_text(value: float, measure: str, unit: str) -> str:
    """A difference for people: of shares in percentage points."""
    if is_share(measure, unit):
        return f"{100 * value:.3g} pp"
    return f"{value:.3g}" if unit == "1" else f"{value:.3g} {unit}"
