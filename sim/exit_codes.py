"""Exit status of the command, and the one place that maps what went wrong to it. Imports nothing heavy.

0 done; 1 an expectation, check or comparison failed; 2 bad input or an impossible configuration, one line per fault;
3 interrupted, resumable; 4 the computer failed us; 70 our fault, with what to report. Never a traceback.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

from sim.files import NAMES, short_name
from sim.interruptions import interruption_line
from topology.errors import EnvironmentFault, Fault, InputError


class ExitStatus(IntEnum):
    """Exit status of `opticube`."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    INTERRUPTED = 3
    ENVIRONMENT = 4
    OUR_FAULT = 70


PACKAGES = ("sim", "topology", "ocs", "workloads")
LINE_MAX = 1_500
"""Lines of faults are shorter than this."""


def explain(error: BaseException, arguments: Sequence[str]) -> tuple[ExitStatus, list[str]]:
    """The exit status for an exception, and the lines to print on standard error."""
    if isinstance(error, InputError):
        return ExitStatus.BAD_INPUT, [_one_line(str(fault)) for fault in error.faults]
    if isinstance(error, KeyboardInterrupt):
        return ExitStatus.INTERRUPTED, [interruption_line()]
    if isinstance(error, BrokenPipeError):
        return ExitStatus.ENVIRONMENT, []
    if isinstance(error, EnvironmentFault):
        return ExitStatus.ENVIRONMENT, [_one_line(str(error))]
    if isinstance(error, MemoryError):
        return ExitStatus.ENVIRONMENT, ["out of memory: run fewer workers (`--workers 1`) or a smaller scenario"]
    if isinstance(error, OSError):
        if error.errno in NAMES:
            fault = Fault(short_name(error.filename or "a name"), *NAMES[error.errno])
            return ExitStatus.BAD_INPUT, [_one_line(str(fault))]
        return ExitStatus.ENVIRONMENT, [_os_words(error)]
    if type(error).__name__ in ("BrokenProcessPool", "BrokenExecutor"):
        return ExitStatus.ENVIRONMENT, ["a worker process died (out of memory?): try fewer with `--workers 1`"]
    return ExitStatus.OUR_FAULT, _report(error, arguments)


def _one_line(text: str) -> str:
    """On one line, as short as any of ours is: what is longer repeats what was given."""
    line = " ".join(text.split())
    return line if len(line) < LINE_MAX else f"{line[: LINE_MAX // 2 - 10]} ... {line[-LINE_MAX // 2 + 10 :]}"


def _os_words(error: OSError) -> str:
    """What the operating system refused, and what may help."""
    where = f"{error.filename}: " if error.filename else ""
    what = error.strerror or str(error)
    hints = {
        errno.ENOSPC: "free some space, or write elsewhere with `--out`",
        errno.EDQUOT: "free some space, or write elsewhere with `--out`",
        errno.EACCES: "check the permissions, or write elsewhere with `--out`",
        errno.EPERM: "check the permissions, or write elsewhere with `--out`",
        errno.EROFS: "write elsewhere with `--out`",
    }
    hint = hints.get(error.errno or 0)
    return _one_line(f"{where}{what}" + (f"; {hint}" if hint else ""))


def _report(error: BaseException, arguments: Sequence[str]) -> list[str]:
    """What to send us about a fault of ours, in a few lines; all of it with OPTICUBE_DEBUG=1."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("opticube")
    except PackageNotFoundError:
        own = "unknown"
    root = Path(__file__).resolve().parents[1]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(root)]
    ours = [frame for frame in frames if Path(frame.filename).relative_to(root).parts[0] in PACKAGES]
    steps = [f"{Path(frame.filename).relative_to(root)}:{frame.lineno} {frame.name}" for frame in ours[-4:]]
    lines = [
        f"this is a fault of opticube: {type(error).__name__}: {_one_line(str(error)) or 'no message'}",
        "please report it with these lines and the scenario:",
        f"  command: opticube {' '.join(arguments)}",
        f"  at: {' > '.join(steps) or 'unknown place'}",
        f"  opticube {own}, Python {platform.python_version()}, {sys.platform}",
    ]
    if os.environ.get("OPTICUBE_DEBUG") == "1":
        lines += "".join(traceback.format_exception(error)).splitlines()
    return lines
