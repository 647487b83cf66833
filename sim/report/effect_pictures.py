"""A picture of what changes do alone and together: every combination, and where its changes would lead one by one."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sim.report.context import Tables, absence, is_absent
from sim.report.effect_words import Combination, effect_services, value_words
from sim.report.palette import MUTED
from sim.report.style import NARROW_INCHES, WIDE_INCHES, Panels, empty_panels, new_figure, quiet_grid, settle, styled
from sim.report.words import category_words, number

COLOUR, BAD = "#0067a5", "#c24a05"
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)


@styled
def effects_of_changes(tables: Tables, *, narrow: bool = False) -> Panels:
    """A row per combination: a dot at its ratio to the first with its interval, on a log scale, and an open circle
    where the product of its changes, each made alone, would be. One panel per service. Needs table `effects`.
    """
    if is_absent(tables, "effects"):
        return empty_panels(absence("effects"), narrow=narrow)
    services = effect_services(tables)
    lines = sum(len(rows) for _, rows in services.values())
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, 0.9 + (0.34 if narrow else 0.24) * lines)
    heights = [len(rows) for _, rows in services.values()]
    grid = figure.subplots(len(services), 1, squeeze=False, height_ratios=heights)
    for axes, (service, (measure, rows)) in zip(grid[:, 0], services.items(), strict=True):
        _panel(axes, measure, rows, narrow=narrow)
        axes.set_title(category_words(service), loc="left")
    grid[-1, 0].set_xlabel("times the first combination, log scale")
    if any(row.changed > 1 for _, rows in services.values() for row in rows):
        marks = [
            Line2D([], [], color=COLOUR, marker="o", linestyle="", label="found"),
            Line2D([], [], color=BAD, marker="o", markerfacecolor="none", linestyle="", label="if changes multiplied"),
        ]
        figure.legend(handles=marks, loc="outside upper left", ncols=2)
    settle(figure)
    return Panels(grid.flat)


def _panel(axes: Axes, measure: str, rows: list[Combination], *, narrow: bool) -> None:
    groups = list(dict.fromkeys(row.words[0] for row in rows)) if len(rows[0].words) > 1 else []
    height, labels, places = 0.0, [], []
    for place, row in enumerate(rows):
        if place and groups and row.words[0] != rows[place - 1].words[0]:
            axes.axhline(height - 0.25, color=MUTED, linewidth=0.5)
            height += 0.5
        _marks(axes, measure, row, height)
        labels.append(",\n".join((", ".join(row.words[:-1]), row.words[-1])) if narrow and groups else row.text)
        places.append(height)
        height += 1.0
    axes.set_yticks(places, labels, fontsize=6.5 if narrow else 7.5)
    axes.set_ylim(height - 0.5, -0.6)
    axes.set_xscale("log")
    ends = [value for row in rows for value in (row.ratio, row.one_by_one, *row.ratio_spread)]
    known = [value for value in ends if math.isfinite(value) and value > 0]
    low, high = min(known), max(known)
    room = max(high / low, 1.05)
    axes.set_xlim(low / room**0.06, high * room ** (0.45 if narrow else 0.2))
    ticks = [tick for tick in TICKS if low / room**0.06 <= tick <= high * room**0.1]
    axes.xaxis.set_major_locator(FixedLocator(ticks if len(ticks) > 1 else list(np.linspace(low, high, 3))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.tick_params(axis="y", length=0)
    quiet_grid(axes, axis="x")


def _marks(axes: Axes, measure: str, row: Combination, height: float) -> None:
    if row.changed > 1 and math.isfinite(row.one_by_one):
        axes.plot([row.one_by_one], [height], "o", markerfacecolor="none", color=BAD, markersize=6.0, zorder=2)
    if not math.isfinite(row.ratio):  # no ratio of nothing: its value stands at the edge
        axes.annotate(
            value_words(measure, row.value), (0.0, height), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=7.0, color=BAD,
        )  # fmt: skip
        return
    if all(map(math.isfinite, row.ratio_spread)):
        axes.plot(row.ratio_spread, [height, height], color=COLOUR, linewidth=1.6, zorder=3)
    axes.plot([row.ratio], [height], "o", color=COLOUR, markersize=4.5, zorder=4)
    ends = (row.ratio, row.ratio_spread[1], row.one_by_one if row.changed > 1 else row.ratio)
    right = max(end for end in ends if math.isfinite(end))
    axes.annotate(
        value_words(measure, row.value), (right, height), xytext=(7, 0), textcoords="offset points", va="center",
        fontsize=7.0, color=MUTED,
    )  # fmt: skip
