"""How pictures look: sizes, texts, layout, and deterministic files.

Figures are made without pyplot, so drawing has no global state.
"""

from __future__ import annotations

import functools
import io
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from sim.files import write_whole
from sim.report.palette import GRID, INK, MUTED, ON_DARK_FILL, ON_LIGHT_FILL, PAPER

RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titley": 1.0,
    "axes.labelsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.6,
    "axes.grid": False,
    "axes.unicode_minus": False,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "savefig.facecolor": PAPER,
    "text.hinting": "none",  # widths of text then scale with the dots per inch, so that one layout serves all files
    "svg.fonttype": "none",
    "svg.hashsalt": "opticube",
    "path.simplify": True,
}
WIDE_INCHES = 8.0
NARROW_INCHES = 3.75
PNG_DPI = 160
PNG_PACKING = {"compress_level": 1, "compress_type": zlib.Z_RLE}
"""Rows of one colour pack as well so as with all of zlib's efforts, in half the time."""

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run a drawing function under the project's settings, whatever the user's own are."""

    @functools.wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with matplotlib.rc_context(), matplotlib.rc_context(RC):
            return draw(*args, **kwargs)

    return wrapped


class Panels(tuple[Axes, ...]):
    """The axes of one picture, in reading order; a notebook shows the whole picture."""

    __slots__ = ()

    @property
    def figure(self) -> Figure:
        """The figure that holds the axes."""
        figure = self[0].get_figure(root=True)
        assert figure is not None
        return figure

    def _repr_png_(self) -> bytes:
        return png_bytes(self.figure)


def new_figure(width_in: float, height_in: float) -> Figure:
    """An empty figure with its own canvas and a layout that keeps labels from colliding."""
    engine = ConstrainedLayoutEngine(w_pad=0.04, h_pad=0.03, wspace=0.03, hspace=0.03)
    figure = Figure(figsize=(width_in, height_in), layout=engine)
    FigureCanvasAgg(figure)
    return figure


def settle(figure: Figure) -> None:
    """Place everything once and keep it there, so that each file of a picture is drawn without placing it again."""
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if not axis.get_label_text():
            axis.set_label_coords(0.0, 0.0)  # without a name, nothing is measured to find a place for it
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine(None)  # with an engine, even an idle one, each file would be drawn twice


def quiet_grid(axes: Axes, axis: str = "y") -> None:
    """Hair lines behind the data, along one axis."""
    grid: Any = axes.grid
    grid(True, axis=axis, which="major", color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)


def chips_axis(axes: Axes, sizes: Iterable[int], *, few: bool) -> None:
    """A log2 axis of slice sizes, with the sizes of the run as ticks (`few`: every third or so)."""
    ticks = sorted({int(size) for size in sizes})
    axes.set_xscale("log", base=2)
    shown = _spread(ticks, 7.0 if few else 1.9)
    axes.set_xticks(shown, [str(tick) for tick in shown])
    axes.set_xticks([tick for tick in ticks if tick not in shown], minor=True)
    axes.tick_params(axis="x", which="minor", labelbottom=False, length=2)
    if ticks:
        axes.set_xlim(ticks[0] / 1.35, ticks[-1] * 1.35)


def _spread(ticks: list[int], ratio: float) -> list[int]:
    """Ticks at least `ratio` apart; the first and last are kept."""
    if len(ticks) < 2:
        return ticks
    kept = [ticks[0]]
    for tick in ticks[1:-1]:
        if tick >= kept[-1] * ratio and ticks[-1] >= tick * ratio:
            kept.append(tick)
    return [*kept, ticks[-1]]


def name_beside(axes: Axes, text: str, x: float, y: float, *, points: float = 3.0) -> None:
    """Write a value beside its mark, `points` to the right of it, or where negative to the left.

    The gap is no space in the text: browsers leave out spaces at the ends of texts of an SVG.
    """
    side = "left" if points > 0 else "right"
    axes.annotate(
        text, (x, y), xytext=(points, 0), textcoords="offset points", ha=side, va="center_baseline", fontsize=7.0
    ).set_in_layout(False)


def text_on(colour: str) -> str:
    """Black or white, whichever reads better on a fill (relative luminance of WCAG 2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return ON_LIGHT_FILL if luminance > 0.18 else ON_DARK_FILL


@styled
def empty_panels(sentence: str, *, narrow: bool = False) -> Panels:
    """A picture that only says what is absent."""
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, 0.9)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.text(0.0, 0.5, sentence, va="center", wrap=True, color=MUTED, transform=axes.transAxes)
    settle(figure)
    return Panels((axes,))


@styled
def png_bytes(figure: Figure) -> bytes:
    """The figure as PNG without dates or versions: the same bytes for the same tables."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=PNG_DPI, metadata={"Software": None}, pil_kwargs=PNG_PACKING)
    return out.getvalue()


@styled
def svg_text(figure: Figure) -> str:
    """The figure as SVG without dates: the same text for the same tables."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def write_picture(path: Path, figure: Figure) -> None:
    """Write a figure as PNG or SVG, by the end of its name, whole or not at all."""
    write_whole(path, svg_text(figure) if path.suffix == ".svg" else png_bytes(figure))
