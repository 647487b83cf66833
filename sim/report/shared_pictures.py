"""The picture of a pod that serves and trains: two days of demand, replicas, training and losses."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter

from sim.report.context import Tables, absence, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.palette import INK, MUTED
from sim.report.shared_words import MACHINE_WORDS, machines_of_table
from sim.report.style import NARROW_INCHES, WIDE_INCHES, Panels, empty_panels, new_figure, quiet_grid, settle, styled

COLOURS = {"shared": "#0067a5", "fixed": "#c24a05", "fixed_equal_money": "#7a3e8e"}
DASHES = {"shared": "solid", "fixed": (0, (5, 1.5)), "fixed_equal_money": (0, (1.5, 1.2))}
LOSS = "#b3123f"
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOUR_S = 3600.0


@styled
def shared_pod_day(tables: Tables, *, narrow: bool = False) -> Panels:
    """Demand, replicas wanted and up, cubes that train, cubes out: two days of the first replication, by machine.

    Crosses are losses on the first machine: of replicas in the middle panel, of training jobs in the lowest. Needs
    table `shared_pod_day`.
    """
    table = table_of(tables, "shared_pod_day")
    if table.empty:
        return empty_panels(absence("shared_pod_day"), narrow=narrow)
    here = rows_of_host(table, host_values(table)[0])
    here = here[here["fabric"] == here["fabric"].iloc[0]]
    machines = machines_of_table(here)
    figure = new_figure(NARROW_INCHES if narrow else WIDE_INCHES, 5.6)
    demand, replicas, cubes = figure.subplots(3, 1, sharex=True, height_ratios=[1.0, 1.5, 1.5])
    _demand(demand, here[here["machine"] == machines[0]])
    for machine in machines:
        mine = here[here["machine"] == machine]
        by_time = mine.groupby("time_s", sort=True)
        look = {"color": COLOURS[machine], "linestyle": DASHES[machine], "drawstyle": "steps-post"}
        if machine == machines[0]:
            wanted = by_time["replicas_wanted"].sum()
            replicas.plot(
                wanted.index / HOUR_S, wanted, color=INK, linewidth=0.7, drawstyle="steps-post", label="wanted"
            )
        up, trains = by_time["replicas_up"].sum(), by_time["training_cubes"].first()
        replicas.plot(up.index / HOUR_S, up, label=f"up, {MACHINE_WORDS[machine]}", **look)
        cubes.plot(trains.index / HOUR_S, trains, label=f"train, {MACHINE_WORDS[machine]}", **look)
    first = here[here["machine"] == machines[0]].groupby("time_s", sort=True)
    out = first["cubes_out"].first()
    cubes.fill_between(
        out.index / HOUR_S, out, step="post", color=MUTED, alpha=0.35, linewidth=0, label="out of action"
    )
    _crosses(replicas, first["serving_losses"].sum())
    _crosses(cubes, first["training_losses"].first())
    replicas.set_ylabel("replicas")
    cubes.set_ylabel("cubes")
    _hours(cubes, here["time_s"].to_numpy(dtype=float))
    for axes in (demand, replicas, cubes):
        axes.set_ylim(bottom=0)
        quiet_grid(axes)
    for axes in (replicas, cubes):
        axes.set_ylim(top=1.12 * axes.get_ylim()[1])
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.02 if axes is replicas else -0.2), ncols=2 if narrow else 5)
    figure.align_ylabels()
    settle(figure)
    return Panels((demand, replicas, cubes))


def _demand(axes: Axes, rows: pd.DataFrame) -> None:
    """A line per service, its name at its peak where there are several."""
    services = list(dict.fromkeys(str(name) for name in rows["service"]))
    for service in services:
        mine = rows[rows["service"] == service]
        hours, rate = mine["time_s"].to_numpy(dtype=float) / HOUR_S, mine["demand_per_s"].to_numpy(dtype=float)
        axes.plot(hours, rate, color=INK)
        if len(services) > 1:
            peak = int(np.argmax(rate))
            axes.annotate(service, (hours[peak], rate[peak]), xytext=(3, 2), textcoords="offset points", fontsize=7.0)
    axes.set_ylabel("requests/s")


def _crosses(axes: Axes, losses: pd.Series) -> None:
    """A cross for every look in which something was lost, at the foot of the panel."""
    hours = losses.index[losses > 0].to_numpy(dtype=float) / HOUR_S
    if len(hours):
        foot = np.full(len(hours), 0.04)
        axes.plot(
            hours, foot, "x", color=LOSS, markersize=4.5, transform=axes.get_xaxis_transform(), label="losses", zorder=5
        )


def _hours(axes: Axes, time_s: np.ndarray) -> None:
    """Ticks every six hours; days by their names."""
    low, high = float(time_s.min()) / HOUR_S, float(time_s.max()) / HOUR_S
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator(list(np.arange(6 * np.ceil(low / 6), high + 1e-9, 6.0))))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda hour, _: _hour_text(round(hour))))


def _hour_text(hour: int) -> str:
    day, of_day = divmod(hour, 24)
    return f"{DAYS[day % 7]}, 0 h" if of_day == 0 else f"{of_day}"
