"""Picture of the slice-size ladder: what a bigger slice buys a service, and what it costs per token."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sim.report.context import ServiceLimits, Tables, absence, is_absent, table_of
from sim.report.palette import INK, MUTED
from sim.report.style import (
    NARROW_INCHES,
    WIDE_INCHES,
    Panels,
    chips_axis,
    empty_panels,
    new_figure,
    quiet_grid,
    settle,
    styled,
)
from sim.report.words import category_words, number, percent

COLOUR = "#0067a5"
BAD = "#c24a05"


@styled
def slice_size_ladder(
    tables: Tables, *, limits: Mapping[str, ServiceLimits] | None = None, narrow: bool = False
) -> Panels:
    """Time to first token (99th percentile, with its limit) above, chip-seconds per token below, over slice size.

    One column per service. Full dots meet the service's limits, hollow ones do not, a cross at the foot marks a slice
    that the model does not fit. Needs table `slice_sizes`; `limits` by service draws the limit of the first token.
    """
    if is_absent(tables, "slice_sizes"):
        return empty_panels(absence("slice_sizes"), narrow=narrow)
    table = table_of(tables, "slice_sizes")
    services = list(dict.fromkeys(str(name) for name in table["service"]))
    columns = len(services)
    width = NARROW_INCHES if narrow else min(WIDE_INCHES, 2.2 + 2.9 * columns)
    figure = new_figure(width, 4.2 if narrow else 4.4)
    grid = figure.subplots(2, columns, sharex=True, squeeze=False)
    for column, service in enumerate(services):
        rows = table[table["service"] == service].sort_values("chips")
        top, bottom = grid[0, column], grid[1, column]
        _draw(top, rows, "ttft_p99_s")
        _draw(bottom, rows, "chip_s_per_token")
        limit = (limits or {}).get(service)
        if limit is not None:
            top.axhline(limit.ttft_s, color=BAD, linewidth=0.9, linestyle=(0, (4, 2)))
            top.annotate(
                f"limit {number(limit.ttft_s)} s at {percent(limit.attainment)}",
                (0, limit.ttft_s),
                xycoords=("axes fraction", "data"),
                xytext=(2, 2),
                textcoords="offset points",
                color=BAD,
                fontsize=7.0,
            )
        top.set_title(category_words(service), loc="left")
    for axes in grid.flat:
        chips_axis(axes, table["chips"], few=columns > (1 if narrow else 2))
        _plain_log(axes)
        quiet_grid(axes)
    grid[0, 0].set_ylabel("first token, 99th\npercentile (s)")
    grid[1, 0].set_ylabel("chip-seconds per token\nof a busy replica")
    figure.align_ylabels()
    marks = (
        "full dots keep the limits at a tenth of their load or more;"
        + ("\n" if narrow else " ")
        + "x: the model does not fit"
    )
    figure.supxlabel(f"slice size (chips), log scales\n{marks}", fontsize=7.0, color=MUTED, x=0.01, ha="left")
    settle(figure)
    return Panels(grid.flat)


def _draw(axes: Axes, rows: pd.DataFrame, column: str) -> None:
    value = rows[column].to_numpy(dtype=float)
    chips = rows["chips"].to_numpy(dtype=float)
    meets = rows["meets"].fillna(False).to_numpy(dtype=bool)
    known = np.isfinite(value) & (value > 0)
    axes.plot(chips[known], value[known], color=COLOUR, linewidth=0.9, zorder=2)
    for wanted, fill in ((True, COLOUR), (False, "#ffffff")):
        here = known & (meets == wanted)
        axes.plot(chips[here], value[here], "o", markerfacecolor=fill, markeredgecolor=COLOUR, markersize=4.2, zorder=3)
    absent = ~rows["fits"].fillna(False).to_numpy(dtype=bool)
    feet = np.full(int(absent.sum()), 0.03)
    axes.plot(chips[absent], feet, "x", color=MUTED, markersize=4.5, transform=axes.get_xaxis_transform())


def _plain_log(axes: Axes) -> None:
    """A log axis with round ticks, written out: more of them the shorter it is."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    steps = (1, 1.5, 2, 3, 5, 7) if high / low < 12 else (1, 2, 5) if high / low < 300 else (1,)
    ticks = [step * 10.0**power for power in range(-7, 8) for step in steps]
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.yaxis.label.set_color(INK)
