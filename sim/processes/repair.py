"""Repair: crews that work on one component at a time, switches first; or as many crews as are needed."""

from __future__ import annotations

from collections.abc import Generator

from simpy.core import Environment
from simpy.events import Event
from simpy.resources.resource import PriorityResource

from sim.condition import KINDS
from sim.histories import ComponentKind
from sim.policies import RepairPolicy
from sim.processes.health import OutageParts
from sim.processes.order import Order, Timer, priority


class Crews:
    """A limited number of crews with one queue: by the rank of the kind, then in order of asking."""

    def __init__(self, env: Environment, policy: RepairPolicy) -> None:
        """Raise ValueError when the policy knows no limit (then nobody ever queues)."""
        if policy.crews is None:
            raise ValueError("crews without limit need no queue")
        self._env = env
        self._policy = policy
        self._crews = PriorityResource(env, capacity=policy.crews)

    def mend(self, kind: ComponentKind, component: int, parts: OutageParts) -> Generator[Event, None, None]:
        """What follows detection, up to the instant at which the component is back: to be joined by `yield from`."""
        place = priority(Order.REPAIR, KINDS.index(kind), component)
        yield Timer(self._env, parts.diagnosis_us, place)
        with self._crews.request(priority=self._policy.rank(kind)) as crew:
            yield crew
            yield Timer(self._env, parts.work_us, place)
        yield Timer(self._env, parts.burn_in_us, place)
