"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from topology.errors import EnvironmentFault


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file so that it is there whole or not at all; raises EnvironmentFault when the disk refuses."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise disk_fault(path, error) from error


def disk_fault(path: Path, error: OSError) -> EnvironmentFault:
    """The computer's refusal in words: full, not permitted, or whatever it says."""
    reason = {errno.ENOSPC: "the disk is full", errno.EACCES: "no permission", errno.EROFS: "read-only"}
    return EnvironmentFault(f"{path}: can not be written: {reason.get(error.errno or 0, error.strerror or str(error))}")
