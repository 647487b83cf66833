"""The aligned table of the terminal."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sim.report.context import ReportContext
from sim.report.terminal import answer_text, availability_table_text, settings_text, warnings_text
from sim.report.words import percent
from tests.report import closed

Tables = dict[str, pd.DataFrame]


def test_table_is_aligned_and_whole(tables: Tables) -> None:
    """Goal: every value stands under its head. Method: known cells by row, and the column of each head and cell."""
    lines = availability_table_text(tables, width=100).splitlines()
    assert max(len(line) for line in lines) <= 100
    heads = next(line for line in lines if line.startswith("hosts up"))
    row = next(line for line in lines if line.split()[:1] == ["1024"])
    assert row.split()[1].startswith("74.7±")
    assert row.index("74.7±") == heads.index("99.0 %")
    assert row.index("84.0±") == heads.index("99.9 %")
    assert sum(line.split()[:1] == ["1024"] for line in lines) == 4
    assert "144 of 144 values with a closed form agree" in " ".join(lines)


def test_narrow_terminals_get_the_forms_below_each_other(tables: Tables) -> None:
    """Goal: nothing wraps. Method: 60 columns."""
    text = availability_table_text(tables, width=60)
    assert max(len(line) for line in text.splitlines() if "±" in line) <= 60
    assert text.count("hosts up") == 3


def test_marks_of_certainty() -> None:
    """Goal: no variation, one path and shuffles look different. Method: one value of each kind."""
    table = closed.availability(hosts=(0.99,), sizes=(64, 1024))
    table = table[(table["form"] == "expected") & (table["fabric"] == "reconfigurable")].reset_index(drop=True)
    table[["ci_low", "ci_high"]] = np.nan
    assert "85.1=" in availability_table_text({"availability": table})
    one = table.assign(replications=1)
    assert "85.1\n" in availability_table_text({"availability": one})
    shuffled = one.assign(shuffle_low=0.84, shuffle_high=0.86)
    assert "85.1 {84.0..86.0}" in availability_table_text({"availability": shuffled})


def test_disagreement_is_named() -> None:
    """Goal: a value off its closed form is not hidden in a count. Method: move one value."""
    table = closed.availability(hosts=(0.99,), sizes=(64,))
    table.loc[0, "agrees"] = False
    text = " ".join(availability_table_text({"availability": table}).split())
    assert "5 of 6 values" in text
    assert "(not reconfigurable expected at 64 chips, hosts up 99.0 %: 85.1 against 85.1)" in text


def test_disagreement_is_named_as_the_table_names_it() -> None:
    """Goal: one measure has one name on a page. Method: a value that is held disagrees."""
    table = closed.availability(hosts=(0.99,), sizes=(64,))
    row = table.index[table["form"] == "guaranteed"][0]
    table.loc[row, "agrees"] = False
    text = " ".join(availability_table_text({"availability": table}).split())
    assert f"held {percent(float(table.loc[row, 'time_share']))} of the time at 64 chips" in text
    assert "guaranteed" not in text


def test_absent_tables_are_told() -> None:
    """Goal: no crash, no empty frame. Method: no tables at all."""
    assert availability_table_text({}).startswith("Not in this run")
    assert answer_text({}).startswith("Not in this run")


def test_settings_and_warnings(context: ReportContext) -> None:
    """Goal: assumptions are marked. Method: one assumption among two settings."""
    assert settings_text(context).splitlines()[0] == "detection  60 s *"
    assert "set your own value" in settings_text(context)
    assert settings_text(ReportContext(name="x")) == ""
    assert warnings_text(context) == "warning: the queue of long_documents is overloaded"
