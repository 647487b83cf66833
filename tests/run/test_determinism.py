"""The same scenario and seed give the same bytes, however the tasks are run and however often the run was cut off."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from sim.build import build_setup
from sim.cli import command_status
from sim.histories import ComponentKind, Outages
from sim.result import Result
from sim.scenario import expand
from sim.simulation import load, run
from tests.run.cases import MACHINE, SERVED, bytes_of, children_of, differing, environment, files_of, loaded, opticube

HASHES = """
import hashlib, json, sys
from sim.simulation import run
from tests.run.cases import SERVED, bytes_of, loaded
result = run(loaded(SERVED), workers=1)
print(json.dumps({name: hashlib.sha256(data).hexdigest() for name, data in bytes_of(result).items()}))
"""


def test_two_workers(served: Result) -> None:
    """Goal: results do not depend on the number of workers. Method: bytes of all tables, one process against two."""
    assert differing(bytes_of(served), bytes_of(run(loaded(SERVED), workers=2))) == []


def test_any_executor(served: Result) -> None:
    """Goal: any `concurrent.futures.Executor` will do. Method: threads, which finish in another order."""
    with ThreadPoolExecutor(3) as threads:
        assert differing(bytes_of(served), bytes_of(run(loaded(SERVED), executor=threads))) == []


def test_hash_seeds(served: Result) -> None:
    """Goal: no set or dict order reaches a result. Method: two interpreters with different hash seeds, at once."""
    wanted = {name: hashlib.sha256(data).hexdigest() for name, data in bytes_of(served).items()}
    processes = [
        subprocess.Popen([sys.executable, "-c", HASHES], env=environment(PYTHONHASHSEED=seed), stdout=subprocess.PIPE)
        for seed in ("1", "4242")
    ]
    for process in processes:
        output, _ = process.communicate()
        assert process.returncode == 0
        assert json.loads(output) == wanted


def test_another_seed_gives_other_numbers(machine: Result) -> None:
    """Goal: the comparison of bytes can fail. Method: seed 6 in place of 5."""
    other = run(loaded(MACHINE, "run.seed=6"), workers=1)
    assert {"availability", "replications", "summary"} <= set(differing(bytes_of(machine), bytes_of(other)))


class Interrupting:
    """A progress that presses Ctrl-C after so many calls."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, done: int, total: int, about: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize("crews", ["null", "1"])
def test_resume_after_an_interruption(tmp_path: Path, crews: str) -> None:
    """Goal: finished points are taken up, lost ones run again, and nobody can tell from the numbers.

    Method: interrupt in the second group of points; lose one part, damage another, leave the rest of a killed write.
    With one crew a history depends on who waits for whom: it must not depend on which points still wait.
    """
    scenario, out = loaded(MACHINE, f"repair.crews={crews}"), tmp_path / "run"
    tasks: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(scenario, out=out, workers=1, progress=Interrupting(8))
    parts = out / "parts"
    assert sorted(path.name for path in parts.iterdir()) == ["00000", "00002"]
    shutil.rmtree(parts / "00000")
    (parts / ".00001.999").mkdir()
    (out / ".summary.csv.999.part").write_text("half a fi")
    (parts / "00003").mkdir()
    (parts / "00003" / "availability.parquet").write_bytes(b"PAR1")
    resumed = run(scenario, out=out, resume=True, workers=1, progress=lambda done, total, about: tasks.append(about))
    assert differing(bytes_of(resumed), bytes_of(run(scenario, workers=1))) == []
    assert tasks.count("failure histories") == 6, "of both groups, as a point of each is missing"
    assert tasks.count("slices through failures") == 6, "of the three points that are missing"
    assert not parts.exists()
    assert list(out.rglob("*.part")) == []


@pytest.mark.usefixtures("without_report")
def test_parts_of_another_version_are_not_taken_up(tmp_path: Path) -> None:
    """Goal: no run mixes the numbers of two versions. Method: parts that say that they come from another one."""
    scenario, out = loaded(MACHINE), tmp_path / "run"
    tasks: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(scenario, out=out, workers=1, progress=Interrupting(8))
    for file in out.glob("parts/*/values.json"):
        about = json.loads(file.read_text()) | {"made_from": {"opticube": "0.0.1"}}
        file.write_text(json.dumps(about))
    run(scenario, out=out, resume=True, workers=1, progress=lambda done, total, about: tasks.append(about))
    assert tasks.count("failure histories") == 6


def _kill_at(delay_s: float, file: Path, out: Path, workers: int) -> None:
    """Start a run, kill -9 it after a while, and see that its workers end too."""
    process = opticube("run", str(file), "--out", str(out), "--workers", str(workers), cwd=file.parent)
    deadline = time.monotonic() + delay_s
    workers_seen: set[int] = set()
    while time.monotonic() < deadline and process.poll() is None:
        workers_seen.update(children_of(process.pid))
        time.sleep(0.01)
    process.kill()
    process.communicate()
    for _ in range(100):
        if not any(Path(f"/proc/{worker}").exists() for worker in workers_seen):
            return
        time.sleep(0.05)
    pytest.fail("workers outlived their parent by five seconds")


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_resume_after_a_kill(tmp_path: Path, machine: Result, machine_file: Path, workers: int) -> None:
    """Goal: kill -9 at any moment costs no more than the points in work. Method: random moments, then `--resume`."""
    out, longest_s, moments = tmp_path / "run", 4.0, 1
    if workers > 1:
        began = time.monotonic()
        _kill_at(600.0, machine_file, out, workers)
        longest_s, moments = time.monotonic() - began, 2
        assert differing(files_of(out), bytes_of(machine)) == [], "it was given the time to finish"
        shutil.rmtree(out)
    for moment in range(moments):
        delay_s = random.uniform(0.25, 1.0) * longest_s
        _kill_at(delay_s, machine_file, out, workers)
        note = f"kill {moment} after {delay_s:.3f} s"
        status = command_status(["run", str(machine_file), "--out", str(out), "--workers", str(workers), "--resume"])
        assert status == 0, note
        assert differing(files_of(out), bytes_of(machine)) == [], note
        shutil.rmtree(out)


@pytest.mark.slow
@pytest.mark.usefixtures("without_report")
def test_resume_after_fifty_kills(tmp_path: Path, machine: Result, machine_file: Path) -> None:
    """Goal: no moment of a run is a bad one to be killed at. Method: 50 drawn moments, then `resume`."""
    scenario, wanted = load(machine_file), bytes_of(machine)
    began = time.monotonic()
    run(scenario, workers=1)
    whole_s, cut_off = time.monotonic() - began, 0
    for moment in range(50):
        out, delay_s = tmp_path / f"run-{moment}", random.uniform(0.0, 1.1) * whole_s
        child = get_context("fork").Process(target=run, args=(scenario,), kwargs={"out": out, "workers": 1})
        child.start()
        child.join(delay_s)
        child.kill()
        child.join()
        cut_off += child.exitcode != 0
        note = f"kill {moment} after {delay_s:.3f} s of {whole_s:.3f} s"
        assert differing(bytes_of(run(scenario, out=out, workers=1, resume=True)), wanted) == [], note
        assert list(out.rglob("*.part")) == [], note
    assert cut_off >= 20


def test_fabrics_see_the_same_failures(machine: Result) -> None:
    """Goal: fabrics are compared on the same bad luck. Method: digests of the draws in one run, and of single runs."""
    draws = machine.manifest["failure_draws"]
    assert draws["0"] == draws["2"]
    assert draws["1"] == draws["3"]
    assert draws["0"] != draws["1"], "another availability of hosts is another history"
    for fabric in ("static_aligned", "static_contiguous", "any_host"):
        alone = run(
            loaded(MACHINE, f"sweep.pod.fabric=[{fabric}]", "sweep.failures.host.availability=[98 %]"), workers=1
        )
        assert alone.manifest["failure_draws"] == {"0": draws["0"]}


@pytest.mark.parametrize("crews", ["null", "1"])
def test_a_fabric_alone_gives_the_same_numbers(crews: str) -> None:
    """Goal: a fabric's numbers do not depend on which others are run beside it. Method: alone, and with another."""
    both = run(loaded(MACHINE, f"repair.crews={crews}"), workers=1)
    alone = run(loaded(MACHINE, f"repair.crews={crews}", "sweep.pod.fabric=[static_aligned]"), workers=1)
    wanted = both.replications[both.replications["fabric"] == "static_aligned"].reset_index(drop=True)
    assert alone.replications.equals(wanted)


def outages_by_component(outages: Outages, components: int) -> list[list[tuple[int, int]]]:
    """Outages of the first components, each in order."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(components)]
    for component, start, end in zip(outages.component, outages.start_us, outages.end_us, strict=True):
        if component < components:
            found[component].append((int(start), int(end)))
    return found


def test_more_cubes_change_no_draw_of_the_others() -> None:
    """Goal: eight spare cubes see their own luck only. Method: pods of 56 and 64, outage by outage, every kind."""
    text = MACHINE.replace("cubes: 8, grid: 2x2x2", "cubes: 56").replace(
        "  ocs:", "  in_rack_link: {failure_rate: 0.1 %/day, repair: {mean: 4 h}}\n  ocs:"
    )
    histories = []
    for cubes in (56, 64):
        setup = build_setup(expand(loaded(text, f"pod.cubes={cubes}"))[0].scenario)
        histories.append({part.kind: part for part in setup.histories(1, 30 * 86_400_000_000)})
    smaller, larger = histories
    assert list(smaller) == [ComponentKind.HOST, ComponentKind.RACK, ComponentKind.IN_RACK_LINK, ComponentKind.OCS]
    for kind, outages in smaller.items():
        wanted = outages_by_component(outages, outages.count)
        assert outages_by_component(larger[kind], outages.count) == wanted
        assert sum(map(len, wanted)) == len(outages.component) > 10
    assert np.max(larger[ComponentKind.HOST].component) >= 56 * 16
