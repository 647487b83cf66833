"""What commands print: aligned tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import typer


def say(text: str = "") -> None:
    """Print one line on standard output."""
    typer.echo(text)


def say_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under a header, numbers to the right, texts to the left; None is blank."""
    texts = [[_cell(cell) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in [list(header), *texts]) for column in range(len(header))]
    numeric = [bool(rows) and all(_is_number(row[column]) for row in rows) for column in range(len(header))]
    for line in [list(header), *texts]:
        cells = [
            text.rjust(w) if right else text.ljust(w) for text, w, right in zip(line, widths, numeric, strict=True)
        ]
        say("  ".join(cells).rstrip())


def say_json(document: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON document; numbers that are not finite become null."""
    typer.echo(json.dumps(_finite(document), indent=2, allow_nan=False, ensure_ascii=False))


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
