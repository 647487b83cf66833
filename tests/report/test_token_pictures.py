"""Pictures of single tokens: what they draw is what the tables say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection

from sim.cost_pictures import draw_pass
from sim.report.life_pictures import life_of_request
from sim.report.style import svg_text
from sim.report.token_pictures import time_over_chips, traffic_by_level
from sim.report.token_words import floor_sentences, life_sentences, short_seconds
from sim.report.words import bytes_words
from sim.token_costs import SliceParts, floor_rows, traffic_rows
from sim.token_tables import REQUEST_LIFE, TOKEN_FLOOR, TRAFFIC
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.models import MODELS
from workloads.costs.asking import replica_on
from workloads.costs.levels import Level
from workloads.costs.passes import Phase
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


def traffic() -> dict[str, pd.DataFrame]:
    """Two levels with known rates, one whose rate is not known, one of which nothing is known."""
    ladder = (
        Level(name="vmem", bytes=1e6, bytes_per_s=None),
        Level(name="cmem", bytes=1e7, bytes_per_s=None),
        Level(name="hbm", bytes=1e10, bytes_per_s=1e12),
        Level(name="ici", bytes=None, bytes_per_s=1e11),
        Level(name="host_link", bytes=None, bytes_per_s=1e10),
    )
    moved = {
        "vmem": {"weights": 8e9, "kv_read": 1e9, "kv_written": 1e5, "activations": 5e9},
        "hbm": {"weights": 4e9, "kv_read": 1e9, "kv_written": 1e5, "activations": 1e9},
        "ici": {"activations": 2e7},
        "host_link": {"activations": 0.0},
    }
    return {"traffic": TRAFFIC.make(traffic_rows("chat", ladder, 10, moved, 2e-3))}


@pytest.mark.parametrize("narrow", [False, True])
def test_bars_are_the_bytes_of_the_table(narrow: bool) -> None:
    """Goal: bytes and seconds are drawn as they are, and blanks are told. Method: ends of the bars against the table;
    a level without traffic is left out, unknown ones say so."""
    left, right = traffic_by_level(traffic(), narrow=narrow)
    ends = sorted(bar.get_x() + bar.get_width() for bar in left.patches)
    assert ends == pytest.approx(sorted([8e9, 1e9, 1e5, 5e9, 4e9, 1e9, 1e5, 1e9, 2e7]))
    assert [each.get_text() for each in left.get_yticklabels()] == ["VMEM", "CMEM", "HBM", "ICI"]
    assert sorted(bar.get_x() + bar.get_width() for bar in right.patches) == pytest.approx(
        [2e7 / 1e12, 6.0001e9 / 1e13]
    )
    told = [each.get_text() for each in [*left.texts, *right.texts]]
    assert "no source tells" in told
    assert "rate not known" in told
    assert "600 µs, 30 %" in told
    assert "passes take 2 ms" in told


@pytest.mark.parametrize("narrow", [False, True])
def test_the_floor_lies_under_the_step(narrow: bool) -> None:
    """Goal: the fastest slice and the floor are those of the table. Method: three slices, the first too small."""
    slices = [
        SliceParts(
            shape=str(chips),
            chips=chips,
            fits=chips > 8,
            parts_s={"weights": 0.4 / chips, "fixed": 4e-3, "sends": 0.0},
            floor_s={"fixed": 4e-3},
        )
        for chips in (8, 64, 512)
    ]
    tables = {"token_floor": TOKEN_FLOOR.make(floor_rows("chat", slices))}
    assert "sends" not in set(tables["token_floor"]["part"])
    (axes,) = time_over_chips(tables, narrow=narrow)
    drawn = [np.asarray(line.get_ydata(), dtype=float).tolist() for line in axes.lines]
    assert pytest.approx([54.0, 10.25, 4.78125]) in drawn
    assert pytest.approx([4.0, 4.0, 4.0]) in drawn
    assert axes.texts[0].get_text() == "fastest on 512 chips: 4.78 ms\n(floor there 4 ms)"
    (said,) = floor_sentences(tables)
    assert said.startswith("Chat: the next token comes soonest on 512 chips, after 4.78 ms; 4 ms of it can not be ")
    assert said.endswith("made parallel (fixed 4 ms).")


def test_numbers_of_all_sizes_have_units() -> None:
    """Goal: bytes and times are read at a glance. Method: one of each size."""
    sizes = [54, 8.2e3, 4.09e6, 3.73e9, 2e12]
    assert [bytes_words(value) for value in sizes] == ["54 B", "8.2 kB", "4.09 MB", "3.73 GB", "2 TB"]
    times = [2.63e-11, 4e-9, 7.87e-5, 1.66e-2, 3]
    assert [short_seconds(value) for value in times] == ["26.3 ps", "4 ns", "78.7 µs", "16.6 ms", "3 s"]


def test_a_pass_is_drawn_with_its_step_over_chips() -> None:
    """Goal: the picture of `opticube cost`. Method: a decode has three panels, a prompt two; the fastest slice is the
    one of the cost tables among those that hold the model."""
    replica, _ = replica_on(MODELS["llama2_70b"], CHIPS["a100_80gb"], "8")
    panels = draw_pass(replica, Phase.DECODE, 32, 2048)
    assert len(panels) == 3
    assert "fastest on 8 chips" in panels[2].texts[0].get_text()
    assert len(draw_pass(replica, Phase.PREFILL, 1, 2048)) == 2
