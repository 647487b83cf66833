"""Pictures made of stacked bars: chip-hours by use, and where the seconds of a request go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sim.report.categories import ledger_colours, use_colours
from sim.report.context import Tables, absence, is_absent, table_of
from sim.report.hosts import host_values, rows_of_host, some_of
from sim.report.palette import MUTED, PAPER
from sim.report.style import (
    NARROW_INCHES,
    WIDE_INCHES,
    Panels,
    empty_panels,
    name_beside,
    new_figure,
    quiet_grid,
    settle,
    styled,
    text_on,
)
from sim.report.words import category_words, fabric_words, fabrics_in_order, host_words, number

BAR_HEIGHT = 0.78
GROUP_GAP = 0.95
ROW_INCHES = 0.165


class Bar(NamedTuple):
    """One horizontal bar: its group (named above the first bar of it), its label and its parts by name."""

    group: str
    label: str
    parts: dict[str, float]

    @property
    def length(self) -> float:
        """Sum of the parts."""
        return sum(self.parts.values())


def bar_places(bars: Sequence[Bar]) -> list[float]:
    """Where each bar stands, downwards from 0, with a gap for the name of each group."""
    places, y, before = [], -1.0, None
    for bar in bars:
        y += 1.0 + (GROUP_GAP if bar.group and bar.group != before else 0.0)
        before = bar.group
        places.append(y)
    return places


def bars_inches(bars: Sequence[Bar]) -> float:
    """Height that the bars need, in inches."""
    return ROW_INCHES * (bar_places(bars)[-1] + 1.2) if bars else ROW_INCHES


def draw_bars(axes: Axes, bars: Sequence[Bar], colours: Mapping[str, str], *, axis_length: float, least: float) -> None:
    """Stacked horizontal bars in the order of `colours`; a part of at least `least` of the axis carries its percent."""
    places = bar_places(bars)
    lengths = np.array([bar.length for bar in bars])
    left = np.zeros(len(bars))
    for name, colour in colours.items():
        sizes = np.array([bar.parts.get(name, 0.0) for bar in bars])
        boxes = [_box(left[at], sizes[at], place) for at, place in enumerate(places) if sizes[at] > 0]
        axes.add_collection(PolyCollection(boxes, facecolors=colour, edgecolors=PAPER, linewidths=0.4), autolim=False)
        for place in np.flatnonzero(sizes >= least * axis_length):
            axes.text(
                left[place] + sizes[place] / 2,
                places[place],
                f"{100 * sizes[place] / lengths[place]:.0f}",
                ha="center",
                va="center_baseline",
                fontsize=7.0,
                color=text_on(colour),
                in_layout=False,
            )
        left += sizes
    axes.set_yticks(places, [bar.label for bar in bars])
    _name_groups(axes, bars, places)
    axes.set_ylim((places[-1] if places else 0) + 0.6, -0.6)
    axes.set_xlim(0, axis_length)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", length=2)
    quiet_grid(axes, "x")


def _box(left: float, size: float, place: float) -> list[tuple[float, float]]:
    """Corners of one part of a bar."""
    low, high = place - BAR_HEIGHT / 2, place + BAR_HEIGHT / 2
    return [(left, low), (left + size, low), (left + size, high), (left, high)]


def _name_groups(axes: Axes, bars: Sequence[Bar], places: Sequence[float]) -> None:
    before = None
    for bar, place in zip(bars, places, strict=True):
        if bar.group and bar.group != before:
            axes.text(0, place - 0.5, bar.group, va="bottom", fontsize=7.0, color=MUTED, in_layout=False)
        before = bar.group


def name_lengths(axes: Axes, bars: Sequence[Bar]) -> None:
    """Write the length of each bar, in seconds, at its end."""
    for bar, place in zip(bars, bar_places(bars), strict=True):
        name_beside(axes, f"{number(bar.length)} s", bar.length, place)


def stack_legend(figure: Figure, colours: Mapping[str, str], *, narrow: bool) -> None:
    """What the colours mean, below the bars."""
    figure.legend(
        handles=[Patch(facecolor=colour, label=category_words(name)) for name, colour in colours.items()],
        loc="outside lower left",
        ncols=2 if narrow else 5,
        handlelength=0.9,
        handleheight=0.9,
        columnspacing=1.2,
        borderaxespad=0.2,
    )


def seen_colours(bars: Sequence[Bar], colours: Mapping[str, str]) -> dict[str, str]:
    """The colours of the names that are seen at all (0.05 % of one of the bars)."""
    return {
        name: colour
        for name, colour in colours.items()
        if any(bar.parts.get(name, 0.0) > 0.0005 * bar.length for bar in bars)
    }


def legend_inches(names: int, *, narrow: bool) -> float:
    """Height of the legend for so many names."""
    return 0.16 * -(-names // (2 if narrow else 5)) + 0.1


def parts_of(rows: pd.DataFrame, name: str, value: str) -> dict[str, float]:
    """Sum of column `value` by the names in column `name`."""
    return {str(key): float(part) for key, part in rows.groupby(name, sort=False)[value].sum().items()}


@styled
def chip_hours_by_use(tables: Tables, *, narrow: bool = False) -> Panels:
    """What the pod's chips did, in % of chip-hours: bars by slice size and fabric, a panel per host availability.

    Numbers in the bars are percent. Needs table `chip_hours`.
    """
    if is_absent(tables, "chip_hours"):
        return empty_panels(absence("chip_hours"), narrow=narrow)
    table = table_of(tables, "chip_hours")
    hosts = some_of(host_values(table), 3)
    fabrics = fabrics_in_order(list(table["fabric"]))
    panels_bars: list[list[Bar]] = []
    for host in hosts:
        here = rows_of_host(table, host)
        bars = []
        for size in sorted({int(size) for size in table["slice_chips"]}):
            for fabric in fabrics:
                mine = here[(here["slice_chips"] == size) & (here["fabric"] == fabric)]
                shares = {use: 100 * share for use, share in parts_of(mine, "use", "share").items()}
                bars.append(Bar(f"slices of {size} chips", fabric_words(fabric), shares))
        panels_bars.append(bars)
    colours = use_colours([str(use) for use in table["use"]])
    return share_panels(panels_bars, [f"hosts up {host_words(host)}" for host in hosts], colours, narrow=narrow)


def share_panels(
    panels_bars: Sequence[Sequence[Bar]], titles: Sequence[str], colours: Mapping[str, str], *, narrow: bool
) -> Panels:
    """Panels of bars in % of chip-hours, side by side (one below the other on a narrow page), with one legend."""
    seen = seen_colours([bar for bars in panels_bars for bar in bars], colours)
    rows, columns = (len(titles), 1) if narrow else (1, len(titles))
    height = rows * (bars_inches(panels_bars[0]) + 0.3) + 0.4 + legend_inches(len(seen), narrow=narrow)
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, height)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    for axes, title, bars in zip(panels, titles, panels_bars, strict=True):
        draw_bars(axes, bars, colours, axis_length=100, least=0.09 if narrow else 0.11)
        axes.set_title(title, loc="left")
        if not narrow or axes is panels[-1]:
            axes.set_xlabel("% of chip-hours")
    stack_legend(figure, seen, narrow=narrow)
    settle(figure)
    return Panels(panels)


@styled
def request_ledger(tables: Tables, *, narrow: bool = False) -> Panels:
    """Where the mean seconds of a request go: bars by host availability and fabric, a panel per service.

    Numbers in the bars are percent of the bar. Needs table `ledger` (its rows of scope `all`).
    """
    table = table_of(tables, "ledger")
    table = table[table["scope"] == "all"] if len(table) else table
    if table.empty:
        return empty_panels(absence("ledger"), narrow=narrow)
    services = list(dict.fromkeys(str(name) for name in table["service"]))
    colours = ledger_colours(str(name) for name in table["category"])
    panels_bars = [ledger_bars(table[table["service"] == service]) for service in services]
    seen = seen_colours([bar for bars in panels_bars for bar in bars], colours)
    heights = [bars_inches(bars) for bars in panels_bars]
    height = sum(heights) + 0.6 * len(services) + 0.1 + legend_inches(len(seen), narrow=narrow)
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, height)
    panels = figure.subplots(len(services), 1, squeeze=False, height_ratios=heights).flatten()
    for axes, service, bars in zip(panels, services, panels_bars, strict=True):
        longest = max((bar.length for bar in bars), default=0.0) or 1.0
        draw_bars(axes, bars, colours, axis_length=1.15 * longest, least=0.075 if narrow else 0.04)
        name_lengths(axes, bars)
        axes.set_title(category_words(service), loc="left")
        axes.set_xlabel("mean seconds per request" + (" (numbers in bars: %)" if axes is panels[-1] else ""))
    stack_legend(figure, seen, narrow=narrow)
    settle(figure)
    return Panels(panels)


def ledger_bars(rows: pd.DataFrame) -> list[Bar]:
    """A bar for each host availability and fabric of the ledger's rows, those without requests left out."""
    hosts = host_values(rows)
    bars = []
    for host in hosts:
        here = rows_of_host(rows, host)
        for fabric in fabrics_in_order(list(here["fabric"])):
            parts = parts_of(here[here["fabric"] == fabric], "category", "seconds_per_request")
            group = f"hosts up {host_words(host)}" if len(hosts) > 1 else ""
            bars.append(Bar(group, fabric_words(fabric), parts))
    return [bar for bar in bars if bar.length > 0]
