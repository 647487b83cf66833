"""What the whole thing claims, on settings small enough to be checked by hand or by a second route."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sim.build import build_setup
from sim.metrics.intervals import mean_estimate
from sim.points import PointRunner
from sim.result import Result
from sim.scenario import Scenario, expand
from sim.simulation import run
from sim.studies.availability import sample_histories
from sim.studies.serving import ServiceOutcome, serving_study
from sim.studies.windows import WindowTask, loss_window, steady_window
from tests.run.cases import SERVED, loaded
from topology.fabric import Fabric

CURVES = """\
name: curves
pod: {cubes: 16, grid: 2x2x4}
failures:
  host: {availability: 98 %, repair: {kind: exponential, mean: 10 h}}
  rack: {failure_rate: 1 %/day, repair: {mean: 4 h}}
  in_rack_link: {failure_rate: 0.01 %/day, repair: {mean: 4 h}}
sweep:
  pod.fabric: [reconfigurable, static_aligned, static_contiguous, any_host]
study:
  availability: {slice_chips: [32, 64, 128, 256, 512, 1024], horizon: 40 d, replications: 6}
run: {seed: 3}
"""


def paired(result: Result, form: str, one: str, other: str) -> np.ndarray:
    """Value minus value on the same path: every size and replication."""
    table = result.replications[result.replications["form"] == form]
    keys = ["slice_chips", "replication"]
    wide = table.pivot_table(index=keys, columns="fabric", values="value")
    return np.asarray(wide[one] - wide[other])


@pytest.mark.parametrize("setting", ["repair.crews=null", "repair.crews=2", "run.start=new", "run.warmup=5 d"])
def test_reconfigurable_is_never_worse(setting: str) -> None:
    """Goal: any usable cubes serve at least what fixed blocks do, path by path. Method: every replication and size,
    whatever the crews and the start; any hosts serve more, boxes of cubes less."""
    result = run(loaded(CURVES, setting), workers=1)
    assert (paired(result, "expected", "reconfigurable", "static_aligned") >= 0.0).all()
    assert (paired(result, "expected", "reconfigurable", "static_contiguous") >= 0.0).all()
    assert (paired(result, "expected", "any_host", "reconfigurable") >= 0.0).all()
    assert (paired(result, "expected", "reconfigurable", "static_aligned") > 0.01).any(), "the comparison can fail"


def test_differences_are_paired(machine: Result) -> None:
    """Goal: the table `differences` is what it says. Method: means and t-intervals by hand, from `replications`."""
    table = machine.differences
    assert (table["against"] == "static_aligned").all()
    assert (table["compared"] == "pod.fabric").all()
    assert len(table) == 2 * (2 + 2 + 1), (
        "two availabilities; expected and its light form at two sizes, delivered at one"
    )
    for _, row in table.iterrows():
        mine = machine.replications
        for key in ("host_availability", "slice_chips", "form"):
            mine = mine[mine[key] == row[key]]
        one, other = (
            mine[mine["fabric"] == fabric].sort_values("replication")["value"].to_numpy()
            for fabric in ("reconfigurable", "static_aligned")
        )
        wanted = mean_estimate(one - other)
        assert row["difference"] == pytest.approx(wanted.value, abs=1e-15)
        assert row["replications"] == len(one) == (2 if row["form"] == "delivered" else 3)
        bounds = np.array([row["ci_low"], row["ci_high"]], dtype=float)
        np.testing.assert_allclose(bounds, [wanted.ci_low, wanted.ci_high], atol=1e-15)


NO_DELAYS = """\
name: no_delays
pod: {cubes: 16, grid: 2x2x4}
failures:
  host: {availability: 98 %, repair: {kind: exponential, mean: 10 h}}
  rack: {failure_rate: 1 %/day, repair: {mean: 4 h}}
health: {detection: 0 s}
recovery: {evict: 0 s, circuits: 0 s, preflight: 0 s, restore: 0 s}
sweep:
  pod.fabric: [reconfigurable, static_aligned, any_host]
study:
  availability: {slice_chips: [32, 64, 256, 512], horizon: 12 d, replications: 2}
  delivered: {slice_chips: [32, 64, 256, 512], horizon: 12 d, replications: 2}
run: {seed: 8}
"""


@pytest.mark.parametrize("setting", ["run.warmup=4 d", "run.start=new"])
def test_delivered_equals_expected_without_delays(setting: str) -> None:
    """Goal: two routes, one number. Method: no delays, no light failing: `delivered` through SimPy and `expected` from
    the histories agree to 1e-12 in every replication, size and fabric of a whole run."""
    result = run(loaded(NO_DELAYS, setting), workers=1)
    table = result.replications.pivot_table(
        index=["fabric", "slice_chips", "replication"], columns="form", values="value"
    )
    assert len(table) == 3 * 4 * 2
    assert (table["delivered"] - table["expected"]).abs().max() <= 1e-12
    assert table["expected"].std() > 0.01
    rows = result.availability.pivot_table(index=["fabric", "slice_chips"], columns="form", values="value")
    assert (rows["delivered"] - rows["expected"]).abs().max() <= 1e-12


def test_delays_cost_something(machine: Result) -> None:
    """Goal: recovery is not free. Method: delivered below expected at every point; all chip-hours are accounted."""
    rows = machine.availability[machine.availability["slice_chips"] == 256]
    wide = rows.pivot_table(index=["fabric", "host_availability"], columns="form", values="value")
    assert (wide["delivered"] < wide["expected"]).all()
    hours = machine.chip_hours.groupby(["fabric", "host_availability"])["chip_hours"].sum()
    assert hours.to_numpy() == pytest.approx(512 * 240.0)
    running = machine.chip_hours[machine.chip_hours["use"].isin(["useful", "slowed", "lost"])]
    shares = running.groupby(["fabric", "host_availability"])["share"].sum()
    delivered = machine.replications[machine.replications["form"] == "delivered"]
    means = delivered.groupby(["fabric", "host_availability"])["value"].mean()
    np.testing.assert_allclose(shares.to_numpy(), means.to_numpy(), atol=1e-12)


CREWS = CURVES.replace("[reconfigurable, static_aligned, static_contiguous, any_host]", "[reconfigurable]")


def test_scarce_crews_cost_availability() -> None:
    """Goal: a repair that waits is a longer outage. Method: one crew, two, four and no limit on the same draws, paired;
    as many crews as hosts give what no limit gives, through SimPy, to the last bit."""
    runs = {
        crews: run(loaded(CREWS, f"repair.crews={crews}"), workers=1).replications["value"].to_numpy()
        for crews in ("1", "2", "4", "4096", "null")
    }
    assert np.array_equal(runs["4096"], runs["null"])
    for fewer, more in (("1", "2"), ("2", "4"), ("4", "null")):
        assert mean_estimate(runs[fewer] - runs[more]).ci_high <= 0.0
    assert np.mean(runs["null"] - runs["1"]) > 0.05


def test_no_closed_form_where_none_holds() -> None:
    """Goal: a closed form is not printed beside what it is not about. Method: crews, a new machine; else there."""
    for setting, there in (("repair.crews=2", False), ("run.start=new", False), ("run.seed=4", True)):
        table = run(loaded(CREWS, setting), workers=1).availability
        assert table["closed_form"].notna().all() == there
        assert table["agrees"].notna().all() == there


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    """The first point of SERVED."""
    return expand(loaded(SERVED))[0].scenario


@pytest.fixture(scope="module")
def outcome(scenario: Scenario) -> ServiceOutcome:
    """The service of SERVED, simulated without any fabric."""
    return serving_study(scenario, None, lambda tasks, about: None).services[0]


def test_service_rows_by_hand(served: Result, scenario: Scenario, outcome: ServiceOutcome) -> None:
    """Goal: services are what the windows say, weighted by the time of each number of replicas up.

    Method: time weights from the histories and windows one by one, added up here in plain Python.
    """
    task = [
        WindowTask(
            service=0, rate_per_s=outcome.rate_per_s, saturated_per_s=outcome.own.saturated_per_s, repetition=number
        )
        for number in range(3)
    ]
    assert outcome.rate_per_s == pytest.approx(0.6 * 3 * outcome.own.capacity_per_s)
    windows = {up: [steady_window(scenario, task[number], up) for number in range(2)] for up in (1, 2, 3)}
    losses = [loss_window(scenario, task[number]) for number in range(3)]
    for point in expand(loaded(SERVED)):
        setup = build_setup(point.scenario)
        fabric = setup.fabric
        samples = [sample_histories(setup, [fabric], replication) for replication in range(3)]
        times = sum(sample.replicas[fabric].of_service(0)[0].astype(float) for sample in samples)
        weights = times / times.sum()
        assert weights.sum() == pytest.approx(1.0, abs=1e-15)
        lost_per_s = np.mean([sample.replicas[fabric].losses[0, 0] for sample in samples]) / (30 * 86_400.0)
        rows = served.service[served.service["fabric"] == fabric.value].set_index("measure")["value"]

        def weighted(of: str, weights: np.ndarray = weights) -> float:
            means = {up: float(np.mean([getattr(w.measures, of) for w in own])) for up, own in windows.items()}
            return sum(float(weights[up]) * means[up] for up in (1, 2, 3))

        waits = fabric is Fabric.STATIC_ALIGNED
        missed = np.mean(
            [
                (loss.tokens_missed_beside_repair if waits else loss.tokens_missed_with_spare)
                / loss.offered_tokens_per_s
                for loss in losses
            ]
        )
        assert rows["tokens_in_time"] == pytest.approx(max(0.0, weighted("tokens_in_time") - lost_per_s * missed))
        assert rows["slo_attainment"] == pytest.approx(weighted("attainment"))
        assert rows["replicas_up_mean"] == pytest.approx(float(weights @ np.arange(4)))
        assert rows["all_replicas_up"] == pytest.approx(float(weights[3]))
        assert rows["losses_per_day"] == pytest.approx(lost_per_s * 86_400.0)
        queues = [rows[f"queue_{verdict}"] for verdict in ("stable", "backlogged", "overloaded")]
        assert sum(queues) == pytest.approx(1.0)


def test_service_rows_keep_their_bounds(served: Result) -> None:
    """Goal: shares are shares. Method: every row of a share in [0, 1], percentiles in order, ledgers that add up."""
    shares = served.service[served.service["unit"] == "1"].query("measure != 'load_of_capacity'")
    assert shares["value"].between(0.0, 1.0).all()
    for _, rows in served.service.groupby("fabric"):
        values = rows.set_index("measure")["value"]
        for name in ("ttft", "tpot", "itl", "end_to_end"):
            assert values[f"{name}_p50_s"] <= values[f"{name}_p99_s"]
        assert values["tokens_in_time"] <= values["slo_attainment"] + 0.2
        assert values["losses_per_day"] > 0
    for _, rows in served.ledger.groupby(["fabric", "scope"]):
        assert rows["share"].sum() == pytest.approx(1.0)
    assert set(served.ledger["scope"]) == {"all", "caught"}


def test_healthy_weights_give_the_full_service_window(outcome: ServiceOutcome) -> None:
    """Goal: without failures a service is its window with all replicas. Method: `weights: healthy`; that window."""
    result = run(
        loaded(SERVED, "serving.weights=healthy", "study.availability=null", "study.delivered=null"), workers=1
    )
    pooled, windows = outcome.pooled(3), outcome.steady[2]
    for fabric in ("reconfigurable", "static_aligned"):
        values = result.service[result.service["fabric"] == fabric].set_index("measure")["value"]
        assert values["tokens_in_time"] == pytest.approx(np.mean([each.measures.tokens_in_time for each in windows]))
        assert values["slo_attainment"] == pytest.approx(np.mean([each.measures.attainment for each in windows]))
        assert values["tokens_per_s"] == pytest.approx(np.mean([each.tokens_per_s for each in windows]))
        assert values["ttft_p99_s"] == pytest.approx(pooled.ttft_s(0.99), rel=1e-3)
        assert values["tpot_p50_s"] == pytest.approx(pooled.tpot_s(0.5), rel=1e-3)
        assert values["all_replicas_up"] == 1.0
        assert values["losses_per_day"] == 0.0
    assert all("mostly fill and drain" in warning for warning in result.warnings)


def test_nothing_fails_nothing_is_lost() -> None:
    """Goal: a machine without failures is whole. Method: no component named: everything 100 %, all replicas up."""
    text = SERVED.replace("failures:\n  host: {availability: 97 %, repair: {kind: exponential, mean: 10 h}}\n", "")
    result = run(loaded(text), workers=1)
    assert (result.availability["value"] == 1.0).all()
    values = result.service.set_index(["fabric", "measure"])["value"]
    assert values["reconfigurable", "all_replicas_up"] == 1.0
    assert values["static_aligned", "tokens_in_time"] == values["reconfigurable", "tokens_in_time"]
    assert not math.isnan(values["reconfigurable", "tokens_in_time"])


def test_services_are_shared_between_fabrics() -> None:
    """Goal: fabrics meet the same windows. Method: a runner asked for two fabrics simulates a service once."""
    tasks: list[str] = []
    runner = PointRunner(executor=None, advance=lambda count, about: tasks.append(about))
    list(runner.run_group(expand(loaded(SERVED))))
    assert tasks.count("chat: steady windows") == 3 * 2
