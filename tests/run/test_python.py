"""Runs from Python: results, pictures, pages for notebooks, sweeps."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import opticube
import sim
from sim.report.plots import DRAWINGS
from sim.result import Result
from sim.run_tables import SPECS
from sim.simulation import run
from sim.sweeps import sweep
from tests.run.cases import MACHINE, PROMISE, SERVED, bytes_of, differing, loaded
from topology.errors import InputError
from topology.fabric import Fabric


def test_names() -> None:
    """Goal: two ways in, the same things. Method: `opticube` re-exports what `sim` offers."""
    for name in ("load", "run", "sweep", "Result"):
        assert getattr(opticube, name) is getattr(sim, name)
    assert opticube.load("smoke").name == "smoke"


def test_tables_by_name(machine: Result) -> None:
    """Goal: tables are attributes. Method: every declared name; absent ones are empty with their columns."""
    for name, spec in SPECS.items():
        table = getattr(machine, name)
        assert isinstance(table, pd.DataFrame)
        assert list(table.columns)[: len(spec.names)] == spec.names
    assert machine.availability is machine.tables["availability"]
    assert machine.service.empty
    with pytest.raises(AttributeError, match="a result has no table 'availabilty'; tables: availability, "):
        machine.availabilty  # noqa: B018


def test_a_result_can_be_copied_and_sent(machine: Result) -> None:
    """Goal: results travel between processes. Method: copy and pickle, then compare the bytes."""
    for again in (copy.copy(machine), copy.deepcopy(machine), pickle.loads(pickle.dumps(machine))):
        assert differing(bytes_of(again), bytes_of(machine)) == []
        assert again.sentence == machine.sentence


def test_pictures(served: Result) -> None:
    """Goal: `.plot.*` returns axes that can be drawn on. Method: every picture of the run with a service."""
    mpl.use("agg")
    names = [name for name in dir(served.plot) if not name.startswith("_")]
    assert names == sorted(DRAWINGS)
    for name in names:
        panels = getattr(served.plot, name)()
        axes = [panels] if isinstance(panels, Axes) else list(panels)
        assert axes
        assert all(isinstance(each, Axes) for each in axes)
        plt.close(axes[0].figure)  # type: ignore[arg-type]


def test_page_for_notebooks(machine: Result) -> None:
    """Goal: a result shows itself. Method: name, sentence and a table in its HTML, special signs escaped."""
    page = machine._repr_html_()
    assert page.startswith("<p><strong>machine</strong>: ")
    assert "<table" in page
    assert "reconfigurable" in page
    assert "nan" not in page.lower().replace("governance", "")
    shown = run(loaded(PROMISE.replace("promise\n", "promise\ndescription: a < b\n", 1)), workers=1)
    assert "<table" in shown._repr_html_()


def test_sentence(machine: Result, served: Result) -> None:
    """Goal: the answer in words, from the tables. Method: its numbers are those of the tables."""
    cubes = machine.promise.query("slices == '4x4x8:2' and fabric == 'reconfigurable'")["cubes"].tolist()
    assert all(f"{count}" in machine.sentence for count in cubes)
    assert "Chat" in served.sentence
    assert "nan" not in served.sentence


@pytest.mark.parametrize("fabrics", [["reconfigurable", "static_aligned"], list(Fabric)[:2]])
def test_sweep_equals_the_sweep_of_a_scenario(machine: Result, fabrics: list[str]) -> None:
    """Goal: sweeps from Python are sweeps. Method: the bytes of the same sweep in YAML; texts or values of the enum."""
    single = loaded(MACHINE, "sweep=null")
    keys = {"pod.fabric": fabrics, "failures.host.availability": ["98 %", "99 %"]}
    found = sweep(single, keys, workers=1)
    assert differing(bytes_of(found), bytes_of(machine)) == []
    replaced = sweep(loaded(MACHINE), {"pod.fabric": ["any_host"]}, workers=1)
    assert set(replaced.availability["fabric"]) == {"any_host"}
    assert len(replaced.manifest["points"]) == 1


def test_sweep_names_its_columns() -> None:
    """Goal: points can be told apart. Method: a key that no declared column shows, as written."""
    found = sweep(loaded(MACHINE, "sweep=null"), {"recovery.evict": ["30 s", "10 min"]}, workers=1)
    assert found.availability["recovery.evict"].unique().tolist() == ["30 s", "10 min"]
    assert found.summary["recovery.evict"].unique().tolist() == ["30 s", "10 min"]
    assert set(found.differences["compared"]) == {"recovery.evict"}
    assert (found.differences.loc[found.differences["form"] == "expected", "difference"] == 0).all()


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"pod.fabrik": ["any_host"]}, "fabrik"),
        ({"pod.fabric": []}, "not a list of values"),
        ({"pod.fabric": ["any"]}, "any"),
        ({"health.detection": [60]}, "detection"),
    ],
)
def test_bad_sweeps(keys: dict[str, list[object]], says: str) -> None:
    """Goal: bad keys and values are refused as in a file. Method: slips of the pen."""
    with pytest.raises(InputError, match=says):
        sweep(loaded(MACHINE, "sweep=null"), keys, workers=1)


def test_run_without_a_folder_writes_nothing(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Goal: a notebook leaves no traces. Method: an empty working directory stays empty."""
    monkeypatch.chdir(tmp_path)
    assert run(loaded(PROMISE), workers=1).folder is None
    assert list(tmp_path.iterdir()) == []
    assert SERVED


def test_a_report_in_one_file(tmp_path: Path) -> None:
    """Goal: a result is saved as a page or a document by the end of the name. Method: both, and a name of neither."""
    result = run(loaded(PROMISE), workers=1)
    assert result.save_report(tmp_path / "report.html").read_bytes().startswith(b"<!doctype html>")
    assert result.save_report(str(tmp_path / "report.pdf")).read_bytes().startswith(b"%PDF-")
    with pytest.raises(InputError, match=r"write a name in \.html or \.pdf"):
        result.save_report(tmp_path / "report.doc")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.pdf"]
