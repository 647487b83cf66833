"""The load curve: attainment and goodput over the rate, the knee, distributions; and their pictures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sim import run
from sim.report.load_pictures import latency_distributions
from sim.report.plots import draw_pictures
from sim.result import Result
from sim.scenario import scenario_of
from sim.strict_yaml import parse_document

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
