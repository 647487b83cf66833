"""Pictures of a pod in operation: what its chips did, what a recovery takes, its cubes over time, waits over load."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from sim.report.bars import Bar, legend_inches, parts_of, share_panels, stack_legend
from sim.report.categories import CUBE_COLOURS, STAGE_COLOURS, USE_COLOURS, use_colours
from sim.report.context import Tables, absence, table_of
from sim.report.hosts import host_values, rows_of_host, some_of
from sim.report.palette import MUTED, fabric_look
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
from sim.report.words import category_words, fabric_words, fabrics_in_order, host_words, seconds

DAY_S = 86_400.0
LOAD_KEY_END = ".load"


@styled
def operations_chip_hours(tables: Tables, *, narrow: bool = False) -> Panels:
    """What the chips of a pod in operation did, in % of chip-hours: a bar per fabric, a panel per host availability.

    Needs table `operations_chip_hours`.
    """
    table = table_of(tables, "operations_chip_hours")
    if table.empty:
        return empty_panels(absence("operations_chip_hours"), narrow=narrow)
    hosts = some_of(host_values(table), 3)
    panels_bars = []
    for host in hosts:
        here = rows_of_host(table, host)
        bars = []
        for fabric in fabrics_in_order(list(here["fabric"])):
            shares = parts_of(here[here["fabric"] == fabric], "use", "share")
            bars.append(Bar("", fabric_words(fabric), {use: 100 * share for use, share in shares.items()}))
        panels_bars.append(bars)
    colours = use_colours([str(use) for use in table["use"]])
    return share_panels(panels_bars, [f"hosts up {host_words(host)}" for host in hosts], colours, narrow=narrow)


@styled
def recovery_waterfall(tables: Tables, *, narrow: bool = False) -> Panels:
    """The mean recovery of a lost job, stage after stage, a panel per fabric (at the first host availability).

    Needs table `recovery_stages`.
    """
    table = table_of(tables, "recovery_stages")
    if table.empty:
        return empty_panels(absence("recovery_stages"), narrow=narrow)
    here = rows_of_host(table, host_values(table)[0])
    fabrics = fabrics_in_order(list(here["fabric"]))
    height = len(fabrics) * (0.17 * len(STAGE_COLOURS) + 0.55)
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, height)
    panels = figure.subplots(len(fabrics), 1, sharex=True, squeeze=False).flatten()
    longest = float(here.groupby("fabric")["seconds_per_loss"].sum().max()) / 60.0
    for axes, fabric in zip(panels, fabrics, strict=True):
        _waterfall(axes, here[here["fabric"] == fabric], longest)
        axes.set_title(fabric_words(fabric), loc="left")
    panels[-1].set_xlabel("minutes after the loss, mean over losses")
    settle(figure)
    return Panels(panels)


def _waterfall(axes: Axes, rows: pd.DataFrame, longest: float) -> None:
    """Each stage in a row of its own, from where the one before it ended."""
    stages, minutes = [str(stage) for stage in rows["stage"]], rows["seconds_per_loss"].to_numpy() / 60.0
    ends = np.cumsum(minutes)
    for place, (stage, end, length) in enumerate(zip(stages, ends, minutes, strict=True)):
        axes.barh(place, length, left=end - length, height=0.72, color=USE_COLOURS.get(stage, MUTED))
        name_beside(axes, seconds(60 * length), end, place)
    axes.set_yticks(range(len(stages)), [category_words(stage) for stage in stages])
    axes.set_ylim(len(stages) - 0.5, -0.5)
    axes.set_xlim(0, 1.14 * longest if longest else 1.0)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    quiet_grid(axes, "x")


@styled
def cubes_over_time(tables: Tables, *, narrow: bool = False) -> Panels:
    """Every cube of the pod over time: what the job on it does, when it is out; a panel per fabric, first replication.

    Needs table `cube_story`.
    """
    table = table_of(tables, "cube_story")
    if table.empty:
        return empty_panels(absence("cube_story"), narrow=narrow)
    here = rows_of_host(table, host_values(table)[0])
    fabrics = fabrics_in_order(list(here["fabric"]))
    colours = {what: colour for what, colour in CUBE_COLOURS.items() if (here["what"] == what).any()}
    cubes = int(here["cube"].max()) + 1
    panel = min(3.4, max(0.9, 0.045 * cubes))
    height = len(fabrics) * (panel + 0.42) + legend_inches(len(colours), narrow=narrow) + 0.1
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, height)
    panels = figure.subplots(len(fabrics), 1, sharex=True, squeeze=False).flatten()
    for axes, fabric in zip(panels, fabrics, strict=True):
        _cubes(axes, here[here["fabric"] == fabric], colours, cubes)
        axes.set_title(fabric_words(fabric), loc="left")
        axes.set_ylabel("cube")
    panels[-1].set_xlabel("days")
    panels[-1].set_xlim(0, float(here["end_s"].max()) / DAY_S)
    stack_legend(figure, colours, narrow=narrow)
    settle(figure)
    return Panels(panels)


def _cubes(axes: Axes, rows: pd.DataFrame, colours: dict[str, str], cubes: int) -> None:
    """One box per stretch; a change of job at one cube shows as a thin gap."""
    for what, colour in colours.items():
        mine = rows[rows["what"] == what]
        left, right = mine["start_s"].to_numpy() / DAY_S, mine["end_s"].to_numpy() / DAY_S
        low = mine["cube"].to_numpy() - 0.42
        corners = [(left, low), (right, low), (right, low + 0.84), (left, low + 0.84)]
        boxes = np.stack([np.column_stack(corner) for corner in corners], axis=1)
        axes.add_collection(PolyCollection(list(boxes), facecolors=colour, edgecolors="none", rasterized=True))
    axes.set_ylim(cubes - 0.5, -0.5)


def load_key(table: pd.DataFrame) -> str | None:
    """The swept column that holds the load of jobs, or None where it is not swept."""
    keys = [str(key) for key in table if str(key).startswith("jobs.") and str(key).endswith(LOAD_KEY_END)]
    return keys[0] if keys and table[keys[0]].nunique() > 1 else None


@styled
def wait_over_load(tables: Tables, *, narrow: bool = False) -> Panels:
    """Mean wait of jobs over the load, a line per fabric, at the first host availability, with 95 % intervals.

    Needs table `operations` of a run that sweeps the load of a stream of jobs.
    """
    table = table_of(tables, "operations")
    key = load_key(table) if len(table) else None
    if key is None:
        return empty_panels(absence("operations"), narrow=narrow)
    rows = rows_of_host(table[table["measure"] == "wait_mean_s"], host_values(table)[0])
    figure = new_figure(NARROW_INCHES if narrow else 5.4, 2.5)
    axes = figure.subplots()
    for fabric in fabrics_in_order(list(rows["fabric"])):
        mine = rows[rows["fabric"] == fabric]
        load = np.array([share_of(text) for text in mine[key]])
        order = np.argsort(load)
        wait, low, high = (mine[name].to_numpy()[order] / 3600.0 for name in ("value", "ci_low", "ci_high"))
        look = fabric_look(fabric)
        axes.plot(
            100 * load[order], wait, color=look.colour, marker=look.marker, ls=look.dash, label=fabric_words(fabric)
        )
        axes.fill_between(100 * load[order], low, high, color=look.colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("load, % of the pod's chip-time asked for")
    axes.set_ylabel("mean wait, hours")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")
    quiet_grid(axes)
    settle(figure)
    return Panels((axes,))


def share_of(text: str) -> float:
    """A share as a scenario writes it, `80 %` or `0.8`, as a number."""
    text = text.strip()
    return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
