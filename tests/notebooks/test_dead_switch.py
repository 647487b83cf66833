"""Notebooks are stored without outputs, and the one on dead switches runs from top to bottom."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


def cells(name: str) -> list[dict[str, Any]]:
    found = json.loads((FOLDER / name).read_text(encoding="utf-8"))["cells"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.ipynb")))
def test_notebooks_hold_no_outputs(name: str) -> None:
    """Goal: a diff of a notebook is a diff of its text. Method: look at every code cell."""
    for cell in cells(name):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def shown(value: Any) -> str | bytes | None:
    """What a notebook would show of a value."""
    for form in ("_repr_html_", "_repr_png_"):
        if hasattr(value, form):
            drawn: str | bytes = getattr(value, form)()
            return drawn
    return None if value is None else repr(value)


def test_what_one_dead_switch_costs() -> None:
    """Goal: the notebook runs and shows what it says. Method: run its cells in order; render the last value of each."""
    names: dict[str, Any] = {}
    pictures = 0
    for cell in cells("dead_switch.ipynb"):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "dead_switch.ipynb", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "dead_switch.ipynb", "eval"), names)
            drawn = shown(value)
            assert drawn
            pictures += isinstance(drawn, bytes)
    assert pictures == 3
    kept = names["kept"]
    assert kept.loc[("4x4x4", "optimal")].tolist() == pytest.approx([31 / 32] * 3, abs=2e-3)
    assert kept.loc[("4x4x8", "optimal")].tolist() == pytest.approx([1.0, 1.0, 15 / 16], abs=2e-3)
