"""YAML that can not surprise: strict, bounded, and with the line of every value.

Read by PyYAML's scanner and parser, but built into values here, by the scalars of YAML 1.2: `on`, `12:30` and
`2020-01-01` are text, `1e5` is a number. Refused with a line: keys given twice, keys that are no text, aliases,
explicit tags, tabs as indentation, several documents, text that is not UTF-8, too deep, too many values, too long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from topology.errors import EnvironmentFault, Fault, InputError, refuse

BYTES_MAX = 1_000_000
DEPTH_MAX = 50
VALUES_MAX = 20_000

KeyPath = tuple[str | int, ...]

_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_POWER = re.compile(r"([-+]?[1-9][0-9]{0,2})[eE]\+?([0-9]{1,2})")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?")
_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff]")
"""What a quoted text may say by an escape, and no terminal or file should get: control characters, half characters."""
_WORDS: dict[str, object] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".nan": float("nan"), ".NaN": float("nan"), ".NAN": float("nan"),
    ".inf": float("inf"), ".Inf": float("inf"), ".INF": float("inf"), "+.inf": float("inf"), "-.inf": -float("inf"),
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A YAML text as plain values; `places` says for a path where it was written (`file:line` or an option)."""

    source: str
    data: dict[str, Any]
    places: Mapping[KeyPath, str] = field(default_factory=dict)

    def place(self, path: KeyPath) -> str:
        """Where the value at `path`, or else a part of it, or else its nearest ancestor, was written."""
        if path not in self.places:
            for known, where in self.places.items():
                if path and known[: len(path)] == path:
                    return where
        for length in range(len(path), 0, -1):
            found = self.places.get(path[:length])
            if found is not None:
                return found
        return self.places.get((), self.source)


def read_bytes(path: Path) -> bytes:
    """The content of a scenario file; refuses what is missing, no regular file, or longer than `BYTES_MAX`."""
    if not path.exists():
        raise refuse(str(path), "there is no such file", "check the path")
    if not path.is_file():
        raise refuse(str(path), "this is not a regular file", "name a YAML file")
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise EnvironmentFault(f"{path}: can not be read: {error.strerror}") from error
    return content


def parse_document(content: bytes, source: str) -> Document:
    """Parse a YAML mapping; raises InputError with one fault per thing that is wrong, each with `source:line`."""
    text = _decode(content, source)
    _refuse_tabs(text, source)
    root = _compose(text, source)
    if root is None:
        raise refuse(f"{source}:1", "the file is empty", "write a mapping that begins with `name:`")
    builder = _Builder(source)
    data = builder.value(root, ())
    if builder.faults:
        raise InputError(builder.faults)
    if not isinstance(data, dict):
        what = f"the file holds {type_in_words(data)}, not a mapping"
        raise refuse(f"{source}:{root.start_mark.line + 1}", what, "write `key: value` lines, beginning with `name:`")
    return Document(source, data, builder.places)


def parse_value(text: str, source: str) -> Any:
    """Parse the value of an option such as `--set KEY=VALUE`, as strictly as a file."""
    root = _compose(_decode(text.encode("utf-8", "surrogateescape"), source), source, lines=False)
    if root is None:
        return None
    builder = _Builder(source, lines=False)
    data = builder.value(root, ())
    if builder.faults:
        raise InputError(builder.faults)
    return data


def scalar_value(text: str) -> object:
    """The value of an unquoted scalar: null, true, false, whole number, number, else the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    power = _POWER.fullmatch(text)
    if power is not None and int(power.group(2)) <= 15:
        return int(power.group(1)) * 10 ** int(power.group(2))
    return float(text) if _FLOAT.fullmatch(text) else text


def type_in_words(value: object) -> str:
    """The type of a plain value, as a reader of YAML calls it."""
    if value is None:
        return "nothing"
    names: dict[type, str] = {
        bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list", dict: "a mapping",
    }  # fmt: skip
    return names.get(type(value), type(value).__name__)


class _Loader(yaml.SafeLoader):
    """The scanner, parser and composer of PyYAML with bounds; it resolves no tags and constructs nothing."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.count = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        mark = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            raise _problem(f"alias `*{event.anchor}` is not allowed: write the value out", mark)
        if getattr(event, "tag", None) is not None:
            raise _problem(f"tag `{event.tag}` is not allowed: write plain values", mark)
        self.depth += 1
        self.count += 1
        if self.depth > DEPTH_MAX:
            raise _problem(f"nested deeper than {DEPTH_MAX} levels: write a flatter file", mark)
        if self.count > VALUES_MAX:
            raise _problem(f"more than {VALUES_MAX:,} values: write a smaller file", mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        """Every node gets one tag: the builder alone decides what a scalar means."""
        return "tag:yaml.org,2002:str"


class _Builder:
    """Turns nodes into plain values and remembers where each stands."""

    def __init__(self, source: str, *, lines: bool = True) -> None:
        self.source = source
        self.lines = lines
        self.faults: list[Fault] = []
        self.places: dict[KeyPath, str] = {}

    def where(self, node: yaml.Node) -> str:
        return f"{self.source}:{node.start_mark.line + 1}" if self.lines else self.source

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.places.setdefault(path, self.where(node))
        if isinstance(node, yaml.MappingNode):
            return dict(self.items(node, path))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        control = _CONTROL.search(node.value)
        if control is not None:
            what = f"{'.'.join(map(str, path))}: character U+{ord(control[0]):04X} is not allowed"
            self.faults.append(Fault(self.where(node), what, "remove it"))
            return ""
        plain = isinstance(node, yaml.ScalarNode) and node.style is None
        return scalar_value(node.value) if plain else node.value

    def items(self, node: yaml.MappingNode, path: KeyPath) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            key = self.value(key_node, (*path, "?")) if isinstance(key_node, yaml.ScalarNode) else key_node
            self.places.pop((*path, "?"), None)
            line = key_node.start_mark.line + 1
            dotted = ".".join(map(str, path)) or "the file"
            if not isinstance(key, str):
                self.faults.append(self.bad_key(key_node, key, dotted))
                continue
            if key in first:
                what = f"{dotted}: key `{key}` is given twice" + (f", first on line {first[key]}" if self.lines else "")
                self.faults.append(Fault(self.where(key_node), what, "keep one of the two"))
                continue
            first[key] = line
            self.places[(*path, key)] = self.where(key_node)
            yield key, self.value(value_node, (*path, key))

    def bad_key(self, node: yaml.Node, key: object, dotted: str) -> Fault:
        if not isinstance(node, yaml.ScalarNode):
            return Fault(self.where(node), f"{dotted}: a key is a list or a mapping, not text", "write `name: value`")
        what = f"{dotted}: key `{node.value}` is {type_in_words(key)}, not text"
        return Fault(self.where(node), what, f'write it in quotes: `"{node.value}": ...`')


def _problem(text: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=mark)


def _decode(content: bytes, source: str) -> str:
    if len(content) > BYTES_MAX:
        raise refuse(source, f"the file is longer than {BYTES_MAX:,} bytes", "write a smaller file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        what = f"byte {error.start + 1} (0x{content[error.start]:02x}) is not UTF-8"
        raise refuse(f"{source}:{line}", what, "save the file as UTF-8") from None


def _refuse_tabs(text: str, source: str) -> None:
    faults = [
        Fault(f"{source}:{number}", "a tab stands in the indentation", "write blanks")
        for number, line in enumerate(text.split("\n"), start=1)
        if "\t" in line[: len(line) - len(line.lstrip())] and line.strip()
    ]
    if faults:
        raise InputError(faults[:20])


def _compose(text: str, source: str, *, lines: bool = True) -> yaml.Node | None:
    """Text to nodes, every complaint of the YAML reader turned into a fault with its line."""
    try:
        loader = _Loader(text)
        try:
            node: yaml.Node | None = loader.get_single_node()
        finally:
            loader.dispose()
        return node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark is not None and lines else source
        what, write = _yaml_words(error)
        raise refuse(where, what, write) from None
    except yaml.reader.ReaderError as error:
        where = f"{source}:{text[: error.position].count(chr(10)) + 1}" if lines else source
        what = f"character U+{int(error.character):04X} is not allowed in YAML"
        raise refuse(where, what, "remove it") from None


def _yaml_words(error: yaml.MarkedYAMLError) -> tuple[str, str]:
    """What is wrong and what to write, from the problem that PyYAML (or the loader above) names."""
    problem = str(error.problem or error.context or "not YAML")
    if ": write " in problem:
        what, _, write = problem.partition(": write ")
        return what, f"write {write}"
    if "'\\t'" in problem:
        return "a tab stands where a value begins", "write blanks"
    if "but found another document" in problem:
        return "the file holds more than one document (`---`)", "write one scenario per file"
    if "mapping values are not allowed here" in problem:
        return "a colon where no key can stand", "check the indentation, or quote text that holds `: `"
    if problem.startswith("found undefined alias"):
        return problem, "write the value out"
    begun = f" begun on line {error.context_mark.line + 1}" if error.context_mark is not None else ""
    context = f" {error.context}{begun}" if error.context and error.context != problem else ""
    return f"this is not YAML:{context} {problem}".replace("\n", " "), "check brackets, quotes and indentation"
