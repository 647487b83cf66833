"""Sections of the page: no heading without anything below it, keys as code, values that stand beside their marks."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from sim.report.context import ReportContext
from sim.report.page import render_page
from sim.report.sections import Section, sections_of
from sim.report.style import name_beside, new_figure, svg_text
from tests.report import closed


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    """The table of curves alone."""
    return {"availability": closed.availability(hosts=(0.99,), sizes=(64, 1024))}


def test_no_heading_without_anything_below_it(tables: dict[str, pd.DataFrame]) -> None:
    """Goal: a section that is a picture alone goes with its picture. Method: the page of a table without its picture:
    the section of the curves is gone, of the others each heading has something below it."""
    curves = Section(ident="curves", heading="Curves", shows="availability")
    assert curves.has_something({"availability"})
    assert not curves.has_something(set())
    page = render_page(tables, ReportContext(name="x"), {})
    shown = [
        section.ident for section in sections_of(tables, ReportContext(name="x")) if f'id="{section.ident}"' in page
    ]
    assert "availability-table" in shown
    assert "curves" not in shown
    assert 'href="#curves"' not in page
    assert not re.search(r"</h2>\s*</section>", page)


def test_keys_are_code_and_nothing_else_is_markup(tables: dict[str, pd.DataFrame]) -> None:
    """Goal: `study.x` is read as a key, and no text of a user becomes markup. Method: a warning with both."""
    page = render_page(tables, ReportContext(name="x", warnings=["see `a.b`, not `<b>c</b>` or <i>d</i>"]), {})
    assert "<li>see <code>a.b</code>, not <code>&lt;b&gt;c&lt;/b&gt;</code> or &lt;i&gt;d&lt;/i&gt;</li>" in page


def test_a_gap_between_mark_and_words_is_no_space() -> None:
    """Goal: browsers, which drop spaces at the ends of a text, keep words off their marks. Method: the SVG's texts."""
    figure = new_figure(4, 2)
    axes = figure.add_subplot()
    axes.plot([0.0, 1.0], [0.0, 1.0])
    for points in (-6.0, 6.0):
        name_beside(axes, "beside", 0.5, 0.5, points=points)
    texts = re.findall(r'text-anchor: (end|start)" x="([0-9.]+)"[^>]*>beside</text>', svg_text(figure))
    assert [anchor for anchor, _ in texts] == ["end", "start"]
    assert float(texts[1][1]) - float(texts[0][1]) == pytest.approx(12.0)
