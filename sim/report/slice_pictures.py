"""Pictures of one slice: load on its links in space, its circuits on the 48 switches, what dead switches cost it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d.art3d import Line3DCollection
from numpy.typing import NDArray

from ocs.circuits import circuits_of
from sim.dead_switches import SwitchSlowdowns
from sim.report.palette import FABRIC_LOOKS, GRID, INK, MUTED, OTHER_LOOK
from sim.report.style import WIDE_INCHES, Panels, new_figure, quiet_grid, settle, styled
from topology.placement import Placement
from topology.pod import DIMENSIONS, POSITIONS_PER_FACE, places_of
from topology.routing.channels import CHANNELS_PER_CHIP, NO_CHIP, torus_of_shape
from topology.routing.faults import DeadLinks
from topology.shape import Shape

AXES = "xyz"
STUB = 0.42
"""How far a wraparound link is drawn out of the slice on each side, in links."""
PANELS_WIDTH = 0.88
"""Share of a picture in space that is not its colour bar."""
LIGHT, WARM = FABRIC_LOOKS["reconfigurable"].colour, FABRIC_LOOKS["static_aligned"].colour
LOADS = LinearSegmentedColormap.from_list("loads", ["#e4e9ee", "#a9c6dc", "#5f9cc5", "#e0862f", "#b3123f"])
"""Colours up to and above the busiest link without faults, which is in the middle."""
METHOD_LOOKS: dict[str, tuple[str, str]] = {
    "dimension_order": (WARM, "s"),
    "even_split": (FABRIC_LOOKS["static_contiguous"].colour, "^"),
    "wild_first": (OTHER_LOOK.colour, "v"),
    "optimal": (LIGHT, "o"),
}


METHOD_WORDS = {
    "dimension_order": "dimension order",
    "even_split": "even split",
    "wild_first": "wild-first",
    "optimal": "best routes",
}


class Segment(NamedTuple):
    """One straight piece of a link in space, with the number of the link's channel upwards."""

    start: tuple[float, float, float]
    end: tuple[float, float, float]
    channel: int


def segments_of(shape: Shape) -> list[Segment]:
    """Pieces of all links of a slice: a link between neighbours is one, a wraparound two stubs out of the slice."""
    torus = torus_of_shape(shape)
    pieces = []
    for chip, at in enumerate(places_of(shape.dimensions)):
        for axis in range(DIMENSIONS):
            channel = chip * CHANNELS_PER_CHIP + 2 * axis
            above = int(torus.head[channel])
            if above == NO_CHIP:
                continue
            to = torus.coordinates(above)
            if at[axis] + 1 < shape.dimensions[axis]:
                pieces.append(Segment(_shifted(at, axis, 0.0), _shifted(to, axis, 0.0), channel))
            else:
                pieces.append(Segment(_shifted(at, axis, 0.0), _shifted(at, axis, STUB), channel))
                pieces.append(Segment(_shifted(to, axis, 0.0), _shifted(to, axis, -STUB), channel))
    return pieces


def _shifted(at: tuple[int, int, int], axis: int, by: float) -> tuple[float, float, float]:
    moved = [float(value) for value in at]
    moved[axis] += by
    return moved[0], moved[1], moved[2]


def loads_of_links(shape: Shape, load: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per channel upwards (N * 6,), the larger load of its link's two directions."""
    torus = torus_of_shape(shape)
    both = load.copy()
    for up in np.flatnonzero(torus.head != NO_CHIP).tolist():
        axis, side = divmod(up % CHANNELS_PER_CHIP, 2)
        if side == 0:
            down = int(torus.head[up]) * CHANNELS_PER_CHIP + 2 * axis + 1
            both[up] = max(load[up], load[down])
    return both


@styled
def slice_in_space(
    shape: Shape,
    loads: Mapping[str, NDArray[np.float64]],
    dead: DeadLinks = (),
    *,
    unit: str = "load of the busiest link without faults = 1",
) -> Panels:
    """The slice in space, a panel per title in `loads`: load of every channel (N * 6,), by colour and width, where 1 is
    the busiest link without faults; dead links are crossed out in each panel in which they carry nothing."""
    figure = new_figure(WIDE_INCHES, 4.1)
    figure.set_layout_engine(None)  # axes in space do not tell it their size
    most = max(float(load.max()) for load in loads.values())
    scale = TwoSlopeNorm(1.0, 0.0, max(most, 1.05))
    panels: list[Axes] = []
    pieces = segments_of(shape)
    gone = {_number(shape, link.chip) * CHANNELS_PER_CHIP + 2 * link.axis for link in dead}
    for column, (title, load) in enumerate(loads.items()):
        width = PANELS_WIDTH / len(loads)
        axes: Any = figure.add_axes((column * width, 0.1, width, 0.84), projection="3d")
        _draw_space(axes, shape, pieces, loads_of_links(shape, load), gone, scale)
        figure.text(column * width + 0.02, 0.94, title, fontweight="bold", fontsize=8.5)
        panels.append(axes)
    bar = figure.colorbar(ScalarMappable(scale, LOADS), cax=figure.add_axes((PANELS_WIDTH + 0.03, 0.2, 0.014, 0.6)))
    ticks = [0.0, 0.5, 1.0, max(most, 1.05)]
    bar.set_ticks(ticks, labels=[f"{tick:.2f}" for tick in ticks])
    bar.set_label(unit)
    outline: Any = bar.outline
    outline.set_visible(False)
    if gone:
        marks = [Line2D([], [], color=INK, marker="x", markersize=5, linestyle="none")]
        figure.legend(marks, ["dead link (a wraparound is drawn as two halves)"], loc="lower center")
    return Panels(panels)


def _draw_space(
    axes: Any,
    shape: Shape,
    pieces: Sequence[Segment],
    load: NDArray[np.float64],
    gone: set[int],
    scale: TwoSlopeNorm,
) -> None:
    """One panel: links as lines, idle dead ones crossed at their middle."""
    live = [piece for piece in pieces if piece.channel not in gone or load[piece.channel] > 0]
    values = np.array([load[piece.channel] for piece in live])
    order = np.argsort(values, kind="stable")
    thin = float(np.clip(3.2 / max(shape.dimensions) ** 0.5 - 0.4, 0.35, 1.2))
    above = np.clip((values[order] - 1.0) / 0.05, 0.0, 1.0)
    lines = Line3DCollection(
        [(live[i].start, live[i].end) for i in order.tolist()],
        colors=LOADS(scale(values[order])),
        linewidths=(thin * (0.4 + 0.6 * np.minimum(values[order], 1.0) + 1.6 * above)).tolist(),
    )
    axes.add_collection3d(lines)
    dead = [piece for piece in pieces if piece.channel in gone and not load[piece.channel] > 0]
    if dead:
        x, y, z = np.array([(np.array(piece.start) + np.array(piece.end)) / 2 for piece in dead]).T
        axes.plot(x, y, z, linestyle="none", marker="x", markersize=4.5, color=INK, markeredgewidth=1.1)
    for axis, length in enumerate(shape.dimensions):
        getattr(axes, f"set_{AXES[axis]}lim")(-STUB, length - 1 + STUB)
        getattr(axes, f"set_{AXES[axis]}ticks")(list(range(0, length, 4)) if length > 4 else list(range(length)))
        getattr(axes, f"set_{AXES[axis]}label")(AXES[axis], labelpad=-8)
        pane = getattr(axes, f"{AXES[axis]}axis")
        pane.pane.set_visible(False)
        pane.line.set_color(GRID)
    axes.tick_params(pad=-3, labelsize=6.5)
    axes.grid(False)
    axes.set_box_aspect([length - 1 + 2 * STUB for length in shape.dimensions])
    axes.view_init(elev=20, azim=-58)


def _number(shape: Shape, chip: tuple[int, int, int]) -> int:
    return torus_of_shape(shape).chip_number(chip)


@styled
def circuits_on_switches(placement: Placement, dead_switches: Sequence[int] = ()) -> Panels:
    """The circuits of a slice: per dimension, which + end is joined to which - end (alike on all of its 16 switches),
    and below them the 48 switches with the circuits of this slice on each."""
    figure = new_figure(WIDE_INCHES, 4.0)
    layout: Any = figure.add_gridspec(2, DIMENSIONS, height_ratios=[6.0, 1.1])
    rows = circuits_of(placement)
    place = {cube: number for number, cube in enumerate(placement.cubes)}
    panels: list[Axes] = []
    for dimension in range(DIMENSIONS):
        axes = figure.add_subplot(layout[0, dimension])
        own = rows[rows[:, 0] == dimension * POSITIONS_PER_FACE]
        pairs = [(place[plus], place[minus]) for _, plus, minus in own.tolist()]
        _draw_matching(axes, placement, dimension, pairs)
        panels.append(axes)
    for dimension in range(DIMENSIONS):
        axes = figure.add_subplot(layout[1, dimension])
        counts = np.bincount(rows[:, 0], minlength=DIMENSIONS * POSITIONS_PER_FACE)
        _draw_switches(axes, dimension, counts, dead_switches)
        panels.append(axes)
    every = {"to the next cube": (LIGHT, "o"), "wraparound": (WARM, "s"), "closes on itself": (OTHER_LOOK.colour, "D")}
    drawn = {line.get_color() for axes in panels for line in axes.get_lines()}
    kinds = {name: look for name, look in every.items() if look[0] in drawn}
    marks = [Line2D([], [], color=c, marker=m, linestyle="none", markersize=5) for c, m in kinds.values()]
    names = list(kinds)
    if dead_switches:
        marks.append(Line2D([], [], color=INK, marker="x", linestyle="none", markersize=6))
        names.append("dead switch")
    figure.legend(marks, names, loc="outside lower center", ncols=len(names))
    settle(figure)
    return Panels(panels)


def _draw_matching(axes: Axes, placement: Placement, dimension: int, pairs: Sequence[tuple[int, int]]) -> None:
    """One dot per circuit of one dimension, at its two cubes."""
    places = places_of(placement.shape.box)
    looks = []
    for plus, minus in pairs:
        if plus == minus:
            looks.append((OTHER_LOOK.colour, "D"))
        elif places[plus][dimension] + 1 == placement.shape.box[dimension]:
            looks.append((WARM, "s"))
        else:
            looks.append((LIGHT, "o"))
    size = float(np.clip(140 / max(1, len(pairs)), 1.6, 6.0))
    for (plus, minus), (colour, marker) in zip(pairs, looks, strict=True):
        axes.plot([minus], [plus], marker=marker, color=colour, markersize=size, linestyle="none")
    count = len(placement.cubes)
    step = max(1, -(-count // 8))
    ticks = list(range(0, count, step))
    labels = [str(placement.cubes[tick]) for tick in ticks]
    axes.set_xticks(ticks, labels)
    axes.set_yticks(ticks, labels)
    axes.set_xlim(-0.6, count - 0.4)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_aspect("equal")
    axes.set_title(f"{AXES[dimension]}: rings of {_ring_cubes(pairs)}", loc="left")
    axes.set_xlabel("cube of the - end")
    if dimension == 0:
        axes.set_ylabel("cube of the + end")
    quiet_grid(axes, "both")


def _ring_cubes(pairs: Sequence[tuple[int, int]]) -> int:
    """Cubes on the ring of the first cube; a twist makes rings longer than the box."""
    follows = dict(pairs)
    at, count = follows[0], 1
    while at:
        at, count = follows[at], count + 1
    return count


def _draw_switches(axes: Axes, dimension: int, counts: NDArray[np.int64], dead: Sequence[int]) -> None:
    """The 16 switches of a dimension as squares in the order of face positions, with their circuits."""
    for position in range(POSITIONS_PER_FACE):
        switch = dimension * POSITIONS_PER_FACE + position
        row, column = divmod(position, 8)
        is_dead = switch in dead
        axes.text(
            column, row, str(counts[switch]), ha="center", va="center", fontsize=6.5, color="none" if is_dead else INK,
            bbox={"boxstyle": "square,pad=0.35", "facecolor": "none", "edgecolor": GRID if is_dead else LIGHT},
        )  # fmt: skip
        if is_dead:
            axes.plot([column], [row], marker="x", color=INK, markersize=9, markeredgewidth=1.4)
    axes.set_xlim(-0.7, 7.7)
    axes.set_ylim(1.6, -0.6)
    axes.set_axis_off()
    axes.set_title(f"circuits on switches {AXES[dimension]}:0 to {AXES[dimension]}:15", loc="left", fontweight="normal")


@styled
def slowdown_over_dead_switches(
    found: SwitchSlowdowns, *, title: str, ylabel: str = "time of an all-to-all, without faults = 1"
) -> Panels:
    """Slowdown over the number of dead switches, a line per method: medians over the drawn sets, bars from the least to
    the greatest. The line ends where most sets leave the method without routes (infinite), which the legend says."""
    figure = new_figure(WIDE_INCHES * 0.72, 3.2)
    axes = figure.add_subplot()
    width = 0.07
    for number, (method, values) in enumerate(found.by_method.items()):
        colour, marker = METHOD_LOOKS.get(method, (MUTED, "d"))
        at = np.asarray(found.dead) + width * (number - (len(found.by_method) - 1) / 2)
        middle = np.median(values, axis=1)
        shown = np.where(np.isfinite(values), values, np.nan)
        some = np.isfinite(values).any(axis=1)
        least, greatest = np.nanmin(shown[some], axis=1), np.nanmax(shown[some], axis=1)
        axes.vlines(at[some], least, greatest, color=colour, linewidth=0.9, alpha=0.75)
        line = np.where(np.isfinite(middle), middle, np.nan)
        axes.plot(at, line, color=colour, marker=marker, label=_label(found, method))
    axes.set_xticks(list(found.dead))
    axes.set_xlabel("dead switches, of 48")
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left")
    axes.axhline(1.0, color=MUTED, linewidth=0.6)
    quiet_grid(axes)
    axes.legend(loc="upper left")
    settle(figure)
    return Panels((axes,))


def _label(found: SwitchSlowdowns, method: str) -> str:
    """A method in the legend, with where it has no routes."""
    words = METHOD_WORDS.get(method, method.replace("_", " "))
    lost = ~np.isfinite(found.by_method[method])
    most = [count for count, share in zip(found.dead, lost.mean(axis=1), strict=True) if share >= 0.5]
    if most:
        return f"{words} (mostly no routes from {most[0]} on)"
    return f"{words} (some sets leave no routes)" if lost.any() else words
