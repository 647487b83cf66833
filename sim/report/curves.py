"""Pictures of availability over slice size: the published figure's curves, and the cubes that a promise takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sim.report.context import Tables, absence, is_absent, table_of
from sim.report.hosts import host_values, rows_of_host, some_of
from sim.report.palette import INK, MUTED, fabric_look
from sim.report.promises import read_promise
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
from sim.report.words import FORM_ORDER, fabric_words, fabrics_in_order, form_words, host_words, listed, percent

DODGE = 1.022
PANELS_MAX = 4


def _fabric_handles(fabrics: Sequence[str]) -> list[Line2D]:
    handles = []
    for fabric in fabrics:
        look = fabric_look(fabric)
        handles.append(
            Line2D([], [], color=look.colour, marker=look.marker, linestyle=look.dash, label=fabric_words(fabric))
        )
    return handles


def _legend_above(figure: Figure, fabrics: Sequence[str], *, narrow: bool) -> None:
    legend = figure.legend(
        handles=_fabric_handles(fabrics),
        loc="outside upper left",
        ncols=2 if narrow else 4,
        handlelength=2.2,
        columnspacing=1.4,
        borderaxespad=0.2,
    )
    for text, fabric in zip(legend.get_texts(), fabrics, strict=True):
        text.set_color(fabric_look(fabric).colour)


def _note_below(figure: Figure, note: str) -> None:
    figure.supxlabel(note, fontsize=7.0, color=MUTED, x=0.01, ha="left")


def _draw_series(axes: Axes, rows: pd.DataFrame, fabric: str, place: float) -> None:
    """One fabric in one panel: dots with intervals as bars, and the closed form as a thin line."""
    look = fabric_look(fabric)
    rows = rows.sort_values("slice_chips")
    chips = rows["slice_chips"].to_numpy(dtype=float)
    moved = chips * DODGE**place
    value = 100 * rows["value"].to_numpy(dtype=float)
    closed = 100 * rows["closed_form"].to_numpy(dtype=float)
    if np.isfinite(closed).all():
        axes.plot(chips, closed, color=look.colour, linewidth=0.7, linestyle=look.dash, zorder=2)
    else:
        axes.plot(moved, value, color=look.colour, linewidth=0.9, linestyle=look.dash, zorder=2)
    order = 2.5 if fabric == "any_host" else 3
    axes.plot(moved, value, color=look.colour, marker=look.marker, linestyle="none", markeredgewidth=0, zorder=order)
    low, high = (100 * rows[name].to_numpy(dtype=float) for name in ("ci_low", "ci_high"))
    axes.vlines(moved, low, high, color=look.colour, linewidth=1.5, zorder=3)
    if {"shuffle_low", "shuffle_high"} <= set(rows.columns):
        least, most = (100 * rows[name].to_numpy(dtype=float) for name in ("shuffle_low", "shuffle_high"))
        axes.vlines(moved, least, most, color=look.colour, linewidth=4.0, alpha=0.3, zorder=1)


@styled
def availability_curves(tables: Tables, *, narrow: bool = False) -> Panels:
    """Share of the pod over slice size: a row of panels per form, a column per host availability.

    Dots are simulated values with their 95 % intervals as bars (wide pale bars: spread over placements of a log's
    nodes); thin lines are closed forms, or join the dots where no closed form exists. Needs table `availability`.
    """
    if is_absent(tables, "availability"):
        return empty_panels(absence("availability"), narrow=narrow)
    table = table_of(tables, "availability")
    hosts = some_of(host_values(table), 3 if narrow else PANELS_MAX)
    forms = [form for form in FORM_ORDER if (table["form"] == form).any()]
    fabrics = fabrics_in_order(list(table["fabric"]))
    width = NARROW_INCHES if narrow else min(WIDE_INCHES, 3.2 + 2.0 * len(hosts))
    figure = new_figure(width, 0.8 + (1.35 if narrow else 1.75) * len(forms))
    grid = figure.subplots(len(forms), len(hosts), sharex=True, sharey=True, squeeze=False)
    for row, form in enumerate(forms):
        of_form = table[table["form"] == form]
        for column, host in enumerate(hosts):
            axes = grid[row, column]
            here = rows_of_host(of_form, host)
            for place, fabric in enumerate(fabrics):
                _draw_series(axes, here[here["fabric"] == fabric], fabric, place - (len(fabrics) - 1) / 2)
            quiet_grid(axes)
            axes.set_ylim(-3, 103)
            axes.set_yticks([0, 25, 50, 75, 100])
            if row == 0:
                axes.set_title(f"hosts up {host_words(host)}" if not narrow else host_words(host), loc="left")
            axes.tick_params(length=2)
        share = of_form["time_share"].dropna()
        name = form_words(form, float(share.iloc[0]) if len(share) else None)
        grid[row, 0].set_ylabel(_broken(name) + "\n(% of pod)")
    for axes in grid.flat:
        chips_axis(axes, table["slice_chips"], few=narrow and len(hosts) > 1)
    _legend_above(figure, fabrics, narrow=narrow)
    marks = ("dots: simulated; bars: 95 % interval", "thin lines: closed form, or joining the dots where there is none")
    short = width < 6.0
    note = "slice size (chips), log scale" + ("\n" if short else " – ") + ("\n" if short else "; ").join(marks)
    if len(hosts) < len(host_values(table)):
        note += f"\n{len(hosts)} of {len(host_values(table))} host availabilities are drawn; the table has all"
    _note_below(figure, note)
    settle(figure)
    return Panels(grid.flat)


def _broken(name: str) -> str:
    """A row's name on two short lines."""
    return name.replace(" of the time", "\nof the time").replace(", light", ",\nlight")


def promise_curve_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The promises of slices of one size, with `slice_chips` and `count` read from their text."""
    read = [read_promise(text) for text in table["slices"]]
    single = [len(items) == 1 for items in read]
    rows = table[single].copy()
    rows["slice_chips"] = [items[0].chips for items in read if len(items) == 1]
    rows["count"] = [items[0].count for items in read if len(items) == 1]
    return rows.drop_duplicates(["fabric", "host_availability", "slice_chips", "count"])


@styled
def promise_cubes(tables: Tables, *, narrow: bool = False) -> Panels:
    """Cubes needed to keep a promise over slice size, log scale, all fabrics, one panel per host availability.

    Needs table `promise`. A fabric that can not keep the promise at a size, or for which no number of cubes is known,
    has no dot there, and the panel says how many are missing.
    """
    if is_absent(tables, "promise"):
        return empty_panels(absence("promise"), narrow=narrow)
    rows = promise_curve_rows(table_of(tables, "promise"))
    if rows.empty:
        return empty_panels(
            "No promise of slices of a single size in this run; see the table of promises.", narrow=narrow
        )
    rows = rows[rows["count"] == rows["count"].mode().iloc[0]]
    hosts = some_of(host_values(rows), 3 if narrow else PANELS_MAX)
    fabrics = fabrics_in_order(list(rows["fabric"]))
    figure = new_figure(NARROW_INCHES if narrow else min(WIDE_INCHES, 3.2 + 2.0 * len(hosts)), 2.7 if narrow else 3.1)
    grid = figure.subplots(1, len(hosts), sharex=True, sharey=True, squeeze=False)
    for column, host in enumerate(hosts):
        axes = grid[0, column]
        here = rows_of_host(rows, host)
        for fabric in fabrics:
            look = fabric_look(fabric)
            line = here[(here["fabric"] == fabric) & here["cubes"].notna()].sort_values("slice_chips")
            axes.plot(
                line["slice_chips"].to_numpy(dtype=float),
                line["cubes"].to_numpy(dtype=float),
                color=look.colour,
                marker=look.marker,
                linestyle=look.dash,
                markeredgewidth=0,
            )
        _name_headline(axes, here)
        axes.set_title(host_words(host) if narrow else f"hosts up {host_words(host)}", loc="left")
        axes.tick_params(length=2)
    _cubes_axis(list(grid.flat), rows)
    for axes in grid.flat:
        chips_axis(axes, rows["slice_chips"], few=narrow and len(hosts) > 1)
    share = rows["time_share"].iloc[0]
    grid[0, 0].set_ylabel("cubes needed (log scale)")
    _legend_above(figure, fabrics, narrow=narrow)
    count = int(rows["count"].iloc[0])
    note = f"size of each of the {count} slices (chips), held {percent(share)} of the time"
    missing = [fabric_words(f) for f in fabrics if rows.loc[rows["fabric"] == f, "cubes"].isna().any()]
    if missing:
        note += f"\nno dot where the number of cubes is not known: {listed(missing)}"
    _note_below(figure, note.replace(", held", ",\nheld").replace("known: ", "known:\n") if narrow else note)
    settle(figure)
    return Panels(grid.flat)


def _name_headline(axes: Axes, here: pd.DataFrame) -> None:
    """Write the numbers of cubes beside the dots of the headline: the size nearest to 1024 chips."""
    sizes = sorted({int(size) for size in here["slice_chips"]}, key=lambda size: abs(math.log(size / 1024)))
    at_headline = here[(here["slice_chips"] == sizes[0]) & here["cubes"].notna()] if sizes else here
    for fabric, offset in (("reconfigurable", (2, -10)), ("static_aligned", (-4, 4))):
        for cubes in at_headline.loc[at_headline["fabric"] == fabric, "cubes"]:
            axes.annotate(
                f"{int(cubes):,}",
                (sizes[0], int(cubes)),
                xytext=offset,
                textcoords="offset points",
                ha="left" if offset[0] > 0 else "right",
                color=fabric_look(fabric).colour,
            )


def _cubes_axis(panels: Sequence[Axes], rows: pd.DataFrame) -> None:
    """A log axis of cubes with ticks at powers of ten (and 3 between where the range is short)."""
    known = rows["cubes"].dropna().to_numpy(dtype=float)
    low, high = (known.min(), known.max()) if len(known) else (1.0, 10.0)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 3) if high / low < 1e5 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    for axes in panels:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(FixedLocator(ticks))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_ylim(low / 1.5, high * 1.5)
        quiet_grid(axes)
        axes.yaxis.label.set_color(INK)
