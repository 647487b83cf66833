"""Values that nobody would mean, and that are taken: a run ends, soon, and every number of it is one."""

from __future__ import annotations

import time

import numpy as np
import pytest

from sim.build import build_setup
from sim.scenario import expand
from sim.simulation import run
from sim.studies.draws import streams_digest
from tests.run.cases import MACHINE, OPERATED, loaded

POD = OPERATED[: OPERATED.index("  fleet:")]
SHARES = ("guaranteed", "expected", "delivered", "goodput")


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (MACHINE, ("study.availability.horizon=1 us", "study.delivered.horizon=1 us")),
        (MACHINE, ("sweep.failures.host.availability=[1e-6]", "study.delivered.horizon=1 h")),
        (MACHINE, ("study.availability.slice_chips=[512]", "study.availability.time_share=0.999999999999")),
        (MACHINE, ("sweep={recovery.restore: [0 s, 1e6 d]}", "health.detection=1e4 d")),
        (MACHINE, ("prices.chip=0 USD", "study.promise.slices={8x8x8: 100000}", "run.warmup=9.999 d")),
        (POD, ("study.operations.horizon=1 us",)),
        (POD, ("failures.host={failure_rate: 100 1/day, availability: 1 %}", "study.operations.horizon=1 d")),
        (POD, ("jobs.streams.0.load=1e-9", "jobs.streams.1.load=1e-9")),
        (POD, ("jobs.streams.0.durations={mean: 6 h, cv: 1000}", "study.operations.horizon=1 d")),
    ],
    ids=lambda value: "; ".join(value)[:60] if isinstance(value, tuple) else value.split()[1],
)
def test_odd_values_give_numbers(text: str, settings: tuple[str, ...]) -> None:
    """Goal: no warning of a division by zero, no infinity, no share beyond 1. Method: extremes of what is allowed."""
    began = time.monotonic()
    result = run(loaded(text, *settings), workers=1)
    assert time.monotonic() - began < 60.0
    for name, table in result.tables.items():
        for column in table.select_dtypes("float64"):
            assert not np.isinf(table[column]).any(), (name, column)
    shares = result.summary[result.summary["measure"].isin(SHARES)]["value"].dropna()
    assert ((shares >= 0) & (shares <= 1)).all()
    assert result.sentence


def test_the_digest_of_streams_asks_for_names_alone() -> None:
    """Goal: runs with short jobs do not plan a day of them, 200,000, to tell which streams there are. Method: jobs of a
    second give the digest of jobs of hours, at once."""
    digests = []
    for mean in ("6 h", "1 s"):
        scenario = loaded(POD, f"jobs.streams.0.durations={{mean: {mean}, cv: 1}}", "study.operations.horizon=1 min")
        began = time.process_time()
        digests.append(streams_digest([build_setup(point.scenario) for point in expand(scenario)]))
        assert time.process_time() - began < 2.0
    assert digests[0] == digests[1]
