"""Swept values that are mappings or nothing are written so that they read back; a pod in operation is replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sim.cli import command_status
from sim.measure_names import OPERATIONS_MEASURES
from sim.report.variants import variants_of
from sim.run_folder import read_tables, table_bytes
from sim.scenario import expand
from sim.simulation import run
from sim.tables import text_of_setting
from tests.run.cases import OPERATED, loaded

SPARES: list[dict[str, Any] | None] = [{"kind": "none"}, {"kind": "hot", "cubes": 1, "swap": "20 s"}]
CREWS = [2, None]
SWEEP = f"sweep: {{spares: {json.dumps(SPARES)}, repair.crews: {json.dumps(CREWS)}}}"
STUDY = "study: {operations: {horizon: 5 d, replications: 2}}"
TEXT = f"{OPERATED.partition('study:')[0]}{SWEEP}\n{STUDY}\n"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pod in operation with two kinds of spares and of crews, run into a folder without a report."""
    folder = tmp_path_factory.mktemp("swept") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sim.report.write.write_report", lambda *arguments, **options: None)
        run(loaded(TEXT), out=folder, workers=1)
    return folder


def test_the_summary_reads_back(stored: Path) -> None:
    """Goal: what was swept can be read from `summary.csv`, by programs and by `--set`. Method: the values of the sweep
    against the columns, as JSON; each text set by hand gives the configuration of its point; the manifest has them."""
    summary = pd.read_csv(stored / "summary.csv", keep_default_na=False)
    points = expand(loaded(TEXT))
    manifest = json.loads((stored / "manifest.json").read_text())
    for point, told in zip(points, manifest["points"], strict=True):
        rows = summary[summary["point"] == point.index]
        assert len(rows) > 0
        for key, due in (("spares", SPARES[point.index // 2]), ("repair.crews", CREWS[point.index % 2])):
            (text,) = set(rows[key])
            assert json.loads(text) == due
            assert told[key] == text
        texts = [f"{key}={told[key]}" for key in ("spares", "repair.crews")]
        assert loaded(TEXT, "sweep={}", *texts) == point.scenario


@pytest.mark.parametrize(("value", "text"), [("99 %", "99 %"), (4, "4"), (None, "null"), (0.5, "0.5"), (True, "true")])
def test_plain_values(value: object, text: str) -> None:
    """Goal: plain values stay as people write them. Method: one of each kind."""
    assert text_of_setting(value) == text


def test_a_variant_is_named_in_words(stored: Path) -> None:
    """Goal: no braces and quotes in a sentence. Method: the labels of the four combinations."""
    labels = [variant.label for variant in variants_of(read_tables(stored))]
    assert labels == [
        f"spares {spares}, repair.crews {crews}"
        for spares in ("kind none", "kind hot, cubes 1, swap 20 s")
        for crews in ("2", "nothing")
    ]


def test_a_pod_in_operation_is_replayed(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: `replay` gives every measure of a replication again, of the right point. Method: all points; then two
    points' values exchanged in the folder; a replication that is not there."""
    for point in range(4):
        assert command_status(["replay", str(stored), "--point", str(point), "--replication", "1", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["same"]
        assert {row["form"] for row in document["values"]} == set(OPERATIONS_MEASURES)
    assert command_status(["replay", str(stored), "--point", "0", "--replication", "2"]) == 2
    assert "the point has no replication 2" in capsys.readouterr().err
    file = stored / "tables" / "replications.parquet"
    table = pd.read_parquet(file)
    table["value"] = table.groupby(["spares", "form", "replication"])["value"].transform(lambda v: v.to_numpy()[::-1])
    file.write_bytes(table_bytes(table))
    assert command_status(["replay", str(stored), "--point", "1", "--replication", "0"]) == 1
    assert capsys.readouterr().out.endswith("replayed: NOT equal to the stored run\n")
