"""The report page: whole in one file, sound as HTML, and usable by ear, by keyboard, on a phone, in the dark."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from sim.report.context import ReportContext
from sim.report.page import render_page
from sim.report.plots import Picture
from tests.browser import chromium, faults_of_access

Tables = dict[str, pd.DataFrame]
VOID = {"meta", "link", "br", "img", "hr", "wbr"}


@pytest.fixture(scope="session")
def page(tables: Tables, context: ReportContext, pictures: dict[str, Picture]) -> str:
    return render_page(tables, context, pictures)


class _Outline(HTMLParser):
    """Open tags in order, ids, links; fails on tags that are closed out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self.ids += [found["id"]] if found.get("id") else []
        self.links += [found["href"]] if tag == "a" and found.get("href") else []
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def _outline(page: str) -> _Outline:
    outline = _Outline()
    outline.feed(page)
    assert not outline.stack
    return outline


def test_page_is_one_small_file(page: str) -> None:
    """Goal: it opens anywhere, without a network. Method: no addresses but names of XML vocabularies; under 5 MB."""
    assert len(page.encode()) < 5_000_000
    vocabularies = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\"' <)]+", page)) <= vocabularies
    assert "<script" not in page


def test_page_is_sound_html(page: str) -> None:
    """Goal: no broken markup. Method: tags close in order, ids are unique, inner links have targets."""
    outline = _outline(page)
    assert not [ident for ident, count in Counter(outline.ids).items() if count > 1]
    assert all(link.removeprefix("#") in outline.ids for link in outline.links)
    for tag in ("header", "nav", "main", "footer", "h1"):
        assert outline.tags.count(tag) == 1
    assert outline.tags.count("caption") == outline.tags.count("table")


def test_answer_comes_first_and_texts_are_escaped(page: str) -> None:
    """Goal: the sentence before all else, and no injection. Method: order of headings; a name with brackets."""
    headings = re.findall(r"<h2 id=\"([^\"]+)\"", page)
    assert headings[:3] == ["answer", "availability-table", "curves"]
    assert headings[-3:] == ["configuration", "warnings", "definitions"]
    assert "63 / 56 / 51 reconfigurable" in page
    assert "availability &lt;of&gt; slices" in page
    assert "availability <of> slices" not in page


def test_figures_have_words_and_follow_the_colour_scheme(page: str, pictures: dict[str, Picture]) -> None:
    """Goal: pictures for ears and for dark rooms. Method: a label per figure; colours are variables with two values."""
    assert page.count('<figure role="img" aria-label="') == len(pictures)
    assert "prefers-color-scheme: dark" in page
    assert "var(--reconfigurable, #0067a5)" in page
    assert "overloaded" in page
    assert "assumption" in page


def test_a_page_of_nothing(tmp_path: Path) -> None:
    """Goal: a run with no tables still has a page. Method: no tables, no pictures, a bare context."""
    page = render_page({}, ReportContext(name="bare"), {})
    assert page.count("Not in this run") >= 8
    _outline(page)


def test_a_page_without_narrow_pictures(tables: Tables, pictures: dict[str, Picture]) -> None:
    """Goal: pictures may come in one width only. Method: drop the narrow figure; ids stay unique."""
    one = pictures["promise"]
    wide = Picture(name=one.name, title=one.title, alt=one.alt, wide=one.wide)
    outline = _outline(render_page(tables, ReportContext(name="x"), {"promise": wide}))
    assert not [ident for ident, count in Counter(outline.ids).items() if count > 1]


@pytest.mark.slow
def test_page_in_a_browser(page: str, tmp_path: Path) -> None:
    """Goal: no sideways scrolling, no faults of access, no requests. Method: chromium and axe, 4 views."""
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    with chromium() as browser:
        for width in (1280, 400):
            for scheme in ("light", "dark"):
                view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                seen: list[str] = []
                view.on("console", lambda message, seen=seen: seen.append(message.text))
                view.on("request", lambda request, seen=seen: seen.append(request.url))
                view.goto(file.as_uri())
                assert view.evaluate("document.documentElement.scrollWidth") <= width
                assert [url for url in seen if not url.startswith(("file:", "data:"))] == []
                assert faults_of_access(view) == []
                view.keyboard.press("Tab")
                assert view.evaluate("document.activeElement.textContent") == "Skip to the answer"
