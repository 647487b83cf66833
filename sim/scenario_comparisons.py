"""What a scenario must hold to compare combinations of swept values, and to tell of a slowdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim.measure_names import BEST, MEASURES, SERVICE_UNITS
from sim.scenario_faults import nearest
from sim.strict_yaml import KeyPath

if TYPE_CHECKING:
    from sim.scenario import Scenario

Problem = tuple[KeyPath, str, str]
STEPS_MOST = 2_000
"""Most steps by which a disturbance is told."""


def disturbance_problems(scenario: Scenario) -> Iterator[Problem]:
    """There is something to be told of a slowdown after it is over, and no more steps and requests than can be."""
    asked = scenario.serving.disturbance if scenario.serving is not None else None
    if asked is None:
        return
    if asked.steps <= asked.first_after:
        what = "the horizon ends before a whole step after the slowdown"
        yield ("serving", "disturbance", "horizon"), what, "write a longer horizon or a shorter step"
    elif asked.steps > STEPS_MOST:
        yield (
            ("serving", "disturbance", "step"),
            f"{asked.steps:,} steps",
            f"write a step that makes at most {STEPS_MOST:,}",
        )


def effects_problems(scenario: Scenario) -> Iterator[Problem]:
    """Combinations are of swept values, and are compared by a measure of services."""
    effects = scenario.serving.effects if scenario.serving is not None else None
    path: KeyPath = ("serving", "effects")
    if effects is None:
        return
    from sim.tables import text_of_setting  # here: tables take long to load

    if not scenario.sweep:
        yield path, "nothing is swept, so there is nothing to compare", "write `sweep:`, or take the key out"
    measure = MEASURES.get(effects.measure)
    if effects.measure not in SERVICE_UNITS:
        what = f"`{effects.measure}` is no measure of services"
        yield (*path, "measure"), what, nearest(effects.measure, list(SERVICE_UNITS))
    elif measure is not None and not measure.is_produced(scenario):
        yield (*path, "measure"), f"this run has no {effects.measure}", f"write `{measure.needs}`"
    for name, combination in effects.names.items():
        for key, value in combination.items():
            values = [text_of_setting(one) for one in scenario.sweep.get(key, ())]
            where = (*path, "names", name, key)
            if not values:
                yield where, f"`{key}` is not swept", nearest(key, list(scenario.sweep))
            elif text_of_setting(value) not in (*values, BEST):
                yield where, f"`{key}` does not take the value {value}", nearest(str(value), [*values, BEST])
