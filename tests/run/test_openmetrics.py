"""`opticube export --format openmetrics`: the summary as gauges, read back by a parser of others."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from sim.cli import command_status
from sim.openmetrics import openmetrics_text
from sim.result import Result


def test_a_text_by_hand() -> None:
    """Goal: the format is OpenMetrics. Method: a small summary with an interval, an infinity, nothing, and quotes."""
    rows = [
        {"scenario": "a", "point": 0, "service": pd.NA, "measure": "expected", "unit": "1", "value": 0.5, "ci_low": 0.4}
        | {"ci_high": 0.6, "n": 3, "better": "higher", "spares.kind": '{"kind": "cold"}'},
        {"scenario": "a", "point": 1, "service": "chat", "measure": "ttft_p99_s", "unit": "s", "value": math.inf}
        | {"ci_low": math.nan, "ci_high": math.nan, "n": 3, "better": "lower", "spares.kind": "x\\y"},
        {"scenario": "a", "point": 2, "service": "chat", "measure": "ttft_p99_s", "unit": "s", "value": math.nan},
    ]
    assert openmetrics_text(pd.DataFrame(rows)) == (
        "# TYPE opticube_expected gauge\n"
        "# HELP opticube_expected expected in 1\n"
        'opticube_expected{scenario="a",point="0",spares_kind="{\\"kind\\": \\"cold\\"}"} 0.5\n'
        "# TYPE opticube_expected_ci_low gauge\n"
        "# HELP opticube_expected_ci_low expected in 1, lower end of the 95 % interval\n"
        'opticube_expected_ci_low{scenario="a",point="0",spares_kind="{\\"kind\\": \\"cold\\"}"} 0.4\n'
        "# TYPE opticube_expected_ci_high gauge\n"
        "# HELP opticube_expected_ci_high expected in 1, upper end of the 95 % interval\n"
        'opticube_expected_ci_high{scenario="a",point="0",spares_kind="{\\"kind\\": \\"cold\\"}"} 0.6\n'
        "# TYPE opticube_ttft_p99_s gauge\n"
        "# HELP opticube_ttft_p99_s ttft_p99_s in s\n"
        'opticube_ttft_p99_s{scenario="a",point="1",service="chat",spares_kind="x\\\\y"} +Inf\n'
        "# EOF\n"
    )


def test_a_parser_reads_what_was_written(
    machine: Result, served: Result, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Goal: monitoring reads a run. Method: prometheus_client's parser of OpenMetrics on two runs: every value of the
    summary, told apart by its labels; the command writes the same text."""
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="prometheus_client is not installed")
    for result in (machine, served):
        text = openmetrics_text(result.summary)
        families = list(parser.text_string_to_metric_families(text))
        values = {
            (sample.name, sample.labels["point"], sample.labels.get("slice_chips"), sample.labels.get("service")): value
            for family in families
            for sample in family.samples
            for value in [sample.value]
        }
        rows = result.summary.dropna(subset="value").to_dict("records")
        assert {family.type for family in families} == {"gauge"}
        for row in rows:
            chips = None if pd.isna(row["slice_chips"]) else str(row["slice_chips"])
            service = None if pd.isna(row["service"]) else str(row["service"])
            assert values[f"opticube_{row['measure']}", str(row["point"]), chips, service] == row["value"]
    out = tmp_path / "run.txt"
    assert machine.folder is not None
    assert command_status(["export", str(machine.folder), "--format", "openmetrics", "--out", str(out)]) == 0
    assert out.read_text() == openmetrics_text(machine.summary)
    assert command_status(["export", str(machine.folder), "--format", "openmetrics", "--service", "chat"]) == 2
    assert "--service: openmetrics has the whole summary; leave it out" in capsys.readouterr().err
