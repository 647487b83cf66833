"""The axes of a sweep: a key with its list of values, or a name with named levels, each of which sets several keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sim.overrides import split_key, with_value
from sim.quantities import AdviceError
from sim.scenario_faults import fault_at
from sim.strict_yaml import Document, KeyPath
from topology.errors import Fault, InputError

POINTS_MAX = 2_000
"""Most sweep points of one scenario."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LEVEL = re.compile(r"[A-Za-z0-9][\w .%+-]{0,63}", re.ASCII)
Change = tuple[str, Any, KeyPath]
"""A key, its value, and where the value stands."""
_NEVER_SWEPT = ("sweep", "name", "expect", "description")


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis of a sweep: `values` as tables show them, and what each of them sets: key, value, where written."""

    key: str
    values: tuple[Any, ...]
    changes: tuple[tuple[Change, ...], ...]

    @property
    def sets(self) -> list[str]:
        """The keys that some value of the axis sets, each once."""
        return list(dict.fromkeys(key for change in self.changes for key, _, _ in change))


def axes_of(document: Document, sections: Sequence[str]) -> list[Axis]:
    """The axes of a document's sweep, a null taking one out; refuses what is no axis, and too many points.

    `sections` are the top-level keys of a scenario, which can not name levels.
    """
    sweep = document.data.get("sweep")
    if sweep is None:
        return []
    if not isinstance(sweep, dict):
        what = "this is not a mapping of keys to lists"
        raise InputError(
            fault_at(document, ("sweep",), what, "write for example `pod.fabric: [reconfigurable, any_host]`")
        )
    sweep = {key: values for key, values in sweep.items() if values is not None}
    faults = [
        fault_at(document, ("sweep", *path), what, write)
        for key, values in sweep.items()
        for path, what, write in _problems(key, values, sections)
    ]
    axes = [] if faults else [_axis(key, values) for key, values in sweep.items()]
    faults += [
        fault_at(document, ("sweep", axis.key), what, write) for axis in axes for what, write in _set_twice(axis, axes)
    ]
    if faults:
        raise InputError(faults)
    points = 1
    for axis in axes:
        points *= len(axis.values)
    if points > POINTS_MAX:
        what = f"the sweep has {points:,} points"
        raise InputError(fault_at(document, ("sweep",), what, f"write at most {POINTS_MAX:,}"))
    return axes


def _axis(key: str, values: Any) -> Axis:
    if isinstance(values, dict):
        levels = (
            tuple((inner, value, ("sweep", key, level, inner)) for inner, value in settings.items())
            for level, settings in values.items()
        )
        return Axis(key=key, values=tuple(values), changes=tuple(levels))
    changes: list[tuple[Change, ...]] = [((key, value, ("sweep", key, index)),) for index, value in enumerate(values)]
    return Axis(key=key, values=tuple(values), changes=tuple(changes))


def _problems(key: str, values: Any, sections: Sequence[str]) -> Iterator[tuple[KeyPath, str, str]]:
    """What is wrong with one axis: where below `sweep`, what, what to write."""
    if isinstance(values, dict) and "." not in key:
        yield from _level_problems(key, values, sections)
        return
    if not isinstance(values, list) or not values:
        yield (key,), "this is not a list of values", f"write `{key}: [value, value]`"
    elif any(values.count(value) > 1 for value in values):
        yield (key,), "a value is given twice", "keep one of the two"
    if key.split(".")[0] in _NEVER_SWEPT:
        yield (key,), f"`{key}` can not be swept", "sweep a key of the machine or the study"


def _level_problems(name: str, levels: dict[str, Any], sections: Sequence[str]) -> Iterator[tuple[KeyPath, str, str]]:
    from sim.run_tables import SPECS  # here: tables take long to load, and few sweeps have levels

    taken = any(name in spec.names for spec in SPECS.values())
    if _NAME.fullmatch(name) is None or name in sections or taken:
        what = f"levels can not be named `{name}`, " + ("a column of tables" if taken else "a key or no plain word")
        yield (name,), what, "write a name of your own, such as `data`, over `LEVEL: {KEY: VALUE}`"
    if not levels:
        yield (name,), "these are no levels", f"write `{name}: {{LEVEL: {{KEY: VALUE}}, LEVEL: {{KEY: VALUE}}}}`"
    for level, settings in levels.items():
        if _LEVEL.fullmatch(level) is None:
            yield (name, level), f"`{level}` is no name of a level", "write letters, digits, spaces, `.`, `_` and `-`"
        if not isinstance(settings, dict) or not settings:
            yield (name, level), "this is not a mapping of keys to values", f"write `{level}: {{KEY: VALUE}}`"
            continue
        for other, elsewhere in levels.items():
            for key in elsewhere if isinstance(elsewhere, dict) else ():
                if key not in settings:  # nothing of one level may be left to another
                    yield (name, level), f"`{other}` sets `{key}`, this level does not", f"write `{key}` here too"
        for key in settings:
            if key.split(".")[0] in _NEVER_SWEPT:
                yield (name, level, key), f"`{key}` can not be swept", "sweep a key of the machine or the study"


def _set_twice(axis: Axis, axes: Sequence[Axis]) -> Iterator[tuple[str, str]]:
    """Keys of an axis that another one, or another key of the same level, sets too."""
    others = [key for other in axes if other is not axis for key in other.sets]
    inner = axis.sets
    for key in inner:
        holders = [other for other in others if other == key or _holds(other, key)]
        holders += [other for other in inner if other != key and _holds(other, key)]
        if holders:
            own = "this key" if key == axis.key else f"`{key}`"
            yield f"`{holders[0]}`, which holds {own}, is swept too", "sweep one of them"
            return


def _holds(outer: str, inner: str) -> bool:
    """Whether the value of the key `outer` contains that of `inner`."""
    return split_key(inner)[: len(split_key(outer))] == split_key(outer)


def with_settings(document: Document, axes: Sequence[Axis], choice: Sequence[int]) -> tuple[Document, list[Fault]]:
    """The document with value number `choice[i]` of the i-th axis in its place; faults where there is no such place."""
    faults: list[Fault] = []
    for axis, index in zip(axes, choice, strict=True):
        for key, value, path in axis.changes[index]:
            try:
                document = with_value(document, split_key(key), value, document.place(path))
            except AdviceError as advice:
                where = path[:2] if len(path) == 3 else path
                faults.append(fault_at(document, where, advice.what, advice.write))
    return document, faults
