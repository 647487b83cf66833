"""Onsets without memory over a population: the draws of all that fails beside the renewals of single components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sim.histories import LONGEST_US, US_PER_S
from sim.streams import Streams

EVENTS_PER_BLOCK = 64
EXTRA = 3
"""Uniforms of an onset beside those of its gap and its component."""


class Onset(NamedTuple):
    """One onset: microseconds since the one before, the component, and `EXTRA` uniforms for what follows."""

    gap_us: int
    component: int
    uniforms: tuple[float, ...]


def draw_onsets(streams: Streams, name: str, rate_per_s: float, count: int) -> Iterator[Onset]:
    """Onsets without end: gaps are exponential with rate `count` x `rate_per_s`, each component is hit as often.

    Onset i of the stream `name` is row i mod 64 of block i // 64, whatever happens in the run.
    """
    block = 0
    mean_us = US_PER_S / (rate_per_s * count)
    while True:
        u = streams.uniforms(name, block, EVENTS_PER_BLOCK * (2 + EXTRA)).reshape(EVENTS_PER_BLOCK, 2 + EXTRA)
        gaps_us = np.rint(np.clip(-np.log1p(-u[:, 0]) * mean_us, 1.0, float(LONGEST_US))).astype(np.int64).tolist()
        hit = np.minimum((u[:, 1] * count).astype(np.int64), count - 1).tolist()
        for row in range(EVENTS_PER_BLOCK):
            yield Onset(gaps_us[row], hit[row], tuple(u[row, 2:].tolist()))
        block += 1
