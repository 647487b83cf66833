"""The exceptions of opticube. Every fault says where it is, what is wrong and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class OpticubeError(Exception):
    """Base of all errors that opticube raises on purpose."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with an input: `where` (file, line or path), `what`, and what to `write`."""

    where: str
    what: str
    write: str

    def __str__(self) -> str:
        """One line for the terminal."""
        return f"{self.where}: {self.what}; {self.write}" if self.write else f"{self.where}: {self.what}"


class InputError(OpticubeError):
    """Bad input or an impossible configuration (exit status 2); `faults` holds one entry per thing to mend."""

    def __init__(self, faults: Fault | Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


def refuse(where: str, what: str, write: str = "") -> InputError:
    """Return an `InputError` with a single fault, to be raised by the caller."""
    return InputError(Fault(where, what, write))


class EnvironmentFault(OpticubeError):  # noqa: N818
    """The computer failed us: disk full, no permission, a worker lost (exit status 4)."""
