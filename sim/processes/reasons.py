"""Components that can be out for several reasons at once: down while any reason lasts, known once any is known."""

from __future__ import annotations

from typing import Protocol

from sim.histories import ComponentKind
from sim.machine import Machine

OCS = ComponentKind.OCS


class Components(Protocol):
    """The verbs of single components: those of the machine, or of `Reasons` in front of it."""

    def fail(self, kind: ComponentKind, component: int, cause: str = "") -> None:
        """A component goes down; nobody knows yet."""

    def detect(self, kind: ComponentKind, component: int) -> None:
        """A component that is down becomes believed down."""

    def repair(self, kind: ComponentKind, component: int) -> None:
        """A component comes back, and everybody knows."""


class Reasons:
    """Counts the reasons that keep a component out; the machine hears of the first, and of the end of the last.

    The log bears the cause of the first. Each reason calls `fail`, at most once `detect`, and `repair`; a planned one
    of a switch calls `drain_switch` and `undrain_switch`. What began as a drain ends as one.
    """

    def __init__(self, machine: Machine) -> None:
        """Nothing is out."""
        self._machine = machine
        self._count: dict[tuple[ComponentKind, int], int] = {}
        self._known: set[tuple[ComponentKind, int]] = set()
        self._drained: set[int] = set()

    def fail(self, kind: ComponentKind, component: int, cause: str = "") -> None:
        """One more reason; the first takes the component down."""
        if self._add(kind, component):
            self._machine.fail(kind, component, cause)

    def detect(self, kind: ComponentKind, component: int) -> None:
        """A reason becomes known; the first that does lets the component be believed down."""
        assert self._count.get((kind, component)), f"{kind} {component} is not out: nothing to detect"
        if (kind, component) not in self._known:
            self._known.add((kind, component))
            self._machine.detect(kind, component)

    def repair(self, kind: ComponentKind, component: int) -> None:
        """A reason ends; with the last the component comes back."""
        count = self._count.pop((kind, component))
        if count > 1:
            self._count[kind, component] = count - 1
            return
        self._known.discard((kind, component))
        if kind is OCS and component in self._drained:
            self._drained.remove(component)
            self._machine.undrain_switch(component)
        else:
            self._machine.repair(kind, component)

    def drain_switch(self, switch: int) -> None:
        """A planned reason, known to all."""
        if self._add(OCS, switch):
            self._drained.add(switch)
            self._known.add((OCS, switch))
            self._machine.drain_switch(switch)
        else:
            self._machine.flaws.noticed.pop((OCS, switch), None)

    def undrain_switch(self, switch: int) -> None:
        """The planned reason ends."""
        self.repair(OCS, switch)

    def _add(self, kind: ComponentKind, component: int) -> bool:
        """Count one more reason; return whether it is the only one."""
        self._count[kind, component] = self._count.get((kind, component), 0) + 1
        return self._count[kind, component] == 1
