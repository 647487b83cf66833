"""The stored baselines of shipped scenarios: one each, readable, with settings that still mean something."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.regression.baselines import read_baseline
from sim.scenario import load_scenario, shipped_scenarios
from tests.scenario.test_scenarios import NEEDS_FILE

ROOT = Path(__file__).resolve().parents[2]
BASELINES = sorted((ROOT / "baselines").glob("*.json"))
MOST_BYTES = 150_000


def test_no_scenario_is_without_a_baseline() -> None:
    """Goal: every shipped scenario that needs no file of the user's has one. Method: all names."""
    stored = [path.stem for path in BASELINES]
    assert stored == [name for name in shipped_scenarios() if name not in NEEDS_FILE]


@pytest.mark.parametrize("path", BASELINES, ids=lambda path: path.stem)
def test_a_stored_baseline(path: Path) -> None:
    """Goal: baselines are small, valid, and named after their scenarios. Method: read each; load its scenario with its
    settings; a margin for every measure with a better way, and replications where the scenario has any."""
    assert path.stem in shipped_scenarios()
    assert path.stat().st_size < MOST_BYTES
    baseline = read_baseline(path)
    scenario = load_scenario(path.stem, baseline.settings)
    assert baseline.measures.scenario == scenario.name == path.stem
    assert baseline.measures.seed == scenario.run.seed
    judged = [row for row in baseline.measures.rows.values() if row.better]
    assert {row.measure for row in judged} == set(baseline.margins)
    study = scenario.study
    if any((study.availability, study.delivered, study.operations, study.large_job)):
        assert max(len(row.series.replications) for row in judged) >= 6
