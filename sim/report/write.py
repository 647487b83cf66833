"""Pictures and page of a run, written into its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sim.executors import map_tasks, open_executor
from sim.files import write_whole
from sim.report.page import render_page
from sim.report.plots import Picture, Rendering, pictures_of, rendered
from sim.report.text_page import render_text_page

if TYPE_CHECKING:
    from sim.report.context import ReportContext, Tables


def write_report(
    folder: Path, tables: Tables, context: ReportContext, *, form: str = "html", workers: int | None = 1
) -> Path:
    """Write `plots/` and the report (`report.html`, or `report.md` for form "md"); return the path of the report.

    Pictures are drawn by `workers` processes (None: one per core), since that takes longest.
    """
    tasks = [(name, tables, context.limits) for name in pictures_of(tables)]
    with open_executor(workers if len(tasks) > 1 else 1) as executor:
        pictures: dict[str, Picture | Rendering] = {each.name: each for each in map_tasks(executor, rendered, tasks)}
    for picture in pictures.values():
        write_whole(folder / "plots" / f"{picture.name}.png", picture.wide_png)
        write_whole(folder / "plots" / f"{picture.name}.svg", picture.wide_svg)
    report = folder / f"report.{form}"
    render = render_text_page if form == "md" else render_page
    write_whole(report, render(tables, context, pictures))
    return report
