"""Pictures and page of a run, written into its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sim.executors import start_task
from sim.files import write_whole
from sim.report.page import render_page
from sim.report.rendering import Rendering
from sim.report.text_page import render_text_page
from topology.errors import refuse

if TYPE_CHECKING:
    from sim.report.context import ReportContext, ServiceLimits, Tables


REPORT_FORMS = ("html", "md", "pdf")
"""The forms of a report, by the ends of their files' names."""


def get_ready() -> None:
    """Load, in a process that will draw, all that the first picture else waits for."""
    from sim.report.plots import draw_anything

    draw_anything()


def start_pictures(
    tables: Tables,
    limits: Mapping[str, ServiceLimits],
    asked: Sequence[str] | None = None,
    *,
    workers: int | None = 1,
    helper: Executor | None = None,
) -> Mapping[str, Rendering]:
    """Pictures by name (those `asked` for; None: all), in the making from now on: who takes one waits for all of them.

    They are drawn by `workers` processes (None: one per core), since that takes longest; by way of `helper`, where
    there is one that knows how to draw already. Without it they are drawn when the first is asked for.
    """
    return _Awaited(start_task(helper, _pictures, tables, limits, asked, workers))


def write_report(
    folder: Path, tables: Tables, context: ReportContext, pictures: Mapping[str, Rendering], *, form: str = "html"
) -> Path:
    """Write `plots/` and the report (`report.html`, or `report.md` for form "md"); return the path of the report.

    For form "pdf" write `report.pdf` alone: it holds its pictures.
    """
    if form == "pdf":
        return write_one_file(folder / "report.pdf", tables, context)
    render = render_text_page if form == "md" else render_page
    page = render(tables, context, pictures)
    for picture in pictures.values():
        write_whole(folder / "plots" / f"{picture.name}.png", picture.wide_png)
        write_whole(folder / "plots" / f"{picture.name}.svg", picture.wide_svg)
    report = folder / f"report.{form}"
    write_whole(report, page)
    return report


def write_one_file(path: Path, tables: Tables, context: ReportContext) -> Path:
    """Write the report into one file, .html or .pdf by the end of its name; return its path."""
    from sim.report.plots import draw_pictures

    form = path.suffix.lstrip(".")
    if form not in ("html", "pdf"):
        raise refuse(str(path), f"`{form[:20]}` is no form of a report in one file", "write a name in .html or .pdf")
    pictures = draw_pictures(tables, limits=context.limits, asked=context.pictures, narrow=form == "html")
    if form == "pdf":
        from sim.report.pdf import render_pdf

        write_whole(path, render_pdf(tables, context, pictures))
    else:
        write_whole(path, render_page(tables, context, pictures))
    return path


class _Awaited(Mapping[str, Rendering]):
    """Pictures by name, awaited when one is asked for: until then other work is done while they are drawn."""

    def __init__(self, drawn: Callable[[], list[Rendering]]) -> None:
        self._drawn = drawn

    @cached_property
    def _pictures(self) -> dict[str, Rendering]:
        return {picture.name: picture for picture in self._drawn()}

    def __getitem__(self, name: str) -> Rendering:
        return self._pictures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pictures)

    def __len__(self) -> int:
        return len(self._pictures)


def _pictures(
    tables: Tables, limits: Mapping[str, ServiceLimits], asked: Sequence[str] | None, workers: int | None
) -> list[Rendering]:
    from sim.report.plots import render_pictures  # a process with a helper never needs matplotlib

    return render_pictures(tables, limits, asked, workers)
