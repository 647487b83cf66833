"""Every shipped scenario runs; the closed forms come out; an installed wheel works anywhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from sim.cli import command_status
from sim.run_folder import read_tables
from sim.scenario import load_scenario, shipped_scenarios
from sim.simulation import run
from tests.shared_data import shared_file

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

SHORTER = {
    "availability": [
        "study.availability.replications=4", "study.availability.horizon=90 d", "study.delivered.replications=2",
        "study.delivered.horizon=20 d", "serving.windows={requests: 1000, replications: 2, losses: 2}", "expect=[]",
        "study.promise=null",
    ],
    "closed_form": ["study.availability.replications=4", "study.availability.horizon=90 d", "expect=[]"],
    "long_reasoning": [
        "study.availability.replications=4", "study.availability.horizon=90 d",
        "serving.windows={requests: 1000, replications: 2, losses: 2}",
    ],
    "smoke": [],
    "worth": [
        "study.availability.replications=4", "study.availability.horizon=90 d", "study.delivered.horizon=30 d",
        "serving.windows={requests: 500, replications: 2, losses: 1}",
    ],
    "three_layers": [
        "study.availability.replications=4", "study.availability.horizon=90 d", "expect=[]",
        "serving.windows={requests: 200, replications: 2, losses: 1}",
        "sweep.task={static: {serving.services.0.batching: {kind: static, wait: 1 s}}, "
        "disaggregated: {serving.services.0.batching: {kind: disaggregated, over: ici}}}",
    ],
}  # fmt: skip
"""Overrides that keep a run to some seconds."""
IN_OPERATION = {
    name: ["study.operations.replications=2", "study.operations.horizon=20 d", "run.warmup=1 d"]
    for name in (
        "operations",
        "spares",
        "checkpointing",
        "repair_crews",
        "degraded_cubes",
        "defragmentation",
        "light_loses",
    )
} | {"maintenance": ["study.operations.replications=2", "study.operations.horizon=40 d"]}
OF_PASSES = ("a100_llama70b", "long_context", "models_8b_to_540b", "pope_palm540b")
"""Run by `tests/studies/test_passes.py`."""
SHARED = [
    "study.shared_pod.replications=2", "study.shared_pod.horizon=4 d", "run.warmup=1 d",
    "serving.windows={requests: 2000, replications: 1, losses: 0}",
]  # fmt: skip
SERVED_ALONE = {
    "disaggregation": [
        "serving.windows.requests=300", "serving.load_curve.requests=600", "serving.load_curve.loads=[0.5, 1.5]",
        "sweep.split={together: {serving.services.0.batching: {kind: continuous}}, "
        "apart: {serving.services.0.batching: {kind: disaggregated, over: ici}}}", "serving.services.0.slice=4x4x8",
        "expect=[]",
    ],
    "memory_levels": [
        "sweep={below: {host: {serving.services.chat.tiers: {host_memory: 16 GiB}}}}", "expect=[]",
        "serving.windows={requests: 100, replications: 2, losses: 0}",
        "serving.load_curve={loads: [0.5, 2], requests: 100, replications: 2}",
    ],
    "retry_storm": ["serving.windows={requests: 200, replications: 2, losses: 0}"],
    "speculative_decoding": [
        "serving.windows={requests: 100, replications: 2, losses: 0}",
        "sweep.serving.services.0.rate=[0.5 requests/s]",
    ],
}  # fmt: skip
"""Services without a study of availability."""
NEED_A_FILE = (
    "availability_gpu_faults", "availability_gpu_hardware", "availability_lanl", "azure_hour", "mooncake_prefix",
    "philly_month",
)  # fmt: skip


def test_no_scenario_is_forgotten() -> None:
    """Goal: the lists here are complete. Method: all shipped names."""
    assert (
        sorted(
            [
                "airesim_default",
                "many_pods",
                "one_queue",
                "shared_pod",
                *OF_PASSES,
                *SHORTER,
                *SERVED_ALONE,
                *IN_OPERATION,
                *NEED_A_FILE,
            ]
        )
        == shipped_scenarios()
    )


@pytest.mark.parametrize("name", list(SHORTER))
def test_shipped_scenarios_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: what is shipped works. Method: by name, with shorter horizons, through the command."""
    overrides = [word for override in SHORTER[name] for word in ("--set", override)]
    assert command_status(["run", name, *overrides, "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "report: " in printed
    assert "nan" not in printed
    tables = read_tables(tmp_path / "run")
    assert not tables["availability"]["value"].isna().any()


@pytest.mark.parametrize("name", list(IN_OPERATION))
def test_pods_in_operation_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: what is shipped works, and every chip-hour is in one use. Method: by name, shorter, through the command."""
    overrides = [word for override in IN_OPERATION[name] for word in ("--set", override)]
    assert command_status(["run", name, *overrides, "--out", str(tmp_path / "run")]) == 0
    assert re.search(r"\bnan\b", capsys.readouterr().out) is None
    summary = pd.read_csv(tmp_path / "run" / "summary.csv")
    unaccounted = summary.loc[summary["measure"] == "chip_hours_unaccounted", "value"]
    assert len(unaccounted) > 0
    assert (unaccounted == 0).all()


def test_many_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: what is shipped works. Method: by name, three pods for a week, through the command."""
    overrides = ["--set", "study.fleet.pods=3", "--set", "study.fleet.horizon=7 d"]
    assert command_status(["run", "many_pods", *overrides, "--out", str(tmp_path / "run")]) == 0
    assert "3 pods, jobs placed when they arrive" in capsys.readouterr().out
    assert len(read_tables(tmp_path / "run")["fleet_pods"]) == 3


def test_one_queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: what is shipped works, and jobs wait less behind one queue. Method: by name, shorter, through the command;
    its table and its picture."""
    overrides = ["--set", "study.fleet.horizon=7 d", "--set", "study.fleet.replications=2"]
    assert command_status(["run", "one_queue", *overrides, "--out", str(tmp_path / "run")]) == 0
    assert "Behind one queue" in capsys.readouterr().out
    table = read_tables(tmp_path / "run")["fleet_queues"].set_index(["queues", "measure"])["value"]
    assert table["one_less_own", "fleet_wait_mean_s"] < 0
    assert (tmp_path / "run" / "plots" / "fleet_waits.png").stat().st_size > 10_000


def test_shared_pod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: what is shipped works, nothing is left over, and sharing trains more on the same cubes. Method: by name,
    shorter, through the command; its expectations hold."""
    overrides = [word for override in SHARED for word in ("--set", override)]
    assert command_status(["run", "shared_pod", *overrides, "--out", str(tmp_path / "run")]) == 0
    assert re.search(r"\bnan\b", capsys.readouterr().out) is None
    uses = read_tables(tmp_path / "run")["shared_pod_chip_hours"]
    assert (uses.loc[uses["use"] == "unaccounted", "chip_hours"] == 0).all()
    assert (tmp_path / "run" / "plots" / "shared_day.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", list(SERVED_ALONE))
def test_services_alone_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: what is shipped works. Method: by name, shorter, through the command; the first sentence answers."""
    overrides = [word for override in SERVED_ALONE[name] for word in ("--set", override)]
    assert command_status(["run", name, *overrides, "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"\bnan\b", printed) is None
    assert "combination" in printed


def test_airesim_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: published figures (AIReSim, arXiv 2603.07041, default table). Method: the shipped scenario meets what it
    expects: 9,865.97 +- 12.55 h, a productive share of 0.6228, in 30 runs."""
    assert command_status(["run", "airesim_default", "--out", str(tmp_path / "run")]) == 0
    assert "The job takes" in capsys.readouterr().out


def test_philly_month(tmp_path: Path) -> None:
    """Goal: a real log of jobs runs. Method: the shipped scenario on the file of November 2017; all 21,318 jobs."""
    log = shared_file("cluster_jobs/philly_2017_11.csv")
    settings = [f"jobs.log.path={log}", "study.operations.replications=2", "sweep={pod.fabric: [reconfigurable]}"]
    result = run(load_scenario("philly_month", settings))
    measures = result.tables["operations"].set_index("measure")["value"]
    assert measures["jobs_arrived"] == 21_318
    assert measures["jobs_rejected"] == 0
    assert result.tables["operations_chip_hours"].set_index("use").loc["unaccounted", "chip_hours"] == 0


def test_closed_form() -> None:
    """Goal: simulation gives the closed forms. Method: the shipped scenario: all 48 points of `expected` agree, no
    half-width is over 0.01, `guaranteed` is equal everywhere, and its expectations are met."""
    result = run(load_scenario("closed_form"))
    expected = result.availability[result.availability["form"] == "expected"]
    assert len(expected) == 48
    assert expected["agrees"].all()
    half = (expected["ci_high"] - expected["ci_low"]) / 2
    assert half.max() <= 0.01
    guaranteed = result.availability[result.availability["form"] == "guaranteed"]
    assert len(guaranteed) == 48
    assert guaranteed["agrees"].all()
    assert (guaranteed["value"] - guaranteed["closed_form"]).abs().max() <= 1e-9
    assert result.met_expectations
    assert result.warnings == ()
    table = result.availability.set_index(["fabric", "form", "slice_chips", "host_availability"])["closed_form"]
    for chips, share in ((1024, 0.75), (2048, 0.50), (3072, 0.75)):
        for host in (0.990, 0.995):
            assert table["reconfigurable", "guaranteed", chips, host] == pytest.approx(share, abs=1e-12)
    assert table["reconfigurable", "expected", 1024, 0.990] == pytest.approx(0.7474, abs=5e-5)
    assert table["reconfigurable", "expected", 1024, 0.995] == pytest.approx(0.7515, abs=5e-5)
    assert table["reconfigurable", "expected", 3072, 0.990] == pytest.approx(0.7420, abs=5e-5)
    assert table["static_aligned", "expected", 1024, 0.999] == pytest.approx(0.7740, abs=5e-5)
    assert table["static_aligned", "guaranteed", 1024, 0.999] == pytest.approx(0.25, abs=1e-12)


def test_a_wheel_works_elsewhere(tmp_path: Path) -> None:
    """Goal: an installed opticube needs no checkout. Method: build a wheel, install it with its dependencies into a
    clean environment, run `smoke` by name in a folder that has a `scenarios/` and a `sim.py` of its own."""
    quiet = ["--quiet", "--disable-pip-version-check"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def done(*command: str, cwd: Path = tmp_path) -> str:
        finished = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, f"{' '.join(command)}\n{finished.stdout}\n{finished.stderr}"
        return finished.stdout

    done(sys.executable, "-m", "pip", "wheel", *quiet, "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("opticube-*.whl")
    done(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    python = tmp_path / "venv" / "bin" / "python"
    done(str(python), "-m", "pip", "install", *quiet, "-c", str(ROOT / "constraints.txt"), str(wheel))
    place = tmp_path / "place"
    (place / "scenarios").mkdir(parents=True)
    (place / "scenarios" / "smoke.yaml").write_text("not: [a scenario")
    (place / "scenarios" / "__init__.py").write_text("raise ImportError('the wrong scenarios')")
    (place / "sim.py").write_text("raise ImportError('the wrong sim')")
    command = tmp_path / "venv" / "bin" / "opticube"
    text = done(str(command), "run", "smoke", cwd=place)
    assert "report: runs/smoke-1/report.html" in text
    names = {path.name for path in (place / "runs" / "smoke-1").iterdir()}
    assert {"manifest.json", "report.html", "scenario.yaml", "summary.csv", "tables", "plots", "timeline.json"} <= names
    listed = done(str(command), "list", "scenarios", cwd=place)
    assert all(name in listed for name in shipped_scenarios())
    found = done(str(python), "-c", "import opticube; print(opticube.load('smoke').name)", cwd=tmp_path)
    assert found == "smoke\n"
