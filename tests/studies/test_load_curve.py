"""The load curve: attainment and goodput over the rate, the knee, distributions; and their pictures."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from sim import run
from sim.report.load_pictures import latency_distributions
from sim.report.plots import draw_pictures
from sim.result import Result
from sim.scenario import scenario_of
from sim.strict_yaml import parse_document
from sim.studies.load_curve import CurvePoint, LoadCurve, knees_by_repetition

CURVE = """\
name: curve
pod: {cubes: 2, grid: 1x1x2}
serving:
  weights: healthy
  windows: {requests: 200, replications: 1, losses: 0}
  load_curve: {loads: [0.3, 1.6, 0.9], requests: 3000, replications: 2}
  services:
    - name: chat
      model: llama3_70b
      slice: 4x4x4
      load: 0.5
      batching: {kind: chunked_prefill, budget: 1024}
      router: round_robin
      requests:
        input: {kind: lognormal, mean: 1024, cv: 1, max: 4096}
        output: {kind: lognormal, mean: 128, cv: 1, min: 2, max: 512}
      slo: {ttft: 500 ms, tpot: 60 ms, attainment: 90 %}
run: {seed: 1}
"""


@pytest.fixture(scope="module")
def result() -> Result:
    """One service, three loads, out of order."""
    return run(scenario_of(parse_document(CURVE.encode(), "curve.yaml"), ()), workers=1)


def test_the_knee_is_the_capacity(result: Result) -> None:
    """Goal: the greatest rate within the limits. Method: with one replica it is what the calibration found by its own
    bisection on 20,000 other requests, within 12 % (3,000 requests; the share of a burst's length is what differs);
    it keeps the promise, and the next load does not."""
    curve = result.tables["load_curve"]
    assert curve["load"].is_monotonic_increasing
    assert curve["is_goodput_rate"].tolist() == [False, False, True, False]
    knee = curve[curve["is_goodput_rate"]].iloc[0]
    service = result.tables["service"].set_index("measure")["value"]
    assert knee["offered_requests_per_s"] == pytest.approx(service["capacity_requests_per_s"], rel=0.12)
    assert service["goodput_rate_requests_per_s"] == knee["offered_requests_per_s"]
    assert (curve["slo_attainment"] >= 0.9).tolist() == [True, True, True, False]
    assert curve["queue"].tolist()[-1] == "overloaded"


def knees(own: Sequence[float], loads: Sequence[float]) -> list[float]:
    """Found by the study for repetitions that keep a limit of 0.9 up to a load of their own, asked at `loads`."""

    def share(load: float, knee: float) -> float:
        return 0.95 if load <= knee else 0.5

    def point(load: float) -> CurvePoint:
        windows = [SimpleNamespace(measures=SimpleNamespace(attainment=share(load, knee))) for knee in own]
        return CurvePoint(load=load, rate_per_s=load, windows=cast(Any, tuple(windows)))

    def attained(asked: Sequence[tuple[int, float]]) -> list[float]:
        return [share(load, own[repetition]) for repetition, load in asked]

    return knees_by_repetition([point(load) for load in loads], 0.9, attained)


def test_every_repetition_has_a_rate_of_its_own() -> None:
    """Goal: a repetition that misses its limits at the least load, or keeps them at the greatest, is looked for beyond,
    not given the rate of all. Method: known knees below, within and above the loads, to 1 %; one that never keeps them
    leaves all without."""
    own = [0.11, 0.69, 0.71, 1.0, 3.0]
    assert knees(own, [0.7, 1.4]) == pytest.approx(own, rel=0.011)
    assert all(found <= knee for found, knee in zip(knees(own, [0.7, 1.4]), own, strict=True))
    assert knees([1.0, 0.0], [0.7, 1.4]) == []


def test_rates_are_dealt_to_groups_once() -> None:
    """Goal: a group of repetitions has its own rates or none, never those of all again. Method: two rates, three
    groups; no rates at all."""
    curve = LoadCurve(goodput_rates_per_s=(2.0, 4.0))
    rates = [curve.of_repetitions(number, 3).goodput_rate for number in range(3)]
    assert [None if each is None else each.value for each in rates] == [2.0, 4.0, None]
    assert LoadCurve().of_repetitions(0, 2).goodput_rate is None


def test_goodput_is_what_is_in_time(result: Result) -> None:
    """Goal: requests in time per second, never more than arrive. Method: rate times share; bounds are shares."""
    curve = result.tables["load_curve"]
    good = curve["goodput_requests_per_s"]
    assert good.to_numpy() == pytest.approx((curve["offered_requests_per_s"] * curve["slo_attainment"]).to_numpy())
    assert (curve["ci_low"].dropna() >= 0).all()
    assert (curve["ci_high"].dropna() <= 1).all()
    assert (curve["n"] == 2).all()
    assert curve["ttft_p99_s"].is_monotonic_increasing


def test_distributions_rise_and_agree_with_the_percentiles(result: Result) -> None:
    """Goal: one truth. Method: seconds rise with the share; median and 99 % are those of the load curve; first tokens
    come later at a higher load at every share (the same requests, only closer together)."""
    curve = result.tables["load_curve"].query("not is_goodput_rate").set_index("load")
    spread = result.tables["latencies"]
    assert sorted(spread["load"].unique()) == [0.3, 0.9, 1.6]
    for (_, _), rows in spread.groupby(["load", "measure"]):
        assert rows["seconds"].is_monotonic_increasing
    for load, row in curve.iterrows():
        mine = spread[spread["load"] == load].set_index(["measure", "share"])["seconds"]
        assert mine["ttft", 0.5] == row["ttft_p50_s"]
        assert mine["tpot", 0.99] == row["tpot_p99_s"]
        assert mine["itl", 0.99] == row["itl_p99_s"]
    first = spread[spread["measure"] == "ttft"].pivot_table(index="share", columns="load", values="seconds")
    assert np.all(np.diff(first.to_numpy(), axis=1) >= 0)


def test_pictures_of_the_load(result: Result) -> None:
    """Goal: both pictures, with words. Method: what they say; a run whose loads all keep the promise has no knee."""
    pictures = draw_pictures(result.tables, limits=result.context.limits)
    assert "the promise is kept up to" in pictures["goodput"].alt
    assert "median first token" in pictures["latencies"].alt
    curve = result.tables["load_curve"]
    easy: dict[str, pd.DataFrame] = {"load_curve": curve.iloc[:2]}
    assert "no knee was found" in draw_pictures(easy, narrow=False)["goodput"].alt
    assert result.plot.goodput()[0].get_title(loc="left") == "chat"
    assert len(result.plot.latencies()) == 4


@pytest.mark.parametrize("loads", [3, 4, 5])
def test_the_legend_rises_from_left_to_right(result: Result, loads: int) -> None:
    """Goal: loads are read in order. Method: places of the legend's words on the page, for each number of loads."""
    one = result.tables["latencies"].query("load == 0.3")
    table = pd.concat([one.assign(load=0.1 * (k + 1)) for k in range(loads)])
    figure = latency_distributions({"latencies": table})[0].get_figure(root=True)
    assert figure is not None
    figure.canvas.draw()
    texts = figure.legends[0].get_texts()
    places = {text.get_text(): text.get_window_extent() for text in texts}
    read = sorted(places, key=lambda words: (-round(places[words].y0), places[words].x0))
    assert read == [f"load {10 * (k + 1)} %" for k in range(loads)]
