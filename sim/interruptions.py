"""Ctrl-C and SIGTERM: the command ends within a second, whatever it does, and says how to go on. Imports nothing heavy.

Python answers a signal between two of its instructions, by KeyboardInterrupt in the main thread. That can take long (a
call into a library) or fail (what is raised in the midst of an import, or in a callback, may be swallowed). So a thread
is woken by the signal itself and ends the process when `PATIENCE_S` later it is still there. Nothing is lost by that:
files are written whole or not at all, and a run that was killed goes on with `--resume` like any other.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType

PATIENCE_S = 0.5
"""Time for an orderly end."""
INTERRUPTED = 3
"""`ExitStatus.INTERRUPTED`."""
NOTHING_KEPT = "interrupted before it was done; run it again"
SHOW_CURSOR = "\x1b[?25h"
ENDING = (signal.SIGINT, signal.SIGTERM)


class _Answer:
    """What is said of an interruption, and whether this process answers signals already."""

    line = NOTHING_KEPT
    process = 0


def when_interrupted(line: str) -> None:
    """From now on an interruption is answered with this line: what is kept, and how to go on."""
    _Answer.line = line


def interruption_line() -> str:
    """The line that tells what is kept, and how to go on."""
    return _Answer.line


def answer_signals() -> None:
    """From now on SIGINT and SIGTERM end this process in time; to be called in the main thread."""
    if _Answer.process == os.getpid():
        return
    _Answer.process = os.getpid()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` and jobs in the background stay deaf
            signal.signal(number, _interrupt)
    threading.Thread(target=_end_late, args=(reading,), daemon=True).start()


def end_interrupted() -> None:
    """Say what is kept and how to go on, and end this process at once."""
    if sys.stderr.isatty():
        sys.stderr.write(SHOW_CURSOR)  # a progress bar had hidden it
    sys.stderr.write(f"{interruption_line()}\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)  # one is enough: the end is certain
    raise KeyboardInterrupt


def _end_late(reading: int) -> None:
    """Wait for a signal that ends; give the main thread a while, and end the process."""
    while not set(os.read(reading, 64)) & set(ENDING):
        pass
    time.sleep(PATIENCE_S)
    end_interrupted()
