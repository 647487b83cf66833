"""The report as a PDF: sentences, tables and pictures of the page, drawn by matplotlib: it takes no browser."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.backends.backend_pdf import PdfPages

from sim.report.context import ReportContext, Tables
from sim.report.html_tables import HtmlTable, definitions_html, settings_html
from sim.report.palette import MUTED
from sim.report.plots import Picture
from sim.report.sections import Section, facts_of, sections_of
from sim.report.sentences import answer_sentences
from sim.report.sheets import BODY, SMALL, Sheets, Style, styled_page, width_of, wrapped
from sim.report.style import WIDE_INCHES

TITLE, HEADING, FIRST = Style(size=16, bold=True), Style(size=12, bold=True), Style(size=10.5, bold=True)
CELL_SIZES = (7.5, 6.5, 5.75)
"""Sizes of the letters of tables, in points: the first with which all columns fit, else columns are parted."""
PAD, HEAD_MAX = 0.14, 2.6
"""Between columns, and the longest line of the first column, in inches."""
SOFT = "#f1f4f7"


def render_pdf(tables: Tables, context: ReportContext, pictures: Mapping[str, Picture]) -> bytes:
    """The document. `pictures` are those of `plots.draw_pictures`; texts are written around their figures."""
    out, about = io.BytesIO(), {"Title": context.name, "Creator": "opticube", "CreationDate": None}
    with styled_page(), PdfPages(out, metadata=about) as pages:
        lay_out(tables, context, pictures).save(pages)
    return out.getvalue()


def lay_out(tables: Tables, context: ReportContext, pictures: Mapping[str, Picture]) -> Sheets:
    """All pages of the report."""
    sheets = Sheets(", ".join([context.name, *facts_of(context)]))
    sheets.paragraph(context.name, TITLE)
    if context.description:
        sheets.paragraph(context.description)
    sheets.paragraph(", ".join(facts_of(context)), SMALL)
    first, *others = answer_sentences(tables)
    sheets.paragraph(first, FIRST)
    for text in others:
        sheets.paragraph(text, indent=0.2, mark="•")
    sections = [each for each in sections_of(tables, context) if each.has_something(pictures)]
    for section in sections:
        if not section.absent:
            _section(sheets, section, pictures.get(section.shows))
    _heading(sheets, "Configuration")
    _table(sheets, settings_html(context))
    _list(sheets, "Warnings", list(context.warnings) or ["None."])
    absent = [section.absent for section in sections if section.absent]
    if absent:
        _list(sheets, "Not in this run", [text.removeprefix("Not in this run: ") for text in absent])
    _heading(sheets, "How each number is defined")
    _table(sheets, definitions_html(tables))
    return sheets


def _heading(sheets: Sheets, text: str, below: float = 1.0) -> None:
    sheets.skip(0.3)
    sheets.need(0.4 + below)
    sheets.paragraph(text, HEADING)


def _list(sheets: Sheets, heading: str, texts: Sequence[str]) -> None:
    _heading(sheets, heading, 0.3)
    for text in texts:
        sheets.paragraph(text, indent=0.2, mark="•")


def _section(sheets: Sheets, section: Section, picture: Picture | None) -> None:
    """Words and picture stay together, tables follow."""
    words = section.words if picture is None else section.words_with_picture
    lines = sum((len(wrapped(text, BODY, WIDE_INCHES)) + 0.35) * BODY.line for text in words)
    if picture is not None and sheets.has_picture:
        sheets.turn()
    _heading(sheets, section.heading, 0.5 if picture is None else lines + float(picture.wide.get_figheight()))
    for text in words:
        sheets.paragraph(text)
    if picture is not None:
        sheets.picture(picture.wide)
        sheets.paragraph(picture.alt, SMALL)
    if section.live:
        sheets.paragraph("The replay is in report.html: `opticube report RUN` writes it.")
    for table in section.tables:
        _table(sheets, table)


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Columns of a table, or a part of them: their numbers, widths in inches, and the look of cells."""

    numbers: Sequence[int]
    widths: Sequence[float]
    cell: Style

    @property
    def lefts(self) -> list[float]:
        """Where each column begins."""
        lefts = [0.0]
        for width in self.widths[:-1]:
            lefts.append(lefts[-1] + width + PAD)
        return lefts

    @property
    def width(self) -> float:
        """Of all of them."""
        return self.lefts[-1] + self.widths[-1]


def _table(sheets: Sheets, table: HtmlTable) -> None:
    """A table with its caption; where it is too wide its columns are parted, the first one repeated."""
    if not table.rows:
        return
    for number, columns in enumerate(_parts(table)):
        sheets.skip(0.12)
        sheets.need(1.0)
        sheets.paragraph(table.caption if not number else f"{table.caption} (further columns)", SMALL)
        _head(sheets, table, columns)
        for row in table.rows:
            _row(sheets, table, columns, row)
        sheets.rule(columns.width)
        sheets.y += 0.1


def _parts(table: HtmlTable) -> list[_Columns]:
    """Which columns stand side by side, how wide and in which letters."""
    every = range(len(table.heads))
    for size in CELL_SIZES[: 1 if table.texts else None]:
        cell = Style(size=size)
        widths = [_natural(table, column, cell) for column in every]
        room = WIDE_INCHES - PAD * (len(widths) - 1)
        if table.texts:
            widths = _levelled(widths, room)
        if sum(widths) <= room:
            return [_Columns(numbers=every, widths=widths, cell=cell)]
    parts: list[_Columns] = []
    numbers = [0]
    for column in every[1:]:
        if sum(widths[n] + PAD for n in [*numbers, column]) > WIDE_INCHES + PAD and len(numbers) > 1:
            parts.append(_Columns(numbers=numbers, widths=[widths[n] for n in numbers], cell=cell))
            numbers = [0]
        numbers = [*numbers, column]
    return [*parts, _Columns(numbers=numbers, widths=[widths[n] for n in numbers], cell=cell)]


def _natural(table: HtmlTable, column: int, cell: Style) -> float:
    """Width with which a column needs no broken line: of its cells, of the words of its head, its part of its group."""
    cells = [row[column] for row in table.rows if len(row) > 1 and column < len(row)]
    longest = max((width_of(text, cell.size, False) for text in cells), default=0.0)
    if column == 0 and not table.texts:
        longest = min(longest, HEAD_MAX)
    spans = [(title, span) for title, span in table.groups or () for _ in range(span)]
    words = [(word, 1) for word in table.heads[column].split()]
    if 0 < column <= len(spans):
        title, span = spans[column - 1]
        words += [(word, span) for word in title.split()]
    return max(longest, *(width_of(word, cell.size, True) / span + 1e-3 for word, span in words or [("", 1)]))


def _levelled(widths: Sequence[float], room: float) -> list[float]:
    """Widths cut at one level so that they fit."""
    low, high = 0.0, max(widths)
    for _ in range(40):
        level = (low + high) / 2
        low, high = (level, high) if sum(min(width, level) for width in widths) <= room else (low, level)
    return list(widths) if sum(widths) <= room else [min(width, low) for width in widths]


def _head(sheets: Sheets, table: HtmlTable, columns: _Columns) -> None:
    bold = replace(columns.cell, bold=True)
    if table.groups:
        _groups(sheets, table.groups, columns, bold)
    heads = [wrapped(table.heads[n], bold, width) for n, width in zip(columns.numbers, columns.widths, strict=True)]
    most = max(map(len, heads))
    _cells(sheets, table, columns, [[""] * (most - len(lines)) + lines for lines in heads], bold)


def _groups(sheets: Sheets, groups: Sequence[tuple[str, int]], columns: _Columns, bold: Style) -> None:
    """The names of groups of columns above the first one of each, over as much of it as stands here."""
    owner = [""] + [title for title, span in groups for _ in range(span)]
    names = [owner[n] for n in columns.numbers]
    starts = [place for place, name in enumerate(names) if name and (place == 0 or names[place - 1] != name)]
    ends = [columns.lefts[place] for place in starts[1:]] + [columns.lefts[-1] + columns.widths[-1] + PAD]
    titles = {
        place: wrapped(names[place], bold, end - columns.lefts[place] - PAD)
        for place, end in zip(starts, ends, strict=True)
    }
    for number in range(max(map(len, titles.values()), default=0)):
        for place, lines in titles.items():
            if number < len(lines):
                sheets.line(lines[number], replace(bold, colour=MUTED), x=columns.lefts[place])
        sheets.y += bold.line


def _row(sheets: Sheets, table: HtmlTable, columns: _Columns, row: Sequence[str]) -> None:
    """A row, or the name of the rows that follow; the head again at the top of a new page."""
    style = replace(columns.cell, bold=len(row) == 1)
    if len(row) == 1:
        lines = [wrapped(row[0], style, columns.width)]
    else:
        cells = [row[n] if n < len(row) else "" for n in columns.numbers]
        free = [place == 0 or table.texts for place in range(len(cells))]
        lines = [
            wrapped(text, style, width + 1e-6) if breaks else [text]
            for text, width, breaks in zip(cells, columns.widths, free, strict=True)
        ]
    height = max(map(len, lines)) * style.line + 0.03
    if sheets.need(height + (style.line if len(row) == 1 else 0.0)):
        _head(sheets, table, columns)
    sheets.rule(columns.width)
    if len(row) == 1:
        sheets.shade(height, SOFT, columns.width)
    _cells(sheets, table, columns, lines, style)


def _cells(sheets: Sheets, table: HtmlTable, columns: _Columns, lines: Sequence[Sequence[str]], style: Style) -> None:
    """Cells of a row side by side, each in lines; numbers end where their column does."""
    sheets.y += 0.015
    for number in range(max(map(len, lines))):
        for place, cell in enumerate(lines):
            if number < len(cell) and cell[number]:
                right = place > 0 and not table.texts
                at = columns.lefts[place] + (columns.widths[place] if right else 0.0)
                sheets.line(cell[number], style, x=at, right=right)
        sheets.y += style.line
    sheets.y += 0.015
