"""Runs on a dask cluster: a real scheduler and two worker processes on the loopback, one of which is killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from sim import cluster
from sim.cli import command_status
from sim.cluster import open_cluster
from sim.result import Result
from tests.run.cases import bytes_of, differing, environment, files_of, opticube
from topology.errors import EnvironmentFault, InputError

pytest.importorskip("distributed")


class Cluster:
    """A scheduler and workers as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.workers = folder, list[subprocess.Popen[bytes]]()
        file = folder / "scheduler.json"
        self._scheduler = self._start("dask_scheduler", "--port", "0", "--scheduler-file", str(file))
        self.address = self._address(file)

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--host", "127.0.0.1", "--no-dashboard"]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*command, *arguments], cwd=self._folder, env=environment(), stdout=log, stderr=subprocess.STDOUT
            )

    def _address(self, file: Path) -> str:
        for _ in range(600):
            if file.exists() and file.read_text().endswith("}"):
                return str(json.loads(file.read_text())["address"])
            time.sleep(0.1)
        raise AssertionError((self._folder / "log").read_text())

    def add_worker(self) -> None:
        """One more worker, of one thread, that nobody starts again when it dies."""
        self.workers.append(self._start("dask_worker", self.address, "--nthreads", "1", "--no-nanny"))

    def close(self) -> None:
        """End all processes."""
        for process in (*self.workers, self._scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler; workers are added by the tests."""
    found = Cluster(tmp_path_factory.mktemp("dask"))
    yield found
    found.close()


@pytest.mark.slow
def test_without_workers_or_with_strange_ones(scheduler: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: nobody waits for ever, nobody mixes versions. Method: no worker; one, and we are newer; an end."""
    monkeypatch.setattr(cluster, "ANSWER_S", 0.5)
    with (
        pytest.raises(EnvironmentFault, match="has no workers: start some with `dask worker tcp"),
        open_cluster(scheduler.address),
    ):
        pass
    monkeypatch.setattr(cluster, "ANSWER_S", 60.0)
    scheduler.add_worker()
    with pytest.raises(EnvironmentFault, match="was lost: run again with --resume"), open_cluster(scheduler.address):
        raise CancelledError
    monkeypatch.setattr(cluster, "version", lambda name: "9.9")
    with pytest.raises(InputError, match="install the same version there"), open_cluster(scheduler.address):
        pass


@pytest.mark.slow
def test_a_killed_worker_costs_its_tasks_only(
    scheduler: Cluster, machine: Result, machine_file: Path, tmp_path: Path
) -> None:
    """Goal: tables do not depend on a cluster, nor on its luck. Method: two workers, one killed -9 in mid-run."""
    while len(scheduler.workers) < 2:
        scheduler.add_worker()
    out = tmp_path / "run"
    run = opticube("run", str(machine_file), "--dask", scheduler.address, "--out", str(out), cwd=tmp_path)
    assert run.stderr is not None
    assert any("failure histories" in line for line in run.stderr), "tasks are under way"
    scheduler.workers[0].kill()
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors
    assert differing(files_of(out), bytes_of(machine)) == []
    assert scheduler.workers[1].poll() is None


def test_bad_addresses(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: one line, and the status that fits. Method: no address, a port where nobody listens, workers besides."""
    monkeypatch.setattr(cluster, "ANSWER_S", 0.3)
    for arguments, status, words in (
        (["--dask", "carrier-pigeon://x"], 2, "is no address of a dask scheduler"),
        (["--dask", "tcp://127.0.0.1:9"], 4, "no dask scheduler answers at tcp://127.0.0.1:9 within 0.3 s"),
        (["--dask", "tcp://127.0.0.1:9", "--workers", "2"], 2, "leave out --workers"),
    ):
        assert command_status(["run", "smoke", *arguments]) == status
        assert words in capsys.readouterr().err
