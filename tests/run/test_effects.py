"""What changes do alone and together: ratios, intervals and interactions by hand, names, and a run that compares."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from sim.effects import effect_table
from sim.metrics.intervals import mean_estimate
from sim.report.effect_words import effect_sentences, effect_table_texts
from sim.simulation import run
from tests.run.cases import SERVED, loaded

SWEPT = {"pod.fabric": ["static_aligned", "reconfigurable"], "data": ["poor", "good"], "task": ["slow", "fast"]}
LUCK = np.array([0.8, 1.0, 1.3])


def replications(values: dict[tuple[str, str, str], list[float]]) -> pd.DataFrame:
    """The table `service_replications` of one measure."""
    rows = [
        {"fabric": fabric, "host_availability": 0.99, "service": "chat", "measure": "tokens_in_time"}
        | {"replication": number, "value": value, "data": data, "task": task}
        for (fabric, data, task), own in values.items()
        for number, value in enumerate(own)
    ]
    return pd.DataFrame(rows)


def made(joint: float = 1.0, zero: bool = False) -> pd.DataFrame:
    """Effects of changes that multiply by 2, 3 and 5, by `joint` more where data and task both change."""
    found = {}
    for fabric in SWEPT["pod.fabric"]:
        for data in SWEPT["data"]:
            for task in SWEPT["task"]:
                value = 0.01 * (2 if fabric == "reconfigurable" else 1) * (3 if data == "good" else 1)
                value *= (5 if task == "fast" else 1) * (joint if (data, task) == ("good", "fast") else 1)
                found[fabric, data, task] = list(value * LUCK)
    if zero:
        found["static_aligned", "good", "fast"][0] = 0.0
    names = {"rigid": {"pod.fabric": "static_aligned", "data": "good", "task": "best"}, "all": {}}
    return effect_table(replications(found), SWEPT, "tokens_in_time", "higher", names)


def test_changes_that_multiply_have_no_interaction() -> None:
    """Goal: log whole minus the sum of logs of the singles is 0, on equal luck. Method: factors 2, 3, 5."""
    table = made().set_index(["fabric", "data", "task"])
    last = table.loc["reconfigurable", "good", "fast"]
    assert last["ratio"] == pytest.approx(30)
    assert last["one_by_one"] == pytest.approx(30)
    assert last["interaction"] == pytest.approx(0, abs=1e-12)
    assert last["changed"] == 3
    assert math.isnan(table.loc["static_aligned", "good", "slow"]["interaction"])
    assert table.loc["static_aligned", "poor", "slow"]["ratio"] == 1.0
    assert (table["name"] == "rigid").sum() == 1
    assert table.loc["static_aligned", "good", "fast"]["name"] == "rigid"
    assert last["name"] == "all"


def test_interactions_have_paired_intervals() -> None:
    """Goal: the interval is that of the paired logarithms. Method: one value is hit by luck of its own, against the
    t-interval by hand; a value of 0 has no logarithm and leaves one pair less."""
    own = np.array([1.0, 1.1, 0.95])
    found = {(f, d, t): list(LUCK) for f in SWEPT["pod.fabric"] for d in SWEPT["data"] for t in SWEPT["task"]}
    found["reconfigurable", "good", "slow"] = list(LUCK * 1.5 * own)
    table = effect_table(replications(found), SWEPT, "tokens_in_time", "higher", {})
    row = table.set_index(["fabric", "data", "task"]).loc["reconfigurable", "good", "slow"]
    by_hand = mean_estimate(np.log(1.5 * own))
    assert (row["interaction"], row["interaction_low"]) == pytest.approx((by_hand.value, by_hand.ci_low))
    assert row["ratio_high"] == pytest.approx(math.exp(by_hand.ci_high))
    short = made(zero=True).set_index(["fabric", "data", "task"]).loc["static_aligned", "good", "fast"]
    assert (short["replications"], short["ratio"]) == (2, pytest.approx(15))


def test_words_say_which_way_changes_go_together() -> None:
    """Goal: sentences bear what the numbers do. Method: factors that multiply, and one that needs another."""
    said = " ".join(effect_sentences({"effects": made()}))
    assert "with reconfigurable, good, fast, the best of eight combinations: 30 times as much" in said
    assert "no interplay is seen" in said
    assert "Rigid: 15" in said
    table = made(joint=2.0)
    table["interaction_low"], table["interaction_high"] = table["interaction"] - 0.1, table["interaction"] + 0.1
    assert "more than one by one" in " ".join(effect_sentences({"effects": table}))
    (text,) = effect_table_texts({"effects": made()})
    assert "static aligned, good, fast (rigid)" in text


def test_a_change_that_turns_is_said_to_turn() -> None:
    """Goal: what helps at one value of another key and harms at another is told, with paired intervals. Method: a draft
    that halves times when idle and doubles them when busy, with a little luck of its own, against the intervals by
    hand; with no harm anywhere nothing is said."""
    own = np.array([1.0, 1.02, 0.99])
    found = {
        (draft, load): list(0.02 * LUCK * (1 if draft == "none" else ratio * own) * slower)
        for draft in ("none", "small")
        for load, ratio, slower in (("idle", 0.5, 1.0), ("busy", 2.0, 3.0))
    }
    rows = [
        {"fabric": "reconfigurable", "host_availability": 1.0, "service": "chat", "measure": "tpot_p50_s"}
        | {"replication": number, "value": value, "draft": draft, "load": load}
        for (draft, load), values in found.items()
        for number, value in enumerate(values)
    ]
    swept = {"draft": ["none", "small"], "load": ["idle", "busy"]}
    table = effect_table(pd.DataFrame(rows), swept, "tpot_p50_s", "lower", {})
    busy = table.set_index(["draft", "load"]).loc["small", "busy"]
    by_hand = mean_estimate(np.log(2.0 * own))
    assert busy["same_ratio"] == pytest.approx(math.exp(by_hand.value))
    assert (busy["same_low"], busy["same_high"]) == pytest.approx((math.exp(by_hand.ci_low), math.exp(by_hand.ci_high)))
    assert busy["ratio"] == pytest.approx(3 * busy["same_ratio"])
    said = effect_sentences({"effects": table})
    assert said[0].startswith("Median time per later token of chat: 20.7 ms with none, idle; ")
    assert said[-1] == "So small helps with idle, and harms with busy."
    table.loc[3, ["same_ratio", "same_low", "same_high"]] = [0.9, 0.8, 0.95]
    assert "helps" not in " ".join(effect_sentences({"effects": table}))


def test_a_run_compares_its_points_and_turns_away_what_it_can_not_serve() -> None:
    """Goal: `within_capacity` serves what replicas can serve, whatever arrives; without it the queue takes all down.
    Method: twice the capacity on two replicas; tokens in time against capacity over arrivals, within 10 %."""
    settings = (
        "study=null", "sweep={door: {open: {serving.services.0.admission.within_capacity: false}, "
        "shut: {serving.services.0.admission.within_capacity: true}}}", "serving.weights=healthy", "pod.cubes=8",
        "serving.load_curve=null", "serving.services.0.load=2", "serving.services.0.replicas=2",
        "serving.effects={names: {}}", "serving.windows={requests: 4000, replications: 2, losses: 0}",
    )  # fmt: skip
    result = run(loaded(SERVED, *settings), workers=1)
    effects = result.tables["effects"].set_index("door")
    shut = effects.loc["shut", "value"]
    assert shut == pytest.approx(0.5 * 0.93, rel=0.1)
    assert effects.loc["open", "value"] < 0.5 * shut
    assert effects.loc["shut", "ratio"] > 2 or effects.loc["open", "value"] == 0
    assert sum("overloaded" in warning for warning in result.warnings) == 1
