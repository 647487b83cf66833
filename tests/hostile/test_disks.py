"""Disks that are full, folders that are read-only: a clear error, status 4, earlier results whole, nothing left."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import sim.report.write
from sim.cli import command_status
from sim.files import write_whole
from sim.simulation import run
from tests.run.cases import MACHINE, PROMISE, bytes_of, differing, every_name, files_of, loaded
from topology.errors import EnvironmentFault, InputError

SMALL = loaded(MACHINE, "study.delivered=null", "sweep={pod.fabric: [any_host, reconfigurable]}")


class FullDisk:
    """`os.fsync` of a disk that is full after so many files, then for ever."""

    def __init__(self, files: int, number: int) -> None:
        self.left, self.number = files, number

    def __call__(self, descriptor: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(self.number, os.strerror(self.number))


def _refusal_of_a_run(out: Path) -> str | None:
    """What a run that goes on in a folder is refused with; None where it finishes."""
    try:
        run(SMALL, out=out, workers=1, resume=out.exists())
    except EnvironmentFault as error:
        return str(error)
    return None


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim.report.write, "write_report", lambda *arguments, **options: None)


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_the_disk_fills_up_at_any_file(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: whenever a disk fills up, what is there is whole, and the run goes on when there is room again. Method: the
    lowest call that writes fails at the k-th file, for every k; names, bytes and words; then `resume`."""
    wanted, out = bytes_of(run(SMALL, workers=1)), tmp_path / "run"
    refused = 0
    for files in range(0, 40, 3):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", FullDisk(files, number))
            told = _refusal_of_a_run(out)
        if told is None:
            break
        refused += 1
        assert "can not be written: " in told
        assert str(out) in told
        names = every_name(out)
        assert [name for name in names if name.endswith(".part") or "/." in name] == []
        whole = {name: data for name, data in wanted.items() if f"tables/{name}.parquet" in names}
        assert {name: (out / "tables" / f"{name}.parquet").read_bytes() for name in whole} == whole
        assert "manifest.json" not in names
    assert refused >= 3
    run(SMALL, out=out, workers=1, resume=True)
    assert differing(files_of(out), wanted) == []


def test_a_file_that_can_not_be_written_anew_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a baseline, an export or a picture is never lost to a full disk, or to Ctrl-C. Method: the write fails, or
    is interrupted, at each of its steps; the old file and nothing else is there."""
    file = tmp_path / "base.json"
    write_whole(file, "old")

    def refused(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def pressed(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "open")):
        for act, told in ((refused, EnvironmentFault), (pressed, KeyboardInterrupt)):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, act)
                with pytest.raises(told) as caught:
                    write_whole(file, "new")
            assert told is KeyboardInterrupt or "the disk is full: free some space" in str(caught.value)
            assert file.read_text() == "old"
            assert every_name(tmp_path) == ["base.json"]
    with pytest.raises(InputError, match="the name is too long; write a shorter one"):
        write_whole(tmp_path / ("x" * 300), "new")


def test_devices_and_pipes_are_written_into(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Goal: `--out /dev/stdout` prints, `/dev/null` forgets, and both are still what they were. Method: write to them
    and to a pipe; a device that is full is a full disk."""
    before = {name: Path(name).lstat().st_ino for name in ("/dev/null", "/dev/stdout")}
    for name in before:
        write_whole(Path(name), "said\n")
    assert capfd.readouterr().out == "said\n"
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", "said")
    assert os.read(reading, 100) == b"said"
    os.close(reading)
    with pytest.raises(EnvironmentFault, match="/dev/full: can not be written: the disk is full"):
        write_whole(Path("/dev/full"), "said")
    assert {name: Path(name).lstat().st_ino for name in before} == before


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of 64 KiB, in memory. Only root can mount one: elsewhere the tests above hold the same, by the errors
    that such disks give at every write."""
    place = tmp_path / "tiny"
    place.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if mount is None or os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a disk; the errors of full and read-only disks are tried without one too")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_real_disk_that_is_full_and_then_read_only(
    tiny_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: the words and the cleanliness of real disks. Method: a mounted disk of 64 KiB: a run with pictures does not
    fit; it is mounted read-only: no export, no baseline, no new run; the finished run on it stays as it was."""
    (tmp_path / "promise.yaml").write_text(PROMISE)
    with monkeypatch.context() as patch:
        patch.setattr(sim.report.write, "write_report", lambda *arguments, **options: None)
        run(loaded(PROMISE), out=tiny_disk / "small", workers=1)
    before = {name: (tiny_disk / name).read_bytes() for name in every_name(tiny_disk)}
    out, small = tiny_disk / "large", str(tiny_disk / "small")
    start = ["run", str(tmp_path / "promise.yaml"), "--out", str(out), "--workers", "1", "--json"]
    assert command_status(start) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(str(out))
    assert line.endswith("can not be written: the disk is full: free some space, or write elsewhere")
    assert "manifest.json" not in every_name(out)
    assert [name for name in every_name(out) if name.endswith(".part")] == []
    assert {name: (tiny_disk / name).read_bytes() for name in before} == before
    shutil.rmtree(out)
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    base = ["--baseline", str(tiny_disk / "base.json"), "--update"]
    for command in (start, ["check", small, *base], ["export", small, "--format", "openmetrics"]):
        assert command_status(command) == 4
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith("can not be written: read-only: write elsewhere")
    assert {name: (tiny_disk / name).read_bytes() for name in every_name(tiny_disk)} == before
    assert command_status(["compare", small, small]) == 0
