"""Rolling maintenance: cubes and switches are drained one after the other, with notice and a limit at once.

A cube that is due is closed: jobs that did not leave during the notice are lost there, and the drain begins when the
last has gone. A switch goes dark when it is due; jobs were told by the notice.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

from simpy.core import Environment
from simpy.events import Event
from simpy.resources.resource import Resource

from sim.condition import KINDS
from sim.histories import ComponentKind
from sim.machine import Machine
from sim.processes.health import to_us
from sim.processes.order import Order, Timer, priority
from sim.processes.reasons import Reasons
from sim.repair_policies import MaintenancePolicy, Rolling

RACK, OCS = ComponentKind.RACK, ComponentKind.OCS
Drains = Generator[Event, None, None]


def start_maintenance(env: Environment, machine: Machine, reasons: Reasons, policy: MaintenancePolicy) -> None:
    """Start the rounds of cubes and, where the fabric has them, of switches; ValueError where a round does not fit."""
    if policy.cubes is not None:
        env.process(_rounds(env, machine, reasons, RACK, machine.up.cubes, policy.cubes))
    if policy.switches is not None and machine.fabric.has_light:
        env.process(_rounds(env, machine, reasons, OCS, len(machine.up.up[OCS]), policy.switches))


def _rounds(
    env: Environment, machine: Machine, reasons: Reasons, kind: ComponentKind, count: int, rolling: Rolling
) -> Drains:
    """All rounds of one kind; the plan of a round is made when its first notice is due."""
    limit = Resource(env, capacity=rolling.at_once)
    round_number = 0
    busy: dict[int, Event] = {}
    while True:
        for component, start_s in enumerate(rolling.starts_s(count, round_number)):
            start_us = to_us(start_s)
            wait_us = max(0, start_us - to_us(rolling.notice) - int(env.now))
            if wait_us:
                yield Timer(env, wait_us, priority(Order.FAILURE, KINDS.index(kind), component))
            before = busy.get(component)
            busy[component] = env.process(
                _drain(env, machine, reasons, kind, component, start_us, to_us(rolling.length), limit, before)
            )
        round_number += 1


def _drain(
    env: Environment,
    machine: Machine,
    reasons: Reasons,
    kind: ComponentKind,
    component: int,
    start_us: int,
    length_us: int,
    limit: Resource,
    before: Event | None,
) -> Drains:
    """One drain, after the one `before` of the same component: notice, wait until it is due, out, back."""
    if before is not None and not before.processed:
        yield before
    number = KINDS.index(kind)
    machine.notice(kind, component)
    yield Timer(env, max(0, start_us - int(env.now)), priority(Order.FAILURE, number, component))
    with limit.request() as turn:
        yield turn
        if kind is RACK:
            free = Event(env)
            machine.close(component, partial(free.succeed, None))
            yield free
            machine.drain(component)
        else:
            reasons.drain_switch(component)
        yield Timer(env, length_us, priority(Order.REPAIR, number, component))
        if kind is RACK:
            machine.undrain(component)
        else:
            reasons.undrain_switch(component)
