"""The report on paper: everything of the page is on a sheet, inside its margins, nothing over anything else."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.backends.backend_pdf import PdfPages

from sim.report import plots
from sim.report.context import ReportContext
from sim.report.html_tables import HtmlTable
from sim.report.pdf import lay_out, render_pdf
from sim.report.plots import Picture
from sim.report.sections import sections_of
from sim.report.sentences import answer_sentences
from sim.report.sheets import MARGIN, PAGE_HEIGHT, PAGE_WIDTH, Page, Sheets, Style, styled_page, width_of, wrapped
from sim.report.write import write_one_file
from topology.errors import InputError

Tables = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def sheets(tables: Tables, context: ReportContext, pictures: dict[str, Picture]) -> Sheets:
    """The pages of the report of the small run of these tests."""
    return lay_out(tables, context, pictures)


def words(text: str) -> str:
    """A text without its breaks into lines."""
    return " ".join(text.split())


def test_everything_of_the_page_is_there(
    tables: Tables, context: ReportContext, pictures: dict[str, Picture], sheets: Sheets
) -> None:
    """Goal: a whole report. Method: every sentence, heading, warning and picture, and every cell that is not
    a part of a broken line, against the texts of the sheets in order."""
    told = words(" ".join(text.text for page in sheets.pages for text in page.texts))
    sections = [each for each in sections_of(tables, context) if not each.absent]
    for text in (*answer_sentences(tables), *context.warnings, *(word for each in sections for word in each.words)):
        assert words(text) in told.replace("• ", "")
    assert all(section.heading in told for section in sections)
    shown = [page.picture for page in sheets.pages if page.picture is not None]
    assert len(shown) == len([each for each in sections if each.shows in pictures])
    lines = {text.text for page in sheets.pages for text in page.texts}
    for table in (table for section in sections for table in section.tables if not table.texts):
        assert all(cell in lines for row in table.rows if len(row) > 1 for cell in row[1:] if cell)


def test_nothing_is_cut_off_or_covered(sheets: Sheets) -> None:
    """Goal: a page that can be read. Method: every line of text as a box: inside the margins, over no other, and not
    over the picture."""
    for page in sheets.pages:
        assert page.picture is None or page.picture_y + page.picture.get_figheight() <= PAGE_HEIGHT
        boxes = [box_of(page, number) for number in range(len(page.texts))]
        for left, top, right, bottom in boxes:
            assert left >= MARGIN - 0.01
            assert right <= PAGE_WIDTH - MARGIN + 0.02
            assert bottom <= PAGE_HEIGHT - MARGIN
            if page.picture is not None:
                assert bottom <= page.picture_y + 0.02 or top >= page.picture_y + page.picture.get_figheight()
        for one, other in itertools.combinations(boxes, 2):
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1], page.texts


def box_of(page: Page, number: int) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a line of text."""
    text = page.texts[number]
    width = width_of(text.text, text.style.size, text.style.bold)
    left = text.x - width if text.right else text.x
    return left, text.y, left + width, text.y + 0.98 * text.style.line


def test_the_file(pictures: dict[str, Picture]) -> None:
    """Goal: a sound file, the same for the same run, that leaves the pictures as they were. Method: a sheet with a
    picture drawn twice, parts of its figure before and after; pages of a report of nothing, counted."""
    figure, files = pictures["promise"].wide, []
    before = len(figure.get_children())
    for _ in range(2):
        sheets, out = Sheets("foot"), io.BytesIO()
        sheets.picture(figure)
        sheets.paragraph("words with $ and <b>")
        with styled_page(), PdfPages(out, metadata={"CreationDate": None}) as pages:
            sheets.save(pages)
        files.append(out.getvalue())
    assert files[0] == files[1]
    assert len(figure.get_children()) == before
    whole = render_pdf({}, ReportContext(name="bare"), {})
    assert whole.startswith(b"%PDF-")
    assert whole.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", whole)) == len(lay_out({}, ReportContext(name="bare"), {}).pages)


def test_lines_are_as_long_as_the_column() -> None:
    """Goal: no word is lost or overhangs. Method: texts with words longer than a line, at several widths."""
    style = Style(size=8)
    text = "a promise of three slices averyverylongwordwithoutanybreakinitatall and more $x_1$ <b>"
    for width in (0.5, 1.0, 3.0, 20.0):
        lines = wrapped(text, style, width)
        assert all(width_of(line, 8, False) <= width for line in lines)
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert wrapped("", style, 1.0) == [""]


def test_wide_tables_are_parted(context: ReportContext) -> None:
    """Goal: a table wider than the page is there whole. Method: 14 wide columns, 75 rows; every cell is there."""
    from sim.report.pdf import _table

    sheets = Sheets("foot")
    rows = [[f"row {row}", *(f"{1000 * row + column}.125 [0.5, 1.5]" for column in range(14))] for row in range(75)]
    heads = ["name", *(f"column {column}" for column in range(14))]
    groups = [("first ones together", 10), ("others", 4)]
    _table(sheets, HtmlTable(caption="wide", heads=heads, rows=rows, groups=groups))
    lines = {text.text for page in sheets.pages for text in page.texts}
    assert {cell for row in rows for cell in row} <= lines
    test_nothing_is_cut_off_or_covered(sheets)


def test_whole_or_not_at_all(
    tables: Tables, context: ReportContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: no half report, and none in a form that there is not. Method: a drawing that fails; a name in .txt."""
    place = tmp_path / "report.pdf"
    place.write_bytes(b"the report before")

    def fails(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(plots, "draw_pictures", fails)
    with pytest.raises(MemoryError):
        write_one_file(place, tables, context)
    assert place.read_bytes() == b"the report before"
    assert [file.name for file in tmp_path.iterdir()] == ["report.pdf"]
    with pytest.raises(InputError, match=r"html or \.pdf"):
        write_one_file(tmp_path / "report.txt", tables, context)
