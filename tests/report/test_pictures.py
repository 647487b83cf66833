"""Pictures: complete, the same bytes each time, and honest about what a run does not have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from sim.report.categories import ledger_colours, ledger_group, use_colours
from sim.report.plots import DRAWINGS, Picture, draw_pictures, failure_story, promise_cubes, save_pictures
from sim.report.story import failure_instant_s, mean_rows, running_mean, stage_spans
from sim.report.style import png_bytes, svg_text, text_on
from tests.report import closed

Tables = dict[str, pd.DataFrame]


def _texts(axes: Axes) -> str:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return svg_text(figure)


def test_every_picture_is_drawn_and_described(pictures: dict[str, Picture]) -> None:
    """Goal: a picture per table, each with words for those who do not see it. Method: all tables of a run of curves."""
    assert list(pictures) == ["availability", "promise", "failure", "slice_sizes", "ledger", "chip_hours"]
    assert all(len(picture.alt) > 80 and picture.title for picture in pictures.values())


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_pictures_say_what_is_absent(name: str) -> None:
    """Goal: a missing table is told, not a failure. Method: draw from no tables, wide and narrow."""
    _, _, draw = DRAWINGS[name]
    for narrow in (False, True):
        assert "Not in this run" in _texts(draw({}, narrow=narrow)[0])


def test_same_tables_same_bytes(pictures: dict[str, Picture]) -> None:
    """Goal: files are comparable. Method: draw twice, compare PNG and SVG; no date in either."""
    tables = {"promise": closed.promise()}
    first, second = (draw_pictures(tables, narrow=False)["promise"] for _ in range(2))
    assert png_bytes(first.wide) == png_bytes(second.wide)
    assert first.wide_svg == second.wide_svg == pictures["promise"].wide_svg
    assert "<dc:date>" not in first.wide_svg
    assert "Matplotlib" not in first.wide_svg


def test_pictures_are_saved_as_png_and_svg(pictures: dict[str, Picture], tmp_path: Path) -> None:
    """Goal: both files per picture. Method: save one of them."""
    paths = save_pictures({"failure": pictures["failure"]}, tmp_path)
    assert [path.name for path in paths] == ["failure.png", "failure.svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in paths[1].read_text(encoding="utf-8")


def test_curves_show_every_form_and_availability(tables: Tables) -> None:
    """Goal: forms are apart. Method: a panel per form and availability; the drawn values are those of the table."""
    panels = DRAWINGS["availability"][2](tables)
    assert len(panels) == 9
    shown = [line.get_ydata() for line in panels[0].lines if line.get_linestyle() == "None"]
    expected = tables["availability"].query("fabric == 'reconfigurable' and form == 'expected' and slice_chips == 1024")
    assert np.isclose(np.asarray(shown[0])[4], 100 * expected["value"].iloc[0])
    assert panels._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("hosts", [(0.995,), (0.9, 0.95, 0.99, 0.995, 0.999, 0.9999)])
def test_one_availability_and_many(hosts: tuple[float, ...]) -> None:
    """Goal: sweeps of any length are drawn. Method: one availability, and six (some left out, and said so)."""
    tables = {"availability": closed.availability(hosts=hosts, sizes=(64, 1024))}
    panels = DRAWINGS["availability"][2](tables)
    assert ("host availabilities are drawn" in _texts(panels[0])) == (len(hosts) > 4)


def test_runs_from_logs_are_drawn() -> None:
    """Goal: no set availability, shuffles and no intervals do no harm. Method: NaN in all of them."""
    table = closed.availability(hosts=(0.99,), sizes=(64, 1024)).assign(host_availability=np.nan, closed_form=np.nan)
    table[["ci_low", "ci_high"]] = np.nan
    table["shuffle_low"], table["shuffle_high"] = table["value"] - 0.01, table["value"] + 0.01
    assert "as logged" in _texts(DRAWINGS["availability"][2]({"availability": table})[0])


def test_promises_without_numbers_leave_gaps_and_say_so() -> None:
    """Goal: an unknown number is not drawn as zero. Method: large static contiguous slices, and a mixed promise."""
    panels = promise_cubes({"promise": closed.promise()})
    assert "not known" in _texts(panels[0])
    mixed = closed.promise(hosts=(0.99,), sizes=()).assign(slices="8x8x16:3,4x4x4:2")
    assert "single size" in _texts(promise_cubes({"promise": mixed})[0])


def test_stages_of_a_failure() -> None:
    """Goal: stages and the instant of failure are read from the table. Method: a made story of known lengths."""
    rows = closed.failure_story()
    spans = stage_spans(rows[rows["fabric"] == "reconfigurable"])
    assert [span.stage for span in spans] == ["running", *(name for name, _ in closed.STAGES), "running"]
    assert failure_instant_s(spans) == 120.0
    assert [span.end_s - span.start_s for span in spans[1:-1]] == [length for _, length in closed.STAGES]


def test_running_means() -> None:
    """Goal: the bold line is a mean, unbiased at its ends. Method: a constant stays; a spike is spread."""
    assert np.allclose(running_mean(np.full(100, 7.0), mean_rows(1200)), 7.0)
    assert running_mean(np.array([0.0, 0.0, 3.0, 0.0, 0.0]), 3).tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]
    assert [mean_rows(rows) for rows in (1, 79, 80, 1179)] == [1, 1, 3, 29]


def test_a_story_without_ledger_and_with_one_fabric() -> None:
    """Goal: parts of a story suffice. Method: only the reconfigurable fabric, no ledger, nothing failing."""
    story = closed.failure_story()
    one = story[story["fabric"] == "reconfigurable"]
    assert "back after 14.7 min" in _texts(failure_story({"failure_story": one})[0])
    quiet = one.assign(stage="running")
    assert "nothing failed" in _texts(failure_story({"failure_story": quiet})[0])


def test_unknown_categories_and_uses_keep_their_place() -> None:
    """Goal: nothing is dropped from a stack. Method: names that no list holds."""
    assert set(ledger_colours(["weights", "magic", "no_replica_up"])) == {"weights", "magic", "no_replica_up"}
    assert [ledger_group(name) for name in ("own_kv_reads", "others_kv_reads", "recompute", "magic")] == [
        "work",
        "sharing",
        "failure",
        "other",
    ]
    assert list(use_colours(["magic", "down", "useful"])) == ["useful", "down", "magic"]


def test_text_on_fills_is_readable() -> None:
    """Goal: numbers in bars can be read. Method: dark fills get light text and the reverse."""
    assert text_on("#1f4e79") != text_on("#dbe8f2")
