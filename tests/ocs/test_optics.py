"""Optical budget, qualification, crews, churn, and what the optics cost."""

from __future__ import annotations

import numpy as np
import pytest

from ocs.churn import ADMISSIONS_SEEN, CIRCUITS_SEEN, circuits_made, circuits_of_replacement, circuits_per_day
from ocs.circuits import circuits_of, no_circuits, plan_reconfiguration
from ocs.economics import (
    FIGURE_SOURCES,
    PUBLISHED_COST_SHARE_MAX,
    PUBLISHED_POWER_SHARE_MAX,
    OpticsFigures,
    end_cost_left,
    end_watts_left,
    optics_share,
)
from ocs.optics import (
    BUDGET_SOURCES,
    INSERTION_LOSS_SOURCES,
    ConnectionLosses,
    InsertionLoss,
    OpticalBudget,
    admit,
    draw_losses,
)
from ocs.qualification import Qualification, SlowestLink, draw_trials, slice_ready_s
from ocs.reconfiguration import ReconfigurationTiming
from ocs.repatching import RepatchCrew, repatch_bad_ports, switches_of_pod
from topology.placement import joined
from topology.pod import POD_GENERATIONS
from topology.provenance import Mark
from topology.shape import parse_shape

TIMING = ReconfigurationTiming()
V4 = POD_GENERATIONS["v4"]


def test_losses_of_connections() -> None:
    """Goal: drawn losses follow their law and stay with their connection. Method: quantiles of 10,000 draws, and one
    circuit looked up twice."""
    law = InsertionLoss()
    drawn = law.loss_db((np.arange(10_000) + 0.5) / 10_000)
    assert np.quantile(drawn, [0.5, 0.99]) == pytest.approx([1.3, 2.0], rel=1e-3)
    assert law.share_above(2.0) == pytest.approx(0.01)
    assert (drawn > 1.7).mean() == pytest.approx(law.share_above(1.7), abs=2e-4)
    losses = draw_losses(4, lambda count: np.random.default_rng(5).random(count))
    circuits = circuits_of(joined(parse_shape("4x4x8"), [3, 1]))
    assert losses.of(circuits)[0] == losses.db[tuple(circuits[0])]
    assert np.array_equal(losses.of(circuits), losses.of(circuits.copy()))
    assert InsertionLoss(median_db=1.5, p99_db=1.5).share_above(1.4) == 1.0


def test_links_out_of_budget_are_refused() -> None:
    """Goal: exactly the links that lose too much are refused. Method: two connections just inside and outside."""
    budget = OpticalBudget()
    assert budget.fixed_db == pytest.approx(1.6 + 1.0 + 0.04 + 0.5)
    db = np.full((48, 2, 2), 1.0)
    db[3, 0, 0], db[7, 1, 1] = budget.switch_may_lose_db + 1e-9, budget.switch_may_lose_db - 1e-9
    circuits = np.array([[3, 0, 0], [7, 1, 1], [7, 0, 0]], dtype=np.int64)
    admission = admit(circuits, ConnectionLosses(db=db), budget)
    assert admission.refused.tolist() == [[3, 0, 0]]
    assert admission.lit.tolist() == [[7, 1, 1], [7, 0, 0]]
    assert admission.margin_db == pytest.approx([0.0, 0.0, budget.switch_may_lose_db - 1.0], abs=1e-8)
    blind = admit(circuits, ConnectionLosses(db=db), OpticalBudget(transceivers_bear_db=2.0))
    assert len(blind.lit) == 0
    with pytest.raises(ValueError, match="0 < median_db <= p99_db"):
        InsertionLoss(median_db=2.0, p99_db=1.0)


def test_share_of_refused_links_in_a_full_pod() -> None:
    """Goal: draws and law agree on the pod's circuits. Method: a tight budget, 3,072 circuits, 99.9 % band."""
    circuits = circuits_of(joined(parse_shape("16x16x16"), range(64)))
    losses = draw_losses(64, lambda count: np.random.default_rng(6).random(count))
    budget = OpticalBudget(transceivers_bear_db=OpticalBudget().fixed_db + 1.7)
    expected = InsertionLoss().share_above(1.7)
    spread = np.sqrt(expected * (1 - expected) / len(circuits))
    assert len(admit(circuits, losses, budget).refused) / len(circuits) == pytest.approx(expected, abs=3.3 * spread)


@pytest.mark.parametrize("fail_share", [0.0, 0.1])
def test_the_slowest_of_48_n_tested_links(fail_share: float) -> None:
    """Goal: the law of a slice's readiness is right, retries included. Method: 3,000 slices of 96 links, drawn."""
    rules = Qualification(test=0.25, fail_share=fail_share, trials=3)
    rng = np.random.default_rng(7)
    drawn = draw_trials(TIMING, rules, rng.random((3000, 96, 3)), rng.random((3000, 96, 3)))
    assert drawn.bad.mean() == pytest.approx(rules.bad_share, abs=3e-4)
    assert (~drawn.bad.any(axis=1)).mean() == pytest.approx(rules.all_pass_share(96), abs=0.02)
    good = drawn.ready_s[~drawn.bad.any(axis=1)].max(axis=1)
    law = SlowestLink(TIMING, rules)
    assert law.quantile_s(np.array([0.1, 0.5, 0.9]), 96) == pytest.approx(np.quantile(good, [0.1, 0.5, 0.9]), rel=0.01)
    assert law.mean_s(96) == pytest.approx(good.mean(), rel=0.01)
    assert law.share_ready(float(law.quantile_s(0.7, 96)), 96) == pytest.approx(0.7, abs=0.01)
    assert drawn.tests.mean() == pytest.approx(1 + fail_share + fail_share**2, abs=0.01)


def test_without_tests_the_law_is_the_closed_form() -> None:
    """Goal: no retries, no tests: the known quantile. Method: slices of 1 to 48 cubes against the closed form."""
    law = SlowestLink(TIMING, Qualification(test=0.0, fail_share=0.0))
    for links in (48, 48 * 16, 48 * 48):
        for u in (0.05, 0.5, 0.95):
            assert float(law.quantile_s(u, links)) == pytest.approx(TIMING.slowest_link_s(links, u), abs=0.01)
    assert law.mean_s(1) == pytest.approx(5.67, abs=0.01)
    assert float(law.quantile_s(0.5, 0)) == 0.0


def test_bigger_slices_wait_longer_and_about_seven_seconds() -> None:
    """Goal: 48 n links with the stated figures. Method: medians over sizes; a constant law; one that never passes."""
    medians = [slice_ready_s(TIMING, Qualification(), cubes, 0.5) for cubes in (1, 4, 16, 48)]
    assert medians == sorted(medians)
    assert 6.5 < medians[2] < 7.5
    constant = ReconfigurationTiming(link_up_mean=5.0, link_up_p99=5.0)
    assert slice_ready_s(constant, Qualification(test=1.0, fail_share=0.0), 16, 0.5) == pytest.approx(6.0, abs=0.01)
    never = Qualification(fail_share=1.0)
    assert never.all_pass_share(1) == 0.0
    assert never.all_pass_share(0) == 1.0
    with pytest.raises(ValueError, match="at least 1"):
        Qualification(trials=0)


def test_crews_move_fibres_one_after_the_other() -> None:
    """Goal: a crew's work takes its time and its spares. Method: ten bad ports of one v4 switch, eight spare ones."""
    switches = list(switches_of_pod(V4))
    for port in range(10):
        switches[5] = switches[5].fail_port(port)
    done = repatch_bad_ports(switches)
    assert len(done.moves) == 8
    assert [cube for _, _, cube in done.left] == [8, 9]
    assert done.switches[4] == switches[4]
    crew = RepatchCrew(each=4 * 3600.0, crews=3)
    assert crew.time_s(8) == 3 * 4 * 3600.0 == crew.done_s(8)[-1]
    assert crew.done_s(4) == (14400.0, 14400.0, 14400.0, 28800.0)
    assert crew.time_s(0) == 0.0
    with pytest.raises(ValueError, match="at least 1"):
        RepatchCrew(crews=0)


def test_circuits_per_day_beside_what_was_seen() -> None:
    """Goal: 139 jobs of 3.6 cubes are the 24,200 circuits a day that were seen. Method: the product; plans summed."""
    assert circuits_per_day(ADMISSIONS_SEEN.mean, 3.63) == pytest.approx(CIRCUITS_SEEN.mean, rel=0.005)
    assert circuits_per_day(0, 1, replacements_per_day=2) == 2 * circuits_of_replacement(parse_shape("8x8x8"))
    new = [circuits_of(joined(parse_shape(text), range(cubes))) for text, cubes in (("4x4x8", 2), ("8x8x8", 8))]
    assert circuits_made(plan_reconfiguration(no_circuits(), rows) for rows in new) == 48 * 10
    assert ADMISSIONS_SEEN.source.mark is CIRCUITS_SEEN.source.mark is Mark.SECONDARY


def test_the_optics_stay_below_the_published_shares() -> None:
    """Goal: less than 5 % of cost and 3 % of power; what the limits leave. Method: v4, and an end at its limit."""
    share = optics_share(V4)
    assert share.cost_share < PUBLISHED_COST_SHARE_MAX
    assert share.power_share < PUBLISHED_POWER_SHARE_MAX
    watts = end_watts_left(V4)
    assert watts == pytest.approx(4.7, abs=0.05)
    at_limit = optics_share(V4, OpticsFigures(optical_end_w=watts))
    assert at_limit.power_share == pytest.approx(PUBLISHED_POWER_SHARE_MAX)
    cost = end_cost_left(V4)
    full = optics_share(V4, OpticsFigures(optical_end_cost=cost, fibre_cost=0.0))
    assert full.cost_share == pytest.approx(PUBLISHED_COST_SHARE_MAX)


def test_every_figure_has_a_source_and_none_is_recalled() -> None:
    """Goal: nothing unmarked, nothing recalled. Method: fields of each table of figures against its sources."""
    for values, sources in (
        (OpticsFigures(), FIGURE_SOURCES),
        (OpticalBudget(), BUDGET_SOURCES),
        (InsertionLoss(), INSERTION_LOSS_SOURCES),
    ):
        assert sorted(source.field for source in sources) == sorted(values.__dataclass_fields__)
        assert all(source.mark is not Mark.RECALLED and source.text for source in sources)
