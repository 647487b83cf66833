"""One published number beside ours, and the page of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

HEAD = """# Validation

This page is written by `make validation`: numbers that nobody here produced, beside what opticube computes for them.

Marks: V, seen in the primary source's own text; V2, seen in a text that quotes or summarises it; D, computed by
others, or by arithmetic, independently of this simulator; R, recalled: not published as far as we know, shown
because it is consistent. The error is ours over the reference, less 1; of a range, whether ours lies inside. Rows
marked * take a simulation or a real log, and are computed by `make validation` alone; all others are computed
again in every `make test`.
"""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A number, or the ends of a range, with mark and source; `ours()` computes it; `text` formats both."""

    what: str
    value: float | tuple[float, float]
    ours: Callable[[], float]
    mark: str
    source: str
    text: str = "{:,.4g}"
    slow: bool = False

    def line(self) -> str:
        """The row of the page."""
        found = self.ours()
        ends = self.value if isinstance(self.value, tuple) else (self.value,)
        reference = " to ".join(self.text.format(end) for end in ends)
        star = " *" if self.slow else ""
        cells = [f"{self.what}{star}", reference, self.text.format(found), self._error(found), self.mark, self.source]
        return f"| {' | '.join(cells)} |"

    def _error(self, found: float) -> str:
        if isinstance(self.value, tuple):
            return "inside" if self.value[0] <= found <= self.value[1] else "outside"
        if self.text.format(found) == self.text.format(self.value):
            return "none"
        return "-" if self.value == 0 else f"{100 * (found / self.value - 1):+.1f} %"


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """A part of the page: a heading, a few words, its rows; `lines` are ready rows beside them."""

    heading: str
    words: str = ""
    rows: Sequence[Reference] = ()
    lines: Callable[[], list[str]] | None = None
    heads: Sequence[str] = field(default=("what", "reference", "ours", "error", "mark", "source"))

    def text(self) -> str:
        """The chapter as Markdown."""
        table = [f"| {' | '.join(self.heads)} |", "|" + "---|" * len(self.heads)]
        table += [row.line() for row in self.rows]
        table += [] if self.lines is None else self.lines()
        parts = [f"## {self.heading}", self.words, "\n".join(table) if len(table) > 2 else ""]
        return "\n\n".join(part for part in parts if part) + "\n"


def page(chapters: Iterable[Chapter], closing: str) -> str:
    """The whole page."""
    return "\n".join([HEAD, *(chapter.text() for chapter in chapters), closing])
