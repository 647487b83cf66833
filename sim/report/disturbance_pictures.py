"""A picture of a slowdown and what comes after it: who is answered, by the instant of arrival."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps

from sim.report.context import Tables, absence, is_absent, table_of
from sim.report.effect_words import swept_words
from sim.report.palette import MUTED
from sim.report.style import NARROW_INCHES, WIDE_INCHES, Panels, empty_panels, new_figure, quiet_grid, settle, styled


@styled
def answered_over_time(tables: Tables, *, narrow: bool = False) -> Panels:
    """Share of requests that are answered over the instant of their arrival, a line per combination of swept values,
    with the slowdown above and without it below. Needs table `disturbance`.
    """
    if is_absent(tables, "disturbance"):
        return empty_panels(absence("disturbance"), narrow=narrow)
    lines = swept_words(table_of(tables, "disturbance"))
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, 4.4)
    grid = figure.subplots(2, 1, sharex=True, sharey=True)
    colours = colormaps["tab10"](np.arange(len(lines)) % 10)
    for axes, slowed in zip(grid, (True, False), strict=True):
        for colour, (words, rows) in zip(colours, lines.items(), strict=True):
            mine = rows[rows["slowed"] == slowed].sort_values("t_s")
            t_s, answered = (mine[name].to_numpy(dtype=float) for name in ("t_s", "answered"))
            edges = np.append(t_s, 2 * t_s[-1:] - t_s[-2:-1])  # the last step is as long as the one before
            levels = 100 * np.append(answered, answered[-1:])[: edges.size]
            axes.step(edges, levels, where="post", color=colour, label=words, linewidth=1.4)
        axes.set_title("slowed for a while" if slowed else "the same requests, not slowed", loc="left")
        axes.set_ylabel("answered (%)")
        quiet_grid(axes)
    grid[0].set_ylim(-3, 104)
    grid[1].set_xlabel("seconds at which requests arrive")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=2 if narrow else 3, fontsize=7.0, labelcolor=MUTED)
    settle(figure)
    return Panels(grid.flat)
