"""Pictures and page of a run, written into its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sim.files import write_whole
from sim.report.page import render_page
from sim.report.plots import draw_pictures
from sim.report.style import png_bytes
from sim.report.text_page import render_text_page

if TYPE_CHECKING:
    from sim.report.context import ReportContext, Tables


def write_report(folder: Path, tables: Tables, context: ReportContext, *, form: str = "html") -> Path:
    """Write `plots/` and the report (`report.html`, or `report.md` for form "md"); return the path of the report."""
    pictures = draw_pictures(tables, limits=context.limits)
    for picture in pictures.values():
        write_whole(folder / "plots" / f"{picture.name}.png", png_bytes(picture.wide))
        write_whole(folder / "plots" / f"{picture.name}.svg", picture.wide_svg)
    report = folder / f"report.{form}"
    write_whole(
        report, render_text_page(tables, context, pictures) if form == "md" else render_page(tables, context, pictures)
    )
    return report
