"""JSON of traces: numbers exactly as written, faults by line instead of exceptions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from workloads.file_text import FaultList, shown_value


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("a field is there twice")
    return named


def parsed_json(text: str) -> Any:
    """The value of a JSON text, fractions as Decimal; ValueError says what is wrong."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON ({error.msg} at character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("no JSON of a trace: nested too deeply") from None
    except ArithmeticError:
        raise ValueError("no JSON of a trace: a number without bounds") from None


def json_rows(
    path: str | Path, text: str, fields: Sequence[str], faults: FaultList
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of every line that holds an object with all `fields`; empty lines are passed by."""
    for line, part in enumerate(text.split("\n"), start=1):
        if not part.strip():
            continue
        try:
            row = parsed_json(part)
        except ValueError as error:
            faults.add(line, str(error))
            continue
        if not isinstance(row, dict):
            faults.add(line, f"{shown_value(row)} is no JSON object")
            continue
        missing = [name for name in fields if row.get(name) is None]
        if missing:
            faults.add(line, f"missing field {', '.join(missing)}")
            continue
        yield line, row


def whole_of(value: Any, name: str) -> int:
    """A whole number that JSON may write `3` or `3.0`; ValueError says what is wrong with field `name`."""
    number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if not number or not -(10**30) < value < 10**30 or value != int(value):
        raise ValueError(f"{name}: {shown_value(value)} is not a whole number")
    return int(value)
