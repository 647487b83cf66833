"""Failure histories: derived means, stationarity, long-run rates, draws that never move."""

from __future__ import annotations

import numpy as np
import pytest

from sim.histories import ComponentKind, FailureMode, Lives, draw_outages, failure_mode
from sim.lifetimes import Empirical, Exponential, LifeLaw, Lognormal, Weibull
from sim.metrics.intervals import mean_estimate, t_quantile
from sim.streams import Streams
from topology.errors import InputError

HOUR_S = 3600.0
DAY_S = 86400.0
DAY_US = 86_400_000_000
PER_DAY = 0.0008 / DAY_S


@pytest.mark.parametrize(("availability", "days"), [(0.999, 1.25), (0.995, 6.28), (0.99, 12.63)])
def test_rate_and_availability_fix_the_outage(availability: float, days: float) -> None:
    """Goal: machine.md 3. Method: 0.08 %/day with three availabilities gives 1.25, 6.28, 12.63 d out of service."""
    mode = failure_mode(ComponentKind.HOST, 10, failure_rate_per_s=PER_DAY, availability=availability, rest_s=60.0)
    assert mode.outage_mean_s / DAY_S == pytest.approx(days, abs=0.005)
    assert mode.repair.mean_s == pytest.approx(mode.outage_mean_s - 60.0)
    assert mode.availability == pytest.approx(availability)
    assert mode.life.mean_s == pytest.approx(1250.0 * DAY_S)


def test_availability_and_repair_fix_the_life() -> None:
    """Goal: M = a / (1 - a) D with detection and the rest in D. Method: repair 10 h, rest 1 h, 99 %."""
    mode = failure_mode(ComponentKind.HOST, 10, availability=0.99, repair=Exponential(mean=10 * HOUR_S), rest_s=HOUR_S)
    assert mode.life.mean_s == pytest.approx(99.0 * 11.0 * HOUR_S)
    assert mode.availability == pytest.approx(0.99)


def test_a_repair_alone_holds_the_rest() -> None:
    """Goal: with a repair alone, detection runs inside the repair. Method: rate and repair, D is the mean repair."""
    mode = failure_mode(
        ComponentKind.OCS, 48, failure_rate_per_s=PER_DAY, repair=Exponential(mean=DAY_S), rest_s=HOUR_S
    )
    assert mode.outage_mean_s == DAY_S
    assert mode.overhead_s == 0.0
    with_shape = failure_mode(
        ComponentKind.HOST,
        1,
        failure_rate_per_s=PER_DAY,
        availability=0.99,
        life=Weibull(shape=0.7),
        repair=Lognormal(cv=3.0),
    )
    assert with_shape.life == Weibull(shape=0.7, mean=1250.0 * DAY_S)
    assert with_shape.availability == pytest.approx(0.99)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "too little"),
        ({"availability": 0.99}, "alone"),
        ({"failure_rate_per_s": 1.0}, "too little"),
        ({"failure_rate_per_s": 0.0, "availability": 0.9}, "never fails"),
        ({"failure_rate_per_s": 1.0, "life": Exponential(mean=1.0), "availability": 0.9}, "one of them"),
        ({"failure_rate_per_s": 1e-6, "availability": 0.9, "repair": Exponential(mean=1.0)}, "leave one out"),
        ({"failure_rate_per_s": 1.0, "availability": 0.9, "rest_s": 60.0}, "shorter delays"),
        ({"availability": 1.0, "repair": Exponential(mean=1.0)}, "strictly between"),
    ],
)
def test_too_little_or_too_much_is_refused(spec: dict[str, object], said: str) -> None:
    """Goal: an underdetermined or contradictory population says what to write. Method: one of each."""
    with pytest.raises(ValueError, match=said):
        failure_mode(ComponentKind.HOST, 10, **spec)  # type: ignore[arg-type]


def test_adding_eight_cubes_changes_no_draw_of_the_others() -> None:
    """Goal: spares move nothing. Method: 56 and 64 cubes, the first 896 hosts have the same outages exactly."""
    mode = {"availability": 0.99, "repair": Exponential(mean=10 * HOUR_S)}
    small, large = (
        draw_outages(Lives(failure_mode(ComponentKind.HOST, 16 * cubes, **mode), Streams(7, 3)), 30 * DAY_US)  # type: ignore[arg-type]
        for cubes in (56, 64)
    )
    old = large.component < 16 * 56
    assert old.sum() == len(small) > 100
    for name in ("component", "start_us", "end_us"):
        assert np.array_equal(getattr(large, name)[old], getattr(small, name))


@pytest.mark.parametrize("stationary", [True, False])
def test_histories_are_the_draws_played_one_by_one(stationary: bool) -> None:
    """Goal: the vectorised history is the contract of the blocks. Method: play every component alone, in Python."""
    mode = FailureMode(
        kind=ComponentKind.RACK,
        count=40,
        life=Weibull(shape=0.7, mean=20 * HOUR_S),
        repair=Lognormal(cv=1.0, mean=8 * HOUR_S),
        overhead_s=600.0,
        stationary=stationary,
    )
    lives = Lives(mode, Streams(5, 1))
    horizon_us = 20 * DAY_US
    played = []
    for c in range(mode.count):
        now, k = int(lives.initial_residual_us()[c]), 0
        if lives.initial_down[c]:
            played.append((0, c, now))
            now, k = now + int(lives.life_us(0)[c]), 1
        while now < horizon_us:
            end = now + int(lives.repair_us(k)[c]) + lives.overhead_us
            played.append((now, c, end))
            now, k = end + int(lives.life_us(k)[c]), k + 1
    outages = draw_outages(Lives(mode, Streams(5, 1)), horizon_us)
    found = zip(outages.start_us.tolist(), outages.component.tolist(), outages.end_us.tolist(), strict=True)
    assert list(found) == sorted(played)
    assert lives.initial_down.any() == stationary


@pytest.mark.parametrize(
    ("life", "repair", "overhead_s"),
    [
        (Weibull(shape=0.7), Exponential(mean=10 * HOUR_S), 0.0),
        (Lognormal(cv=2.0), Empirical(values=(HOUR_S, 30 * HOUR_S)), 2 * HOUR_S),
    ],
    ids=["weibull", "lognormal"],
)
def test_a_stationary_start_is_stationary(life: LifeLaw, repair: LifeLaw, overhead_s: float) -> None:
    """Goal: availability and failure rate are those of the long run from the first instant.

    Method: 50,000 components, the share down and the failures in each tenth of the horizon, within five deviations.
    """
    mode = failure_mode(
        ComponentKind.HOST,
        50_000,
        availability=0.9,
        life=life,
        repair=repair,
        rest_s=overhead_s,  # type: ignore[arg-type]
    )
    horizon_us = 10 * DAY_US
    outages = draw_outages(Lives(mode, Streams(3, 0)), horizon_us)
    slots = np.arange(0, horizon_us, DAY_US)
    for at_us in slots:
        down = np.count_nonzero((outages.start_us <= at_us) & (outages.end_us > at_us))
        assert down / mode.count == pytest.approx(0.1, abs=5.0 * np.sqrt(0.09 / mode.count))
    fresh = outages.start_us[outages.start_us > 0]
    counts = np.histogram(fresh, bins=np.append(slots, horizon_us))[0]
    due = mode.failures_per_s * DAY_S
    assert counts == pytest.approx(np.full(10, due), abs=6.0 * np.sqrt(due))


def test_long_run_failure_rate_of_weibull_is_that_of_renewal() -> None:
    """Goal: N / (mean + repair) failures, whatever the shape (results_to_reproduce 1).

    Method: Weibull 0.7, started new and run for many means, a warm-up cut off; interval over 24 replications.
    """
    mode = FailureMode(
        kind=ComponentKind.HOST,
        count=400,
        life=Weibull(shape=0.7, mean=100 * HOUR_S),
        repair=Exponential(mean=20 * HOUR_S),
        stationary=False,
    )
    warm_us, horizon_us = 100 * DAY_US, 400 * DAY_US
    rates = []
    for replication in range(24):
        start_us = draw_outages(Lives(mode, Streams(11, replication)), horizon_us).start_us
        rates.append(np.count_nonzero(start_us >= warm_us) / ((horizon_us - warm_us) / 1e6))
    estimate = mean_estimate(rates)
    assert estimate.ci_low <= mode.failures_per_s <= estimate.ci_high
    assert estimate.half_width / mode.failures_per_s < 0.01
    # the first days of new components see more failures than that: the start is not stationary
    early = np.count_nonzero(draw_outages(Lives(mode, Streams(11, 0)), 2 * DAY_US).start_us >= 0) / (2 * DAY_S)
    assert early > 1.2 * mode.failures_per_s


def test_a_stationary_weibull_fails_at_the_renewal_rate_at_once() -> None:
    """Goal: no burn-in is needed. Method: the first 50 days of 16 stationary replications, in the 99.9 % interval."""
    mode = failure_mode(
        ComponentKind.HOST, 1000, availability=0.9, life=Weibull(shape=0.7), repair=Exponential(mean=20 * HOUR_S)
    )
    rates = []
    for replication in range(16):
        start_us = draw_outages(Lives(mode, Streams(2, replication)), 50 * DAY_US).start_us
        rates.append(np.count_nonzero(start_us > 0) / (50 * DAY_S))
    estimate = mean_estimate(rates)
    error = t_quantile(0.9995, 15) * estimate.deviation / 4.0
    assert abs(estimate.value - mode.failures_per_s) <= error


def test_endless_histories_are_refused() -> None:
    """Goal: no run that fills the memory. Method: lives of a second over a year."""
    mode = failure_mode(ComponentKind.HOST, 1024, failure_rate_per_s=1.0, repair=Exponential(mean=1.0))
    with pytest.raises(InputError, match="outages within the horizon"):
        draw_outages(Lives(mode, Streams(1, 0)), 365 * DAY_US)
