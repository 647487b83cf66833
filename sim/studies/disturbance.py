"""A service that is slowed for a while: who gets an answer before, in and after it, with the clients that it has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.metrics.intervals import Estimate, mean_estimate
from sim.scenario import Scenario
from sim.scenario_clients import DisturbanceSection
from sim.streams import Streams
from sim.studies.service_parts import service_config, service_requests, with_saturation
from sim.studies.windows import WindowTask
from workloads.serving.service import Service

Row = dict[str, Any]
Floats = NDArray[np.float64]
NS = 1_000_000_000
COMPLETED = 1
"""Status of a request that got its whole answer, in the kernel's record."""


@dataclass(frozen=True, kw_only=True)
class Disturbed:
    """One repetition, with the slowdown (row 1) and without (row 0), by step of arrival.

    `arrived`, `answered`, `attempts` (2, steps): requests that arrived, those that got their whole answer before they
    gave up, and how often all of them were sent.
    """

    arrived: Floats
    answered: Floats
    attempts: Floats

    def answered_after(self, first: int, *, slowed: bool) -> float:
        """Share of the requests that arrive from step `first` on which are answered; NaN where none arrives."""
        arrived = float(self.arrived[int(slowed), first:].sum())
        return float(self.answered[int(slowed), first:].sum()) / arrived if arrived else float("nan")


def disturbed_window(scenario: Scenario, task: WindowTask) -> Disturbed:
    """Play the same requests with and without the slowdown of `serving.disturbance` (a task)."""
    assert scenario.serving is not None
    section, asked = scenario.serving.services[task.service], scenario.serving.disturbance
    assert asked is not None
    streams = Streams(scenario.run.seed, task.repetition)
    count = int(max(16.0, 1.2 * task.rate_per_s * asked.horizon))
    requests = service_requests(section, task.rate_per_s, count, streams, "disturbance")
    config = service_config(scenario, section, section.shape(), section.replicas)
    assert config is not None, "the scenario was checked: the model fits"
    config = replace(with_saturation(config, section, task.saturated_per_s), record_requests=count)
    found = []
    for slowed in (False, True):
        service = Service(config, requests, streams.uniforms)
        for speed, at_s in ((asked.speed, asked.start), (1.0, asked.start + asked.length)) if slowed else ():
            for replica in range(config.replicas):
                service.set_speed(replica, speed, round(at_s * NS))
        record = service.finish().record
        assert record is not None
        came = record.arrival_ns >= 0
        step = record.arrival_ns[came] // round(asked.step * NS)
        weights = (np.ones(step.size), record.status[came] == COMPLETED, record.attempts[came])
        found.append([np.bincount(step, weights=each, minlength=asked.steps)[: asked.steps] for each in weights])
    arrived, answered, attempts = (np.array(each, dtype=np.float64) for each in zip(*found, strict=True))
    return Disturbed(arrived=arrived, answered=answered, attempts=attempts)


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """All repetitions of a slowdown, and what was asked for."""

    asked: DisturbanceSection
    repetitions: tuple[Disturbed, ...]

    def of_repetitions(self, number: int, groups: int) -> Disturbance:
        """The repetitions `number`, `number` + `groups`, ... alone."""
        return replace(self, repetitions=self.repetitions[number::groups])

    def measures(self) -> dict[str, Estimate]:
        """Shares answered of those that arrive once the slowdown has been over for a step, with it and without."""
        first = self.asked.first_after
        return {
            name: mean_estimate([each.answered_after(first, slowed=slowed) for each in self.repetitions])
            for name, slowed in (("answered_after_disturbance", True), ("answered_undisturbed", False))
        }

    def rows(self, service: str) -> list[Row]:
        """Rows of the table `disturbance` of one service."""
        return [
            {"service": service, "slowed": slowed, "t_s": step * self.asked.step} | self._step(int(slowed), step)
            for slowed in (False, True)
            for step in range(self.asked.steps)
        ]

    def _step(self, row: int, step: int) -> Row:
        """One step: means over the repetitions in which somebody arrives."""
        arrived = np.array([each.arrived[row, step] for each in self.repetitions])
        seen = arrived > 0
        shares, tries = (
            np.array([each[row, step] for each in parts])[seen] / arrived[seen]
            for parts in ([each.answered for each in self.repetitions], [each.attempts for each in self.repetitions])
        )
        share = mean_estimate(shares) if shares.size else Estimate(value=float("nan"), n=0)
        return {
            "arrived": float(arrived.mean()),
            "answered": share.value,
            "ci_low": float(np.maximum(share.ci_low, 0.0)),
            "ci_high": float(np.minimum(share.ci_high, 1.0)),
            "attempts": float(tries.mean()) if tries.size else float("nan"),
            "n": len(self.repetitions),
        }
