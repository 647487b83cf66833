"""Qualification: after switching, every new link is tested, and may fail and be tried again.

A slice is ready when its slowest link is. A link that passes at its k-th trial took k times a link-up (the lognormal
law of `ReconfigurationTiming`) and k tests; one that fails every trial is bad and waits for a crew. Trials are
independent between links. The law of one link is summed on a grid, that of the slowest of many is its power.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ocs.reconfiguration import ReconfigurationTiming
from topology.units import ClosedShare, Seconds

GRID_S = 0.005
"""Step of the grid on which times of several trials are summed; quantiles are right to about one step."""
TAIL = 1e-9
"""Share of one link-up's law beyond the grid."""


@dataclass(frozen=True, kw_only=True)
class Qualification:
    """How new links are tested: all three figures are assumptions.

    `test`: seconds of one test after a link is up. `fail_share`: chance that one test fails. `trials`: tests before a
    link is given to a crew.
    """

    test: Seconds = 0.5
    fail_share: ClosedShare = 0.0002
    trials: int = 3

    def __post_init__(self) -> None:
        """Check that a link is tried at least once."""
        if self.trials < 1:
            raise ValueError(f"{self.trials} trials qualify nothing: write at least 1")

    @property
    def bad_share(self) -> float:
        """Chance that a link fails every trial: fail_share ^ trials."""
        return float(self.fail_share**self.trials)

    def all_pass_share(self, links: int) -> float:
        """Chance that none of these links needs a crew."""
        return math.exp(links * math.log1p(-self.bad_share)) if self.bad_share < 1 else float(links == 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkTrials:
    """What was drawn for links: `ready_s`, inf for a bad one, and `tests` run on each; both of one shape."""

    ready_s: NDArray[np.float64]
    tests: NDArray[np.int64]

    @property
    def bad(self) -> NDArray[np.bool_]:
        """Links that failed every trial."""
        return np.isinf(self.ready_s)


def draw_trials(
    timing: ReconfigurationTiming, qualification: Qualification, up: NDArray[np.float64], passes: NDArray[np.float64]
) -> LinkTrials:
    """Trials of links from uniforms in [0, 1), (..., trials) each: times of link-up, and whether tests pass."""
    sigma = timing.link_up_sigma
    times = timing.link_up_mean * np.exp(sigma * ndtri(np.maximum(up, TAIL)) - sigma**2 / 2) + qualification.test
    passed = passes >= qualification.fail_share
    first = np.argmax(passed, axis=-1)
    ready = np.take_along_axis(times.cumsum(axis=-1), first[..., None], axis=-1)[..., 0]
    never = ~passed.any(axis=-1)
    return LinkTrials(
        ready_s=np.where(never, np.inf, ready), tests=np.where(never, qualification.trials, first + 1).astype(np.int64)
    )


@dataclass(frozen=True)
class SlowestLink:
    """The law of the time until the slowest of many links is up and tested, given that none of them turns out bad."""

    timing: ReconfigurationTiming
    qualification: Qualification = field(default_factory=Qualification)
    one_link: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    """Distribution function of one good link at 0, GRID_S, 2 GRID_S, ..."""

    def __post_init__(self) -> None:
        """Sum the trials of one link."""
        object.__setattr__(self, "one_link", _one_link(self.timing, self.qualification))

    def share_ready(self, time_s: float, links: int) -> float:
        """Chance that all of these links are ready after `time_s`."""
        at = time_s / GRID_S
        grid = np.arange(len(self.one_link))
        return float(np.interp(at, grid, self.one_link) ** links)

    def quantile_s(self, u: float | NDArray[np.float64], links: int) -> NDArray[np.float64]:
        """Quantile `u` in [0, 1) of the time, in seconds, of the slowest of these links; 0 for none."""
        shares = np.asarray(u, dtype=np.float64)
        if not links:
            return np.zeros_like(shares)
        rising, first = np.unique(self.one_link, return_index=True)
        return np.asarray(np.interp(shares ** (1 / links), rising, first * GRID_S), dtype=np.float64)

    def mean_s(self, links: int) -> float:
        """Mean time, in seconds, of the slowest: the area above its distribution function."""
        return float((1.0 - self.one_link**links).sum() * GRID_S)


def slice_ready_s(timing: ReconfigurationTiming, qualification: Qualification, cubes: int, u: float) -> float:
    """Quantile `u` of the seconds until all 48 n new links of a slice of n cubes are up and tested."""
    return float(SlowestLink(timing, qualification).quantile_s(u, 48 * cubes))


def _one_link(timing: ReconfigurationTiming, qualification: Qualification) -> NDArray[np.float64]:
    """Distribution function of one link that passes, on the grid."""
    sigma, most = timing.link_up_sigma, timing.link_up_mean + qualification.test
    if sigma:
        most = timing.link_up_mean * math.exp(-sigma * float(ndtri(TAIL)) - sigma**2 / 2) + qualification.test
    steps = math.ceil(most / GRID_S) + 2
    edges = np.arange(steps + 1, dtype=np.float64) * GRID_S - GRID_S / 2 - qualification.test
    density = np.diff(_cdf(edges, timing), prepend=0.0)
    total = np.zeros(steps * qualification.trials + 2)
    trial, chance = np.ones(1), 1.0 - qualification.fail_share
    for _ in range(qualification.trials):
        trial = np.convolve(trial, density)
        kept = min(len(trial), len(total))
        total[:kept] += chance * trial[:kept]
        chance *= qualification.fail_share
    summed = np.cumsum(total)
    return np.minimum(summed / summed[-1], 1.0) if summed[-1] else summed


def _cdf(times_s: NDArray[np.float64], timing: ReconfigurationTiming) -> NDArray[np.float64]:
    """Distribution function of one link-up."""
    sigma = timing.link_up_sigma
    if not sigma:
        return (times_s >= timing.link_up_mean).astype(np.float64)
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(times_s, 0.0) / timing.link_up_mean)
    return np.asarray(ndtr((logs + sigma**2 / 2) / sigma), dtype=np.float64)
