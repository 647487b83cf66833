"""The folder of a run: what is in it, when it is refused, and that nothing half-written is ever left."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from sim.cli import command_status
from sim.result import Result
from sim.run_folder import PARTS, is_finished, open_run_folder, read_manifest, read_tables, table_digest
from sim.run_tables import IMPLIED_KEYS, SPECS
from sim.scenario import load_scenario, resolved_yaml
from sim.simulation import run, stored_result
from sim.table_docs import table_page
from tests.run.cases import (
    PROMISE,
    ROOT,
    SERVED,
    bytes_of,
    differing,
    environment,
    every_name,
    files_of,
    loaded,
    opticube,
)
from topology.errors import InputError


def folder_of(result: Result) -> Path:
    """The folder that a result was written to."""
    assert result.folder is not None
    return result.folder


def test_all_files_are_there_and_no_others(machine: Result) -> None:
    """Goal: a run folder is what the design says. Method: names of all files; no part, no half-written file."""
    folder = folder_of(machine)
    names = every_name(folder)
    wanted = ["manifest.json", "report.html", "scenario.yaml", "summary.csv", "timeline.json", ".lock"]
    tables = [f"tables/{name}.parquet" for name in machine.tables if name != "summary"]
    pictures = [name for name in names if name.startswith("plots/")]
    assert sorted([*wanted, *tables, *pictures]) == names
    assert {"availability", "replications", "differences", "promise", "cliff", "chip_hours"} < set(machine.tables)
    assert {"plots/availability.png", "plots/availability.svg", "plots/promise.png", "plots/promise.svg"} < set(
        pictures
    )
    assert not (folder / PARTS).exists()


def test_the_folder_holds_the_result(machine: Result) -> None:
    """Goal: files and Python say the same. Method: bytes of the tables; reading the folder gives the result back."""
    folder = folder_of(machine)
    assert differing(files_of(folder), bytes_of(machine)) == []
    again = stored_result(folder, machine.scenario)
    for name, table in machine.tables.items():
        pd.testing.assert_frame_equal(again.tables[name], table, check_exact=True)
    assert again.sentence == machine.sentence
    assert again.warnings == machine.warnings
    assert again.timeline == machine.timeline


def test_resolved_scenario_and_manifest(machine: Result) -> None:
    """Goal: a folder tells how it was made. Method: its scenario loads again; its digests are those of tables."""
    folder = folder_of(machine)
    assert load_scenario(folder / "scenario.yaml") == machine.scenario
    manifest = read_manifest(folder)
    assert manifest["seed"] == 5
    assert manifest["tables"] == {name: table_digest(table) for name, table in read_tables(folder).items()}
    assert set(manifest["failure_draws"]) == {"0", "1", "2", "3"}
    assert [point["pod.fabric"] for point in manifest["points"]] == ["reconfigurable"] * 2 + ["static_aligned"] * 2
    assert {"python", "machine", "system"} <= set(manifest["platform"])
    assert manifest["wall_time_s"] > 0
    assert is_finished(folder, resolved_yaml(machine.scenario))


@pytest.mark.parametrize("which", ["machine", "served", "operated"])
def test_tables_equal_their_declarations(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Goal: no column is undeclared. Method: names and dtypes of every table as its file is read, swept keys behind."""
    result: Result = request.getfixturevalue(which)
    swept = [key for key in result.scenario.sweep if key not in IMPLIED_KEYS]
    for name, data in bytes_of(result).items():
        further = list(swept)
        if name == "summary":
            table = result.summary
            further = [key for key in result.scenario.sweep if key != "pod.fabric"]
        else:
            file = tmp_path / f"{name}.parquet"
            file.write_bytes(data)
            table = pd.read_parquet(file)
        spec = SPECS[name]
        assert list(table.columns) == [*spec.names, *further], name
        spec.check(table[spec.names])
        assert all(str(table[key].dtype) == "string" for key in further), name
        assert len(table) > 0, name


def test_every_declared_table_is_made_somewhere(machine: Result, served: Result, operated: Result) -> None:
    """Goal: no declaration is dead. Method: the three small runs have all of them between them, but `ideal`, which
    `opticube run --ideal` makes (tests/studies/test_whatif.py), `effects` (tests/run/test_effects.py), and those of
    several pods behind one queue (tests/shared/test_one_queue.py)."""
    elsewhere = {"ideal", "effects", "fleet_queues", "fleet_waits"}
    assert {*machine.tables, *served.tables, *operated.tables, *elsewhere} == set(SPECS)


def test_the_page_of_tables_is_up_to_date() -> None:
    """Goal: the documentation can not disagree with the code. Method: `docs/tables.md` is what the code writes."""
    message = "write it again: python -m sim.table_docs > docs/tables.md"
    assert (ROOT / "docs" / "tables.md").read_text(encoding="utf-8") == table_page(), message


def test_summary_agrees_with_the_tables(machine: Result) -> None:
    """Goal: the summary is no second truth. Method: every value of `availability` and `chip_hours` is in it once."""
    summary = machine.summary
    fabrics = dict(enumerate(["reconfigurable"] * 2 + ["static_aligned"] * 2))
    assert (summary["fabric"] == summary["point"].map(fabrics)).all()
    for form, rows in machine.availability.groupby("form"):
        mine = summary[summary["measure"] == form]
        assert sorted(mine["value"]) == sorted(rows["value"])
    for use, rows in machine.chip_hours.groupby("use"):
        assert sorted(summary[summary["measure"] == f"chip_hours_{use}"]["value"]) == sorted(rows["chip_hours"])
    keys = ["point", "slice_chips", "service", "measure"]
    assert not summary.duplicated(keys).any()


def test_timeline_is_a_chrome_trace(machine: Result, served: Result) -> None:
    """Goal: Perfetto can show it. Method: event kinds, and spans of a job that follow each other without overlap."""
    stored = json.loads((folder_of(machine) / "timeline.json").read_text())
    assert stored == machine.timeline
    for trace, jobs in ((machine.timeline, 4), (served.timeline, 2)):
        events = trace["traceEvents"]
        assert {event["ph"] for event in events} <= {"M", "X", "C"}
        names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
        assert sum(name.startswith("jobs of 256 chips") for name in names) == jobs
        assert len(set(names)) == len(names)
        ends: dict[tuple[int, int], int] = {}
        for event in (event for event in events if event["ph"] == "X"):
            row = event["pid"], event["tid"]
            assert event["ts"] >= ends.get(row, 0)
            assert event["dur"] > 0
            ends[row] = event["ts"] + event["dur"]
        assert max(ends.values()) == 10 * 86_400_000_000
    assert any(event["name"] == "tokens/s" for event in served.timeline["traceEvents"])


def test_an_existing_folder_is_refused(
    machine: Result, machine_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: nothing is overwritten. Method: a finished run, a folder of other files, a file in place of a folder."""
    taken = tmp_path / "taken"
    shutil.copytree(folder_of(machine), taken)
    before = {name: (taken / name).read_bytes() for name in every_name(taken)}
    for arguments in ([], ["--json"], ["--workers", "2"]):
        assert command_status(["run", str(machine_file), "--out", str(taken), *arguments]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err == f"{taken}: exists already; name another --out, or add --resume to go on with it\n"
    assert {name: (taken / name).read_bytes() for name in every_name(taken)} == before
    with pytest.raises(InputError, match="exists already"):
        run(machine.scenario, out=taken, workers=1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    assert command_status(["run", str(machine_file), "--out", str(tmp_path / "mine"), "--resume"]) == 2
    assert "holds files but no run" in capsys.readouterr().err
    assert every_name(tmp_path / "mine") == ["thesis.tex"]
    assert command_status(["run", str(machine_file), "--out", str(machine_file), "--resume"]) == 2
    assert "is a file" in capsys.readouterr().err
    assert command_status(["run", str(machine_file), "--out", str(machine_file / "below")]) == 2
    assert capsys.readouterr().err == f"{machine_file}: is a file; name a folder with --out\n"
    (tmp_path / "link").symlink_to("nowhere")
    assert command_status(["run", str(machine_file), "--out", str(tmp_path / "link")]) == 2
    assert "is a link that leads nowhere" in capsys.readouterr().err


def test_resume_of_a_finished_run(
    machine: Result, machine_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: nothing is done twice. Method: no byte, time or file changes; command and Python give the stored run."""
    folder = tmp_path / "run"
    shutil.copytree(folder_of(machine), folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert command_status(["run", str(machine_file), "--out", str(folder), "--resume"]) == 0
    assert "finished already, nothing to do" in capsys.readouterr().out
    assert command_status(["run", str(machine_file), "--out", str(folder), "--resume", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["folder"] == str(folder)
    assert document["sentence"] == machine.sentence
    again = run(machine.scenario, out=folder, resume=True)
    assert differing(bytes_of(again), bytes_of(machine)) == []
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_resume_of_a_missing_folder_starts(tmp_path: Path, promise_file: Path) -> None:
    """Goal: a script may always say `--resume`. Method: no folder there, nor its parent; then one with a lock alone."""
    wanted = bytes_of(run(loaded(PROMISE), workers=1))
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".lock").touch()
    (tmp_path / "killed" / ".scenario.yaml.1.part").write_text("na")
    for out in (tmp_path / "deep" / "run", tmp_path / "killed"):
        assert command_status(["run", str(promise_file), "--out", str(out), "--resume", "--workers", "1"]) == 0
        assert differing(files_of(out), wanted) == []
        assert ".scenario.yaml.1.part" not in every_name(out)


def test_resume_with_another_scenario(
    machine: Result, machine_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: two scenarios never mix in one folder. Method: another seed on a finished run."""
    folder = tmp_path / "run"
    shutil.copytree(folder_of(machine), folder)
    assert command_status(["run", str(machine_file), "--set", "run.seed=6", "--out", str(folder), "--resume"]) == 2
    assert "holds another scenario than the one to be run; name another --out" in capsys.readouterr().err
    (folder / "scenario.yaml").write_bytes(b"\xff\xfe")
    assert command_status(["run", str(machine_file), "--out", str(folder), "--resume"]) == 2
    assert "holds another scenario than the one to be run; name another --out" in capsys.readouterr().err


HOLDER = """
import sys, time
from pathlib import Path
from sim.run_folder import open_run_folder
with open_run_folder(Path(sys.argv[1]), "x", resume=True, scenario_yaml=Path(sys.argv[2]).read_text()):
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_runs_at_once(tmp_path: Path, machine: Result) -> None:
    """Goal: one run per folder, freed at death. Method: another process holds it and is killed; then a second opening
    in this process."""
    folder, scenario = tmp_path / "run", tmp_path / "scenario.yaml"
    scenario.write_text(resolved_yaml(machine.scenario))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), str(scenario)], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(InputError, match="another run is writing here"):
        run(machine.scenario, out=folder, resume=True, workers=1)
    holder.kill()
    holder.communicate()
    with open_run_folder(folder, "x", resume=True, scenario_yaml=scenario.read_text()):
        for _ in range(2):
            with pytest.raises(InputError, match="another run is writing here"):
                run(machine.scenario, out=folder, resume=True, workers=1)
    with open_run_folder(folder, "x", resume=True, scenario_yaml=scenario.read_text()):
        pass


NOBODY = """
import os, sys
from sim.cli import command_status
from sim import commands
file, *places = sys.argv[1:]
assert command_status(["validate", file]) == 0
if os.geteuid() == 0:
    os.seteuid(65534)
for place in places:
    assert command_status(["run", file, "--workers", "1", "--out", place, "--json"]) == 4
"""


def test_a_folder_that_can_not_be_written(tmp_path: Path, promise_file: Path) -> None:
    """Goal: no permission is status 4, and nothing is left. Method: a read-only folder (root becomes nobody)."""
    place = tmp_path / "place"
    place.mkdir(mode=0o555)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.name.startswith(("test_", "popen-", "pytest-")):  # the folders that pytest makes
            folder.chmod(0o755)
    promise_file.chmod(0o644)
    places = [str(place / "run"), str(place)]
    command = [sys.executable, "-c", NOBODY, str(promise_file), *places]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == [places[0], f"{places[1]}/.lock"]
    assert all("permission" in line for line in lines)
    assert every_name(place) == []


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))


def test_a_disk_that_fills_up(tmp_path: Path, promise_file: Path) -> None:
    """Goal: a full disk is status 4 and loses nothing that was whole. Method: no file over 3,000 bytes; then more."""
    out = tmp_path / "run"
    process = opticube(
        "run", str(promise_file), "--out", str(out), "--workers", "1", cwd=tmp_path, preexec_fn=_small_files
    )
    _, errors = process.communicate()
    assert process.returncode == 4, errors
    assert "can not be written" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    assert every_name(out) == [".lock", "scenario.yaml"]
    assert command_status(["run", str(promise_file), "--out", str(out), "--resume", "--workers", "1"]) == 0
    assert differing(files_of(out), bytes_of(run(loaded(PROMISE), workers=1))) == []


def test_several_scenarios(tmp_path: Path, promise_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: each run has its folder below `--out`. Method: two scenarios; the same again; twice the same name."""
    other, out = tmp_path / "other.yaml", tmp_path / "runs"
    other.write_text(PROMISE.replace("name: promise", "name: other"))
    both = ["run", str(promise_file), str(other), "--out", str(out), "--workers", "1", "--json"]
    assert command_status(both) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["folder"] for each in document["runs"]] == [str(out / "promise"), str(out / "other")]
    assert {path.name for path in out.iterdir()} == {"promise", "other"}
    assert (out / "other" / "manifest.json").exists()
    assert command_status(both) == 2
    assert "exists already" in capsys.readouterr().err
    twice = ["run", str(other), str(other), "--out", str(tmp_path / "twice")]
    assert command_status(twice) == 2
    assert "two scenarios are called other" in capsys.readouterr().err
    assert not (tmp_path / "twice").exists()


def test_a_second_folder_that_is_taken_stops_the_first_run(tmp_path: Path, promise_file: Path) -> None:
    """Goal: a mistake is told before hours of work. Method: the second of two scenarios has its folder already."""
    other = tmp_path / "other.yaml"
    other.write_text(PROMISE.replace("name: promise", "name: other"))
    (tmp_path / "runs" / "other").mkdir(parents=True)
    (tmp_path / "runs" / "other" / "note").touch()
    assert command_status(["run", str(promise_file), str(other), "--out", str(tmp_path / "runs")]) == 2
    assert every_name(tmp_path / "runs") == ["other/note"]


def test_folders_are_numbered(tmp_path: Path, promise_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a run without `--out` is always new. Method: two runs, a gap in the numbers, names that look alike."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "promise-7-old").mkdir(parents=True)
    (tmp_path / "runs" / "promise-3").mkdir()
    for _ in range(2):
        assert command_status(["run", "promise.yaml", "--workers", "1"]) == 0
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["promise-3", "promise-4", "promise-5", "promise-7-old"]


IMPOSSIBLE = SERVED.replace("ttft: 2 s", "ttft: 1 us")


def test_an_impossible_service_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: bad input writes nothing, even where the run finds it out. Method: a first token within a microsecond."""
    (tmp_path / "served.yaml").write_text(IMPOSSIBLE)
    assert command_status(["run", str(tmp_path / "served.yaml"), "--out", str(tmp_path / "run"), "--workers", "1"]) == 2
    assert "serving.services.0.load: no rate of requests meets the limits of chat" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda run: (run / "manifest.json").unlink(), "the run is not finished; finish it with `opticube run"),
        (lambda run: (run / "manifest.json").write_text("{"), "not the folder of a run"),
        (lambda run: (run / "manifest.json").write_text("[]"), "not a manifest"),
        (lambda run: (run / "manifest.json").write_text("{}"), "not a manifest"),
        (lambda run: (run / "manifest.json").write_text("[" * 100_000), "not the folder of a run"),
        (lambda run: (run / "tables" / "availability.parquet").write_bytes(b"PAR1"), "can not be read as a table"),
        (lambda run: (run / "summary.csv").unlink(), "summary.csv: can not be read as a table"),
        (shutil.rmtree, "not the folder of a run"),
    ],
)
def test_damaged_folders(
    spoil: Callable[[Path], object], says: str, machine: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a folder that is no run is refused in words. Method: spoil a run; `report` and `compare` tell what."""
    folder = tmp_path / "run"
    shutil.copytree(folder_of(machine), folder)
    spoil(folder)
    commands = [["report", str(folder)], ["compare", str(folder_of(machine)), str(folder)]]
    if folder.exists():
        commands.append(["check", str(folder), "--baseline", str(tmp_path / "base.json"), "--update"])
    for arguments in commands:
        assert command_status(arguments) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert says in printed.err
        assert len(printed.err.splitlines()) == 1


def test_termination_is_an_interruption(tmp_path: Path, machine_file: Path) -> None:
    """Goal: a scheduler's SIGTERM is status 3. Method: a long run that is terminated once it works."""
    text = machine_file.read_text().replace("horizon: 30 d, replications: 3", "horizon: 3650 d, replications: 400")
    machine_file.write_text(text)
    out = tmp_path / "run"
    process = opticube("run", str(machine_file), "--out", str(out), "--workers", "1", cwd=tmp_path)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("failure histories: 1 of")
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    _, errors = process.communicate()
    assert time.monotonic() - began < 5.0
    assert process.returncode == 3
    assert errors.splitlines()[-1] == (
        f"interrupted: finished sweep points are kept in {out}; go on with "
        f"`opticube run {machine_file} --workers 1 --out {out} --resume`"
    )
    assert every_name(out) == [".lock", "scenario.yaml"]


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    """Goal: `--out $(mktemp -d)` works: there is nothing to overwrite. Method: an empty folder, from Python."""
    (tmp_path / "empty").mkdir()
    result = run(loaded(PROMISE), out=tmp_path / "empty", workers=1)
    assert result.folder == tmp_path / "empty"
    assert result.promise["cubes"].notna().all()
