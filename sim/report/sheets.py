"""Sheets of a printed report: texts, tables and pictures laid out from top to bottom, page after page, by matplotlib.

A page is the figure of its picture with a margin around it that holds the texts; so pictures stay lines and letters.
Lengths are inches, from the left and from the top of the page. Pages are as wide as a picture and two margins, in the
proportions of A4.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.backends.backend_pdf import FigureCanvasPdf, PdfPages
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextToPath
from matplotlib.transforms import Bbox

from sim.report.palette import GRID, INK, MUTED
from sim.report.style import RC, WIDE_INCHES

MARGIN = 0.5
PAGE_WIDTH = WIDE_INCHES + 2 * MARGIN
PAGE_HEIGHT = PAGE_WIDTH * 297 / 210
LEADING = 1.35
"""Height of a line over the size of its letters."""
POINTS = 72.0
FAMILY = "DejaVu Sans"


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a text looks: its size in points, whether it is bold, its colour."""

    size: float = 9.0
    bold: bool = False
    colour: str = INK

    @property
    def line(self) -> float:
        """Height of a line in inches."""
        return LEADING * self.size / POINTS


BODY, SMALL = Style(), Style(size=7.5, colour=MUTED)


@dataclass(frozen=True, kw_only=True)
class Text:
    """A line of text: where it begins, or ends where `right`, and its upper edge."""

    x: float
    y: float
    text: str
    style: Style
    right: bool = False


@dataclass(frozen=True, kw_only=True)
class Box:
    """A coloured stripe."""

    x: float
    y: float
    width: float
    height: float
    colour: str


@dataclass(kw_only=True)
class Page:
    """What stands on one page; `picture` has its upper edge at `picture_y`."""

    texts: list[Text] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    rules: list[tuple[float, float]] = field(default_factory=list)
    picture: Figure | None = None
    picture_y: float = 0.0


@contextmanager
def styled_page() -> Iterator[None]:
    """The project's settings, and letters that can be searched and copied."""
    with matplotlib.rc_context(), matplotlib.rc_context({**RC, "pdf.fonttype": 42}):
        yield


@lru_cache(maxsize=20_000)
def width_of(text: str, size: float, bold: bool) -> float:
    """Width of a text in inches."""
    font = FontProperties(family=FAMILY, size=size, weight="bold" if bold else "normal")
    width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width) / POINTS


def wrapped(text: str, style: Style, width: float) -> list[str]:
    """The lines of a text in a column; a word that is longer than a line is broken."""
    lines, line = [], ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if width_of(longer, style.size, style.bold) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        line = word
        while width_of(line, style.size, style.bold) > width and len(line) > 1:
            kept = next(n for n in range(len(line) - 1, 0, -1) if n == 1 or _fits(line[:n], style, width))
            lines.append(line[:kept])
            line = line[kept:]
    return [*lines, line]


def _fits(text: str, style: Style, width: float) -> bool:
    return width_of(text, style.size, style.bold) <= width


class Sheets:
    """Pages in the making: each verb puts something below what is there, on a new page where there is no room."""

    def __init__(self, foot: str) -> None:
        self._foot = foot
        self.pages = [Page()]
        self.y = MARGIN

    @property
    def room(self) -> float:
        """Height that is left on the page."""
        return PAGE_HEIGHT - 1.4 * MARGIN - self.y

    @property
    def has_picture(self) -> bool:
        """Whether the page has its picture already: there is one at most."""
        return self.pages[-1].picture is not None

    def turn(self) -> None:
        """Begin a new page."""
        if self.y > MARGIN:
            self.pages.append(Page())
            self.y = MARGIN

    def need(self, height: float) -> bool:
        """Begin a new page where there is less room than that; says whether one was begun."""
        if height <= self.room or self.y <= MARGIN:
            return False
        self.turn()
        return True

    def skip(self, height: float) -> None:
        """Leave a gap, but not at the top of a page."""
        if self.y > MARGIN:
            self.y += height

    def line(self, text: str, style: Style, *, x: float = 0.0, right: bool = False) -> None:
        """One line at the height of the pen, which stays; `x` from the margin, of its end where `right`."""
        self.pages[-1].texts.append(Text(x=MARGIN + x, y=self.y, text=text, style=style, right=right))

    def paragraph(self, text: str, style: Style = BODY, *, indent: float = 0.0, mark: str = "") -> None:
        """A text in lines, with a mark before the first one."""
        for number, line in enumerate(wrapped(text, style, WIDE_INCHES - indent)):
            self.need(style.line)
            if mark and not number:
                self.line(mark, style, x=max(0.0, indent - 0.15))
            self.line(line, style, x=indent)
            self.y += style.line
        self.y += 0.35 * style.line

    def rule(self, width: float = WIDE_INCHES) -> None:
        """A thin line across."""
        self.pages[-1].rules.append((self.y, width))

    def shade(self, height: float, colour: str, width: float = WIDE_INCHES) -> None:
        """A coloured stripe below the pen, which stays."""
        self.pages[-1].boxes.append(Box(x=MARGIN, y=self.y, width=width, height=height, colour=colour))

    def picture(self, figure: Figure) -> None:
        """A picture, the only one of its page; a page grows with a picture that is taller than it."""
        height = float(figure.get_figheight())
        if self.has_picture:
            self.turn()
        self.need(height)
        page = self.pages[-1]
        page.picture, page.picture_y = figure, self.y
        self.y += height + 0.1

    def save(self, out: PdfPages) -> None:
        """Draw all pages."""
        for number, page in enumerate(self.pages, start=1):
            _draw(out, page, f"{self._foot}, page {number}")


def _draw(out: PdfPages, page: Page, foot: str) -> None:
    """One page: the figure of its picture, or an empty one, with the texts around it; the figure stays as it was."""
    figure = Figure(figsize=(WIDE_INCHES, 0.1)) if page.picture is None else page.picture
    if page.picture is None:
        FigureCanvasPdf(figure)
    high = float(figure.get_figheight())
    tall = max(PAGE_HEIGHT, page.picture_y + high + 1.5 * MARGIN)
    bottom = tall - page.picture_y - high
    _hold_legends(figure)
    added = list(_artists(figure, page, page.picture_y + high))
    added += [_written(figure, Text(x=MARGIN, y=tall - 0.8 * MARGIN, text=foot, style=SMALL), page.picture_y + high)]
    save: Any = out.savefig
    save(figure, bbox_inches=Bbox([[-MARGIN, -bottom], [PAGE_WIDTH - MARGIN, tall - bottom]]))
    for artist in added:
        artist.remove()


def _artists(figure: Figure, page: Page, base: float) -> Iterator[Artist]:
    """Stripes, lines and texts of a page, as parts of the figure whose lower edge is at `base`."""
    wide, high = float(figure.get_figwidth()), float(figure.get_figheight())
    for box in page.boxes:
        corner = (box.x - MARGIN) / wide, (base - box.y - box.height) / high
        stripe = Rectangle(corner, box.width / wide, box.height / high, facecolor=box.colour, linewidth=0)
        yield figure.add_artist(stripe)
    for y, width in page.rules:
        level = (base - y) / high
        yield figure.add_artist(Line2D([0.0, width / wide], [level, level], color=GRID, linewidth=0.5))
    for text in page.texts:
        yield _written(figure, text, base)


def _written(figure: Figure, text: Text, base: float) -> Artist:
    style = text.style
    return figure.text(
        (text.x - MARGIN) / float(figure.get_figwidth()),
        (base - text.y - 1.02 * style.size / POINTS) / float(figure.get_figheight()),
        text.text,
        fontsize=style.size,
        color=style.colour,
        family=FAMILY,
        weight="bold" if style.bold else "normal",
        ha="right" if text.right else "left",
        va="baseline",
        parse_math=False,
    )


def _hold_legends(figure: Figure) -> None:
    """Tie legends to the place that they have in the figure: by themselves they would go to the edge of the page."""
    for legend in figure.legends:
        corner = figure.transFigure.inverted().transform(legend.get_window_extent().min)
        legend.borderaxespad = 0.0
        legend.set_loc("lower left")
        legend.set_bbox_to_anchor((float(corner[0]), float(corner[1])), transform=figure.transFigure)
