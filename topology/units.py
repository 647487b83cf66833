"""Units as marks on types, free of pydantic and pint.

`Seconds` is a plain `float` to Python and to mypy; the mark tells a validator which unit a text such as `12 h` is
converted to, and which values are allowed. The parser comes from the validation context, so this room needs no parser.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

CLOCK_MAX_S = 1e12
"""Times beyond this (31,700 years) do not fit the clock, which counts microseconds in 64 bits."""
RATE_MAX_PER_S = 1e6
"""More failures per second than the clock can tell apart."""


@dataclass(frozen=True)
class Unit:
    """Mark of a quantity held in `symbol`; values must lie in [low, high], or inside when `open_ends`."""

    symbol: str
    low: float = 0.0
    high: float = math.inf
    open_ends: bool = False

    def check(self, value: float) -> float:
        """Return `value` if it is finite and within the bounds of this unit; raise ValueError otherwise."""
        inside = self.low < value < self.high if self.open_ends else self.low <= value <= self.high
        if not (math.isfinite(value) and inside):
            raise ValueError(f"{value:g} is not {self.range_text()}")
        return value

    def range_text(self) -> str:
        """The allowed range in words."""
        if self.high == math.inf:
            return "a finite number above 0" if self.open_ends else f"a finite number of at least {self.low:g}"
        if self.symbol != "1":
            return f"{'above' if self.open_ends else 'at least'} {self.low:g} and at most {self.high:g} {self.symbol}"
        return f"a share {'strictly ' if self.open_ends else ''}between {self.low:g} and {self.high:g}"

    def convert(self, value: object, info: Any) -> float:
        """Validate one value; `info.context["parse"]` (text, Unit) -> float converts a text with its unit."""
        parse: Callable[[object, Unit], float] | None = (info.context or {}).get("parse")
        if parse is not None:
            return self.check(parse(value, self))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{value!r} is not a number in {self.symbol}")
        return self.check(float(value))

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        """Schema as a plain dictionary: this room imports no pydantic."""
        return {
            "type": "function-before",
            "function": {"type": "with-info", "function": self.convert},
            "schema": {"type": "float", "allow_inf_nan": False},
            "serialization": {"type": "function-plain", "function": self.text, "when_used": "json"},
        }

    def text(self, value: float) -> str | float:
        """Write `value` so that it reads back bit for bit: `60 s`, or a bare number for a share."""
        if self.symbol == "1":
            return value
        digits = repr(float(value))
        return f"{digits[:-2] if digits.endswith('.0') else digits} {self.symbol}"

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """A number, or a text with a unit, as a scenario file has it."""
        return {"anyOf": [{"type": "number"}, {"type": "string"}], "unit": self.symbol}


Seconds = Annotated[float, Unit("s", high=CLOCK_MAX_S)]
PositiveSeconds = Annotated[float, Unit("s", high=CLOCK_MAX_S, open_ends=True)]
PerSecond = Annotated[float, Unit("1/s", high=RATE_MAX_PER_S)]
Bytes = Annotated[float, Unit("byte")]
BytesPerSecond = Annotated[float, Unit("byte/s", open_ends=True)]
FlopsPerSecond = Annotated[float, Unit("1/s", open_ends=True)]
Watts = Annotated[float, Unit("W")]
Share = Annotated[float, Unit("1", low=0.0, high=1.0, open_ends=True)]
"""A share strictly between 0 and 1: an availability, a promise, an attainment."""
ClosedShare = Annotated[float, Unit("1", low=0.0, high=1.0)]
"""A share that may be 0 or 1: an opt-in, a kept speed, a reserve."""
