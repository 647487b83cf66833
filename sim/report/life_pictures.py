"""Picture of one request, token by token: when its tokens came, and where the time before each of them went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from sim.report.bars import legend_inches, stack_legend
from sim.report.categories import ledger_colours
from sim.report.context import Tables, absence, is_absent, table_of
from sim.report.palette import INK, MUTED, PAPER
from sim.report.style import NARROW_INCHES, WIDE_INCHES, Panels, empty_panels, new_figure, quiet_grid, settle, styled
from sim.report.words import category_words, seconds
from workloads.serving.fields import LEDGER

Floats = NDArray[np.float64]
NS_PER_MS, NS_PER_S = 1e6, 1e9
CUT_TIMES = 4.0
"""A gap of more than so many medians runs out of its panel, its length beside it."""
NAMED_GAPS = 3
NAMED_SHARE = 0.1
"""A category of the time to the first token is named from this share of it on."""


@styled
def life_of_request(tables: Tables, *, service: str | None = None, narrow: bool = False) -> Panels:
    """Tokens over time above, what came before the first of them shaded; the gap of each later token by cause below.

    Gaps far longer than the median run out of the panel, the longest with their length and reason. Needs table
    `request_life`; `service` is the first one of the table unless given.
    """
    if is_absent(tables, "request_life"):
        return empty_panels(absence("request_life"), narrow=narrow)
    table = table_of(tables, "request_life")
    service = service or str(table["service"].iloc[0])
    rows = table[table["service"] == service]
    later = rows[rows["token"].notna() & (rows["token"] > 1)]
    colours = _seen(rows, later)
    legend = legend_inches(len(colours), narrow=narrow)
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, (4.6 if narrow else 3.9) + legend)
    top, bottom = figure.subplots(2, 1, height_ratios=[1.0, 1.25])
    _tokens_over_time(top, rows, colours, narrow=narrow)
    _gaps(bottom, later, colours, narrow=narrow)
    words = f"request {int(rows['request'].iloc[0]):,} of {category_words(service)}"
    top.set_title(words, loc="left")
    figure.align_ylabels()
    stack_legend(figure, colours, narrow=narrow)
    settle(figure)
    return Panels((top, bottom))


def _seen(rows: pd.DataFrame, later: pd.DataFrame) -> dict[str, str]:
    """Colours of the categories that are seen: a percent of the life, or of the later tokens."""
    colours = ledger_colours(name for name in LEDGER if f"{name}_ns" in rows)
    parts = [group for group in (rows, later) if len(group)]
    return {
        name: colour
        for name, colour in colours.items()
        if any(group[f"{name}_ns"].sum() > 0.01 * group["gap_ns"].sum() for group in parts)
    }


def _tokens_over_time(axes: Axes, rows: pd.DataFrame, colours: Mapping[str, str], *, narrow: bool) -> None:
    """The staircase of the tokens; time before the first one by category, in the order of the ledger."""
    tokens = rows[rows["token"].notna()]
    at_s = tokens["at_ns"].to_numpy(dtype=float) / NS_PER_S
    number = tokens["token"].to_numpy(dtype=float)
    end_s = float(rows["at_ns"].iloc[-1]) / NS_PER_S
    axes.plot(at_s, number, color=INK, drawstyle="steps-post", linewidth=1.0, zorder=3)
    if len(tokens) <= 80:
        axes.plot(at_s, number, "o", color=INK, markersize=2.4, zorder=3)
    most = max(float(number.max()) if number.size else 1.0, 1.0)
    left, named = 0.0, []
    first = rows.iloc[0]
    for name in LEDGER:
        length = float(first.get(f"{name}_ns", 0)) / NS_PER_S
        if length > 0 and name in colours:
            axes.axvspan(left, left + length, color=colours[name], alpha=0.55, linewidth=0, zorder=1)
        if length > NAMED_SHARE * float(first["gap_ns"]) / NS_PER_S:
            named.append(f"{category_words(name)} {seconds(length)}")
        left += length
    told = f"first token after {seconds(float(first['at_ns']) / NS_PER_S)}"
    text = "\n".join([told, *(named[: 3 if narrow else 5])])
    axes.text(0.985, 0.06, text, transform=axes.transAxes, ha="right", va="bottom", fontsize=7.0, color=MUTED)
    axes.set_xlim(0, end_s * 1.01)
    axes.set_ylim(0, most * 1.06)
    axes.set_xlabel("seconds since it arrived")
    axes.set_ylabel("tokens sent")
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    quiet_grid(axes)


def _gaps(axes: Axes, later: pd.DataFrame, colours: Mapping[str, str], *, narrow: bool) -> None:
    """A column per later token, stacked by category, work below; what is not named goes on top, in grey."""
    axes.set_xlabel("number of the token")
    axes.set_ylabel("gap before it (ms)")
    quiet_grid(axes)
    if later.empty:
        axes.text(0.5, 0.5, "one token only: no gaps", ha="center", color=MUTED, transform=axes.transAxes)
        return
    number = later["token"].to_numpy(dtype=float)
    gap = later["gap_ns"].to_numpy(dtype=float) / NS_PER_MS
    median, longest = float(np.median(gap)), float(gap.max())
    limit = longest * 1.12 if longest <= CUT_TIMES * median else CUT_TIMES * median
    bottom = np.zeros(number.size)
    for name in reversed(list(colours)):  # a plain step below, what delayed it above
        size = later[f"{name}_ns"].to_numpy(dtype=float) / NS_PER_MS
        _columns(axes, number, bottom, size, colours[name])
        bottom = bottom + size
    _columns(axes, number, bottom, gap - bottom, MUTED)
    for place in np.flatnonzero(gap > limit).tolist():  # a column may be thinner than a pixel; what stalls is seen
        cause = max(colours, key=lambda name: later[f"{name}_ns"].iloc[place])
        axes.plot([number[place]] * 2, [min(median, limit), limit], color=colours[cause], linewidth=0.9)
    axes.set_xlim(number[0] - 0.5, number[-1] + 0.5)
    axes.set_ylim(0, limit)
    axes.xaxis.set_major_locator(MaxNLocator(6 if narrow else 10, integer=True))
    _name_longest(axes, later, gap, limit)


def _columns(axes: Axes, number: Floats, bottom: Floats, size: Floats, colour: str) -> None:
    """Columns of one colour, side by side without seams."""
    some = size > 0
    boxes = [
        [(x - 0.5, low), (x + 0.5, low), (x + 0.5, low + high), (x - 0.5, low + high)]
        for x, low, high in zip(number[some], bottom[some], size[some], strict=True)
    ]
    axes.add_collection(PolyCollection(boxes, facecolors=colour, edgecolors="face", linewidths=0.1), autolim=False)


def _name_longest(axes: Axes, later: pd.DataFrame, gap: Floats, limit: float) -> None:
    """Lengths and reasons of the gaps that run out of the panel, the longest few."""
    over = np.flatnonzero(gap > limit)
    chosen: Sequence[int] = sorted(over[np.argsort(-gap[over], kind="stable")][:NAMED_GAPS].tolist())
    first, last = axes.get_xlim()
    for level, place in enumerate(chosen):
        x = float(later["token"].iloc[place])
        right = x > 0.5 * (first + last)
        axes.annotate(
            f"{seconds(gap[place] * 1e-3)}: {later['reason'].iloc[place]}",
            (x, limit),
            xytext=(-5 if right else 5, -8 - 9 * level),
            textcoords="offset points",
            ha="right" if right else "left",
            fontsize=7.0,
            color=INK,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.6},
        )
        axes.plot([x], [limit], "^", color=INK, markersize=4.0, clip_on=False, zorder=4)
