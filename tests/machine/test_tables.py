"""Declared tables, and the log and placements as tables."""

from __future__ import annotations

import pandas as pd
import pytest

from sim.histories import ComponentKind
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.processes.delivered import simulate_delivered
from sim.streams import Streams
from sim.tables import Column, DType, TableSpec, tables_page
from sim.trace import LOG, PLACEMENTS
from tests.machine.pods import DAY_US, draws
from topology.fabric import Fabric
from topology.pod import Pod

SPEC = TableSpec(
    "sizes",
    "size",
    (
        Column("fabric", DType.TEXT, "", "wiring"),
        Column("cubes", DType.INT_OR_NONE, "", "cubes needed, none where it can not be"),
        Column("share", DType.FLOAT, "1", "share of the pod"),
    ),
)


def test_tables_are_made_in_order_and_cast() -> None:
    """Goal: a table has what was declared. Method: columns in another order, a missing number, a negative zero."""
    table = SPEC.make({"share": [-0.0, 1], "cubes": [3, None], "fabric": ["any_host", "reconfigurable"]})
    assert list(table.columns) == ["fabric", "cubes", "share"]
    assert [str(dtype) for dtype in table.dtypes] == ["string", "Int64", "float64"]
    assert table["cubes"].isna().tolist() == [False, True]
    assert str(table["share"].iloc[0]) == "0.0"
    assert SPEC.check(table) is table
    assert SPEC.make([]).empty


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"fabric": ["a"], "cubes": [1]}, "missing columns .'share'."),
        ({"fabric": ["a"], "cubes": [1], "share": [1.0], "more": [1]}, "undeclared columns .'more'."),
        ({"fabric": ["a"], "cubes": ["x"], "share": [1.0]}, "column cubes"),
    ],
)
def test_anything_else_is_refused(data: dict[str, list[object]], said: str) -> None:
    """Goal: mistakes are found where a table is made. Method: a column less, a column more, a wrong value."""
    with pytest.raises(ValueError, match=said):
        SPEC.make(data)


def test_a_frame_of_other_columns_is_refused() -> None:
    """Goal: tables that were changed later are found out. Method: another dtype."""
    with pytest.raises(ValueError, match="declared are"):
        SPEC.check(pd.DataFrame({"fabric": ["a"], "cubes": [1], "share": [1]}))


def test_a_declaration_names_a_column_once() -> None:
    """Goal: no column hides another. Method: the same name twice."""
    with pytest.raises(ValueError, match="twice"):
        TableSpec("x", "row", (SPEC.columns[0], SPEC.columns[0]))


def test_the_page_of_tables_lists_every_column() -> None:
    """Goal: the documentation comes from the declarations. Method: look for names and meanings."""
    page = tables_page([SPEC, LOG, PLACEMENTS])
    for column in (*SPEC.columns, *LOG.columns, *PLACEMENTS.columns):
        assert f"| `{column.name}` | {column.dtype.value} | {column.unit} | {column.meaning} |" in page
    assert SPEC.units() == {"fabric": "", "cubes": "", "share": "1"}


def test_log_and_placements_of_a_run() -> None:
    """Goal: a run's log is a table. Method: a short run; times rise, placements are those that the log names."""
    pod = Pod(cubes=4)
    trace = simulate_delivered(
        pod, Fabric.RECONFIGURABLE, 128, list(draws(pod, 2, {ComponentKind.HOST: (50.0, 5.0)})), health=HealthPolicy(),
        repair=RepairPolicy(), recovery=RecoveryPolicy(), streams=Streams(2, 0), horizon_us=3 * DAY_US,
    )  # fmt: skip
    log, placements = trace.log_table(), trace.placements_table()
    assert log["time_us"].is_monotonic_increasing
    assert len(log) == len(trace.rows)
    occupied = log.loc[log["verb"] == "occupy", "value"].tolist()
    assert sorted(set(placements["placement"])) == occupied
    assert (placements.groupby("placement")["chips"].sum() == 128).all()
