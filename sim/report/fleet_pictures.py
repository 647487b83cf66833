"""The picture of several pods: how long jobs wait, with queues of their own and behind one."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator

from sim.report.context import Tables, absence, is_absent, table_of
from sim.report.fleet_words import QUEUE_WORDS
from sim.report.hosts import host_values, rows_of_host
from sim.report.style import NARROW_INCHES, WIDE_INCHES, Panels, empty_panels, new_figure, quiet_grid, settle, styled

COLOURS = {"own": "#c24a05", "one": "#0067a5"}
DASHES = {"own": (0, (5, 1.5)), "one": "solid"}
TICKS = {
    60.0: "1 min", 300.0: "5 min", 1800.0: "30 min", 7200.0: "2 h", 28800.0: "8 h", 86400.0: "1 d",
    259200.0: "3 d", 604800.0: "7 d",
}  # fmt: skip


@styled
def waits_of_fleet(tables: Tables, *, narrow: bool = False) -> Panels:
    """Share of jobs that wait longer than a time: own queues against one, at the first fabric and host availability.

    Needs table `fleet_waits`.
    """
    if is_absent(tables, "fleet_waits"):
        return empty_panels(absence("fleet_waits"), narrow=narrow)
    table = table_of(tables, "fleet_waits")
    here = rows_of_host(table, host_values(table)[0])
    here = here[(here["fabric"] == here["fabric"].iloc[0]) & (here["longer_than_s"] > 0)]
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, 3.0)
    axes = figure.subplots()
    for queues, colour in COLOURS.items():
        rows = here[here["queues"] == queues].sort_values("longer_than_s")
        share = 100 * rows["share"].to_numpy(dtype=float)
        axes.plot(
            rows["longer_than_s"], share, color=colour, linestyle=DASHES[queues], marker="o", label=QUEUE_WORDS[queues]
        )
    last_s = float(here.loc[here["share"] > 0, "longer_than_s"].max()) if (here["share"] > 0).any() else 60.0
    axes.set_xscale("log")
    axes.set_xlim(50.0, max(7200.0, 1.5 * last_s))
    axes.xaxis.set_major_locator(FixedLocator(list(TICKS)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(list(TICKS.values()))
    axes.set_ylim(0, 1.08 * max(1.0, 100 * float(np.max(here["share"]))))
    axes.set_xlabel("wait from arrival to the first slice")
    axes.set_ylabel("jobs that wait longer (%)")
    axes.legend(loc="upper right")
    quiet_grid(axes)
    settle(figure)
    return Panels((axes,))
