"""Serving in the clock of the machine: a replica is lost, found dead and comes back stage by stage, while tokens flow.

The service has its own exact clock inside; the machine's events (in whole microseconds) call its verbs. A watcher reads
its counters at fixed instants: a look changes nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from simpy.core import Environment
from simpy.events import Event

from sim.trace import Stage
from workloads.serving.service import Service

NS_PER_US = 1_000


@dataclass(frozen=True, kw_only=True)
class Look:
    """What a watcher saw at the end of one interval, `time_us` from the start of the run."""

    time_us: int
    tokens: int
    stage: Stage
    replicas_up: int


class ReplicaStage:
    """The stage of the replica that the story is about; owned by `lose_and_recover`, read by the watcher."""

    def __init__(self) -> None:
        self.now = Stage.RUNNING


def lose_and_recover(
    env: Environment,
    service: Service,
    replicas: Sequence[int],
    lost_us: int,
    stages: Sequence[tuple[Stage, int | None]],
    current: ReplicaStage,
) -> Generator[Event, None, None]:
    """A process: lose `replicas` (the parts of one) at `lost_us`, then pass through `stages`.

    A stage comes with its length in us (None: without end). The loss is noticed when `detecting` ends; after the last
    stage the replica serves again.
    """
    yield env.timeout(lost_us)
    for replica in replicas:
        service.lose(replica, int(env.now) * NS_PER_US)
    for stage, length_us in stages:
        current.now = stage
        if length_us is None:
            return
        yield env.timeout(length_us)
        if stage is Stage.DETECTING:
            for replica in replicas:
                service.detect(replica, int(env.now) * NS_PER_US)
    for replica in replicas:
        service.up(replica, int(env.now) * NS_PER_US)
    current.now = Stage.RUNNING


def watch(
    env: Environment, service: Service, every_us: int, current: ReplicaStage, looks: list[Look], parts: int = 1
) -> Generator[Event, None, None]:
    """A process: look at the service at the end of every interval and note what was delivered in it.

    `parts`: replicas of the kernel that make one of the service.
    """
    before = service.tokens_delivered
    while True:
        stage, up = current.now, service.replicas_up // parts
        yield env.timeout(every_us)
        service.advance(int(env.now) * NS_PER_US)
        delivered = service.tokens_delivered
        looks.append(Look(time_us=int(env.now), tokens=delivered - before, stage=stage, replicas_up=up))
        before = delivered
