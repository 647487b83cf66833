"""All pictures of a run by name, with what they show in words: for files, for the page, and for `Result.plot`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from matplotlib.figure import Figure

from sim.executors import map_tasks, open_executor
from sim.files import write_whole
from sim.report.alt_texts import alt_text
from sim.report.bars import chip_hours_by_use as chip_hours_by_use
from sim.report.bars import request_ledger as request_ledger
from sim.report.context import ServiceLimits, Tables, is_absent
from sim.report.curves import availability_curves as availability_curves
from sim.report.curves import promise_cubes as promise_cubes
from sim.report.disturbance_pictures import answered_over_time as answered_over_time
from sim.report.effect_pictures import effects_of_changes as effects_of_changes
from sim.report.fleet_pictures import waits_of_fleet as waits_of_fleet
from sim.report.ladder import slice_size_ladder as slice_size_ladder
from sim.report.life_pictures import life_of_request as life_of_request
from sim.report.load_pictures import goodput_over_load as goodput_over_load
from sim.report.load_pictures import latency_distributions as latency_distributions
from sim.report.operations import cubes_over_time as cubes_over_time
from sim.report.operations import load_key
from sim.report.operations import operations_chip_hours as operations_chip_hours
from sim.report.operations import recovery_waterfall as recovery_waterfall
from sim.report.operations import wait_over_load as wait_over_load
from sim.report.pass_pictures import errors_of_times as errors_of_times
from sim.report.pass_pictures import has_several
from sim.report.pass_pictures import passes_over_contexts as passes_over_contexts
from sim.report.pass_pictures import passes_over_models as passes_over_models
from sim.report.rendering import Rendering
from sim.report.shared_pictures import shared_pod_day as shared_pod_day
from sim.report.story import failure_story as failure_story
from sim.report.style import Panels, empty_panels, png_bytes, svg_text
from sim.report.token_pictures import time_over_chips as time_over_chips
from sim.report.token_pictures import traffic_by_level as traffic_by_level
from sim.report.variants import opening, variants_of
from sim.report.waterfall import tokens_waterfall as tokens_waterfall

Draw = Callable[..., Panels]

DRAWINGS: Mapping[str, tuple[str, str, Draw]] = {
    "availability": ("availability", "Availability over slice size", availability_curves),
    "waterfall": ("waterfall", "From the peak to tokens in time", tokens_waterfall),
    "promise": ("promise", "Cubes that a promise takes", promise_cubes),
    "failure": ("failure_story", "Tokens through one failure", failure_story),
    "slice_sizes": ("slice_sizes", "What a bigger slice buys", slice_size_ladder),
    "ledger": ("ledger", "Where the seconds of a request go", request_ledger),
    "chip_hours": ("chip_hours", "What the chips did", chip_hours_by_use),
    "operations": ("operations_chip_hours", "What the chips of the pod in operation did", operations_chip_hours),
    "recovery": ("recovery_stages", "A recovery, stage by stage", recovery_waterfall),
    "cubes": ("cube_story", "The cubes over time", cubes_over_time),
    "wait": ("operations", "Wait over load", wait_over_load),
    "shared_day": ("shared_pod_day", "Two days of a pod that serves and trains", shared_pod_day),
    "fleet_waits": ("fleet_waits", "Waits with own queues and behind one", waits_of_fleet),
    "goodput": ("load_curve", "Requests in time over the rate", goodput_over_load),
    "latencies": ("latencies", "How latencies are spread", latency_distributions),
    "traffic": ("traffic", "Bytes and seconds of a token, by level of memory", traffic_by_level),
    "floor": ("token_floor", "Time per token over chips, down to its floor", time_over_chips),
    "disturbance": ("disturbance", "Through a slowdown", answered_over_time),
    "effects": ("effects", "What changes do alone and together", effects_of_changes),
    "life": ("request_life", "One request, token by token", life_of_request),
    "measured_times": ("measured_times", "Computed beside measured times", errors_of_times),
    "models": ("passes", "Models by size", passes_over_models),
    "contexts": ("passes", "A token over the context", passes_over_contexts),
}
"""Picture name -> (table that it needs, title, function)."""
ALSO_NEEDED = {"failure": ("ledger",)}
"""Tables that a picture takes besides."""
WITH_LIMITS = ("slice_sizes", "goodput", "latencies")
"""Pictures that show the limits of services."""
OF_WHOLE_RUN = ("wait", "effects", "disturbance")
"""Pictures over a swept key: of all combinations at once."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One picture: its file name, its title, what it shows in words, and its figures for a wide and a narrow page."""

    name: str
    title: str
    alt: str
    wide: Figure
    narrow: Figure | None = None

    @cached_property
    def wide_svg(self) -> str:
        """The wide figure as the text of an SVG file."""
        return svg_text(self.wide)

    @cached_property
    def narrow_svg(self) -> str | None:
        """The narrow figure as the text of an SVG file; None where there is none."""
        return None if self.narrow is None else svg_text(self.narrow)

    @cached_property
    def wide_png(self) -> bytes:
        """The wide figure as a PNG file."""
        return png_bytes(self.wide)

    def save(self, folder: Path) -> list[Path]:
        """Write the wide figure as `name.png` and `name.svg` into `folder` (which exists); returns the paths."""
        png, svg = folder / f"{self.name}.png", folder / f"{self.name}.svg"
        write_whole(png, self.wide_png)
        write_whole(svg, self.wide_svg)
        return [png, svg]


def draw_pictures(
    tables: Tables,
    *,
    limits: Mapping[str, ServiceLimits] | None = None,
    asked: Sequence[str] | None = None,
    narrow: bool = True,
) -> dict[str, Picture]:
    """The pictures `asked` for (None: all) of which the run has a table; `narrow` also draws the versions for a page of
    400 pixels."""
    return {name: _picture(name, tables, limits, narrow=narrow) for name in pictures_of(tables, asked)}


def _picture(name: str, tables: Tables, limits: Mapping[str, ServiceLimits] | None, *, narrow: bool) -> Picture:
    """Draw one picture, of the first combination of the swept keys that have no place in it (named in the title)."""
    label, own = ("", tables) if name in OF_WHOLE_RUN else variants_of(tables)[0]
    return Picture(
        name=name,
        title=_title(name, label),
        alt=f"{opening(label)}{alt_text(name, own)}",
        wide=_figure(name, own, limits, narrow=False),
        narrow=_figure(name, own, limits, narrow=True) if narrow else None,
    )


def _title(name: str, label: str) -> str:
    title = DRAWINGS[name][1]
    return f"{title} ({label})" if label else title


def _figure(name: str, tables: Tables, limits: Mapping[str, ServiceLimits] | None, *, narrow: bool) -> Figure:
    extra = {"limits": limits} if name in WITH_LIMITS else {}
    return DRAWINGS[name][2](tables, narrow=narrow, **extra).figure


def render_pictures(
    tables: Tables, limits: Mapping[str, ServiceLimits], asked: Sequence[str] | None, workers: int | None
) -> list[Rendering]:
    """The pictures `asked` for (None: all) of which the run has a table, drawn by `workers` processes (None: one per
    core)."""
    names = pictures_of(tables, asked)
    label, first = variants_of(tables)[0]
    shown = {name: ("", tables) if name in OF_WHOLE_RUN else (label, first) for name in names}
    needed = {name: (DRAWINGS[name][0], *ALSO_NEEDED.get(name, ())) for name in names}
    tasks = [
        (name, {table: shown[name][1][table] for table in needed[name] if table in tables}, limits, narrow)
        for narrow in (False, True)
        for name in names
    ]
    with open_executor(workers if names else 1) as executor:
        files = list(map_tasks(executor, rendered, tasks))
    wide, narrow_ones = files[: len(names)], files[len(names) :]
    return [
        Rendering(
            name=name,
            title=_title(name, shown[name][0]),
            alt=f"{opening(shown[name][0])}{alt_text(name, shown[name][1])}",
            wide_svg=svg,
            narrow_svg=narrow_svg,
            wide_png=png,
        )
        for name, (svg, png), (narrow_svg, _) in zip(names, wide, narrow_ones, strict=True)
    ]


def draw_anything() -> None:
    """Load what the first picture of a process else waits for: fonts, and all that matplotlib loads when it is used."""
    figure = empty_panels("words").figure
    axes = figure.add_subplot()
    axes.set_title("Title", loc="left")
    axes.plot([1.0, 2.0], [1.0, 2.0], marker="o", label="line")
    axes.set_xscale("log", base=2)
    axes.legend()
    svg_text(figure)
    png_bytes(figure)


def rendered(name: str, tables: Tables, limits: Mapping[str, ServiceLimits], narrow: bool) -> tuple[str, bytes]:
    """One picture as SVG, and the wide one as PNG too (a task); `tables` are the ones that it needs."""
    figure = _figure(name, tables, limits, narrow=narrow)
    return svg_text(figure), b"" if narrow else png_bytes(figure)


def pictures_of(tables: Tables, asked: Sequence[str] | None = None) -> list[str]:
    """Names of the pictures `asked` for (None: all) for which the run has a table with something to draw."""
    names = [
        name
        for name, (table, _, _) in DRAWINGS.items()
        if (asked is None or name in asked) and not is_absent(tables, table)
    ]
    has_picture: dict[str, Callable[[], bool]] = {
        "cubes": lambda: not is_absent(tables, "operations"),  # of other runs the replay alone shows them
        "wait": lambda: load_key(tables["operations"]) is not None,
        "promise": lambda: bool(tables["promise"]["cubes"].notna().any()),
        "models": lambda: has_several(tables, "model"),
        "contexts": lambda: has_several(tables, "context_tokens"),
    }
    return [name for name in names if name not in has_picture or has_picture[name]()]


def save_pictures(pictures: Mapping[str, Picture], folder: Path) -> list[Path]:
    """Write each picture as PNG and SVG into `folder` (which exists); returns the paths."""
    return [path for picture in pictures.values() for path in picture.save(folder)]
