"""The waterfall: each step by a second route, its order, what is said of it, and its picture."""

from __future__ import annotations

import numpy as np
import pytest

from sim.report.plots import draw_pictures
from sim.report.waterfall_words import STEP_WORDS, waterfall_html, waterfall_lines
from sim.result import Result
from sim.simulation import run
from sim.studies.waterfall import STEPS
from tests.run.cases import SERVED, loaded
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.models import MODELS


@pytest.fixture(scope="module")
def served() -> Result:
    return run(loaded(SERVED, "serving.load_curve=null"), workers=1)


def _steps(result: Result, fabric: str) -> dict[str, float]:
    rows = result.waterfall[result.waterfall["fabric"] == fabric]
    assert list(rows["step"]) == list(STEPS) == list(STEP_WORDS)
    return dict(zip(rows["step"], rows["tokens_per_s"], strict=True))


def test_steps_by_a_second_route(served: Result) -> None:
    """Goal: every step is what it says. Method: peak and one request alone by hand (weights of a dense model read once
    per token bound it from above), the others from the table `service`."""
    for fabric in ("reconfigurable", "static_aligned"):
        steps = _steps(served, fabric)
        rows = served.service[served.service["fabric"] == fabric].set_index("measure")["value"]
        chips, chip, model = 3 * 128, CHIPS["tpu_v4"], MODELS["llama3_70b"]
        most_tokens = chips * chip.peak_flops_per_s / (2 * model.parameters)
        assert 0 < steps["peak"] < most_tokens
        assert steps["memory-bound"] < 3 * 128 * chip.hbm_bytes_per_s / model.weight_bytes(2.0)
        assert steps["placed"] / steps["batched"] == pytest.approx(rows["replicas_up_mean"] / 3)
        assert steps["in time"] == pytest.approx(chips / rows["chip_s_per_token_in_time"])
        assert steps["in time"] <= steps["batched"]
        lost_s = 60 + 30 + 10 + 180 + 600 if fabric == "reconfigurable" else 10 + 180 + 600
        lost = steps["batched"] * rows["losses_per_day"] * lost_s / 86_400 / 3
        assert steps["placed"] - steps["delivered"] == pytest.approx(lost)


def test_only_batches_give(served: Result) -> None:
    """Goal: a waterfall falls, but for batches. Method: the order of the steps on both fabrics; the first three are the
    same whatever the wiring."""
    light, wires = _steps(served, "reconfigurable"), _steps(served, "static_aligned")
    for steps in (light, wires):
        assert steps["memory-bound"] < steps["batched"] < steps["peak"]
        assert steps["batched"] >= steps["placed"] >= steps["delivered"] >= steps["in time"] > 0
    assert [light[step] for step in STEPS[:3]] == [wires[step] for step in STEPS[:3]]


def test_words_table_and_picture(served: Result) -> None:
    """Goal: what people see is the table. Method: numbers of the sentence; a row per step; a wide and a narrow picture
    with a panel per service and an alternative text."""
    (said,) = waterfall_lines(served.tables)
    share = served.waterfall[served.waterfall["step"] == "batched"]["share_of_peak"].iloc[0]
    assert f"{100 * share:.2g} % in full batches" in said
    assert len([row for row in waterfall_html(served.tables).rows if len(row) > 1]) == len(STEPS)
    picture = draw_pictures({"waterfall": served.waterfall})["waterfall"]
    assert picture.narrow is not None
    assert len(picture.wide.axes) == len(picture.narrow.axes) == 1
    assert "log scale" in picture.alt
    texts = [text.get_text() for text in picture.wide.axes[0].get_yticklabels()]
    assert texts == list(STEPS)
    assert np.isclose(served.plot.waterfall()[0].get_ylim()[1], -0.55)
