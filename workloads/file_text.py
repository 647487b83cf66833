"""Texts of logs and traces, packed or not, numbers in them, and the list of what is wrong with them."""

from __future__ import annotations

import errno
import gzip
import math
import re
import stat
import zlib
from decimal import Decimal
from pathlib import Path

from topology.errors import Fault, InputError, refuse

MAX_FAULTS = 20
"""Faults reported of one file; more are counted only."""

MOST_BYTES = 2**30
"""A file is no longer than this, as text: a small packed file may hold more than the memory does."""

MAX_S = 1e12
"""Times beyond this do not fit the clock."""

_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?")


def read_log_text(path: str | Path, published: str, what: str = "log") -> str:
    """The text of a file, unpacked where it is packed; InputError says where it is `published` when missing.

    `what` the file is: a log, a trace.
    """
    file = Path(path)
    try:
        data = bounded_bytes(file, packed=file.suffix == ".gz" or None)
        if len(data) > MOST_BYTES:
            raise refuse(str(file), f"more than {MOST_BYTES >> 20:,} MiB of text", f"give a shorter {what}")
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise refuse(str(file), "no such file", f"the {what} is published at {published}") from None
    except UnicodeDecodeError:
        raise refuse(str(file), "not a UTF-8 text", f"give the {what} itself, as text or packed as .gz") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise refuse(str(file), "not a complete gzip file", f"fetch it again, or give the {what} unpacked") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refuse(str(file), f"can not be read ({reason})", "give the path of a readable file") from None


def bounded_bytes(path: Path, *, packed: bool | None = None, most: int = MOST_BYTES) -> bytes:
    """The first `most` bytes of a regular file and one more, if there is one; unpacked where it is `packed`.

    None: packed where it begins as gzip does. OSError also for a device or a pipe, which may never end.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "no regular file")
    with path.open("rb") as file:
        if packed is None:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
        if not packed:
            return file.read(most + 1)
        with gzip.open(file) as unpacked:
            return unpacked.read(most + 1)


def number_of(text: str, name: str) -> float:
    """A finite decimal number of a size that fits the clock; ValueError says what is wrong with field `name`."""
    stripped = text.strip()
    value = float(stripped) if _NUMBER.fullmatch(stripped) else math.nan
    if not abs(value) <= MAX_S:
        shown = stripped[:40]
        raise ValueError(f"{name} of {shown!r} is {'out of range' if math.isfinite(value) else 'no number'}")
    return value


def whole_number_of(text: str, name: str) -> int:
    """The same for a number that has to be whole."""
    value = number_of(text, name)
    if value != int(value):
        raise ValueError(f"{name} of {text.strip()[:40]!r} is not whole")
    return int(value)


def nanoseconds_of(value: object, name: str, unit_ns: int) -> int:
    """Whole nanoseconds, to the nearest, of a decimal number (or its text) of units of `unit_ns`.

    Exact, however many digits the file has. ValueError says what is wrong with field `name`.
    """
    text = value.strip() if isinstance(value, str) else value
    known = isinstance(text, int | Decimal) and not isinstance(text, bool)
    if not known and not (isinstance(text, str) and _NUMBER.fullmatch(text)):
        raise ValueError(f"{name} of {shown_value(value)} is no number")
    try:
        exact = Decimal(str(text)) * unit_ns
    except ArithmeticError:
        raise ValueError(f"{name} of {shown_value(value)} is out of range") from None
    if not exact.is_finite() or abs(exact) > MAX_S * 1_000_000_000:
        raise ValueError(f"{name} of {shown_value(value)} is out of range")
    return round(exact)


def shown_value(value: object) -> str:
    """A value of a file as it is shown in a fault: no longer than forty characters."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


class FaultList:
    """Faults of one file by line, up to `MAX_FAULTS`; `lines` is what the file calls them (lines, rows)."""

    def __init__(self, path: str | Path, lines: str = "lines") -> None:
        """No faults yet."""
        self._path = path
        self._lines = lines
        self._faults: list[Fault] = []
        self._more = 0

    def add(self, line: int, what: str, write: str | None = None) -> None:
        """Note a fault of a line."""
        if len(self._faults) < MAX_FAULTS:
            advice = f"mend or remove the {self._lines[:-1]}" if write is None else write
            self._faults.append(Fault(f"{self._path}:{line}", what, advice))
        else:
            self._more += 1

    def raise_if_any(self) -> None:
        """Raise InputError with all faults, if there are any."""
        if self._more:
            self._faults.append(
                Fault(str(self._path), f"{self._more} more faulty {self._lines}", "mend or remove them")
            )
        if self._faults:
            raise InputError(self._faults)
