"""Picture of one failure as the token stream sees it, and of where the requests caught in it spent their time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from sim.report.bars import (
    Bar,
    bars_inches,
    draw_bars,
    ledger_bars,
    legend_inches,
    name_lengths,
    seen_colours,
    stack_legend,
)
from sim.report.categories import STAGE_COLOURS, ledger_colours
from sim.report.context import Tables, absence, is_absent, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.palette import MUTED, fabric_look
from sim.report.style import NARROW_INCHES, WIDE_INCHES, Panels, empty_panels, new_figure, quiet_grid, settle, styled
from sim.report.words import category_words, fabric_words, fabrics_in_order, host_words, seconds

QUIET_STAGES = ("running", "up", "steady", "healthy", "")
FLAG_POINTS = 7.0
FLAG_STEP_POINTS = 9.0


class Span(NamedTuple):
    """One stretch of one stage, in seconds after the failure."""

    stage: str
    start_s: float
    end_s: float

    def shifted(self, zero_s: float, unit_s: float) -> Span:
        """The same stretch measured from `zero_s` in units of `unit_s` seconds."""
        return Span(self.stage, (self.start_s - zero_s) / unit_s, (self.end_s - zero_s) / unit_s)


def stage_spans(rows: pd.DataFrame) -> list[Span]:
    """The stretches of equal `stage` in rows sorted by `t_s`; the last one ends one step after its last row."""
    t_s = rows["t_s"].to_numpy(dtype=float)
    stages = [str(stage) if isinstance(stage, str) else "" for stage in rows["stage"]]
    if not len(t_s):
        return []
    step = float(np.median(np.diff(t_s))) if len(t_s) > 1 else 1.0
    starts = [0] + [i for i in range(1, len(stages)) if stages[i] != stages[i - 1]]
    ends = [*(t_s[i] for i in starts[1:]), t_s[-1] + step]
    return [Span(stages[i], float(t_s[i]), float(end)) for i, end in zip(starts, ends, strict=True)]


def is_quiet(stage: str) -> bool:
    """True for the stage in which nothing is wrong."""
    return stage.lower() in QUIET_STAGES


def failure_instant_s(spans: list[Span]) -> float:
    """The start of the first stage that is not quiet (0 where none is)."""
    return next((span.start_s for span in spans if not is_quiet(span.stage)), 0.0)


def mean_rows(rows: int) -> int:
    """Rows over which the bold line is a mean: a fortieth of the story, an odd number."""
    return 2 * (rows // 80) + 1


def running_mean(values: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Centred means over `rows` values (an odd number); fewer at the ends, where there are no more."""
    ones = np.ones(rows)
    means: NDArray[np.float64] = np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")
    return means


def story_fabrics(table: pd.DataFrame) -> list[str]:
    """The fabrics to draw: the reconfigurable one and the first static one where both are there, else all."""
    fabrics = fabrics_in_order(list(table["fabric"]))
    pair = [fabric for fabric in fabrics if fabric == "reconfigurable"]
    pair += [fabric for fabric in fabrics if fabric.startswith("static")][:1]
    return pair if len(pair) == 2 else fabrics[:3]


def _draw_panel(
    axes: Axes, rows: pd.DataFrame, fabric: str, *, unit_s: float, width_in: float, xlim: tuple[float, float]
) -> None:
    """Tokens per second of one fabric, its stages shaded, named above the panel with their lengths."""
    spans = stage_spans(rows)
    zero_s = failure_instant_s(spans)
    t = (rows["t_s"].to_numpy(dtype=float) - zero_s) / unit_s
    tokens_per_s = rows["tokens_per_s"].to_numpy(dtype=float)
    colour = fabric_look(fabric).colour
    axes.step(t, tokens_per_s, where="post", color=colour, linewidth=0.6, alpha=0.35)
    axes.plot(t, running_mean(tokens_per_s, mean_rows(len(t))), color=colour, linewidth=1.3)
    busy = [span for span in spans if not is_quiet(span.stage)]
    for span in busy:
        shade = STAGE_COLOURS.get(span.stage, "#6b7280")
        start, end = (span.start_s - zero_s) / unit_s, (span.end_s - zero_s) / unit_s
        axes.axvspan(start, end, color=shade, alpha=0.16, linewidth=0, zorder=0)
        axes.axvspan(start, end, ymin=0.97, ymax=1.0, color=shade, linewidth=0, zorder=1)
    axes.set_xlim(*xlim)
    levels = _stage_flags(axes, [span.shifted(zero_s, unit_s) for span in busy], busy, width_in)
    told = "nothing failed"
    if busy:
        shown_s = busy[-1].end_s - zero_s
        open_end = busy[-1] is spans[-1]
        told = f"not back within the {seconds(shown_s)} shown" if open_end else f"back after {seconds(shown_s)}"
    joint = ":\n" if width_in < 5 else ": "
    axes.set_title(f"{fabric_words(fabric)}{joint}{told}", loc="left", pad=4 + FLAG_STEP_POINTS * levels)
    axes.tick_params(length=2)
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10], integer=True))
    quiet_grid(axes)


def _stage_flags(axes: Axes, places: list[Span], spans: list[Span], width_in: float) -> int:
    """A flag at the start of each stage, with its name and length, on levels that keep texts apart; returns the levels.

    Levels are given from the last stage to the first, so that no pole crosses a text: texts of later stages stand
    lower and to the right.
    """
    low, high = axes.get_xlim()
    per_point = (high - low) / (width_in * 72)
    left_of_level: list[float] = []
    for place, span in reversed(list(zip(places, spans, strict=True))):
        text = f"{category_words(span.stage)} {seconds(span.end_s - span.start_s)}"
        length = 0.62 * FLAG_POINTS * len(text) * per_point
        from_right = place.start_s + length > high
        right = place.end_s if from_right else place.start_s + length
        level = next((i for i, left in enumerate(left_of_level) if right < left), len(left_of_level))
        left_of_level[level : level + 1] = [place.end_s - length if from_right else place.start_s]
        left_of_level[:level] = [min(left, place.start_s) for left in left_of_level[:level]]
        axes.annotate(
            text,
            (place.end_s if from_right else place.start_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-2 if from_right else 2, 2 + FLAG_STEP_POINTS * level),
            textcoords="offset points",
            ha="right" if from_right else "left",
            va="bottom",
            fontsize=FLAG_POINTS,
            annotation_clip=False,
            in_layout=False,
        )
        pole = (0, 1 + FLAG_STEP_POINTS * (level + 0.9))
        axes.annotate(
            "",
            (place.end_s if from_right else place.start_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=pole,
            textcoords="offset points",
            annotation_clip=False,
            in_layout=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": MUTED, "shrinkA": 0, "shrinkB": 0},
        )
    return len(left_of_level)


@styled
def failure_story(tables: Tables, *, service: str | None = None, narrow: bool = False) -> Panels:
    """Tokens per second through one failure, reconfigurable and static in aligned panels, and the caught requests.

    Stages are shaded and named with their lengths; time runs from the instant of failure. Beneath, where the mean
    request caught in a loss spent its time (table `ledger`, scope `caught`). Needs table `failure_story`; `service`
    is the first one of the table unless given.
    """
    if is_absent(tables, "failure_story"):
        return empty_panels(absence("failure_story"), narrow=narrow)
    table = table_of(tables, "failure_story")
    service = service or str(table["service"].iloc[0])
    table = table[table["service"] == service]
    fabrics = story_fabrics(table)
    caught, where = caught_rows(tables, service)
    bars = ledger_bars(caught[caught["fabric"].isin(fabrics)]) if len(caught) else []
    width = NARROW_INCHES if narrow else WIDE_INCHES
    heights = [1.85] * len(fabrics) + ([0.6 + bars_inches(bars)] if bars else [])
    legend = legend_inches(len(caught["category"].unique()), narrow=narrow) if bars else 0.0
    figure = new_figure(width, sum(heights) + legend)
    ratios = [1.0] * len(fabrics) + ([bars_inches(bars)] if bars else [])
    panels = list(figure.subplots(len(ratios), 1, height_ratios=ratios, squeeze=False).flatten())
    unit_s, unit = _time_unit(table)
    xlim = _time_limits(table, fabrics, unit_s)
    for axes, fabric in zip(panels, fabrics, strict=False):
        rows = table[table["fabric"] == fabric].sort_values("t_s")
        _draw_panel(axes, rows, fabric, unit_s=unit_s, width_in=width - 0.75, xlim=xlim)
        axes.set_ylabel("tokens per second")
        window = mean_rows(len(rows))
        if axes is panels[0] and window > 1:
            axes.annotate(
                f"bold: mean over {window} s",
                (1, 1),
                xycoords="axes fraction",
                xytext=(0, 3),
                textcoords="offset points",
                ha="right",
                fontsize=FLAG_POINTS,
                color=MUTED,
                in_layout=False,
            )
    top = max(axes.get_ylim()[1] for axes in panels[: len(fabrics)])
    for axes in panels[: len(fabrics)]:
        axes.set_ylim(0, top)
    panels[len(fabrics) - 1].set_xlabel(f"{unit} after the failure ({category_words(service)})")
    if bars:
        _draw_caught(panels[-1], bars, where, narrow=narrow)
    settle(figure)
    return Panels(panels)


def _time_unit(table: pd.DataFrame) -> tuple[float, str]:
    span_s = float(table["t_s"].max() - table["t_s"].min())
    return (1.0, "seconds") if span_s <= 600 else (60.0, "minutes") if span_s <= 4 * 3600 else (3600.0, "hours")


def _time_limits(table: pd.DataFrame, fabrics: list[str], unit_s: float) -> tuple[float, float]:
    """The same limits for all panels, measured from each one's failure."""
    lows, highs = [], []
    for fabric in fabrics:
        rows = table[table["fabric"] == fabric].sort_values("t_s")
        spans = stage_spans(rows)
        zero_s = failure_instant_s(spans)
        lows.append(spans[0].start_s - zero_s)
        highs.append(spans[-1].end_s - zero_s)
    return min(lows) / unit_s, max(highs) / unit_s


def caught_rows(tables: Tables, service: str) -> tuple[pd.DataFrame, str]:
    """Ledger rows of the requests caught in a loss, and their host availability in words where the run has several.

    Where several host availabilities ran, the one in the middle is taken.
    """
    table = table_of(tables, "ledger")
    if table.empty:
        return table, ""
    table = table[(table["scope"] == "caught") & (table["service"] == service)]
    if table.empty:
        return table, ""
    hosts = host_values(table)
    middle = hosts[len(hosts) // 2]
    return rows_of_host(table, middle), f", hosts up {host_words(middle)}" if len(hosts) > 1 else ""


def _draw_caught(axes: Axes, bars: Sequence[Bar], where: str, *, narrow: bool) -> None:
    colours = ledger_colours(name for bar in bars for name in bar.parts)
    longest = max(bar.length for bar in bars)
    draw_bars(axes, bars, colours, axis_length=1.15 * longest, least=0.075 if narrow else 0.04)
    name_lengths(axes, bars)
    axes.set_title(f"requests caught in a loss{where}", loc="left")
    axes.set_xlabel("mean seconds per request (numbers in bars: %)")
    figure = axes.get_figure(root=True)
    assert figure is not None
    stack_legend(figure, seen_colours(bars, colours), narrow=narrow)
