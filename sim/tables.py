"""Declared tables: every column has a name, a dtype, a unit and a meaning, and is checked where the table is made.

A table is made by `TableSpec.make`, which orders the columns, casts them to what was declared and refuses anything
else; the documentation's page of tables is written from the same declarations by `tables_page`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pandas as pd


class DType(StrEnum):
    """The dtypes that a column may have, by their pandas names."""

    INT = "int64"
    INT_OR_NONE = "Int64"
    FLOAT = "float64"
    BOOL = "bool"
    BOOL_OR_NONE = "boolean"
    TEXT = "string"


def text_of_setting(value: object) -> str:
    """A value of a swept key as tables have it: a text as it stands, everything else as JSON.

    Both are YAML too: `--set KEY=TEXT` sets the same value again.
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Column:
    """One declared column; `unit` is a symbol such as `us`, `s`, `1`, or empty where there is none."""

    name: str
    dtype: DType
    unit: str
    meaning: str


@dataclass(frozen=True)
class TableSpec:
    """A declared table: its name, what a row is, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        """Refuse a declaration that names a column twice."""
        if len(set(self.names)) != len(self.columns):
            raise ValueError(f"table {self.name} declares a column twice")

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return [column.name for column in self.columns]

    def make(self, data: Mapping[str, Sequence[Any] | Any] | Iterable[Mapping[str, Any]]) -> pd.DataFrame:
        """Build the table from columns by name, or from rows, and check it.

        Raises ValueError when a column is missing or not declared, or holds what its dtype can not.
        """
        frame = pd.DataFrame(data) if isinstance(data, Mapping) else pd.DataFrame(list(data), columns=None)
        if frame.empty and not len(frame.columns):
            frame = pd.DataFrame({name: [] for name in self.names})
        missing = [name for name in self.names if name not in frame.columns]
        unknown = [name for name in map(str, frame.columns) if name not in self.names]
        if missing or unknown:
            raise ValueError(f"table {self.name}: missing columns {missing}, undeclared columns {unknown}")
        return self.check(pd.DataFrame({c.name: self._cast(frame[c.name], c) for c in self.columns}))

    def _cast(self, values: Any, column: Column) -> Any:
        try:
            cast = values.astype(column.dtype.value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"table {self.name}, column {column.name}: {error}") from error
        # no negative zeros: they would make other bytes of equal tables
        return cast + 0.0 if column.dtype is DType.FLOAT else cast

    def check(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return `frame` if it has exactly the declared columns and dtypes; raise ValueError otherwise."""
        found = {str(name): str(dtype) for name, dtype in frame.dtypes.items()}
        declared = {column.name: column.dtype.value for column in self.columns}
        if list(found.items()) != list(declared.items()):
            raise ValueError(f"table {self.name} has columns {found}, declared are {declared}")
        return frame

    def units(self) -> dict[str, str]:
        """Unit of each column, for the metadata of files."""
        return {column.name: column.unit for column in self.columns}


def tables_page(specs: Iterable[TableSpec]) -> str:
    """The declarations as a page of Markdown, a section per table."""
    lines: list[str] = []
    for spec in specs:
        lines += [f"## {spec.name}", "", f"One row per {spec.row}.", "", "| column | dtype | unit | meaning |"]
        lines += ["| --- | --- | --- | --- |"]
        lines += [f"| `{c.name}` | {c.dtype.value} | {c.unit} | {c.meaning} |" for c in spec.columns]
        lines += [""]
    return "\n".join(lines)
