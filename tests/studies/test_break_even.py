"""Break-evens of light: the crossing in time, the price at which wires cost the same, what is said."""

from __future__ import annotations

import json
import math

import pytest

import opticube
from sim.break_evens import TIMES_S, BreakEven, break_even, crossing_s
from sim.cli import command_status
from sim.scenario import Scenario
from sim.trials import Trials, mean_of, single_point, with_settings
from tests.run.cases import MACHINE, loaded
from topology.errors import InputError

DAY_S = 86_400.0


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    few = ("sweep=null", "failures.host.availability=99 %", "study.availability=null", "study.promise=null")
    return loaded(MACHINE, *few, "study.delivered.horizon=40 d", "study.delivered.replications=4")


@pytest.fixture(scope="module")
def found(scenario: Scenario) -> BreakEven:
    return break_even(scenario, times_s=(1.0, 3600.0, DAY_S), workers=1)


def test_python_has_it_too() -> None:
    """Goal: what the command does works from Python. Method: the name at the top is the function tested here."""
    assert opticube.break_even is break_even


def test_crossing_of_a_falling_line() -> None:
    """Goal: where a difference reaches zero. Method: a line in the logarithm of time, exact; never and always."""
    times = [10.0**k for k in range(6)]
    assert crossing_s(times, [math.log(700.0 / time) for time in times]) == pytest.approx(700.0)
    assert crossing_s(times, [1.0] * 6) == math.inf
    assert crossing_s(times, [-1.0] * 6) == 0.0
    assert (TIMES_S[0], TIMES_S[-1]) == (1.0, DAY_S)


def test_slower_circuits_deliver_less(found: BreakEven) -> None:
    """Goal: the sweep in time. Method: what is delivered falls with the time of a reconfiguration; wires keep theirs; a
    day for each reconfiguration of a pod that fails daily is worse than waiting for repairs of 10 h."""
    assert found.times["delivered"].is_monotonic_decreasing
    assert found.times["static"].nunique() == 1
    assert found.times["difference"].iloc[0] > 0 > found.times["difference"].iloc[-1]
    assert "no better than static wiring from" in found.sentences[0]


def test_at_the_price_found_both_cost_the_same(scenario: Scenario, found: BreakEven) -> None:
    """Goal: the price of light at which wires are as cheap. Method: the second route multiplies the three prices of
    light by the factor found and counts a delivered chip-hour on both pods anew."""
    row = found.prices.iloc[0]
    factor = float(row["price_factor"])
    assert 0 < factor < 100
    prices = scenario.prices
    dearer = {
        f"prices.{name}": f"{factor * getattr(prices, name)!r} USD" for name in ("switch", "optical_end", "fibre")
    }
    trials, costs = Trials(executor=None), []
    for fabric in ("reconfigurable", "static_aligned"):
        trial = trials.play(with_settings(single_point(scenario), dearer | {"pod.fabric": fabric}))
        costs.append(trial.cost.usd_per_chip_hour / mean_of(trial.of_jobs("delivered", 256)))
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)
    assert costs[1] == pytest.approx(row["static"])


def test_the_command_and_its_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: `opticube break-even`. Method: a document of a small pod; without slices in demand it says what to add."""
    few = ["serving=null", "sweep=null", "study.availability=null", "study.delivered.horizon=3 d"]
    arguments = [word for text in few for word in ("--set", text)]
    assert command_status(["break-even", "smoke", *arguments, "--workers", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["times"]) == len(TIMES_S)
    assert len(document["sentences"]) == 2
    with pytest.raises(InputError, match=r"study\.delivered"):
        break_even(loaded(MACHINE, "study.delivered=null"))
