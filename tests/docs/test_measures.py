"""The page of measures defines every measure of the code, and no other."""

from __future__ import annotations

import re

from sim.measure_names import MEASURES
from sim.run_tables import SPECS
from tests.docs.pages import DOCS

ROW = re.compile(r"^\| `([a-z0-9_]+)` \| ([^|]*?) \| ([^|]*(?:\\\|[^|]*)*) \|", re.M)
PAGE = (DOCS / "measures.md").read_text(encoding="utf-8")


def test_every_measure_is_defined_once_with_its_unit() -> None:
    """Goal: a name in a summary is never without a meaning. Method: rows of the page against the names of the code."""
    defined = [(match[1], match[2]) for match in ROW.finditer(PAGE)]
    assert sorted(name for name, _ in defined) == sorted(MEASURES)
    assert dict(defined) == {name: measure.unit for name, measure in MEASURES.items()}
    assert all(len(match[3].strip()) > 2 for match in ROW.finditer(PAGE))


def test_tables_that_are_named_are_there() -> None:
    """Goal: the reader finds the numbers. Method: every link to a table is to one of a run."""
    named = re.findall(r"tables\.md#([a-z_]+)", PAGE)
    assert len(named) > 20
    assert [name for name in named if name not in SPECS] == []
