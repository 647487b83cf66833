"""Speed of many pods behind one queue: 100 pods of 4,096 chips for 30 days on two workers (bar: two minutes)."""

from __future__ import annotations

import time

from sim.scenario import load_scenario
from sim.simulation import run

BAR_S = 120.0


def hundred_pods() -> dict[str, float]:
    """Seconds on the wall of the scenario `many_pods` from its text to its tables, the bar, and its jobs."""
    began = time.perf_counter()
    result = run(load_scenario("many_pods"), workers=2)
    table = result.tables["fleet"]
    jobs = float(table.loc[table["measure"] == "fleet_jobs_arrived", "value"].iloc[0])
    return {"seconds": time.perf_counter() - began, "bar_s": BAR_S, "jobs": jobs}
