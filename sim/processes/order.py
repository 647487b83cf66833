"""The order of events at one instant, and timers that keep it.

Stage ends, failures and drains, detections, repairs and returns, arrivals, ticks, one scheduling pass; then kind of
component, index, job. SimPy orders its heap by (time, priority, running number), and any whole number will do as a
priority; what SimPy itself schedules (the start and end of processes, events that are triggered) has priority 0 or 1
and so comes at once.
"""

from __future__ import annotations

from enum import IntEnum

from simpy.core import Environment
from simpy.events import Event, EventPriority


class Order(IntEnum):
    """Kinds of events in their order at one instant."""

    STAGE_END = 2
    FAILURE = 3
    DETECTION = 4
    REPAIR = 5
    ARRIVAL = 6
    TICK = 7
    SCHEDULE = 8


def priority(order: Order, kind: int = 0, index: int = 0) -> EventPriority:
    """The priority of an event: its order, then the number of its kind of component, then its index or job."""
    return EventPriority((order << 48) | (kind << 40) | index)


class Timer(Event):
    """A timeout of `delay_us` whole microseconds with a place in the order of its instant."""

    def __init__(self, env: Environment, delay_us: int, place: EventPriority) -> None:
        """Schedule the timer; it is processed `delay_us` from now."""
        self.env = env
        self.callbacks = []
        self._ok = True
        self._value = None
        env.schedule(self, place, delay_us)
