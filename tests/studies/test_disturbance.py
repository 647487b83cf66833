"""A service that is slowed for a while: a storm of retries outlives its cause, and a shut door ends it."""

from __future__ import annotations

import numpy as np
import pytest

from sim.scenario import expand, load_scenario
from sim.studies.disturbance import Disturbance, disturbed_window
from sim.studies.windows import WindowTask
from tests.run.cases import loaded
from tests.scenario.bad_scenarios import BASE
from topology.errors import InputError


def test_a_storm_outlives_its_cause_in_a_scenario() -> None:
    """Goal: clients that ask again keep a service down that is whole again; without a cause, without retries, or with
    a shut door they do not; backoff lies between. Method: two repetitions of the shipped scenario, by step of arrival;
    every request is in one step, and nobody is sent less than once."""
    scenario = load_scenario("retry_storm")
    after = {}
    for point in expand(scenario):
        serving = point.scenario.serving
        assert serving is not None
        assert serving.disturbance is not None
        tasks = [WindowTask(service=0, rate_per_s=7.5, saturated_per_s=11.5, repetition=k) for k in range(2)]
        told = Disturbance(
            asked=serving.disturbance, repetitions=tuple(disturbed_window(point.scenario, task) for task in tasks)
        )
        for each in told.repetitions:
            assert np.array_equal(each.arrived[0], each.arrived[1])
            assert (each.attempts >= each.arrived).all()
            assert (each.answered <= each.arrived).all()
            assert each.arrived[0].sum() == pytest.approx(7.5 * 160, rel=0.1)
        measures = told.measures()
        assert measures["answered_undisturbed"].value > 0.99
        after[point.settings["clients"]] = measures["answered_after_disturbance"].value
        assert len(told.rows("chat")) == 2 * serving.disturbance.steps
    assert after["once"] > 0.99
    assert after["shut_door"] > 0.99
    assert after["early_rejection"] > 0.99
    assert after["again"] < 0.05
    assert 0.3 < after["again_slowly"] < 0.95


def test_a_disturbance_needs_time_after_it() -> None:
    """Goal: what can not be told is refused. Method: a horizon that ends too soon, a step that is too short."""
    for text, match in (("{horizon: 35 s}", "ends before a whole step"), ("{step: 10 ms}", "16,000 steps")):
        with pytest.raises(InputError, match=match):
            loaded(BASE, f"serving.disturbance={text}")
