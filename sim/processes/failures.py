"""Failures: one process per component that fails within the horizon, from drawn lives or from a log.

A component whose first failure lies beyond the horizon needs no process, so a run costs what happens in it, not what
could. Draw k of component c is the same here and in `sim.histories.draw_outages`; without a limit on crews the two give
the same outages, to the microsecond.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
from simpy.core import Environment
from simpy.events import Event

from sim.condition import KINDS
from sim.histories import ComponentKind, Lives, Outages
from sim.machine import Machine
from sim.other_failures import OtherFailures
from sim.policies import HealthPolicy, RepairPolicy
from sim.processes.clinic import Clinic
from sim.processes.health import OutageParts, to_us
from sim.processes.maintenance import start_maintenance
from sim.processes.mending import Mending
from sim.processes.order import Order, Timer, priority
from sim.processes.reasons import Components, Reasons
from sim.processes.repair import Workshop
from sim.repair_policies import MaintenancePolicy
from sim.streams import Streams
from topology.fabric import Fabric

Life = Generator[Event, None, None]
Source = Lives | Outages
"""Where the failures of one population come from: draws of lives and repairs, or the outages of a log."""


def kind_of(source: Source) -> ComponentKind:
    """The kind of component that a source is about."""
    return source.mode.kind if isinstance(source, Lives) else source.kind


def exists_under(kind: ComponentKind, fabric: Fabric) -> bool:
    """Whether pods of a fabric have components of a kind: only reconfigurable ones have switches."""
    return kind is not ComponentKind.OCS or fabric.has_light


def start_failures(
    env: Environment,
    machine: Machine,
    sources: Sequence[Source],
    *,
    health: HealthPolicy,
    repair: RepairPolicy,
    horizon_us: int,
    others: OtherFailures | None = None,
    maintenance: MaintenancePolicy | None = None,
    streams: Streams | None = None,
) -> Clinic:
    """Put down what starts down, and start the processes of all populations, in order of kind and component.

    `others` fail beside the sources, and `maintenance` drains; what is drawn for both, for false alarms and for
    two-stage repair comes from `streams`. The clinic that is returned is what preflight asks. Raises ValueError when a
    population is not as large as the pod has components of its kind, or streams are needed and not given.
    """
    others, maintenance = others or OtherFailures(), maintenance or MaintenancePolicy()
    alone = others.is_off and not maintenance.is_on and not health.gives_false_alarms
    reasons = Reasons(machine)
    front: Components = machine if alone else reasons
    workshop = Workshop(env, repair)
    machine.flaws.accept_degraded = health.accept_degraded
    mending = None
    if not (repair.is_unlimited and health.poll == 0 and others.bad_hosts is None):
        mending = Mending(workshop, health, repair, others.bad_hosts, streams)
    for source in sorted(sources, key=lambda item: KINDS.index(kind_of(item))):
        kind = kind_of(source)
        if not exists_under(kind, machine.fabric):
            continue
        count, there = (source.mode.count if isinstance(source, Lives) else source.count), len(machine.up.up[kind])
        if count > there:
            raise ValueError(f"{count} components {kind} named in failures, but the pod has {there}")
        if isinstance(source, Lives):
            _start_lives(env, front, _Drawn(source), health, mending, machine, horizon_us)
        else:
            _start_replay(env, front, source, health)
    clinic = Clinic(env, machine, front, workshop, health, others, streams)
    clinic.start()
    start_maintenance(env, machine, reasons, maintenance)
    return clinic


class _Drawn:
    """The draws of one population as lists of plain integers, round by round (a list gives them faster than an array).

    `outage_us[k][c]` is outage k of component c without queueing, `life_us[k][c]` the life after it.
    """

    def __init__(self, lives: Lives) -> None:
        self.lives = lives
        self.kind = lives.mode.kind
        self.number = KINDS.index(self.kind)
        self.rounds = 0
        self.outage_us: list[list[int]] = []
        self.life_us: list[list[int]] = []

    def draw(self) -> None:
        """Draw one more round."""
        self.outage_us.append((self.lives.repair_us(self.rounds) + self.lives.overhead_us).tolist())
        self.life_us.append(self.lives.life_us(self.rounds).tolist())
        self.rounds += 1


def _start_lives(
    env: Environment,
    front: Components,
    drawn: _Drawn,
    health: HealthPolicy,
    mending: Mending | None,
    machine: Machine,
    horizon_us: int,
) -> None:
    drawn.draw()
    down, first_us = drawn.lives.initial_down, drawn.lives.initial_residual_us()
    if mending is not None and drawn.kind is ComponentKind.HOST:
        first_us = mending.start_hosts(len(first_us), first_us, down)
    for component in np.flatnonzero(down).tolist():
        front.fail(drawn.kind, component)
        front.detect(drawn.kind, component)
    for component in np.flatnonzero(down | (first_us < horizon_us)).tolist():
        first = int(first_us[component])
        if mending is None:
            life = _life(env, front, drawn, component, first, bool(down[component]), health)
        else:
            life = _mended_life(env, front, drawn, component, first, bool(down[component]), mending, machine)
        env.process(life)


def _life(
    env: Environment,
    machine: Components,
    drawn: _Drawn,
    component: int,
    first_us: int,
    down: bool,
    health: HealthPolicy,
) -> Life:
    """One component with a crew at hand whenever it is needed; `first_us` is what is left of its first phase."""
    kind = drawn.kind
    fails, detected, repaired = (
        priority(order, drawn.number, component) for order in (Order.FAILURE, Order.DETECTION, Order.REPAIR)
    )
    detection_us = health.detected_after_us(kind, 0)
    k, life_us = 0, first_us
    if down:
        yield Timer(env, first_us, repaired)
        machine.repair(kind, component)
        k, life_us = 1, drawn.life_us[0][component]
    while True:
        if k == drawn.rounds:
            drawn.draw()
        yield Timer(env, life_us, fails)
        machine.fail(kind, component)
        outage_us = drawn.outage_us[k][component]
        known_us = detection_us if detection_us < outage_us else outage_us
        yield Timer(env, known_us, detected)
        machine.detect(kind, component)
        yield Timer(env, outage_us - known_us, repaired)
        machine.repair(kind, component)
        life_us = drawn.life_us[k][component]
        k += 1


def _mended_life(
    env: Environment,
    front: Components,
    drawn: _Drawn,
    component: int,
    first_us: int,
    down: bool,
    mending: Mending,
    machine: Machine,
) -> Life:
    """The same where repair is no matter of course. What starts down is known, diagnosed, and queues with the rest."""
    kind = drawn.kind
    fails, detected, repaired = (
        priority(order, drawn.number, component) for order in (Order.FAILURE, Order.DETECTION, Order.REPAIR)
    )
    k, life_us = 0, first_us
    if down:
        yield from mending.workshop.mend(kind, component, OutageParts(0, 0, first_us, 0))
        front.repair(kind, component)
        k, life_us = 1, mending.life_us(kind, component, drawn.life_us[0][component])
    failures_us: list[int] = []
    while True:
        if k == drawn.rounds:
            drawn.draw()
        yield Timer(env, life_us, fails)
        front.fail(kind, component, mending.cause(kind, component, k))
        parts = mending.parts(kind, component, k, drawn.outage_us[k][component], int(env.now))
        yield Timer(env, parts.detection_us, detected)
        front.detect(kind, component)
        retire = mending.repair.retire
        failures_us.append(int(env.now))
        if retire is not None and retire.retires(failures_us):
            machine.retire(kind, component)
            if retire.replaced_after is None:
                return
            yield Timer(env, to_us(retire.replaced_after), repaired)
            mending.replaced(kind, component, k)
            failures_us.clear()
        else:
            yield from mending.workshop.mend(kind, component, parts)
            mending.mended(kind, component, k)
        front.repair(kind, component)
        life_us = mending.life_us(kind, component, drawn.life_us[k][component])
        k += 1


def merged_outages(outages: Outages) -> dict[int, list[tuple[int, int]]]:
    """Per component, in order of number, its outages with overlapping ones joined: down until all have ended."""
    merged: dict[int, list[tuple[int, int]]] = {}
    order = np.lexsort((outages.start_us, outages.component))
    for component, start, end in zip(
        outages.component[order].tolist(), outages.start_us[order].tolist(), outages.end_us[order].tolist(), strict=True
    ):
        own = merged.setdefault(component, [])
        if own and start <= own[-1][1]:
            own[-1] = (own[-1][0], max(end, own[-1][1]))
        elif end > start:
            own.append((start, end))
    return merged


def _start_replay(env: Environment, machine: Components, outages: Outages, health: HealthPolicy) -> None:
    for component, whole in merged_outages(outages).items():
        intervals = [interval for interval in whole if interval[1] > 0]  # what was over before the start is nobody's
        if intervals and intervals[0][0] <= 0:
            machine.fail(outages.kind, component)
            machine.detect(outages.kind, component)
        env.process(_replay(env, machine, outages.kind, component, intervals, health))


def _replay(
    env: Environment,
    machine: Components,
    kind: ComponentKind,
    component: int,
    intervals: list[tuple[int, int]],
    health: HealthPolicy,
) -> Life:
    """One component of a log: down exactly when the log says so, known after detection (crews have no say)."""
    number = KINDS.index(kind)
    fails, detected, repaired = (
        priority(order, number, component) for order in (Order.FAILURE, Order.DETECTION, Order.REPAIR)
    )
    now_us = 0
    for start_us, end_us in intervals:
        if start_us > 0:
            yield Timer(env, start_us - now_us, fails)
            machine.fail(kind, component)
            known_us = min(health.detected_after_us(kind, start_us), end_us - start_us)
            yield Timer(env, known_us, detected)
            machine.detect(kind, component)
            now_us = start_us + known_us
        yield Timer(env, end_us - now_us, repaired)
        machine.repair(kind, component)
        now_us = end_us
