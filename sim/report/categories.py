"""Order and colours of what time is spent on: stages of recovery, uses of chip-hours, categories of the ledger.

Blue is work, yellow is waiting on each other, red and orange is failure and recovery, grey is standing still. Names
that are not known here get a place by the words in them, so a new category is drawn and never dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

STAGE_COLOURS = {
    "detecting": "#8c2d04",
    "evicting": "#d94801",
    "waiting": "#6b7280",
    "reconfiguring": "#0f7f86",
    "preflight": "#b8860b",
    "restoring": "#e59a4c",
}
USE_COLOURS = {
    "useful": "#2f6da3",
    "slowed": "#86b4d9",
    "lost": "#7a1f0a",
    **STAGE_COLOURS,
    "migrating": "#3a9a94",
    "checkpointing": "#77c2bd",
    "held_idle": "#b9cfe2",
    "down": "#3f444c",
    "drained": "#6f5a8c",
    "stranded": "#8e959e",
    "blocked": "#a58bbd",
    "fragmented": "#c9b5da",
    "spare": "#c3c8ce",
    "empty": "#dfe3e8",
    "unaccounted": "#ff00aa",
}
CUBE_COLOURS = {
    "running": "#2f6da3",
    "shared": "#86b4d9",
    **STAGE_COLOURS,
    "migrating": "#3a9a94",
    "held_idle": "#b9cfe2",
    "unusable": "#3f444c",
    "drained": "#6f5a8c",
}
"""What a cube can do, in the order of the legend; free time is left white."""
CUBE_LETTERS = {
    "running": "",
    "shared": "s",
    "detecting": "?",
    "evicting": "e",
    "waiting": "w",
    "reconfiguring": "r",
    "preflight": "p",
    "restoring": "l",
    "migrating": "m",
    "held_idle": "h",
    "unusable": "x",
    "drained": "d",
}
"""The same for eyes that do not tell these colours apart."""
USE_MEANINGS = {
    "useful": "running, and kept",
    "slowed": "running slower on a reroute: the part of the time that this costs",
    "lost": "running, but thrown away by a loss (back to the last commit)",
    "down": "the host itself is not up",
    "stranded": "the host is up, its cube is not usable",
    "fragmented": "free, while a job waits that it cannot serve",
    "spare": "free, kept as a spare",
    "empty": "free, and no job waits",
    "held_idle": "held by a job or service without work",
    "waiting": "held or wanted by a job that looks for cubes",
}
_WORK = ("#1f4e79", "#2f6da3", "#4f8dc2", "#74a9d6", "#9cc3e4", "#c0d9ee", "#5b7f95", "#8fb0c0", "#dbe8f2")
_SHARING = ("#8a6d00", "#b8920f", "#d9b640", "#ecd589", "#f6ebc4")
_FAILURE = ("#7a1f0a", "#b5400b", "#de6a1f", "#f0a064", "#f7c9a4", "#fbe3d0")
_OTHER = ("#6b7280", "#9aa1ab", "#c3c8ce")
_FAILURE_WORDS = ("replica", "undetected", "recompute", "degraded", "swap", "backoff", "lost", "recover")
_SHARING_WORDS = ("queue", "blocked", "interference", "others", "transfer")
_WORK_WORDS = ("compute", "weight", "kv", "collective", "fixed", "prefill", "decode")


def ledger_colours(categories: Iterable[str]) -> dict[str, str]:
    """A colour for each category: failure first, then waiting on each other, then work; in order of appearance."""
    groups: dict[str, list[str]] = {"failure": [], "sharing": [], "work": [], "other": []}
    for category in dict.fromkeys(categories):
        groups[ledger_group(category)].append(category)
    ramps = {"failure": _FAILURE, "sharing": _SHARING, "work": _WORK, "other": _OTHER}
    return {
        category: ramps[group][place % len(ramps[group])]
        for group, members in groups.items()
        for place, category in enumerate(members)
    }


def ledger_group(category: str) -> str:
    """The group of a category: failure, sharing, work or other."""
    if any(word in category for word in _FAILURE_WORDS):
        return "failure"
    if any(word in category for word in _SHARING_WORDS):
        return "sharing"
    return "work" if any(word in category for word in _WORK_WORDS) else "other"


def use_colours(uses: Sequence[str]) -> dict[str, str]:
    """A colour for each use of chip-hours, in the order in which uses are stacked."""
    distinct = list(dict.fromkeys(uses))
    known = {use: colour for use, colour in USE_COLOURS.items() if use in distinct}
    others = [use for use in distinct if use not in USE_COLOURS]
    return known | {use: _OTHER[place % len(_OTHER)] for place, use in enumerate(others)}
