"""Files of the user that a scenario reads: their digests tell whether a run comes from the same ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from sim.scenario import Point, Scenario
from topology.errors import EnvironmentFault


def input_paths(scenario: Scenario) -> list[str]:
    """Paths of the logs and traces of one sweep point, in the order of the scenario's sections."""
    log, serving = scenario.failures.log, scenario.serving
    laws = [service.requests for service in serving.services] if serving is not None else []
    traces = [getattr(each, "path", None) for law in laws for each in (law, getattr(law, "pairs", None))]
    return [str(path) for path in (None if log is None else log.path, *traces) if path is not None]


def input_digests(points: Sequence[Point]) -> dict[str, str]:
    """Digest of every file that some point reads, by its path as the scenario has it."""
    paths = dict.fromkeys(path for point in points for path in input_paths(point.scenario))
    return {path: _digest(path) for path in paths}


def _digest(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError as error:
        raise EnvironmentFault(f"{path}: can not be read: {error.strerror}") from error
