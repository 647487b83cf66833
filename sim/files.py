"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from topology.errors import EnvironmentFault, Fault, OpticubeError, refuse

DEVICES = Path("/dev")


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file so that it is there whole or not at all; raises EnvironmentFault when the disk refuses.

    Devices and pipes (`/dev/stdout`, `/dev/null`) are written into: a file must not take their place.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    if _is_device(path):
        _write_into(path, data)
        return
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException as error:  # also Ctrl-C in the midst of it
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise disk_fault(path, error) from error
        raise


def _is_device(path: Path) -> bool:
    try:
        return path.parent == DEVICES or (path.exists() and not path.is_file() and not path.is_dir())
    except OSError:
        return False  # whatever is wrong with the name is told when it is written


def _write_into(path: Path, data: bytes) -> None:
    try:
        with path.open("wb") as file:
            file.write(data)
    except OSError as error:
        raise disk_fault(path, error) from error


def picture_faults(path: Path | None) -> list[Fault]:
    """What is wrong with the name of a picture, told before anything is computed for it."""
    if path is None:
        return []
    shown = path.name[-40:]
    if path.suffix not in (".png", ".svg"):
        return [Fault("--picture", f"`{shown}` is no picture", "write a name in .png or .svg")]
    if path.is_dir():
        return [Fault("--picture", f"`{shown}` is a folder", "write the name of a file")]
    return []


NAMES = {
    errno.ENAMETOOLONG: ("the name is too long", "write a shorter one"),
    errno.ELOOP: ("links lead in a circle", "name another place"),
    errno.EISDIR: ("this is a folder", "write the name of a file"),
    errno.ENOTDIR: ("part of the path is a file", "name another place"),
}
"""What the system refuses because of the name that was written, and what to write: bad input, no fault of the disk."""
REASONS = {
    errno.ENOSPC: "the disk is full: free some space, or write elsewhere",
    errno.EDQUOT: "your quota is used up: free some space, or write elsewhere",
    errno.EFBIG: "the file is larger than is allowed here: write elsewhere",
    errno.EACCES: "no permission: write elsewhere, or change it",
    errno.EPERM: "no permission: write elsewhere, or change it",
    errno.EROFS: "read-only: write elsewhere",
}


def disk_fault(path: Path, error: OSError) -> OpticubeError:
    """The computer's refusal in words: full, not permitted, or whatever it says; InputError where the name is wrong."""
    if error.errno in NAMES:
        return refuse(short_name(path), *NAMES[error.errno])
    reason = REASONS.get(error.errno or 0, error.strerror or str(error))
    return EnvironmentFault(f"{path}: can not be written: {reason}")


def short_name(path: str | bytes | Path) -> str:
    """A path as it is printed: one that is longer than any should be is cut."""
    text = os.fsdecode(path)
    return text if len(text) <= 300 else f"{text[:140]}...{text[-140:]}"
