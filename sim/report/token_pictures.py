"""Pictures of what a token costs: bytes and seconds by level of memory, and its time over chips down to the floor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sim.report.context import Tables, absence, is_absent, table_of
from sim.report.load_pictures import services_of
from sim.report.palette import FLOOR, INK, MUTED
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
from sim.report.token_words import KIND_WORDS, LEVEL_WORDS, levels_of, short_seconds
from sim.report.words import bytes_words, category_words, number, percent

KIND_COLOURS = {
    "weights": "#0067a5",
    "kv_read": "#c24a05",
    "kv_written": "#f0a064",
    "activations": "#7f8791",
    "kv_moved": "#7a3e8e",
}
PART_COLOURS = {
    "weights": "#0067a5",
    "compute": "#0f9488",
    "kv_read": "#c24a05",
    "collectives": "#9a7200",
    "fixed": "#7f8791",
    "activations": "#b39ddb",
    "sampling": "#c2679c",
    "sends": "#7a3e8e",
}
LEAST_PART = 0.01
"""A part of a step is drawn where it takes this share of it on some slice."""
LEVEL_INCHES = 0.46


@styled
def traffic_by_level(tables: Tables, *, narrow: bool = False) -> Panels:
    """Bytes per token by kind, and seconds per token at the full rate, down the ladder of memories; a row per service.

    The dashed line is the time that passes really take per token. Needs table `traffic`.
    """
    if is_absent(tables, "traffic"):
        return empty_panels(absence("traffic"), narrow=narrow)
    table = table_of(tables, "traffic")
    services = services_of(table)
    heights = [LEVEL_INCHES * len(levels_of(table[table["service"] == name])) + 0.55 for name in services]
    rows, columns = (2 * len(services), 1) if narrow else (len(services), 2)
    ratios = [height for height in heights for _ in range(2)] if narrow else heights
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, sum(ratios) + 0.35)
    panels = figure.subplots(rows, columns, squeeze=False, height_ratios=ratios).flatten()
    for place, name in enumerate(services):
        mine = table[table["service"] == name]
        draw_bytes(panels[2 * place], mine)
        draw_seconds(panels[2 * place + 1], mine, named=narrow)
        panels[2 * place].set_title(f"{category_words(name)}: bytes per token", loc="left")
        panels[2 * place + 1].set_title("seconds per token at full rate", loc="left")
    _kind_legend(figure, table, narrow=narrow)
    settle(figure)
    return Panels(panels)


def draw_bytes(axes: Axes, rows: pd.DataFrame) -> None:
    """A group of bars per level, one per kind, on a log scale; the sum of each level beside its name."""
    levels = levels_of(rows)
    kinds = [kind for kind in KIND_COLOURS if rows.loc[rows["kind"] == kind, "bytes_per_token"].gt(0).any()]
    known = rows.loc[rows["bytes_per_token"] > 0, "bytes_per_token"]
    low, high = 10 ** np.floor(np.log10(known.min()) - 0.3), known.max() * 30
    height = 0.8 / max(len(kinds), 1)
    for place, level in enumerate(levels):
        mine = rows[rows["level"] == level].set_index("kind")["bytes_per_token"]
        here = [kind for kind in kinds if mine.get(kind, 0.0) > 0]
        for at, kind in enumerate(here):
            y = place + height * (at + 0.5 - len(here) / 2)
            axes.barh(y, mine[kind] - low, height=0.86 * height, left=low, color=KIND_COLOURS[kind])
        total = float(mine.sum(skipna=False))
        told = bytes_words(total) if np.isfinite(total) else "no source tells"
        x = max(float(mine.max()), low) if np.isfinite(total) else low
        axes.annotate(told, (x, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=7.0)
    _level_axis(axes, levels)
    axes.set_xlim(low, high)
    _powers(axes, bytes_words)


def draw_seconds(axes: Axes, rows: pd.DataFrame, *, named: bool) -> None:
    """A bar per level: all its bytes at the full rate of all chips, with its share of the time that passes take."""
    levels = levels_of(rows)
    by_level = rows.groupby("level", sort=False)[["bytes_per_token", "seconds_per_token", "busy_share"]].sum(
        min_count=1
    )
    real_s = _pass_seconds(rows)
    known = by_level["seconds_per_token"][by_level["seconds_per_token"] > 0]
    low = 10 ** np.floor(np.log10(min(known.min(), real_s)) - 0.3)
    for place, level in enumerate(levels):
        moved, value, share = by_level.to_numpy(dtype=float)[list(by_level.index).index(level)].tolist()
        if value > 0:
            axes.barh(place, value - low, height=0.5, left=low, color=PART_COLOURS["compute"])
        told = f"{short_seconds(value)}, {_share_words(share)}" if value > 0 else _why_blank(moved, value)
        inside = value > 0 and np.log(value / low) > 0.55 * np.log(3 * real_s / low)
        spot = (value if value > 0 else low, place)
        offset = (-4, 0) if inside else (4, 0)
        axes.annotate(
            told, spot, xytext=offset, textcoords="offset points", va="center", ha="right" if inside else "left",
            fontsize=7.0,
        )  # fmt: skip
    axes.axvline(real_s, color=FLOOR, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.annotate(
        f"passes take {short_seconds(real_s)}", (real_s, -0.5), xytext=(-3, 1), textcoords="offset points", ha="right",
        fontsize=7.0, color=FLOOR,
    )  # fmt: skip
    _level_axis(axes, levels)
    axes.set_ylim(len(levels) - 0.5, -0.85)
    if not named:
        axes.set_yticks(range(len(levels)), [""] * len(levels))
    axes.set_xlim(low, 3 * real_s)
    _powers(axes, short_seconds)


def _pass_seconds(rows: pd.DataFrame) -> float:
    """Seconds of passes per token, from a row that has both a time and its share."""
    known = rows[(rows["seconds_per_token"] > 0) & (rows["busy_share"] > 0)].iloc[0]
    return float(known["seconds_per_token"] / known["busy_share"])


def _share_words(share: float) -> str:
    return percent(share, 0) if share >= 0.1 else percent(share, 1) if share >= 0.001 else "less than 0.1 %"


def _why_blank(moved: float, value: float) -> str:
    if not np.isfinite(moved):
        return "no source tells"
    return "nothing" if value == 0 else "rate not known"


def _level_axis(axes: Axes, levels: list[str]) -> None:
    axes.set_yticks(range(len(levels)), [LEVEL_WORDS.get(level, level) for level in levels])
    axes.set_ylim(len(levels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xscale("log")


def _powers(axes: Axes, words: Callable[[float], str]) -> None:
    """At most six powers of ten as ticks, in units."""
    low, high = axes.get_xlim()
    powers = np.arange(np.ceil(np.log10(low)), np.floor(np.log10(high)) + 1)
    step = int(np.ceil(len(powers) / 6))
    axes.xaxis.set_major_locator(FixedLocator([10.0**power for power in powers[::step]]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words(value)))
    quiet_grid(axes, "x")


def _kind_legend(figure: FigureBase, table: pd.DataFrame, *, narrow: bool) -> None:
    moved = table[table["bytes_per_token"] > 0]["kind"]
    kinds = [kind for kind in KIND_COLOURS if (moved == kind).any()]
    figure.legend(
        handles=[Patch(facecolor=KIND_COLOURS[kind], label=KIND_WORDS[kind]) for kind in kinds],
        loc="outside lower left",
        ncols=2 if narrow else 5,
        handlelength=0.9,
        handleheight=0.9,
    )


@styled
def time_over_chips(tables: Tables, *, narrow: bool = False) -> Panels:
    """Milliseconds per token over the chips of a replica, in all and by part; shaded what no number of chips removes.

    A panel per service, log scales. Hollow dots: the model does not fit. Needs table `token_floor`.
    """
    if is_absent(tables, "token_floor"):
        return empty_panels(absence("token_floor"), narrow=narrow)
    table = table_of(tables, "token_floor")
    services = services_of(table)
    rows, columns = (len(services), 1) if narrow else (1, len(services))
    width = NARROW_INCHES if narrow else min(WIDE_INCHES, 2.4 + 2.9 * len(services))
    figure = new_figure(width, (2.9 if narrow else 3.2) * rows + 0.4)
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes, name in zip(panels, services, strict=True):
        draw_floor(axes, table[table["service"] == name], few=columns > 2)
        axes.set_title(category_words(name), loc="left")
    parts = [part for part in PART_COLOURS if any(part in _parts_seen(table, name) for name in services)]
    floor_legend(figure, parts, narrow=narrow)
    settle(figure)
    return Panels(panels)


def _parts_seen(table: pd.DataFrame, service: str) -> list[str]:
    rows = table[table["service"] == service]
    whole = rows.groupby("chips")["seconds_per_token"].transform("sum")
    return list(dict.fromkeys(rows.loc[rows["seconds_per_token"] > LEAST_PART * whole, "part"].astype(str)))


def draw_floor(axes: Axes, rows: pd.DataFrame, *, few: bool) -> None:
    """Time per token over chips: the whole, its parts, the floor shaded; the fastest slice named."""
    by_chips = rows.groupby("chips").agg({"seconds_per_token": "sum", "floor_s": "sum", "fits": "all"}).sort_index()
    chips = by_chips.index.to_numpy(dtype=float)
    whole, floor = (1e3 * by_chips[name].to_numpy(dtype=float) for name in ("seconds_per_token", "floor_s"))
    for part in _parts_seen(rows, str(rows["service"].iloc[0])):
        mine = rows[rows["part"] == part].sort_values("chips")
        value = 1e3 * mine["seconds_per_token"].to_numpy(dtype=float)
        shown = value > 0
        axes.plot(
            mine["chips"].to_numpy(dtype=float)[shown], value[shown], color=PART_COLOURS.get(part, MUTED), linewidth=0.9
        )
    axes.plot(chips, whole, color=INK, linewidth=1.6, zorder=4)
    for fits, fill in ((True, INK), (False, "#ffffff")):
        here = by_chips["fits"].to_numpy(dtype=bool) == fits
        axes.plot(chips[here], whole[here], "o", markerfacecolor=fill, markeredgecolor=INK, markersize=4.2, zorder=5)
    some = floor > 0
    low = min(whole.min(), floor[some].min() if some.any() else whole.min()) / 60
    axes.fill_between(chips, np.maximum(floor, low), low, color=FLOOR, alpha=0.10, linewidth=0)
    axes.plot(chips[some], floor[some], color=FLOOR, linewidth=1.2, linestyle=(0, (4, 2)), zorder=3)
    fits_some = by_chips["fits"].to_numpy(dtype=bool)
    best = int(np.argmin(np.where(fits_some, whole, np.inf) if fits_some.any() else whole))
    told = f"fastest on {int(chips[best]):,} chips: {number(whole[best])} ms\n(floor there {number(floor[best])} ms)"
    axes.text(0.98, 0.97, told, transform=axes.transAxes, ha="right", va="top", fontsize=7.0)
    axes.set_yscale("log")
    axes.set_ylim(low, max(whole.max(), floor.max()) * 4)
    chips_axis(axes, by_chips.index, few=few)
    powers = [step * 10.0**power for power in range(-6, 6) for step in (1, 3)]
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in powers if low <= tick <= axes.get_ylim()[1]]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.set_xlabel("chips of a replica")
    axes.set_ylabel("ms per token")
    quiet_grid(axes)


def floor_legend(figure: FigureBase, parts: list[str], *, narrow: bool) -> None:
    """What the lines of the time over chips are."""
    handles = [
        Line2D([], [], color=INK, linewidth=1.6, label="a step in all"),
        Line2D([], [], color=FLOOR, linewidth=1.2, linestyle=(0, (4, 2)), label="floor"),
        *(Line2D([], [], color=PART_COLOURS[part], label=category_words(part)) for part in parts),
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=3 if narrow else 8, handlelength=1.6)


@styled
def pass_picture(tables: Tables) -> Panels:
    """What one pass moves and takes per token, by level of memory; below, for decodes, its time over chips."""
    traffic = table_of(tables, "traffic")
    floors = not is_absent(tables, "token_floor")
    height = LEVEL_INCHES * len(levels_of(traffic)) + 0.6
    figure = new_figure(WIDE_INCHES, height + (3.1 if floors else 0.4))
    ratios = [height, 3.0] if floors else [height]
    parts_of_figure = figure.subfigures(len(ratios), 1, height_ratios=ratios, squeeze=False)[:, 0]
    left, right = parts_of_figure[0].subplots(1, 2)
    draw_bytes(left, traffic)
    draw_seconds(right, traffic, named=False)
    left.set_title(f"{traffic['service'].iloc[0]}: bytes per token", loc="left")
    right.set_title("seconds per token at full rate", loc="left")
    _kind_legend(parts_of_figure[0], traffic, narrow=False)
    panels = [left, right]
    if floors:
        rows = table_of(tables, "token_floor")
        axes = parts_of_figure[1].subplots()
        draw_floor(axes, rows, few=False)
        axes.set_title("the same decode step over chips", loc="left")
        seen = _parts_seen(rows, str(rows["service"].iloc[0]))
        floor_legend(parts_of_figure[1], [part for part in PART_COLOURS if part in seen], narrow=False)
        panels.append(axes)
    settle(figure)
    return Panels(panels)
