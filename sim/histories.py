"""Failure histories: when every component of a population is down, drawn before anything else happens.

One population is one `FailureMode`: `count` components of one kind with a law of life and a law of repair. `Lives`
gives the draws block by block and in the same order to everyone: to `draw_outages`, which makes the whole history at
once, and to the processes that play it event by event.

Blocks of the stream `failures.KIND`: block 0 decides who is down at the start, block 1 is the rest of the phase that is
then in progress, block 2k + 2 the k-th repair and block 2k + 3 the life after it. A component that starts down takes
its first repair from block 1, so its next draws are block 3 (life), 4 (repair): in step with those that start up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from sim.lifetimes import Exponential, Law, LifeLaw, has_mean
from sim.streams import Streams
from topology.errors import refuse

Ints = NDArray[np.int64]

US_PER_S = 1_000_000
LONGEST_US = 10**18
"""Longer draws are cut here (31,700 years), so that sums stay within int64."""
MOST_OUTAGES = 2e7


class ComponentKind(StrEnum):
    """What can fail by itself. Order is the order of events at one instant."""

    HOST = "host"
    RACK = "rack"
    IN_RACK_LINK = "in_rack_link"
    OPTICAL_END = "optical_end"
    OCS = "ocs"


@dataclass(frozen=True, kw_only=True)
class FailureMode:
    """A population that fails and is repaired: an outage lasts `overhead_s` (detection and the like) plus one repair.

    `stationary` starts in the long-run state; otherwise all components start new. Both laws have means.
    """

    kind: ComponentKind
    count: int
    life: LifeLaw
    repair: LifeLaw
    overhead_s: float = 0.0
    stationary: bool = True

    @property
    def outage_mean_s(self) -> float:
        """Mean length of an outage in seconds, D of the design."""
        return self.overhead_s + self.repair.mean_s

    @property
    def availability(self) -> float:
        """Long-run share of time up: M / (M + D)."""
        return self.life.mean_s / (self.life.mean_s + self.outage_mean_s)

    @property
    def failures_per_s(self) -> float:
        """Long-run failures of the whole population per second: N / (M + D), whatever the shape of the laws."""
        return self.count / (self.life.mean_s + self.outage_mean_s)

    def outage_residual_s(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is left of an outage in progress at a random instant: the residual law of overhead + repair."""
        mean_s = self.outage_mean_s
        reached = u * mean_s
        later = np.clip((reached - self.overhead_s) / self.repair.mean_s, 0.0, np.nextafter(1.0, 0.0))
        after = self.overhead_s + self.repair.residual_quantile_s(later)
        return np.where(reached < self.overhead_s, reached, after)


def failure_mode(
    kind: ComponentKind,
    count: int,
    *,
    failure_rate_per_s: float | None = None,
    availability: float | None = None,
    life: Law | None = None,
    repair: Law | None = None,
    rest_s: float = 0.0,
    stationary: bool = True,
) -> FailureMode:
    """Build a population from what a scenario says, deriving the mean that it leaves out (design/machine.md 3).

    `rest_s` is the mean of detection + diagnosis + burn-in. Mean life M and mean outage D come from two of three:
    a failure rate (or a life with a mean), an availability, a repair with a mean. With an availability, D = rest +
    repair; with a repair alone the rest runs inside the repair time and D is its mean. Laws default to exponential.
    Raises ValueError, saying what to write, when the three say too little or too much.
    """
    life_law: LifeLaw = Exponential() if life is None else life
    repair_law: LifeLaw = Exponential() if repair is None else repair
    if failure_rate_per_s is not None and has_mean(life_law):
        raise ValueError("both a failure_rate and a life with a mean: write one of them")
    mean_life_s = life_law.mean_s if has_mean(life_law) else None
    if failure_rate_per_s is not None:
        if failure_rate_per_s <= 0.0:
            raise ValueError("a failure_rate of 0: leave the component out, then it never fails")
        mean_life_s = 1.0 / failure_rate_per_s
    if availability is not None and not 0.0 < availability < 1.0:
        raise ValueError(f"an availability of {availability:g}: write a share strictly between 0 and 1")

    if availability is None:
        if mean_life_s is None or not has_mean(repair_law):
            raise ValueError("too little to go by: write two of failure_rate, availability, and repair with a mean")
        overhead_s = 0.0
    elif mean_life_s is None:
        if not has_mean(repair_law):
            raise ValueError("an availability alone: write a failure_rate or a repair with a mean beside it")
        overhead_s = rest_s
        mean_life_s = availability / (1.0 - availability) * (rest_s + repair_law.mean_s)
    else:
        if has_mean(repair_law):
            raise ValueError("failure_rate, availability and the mean repair at once: leave one out, it follows")
        overhead_s = rest_s
        mean_repair_s = (1.0 - availability) / availability * mean_life_s - rest_s
        if mean_repair_s <= 0.0:
            raise ValueError(
                f"detection, diagnosis and burn-in take {rest_s:g} s, more than the whole mean outage that "
                "failure_rate and availability leave: write a lower availability or shorter delays"
            )
        repair_law = repair_law.with_mean(mean_repair_s)
    return FailureMode(
        kind=kind,
        count=count,
        life=life_law.with_mean(mean_life_s),
        repair=repair_law,
        overhead_s=overhead_s,
        stationary=stationary,
    )


def too_many_outages(mode: FailureMode, horizon_s: float) -> bool:
    """Whether one history of a population would hold more outages than can be drawn."""
    return mode.failures_per_s * horizon_s > MOST_OUTAGES


def to_us(seconds: NDArray[np.float64]) -> Ints:
    """Whole microseconds, at least one, at most `LONGEST_US`."""
    return np.rint(np.clip(seconds * US_PER_S, 1.0, float(LONGEST_US))).astype(np.int64)


@dataclass(frozen=True)
class Lives:
    """All draws of one population in one replication, made when first asked for and kept; arrays of int64 (count,)."""

    mode: FailureMode
    streams: Streams
    _kept: dict[int, Ints] = field(default_factory=dict, init=False, repr=False, compare=False)

    def _uniforms(self, block: int) -> NDArray[np.float64]:
        return self.streams.uniforms(f"failures.{self.mode.kind}", block, self.mode.count)

    @property
    def initial_down(self) -> NDArray[np.bool_]:
        """Who is down at the start: nobody, or a share 1 - availability in the stationary state."""
        if not self.mode.stationary:
            return np.zeros(self.mode.count, dtype=np.bool_)
        return self._uniforms(0) >= self.mode.availability

    def initial_residual_us(self) -> Ints:
        """What is left of the phase in progress at the start: of the life where up, of the whole outage where down."""
        if 1 not in self._kept:
            u = self._uniforms(1)
            if self.mode.stationary:
                up_s = self.mode.life.residual_quantile_s(u)
                seconds = np.where(self.initial_down, self.mode.outage_residual_s(u), up_s)
            else:
                seconds = self.mode.life.quantile_s(u)
            self._kept[1] = to_us(seconds)
        return self._kept[1]

    def repair_us(self, k: int) -> Ints:
        """Repair k = 0, 1, ... of every component, without the overhead."""
        block = 2 * k + 2
        if block not in self._kept:
            self._kept[block] = to_us(self.mode.repair.quantile_s(self._uniforms(block)))
        return self._kept[block]

    def life_us(self, k: int) -> Ints:
        """The life that follows repair k (or, for k = 0 and a component that starts down, its first outage)."""
        block = 2 * k + 3
        if block not in self._kept:
            self._kept[block] = to_us(self.mode.life.quantile_s(self._uniforms(block)))
        return self._kept[block]

    @property
    def overhead_us(self) -> int:
        """The fixed part of an outage, in microseconds."""
        return round(self.mode.overhead_s * US_PER_S)


@dataclass(frozen=True, kw_only=True)
class Outages:
    """Every outage of a population that starts before the horizon, sorted by start, then component.

    `end_us` may lie beyond the horizon. Outages of one component may overlap (logs): it is down until all have ended.
    """

    kind: ComponentKind
    count: int
    horizon_us: int
    component: Ints
    start_us: Ints
    end_us: Ints

    def __len__(self) -> int:
        """Number of outages."""
        return len(self.start_us)


def sorted_outages(
    kind: ComponentKind, count: int, horizon_us: int, component: Ints, start_us: Ints, end_us: Ints
) -> Outages:
    """Outages in the order of the contract, from arrays in any order."""
    order = np.lexsort((end_us, component, start_us))
    return Outages(
        kind=kind,
        count=count,
        horizon_us=horizon_us,
        component=component[order],
        start_us=start_us[order],
        end_us=end_us[order],
    )


def draw_outages(lives: Lives, horizon_us: int) -> Outages:
    """The history of one population up to the horizon (half-open), with unlimited crews."""
    mode = lives.mode
    if too_many_outages(mode, horizon_us / US_PER_S):
        raise refuse(
            f"failures.{mode.kind}",
            f"about {mode.failures_per_s * horizon_us / US_PER_S:.2g} outages within the horizon",
            "write longer lives or a shorter horizon",
        )
    overhead_us = lives.overhead_us
    residual_us, down = lives.initial_residual_us(), lives.initial_down
    everyone = np.arange(mode.count, dtype=np.int64)
    components, starts, ends = [everyone[down]], [np.zeros(int(down.sum()), dtype=np.int64)], [residual_us[down]]
    first_end_us = residual_us + np.where(down, lives.life_us(0), 0)
    # next_us: the next failure of every component; round k plays repair k of those that have not passed the horizon
    next_us = first_end_us
    active = everyone[(next_us < horizon_us) & ~down]
    late = everyone[(next_us < horizon_us) & down]
    k = 0
    while len(active) or len(late):
        start_us = next_us[active]
        end_us = start_us + lives.repair_us(k)[active] + overhead_us
        components.append(active)
        starts.append(start_us)
        ends.append(end_us)
        next_us[active] = end_us + lives.life_us(k)[active]
        if k == 0:
            active = np.sort(np.concatenate((active, late)))
            late = late[:0]
        active = active[next_us[active] < horizon_us]
        k += 1
    return sorted_outages(
        mode.kind, mode.count, horizon_us, np.concatenate(components), np.concatenate(starts), np.concatenate(ends)
    )
