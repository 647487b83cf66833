"""Values set from outside a scenario file: `--set key.path=value`, and the values of a sweep."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from sim.quantities import AdviceError
from sim.strict_yaml import Document, KeyPath, parse_value, type_in_words
from topology.errors import Fault, InputError


def split_key(key: str) -> KeyPath:
    """The path of a dotted key; what follows `sweep.` is one key, since the keys of a sweep hold dots themselves."""
    if key.startswith("sweep."):
        return ("sweep", key.removeprefix("sweep."))
    return tuple(key.split("."))


def apply_overrides(document: Document, overrides: Sequence[str]) -> Document:
    """A document with every `KEY=VALUE` set, in order; raises InputError with one fault per override that is wrong."""
    faults: list[Fault] = []
    for override in overrides:
        source = f"--set {override}"
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            faults.append(Fault(source, "this sets nothing", "write `--set KEY.PATH=VALUE`"))
            continue
        try:
            path, value = split_key(key.strip()), parse_value(text, source)
            document = without(document, path, source) if value is None else with_value(document, path, value, source)
        except AdviceError as advice:
            faults.append(Fault(source, advice.what, advice.write))
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    return document


def without(document: Document, path: KeyPath, place: str) -> Document:
    """A copy of `document` without the key at `path`, so that its default holds; entries of lists become nothing."""
    changed = with_value(document, path, None, place)
    here: Any = changed.data
    for part in path[:-1]:
        here = here[_index(here, part, "")] if isinstance(here, list) else here[part]
    if isinstance(here, dict):
        del here[path[-1]]
    return changed


def swept_overrides(swept: Iterable[tuple[str, str]], overrides: Sequence[str]) -> list[Fault]:
    """A fault for every override that would change nothing, since the sweep sets its key.

    `swept`: names under `sweep`, each with a key that it sets (itself, or one of its levels').
    """
    faults: list[Fault] = []
    for override in overrides:
        path = split_key(override.partition("=")[0].strip())
        for name, key in swept:
            if path[0] != "sweep" and path[: len(split_key(key))] == split_key(key):
                example = "[...]" if name == key else "{...}"
                write = f"set sweep.{name}, for example `--set 'sweep.{name}={example}'`"
                faults.append(Fault(f"--set {override}", f"{key} is swept, so this would change nothing", write))
    return faults


def with_value(document: Document, path: KeyPath, value: Any, place: str) -> Document:
    """A copy of `document` with `value` at `path`, written at `place`; AdviceError where there can be no such path."""
    data = copy.deepcopy(document.data)
    here: Any = data
    taken: list[str | int] = []
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        so_far = ".".join(str(step) for step in taken)
        if part == "":
            raise AdviceError(f"`{'.'.join(map(str, path))}` has an empty part", "write KEY.PATH without doubled dots")
        if isinstance(here, list):
            index = _index(here, part, so_far)
            taken.append(index)
            if last:
                here[index] = copy.deepcopy(value)
            here = here[index]
            continue
        if not isinstance(here, dict):
            raise AdviceError(f"`{so_far}` is {type_in_words(here)} and has no keys", f"set `{so_far}` itself")
        taken.append(part)
        if last:
            here[part] = copy.deepcopy(value)
        elif here.get(part) is None:
            here[part] = {}
        here = here[part]
    set_path = tuple(taken)
    kept = {known: where for known, where in document.places.items() if known[: len(set_path)] != set_path}
    return Document(document.source, data, {**kept, set_path: place})


def _index(items: list[Any], part: str | int, so_far: str) -> int:
    """The index that `part` names in a list: its number, or the `name` of an entry."""
    if isinstance(part, int) or (part.isascii() and part.isdigit()):
        if int(part) < len(items):
            return int(part)
    else:
        names = [item.get("name") if isinstance(item, dict) else None for item in items]
        if part in names:
            return names.index(part)
    write = f"write a number from 0 to {len(items) - 1}" if items else "add an entry first"
    raise AdviceError(f"`{so_far}` is a list and has no entry `{part}`", write)
