"""Whole runs on real files: what the main job says about a real machine and a real hour of requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sim.cli import command_status
from sim.run_folder import read_tables
from tests.shared_data import shared_file

pytestmark = pytest.mark.slow

SIZES = (64, 128, 256, 512, 1024, 2048, 3072, 4096)


def run_on(name: str, key: str, file: str, out: Path, *more: str) -> dict[str, pd.DataFrame]:
    """Run a shipped scenario on a real file by the command, and read its tables."""
    arguments = ["run", name, "--set", f"{key}={shared_file(file)}", *more, "--out", str(out)]
    assert command_status(arguments) == 0
    return read_tables(out)


def values_of(table: pd.DataFrame, form: str, fabric: str) -> dict[int, float]:
    """Values of one form on one fabric by slice size."""
    rows = table[(table["form"] == form) & (table["fabric"] == fabric)]
    return dict(zip(rows["slice_chips"].tolist(), rows["value"].tolist(), strict=True))


def test_availability_lanl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: the numbers known of Los Alamos system 18. Method: the shipped scenario on the real log, by the command."""
    out = tmp_path / "run"
    tables = run_on("availability_lanl", "failures.log.path", "failures/lanl_system_18.csv.gz", out)
    table = tables["availability"]
    reconfigurable, static = (values_of(table, "expected", fabric) for fabric in ("reconfigurable", "static_aligned"))
    assert reconfigurable[1024] == pytest.approx(0.9245, abs=5e-5)
    assert static[1024] == pytest.approx(0.9091, abs=5e-5)
    assert reconfigurable[3072] == pytest.approx(0.7500, abs=5e-5)
    assert static[3072] == pytest.approx(0.5591, abs=5e-5)
    assert reconfigurable[4096] == static[4096] == pytest.approx(0.6979, abs=5e-5)
    guaranteed = values_of(table, "guaranteed", "reconfigurable")
    assert tuple(guaranteed) == SIZES
    assert list(guaranteed.values()) == [0.96875, 0.96875, 0.9375, 0.875, 0.75, 0.5, 0.75, 0.0]
    assert table["host_availability"].unique() == pytest.approx([0.999604], abs=5e-7)
    assert set(table["fabric"]) == {"reconfigurable", "static_aligned", "static_contiguous", "any_host"}
    hosts = values_of(table, "expected", "any_host")
    assert all(hosts[chips] >= reconfigurable[chips] >= static[chips] for chips in SIZES)
    assert table["replications"].eq(1).all(), "one history is n = 1, whatever its length"
    assert table["closed_form"].isna().all()
    expected = table[table["form"] == "expected"]
    blank = expected["ci_low"].isna()
    assert (expected[blank]["slice_chips"] == 3072).all(), "one slice all the time: no variation seen"
    intervals = expected[~blank]
    assert len(intervals) == 30
    assert (intervals["ci_low"] < intervals["value"]).all()
    assert (intervals["value"] < intervals["ci_high"]).all()
    manifest = json.loads((out / "manifest.json").read_text())
    assert list(manifest["inputs"]) == [str(shared_file("failures/lanl_system_18.csv.gz"))]
    assert command_status(["replay", str(out), "--point", "1", "--replication", "0"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("name", ["availability_gpu_faults", "availability_gpu_hardware"])
def test_availability_gpu_faults(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: names without places are dealt to hosts, and the spread is shown. Method: spread against `replications`."""
    out = tmp_path / "run"
    tables = run_on(name, "failures.log.path", "failures/gpu_fault_trace_day_000_180.json", out)
    table = tables["availability"]
    assert set(table["slice_chips"]) == {64, 128, 256, 512, 1024}
    spread = table[table["form"].isin(["expected", "guaranteed"])]
    assert spread["shuffle_low"].notna().all()
    assert (spread["shuffle_low"] <= spread["value"]).all()
    assert (spread["value"] <= spread["shuffle_high"]).all()
    varied = spread.dropna(subset=["ci_low"])
    assert len(varied) >= 20
    assert varied["value"].between(varied["ci_low"], varied["ci_high"]).all()
    singles = tables["replications"]
    for _, row in table[table["form"] == "expected"].iterrows():
        mine = singles[(singles["fabric"] == row["fabric"]) & (singles["slice_chips"] == row["slice_chips"])]
        assert len(mine) == 20
        assert row["value"] == pytest.approx(mine["value"].mean(), abs=1e-12)
        assert row["shuffle_low"] == pytest.approx(mine["value"].min(), abs=1e-12)
        assert row["shuffle_high"] == pytest.approx(mine["value"].max(), abs=1e-12)
    cubes = spread[(spread["fabric"] == "reconfigurable") & (spread["form"] == "expected")]
    assert (cubes["shuffle_high"] > cubes["shuffle_low"]).all()
    text = capsys.readouterr().out
    assert "shuffle" in text
    assert "shuffle" in (out / "report.html").read_text(encoding="utf-8").lower()


def test_hardware_faults_are_fewer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a filter by cause leaves fewer outages. Method: availability of hosts and slices, with and without it."""
    found: dict[str, dict[str, pd.DataFrame]] = {}
    for name in ("availability_gpu_faults", "availability_gpu_hardware"):
        found[name] = run_on(
            name, "failures.log.path", "failures/gpu_fault_trace_day_000_180.json", tmp_path / name,
            "--set", "failures.log.shuffles=2", "--set", "sweep.pod.fabric=[reconfigurable]",
        )  # fmt: skip
    everything, hardware = (each["availability"] for each in found.values())
    assert hardware["host_availability"].iloc[0] > everything["host_availability"].iloc[0]
    both = [values_of(table, "expected", "reconfigurable") for table in (hardware, everything)]
    assert all(both[0][chips] > both[1][chips] for chips in both[0])
    capsys.readouterr()


def test_azure_hour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a real hour of requests is served token by token. Method: totals of the trace, counted from the file."""
    file = shared_file("llm_requests/azure_2023_conv.csv")
    out = tmp_path / "run"
    tables = run_on("azure_hour", "serving.services.0.requests.path", "llm_requests/azure_2023_conv.csv", out)
    trace = pd.read_csv(file)
    arrival_s = pd.to_datetime(trace["TIMESTAMP"]).astype("int64").to_numpy() / 1e9
    span_s = float(arrival_s[-1] - arrival_s[0])
    for fabric in ("reconfigurable", "static_aligned"):
        rows = tables["service"][tables["service"]["fabric"] == fabric].set_index("measure")["value"]
        assert rows["offered_requests_per_s"] == pytest.approx(len(trace) / span_s, rel=2e-3)
        assert 0.5 < rows["tokens_in_time"] <= 1.0
        assert rows["ttft_p50_s"] < 2.0
        assert rows["tokens_per_s"] == pytest.approx(trace["GeneratedTokens"].sum() / span_s, rel=0.1)
        assert rows["load_of_capacity"] < 1.0
    assert "chat" in capsys.readouterr().out.lower()


def test_mooncake_prefix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: what the shared beginnings of a real trace are worth. Method: the shipped scenario on the first 1,500
    requests: the same requests with and without sharing; hits are below what an unlimited cache would find in all."""
    name = "llm_requests/mooncake_conversation_0000_1200s.jsonl"
    windows = "serving.windows={requests: 1500, replications: 1, losses: 0}"
    tables = run_on("mooncake_prefix", "serving.services.0.requests.path", name, tmp_path / "run", "--set", windows)
    service = tables["service"].pivot_table(index="measure", columns="serving.services.0.cache", values="value")
    paged, sharing = service['{"kind": "paged"}'], service['{"kind": "prefix_sharing"}']
    assert paged["offered_requests_per_s"] == sharing["offered_requests_per_s"]
    assert 0.1 < sharing["prefix_hit_share"] < 0.3179
    assert sharing["ttft_p50_s"] < 0.8 * paged["ttft_p50_s"]
    assert sharing["capacity_requests_per_s"] > 1.1 * paged["capacity_requests_per_s"]
    capsys.readouterr()


def test_make_run_on_ones_own_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: the main scenario takes a user's log and requests. Method: as `make run`, smaller windows."""
    log, requests = shared_file("failures/lanl_system_18.csv.gz"), shared_file("llm_requests/azure_2023_conv.csv")
    settings: dict[str, Any] = {
        "sweep.failures.host.availability": "null",
        "failures.host": "null",
        "failures.log.path": log,
        "serving.services.1.requests.kind": "trace",
        "serving.services.1.requests.path": requests,
        "serving.windows": "{requests: 2000, replications: 1, losses: 1}",
        "study.availability.slice_chips": "[64, 1024]",
        "study.delivered.slice_chips": "[1024]",
    }
    overrides = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    out = tmp_path / "run"
    assert command_status(["run", "availability", *overrides, "--out", str(out)]) in (0, 1)
    table = read_tables(out)["availability"]
    assert values_of(table, "expected", "reconfigurable")[1024] == pytest.approx(0.9245, abs=5e-5)
    delivered = values_of(table, "delivered", "reconfigurable")[1024]
    assert 0.9 < delivered < 0.9245
    assert np.isfinite(read_tables(out)["service"].query("measure == 'tokens_in_time'")["value"]).all()
    capsys.readouterr()
