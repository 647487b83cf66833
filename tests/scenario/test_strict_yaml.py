"""Strict YAML: scalars of YAML 1.2, lines of values, and no text that brings it down."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.strict_yaml import parse_document, scalar_value
from topology.errors import Fault, InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [("on", "on"), ("yes", "yes"), ("12:30", "12:30"), ("2020-01-01", "2020-01-01"), ("010", "010"), ("1_000", "1_000"),
     ("0x1F", "0x1F"), ("1e5", 100_000), ("1.5e3", 1500.0), ("-3", -3), ("99e-2", 0.99), (".5", 0.5), ("true", True),
     ("~", None), ("", None), ("1" * 30, float("1" * 30)), ("4x4x8", "4x4x8"), ("99.5 %", "99.5 %")],
)  # fmt: skip
def test_scalars(text: str, value: object) -> None:
    """Goal: no surprise of YAML 1.1. Method: the scalars that it reads in its own way."""
    found = scalar_value(text)
    assert found == value
    assert type(found) is type(value)


def test_places_are_lines_of_keys_and_entries() -> None:
    """Goal: a fault names its line. Method: a block and a flow mapping over several lines."""
    document = parse_document(b"a:\n  b: [1,\n    2]\nc: {d: 1,\n    e: 2}\n", "f.yaml")
    assert document.data == {"a": {"b": [1, 2]}, "c": {"d": 1, "e": 2}}
    assert document.place(("a", "b", 1)) == "f.yaml:3"
    assert document.place(("c", "e")) == "f.yaml:5"
    assert document.place(("a", "b", 7)) == "f.yaml:2"


def test_all_repeated_keys_are_named() -> None:
    """Goal: one round of mending is enough. Method: three faults in one text."""
    with pytest.raises(InputError) as caught:
        parse_document(b"a: 1\na: 2\nb: {c: 1, c: 2}\n3: x\n", "f.yaml")
    assert [fault.where for fault in caught.value.faults] == ["f.yaml:2", "f.yaml:3", "f.yaml:4"]


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60) | st.text(alphabet="ab:-[]{}&*!|>'\"#%@\t\n ,?0", max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """Goal: no file brings the reader down. Method: any bytes give a mapping, or faults on one line each."""
    faults: tuple[Fault, ...] = ()
    try:
        assert isinstance(parse_document(content, "f.yaml").data, dict)
    except InputError as error:
        faults = error.faults
    assert all(fault.where.startswith("f.yaml") and "\n" not in str(fault) for fault in faults)
