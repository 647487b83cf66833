"""Changes of a scenario on the same draws: knobs, what they are worth, and avoidable causes against the ledger."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sim.cli import command_status
from sim.knobs import present_value, turned
from sim.prices import HOURS_PER_YEAR, machine_cost
from sim.report.ideal_words import ideal_html, ideal_text
from sim.scenario import Scenario, load_scenario
from sim.simulation import run
from sim.trials import paired, single_point
from sim.worths import worth
from tests.run.cases import MACHINE, OPERATED, PROMISE, SERVED, loaded
from topology.errors import InputError
from topology.fabric import Fabric

WIRED = ("sweep=null", "failures.host.availability=97 %", "study.availability=null", "study.promise=null")
SMALL = ("sweep.pod.fabric=null", "serving.load_curve=null", "serving.services.chat.replicas=2")


@pytest.fixture(scope="module")
def machine() -> Scenario:
    return loaded(MACHINE, *WIRED, "study.delivered.replications=4", "pod.cubes=10", "pod.grid=null")


def test_knobs_are_values_steps_and_factors(machine: Scenario) -> None:
    """Goal: `+1` and `x2` mean what they say, with units. Method: values of the turned scenario."""
    assert turned(machine, "recovery.circuits=x0.1").recovery.circuits == pytest.approx(1.0)
    assert turned(machine, "pod.cubes=+1").pod.cubes == 11
    assert turned(machine, "pod.cubes=-2").pod.cubes == 8
    assert turned(machine, "health.detection=5 s; recovery.evict=+30").recovery.evict == 60.0
    assert turned(machine, "repair.crews=3").repair.crews == 3
    own = loaded(SERVED, "chips.mine={like: tpu_v4}", "serving.services.chat.chip=mine")
    assert turned(own, "chips.mine.hbm_bytes_per_s=x2").catalogue.chips["mine"].hbm_bytes_per_s == 2 * 1200e9
    assert present_value(own, "serving.services.chat.replicas") == 3


@pytest.mark.parametrize(
    ("knob", "words"),
    [
        ("repair.crews=+1", "no value"),
        ("nonsense", "turns nothing"),
        ("recovery.circuit=5 s", "unknown key"),
        ("pod.fabric=x2", "no number"),
        ("recovery.circuits=5", "no unit"),
        ("health.detection=-5 s", "negative"),
    ],
)
def test_a_wrong_knob_says_what_is_wrong(machine: Scenario, knob: str, words: str) -> None:
    """Goal: faults name the knob. Method: six kinds of them."""
    with pytest.raises(InputError) as caught:
        turned(machine, knob)
    assert words in str(caught.value)
    assert all(fault.where.startswith("--knob ") and fault.write for fault in caught.value.faults)


def test_paired_differences_by_hand() -> None:
    """Goal: pairs are by replication. Method: three pairs, one of them without a partner."""
    found = paired({0: 2.0, 1: 4.0, 2: 9.0}, {0: 1.0, 1: 1.0, 3: 5.0})
    assert (found.value, found.n) == (2.0, 2)
    assert paired({}, {0: 1.0}).n == 0


def test_worth_against_runs_of_their_own(machine: Scenario) -> None:
    """Goal: what a knob is worth. Method: the second route is two plain runs and the definition by hand; a knob that
    changes nothing changes exactly nothing; the largest change comes first."""
    found = worth(machine, {"slower": "recovery.restore=x6", "same": "recovery.restore=x1"}, workers=1)
    assert list(found.table["knob"]) == ["slower", "same"]
    base, slow = (
        _delivered(run(loaded_again, workers=1).replications)
        for loaded_again in (machine, turned(single_point(machine), "recovery.restore=x6"))
    )
    relative = slow / base - 1
    row = found.table.iloc[0]
    assert row["delivered"] == pytest.approx(relative.mean())
    assert row["chip_hours"] == pytest.approx(((slow - base) * 640 * HOURS_PER_YEAR).mean())
    half = 3.182446 * relative.std(ddof=1) / 2
    assert row["delivered_high"] - row["delivered_low"] == pytest.approx(2 * half, rel=1e-5)
    assert found.table.iloc[1]["change"] == 0.0
    assert np.isnan(row["tokens"])
    assert "slower" in found.sentence


def _delivered(table: pd.DataFrame) -> np.ndarray:
    return np.asarray(table[table["form"] == "delivered"].sort_values("replication")["value"], dtype=np.float64)


def test_worth_counts_money_and_chips(machine: Scenario) -> None:
    """Goal: one more cube and one more crew cost what they cost. Method: prices by hand."""
    small = loaded(MACHINE, *WIRED, "pod.cubes=10", "pod.grid=null", "repair.crews=2", "study.delivered.horizon=3 d")
    found = worth(small, ["pod.cubes=+1", "repair.crews=+1"], workers=1).table.set_index("knob")
    bigger = turned(small, "pod.cubes=+1").pod.build()
    costs = [machine_cost(small.prices, pod, Fabric.RECONFIGURABLE).usd_per_year for pod in (small.pod.build(), bigger)]
    assert found.loc["pod.cubes=+1", "usd_per_year"] == pytest.approx(costs[1] - costs[0])
    assert found.loc["repair.crews=+1", "usd_per_year"] == small.prices.crew


def test_worth_of_a_service() -> None:
    """Goal: tokens in time and their money. Method: chips four times as fast in everything serve more users at the same
    share of capacity; money per token falls by the inverse; intervals are no narrower than the error of a capacity."""
    own = ("chips.mine={like: tpu_v4}", "serving.services.chat.chip=mine", "study.delivered=null")
    scenario = loaded(SERVED, *SMALL, *own)
    rates = ("peak_flops_per_s", "hbm_bytes_per_s", "link_bytes_per_s")
    fast = "; ".join([*(f"chips.mine.{rate}=x4" for rate in rates), "chips.mine.hop_s=x0.25"])
    row = worth(scenario, {"fast": fast}, workers=1).table.iloc[0]
    assert 0.1 < row["tokens"] < 4.0
    assert row["usd_per_million"] == pytest.approx(1 / (1 + row["tokens"]) - 1, abs=0.01)
    assert row["tokens_high"] - row["tokens_low"] >= 0.02
    assert np.isnan(row["delivered"])


def test_swept_chips_are_simulated_each(machine: Scenario) -> None:
    """Goal: services of another chip are simulated anew. Method: a swept rate of links changes the capacity."""
    sweep = "sweep={chips.mine.link_bytes_per_s: [50 GB/s, 5 GB/s]}"
    text = SERVED.replace("llama3_70b", "llama3_70b\n      chip: mine")
    scenario = loaded(text, *SMALL, "chips.mine={like: tpu_v4}", sweep, "study.delivered=null")
    service = run(scenario, workers=1).service
    capacities = service[service["measure"] == "capacity_requests_per_s"]["value"]
    assert capacities.iloc[1] < 0.9 * capacities.iloc[0]


def test_causes_against_the_ledger(machine: Scenario) -> None:
    """Goal: what removing a cause gives, held against what is booked under it. Method: delays of recovery are taken
    whole; without failures all chips run from the end of the first start; the interaction by its definition."""
    result = run(machine, workers=1, ideal=True)
    table = result.tables["ideal"].set_index("cause")
    base = table.loc["as it is", "value"]
    assert table.loc["restoring", "value"] == pytest.approx(table.loc["restoring", "ledger"], rel=0.1)
    assert table.loc["all together", "value"] + base == pytest.approx(0.8)  # two slices of 256 chips on ten cubes
    for cause in ("detection", "eviction", "tests before a start"):
        assert table.loc[cause, "value"] >= -0.01
    singles = [name for name in table.index if name not in ("as it is", "sum of the single ones", "all together")]
    singles.remove("interaction")
    assert table.loc["sum of the single ones", "value"] == pytest.approx(table.loc[singles, "value"].sum())
    assert table.loc["interaction", "value"] <= 0
    assert "restoring" in ideal_text(result.tables)
    assert len(ideal_html(result.tables).rows) == len(table) + 1


def test_ideal_is_not_added_to_a_finished_run(tmp_path: Path) -> None:
    """Goal: `--resume --ideal` is never silently half done. Method: a finished run without, told where and what to do;
    without `--ideal` it is read as ever."""
    out = tmp_path / "run"
    run(loaded(PROMISE), out=out, workers=1)
    with pytest.raises(InputError, match=r"the run is finished, without --ideal.*another --out"):
        run(loaded(PROMISE), out=out, resume=True, ideal=True)
    assert run(loaded(PROMISE), out=out, resume=True).folder == out


def test_a_knob_that_is_wrong_is_told_once(machine: Scenario) -> None:
    """Goal: where, what, what to write, each once. Method: a key that is none, and a value that clashes with others."""
    with pytest.raises(InputError) as caught:
        turned(machine, "nonsense=1")
    assert str(caught.value).startswith("--knob nonsense=1: nonsense: unknown key `nonsense`; write one of name,")
    with pytest.raises(InputError, match=r"^--knob pod.grid=5x5x5: pod.grid: a grid of 5x5x5 does not hold"):
        turned(machine, "pod.grid=5x5x5")


@pytest.mark.parametrize("name", ["shared_pod", "three_layers", "retry_storm"])
def test_a_trial_leaves_out_what_says_nothing_of_it(name: str) -> None:
    """Goal: services are asked alone where other studies share their scenario. Method: shipped ones with effects, a
    slowdown, a shared pod and its jobs become one point without; who asks neither of them is told so."""
    alone = single_point(load_scenario(name))
    assert alone.serving is not None
    assert (alone.serving.effects, alone.serving.disturbance, alone.study.shared_pod, alone.jobs) == (None,) * 4
    assert not alone.sweep
    with pytest.raises(InputError, match="nothing that a knob could change"):
        worth(load_scenario("airesim_default"), ["run.seed=2"], workers=1)


@pytest.mark.slow
def test_causes_of_requests_and_of_jobs_in_operation() -> None:
    """Goal: requests wait for each other, jobs for failures. Method: alone, a request is no slower than by the ledger's
    inherent parts; goodput without failures is no lower; nothing is said of what is not there."""
    served = run(loaded(SERVED, *SMALL, "study.delivered=null"), workers=1, ideal=True).tables["ideal"]
    request = served[served["measure"] == "request_mean_s"].set_index("cause")
    assert request.loc["other requests", "value"] < 0
    assert request.loc["other requests", "value"] == pytest.approx(request.loc["other requests", "ledger"], rel=0.6)
    assert request.loc["all together", "value"] <= request.loc["other requests", "value"] + 0.01
    operated = run(loaded(OPERATED, "checkpoint={interval: 2 h}"), workers=1, ideal=True).tables["ideal"]
    goodput = operated[operated["measure"] == "goodput"].set_index("cause")
    assert goodput.loc["failing hosts, racks, cables", "value"] > 0
    assert goodput.loc["saving and lost work", "value"] > 0
    assert "planned drains" not in goodput.index


def test_the_command(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: `opticube worth` for people and programs. Method: a document of the smallest case; no knob is exit 2."""
    few = ["--set", "serving=null", "--set", "sweep=null", "--set", "study.delivered.horizon=4 d"]
    few += ["--set", "failures.host.availability=98 %"]
    assert command_status(["worth", "smoke", *few, "--knob", "recovery.evict=x9", "--workers", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["knobs"][0]["knob"] == "recovery.evict=x9"
    assert document["knobs"][0]["tokens"] is None
    assert command_status(["worth", "smoke", *few, "--workers", "1"]) == 2
    assert "--knob KEY=VALUE" in capsys.readouterr().err
    assert command_status(["worth", "smoke", *few, "--knob", "recovery.evict=x9", "--workers", "1"]) == 0
    assert "largest first" in capsys.readouterr().out
