"""Pictures of a plan: what speed costs on which slice, and where its passes lie under the roof of a chip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from sim.report.palette import INK, MUTED
from sim.report.style import WIDE_INCHES, Panels, new_figure, quiet_grid, settle, styled
from workloads.catalogue.chip import Chip
from workloads.costs.passes import Phase, pass_cost
from workloads.costs.replica import ReplicaCosts
from workloads.planning import BATCHES, Choice, Workload

COLOURS = {Phase.PREFILL: "#0067a5", Phase.DECODE: "#c24a05"}
MARKERS = {Phase.PREFILL: "o", Phase.DECODE: "s"}
TITLES = {Phase.PREFILL: "Prefill of a whole batch", Phase.DECODE: "Decode, one token each"}


@styled
def plan_picture(
    fronts: dict[Phase, tuple[Choice, ...]], smallest: ReplicaCosts, stages: int, workload: Workload
) -> Panels:
    """Fronts of latency and cost of both phases, and the passes of the smallest slice under the roof of its chip."""
    figure = new_figure(WIDE_INCHES, 3.0)
    axes = figure.subplots(1, 3)
    for panel, phase in zip(axes, Phase, strict=False):
        _draw_front(panel, phase, fronts[phase])
    _draw_roof(axes[2], smallest, stages, workload)
    settle(figure)
    return Panels(tuple(axes))


def _draw_front(axes: Axes, phase: Phase, rows: Sequence[Choice]) -> None:
    """Chip-seconds per token over latency, with the slice where it changes."""
    axes.set_title(TITLES[phase], loc="left")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("latency, ms")
    axes.set_ylabel("chip-ms per token")
    if not rows:
        axes.text(0.5, 0.5, "nothing within the limits", ha="center", color=MUTED, transform=axes.transAxes)
        return
    latency, cost = (1e3 * np.array([getattr(each, name) for each in rows]) for name in ("latency_s", "cost_chip_s"))
    axes.plot(latency, cost, marker=MARKERS[phase], color=COLOURS[phase], drawstyle="steps-post", linewidth=0.9)
    _ticks(axes)
    for axis, ratio in ((axes.xaxis, latency[-1] / latency[0]), (axes.yaxis, cost[0] / cost[-1])):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if ratio < 30 else (1.0,)))
    axes.margins(0.16)
    last, low = "", np.inf
    apart = (cost[0] / cost[-1]) ** 0.045  # lines of text that lie nearer are on top of each other
    for each, x, y in zip(rows, latency, cost, strict=True):
        if each.shape != last and y * apart < low:
            axes.annotate(each.shape, (x, y), xytext=(3, 3), textcoords="offset points", fontsize=6.5, color=INK)
            last, low = each.shape, y
    quiet_grid(axes, "both")


def _draw_roof(axes: Axes, replica: ReplicaCosts, stages: int, workload: Workload) -> None:
    """FLOP/s per chip over FLOP per byte of memory, for batches 1, 2, 4, ..., under the chip's roof."""
    chip: Chip = replica.chip
    axes.set_title(f"{chip.name} on {replica.network.text}: roof", loc="left")
    batches = np.array(BATCHES)
    model, chips = replica.model, replica.chips * stages
    points: list[float] = []
    for phase in Phase:
        length = (
            workload.input_tokens if phase is Phase.PREFILL else workload.input_tokens + workload.output_tokens // 2
        )
        cost = pass_cost(replica, phase, batches, length, stages=stages)
        hbm = cost.bytes["hbm"]
        moved = hbm["weights"] + hbm["kv_read"] + hbm["kv_written"]
        tokens = batches * (length if phase is Phase.PREFILL else 1)
        flops = 2.0 * model.active_parameters * tokens
        axes.plot(
            flops / moved,
            flops / cost.seconds / chips / 1e12,
            marker=MARKERS[phase],
            color=COLOURS[phase],
            linewidth=0.9,
            label=f"{phase.value}, batch 1 to {batches[-1]:,}",
        )
        points += [float(value) for value in flops / moved]
    x = np.geomspace(min(points) / 2, max(*points, 2 * chip.critical_tokens), 100)
    roof = np.minimum(x * chip.hbm_bytes_per_s, chip.peak_flops_per_s) / 1e12
    axes.plot(x, roof, color=INK, linewidth=1.0, label="roof: memory, arithmetic")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("FLOP per byte of memory")
    axes.set_ylabel("TFLOP/s per chip")
    axes.legend(loc="lower right", fontsize=6.5)
    _ticks(axes)
    quiet_grid(axes, "both")


def _ticks(axes: Axes) -> None:
    """Plain numbers on logarithmic axes."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
        axis.set_minor_locator(NullLocator())


def _short(value: float) -> str:
    """A tick in few letters: 500, 20k, 1M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
