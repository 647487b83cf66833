"""Replicas wanted as data: policies, terms, curves, laws of demand. No clock and no pod."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.metrics.step_counts import joined_edges, step_count
from topology.errors import InputError
from workloads.autoscaling import (
    Ahead,
    FixedReplicas,
    Follow,
    Wanted,
    curve_of,
    flat_curve,
    served_in_time,
    terms_of,
    wanted_replicas,
)
from workloads.load.rates import DiurnalRate, StepRates, TraceRates

HOUR_US = 3_600_000_000


def wanted_hours(policy: Follow | Ahead | FixedReplicas, rates: list[float], every_s: float = 3600.0) -> list[int]:
    """Replicas wanted in each hour of a day of these rates, 10 requests/s each."""
    law = StepRates(rates=tuple(rates))
    found = wanted_replicas(
        policy, law.rates_per_s, capacity_per_s=10.0, every_s=every_s, least=1, most=50, horizon_s=3600.0 * len(rates)
    )
    hours = np.arange(len(rates)) * HOUR_US
    return found.replicas[np.searchsorted(found.time_us, hours, side="right") - 1].tolist()


def test_replicas_follow_the_rate() -> None:
    """Goal: what is wanted is the least number that carries the rate. Method: by hand, exact multiples included."""
    assert wanted_hours(Follow(load=0.5, hold=0), [0, 1, 5, 5.01, 50, 1000]) == [1, 1, 1, 2, 10, 50]


def test_fewer_only_after_a_while() -> None:
    """Goal: `hold` keeps replicas for as long as it says. Method: an hour's peak, looks of a quarter of an hour."""
    assert wanted_hours(Follow(load=0.5, hold=7200), [5, 20, 5, 5, 5, 5]) == [1, 4, 4, 4, 1, 1]


def test_looking_ahead() -> None:
    """Goal: replicas are wanted before the peak. Method: a peak in hour 4, seen two hours ahead."""
    assert wanted_hours(Ahead(load=0.5, hold=0, ahead=7200), [5, 5, 5, 5, 20, 5]) == [1, 1, 4, 4, 4, 1]


def test_a_fixed_number() -> None:
    """Goal: the rate does not matter to a fixed number. Method: any rates."""
    assert wanted_hours(FixedReplicas(count=3), [0, 100, 5]) == [3, 3, 3]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=30))
def test_terms_add_up_to_what_is_wanted(counts: list[int]) -> None:
    """Goal: terms are the same information as counts. Method: any counts; terms added up again, replica by replica."""
    times = np.arange(len(counts), dtype=np.int64) * HOUR_US
    terms = terms_of(Wanted(times, np.array(counts, dtype=np.int64)))
    end_us = len(counts) * HOUR_US
    again = step_count((term.from_us, end_us if term.until_us is None else term.until_us, 1) for term in terms)
    assert again.at(times).tolist() == counts
    for replica in {term.replica: None for term in terms}:
        own = [term for term in terms if term.replica == replica]
        for before, after in itertools.pairwise(own):
            assert before.until_us is not None
            assert before.until_us <= after.from_us, "one replica, one term at a time"


def test_edges_hold_every_change() -> None:
    """Goal: nothing changes between two edges. Method: two counts, edges against a brute list."""
    counts = [step_count([(5, 20, 1), (7, 9, 2)]), step_count([(0, 12, 1)])]
    assert joined_edges(4, 25, 10, counts).tolist() == [4, 5, 7, 9, 12, 14, 20, 24, 25]


def test_what_replicas_serve() -> None:
    """Goal: demand over replicas, through the curve. Method: by hand: below, at and over the best rate, none up, one
    down unnoticed (its share is missed), one slowed to a half."""
    curve = curve_of(10.0, [(10.0, 1.0), (20.0, 0.25)])
    flat = flat_curve(10.0)
    up = np.array([1.0, 1.0, 0.0, 3.0, 1.5])
    unnoticed = np.array([0.0, 0.0, 1.0, 1.0, 0.0])
    demand = np.array([5.0, 100.0, 5.0, 20.0, 12.0])
    assert served_in_time(flat, demand, up, unnoticed).tolist() == [5.0, 10.0, 0.0, 15.0, 12.0]
    assert served_in_time(curve, demand, up, unnoticed).tolist() == [5.0, 10.0, 0.0, 15.0, 12.0]


def test_laws_of_demand() -> None:
    """Goal: rates mean what they say. Method: mean, peak and weekend of the diurnal law; steps over and over."""
    day = DiurnalRate(mean=100.0, swing=0.5, peak=15 * 3600.0, weekend=0.5)
    hours = np.arange(7 * 24) * 3600.0
    rates = day.rates_per_s(hours)
    assert math.isclose(rates[:120].mean(), 100.0)
    assert int(np.argmax(rates[:24])) == 15
    assert np.allclose(rates[120:], 0.5 * rates[:48])
    steps = StepRates(rates=(1.0, 2.0), every=60.0)
    assert steps.rates_per_s(np.array([0.0, 59.9, 60.0, 119.0, 120.0])).tolist() == [1.0, 1.0, 2.0, 2.0, 1.0]


def test_a_trace_of_rates(tmp_path: Path) -> None:
    """Goal: a file of rates is read, repeated, and refused by line where it is wrong. Method: files written here."""
    file = tmp_path / "rates.csv"
    file.write_text("time_s,requests_per_s\n100,1\n160,3\n", encoding="utf-8")
    law = TraceRates(path=str(file), factor=2.0)
    assert law.rates_per_s(np.array([0.0, 60.0, 119.0, 120.0])).tolist() == [2.0, 6.0, 6.0, 2.0]
    head = "time_s,requests_per_s\n"
    wrong = {"time,rate\n0,1\n": "first line", f"{head}0,1\n0,2\n": ":3", f"{head}0,x\n1,1\n": ":2",
             f"{head}0,1\n": "1 rows"}  # fmt: skip
    for number, (text, where) in enumerate(wrong.items()):
        bad = tmp_path / f"{number}.csv"
        bad.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=where):
            TraceRates(path=str(bad)).rates_per_s(np.array([0.0]))
