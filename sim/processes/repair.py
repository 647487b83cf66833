"""Repair: crews that work on one component at a time, switches first, and spare parts; or as many as are needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

from simpy.core import Environment
from simpy.events import Event
from simpy.resources.resource import PriorityResource

from sim.condition import KINDS
from sim.histories import ComponentKind
from sim.policies import RepairPolicy
from sim.processes.health import OutageParts, to_us
from sim.processes.order import Order, Timer, priority
from sim.repair_policies import Parts

Work = Generator[Event, None, None]


class Shelf:
    """Spare parts of one kind: first asked, first served; each part that is taken is ordered anew."""

    def __init__(self, env: Environment, kind: ComponentKind, policy: Parts) -> None:
        """A full shelf."""
        self._env = env
        self._place = priority(Order.REPAIR, KINDS.index(kind))
        self._lead_us = to_us(policy.lead_time)
        self.on_hand = policy.stock
        self.waiting: deque[Event] = deque()

    def take(self) -> Work:
        """Take a part, after waiting for one if need be: to be joined by `yield from`."""
        order = Timer(self._env, self._lead_us, self._place)
        assert order.callbacks is not None
        order.callbacks.append(self._arrives)
        if self.on_hand:
            self.on_hand -= 1
            return
        part = Event(self._env)
        self.waiting.append(part)
        yield part

    def _arrives(self, _: Event) -> None:
        if self.waiting:
            self.waiting.popleft().succeed()
        else:
            self.on_hand += 1


class Workshop:
    """Crews and spare parts. Whoever waits for a crew is served by the rank of its kind, then in order of asking."""

    def __init__(self, env: Environment, policy: RepairPolicy) -> None:
        """All crews idle, all shelves full."""
        self._env = env
        self._policy = policy
        common = None if policy.crews is None else PriorityResource(env, capacity=policy.crews)
        self._crews: dict[ComponentKind, PriorityResource | None] = {}
        self._shelves: dict[ComponentKind, Shelf] = {}
        for kind in KINDS:
            own: int | None = getattr(policy.crews_of, kind)
            self._crews[kind] = common if own is None else PriorityResource(env, capacity=own)
            parts: Parts | None = getattr(policy.parts, kind)
            if parts is not None:
                self._shelves[kind] = Shelf(env, kind, parts)

    def mend(self, kind: ComponentKind, component: int, parts: OutageParts) -> Work:
        """What follows detection, up to the instant at which the component is back: to be joined by `yield from`."""
        place = priority(Order.REPAIR, KINDS.index(kind), component)
        yield Timer(self._env, parts.diagnosis_us, place)
        if parts.automated_us:
            yield Timer(self._env, parts.automated_us, place)
        if parts.work_us or not parts.automated_us:
            if kind in self._shelves:
                yield from self._shelves[kind].take()
            crews = self._crews[kind]
            if crews is None:
                yield Timer(self._env, parts.work_us, place)
            else:
                with crews.request(priority=self._policy.rank(kind)) as crew:
                    yield crew
                    yield Timer(self._env, parts.work_us, place)
        yield Timer(self._env, parts.burn_in_us, place)
