"""The examples of the README on shapes and light run, and give the figures in their comments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_examples_run_as_they_stand() -> None:
    """Goal: a reader can paste them. Method: run both blocks in one namespace, then look at what the comments say."""
    text = README.read_text(encoding="utf-8")
    start = text.index("Shapes, light and dead switches need no run:")
    shapes, light = re.findall(r"```python\n(.*?)```", text[start:], flags=re.DOTALL)[:2]
    names: dict[str, Any] = {}
    exec(compile(shapes, "README shapes", "exec"), names)
    assert names["measure_slice"](names["shape"]).all_to_all_bytes_per_s == pytest.approx(87.3e9, abs=5e7)
    assert names["left"].routed
    assert names["left"].deadlock_free
    exec(compile(light, "README light", "exec"), names)
    timing = names["ReconfigurationTiming"]()
    assert timing.time_s(names["plan"], 0.5) == pytest.approx(10, abs=0.5)
    assert round(names["circuits_per_day"](139, 3.6)) == 24_019
    share = names["optics_share"](names["pod"])
    assert share.cost_share == pytest.approx(0.041, abs=5e-4)
    assert share.power_share == pytest.approx(0.026, abs=5e-4)
    assert names["RepatchCrew"]().time_s(len(names["work"].moves)) == 4 * 3600
