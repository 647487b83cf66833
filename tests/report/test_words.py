"""Numbers, names and promises as people read them."""

from __future__ import annotations

import math

import pytest

from sim.report.promises import promise_words, read_promise
from sim.report.words import (
    category_words,
    count_words,
    fabrics_in_order,
    form_words,
    host_words,
    interval_words,
    listed,
    number,
    percent,
    points_words,
    seconds,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (0.085, "85 ms"),
        (0.9999, "1 s"),
        (60.0, "60 s"),
        (600.0, "10 min"),
        (5400.0, "1.5 h"),
        (544_320.0, "6.3 d"),
        (math.inf, "never"),
        (math.nan, "unknown"),
    ],
)
def test_seconds_take_the_unit_that_suits_them(value: float, text: str) -> None:
    """Goal: times are read at a glance. Method: a value in each unit, and those that are no time."""
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (3.14159, "3.14"), (1234.5, "1,234"), (100, "100"), (0.000123, "0.000123"), (math.nan, "unknown")],
)
def test_numbers_keep_three_digits(value: float, text: str) -> None:
    """Goal: no false precision, no exponents. Method: sizes from tiny to thousands."""
    assert number(value) == text


def test_shares_and_host_availabilities() -> None:
    """Goal: shares are told apart and padded alike. Method: typical shares, and a measured one."""
    assert [percent(0.97), percent(0.9996), percent(0.5, 1)] == ["97 %", "99.96 %", "50.0 %"]
    assert [host_words(h) for h in (0.99, 0.995, 0.999604, math.nan)] == ["99.0 %", "99.5 %", "99.96 %", "as logged"]
    assert [points_words(0.003), points_words(0.01), points_words(0.0001)] == [
        "0.3 points",
        "1.0 point",
        "less than 0.1 points",
    ]


def test_an_interval_of_width_zero_is_never_printed() -> None:
    """Goal: "no variation seen" is not "±0". Method: equal limits, unknown limits, even and uneven limits."""
    assert interval_words(0.5, 0.5, 0.5) == "="
    assert interval_words(math.nan, math.nan, 0.5) == ""
    assert interval_words(0.49, 0.51, 0.5) == "±1.0"
    assert interval_words(0.5, 0.75, 0.5) == "[50.0, 75.0]"


def test_lists_counts_and_names() -> None:
    """Goal: plain words. Method: short lists, small and large counts, names with underscores."""
    assert [listed([]), listed(["a"]), listed(["a", "b", "c"])] == ["", "a", "a, b and c"]
    assert [count_words(3), count_words(1424)] == ["three", "1,424"]
    assert category_words("own_kv_reads") == "own KV reads"
    assert form_words("guaranteed", 0.97) == "held 97 % of the time"
    assert fabrics_in_order(["x", "any_host", "reconfigurable", "x"]) == ["reconfigurable", "any_host", "x"]


@pytest.mark.parametrize("text", ["8x8x16:3", "1024:3", "8x8x16: 3", "{'8x8x16': 3}"])
def test_promises_are_read_in_every_spelling(text: str) -> None:
    """Goal: the size and count are found however the promise is written. Method: shapes, chips, a mapping's text."""
    assert [(item.chips, item.count) for item in read_promise(text)] == [(1024, 3)]
    assert promise_words(text) == "three 1024-chip slices"


def test_promises_of_several_sizes_and_what_is_no_promise() -> None:
    """Goal: mixed promises are said in full, others are repeated. Method: two sizes; a text without any."""
    assert promise_words("8x8x16:3,4x4x4:1") == "three 1024-chip slices and one 64-chip slice"
    assert promise_words("whatever") == "whatever"
