"""How many replicas a service wants as its demand goes up and down, and what so many replicas serve in time.

Policies are pure: from the rates at the instants at which they look to the replicas wanted. What is wanted is data (who
from when to when); whether a replica is up by then is for the pod to say. Requests take seconds and rates change over
hours, so at each instant replicas serve as in the long run at the rate that each of them gets (assumption; it is close
while the rate changes little within the time of some requests).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from topology.units import Seconds, Share

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RatesAt = Callable[[Floats], Floats]
US_PER_S = 1_000_000
MOST_LOOKS = 5_000_000


class ScalingPolicy(Protocol):
    """What a scenario can name under `scaling:`; `kind` tells policies apart."""

    @property
    def kind(self) -> str:
        """Its name."""
        ...

    def replicas(self, rates_at: RatesAt, at_s: Floats, every_s: float, capacity_per_s: float) -> Ints:
        """Replicas wanted from each of these instants (T,), `every_s` apart, to the next one.

        `rates_at` gives the requests per second at any instants, `capacity_per_s` what one replica serves in time.
        """
        ...


def _needed(rates: Floats, load: float, capacity_per_s: float) -> Ints:
    """Replicas that carry these rates at `load` of what each can do; a rate that is met to 1e-9 counts as met."""
    return np.ceil(rates / (load * capacity_per_s) - 1e-9).astype(np.int64)


def _greatest_before(values: Ints, looks: int) -> Ints:
    """The greatest of each value (T,) and the `looks` before it."""
    if looks == 0:
        return values
    padded = np.concatenate([np.full(looks, values[0]), values])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, looks + 1).max(axis=1), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Follow:
    """As many replicas as carry the rate of now at `load` of what each can do; fewer once `hold` has asked for fewer.

    (Kubernetes' autoscaler holds for 300 s too.)
    """

    kind: Literal["follow"] = "follow"
    load: Share = 0.8
    hold: Seconds = 300.0

    def replicas(self, rates_at: RatesAt, at_s: Floats, every_s: float, capacity_per_s: float) -> Ints:
        """From the rate at each instant."""
        return _greatest_before(_needed(rates_at(at_s), self.load, capacity_per_s), round(self.hold / every_s))


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """As `follow`, for the greatest rate from now to `ahead` from now: the day is known, and starts take time."""

    kind: Literal["ahead"] = "ahead"
    load: Share = 0.8
    hold: Seconds = 300.0
    ahead: Seconds = 900.0

    def replicas(self, rates_at: RatesAt, at_s: Floats, every_s: float, capacity_per_s: float) -> Ints:
        """From the rates that are to come."""
        looks = math.ceil(self.ahead / every_s - 1e-9)
        later = np.concatenate([at_s, at_s[-1] + every_s * np.arange(1, looks + 1)])
        needed = _needed(rates_at(later), self.load, capacity_per_s)
        coming = _greatest_before(needed[::-1], looks)[::-1][: len(at_s)]
        return _greatest_before(np.ascontiguousarray(coming), round(self.hold / every_s))


@dataclass(frozen=True, kw_only=True)
class FixedReplicas:
    """Always so many."""

    kind: Literal["fixed"] = "fixed"
    count: int

    def __post_init__(self) -> None:
        """Refuse a count that is none."""
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 0:
            raise ValueError(f"{self.count} replicas: write a whole number of at least 0")

    def replicas(self, rates_at: RatesAt, at_s: Floats, every_s: float, capacity_per_s: float) -> Ints:
        """Whatever the rate."""
        return np.full(len(at_s), self.count, dtype=np.int64)


class Wanted(NamedTuple):
    """Replicas wanted: from `time_us[i]` on (K,) `replicas[i]`, only changes; the first at 0."""

    time_us: Ints
    replicas: Ints


def wanted_replicas(
    policy: ScalingPolicy,
    rates_at: RatesAt,
    *,
    capacity_per_s: float,
    every_s: float,
    least: int,
    most: int,
    horizon_s: float,
) -> Wanted:
    """What a policy wants, within `least` and `most`, at instants `every_s` apart up to the horizon."""
    looks = math.ceil(horizon_s / every_s)
    if looks > MOST_LOOKS:
        raise ValueError(f"{looks:,} looks at the demand: write a longer `every`, or a shorter horizon")
    at_s = np.asarray(every_s * np.arange(looks), dtype=np.float64)
    count = np.clip(policy.replicas(rates_at, at_s, every_s, capacity_per_s), least, most)
    changes = np.concatenate([[0], 1 + np.flatnonzero(np.diff(count))])
    return Wanted(np.rint(at_s[changes] * US_PER_S).astype(np.int64), count[changes])


class Term(NamedTuple):
    """Replica number `replica` is wanted from `from_us` until `until_us` (None: to the end)."""

    replica: int
    from_us: int
    until_us: int | None


def terms_of(wanted: Wanted) -> list[Term]:
    """Who is wanted when, in order of time: with n wanted, replicas 0 to n - 1; the last to come is the first to go."""
    found: list[Term] = []
    since: list[int] = []
    for time_us, count in zip(wanted.time_us.tolist(), wanted.replicas.tolist(), strict=True):
        while len(since) > count:
            from_us = since.pop()
            found.append(Term(len(since), from_us, time_us))
        since += [time_us] * (count - len(since))
    found += [Term(replica, from_us, None) for replica, from_us in enumerate(since)]
    return sorted(found, key=lambda term: (term.from_us, term.replica))


@dataclass(frozen=True, kw_only=True)
class ReplicaCurve:
    """What one replica serves in time as requests come faster: points (K,), rates rising from 0.

    `capacity_per_s` is the rate that autoscaling counts with. Beyond the rate at which most is served in time, the
    door turns the rest away (assumption). `tokens_per_request`: of an answer, in the mean; None where nothing says so.
    """

    capacity_per_s: float
    rates_per_s: tuple[float, ...]
    in_time_per_s: tuple[float, ...]
    tokens_per_request: float | None = None

    def served_per_s(self, rates: Floats) -> Floats:
        """Requests per second in time at these rates (T,)."""
        best = int(np.argmax(self.in_time_per_s))
        return np.interp(np.minimum(rates, self.rates_per_s[best]), self.rates_per_s, self.in_time_per_s)


def flat_curve(capacity_per_s: float) -> ReplicaCurve:
    """A replica that serves all in time up to its capacity, and no more."""
    return ReplicaCurve(
        capacity_per_s=capacity_per_s,
        rates_per_s=(0.0, capacity_per_s),
        in_time_per_s=(0.0, capacity_per_s),
    )


def curve_of(
    capacity_per_s: float, points: Sequence[tuple[float, float]], tokens_per_request: float | None = None
) -> ReplicaCurve:
    """A curve through (rate, share in time) as the token kernel measures them, and through nothing at no rate."""
    ordered = sorted(points)
    rates = (0.0, *(rate for rate, _ in ordered))
    return ReplicaCurve(
        capacity_per_s=capacity_per_s,
        rates_per_s=rates,
        in_time_per_s=(0.0, *(rate * share for rate, share in ordered)),
        tokens_per_request=tokens_per_request,
    )


def served_in_time(curve: ReplicaCurve, demand: Floats, up: Floats, unnoticed: Floats) -> Floats:
    """Requests per second served in time (T,): `demand` spread evenly over replicas.

    `up` counts replicas (a slowed one as its speed); requests that go to one that is down and `unnoticed` are missed.
    """
    asked = up + unnoticed
    each = np.divide(demand, asked, out=np.zeros_like(demand), where=asked > 0)
    return np.where(up > 0, up * curve.served_per_s(each), 0.0)
