"""How soon a service is back to its throughput after a loss: by hand, and for a replica that comes back alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sim.studies.windows import BACK_LOOKS, LossTimes, WindowTask, loss_window, throughput_back_s
from tests.run.cases import SERVED, loaded
from tests.run.test_export import ALONE

LOOKS_NS = np.arange(101, dtype=np.int64) * 10**9
"""A look each second."""


def tokens(*stretches: tuple[int, int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Tokens delivered by each look: stretches of (looks, tokens per look)."""
    rates = np.concatenate([np.full(many, rate, dtype=np.int64) for many, rate in stretches])
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(rates)])


@pytest.mark.parametrize(
    ("with_loss", "back_s"),
    [
        (tokens((100, 100)), 0.0),
        (tokens((50, 100), (50, 96)), 0.0),
        (tokens((50, 100), (20, 0), (30, 100)), 20.0),
        (tokens((50, 100), (20, 50), (20, 200), (10, 100)), 13.0),
        (tokens((50, 100), (50, 90)), math.nan),
    ],
    ids=["no loss", "within 95 %", "nothing for 20 s", "a stretch that catches up is back", "never"],
)
def test_by_hand(with_loss: np.ndarray[tuple[int, ...], np.dtype[np.int64]], back_s: float) -> None:
    """Goal: the first stretch of ten looks at 95 % of the other's tokens, after one below. Method: a loss at 50 s of a
    service of 100 tokens a second; catching up at 200, seven looks at 50 and three at 200 make 95 %."""
    found = throughput_back_s(LOOKS_NS, tokens((100, 100)), with_loss, 50 * 10**9)
    assert BACK_LOOKS == 10
    assert found == pytest.approx(back_s, nan_ok=True, abs=1e-9)


def test_a_replica_alone_is_back_when_it_is_up() -> None:
    """Goal: the measure is that of the recovery, and looking at a window changes nothing of it. Method: one replica at
    a third of its capacity: nothing comes until its stages are over, then it catches up; two windows, to a stretch of
    looks; tokens missed and caught of the same window looked at are those of one that is not."""
    scenario = loaded(SERVED, *ALONE, "serving.services.0.replicas=1", "serving.windows.losses=2")
    times = LossTimes.of(scenario, 60.0)
    stages_s = (times.back_ns - times.lost_ns) * 1e-9
    for repetition in range(2):
        task = WindowTask(service=0, rate_per_s=2.0, saturated_per_s=20.0, repetition=repetition)
        loss = loss_window(scenario, task)
        assert stages_s - 60 < loss.throughput_back_s < stages_s + 60
        assert loss.caught > 0
