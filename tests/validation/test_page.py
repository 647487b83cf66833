"""docs/validation.md says what the code computes now."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.validation.chapters import CLOSING, cheap_chapters
from tests.validation.rows import HEAD, Chapter, Reference

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation.md"
CHEAP = [row for chapter in cheap_chapters() for row in chapter.rows if not row.slow]


@cache
def lines() -> frozenset[str]:
    """The lines of the page as it stands."""
    return frozenset(PAGE.read_text(encoding="utf-8").splitlines())


def test_cheap_rows_are_current() -> None:
    """Goal: the page can not disagree with the code. Method: every row without a simulation or a real file, word for
    word; `make validation` writes it again."""
    stale = [row.line() for row in CHEAP if row.line() not in lines()]
    assert not stale, "run `make validation`: " + "\n".join(stale[:5])
    assert len(CHEAP) > 200


@pytest.mark.parametrize("chapter", cheap_chapters(), ids=lambda chapter: chapter.heading)
def test_chapters_are_there(chapter: Chapter) -> None:
    """Goal: no chapter is forgotten, and ready lines (passes) are current. Method: heading, words, lines."""
    text = PAGE.read_text(encoding="utf-8")
    assert f"## {chapter.heading}\n" in text
    ready = chapter.lines() if chapter.lines is not None else []
    assert [line for line in ready if line not in lines()] == []


def test_head_and_what_is_not_validated() -> None:
    """Goal: marks are explained, gaps are told. Method: opening and closing texts; a mark and a source per row."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith(HEAD)
    assert text.endswith(CLOSING)
    assert all(row.mark in ("V", "V2", "D", "R") and row.source for row in CHEAP)


def test_errors_of_rows() -> None:
    """Goal: errors are what the head says. Method: a number met, one missed, a range."""

    def cell(reference: float | tuple[float, float], ours: float) -> str:
        row = Reference(what="x", value=reference, ours=lambda: ours, mark="D", source="s", text="{:.1f}")
        return row.line().split(" | ")[3]

    assert cell(2.0, 2.04) == "none"
    assert cell(2.0, 2.2) == "+10.0 %"
    assert cell(0.0, 1.0) == "-"
    assert cell((1.0, 3.0), 2.0) == "inside"
    assert cell((1.0, 3.0), 4.0) == "outside"
