"""The replay of a pod in operation: its cubes as they stand in the hall, from instant to instant, without a server.

The page holds the stretches of the table `cube_story` as numbers and plays them itself; a notebook shows the same piece
of HTML. Without scripts the picture of the cubes over time tells the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from sim.report.categories import CUBE_COLOURS, CUBE_LETTERS
from sim.report.context import Tables, absence, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.words import category_words, fabric_words, fabrics_in_order, host_words

STORIES_MAX = 4
"""Fabrics that a page can replay: each takes up to half a megabyte."""
Hall = Sequence[int]
"""Cubes along x, y and z."""


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
    stories = [
        {"name": fabric_words(fabric), "rows": _numbers(here[here["fabric"] == fabric], states)} for fabric in fabrics
    ]
    least = int(here["cube"].max()) + 1
    data = {
        "hall": _whole_hall(hall, least),
        "end": max(float(here["end_s"].max()), 1.0),
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
    return Markup(_template().render(data=Markup(text), hosts=host_words(host), states=data["states"]))


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
