"""What a run draws, as digests: equal streams of two runs can be paired, equal failures met the same bad luck."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sim.build import Setup
from sim.histories import Lives
from sim.job_plans import plan_jobs
from sim.large_job import play_large_job
from sim.scenario import Scenario
from sim.streams import Streams
from sim.studies.service_parts import service_requests

MINUTE_US = 60_000_000
FIRST_NUMBERS = 4
FIRST_REQUESTS = 16


@dataclass(frozen=True)
class NotedStreams(Streams):
    """Streams that note the names under which they are asked for."""

    names: dict[str, None] = field(default_factory=dict, compare=False)

    def generator(self, name: str, block: int = 0) -> np.random.Generator:
        """A fresh generator, as `Streams` gives it; the name is noted."""
        self.names[name] = None
        return super().generator(name, block)


def failures_digest(setup: Setup) -> str:
    """Digest of the first lives and repairs of every population, and of the outages of logs, in replication 0."""
    digest = hashlib.sha256()
    for mode in setup.modes:
        lives = Lives(mode, setup.streams(0))
        digest.update(mode.kind.value.encode())
        for drawn in (lives.initial_residual_us(), lives.repair_us(0), lives.life_us(0)):
            digest.update(drawn.tobytes())
    for log in setup.logged(0):
        for column in (log.component, log.start_us, log.end_us):
            digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()[:16]


def streams_digest(setups: Sequence[Setup]) -> str:
    """Digest of the streams behind failures, jobs and requests: their names and the first numbers of each.

    It does not depend on the laws through which the numbers are put: a run with another failure rate or another service
    has the same streams, and its differences to this one are paired.
    """
    streams = NotedStreams(setups[0].scenario.run.seed, 0)
    for setup in setups:
        _ask_for_all(setup, streams)
    digest = hashlib.sha256()
    for name in sorted(streams.names):
        digest.update(name.encode())
        digest.update(streams.uniforms(name, 0, FIRST_NUMBERS).tobytes())
    return digest.hexdigest()[:16]


def _ask_for_all(setup: Setup, streams: NotedStreams) -> None:
    """Draw a little of everything that the scenario draws: first lives, a minute of jobs, a few requests."""
    scenario = setup.scenario
    for mode in setup.modes:
        Lives(mode, streams).initial_residual_us()
    if scenario.jobs is not None:
        drawn = scenario.model_copy(update={"jobs": scenario.jobs.model_copy(update={"log": None})})
        plan_jobs(drawn, setup.pod, setup.fabric, streams, MINUTE_US)
    if scenario.study.large_job is not None:
        play_large_job(scenario.study.large_job.job, streams)
    _ask_for_requests(scenario, streams)


def _ask_for_requests(scenario: Scenario, streams: NotedStreams) -> None:
    for section in () if scenario.serving is None else scenario.serving.services:
        service_requests(
            section, section.samples * (section.requests.natural_rate_per_s or 1.0), FIRST_REQUESTS, streams, "steady"
        )
