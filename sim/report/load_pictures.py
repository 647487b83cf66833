"""Pictures of a service as requests come faster: who is served in time, and how latencies are spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sim.report.context import ServiceLimits, Tables, absence, is_absent, table_of
from sim.report.palette import MUTED
from sim.report.style import NARROW_INCHES, WIDE_INCHES, Panels, empty_panels, new_figure, quiet_grid, settle, styled
from sim.report.words import category_words, number, percent

COLOUR, BAD = "#0067a5", "#c24a05"
LATENCY_NAMES = {
    "ttft": "first token",
    "tpot": "per later token",
    "itl": "gap between tokens",
    "end_to_end": "whole answer",
}
"""Kinds of latency in the order of the panels."""
LOADS_SHOWN = 6
FINE_STEPS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0)
"""Ticks within a decade of an axis that is short."""
LEAST_APART = 0.26
"""Ticks are this share of the axis apart, so that their numbers do not meet."""


def services_of(table: pd.DataFrame) -> list[str]:
    """Names of the services, in the order of the table."""
    return list(dict.fromkeys(str(name) for name in table["service"]))


@styled
def goodput_over_load(
    tables: Tables, *, limits: Mapping[str, ServiceLimits] | None = None, narrow: bool = False
) -> Panels:
    """Share of requests in time above, requests in time per second below, over the rate; one column per service.

    A dashed line is the share that is promised, a dot the goodput rate: the greatest at which it is kept. The grey
    line below is what arrives. Needs table `load_curve`.
    """
    if is_absent(tables, "load_curve"):
        return empty_panels(absence("load_curve"), narrow=narrow)
    table = table_of(tables, "load_curve")
    services = services_of(table)
    width = NARROW_INCHES if narrow else min(WIDE_INCHES, 2.2 + 2.9 * len(services))
    figure = new_figure(width, 4.2)
    grid = figure.subplots(2, len(services), sharex="col", squeeze=False)
    for column, service in enumerate(services):
        rows = table[table["service"] == service].sort_values("offered_requests_per_s")
        top, bottom = grid[0, column], grid[1, column]
        _attainment(top, rows, (limits or {}).get(service), narrow=narrow)
        rate, good = (rows[name].to_numpy(dtype=float) for name in ("offered_requests_per_s", "goodput_requests_per_s"))
        bottom.plot(rate, rate, color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
        bottom.plot(rate, good, color=COLOUR, marker="o", zorder=3)
        _knee(bottom, rows, "goodput_requests_per_s")
        bottom.set_ylim(bottom=0)
        bottom.set_xlim(left=0)
        bottom.set_xlabel("requests/s that arrive" if narrow else "requests that arrive per second")
        top.set_title(category_words(service), loc="left")
        for axes in (top, bottom):
            quiet_grid(axes)
    grid[0, 0].set_ylabel("requests in time (%)")
    grid[1, 0].set_ylabel("requests in time\nper second")
    figure.align_ylabels()
    marks = "grey, dashed: all that arrive; large dot: greatest rate at which the promise is kept"
    figure.supxlabel(marks.replace("; ", ";\n") if narrow else marks, fontsize=7.0, color=MUTED, x=0.01, ha="left")
    settle(figure)
    return Panels(grid.flat)


def _attainment(axes: Axes, rows: pd.DataFrame, limit: ServiceLimits | None, *, narrow: bool) -> None:
    rate, share, low, high = (
        rows[name].to_numpy(dtype=float) for name in ("offered_requests_per_s", "slo_attainment", "ci_low", "ci_high")
    )
    axes.fill_between(rate, 100 * np.clip(low, 0, 1), 100 * np.clip(high, 0, 1), color=COLOUR, alpha=0.15, linewidth=0)
    axes.plot(rate, 100 * share, color=COLOUR, marker="o", zorder=3)
    _knee(axes, rows, "slo_attainment", scale=100, say=True)
    axes.set_ylim(0, 104)
    if limit is not None:
        axes.axhline(100 * limit.attainment, color=BAD, linewidth=0.9, linestyle=(0, (4, 2)))
        times = "" if narrow else f": {number(limit.ttft_s)} s, then {number(limit.tpot_s * 1e3)} ms each"
        axes.annotate(
            percent(limit.attainment) + times,
            (0.02, 100 * limit.attainment),
            xycoords=("axes fraction", "data"),
            xytext=(0, -9),
            textcoords="offset points",
            color=BAD,
            fontsize=7.0,
        )


def _knee(axes: Axes, rows: pd.DataFrame, column: str, *, scale: float = 1, say: bool = False) -> None:
    knee = rows[rows["is_goodput_rate"].astype(bool)]
    for rate, value in zip(knee["offered_requests_per_s"], knee[column], strict=True):
        axes.plot([rate], [scale * value], "o", color=BAD, markersize=7.0, zorder=4)
        if say:
            place = (float(rate), scale * float(value))
            axes.annotate(f"{number(place[0])}/s", place, xytext=(5, 4), textcoords="offset points", fontsize=7.0)


@styled
def latency_distributions(
    tables: Tables, *, limits: Mapping[str, ServiceLimits] | None = None, narrow: bool = False
) -> Panels:
    """Share of requests (of tokens, for gaps) over time, a panel per kind of latency, a line per load, darker for more.

    One row of panels per service; dashed lines are limits. Needs table `latencies`.
    """
    if is_absent(tables, "latencies"):
        return empty_panels(absence("latencies"), narrow=narrow)
    table = table_of(tables, "latencies")
    services = services_of(table)
    columns = 2 if narrow else 4
    rows_each = len(LATENCY_NAMES) // columns
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, 0.5 + 1.9 * rows_each * len(services))
    grid = figure.subplots(rows_each * len(services), columns, squeeze=False, sharey=True)
    for place, service in enumerate(services):
        mine = table[table["service"] == service]
        panels = grid[place * rows_each : (place + 1) * rows_each].flat
        limit = (limits or {}).get(service)
        marks = {} if limit is None else {"ttft": limit.ttft_s, "tpot": limit.tpot_s}
        for axes, (measure, words) in zip(panels, LATENCY_NAMES.items(), strict=True):
            _distribution(axes, mine[mine["measure"] == measure], marks.get(measure))
            axes.set_title(words, loc="left")
            axes.set_xlabel("seconds, log scale")
        for axes in grid[place * rows_each : (place + 1) * rows_each, 0]:
            axes.set_ylabel("share (%)" if len(services) == 1 else f"{category_words(service)}\nshare (%)")
    _legend(grid[0, 0], table)
    settle(figure)
    return Panels(grid.flat)


def _distribution(axes: Axes, rows: pd.DataFrame, limit_s: float | None) -> None:
    for load, colour in _colours(rows["load"]):
        mine = rows[np.isclose(rows["load"].to_numpy(dtype=float), load, equal_nan=True)].sort_values("share")
        seconds, share = mine["seconds"].to_numpy(dtype=float), 100 * mine["share"].to_numpy(dtype=float)
        known = np.isfinite(seconds) & (seconds > 0)
        axes.plot(seconds[known], share[known], color=colour, label=f"load {percent(load)}")
    if limit_s is not None:
        axes.axvline(limit_s, color=BAD, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.set_xscale("log")
    _few_ticks(axes)
    axes.set_ylim(0, 100)
    quiet_grid(axes)


def _few_ticks(axes: Axes) -> None:
    """Round ticks, written out: powers of ten, or steps between them where the axis is short."""
    low, high = axes.get_xlim()
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 6.0), FINE_STEPS):
        ticks = [step * 10.0**power for power in range(-7, 8) for step in steps if low <= step * 10.0**power <= high]
        if len(ticks) >= 3:
            break
    kept: list[float] = []
    for tick in ticks:
        if not kept or np.log(tick / kept[-1]) >= LEAST_APART * np.log(high / low):
            kept.append(tick)
    axes.xaxis.set_major_locator(FixedLocator(kept))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def _colours(loads: pd.Series) -> Sequence[tuple[float, str]]:
    """At most six loads, the least and the greatest among them, light to dark."""
    known = sorted({float(load) for load in loads.dropna()}) + [math.nan] * int(loads.isna().any())
    places = np.unique(np.linspace(0, len(known) - 1, min(len(known), LOADS_SHOWN)).round().astype(int))
    shades = colormaps["Blues"](np.linspace(0.4 if places.size > 1 else 0.8, 1.0, places.size))
    return [(known[place], to_hex(shade)) for place, shade in zip(places.tolist(), shades, strict=True)]


def _legend(axes: Axes, table: pd.DataFrame) -> None:
    figure = axes.get_figure(root=True)
    assert figure is not None
    handles, labels = axes.get_legend_handles_labels()
    columns = min(len(labels), 3)
    order = [place for column in range(columns) for place in range(column, len(labels), columns)]
    # a legend is filled column by column, and read row by row
    figure.legend(
        [handles[place] for place in order],
        [labels[place] for place in order],
        loc="outside upper left",
        ncols=columns,
    )
