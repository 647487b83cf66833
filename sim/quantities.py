"""Quantities with units, as people write them: `12 h`, `0.08 %/day`, `50 GB/s`, `99.5 %`.

A regular expression splits a text into a number and a chain of unit names, and each name must be in a small list:
nothing is evaluated or guessed (parsers of expressions evaluate `9**9**9 s`, read `1,5 s` as 15 s, `30 m` as metres).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from topology.units import Unit

TEXT_LIMIT = 100
"""Longest text, in characters, that is read as a quantity."""

_DAY_S = 86400
_SIZES: dict[str, dict[str, int | Fraction]] = {
    "time": {
        "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": 1, "second": 1,
        "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": _DAY_S, "day": _DAY_S,
        "week": 7 * _DAY_S, "year": 365 * _DAY_S,
    },
    "data": {
        "B": 1, "byte": 1, "bit": Fraction(1, 8),
        **{f"{name}bit": Fraction(10**power, 8) for name, power in (("k", 3), ("M", 6), ("G", 9), ("T", 12))},
        **{f"{name}B": 10**power for name, power in (("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15))},
        **{f"{name}iB": 2**power for name, power in (("K", 10), ("M", 20), ("G", 30), ("T", 40), ("P", 50))},
    },
    "power": {"W": 1, "watt": 1, "kW": 1000, "MW": 10**6},
    "power time": {"kWh": 3600 * 1000},
    "money": {"USD": 1, "kUSD": 1000, "MUSD": 10**6},
    "number": {
        "one": 1, "percent": Fraction(1, 100), "ppm": Fraction(1, 10**6),
        **{f"{name}FLOP": 10**power for name, power in (("", 0), ("G", 9), ("T", 12), ("P", 15))},
    },
}  # fmt: skip
"""What each unit measures (energy is power times time), and how many of the first of its kind it is."""
_UNITS = {name: (kind, Fraction(size)) for kind, sizes in _SIZES.items() for name, size in sizes.items()}
_ALIASES = {
    "%": "percent", "request": "one", "requests": "one", "seconds": "s", "sec": "s", "minutes": "min", "hours": "h",
    "hr": "h", "days": "d", "weeks": "week", "years": "year", "bytes": "byte", "µs": "us", "μs": "us", "bits": "bit",
}  # fmt: skip
_EXAMPLES = {
    "s": ("30 s", "10 min", "12 h"),
    "1/s": ("0.08 %/day", "0.001 1/h", "5 1/s"),
    "byte": ("32 GiB", "80 GB"),
    "byte/s": ("50 GB/s", "1200 GB/s"),
    "FLOP/s": ("275 TFLOP/s",),
    "W": ("300 W", "1.2 kW"),
    "USD": ("120 USD", "20 kUSD"),
    "USD/kWh": ("0.08 USD/kWh",),
    "USD/year": ("300 kUSD/year",),
    "1": ("99.5 %", "0.995"),
}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_UNIT = re.compile(r"(?:1\s*/\s*|/\s*)?(?:[A-Za-zµμ]+|%)(?:\s*/\s*[A-Za-zµμ]+)*")


class AdviceError(ValueError):
    """A value that is wrong: `what` is wrong with it, and what to `write` instead."""

    def __init__(self, what: str, write: str) -> None:
        self.what = what
        self.write = write
        super().__init__(f"{what}; {write}")


def parse_quantity(value: object, unit: Unit) -> float:
    """Return `value` in the unit of `unit`: a text with a unit, or, where the unit is "1", a bare number.

    Raises `AdviceError` for anything else: no unit, an unknown unit, a unit of another kind, not finite, out of bounds.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        names = {type(None): "nothing", bool: "true or false", list: "a list", dict: "a mapping"}
        raise AdviceError(
            f"{names.get(type(value), _shown(value))} stands where {_wanted(unit)} is due", _examples(unit)
        )
    number = _from_text(value, unit) if isinstance(value, str) else _from_number(value, unit)
    try:
        return unit.check(number)
    except ValueError:
        raise _out_of_bounds(value, number, unit) from None


@lru_cache(maxsize=1024)
def _ratio(unit_text: str, symbol: str) -> Fraction:
    """How many `symbol` one `unit_text` is, as a fraction, so that 99.9 % is 0.999 to the last bit.

    Raises AdviceError when the unit is unknown or measures something else.
    """
    names = [_ALIASES.get(part.strip(), part.strip()) for part in unit_text.split("/")]
    for name in names:
        if name not in ("", "1") and name not in _UNITS:
            raise AdviceError(f"unit `{unit_text}` is not known", _nearest_unit(name, symbol))
    kinds, size = _kinds_and_size(names)
    wanted_kinds, wanted_size = _kinds_and_size(symbol.split("/"))
    if kinds != wanted_kinds:
        raise AdviceError(f"unit `{unit_text}` does not measure {_kind(symbol)}", _examples(Unit(symbol)))
    return size / wanted_size


def _kinds_and_size(names: Sequence[str]) -> tuple[dict[str, int], Fraction]:
    """What a chain of units `a/b/c` measures, as powers of kinds, and its size; `1` and nothing stand for a number."""
    powers: dict[str, int] = {}
    size = Fraction(1)
    for place, name in enumerate(names):
        kind, ratio = _UNITS.get(name, ("number", Fraction(1)))
        power = 1 if place == 0 else -1
        for base in kind.split():
            powers[base] = powers.get(base, 0) + power
        size *= ratio**power
    return {kind: power for kind, power in powers.items() if power and kind != "number"}, size


def _from_number(value: float, unit: Unit) -> float:
    """A bare number: right for a share, refused where a unit is due."""
    try:
        value = float(value)
    except OverflowError:
        return math.inf
    if unit.symbol != "1" and math.isfinite(value):
        if value <= 0:  # of no unit would that be right
            try:
                unit.check(value)
            except ValueError:
                raise _out_of_bounds(value, value, unit) from None
        samples = [sample.split(" ", 1)[1] for sample in _EXAMPLES.get(unit.symbol, (f"1 {unit.symbol}",))]
        written = " or ".join(f"`{value:g} {sample}`" for sample in samples)
        raise AdviceError(f"{value:g} has no unit", f"write for example {written}")
    return value


def _from_text(text: str, unit: Unit) -> float:
    """Split a text into number and unit, and convert."""
    stripped = text.strip()
    match = _NUMBER.match(stripped)
    if match is None or len(text) > TEXT_LIMIT:
        raise AdviceError(f"{_shown(text)} is not {_wanted(unit)}", _examples(unit))
    number, rest = float(match.group()), stripped[match.end() :].strip()
    if not rest:
        return _from_number(number, unit)
    if _UNIT.fullmatch(rest) is None:
        hint = f"write `{match.group()}.{rest[1:]}`" if re.fullmatch(r",[0-9]+ ?[A-Za-z%/]+", rest) else _examples(unit)
        raise AdviceError(f"{_shown(text)} is not {_wanted(unit)}", hint)
    try:
        return float(Fraction(match.group()) * _ratio(rest, unit.symbol))
    except OverflowError:
        return math.inf


def _out_of_bounds(value: object, number: float, unit: Unit) -> AdviceError:
    """Say in words which bound was broken."""
    if not math.isfinite(number):
        return AdviceError(f"{_shown(value)} is not a finite number", _examples(unit))
    if unit.symbol == "1" and unit.high == 1.0:
        bare = not (isinstance(value, str) and "%" in value)
        hint = f"write `{number:g} %`" if bare and 1.0 < number < 100.0 else _examples(unit)
        return AdviceError(f"{_shown(value)} is not {unit.range_text()}", hint)
    if number < 0:
        return AdviceError(f"{_shown(value)} is negative", _examples(unit))
    if number == 0:
        return AdviceError(f"{_shown(value)} is zero, and must be above it", _examples(unit))
    if number >= unit.high:
        return AdviceError(
            f"{_shown(value)} is too much", f"write less than `{unit.high:g} {unit.symbol}`".replace(" 1`", "`")
        )
    return AdviceError(f"{_shown(value)} is not {unit.range_text()}", _examples(unit))


def _nearest_unit(name: str, symbol: str) -> str:
    """AdviceError for an unknown unit; `m` gets its own, since people mean minutes."""
    import difflib

    if name == "m":
        return "write `min` for minutes"
    near = difflib.get_close_matches(name, [*_UNITS, *_ALIASES], n=1, cutoff=0.5)
    return f"write `{near[0]}`" if near else _examples(Unit(symbol))


def _kind(symbol: str) -> str:
    """What a unit measures, in words."""
    kinds = {
        "s": "time", "1/s": "a rate", "byte": "data", "byte/s": "data per time", "W": "power", "1": "a share",
        "FLOP/s": "arithmetic per time", "USD": "money", "USD/kWh": "money per energy", "USD/year": "money per time",
    }  # fmt: skip
    return kinds.get(symbol, symbol)


def example_of(symbol: str) -> str:
    """One text that reads as a quantity in `symbol`."""
    return _EXAMPLES.get(symbol, (f"1 {symbol}",))[0]


def _wanted(unit: Unit) -> str:
    """What was expected, in words."""
    return "a share" if unit.symbol == "1" else "a number with a unit"


def _examples(unit: Unit) -> str:
    """AdviceError with examples of the unit."""
    samples = _EXAMPLES.get(unit.symbol, (f"1 {unit.symbol}",))
    return "write for example " + " or ".join(f"`{sample}`" for sample in samples)


def _shown(value: object) -> str:
    """A value as a fault shows it: short, on one line."""
    text = f"{value:.15g}" if isinstance(value, float) else f"`{value}`" if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."
