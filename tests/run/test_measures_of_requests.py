"""Measures of a service computed a second time, from nothing but the instants of single requests and their tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from sim import run
from sim.result import Result
from tests.run.cases import SERVED, loaded
from tests.run.test_export import ALONE

Floats = NDArray[np.float64]
BIN_ERROR = 0.005
"""Percentiles come from bins of 1 %, told by their middle."""
COUNT, WARM = 1000, 50
ONE_WINDOW = (
    f"serving.windows={{requests: {COUNT}, replications: 1, losses: 0, record: {COUNT}}}",
    "serving.disturbance=null",
    "serving.services.0.load=null",
)
PLAIN, CROWDED = "rate=18 requests/s", "rate=60 requests/s"
LEAVING = (
    "serving.services.0.clients={patience: 3 s, until: answer, cancel_share: 10 %, cancel_after: 1 s}",
    "serving.services.0.admission={max_outstanding: 40}",
)


@pytest.fixture(scope="module", params=[(PLAIN,), (CROWDED, *LEAVING)], ids=["plain", "leaving"])
def window(request: pytest.FixtureRequest) -> Result:
    """One window of a service with all its requests recorded: at ease, or overloaded and left by clients."""
    rate, *more = request.param
    return run(loaded(SERVED, *ALONE, *ONE_WINDOW, f"serving.services.0.{rate}", *more), workers=1)


def seconds(rows: pd.DataFrame, column: str) -> Floats:
    """A column of instants, nan where it did not happen."""
    return np.asarray(rows[column].astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan) * 1e-9)


def is_quantile(found: float, values: Any, share: float) -> bool:
    """Whether it is the least value that a share does not pass, within a bin (or the next: shares are weighted)."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    rank = max(1, math.ceil(share * ordered.size))
    low, high = ordered[rank - 1], ordered[min(rank, ordered.size - 1)]
    return bool(low * (1 - BIN_ERROR) <= found <= high * (1 + BIN_ERROR))


def delivered(rows: pd.DataFrame) -> tuple[Floats, Floats]:
    """Instants of all tokens, and the gaps before those that have one, each with its end: (tokens,), (2, gaps)."""
    instants, gaps = [np.zeros(0)], [np.zeros((2, 0))]
    for first_s, text in zip(seconds(rows, "first_token_ns"), rows["gaps_ns"], strict=True):
        if not math.isnan(first_s):
            own = np.array(str(text).split(), dtype=np.float64) * 1e-9
            times = first_s + np.concatenate([[0.0], np.cumsum(own)])
            instants.append(times)
            gaps.append(np.stack([own, times[1:]]))
    return np.concatenate(instants), np.concatenate(gaps, axis=1)


def test_measures_are_those_of_the_requests(window: Result) -> None:
    """Goal: definitions, not bookkeeping, make the numbers (measures page, service). Method: a run whose requests are
    all recorded; requests that arrive after the warm-up count, tokens and answers of any request by their instants."""
    found = window.tables["service"].set_index("measure")["value"]
    everyone = window.tables["requests"]
    assert len(everyone) == COUNT
    rows = everyone.iloc[WARM:]
    arrival, first, last = (seconds(rows, f"{name}_ns") for name in ("arrival", "first_token", "last_token"))
    done = (rows["status"] == "completed").to_numpy()
    answers = rows["output_tokens"].to_numpy(dtype=np.float64)
    per_later = (last - first) / np.maximum(answers - 1, 1)
    in_time = done & (first - arrival <= 2.0) & ((answers == 1) | (per_later <= 0.060))
    assert found["slo_attainment"] == pytest.approx(in_time.mean())
    assert found["tokens_in_time"] == pytest.approx(answers[in_time].sum() / answers.sum())
    began, ended = arrival[0], arrival[-1]
    tokens, gaps = delivered(everyone)
    of_answers = seconds(everyone[everyone["status"] == "completed"], "last_token_ns")
    for name, instants in (("tokens_per_s", tokens), ("requests_per_s", of_answers)):
        rate = np.count_nonzero((instants > began) & (instants <= ended)) / (ended - began)
        assert found[name] == pytest.approx(rate, rel=2e-3 if name == "tokens_per_s" else 1e-9), name
    chips = 3 * 128
    assert found["tokens_per_chip_s"] == pytest.approx(found["tokens_per_s"] / chips)
    offered_per_s = found["offered_requests_per_s"] * answers.mean()
    in_time_per_s = offered_per_s * found["tokens_in_time"]
    assert found["chip_s_per_token_in_time"] == pytest.approx(chips / in_time_per_s if in_time_per_s else math.inf)
    values = {
        "ttft": np.where(np.isnan(first), np.inf, first - arrival),
        "tpot": per_later[done & (answers > 1)],
        "itl": gaps[0, gaps[1] > began],
        "end_to_end": (last - arrival)[done],
    }
    for name, each in values.items():
        for share, percent in ((0.5, "50"), (0.99, "99")):
            assert is_quantile(found[f"{name}_p{percent}_s"], each, share), (name, percent)
    assert is_quantile(found["itl_p999_s"], values["itl"], 0.999)


def test_the_ledger_is_the_time_of_the_requests(window: Result) -> None:
    """Goal: nothing is left over. Method: the categories add up to `request_mean_s`; where all get their answer, that
    is the mean time of the requests after the warm-up."""
    found = window.tables["service"].set_index("measure")["value"]
    ledger = window.tables["ledger"]
    whole = ledger[ledger["scope"] == "all"]
    assert whole["seconds_per_request"].sum() == pytest.approx(found["request_mean_s"], rel=1e-12)
    assert whole["share"].sum() == pytest.approx(1)
    rows = window.tables["requests"].iloc[WARM:]
    if (rows["status"] == "completed").all():
        times = seconds(rows, "last_token_ns") - seconds(rows, "arrival_ns")
        assert found["request_mean_s"] == pytest.approx(times.mean(), rel=1e-9)
