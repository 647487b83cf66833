"""The four flows: what they count, that money adds up by a second route, and that what no study knows stays blank."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ocs.economics import optics_share
from sim.prices import PRICE_SOURCES, PRICE_UNITS, PricesSection, machine_cost
from sim.report.flows import flows_html, markdown_table, prices_html
from sim.report.money_words import money_lines
from sim.result import Result
from sim.simulation import run
from tests.run.cases import OPERATED, PROMISE, SERVED, loaded
from topology.fabric import Fabric
from topology.pod import FlatPod, pod_of_generation


@pytest.fixture(scope="module")
def served() -> Result:
    return run(loaded(SERVED), workers=1)


@pytest.fixture(scope="module")
def operated() -> Result:
    return run(loaded(OPERATED), workers=1)


def _value(table: pd.DataFrame, measure: str, **where: object) -> float:
    rows = table[table["measure"] == measure]
    for key, value in where.items():
        rows = rows[rows[key] == value]
    assert len(rows) == 1, (measure, where, len(rows))
    return float(rows["value"].iloc[0])


def test_default_prices_hold_the_published_shares_of_optics() -> None:
    """Goal: prices in money and the figures of the light tell one story.
    Method: the shares of capital and power of a v4 pod equal those of `ocs.economics`, within what is published."""
    pod = pod_of_generation("v4")
    cost, share = machine_cost(PricesSection(), pod, Fabric.RECONFIGURABLE), optics_share(pod)
    assert cost.links_share == pytest.approx(share.cost_share, rel=1e-12)
    assert cost.links_power_share == pytest.approx(share.power_share, rel=1e-12)
    assert cost.links_share < 0.05
    assert cost.links_power_share < 0.03


def test_a_year_costs_what_its_parts_cost() -> None:
    """Goal: the cost of a year by hand. Method: a v4 pod, wired, two crews; chips, cabled ends, power, crews."""
    prices = PricesSection(power_overhead=1.25, electricity=0.1, crew=1000.0)
    cost = machine_cost(prices, pod_of_generation("v4"), Fabric.STATIC_ALIGNED, crews=2)
    capital = 4096 * 10_000 + 64 * 96 * 12
    watts = 4096 * 170 + 1024 * 400
    assert cost.usd_per_year == pytest.approx(capital / 5 + watts / 1e3 * 1.25 * 8760 * 0.1 + 2 * 1000)
    flat = machine_cost(prices, FlatPod(hosts=400), Fabric.ANY_HOST)
    assert (flat.links_usd, flat.links_w) == (0.0, 0.0)


def test_every_price_has_a_unit_a_mark_and_a_source() -> None:
    """Goal: no price without its source. Method: fields of the section against the lists beside it."""
    fields = list(PricesSection.model_fields)
    assert fields == [source.field for source in PRICE_SOURCES] == list(PRICE_UNITS)
    assert all(source.text for source in PRICE_SOURCES)


def test_money_per_token_by_a_second_route(served: Result) -> None:
    """Goal: money per million tokens in time. Method: from rates of the table `service` and the cost of the pod: with
    one service and no jobs the whole pod is paid for by its tokens in time."""
    for fabric in ("reconfigurable", "static_aligned"):
        pod, prices = served.scenario.pod.build(), served.scenario.prices
        yearly = machine_cost(prices, pod, Fabric(fabric)).usd_per_year
        chip_s = _value(served.service, "chip_s_per_token_in_time", fabric=fabric)
        tokens_per_year = 3 * 128 / chip_s * 365 * 86_400
        found = _value(served.flows, "usd_per_million_tokens_in_time", fabric=fabric)
        assert found == pytest.approx(1e6 * yearly / tokens_per_year)
        summary = served.summary[served.summary["fabric"] == fabric]
        assert _value(summary, "usd_per_million_tokens_in_time") == found


def test_information_is_the_ledger(served: Result) -> None:
    """Goal: the share of request time at the memory bound. Method: summed again from the table `ledger`."""
    ledger = served.ledger[(served.ledger["scope"] == "all") & (served.ledger["fabric"] == "reconfigurable")]
    seconds = ledger.set_index("category")["seconds_per_request"]
    share = seconds[["weights", "own_kv_reads", "others_kv_reads"]].sum() / seconds.sum()
    assert _value(served.flows, "memory_bound_share", fabric="reconfigurable") == pytest.approx(float(share))
    assert 0 < share < 1


def test_faults_of_slices_in_endless_demand(served: Result) -> None:
    """Goal: what a failure takes. Method: bounds that hold on every path: a loss of a 256-chip slice takes 256 chips,
    a failure at most those; detection takes at least its delay; the chip-hours are those of the table `chip_hours`."""
    flows = served.flows[served.flows["fabric"] == "reconfigurable"]
    assert 0 < _value(flows, "blast_radius_chips", slice_chips=256) <= 256
    assert _value(flows, "detect_s", slice_chips=256) >= 60.0
    hours = served.chip_hours[served.chip_hours["fabric"] == "reconfigurable"].set_index("use")["chip_hours"]
    taken = hours[["down", "stranded", "lost", "detecting", "evicting", "waiting", "reconfiguring", "preflight"]].sum()
    taken += hours["restoring"]
    failures = _value(flows, "failures_per_day", slice_chips=256) * 10
    assert _value(flows, "chip_hours_lost_per_failure", slice_chips=256) == pytest.approx(taken / failures)


def test_a_pod_in_operation_knows_waits_and_failures(operated: Result) -> None:
    """Goal: resource and fault of a pod in operation. Method: the same figures out of its own tables."""
    wait = _value(operated.operations, "wait_mean_s")
    assert _value(operated.flows, "arrival_to_slice_s") == wait
    failures = float(operated.failures_felt["failures"].sum()) / 5
    assert _value(operated.flows, "failures_per_day") == pytest.approx(failures)
    stages = operated.recovery_stages.set_index("stage")["seconds_per_loss"]
    assert _value(operated.flows, "detect_s") == pytest.approx(float(stages["detecting"]))
    assert _value(operated.flows, "recover_s") == pytest.approx(float(stages.drop("detecting").sum()))
    useful = operated.operations_chip_hours.set_index("use")["share"]["useful"]
    cost = machine_cost(operated.scenario.prices, operated.scenario.pod.build(), Fabric.RECONFIGURABLE)
    found = _value(operated.flows, "usd_per_useful_chip_hour")
    assert found == pytest.approx(cost.usd_per_chip_hour / float(useful))


def test_what_no_study_knows_is_blank_and_says_why() -> None:
    """Goal: undefined is blank, never 0. Method: a scenario with a promise alone: all but cost is blank, with a why."""
    flows = run(loaded(PROMISE), workers=1).flows
    blank = flows[flows["value"].isna()]
    assert set(blank["flow"]) == {"information", "resource", "fault", "cost"}
    assert blank["note"].str.contains("the scenario has n").all()
    known = flows[flows["value"].notna() & (flows["flow"] != "prices")]
    assert set(known["flow"]) == {"cost"}


def test_prices_are_editable_and_marked() -> None:
    """Goal: every price is the user's to set. Method: dearer chips double the capital; what was set says so."""
    base = run(loaded(PROMISE), workers=1).flows
    own = run(loaded(PROMISE, "prices.chip=20 kUSD", "prices.electricity=0.2 USD/kWh"), workers=1).flows
    assert _value(own, "capital_usd") > 1.9 * _value(base, "capital_usd")
    notes = own[own["flow"] == "prices"].set_index("measure")["note"]
    assert notes["chip"] == notes["electricity"] == "yours"
    assert notes["switch"].startswith("assumption: ")
    assert notes["chip_power"].startswith("published: ")


def test_sentence_and_tables_for_people(served: Result) -> None:
    """Goal: what is said is what was computed. Method: both costs are in the sentence; a row per figure."""
    (said,) = money_lines(served.tables)
    for fabric in ("reconfigurable", "static_aligned"):
        cost = _value(served.flows, "usd_per_million_tokens_in_time", fabric=fabric)
        assert f"{cost:.3g}" in said
    assert "light is " in said
    table = flows_html(served.tables)
    assert table.heads == ["figure", "reconfigurable", "static aligned", "counted"]
    assert [row[0].split(":")[0] for row in table.rows if len(row) == 1] == ["information", "resource", "fault", "cost"]
    assert len(prices_html(served.tables).rows) == len(PRICE_SOURCES)
    lines = markdown_table(table)
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
    assert np.isfinite(served.flows[served.flows["measure"] == "capital_usd"]["value"]).all()
