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
from sim.policies import HealthPolicy, RepairPolicy
from sim.processes.health import OutageParts, outage_parts, to_us
from sim.processes.order import Order, Timer, priority
from sim.processes.repair import Crews
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
) -> None:
    """Put down what starts down, and start the processes of all populations, in order of kind and component.

    Raises ValueError when a population is not as large as the pod has components of its kind.
    """
    crews = None if repair.crews is None else Crews(env, repair)
    for source in sorted(sources, key=lambda item: KINDS.index(kind_of(item))):
        kind = kind_of(source)
        if not exists_under(kind, machine.fabric):
            continue
        count, there = (source.mode.count if isinstance(source, Lives) else source.count), len(machine.up.up[kind])
        if count > there:
            raise ValueError(f"{count} components {kind} named in failures, but the pod has {there}")
        if isinstance(source, Lives):
            _start_lives(env, machine, _Drawn(source), health, crews, horizon_us)
        else:
            _start_replay(env, machine, source, health)


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
    env: Environment, machine: Machine, drawn: _Drawn, health: HealthPolicy, crews: Crews | None, horizon_us: int
) -> None:
    drawn.draw()
    down, first_us = drawn.lives.initial_down, drawn.lives.initial_residual_us()
    for component in np.flatnonzero(down).tolist():
        machine.fail(drawn.kind, component)
        machine.detect(drawn.kind, component)
    for component in np.flatnonzero(down | (first_us < horizon_us)).tolist():
        first = int(first_us[component])
        if crews is None:
            life = _life(env, machine, drawn, component, first, bool(down[component]), health)
        else:
            life = _life_with_crews(env, machine, drawn, component, first, bool(down[component]), health, crews)
        env.process(life)


def _life(
    env: Environment,
    machine: Machine,
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
    detection_us = to_us(health.detection_s(kind))
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


def _life_with_crews(
    env: Environment,
    machine: Machine,
    drawn: _Drawn,
    component: int,
    first_us: int,
    down: bool,
    health: HealthPolicy,
    crews: Crews,
) -> Life:
    """The same where crews are scarce. What starts down is known, diagnosed, and queues with the rest of its outage."""
    kind = drawn.kind
    fails, detected = (priority(order, drawn.number, component) for order in (Order.FAILURE, Order.DETECTION))
    k, life_us = 0, first_us
    if down:
        yield from crews.mend(kind, component, OutageParts(0, 0, first_us, 0))
        machine.repair(kind, component)
        k, life_us = 1, drawn.life_us[0][component]
    while True:
        if k == drawn.rounds:
            drawn.draw()
        yield Timer(env, life_us, fails)
        machine.fail(kind, component)
        parts = outage_parts(kind, drawn.outage_us[k][component], health)
        yield Timer(env, parts.detection_us, detected)
        machine.detect(kind, component)
        yield from crews.mend(kind, component, parts)
        machine.repair(kind, component)
        life_us = drawn.life_us[k][component]
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


def _start_replay(env: Environment, machine: Machine, outages: Outages, health: HealthPolicy) -> None:
    for component, intervals in merged_outages(outages).items():
        if intervals and intervals[0][0] <= 0:
            machine.fail(outages.kind, component)
            machine.detect(outages.kind, component)
        env.process(_replay(env, machine, outages.kind, component, intervals, to_us(health.detection_s(outages.kind))))


def _replay(
    env: Environment,
    machine: Machine,
    kind: ComponentKind,
    component: int,
    intervals: list[tuple[int, int]],
    detection_us: int,
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
            known_us = min(detection_us, end_us - start_us)
            yield Timer(env, known_us, detected)
            machine.detect(kind, component)
            now_us = start_us + known_us
        yield Timer(env, end_us - now_us, repaired)
        machine.repair(kind, component)
        now_us = end_us
