"""The waterfall of a service: from the peak of its chips to tokens in time, as a picture, a table, and a sentence."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sim.report.context import Tables, absence, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.palette import GRID, fabric_look
from sim.report.phrases import spoken_fabrics
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
)
from sim.report.waterfall_words import STEP_WORDS, share_words
from sim.report.words import category_words, fabric_words, host_words, number

STEP_INCHES = 0.33
APART = 0.36
"""Distance of the marks of two fabrics in one step."""


@styled
def tokens_waterfall(tables: Tables, *, narrow: bool = False) -> Panels:
    """Tokens per second after each step on a log scale: a panel per service, a mark per fabric, at the lowest host
    availability. A pale bar spans what a step takes (or, for batches, gives).

    Needs table `waterfall`.
    """
    table = table_of(tables, "waterfall")
    if table.empty:
        return empty_panels(absence("waterfall"), narrow=narrow)
    host = host_values(table)[0]
    here = rows_of_host(table, host)
    services = list(dict.fromkeys(str(name) for name in here["service"]))
    fabrics = spoken_fabrics(here)
    height = len(services) * (STEP_INCHES * len(STEP_WORDS) + 0.62) + 0.3
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, height)
    panels = figure.subplots(len(services), 1, squeeze=False).flatten()
    for axes, service in zip(panels, services, strict=True):
        _draw(axes, here[here["service"] == service], fabrics, narrow=narrow)
        axes.set_title(f"{category_words(service)}, hosts up {host_words(host)}", loc="left")
    panels[-1].set_xlabel("tokens of answers per second (log scale)")
    if len(fabrics) > 1:
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=2)
    settle(figure)
    return Panels(panels)


def _draw(axes: Axes, rows: pd.DataFrame, fabrics: list[str], *, narrow: bool) -> None:
    """One service: steps downwards, the value of each fabric, a bar from the value before."""
    values = {
        fabric: dict(zip(mine["step"], mine["tokens_per_s"], strict=True))
        for fabric in fabrics
        for mine in [rows[rows["fabric"] == fabric]]
    }
    peak = max(max(found.values()) for found in values.values())
    positive = [value for found in values.values() for value in found.values() if value > 0]
    for at, (fabric, found) in enumerate(values.items()):
        look, shift = fabric_look(fabric), APART * (at - (len(fabrics) - 1) / 2)
        before = math.nan
        for place, step in enumerate(STEP_WORDS):
            value = float(found[step])
            if value <= 0:
                break
            if math.isfinite(before):
                low, high = sorted((before, value))
                axes.barh(place + shift, high - low, left=low, height=0.2, color=look.colour, alpha=0.28, linewidth=0)
            label = fabric_words(fabric) if place == 0 else None
            axes.plot(value, place + shift, look.marker, color=look.colour, markersize=5, label=label, linestyle="none")
            if fabric == fabrics[0] or abs(value / float(values[fabrics[0]][step]) - 1) > 0.02:
                text = number(value) + ("" if narrow else f" ({share_words(value / peak)})")
                falls = value < before  # the bar is to the right of its mark: the words go to the left
                name_beside(axes, text, value, place + shift, points=-6.0 if falls else 6.0)
            before = value
    axes.set_xscale("log")
    axes.set_xlim(min(positive) / (7.0 if narrow else 3.5), peak * (9.0 if narrow else 3.5))
    axes.xaxis.set_major_locator(LogLocator(numticks=6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(STEP_WORDS)), list(STEP_WORDS))
    axes.set_ylim(len(STEP_WORDS) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.hlines([place + 0.5 for place in range(len(STEP_WORDS) - 1)], 0, 1, colors=GRID, linewidth=0.5,
                transform=axes.get_yaxis_transform())  # fmt: skip
    quiet_grid(axes, "x")
