"""Quantities: exact conversion, and refusal of whatever a general parser would make something of."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.quantities import AdviceError, parse_quantity
from topology.units import Unit

SECONDS = Unit("s")
SHARE = Unit("1", low=0.0, high=1.0, open_ends=True)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("12 h", SECONDS, 43200.0),
        ("12h", SECONDS, 43200.0),
        ("90 min", SECONDS, 5400.0),
        ("0.1 ms", SECONDS, 1e-4),
        ("365 d", SECONDS, 31_536_000.0),
        ("1e3 s", SECONDS, 1000.0),
        ("0.08 %/day", Unit("1/s"), 0.08 / 8_640_000),
        ("0.08 % / day", Unit("1/s"), 0.08 / 8_640_000),
        ("2 1/h", Unit("1/s"), 2 / 3600),
        ("5 requests/s", Unit("1/s"), 5.0),
        ("50 GB/s", Unit("byte/s"), 50e9),
        ("400 Gbit/s", Unit("byte/s"), 50e9),
        ("32 GiB", Unit("byte"), 32 * 2.0**30),
        ("275 TFLOP/s", Unit("1/s"), 275e12),
        ("1.2 kW", Unit("W"), 1200.0),
        ("1 kWh/MW", SECONDS, 3.6),
        ("0.36 USD/kWh", Unit("USD/kWh"), 0.36),
        ("1 kUSD/week", Unit("USD/year"), 365e3 / 7),
        ("99.5 %", SHARE, 0.995),
        ("99.9 %", SHARE, 0.999),
        (0.995, SHARE, 0.995),
        ("0.995", SHARE, 0.995),
    ],
)
def test_conversion_is_exact(text: object, unit: Unit, value: float) -> None:
    """Goal: what is written is what is meant, to the last bit. Method: values by hand."""
    assert parse_quantity(text, unit) == value


REFUSED: tuple[object, ...] = (
    *("", " ", "h", "12", "12 parsecs", "9**9**9 s", "(" * 3000, "1,5 s", "3 $", "12 h;", "1e400 s", "nan d", "inf s"),
    *(
        "30 m",
        "-1 s",
        "1 s s",
        "1 s/",
        "s 1",
        "1 s/s/s",
        "٣ s",
        "1_000 s",
        "0x10 s",
        "1 __import__",
        "1 s\n2",
        "x" * 200,
    ),
    *(12, True, None, [1], {"s": 1}, float("nan"), float("inf"), 10**400),
)


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:20])
def test_refusals(text: object) -> None:
    """Goal: nothing is guessed. Method: texts that a general parser or float would take or hang on."""
    with pytest.raises(AdviceError) as caught:
        parse_quantity(text, SECONDS)
    assert caught.value.write.startswith("write ")
    assert "\n" not in str(caught.value)


@settings(deadline=None)
@given(st.floats(min_value=0, max_value=1e300), st.sampled_from(["s", "1/s", "byte", "byte/s", "W", "1"]))
def test_written_quantities_read_back_bit_for_bit(value: float, symbol: str) -> None:
    """Goal: a resolved scenario is the scenario. Method: write and read any value in any unit."""
    unit = Unit(symbol)
    assert parse_quantity(unit.text(value), unit) == value


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Goal: no text brings the parser down. Method: any text gives a finite number or advice."""
    with contextlib.suppress(AdviceError):
        assert math.isfinite(parse_quantity(text, SECONDS))


@pytest.mark.parametrize("value", [0, 0.0, -3, "0", "-2"])
def test_what_no_unit_would_mend_is_not_asked_for_one(value: object) -> None:
    """Goal: no advice that would be refused again. Method: bare numbers that a rate above zero can not be, and a zero
    where zero is right."""
    with pytest.raises(AdviceError) as caught:
        parse_quantity(value, Unit("1/s", high=1e9, open_ends=True))
    assert "has no unit" not in caught.value.what
    assert " 0 " not in caught.value.write
    assert "-" not in caught.value.write
    with pytest.raises(AdviceError, match="0 has no unit; write for example `0 s`"):
        parse_quantity(0, Unit("s", low=0.0))
