"""Validation errors as lines for people: `file:line: path: what is wrong; what to write`, nearest known key named."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from sim.quantities import AdviceError, example_of
from sim.strict_yaml import Document, KeyPath, type_in_words
from topology.errors import Fault

FAULTS_MAX = 50
"""More faults than this are counted, not listed."""

WORDS_MAX = 400
"""Longer words about what is wrong are cut: they repeat what stands in the file."""

PUBLISHED = {
    "lanl": "Los Alamos publishes its failure data 1996 to 2005 as release LA-UR-05-7318 (also in "
    "github.com/Derek-Jones/ESEUR-code-data, reliability/)",
    "lanl_down_time": "Los Alamos publishes its failure data 1996 to 2005 as release LA-UR-05-7318",
    "gpu_faults": "the trace is published at github.com/stepfun-ai/InfiniteHBD-Trace, fault_trace.json",
    "auto": "it is a log of your own, or one of those that Los Alamos (LA-UR-05-7318) and "
    "github.com/stepfun-ai/InfiniteHBD-Trace publish",
    "generic": "the file is a CSV of your own with component,id,start,end[,cause][,cube]",
    "trace": "the Azure trace is published at github.com/Azure/AzurePublicDataset, "
    "data/AzureLLMInferenceTrace_conv.csv; others at github.com/kvcache-ai/Mooncake and github.com/HPMLL/BurstGPT",
}
"""Where real files are published; opticube ships none of them."""

FOLDER_NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
KEY_NAME = r"^[a-z][a-z0-9_]{0,63}$"
PRINTED_NAME = r"^[^\x00-\x1f\x7f-\x9f]{1,80}$"
PATTERNS = {
    FOLDER_NAME: ("can not name a folder", "write letters, digits, `_` and `-`, beginning with a letter"),
    KEY_NAME: ("is no key", "write small letters, digits and `_`, beginning with a letter"),
    PRINTED_NAME: ("is no name on one line", "write 1 to 80 characters that can be printed"),
}
"""Patterns of names: what a text that does not match is not, and what to write."""

_ADVICE = re.compile(r"[;:,] (?=(?:write|leave|name|give|add|drop|remove|use|choose|set) )")


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it: `serving.services.0.load`."""
    return ".".join(str(part) for part in path)


def fault_at(document: Document, path: KeyPath, what: str, write: str) -> Fault:
    """A fault of the value at `path`, with the place where it was written."""
    name = dotted(path)
    what = what if len(what) <= WORDS_MAX else f"{what[: WORDS_MAX // 2]} ... {what[-WORDS_MAX // 4 :]}"
    return Fault(document.place(path), f"{name}: {what}" if name else what, write)


def split_advice(text: str) -> tuple[str, str]:
    """What is wrong and what to write, from the text of a ValueError such as `shape of 0: write a number above 0`."""
    text = " ".join(text.split())
    parts = _ADVICE.split(text, maxsplit=1)
    return (parts[0], parts[1]) if len(parts) == 2 else (text, "")


NAMED_MAX = 40
"""More known words than this are not listed in one line."""


def nearest(word: str, known: Sequence[str]) -> str:
    """Advice for an unknown word: the nearest known one, or the list of them."""
    near = difflib.get_close_matches(word.lower(), [name.lower() for name in known], n=1, cutoff=0.55)
    if near:
        match = next(name for name in known if name.lower() == near[0])
        return f"write `{match}`" + (f" (known: {', '.join(known)})" if 1 < len(known) <= 12 else "")
    if not known:
        return "remove it"
    further = f" and {len(known) - NAMED_MAX} more" if len(known) > NAMED_MAX else ""
    return f"write one of {', '.join(known[:NAMED_MAX])}{further}"


def faults_of(error: ValidationError, document: Document, schema: Callable[[], dict[str, Any]]) -> list[Fault]:
    """One fault per thing that is wrong; `schema()` is the JSON schema, asked only for the names of known keys."""
    faults: dict[KeyPath, Fault] = {}
    for item in error.errors(include_url=False):
        path, tag = _plain_path(document.data, item["loc"])
        if item["type"] == "too_short" and len(value_at(document.data, path)) >= item["ctx"]["min_length"]:
            continue  # an entry is wrong, and is reported itself
        if path not in faults:
            faults[path] = _fault(item, path, tag, document, schema)
    ordered = list(faults.values())
    if len(ordered) > FAULTS_MAX:
        left = len(ordered) - FAULTS_MAX
        ordered = [
            *ordered[:FAULTS_MAX],
            Fault(document.source, f"{left} more faults are not listed", "mend these first"),
        ]
    return ordered


def value_at(data: Any, path: KeyPath) -> Any:
    """The plain value at `path`, or None where there is none."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _plain_path(data: Any, loc: tuple[str | int, ...]) -> tuple[KeyPath, str | None]:
    """The path in the file: `loc` without the tags of unions, which stand in no file; and the last such tag."""
    path: list[str | int] = []
    tag: str | None = None
    here = data
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        if isinstance(here, Mapping) and isinstance(part, str):
            if part in here:
                here = here[part]
            elif not last or "[" in part or part == here.get("kind"):
                tag = part
                continue
            else:
                here = None
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            here = here[part]
        else:
            continue
        path.append(part)
    return tuple(path), tag


def _fault(
    item: Any, path: KeyPath, tag: str | None, document: Document, schema: Callable[[], dict[str, Any]]
) -> Fault:
    """The fault of one pydantic error."""
    kind, context = item["type"], item.get("ctx") or {}
    value = value_at(document.data, path)
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        known = list(_known_keys(schema(), document.data, path[:-1], tag))
        return fault_at(document, path, f"unknown key `{path[-1]}`", nearest(str(path[-1]), known))
    if kind in ("missing", "missing_keyword_only_argument", "missing_argument"):
        key = str(item["loc"][-1])
        parent = path[:-1] if path and path[-1] == key else path
        if tag == "trace" and key == "path":
            set_it = f"set it with `--set {dotted(parent)}.path=FILE`; {PUBLISHED['trace']}"
            return fault_at(document, parent, "no file is named, and opticube ships none", set_it)
        unit = _unit(schema(), _known_keys(schema(), document.data, parent, tag).get(key, {}))
        return fault_at(
            document, parent, f"key `{key}` is missing", f"write `{key}: {example_of(unit) if unit else '...'}`"
        )
    if kind == "value_error":
        what, write = _advice_of(context.get("error"), item["msg"])
        return fault_at(document, path, what, write)
    if kind in ("enum", "literal_error"):
        known = re.findall(r"'([^']*)'", str(context.get("expected", "")))
        if isinstance(value, list):
            return fault_at(document, path, "a list stands where one value is due", _sweep_hint(path))
        if value is None:
            return fault_at(document, path, "no value is given", nearest("", known))
        return fault_at(document, path, f"{_shown(value)} is not known here", nearest(str(value), known))
    if kind.startswith("union_tag"):
        return _fault_of_kind(item, path, document, value)
    is_key = item["loc"][-1:] == ("[key]",)
    what, write = _words(kind, context, path[-1] if is_key else value, path)
    return fault_at(document, path, what or item["msg"], write or "write another value")


def _advice_of(error: object, message: str) -> tuple[str, str]:
    """What is wrong and what to write, of an error raised by a validator of ours."""
    if isinstance(error, AdviceError):
        return error.what, error.write
    return split_advice(str(error) if error is not None else message)


def _fault_of_kind(item: Any, path: KeyPath, document: Document, value: object) -> Fault:
    """A plug-in whose `kind` is unknown, or that is no mapping at all."""
    if not isinstance(value, Mapping):
        what = f"{_shown(value)} is {type_in_words(value)}, not a mapping"
        return fault_at(document, path, what, "write for example `{kind: ..., ...}`")
    known = re.findall(r"'([^']*)'", str((item.get("ctx") or {}).get("expected_tags", "")))
    if "kind" not in value:
        return fault_at(document, path, "key `kind` is missing", f"write `kind:` and one of {', '.join(known)}")
    return fault_at(
        document, (*path, "kind"), f"{_shown(value['kind'])} is not known here", nearest(str(value["kind"]), known)
    )


def _words(kind: str, context: Mapping[str, Any], value: object, path: KeyPath) -> tuple[str, str]:
    """What is wrong and what to write for the types and bounds that pydantic checks itself."""
    wanted = {
        "int_type": ("a whole number", "write a whole number such as `3`"),
        "int_from_float": ("a whole number", "write a whole number such as `3`"),
        "float_type": ("a number", "write a number such as `0.5`"),
        "string_type": ("text", "write text, in quotes if it looks like a number"),
        "bool_type": ("true or false", "write `true` or `false`"),
        "tuple_type": ("a list", "write a list such as `[a, b]`"),
        "list_type": ("a list", "write a list such as `[a, b]`"),
        "dict_type": ("a mapping", "write `{key: value, ...}`"),
        "model_type": ("a mapping", "write `{key: value, ...}`, or leave the key out"),
        "model_attributes_type": ("a mapping", "write `{key: value, ...}`, or leave the key out"),
        "dataclass_type": ("a mapping", "write `{key: value, ...}`, or leave the key out"),
    }
    if kind in wanted:
        noun, write = wanted[kind]
        if isinstance(value, list) and noun not in ("a list", "a mapping"):
            return "a list stands where one value is due", _sweep_hint(path)
        if value is None:
            return f"no value is given where {noun} is due", write
        is_what = "" if isinstance(value, bool) else f"is {type_in_words(value)}, "
        return f"{_shown(value)} {is_what or 'is '}not {noun}", write
    bounds = {"greater_than_equal": ("ge", "at least"), "greater_than": ("gt", "more than"),
              "less_than_equal": ("le", "at most"), "less_than": ("lt", "less than")}  # fmt: skip
    if kind in bounds:
        key, phrase = bounds[kind]
        return f"{_shown(value)} is out of bounds", f"write {phrase} {context[key]:g}"
    if kind == "too_short":
        return "the list or mapping is too short", f"write at least {context['min_length']} entry"
    if kind in ("too_long", "string_too_long"):
        return "this is too long", f"write at most {context['max_length']}"
    if kind == "string_pattern_mismatch":
        what, write = PATTERNS.get(context["pattern"], ("is not written as it must be", "write a plain word"))
        return f"{_shown(value)} {what}", write
    if kind == "int_parsing_size":
        return f"{_shown(value)} is out of bounds", "write a smaller number"
    if kind == "finite_number":
        return f"{_shown(value)} is not a finite number", "write a number"
    return "", ""


def _sweep_hint(path: KeyPath) -> str:
    return f"to sweep it write `sweep: {{{dotted(path)}: [...]}}`"


def _shown(value: object) -> str:
    """A value on one line, shortened."""
    text = "nothing" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    text = " ".join(text.split())
    text = text if len(text) <= 60 else text[:57] + "..."
    return text if value is None or not isinstance(value, str) else f"`{text}`"


def _known_keys(schema: dict[str, Any], data: Any, path: KeyPath, tag: str | None) -> dict[str, dict[str, Any]]:
    """The keys that the mapping at `path`, of kind `tag`, may have, with their schemas, in order."""
    places, here = [schema], data
    for part in path:
        here = value_at(here, (part,))
        places = [found for place in places for found in _below(schema, place, part)]
    known: dict[str, dict[str, Any]] = {}
    for place in _chosen(schema, places, here, tag):
        known.update(place.get("properties", {}))
    return known


def _unit(schema: dict[str, Any], place: dict[str, Any]) -> str:
    """The unit of a value of schema `place`, or nothing."""
    units = [choice["unit"] for choice in _alternatives(schema, place) if "unit" in choice]
    return units[0] if units else ""


def _alternatives(schema: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema with its references followed and its alternatives opened."""
    if "$ref" in place:
        yield from _alternatives(schema, schema["$defs"][place["$ref"].rsplit("/", 1)[-1]])
    for key in ("anyOf", "oneOf", "allOf"):
        for choice in place.get(key, ()):
            yield from _alternatives(schema, choice)
    if "$ref" not in place:
        yield place


def _below(schema: dict[str, Any], place: dict[str, Any], part: str | int) -> Iterator[dict[str, Any]]:
    """The schemas of the value at `part` of a value of schema `place`."""
    for choice in _alternatives(schema, place):
        if isinstance(part, int):
            items = choice.get("items")
            if isinstance(items, dict):
                yield items
            continue
        if part in choice.get("properties", {}):
            yield choice["properties"][part]
        elif isinstance(choice.get("additionalProperties"), dict):
            yield choice["additionalProperties"]


def _chosen(schema: dict[str, Any], places: list[dict[str, Any]], value: Any, tag: str | None) -> list[dict[str, Any]]:
    """The alternatives that fit the value's `kind`, which is `tag` where it is left out; or all of them."""
    opened = [choice for place in places for choice in _alternatives(schema, place) if choice.get("properties")]
    kind = value.get("kind", tag) if isinstance(value, Mapping) else tag
    fitting = [choice for choice in opened if choice["properties"].get("kind", {}).get("const") == kind]
    return fitting or opened
