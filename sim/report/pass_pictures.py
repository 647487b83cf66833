"""Pictures of single passes: errors against measured times, models by size, a token over the context."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from sim.report.context import Tables, absence, is_absent, table_of
from sim.report.palette import INK, MUTED
from sim.report.pass_words import context_series, models_rows
from sim.report.pass_words import has_several as has_several
from sim.report.style import NARROW_INCHES, WIDE_INCHES, Panels, empty_panels, new_figure, quiet_grid, settle, styled

COLOURS = ("#0067a5", "#c24a05", "#3d7a35", "#7a4fa3", "#8a6d00", "#00798c", "#a8326b", "#555555")
SERIES_MAX = 6


@styled
def errors_of_times(tables: Tables, *, narrow: bool = False) -> Panels:
    """Error in percent of every computed time over the measured time, a colour per group; hollow: does not count."""
    if is_absent(tables, "measured_times"):
        return empty_panels(absence("measured_times"), narrow=narrow)
    table = table_of(tables, "measured_times")
    groups = list(dict.fromkeys(table["group"]))
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, 3.4 + (0.16 * len(groups) if narrow else 0.0))
    axes = figure.subplots()
    axes.axhline(0, color=INK, linewidth=0.8)
    for index, group in enumerate(groups):
        rows, colour = table[table["group"] == group], COLOURS[index % len(COLOURS)]
        counts = rows["counted"].to_numpy(dtype=bool)
        x, y = rows["measured_s"].to_numpy(dtype=float), 100 * rows["error"].to_numpy(dtype=float)
        label = group.replace("_", " ")
        axes.scatter(x[counts], y[counts], s=13, color=colour, label=label if counts.any() else None, zorder=3)
        hollow = None if counts.any() else label
        axes.scatter(x[~counts], y[~counts], s=13, facecolors="none", edgecolors=colour, label=hollow, zorder=3)
    _log_axis(axes, "x")
    axes.set_xlabel("measured seconds; hollow: does not count")
    axes.set_ylabel("computed over measured, %")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=1 if narrow else 4, fontsize=7.0)
    quiet_grid(axes)
    settle(figure)
    return Panels((axes,))


MODEL_PANELS = (
    ("chips", "smallest slice, chips", 1.0),
    ("step_s", "ms per token", 1e3),
    ("chip_s_per_token", "chip-ms per token", 1e3),
    ("maximum_context_tokens", "longest context", 1.0),
    ("kv_bytes_per_token", "cache per token, kB", 1e-3),
    ("kv_overtakes_tokens", "cache > weights from", 1.0),
)
"""Column, name of the axis and factor of each panel."""


@styled
def passes_over_models(tables: Tables, *, narrow: bool = False) -> Panels:
    """Models by parameters, numbered: slice, time, cost, longest context, cache. Needs table `passes`."""
    if is_absent(tables, "passes") or models_rows(tables).empty:
        return empty_panels(absence("passes"), narrow=narrow)
    rows = models_rows(tables)
    columns = 2 if narrow else 3
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, 5.6 if narrow else 4.4)
    grid: Any = figure.subplots(len(MODEL_PANELS) // columns, columns, squeeze=False)
    x = rows["parameters"].to_numpy(dtype=float) / 1e9
    for axes, (column, words, factor) in zip(grid.flat, MODEL_PANELS, strict=True):
        y = factor * rows[column].to_numpy(dtype=float)
        axes.scatter(x, y, s=12, color=COLOURS[0], zorder=3)
        for number, (at, value) in enumerate(zip(x, y, strict=True), start=1):
            if np.isfinite(value):
                beside = (3, 2) if number % 2 else (3, -7)  # neighbours by size are often alike
                axes.annotate(f"{number}", (at, value), xytext=beside, textcoords="offset points", fontsize=6.5)
        axes.set_title(words.replace("smallest slice", "slice"), loc="left")
        _log_axis(axes, "x")
        _log_axis(axes, "y")
        axes.margins(0.15)
        quiet_grid(axes, "both")
    for axes in grid[-1]:
        axes.set_xlabel("parameters, billions")
    names = [f"{number} {model}" for number, model in enumerate(rows["model"], start=1)]
    each = 3 if narrow else 6
    legend = "\n".join(",  ".join(names[at : at + each]) for at in range(0, len(names), each))
    figure.supxlabel(legend, fontsize=6.5, color=MUTED, x=0.01, ha="left")
    settle(figure)
    return Panels(grid.flat)


@styled
def passes_over_contexts(tables: Tables, *, narrow: bool = False) -> Panels:
    """Time per token, bytes of memory per token, and chips of the slice over the context; at most six series."""
    if is_absent(tables, "passes"):
        return empty_panels(absence("passes"), narrow=narrow)
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, 7.2 if narrow else 3.6)
    panels: Any = figure.subplots(3 if narrow else 1, 1 if narrow else 3)
    time, traffic, chips = panels
    series = list(context_series(tables).items())[:SERIES_MAX]
    for index, (keys, rows) in enumerate(series):
        colour, dashes = COLOURS[index % len(COLOURS)], "--" if keys[2] == "smallest" else "-"
        x = rows["context_tokens"].to_numpy(dtype=float)
        label = f"{keys[0]} on {keys[2]}, batch {keys[3]}"
        time.plot(x, 1e3 * _floats(rows, "step_s"), dashes, marker="o", color=colour, label=label)
        chips.plot(x, _floats(rows, "chips"), dashes, marker="o", color=colour, drawstyle="steps-post")
        if keys[2] != "smallest" or len(series) == 1:
            _traffic(traffic, rows, colour)
    titles = ("ms per token", "GB of memory per token", "chips of the slice")
    for axes, title in zip((time, traffic, chips), titles, strict=True):
        axes.set_title(title, loc="left")
        axes.set_xlabel("tokens of context")
        _log_axis(axes, "x")
        _log_axis(axes, "y")
        quiet_grid(axes, "both")
    figure.legend(loc="outside upper left", ncols=1 if narrow else 2, fontsize=7.0)
    note = "solid: cache; dotted: weights; ring: from here the cache takes more" + ("\n" if narrow else "; ")
    figure.supxlabel(note + "dashed: smallest slice that fits", fontsize=7.0, color=MUTED, x=0.01, ha="left")
    settle(figure)
    return Panels((time, traffic, chips))


def _traffic(axes: Axes, rows: pd.DataFrame, colour: str) -> None:
    """Reads of the cache and of the weights per token, and where they cross."""
    x, weights = rows["context_tokens"].to_numpy(dtype=float), 1e-9 * _floats(rows, "weight_bytes_per_token")
    axes.plot(x, 1e-9 * _floats(rows, "kv_read_bytes_per_token"), color=colour)
    axes.plot(x, weights, color=colour, linestyle=":")
    crossing = float(rows["kv_overtakes_tokens"].iloc[0])
    known = np.isfinite(weights)
    if known.any() and x[0] <= crossing <= x[known][-1]:
        at = [crossing], [float(weights[known][0])]
        axes.plot(*at, "o", markersize=7, markerfacecolor="none", color=colour)


def _floats(rows: pd.DataFrame, column: str) -> np.ndarray:
    return rows[column].to_numpy(dtype=float, na_value=np.nan)


def _log_axis(axes: Axes, which: str) -> None:
    """A logarithmic axis with plain numbers in few letters."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 40 * low else (1.0,), numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axis.set_minor_locator(NullLocator())


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
