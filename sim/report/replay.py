"""The replay of a pod, from instant to instant, without a server: its cubes as they stand in the hall, and what its
slices hold of its switches.

The page holds the stretches of the tables `cube_story`, `slice_story` and `switch_story` as numbers and plays them
itself; a notebook shows the same piece of HTML. Circuits are those of `sim.light`: the 16 switches of an axis carry the
same ones.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from sim.light import ring_neighbours
from sim.replay_tables import STRETCHES_MAX
from sim.report.categories import CUBE_COLOURS, CUBE_LETTERS
from sim.report.context import Tables, absence, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.words import category_words, fabric_words, fabrics_in_order, host_words
from topology.fabric import Fabric
from topology.shape import parse_shape

STORIES_MAX = 4
"""Fabrics that a page can replay: each takes up to half a megabyte."""
Hall = Sequence[int]
"""Cubes along x, y and z."""
END = 4
"""Place of the end in the numbers of a stretch."""


def replay_html(tables: Tables, hall: Hall | None) -> Markup:
    """The replay of the first replication at the first host availability, all fabrics to choose from.

    `hall` is the grid of cubes (None: in rows of eight). Empty where the run has no table `cube_story`.
    """
    table = table_of(tables, "cube_story")
    if table.empty:
        return Markup("")
    host = host_values(table)[0]
    here = rows_of_host(table, host)
    fabrics = fabrics_in_order(list(here["fabric"]))[:STORIES_MAX]
    states = [what for what in CUBE_COLOURS if (here["what"] == what).any()]
    states += [what for what in dict.fromkeys(map(str, here["what"])) if what not in CUBE_COLOURS]
    slices, switches = (_at_host(tables, name, host) for name in ("slice_story", "switch_story"))
    shapes: dict[str, int] = {}
    stories = [
        {
            "name": fabric_words(fabric),
            "rows": (rows := _numbers(_of(here, fabric), states)),
            "end": max(row[END] for row in rows) if len(rows) >= STRETCHES_MAX else 0,
            "light": fabric == Fabric.RECONFIGURABLE,
            "slices": _slices(_of(slices, fabric), shapes),
            "switches": _switches(_of(switches, fabric)),
        }
        for fabric in fabrics
    ]
    least = int(here["cube"].max()) + 1
    data = {
        "hall": _whole_hall(hall, least),
        "end": max(float(here["end_s"].max()), 1.0),
        "shapes": [{"name": name, "next": ring_neighbours(parse_shape(name))} for name in shapes],
        "states": [
            {
                "name": category_words(what),
                "colour": CUBE_COLOURS.get(what, "#8e959e"),
                "letter": CUBE_LETTERS.get(what, "?"),
            }
            for what in states
        ],
        "running": states.index("running") if "running" in states else -1,
        "unusable": states.index("unusable") if "unusable" in states else -1,
        "stories": stories,
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Markup(
        _template().render(data=Markup(text), played=_played(here), hosts=host_words(host), states=data["states"])
    )


class Replay(str):
    """A replay as HTML; a notebook shows it inline, in a frame of its own."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        if not self:
            return f"<p>{escape(absence('cube_story'))}</p>"
        page = f'<!doctype html><html lang="en"><head><title>replay</title></head><body>{self}</body></html>'
        return f'<iframe title="replay of the pod" width="100%" height="720" srcdoc="{escape(page)}"></iframe>'


def replay_data(html: str) -> Mapping[str, Any]:
    """The numbers inside a replay, for tests and for programs that want to play it themselves."""
    start = html.index('type="application/json">') + len('type="application/json">')
    found: Mapping[str, Any] = json.loads(html[start : html.index("</script>", start)])
    return found


def _whole_hall(hall: Hall | None, cubes: int) -> list[int]:
    """The grid, if it has a place for every cube that the story names."""
    if hall is not None and len(hall) == 3 and hall[0] * hall[1] * hall[2] >= cubes:
        return [int(side) for side in hall]
    columns = min(8, cubes)
    return [1, -(-cubes // columns), columns]


def _at_host(tables: Tables, name: str, host: float) -> pd.DataFrame:
    table = table_of(tables, name)
    return table if table.empty else rows_of_host(table, host)


def _of(table: pd.DataFrame, fabric: str) -> pd.DataFrame:
    return table if table.empty else table[table["fabric"] == fabric]


def _played(rows: pd.DataFrame) -> str:
    """Which study is played, in words."""
    chips = rows["slice_chips"].iloc[0] if "slice_chips" in rows else None
    if chips is None or pd.isna(chips):
        return "The pod in operation"
    return f"Slices of {int(chips):,} chips, as many as the pod holds, wanted without end"


def _slices(rows: pd.DataFrame, shapes: dict[str, int]) -> list[list[int]]:
    """[job, shape, start, instant of its circuits or -1, end, cubes ...] of every stretch, in order of starts.

    `shapes` gets the shapes by name, each with its number.
    """
    if rows.empty:
        return []
    columns = (rows[name] for name in ("job", "shape", "start_s", "lit_s", "end_s", "cubes"))
    found = [
        [
            int(job),
            shapes.setdefault(str(shape), len(shapes)),
            round(start),
            -1 if math.isnan(lit) else round(lit),
            round(end),
            *map(int, str(cubes).split()),
        ]
        for job, shape, start, lit, end, cubes in zip(*columns, strict=True)
    ]
    return sorted(found, key=lambda row: (row[2], row[0]))


def _switches(rows: pd.DataFrame) -> list[list[Any]]:
    """[switch, what is wrong with it, start, end] of every stretch."""
    if rows.empty:
        return []
    columns = (rows[name] for name in ("switch", "what", "start_s", "end_s"))
    return [
        [int(switch), str(what), round(start), round(end)] for switch, what, start, end in zip(*columns, strict=True)
    ]


def _numbers(rows: pd.DataFrame, states: Sequence[str]) -> list[list[int]]:
    """[cube, state, job, start, end] of every stretch, in order of starts; instants in whole seconds."""
    ordered = rows.sort_values(["start_s", "cube"], kind="stable")
    places = {what: place for place, what in enumerate(states)}
    return [
        [int(cube), places[str(what)], int(job), round(float(start)), round(float(end))]
        for cube, what, job, start, end in zip(
            ordered["cube"], ordered["what"], ordered["job"], ordered["start_s"], ordered["end_s"], strict=True
        )
    ]


@lru_cache(maxsize=1)
def _template() -> Template:
    text = files("sim.report").joinpath("replay.html.j2").read_text(encoding="utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(
        text
    )
