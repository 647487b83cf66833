"""Sliders of notebooks: the middle first, then what is chosen; without the widgets one plain call."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from sim.sliders import play


def test_without_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a notebook runs without them. Method: their package taken away: the value for the middle of each row."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert play(lambda batch, context: (batch, context), batch=[1, 8, 64], context=[10, 20]) == (8, 20)


def test_with_widgets() -> None:
    """Goal: every slider reaches the function. Method: sliders moved from Python; calls in order; an error at the first
    call is not swallowed."""
    pytest.importorskip("ipywidgets", reason="ipywidgets is not installed")
    called: list[Any] = []
    box = play(lambda batch, data: called.append((batch, data)), batch=[1, 8, 64], data=["poor", "good"])
    batch, data, _ = box.children
    assert [option[0] for option in batch.options] == ["1", "8", "64"]
    batch.value = 64
    data.value = "poor"
    assert called == [(8, "good"), (64, "good"), (64, "poor")]

    def fails(batch: int) -> None:
        raise ValueError(batch)

    with pytest.raises(ValueError, match="8"):
        play(fails, batch=[1, 8, 64])
