"""Pictures of single tokens: what they draw is what the tables say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection

from sim.report.life_pictures import life_of_request
from sim.report.style import svg_text
from sim.report.token_words import life_sentences
from sim.token_tables import REQUEST_LIFE
from workloads.serving.fields import LEDGER

MS = 1_000_000


def a_life(gaps: dict[int, dict[str, int]], tokens: int) -> pd.DataFrame:
    """A life of plain steps of 20 ms after a prompt of 100 ms; `gaps` by token have time in other categories too."""
    rows, at_ns = [], 0
    for number in range(1, tokens + 1):
        parts = {"prefill_compute": 100 * MS} if number == 1 else {"weights": 15 * MS, "fixed": 5 * MS}
        parts |= gaps.get(number, {})
        at_ns += sum(parts.values())
        reason = "computed again" if number in gaps else "step" if number > 1 else "prompt"
        rows.append(
            {"service": "chat", "request": 7, "token": number, "at_ns": at_ns, "gap_ns": sum(parts.values()),
             "replica": 0, "sequences": 3, "prompt_tokens": 0, "reason": reason,
             **{f"{name}_ns": parts.get(name, 0) for name in LEDGER}}
        )  # fmt: skip
    return REQUEST_LIFE.make(rows)


@pytest.mark.parametrize("narrow", [False, True])
def test_a_stall_is_named_and_steps_stay_readable(narrow: bool) -> None:
    """Goal: one gap of a second does not flatten the steps of 20 ms. Method: the axis ends at four medians, the stall
    is named; the columns of the steps are as high as their categories say."""
    tables = {"request_life": a_life({30: {"recompute": 980 * MS}}, 60)}
    top, bottom = life_of_request(tables, narrow=narrow)
    assert bottom.get_ylim()[1] == pytest.approx(80.0)
    text = svg_text(life_of_request(tables, narrow=narrow).figure)
    assert "1 s: computed again" in text
    assert "first token after 100 ms" in text
    heights: dict[int, float] = {}
    for each in bottom.collections:
        assert isinstance(each, PolyCollection)
        for path in each.get_paths():
            low, high = path.vertices[:, 1].min(), path.vertices[:, 1].max()
            number = round(float(path.vertices[:, 0].mean()))
            heights[number] = heights.get(number, 0.0) + float(high - low)
    assert heights == pytest.approx({number: 1000.0 if number == 30 else 20.0 for number in range(2, 61)})
    assert np.asarray(top.lines[0].get_ydata())[-1] == 60


def test_one_token_has_no_gaps() -> None:
    """Goal: the shortest life is drawn and told. Method: an answer of one token."""
    tables = {"request_life": a_life({}, 1)}
    _, bottom = life_of_request(tables)
    assert "one token only" in bottom.texts[0].get_text()
    assert life_sentences(tables) == [
        "Request 7 of chat, with the longest gap of those recorded: first token after 100 ms (prompt), no gaps."
    ]
