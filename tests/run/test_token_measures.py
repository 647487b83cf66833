"""Measures of a service about single tokens and about clients: rows of the run's tables agree with each other."""

from __future__ import annotations

import math

import pytest

from sim import run
from sim.result import Result
from tests.run.cases import SERVED, loaded
from tests.run.test_export import ALONE
from workloads.catalogue.models import MODELS

CLIENTS = (
    "serving.windows={requests: 400, replications: 1, losses: 0, record: 400}",
    "serving.services.0.load=1.6",
    "serving.services.0.clients={patience: 60 ms, attempts: 2, backoff: 100 ms, cancel_share: 20 %}",
    "serving.services.0.clients.cancel_after=1 s",
    "serving.services.0.admission={max_queue: 3}",
)


@pytest.fixture(scope="module")
def crowded() -> Result:
    """A service in a crowd of clients who leave, come back and cancel; all its requests recorded."""
    return run(loaded(SERVED, *ALONE, *CLIENTS), workers=1)


def measure(result: Result, name: str) -> float:
    rows = result.tables["service"]
    return float(rows.loc[rows["measure"] == name, "value"].iloc[0])


def test_shares_of_clients_are_those_of_the_requests(crowded: Result) -> None:
    """Goal: rejections, time-outs, cancellations and retries are rows of the service. Method: counted again from the
    recorded requests after the warm-up; each happens."""
    requests = crowded.tables["requests"].iloc[20:]
    for status in ("rejected", "timed_out", "cancelled"):
        share = float((requests["status"] == status).mean())
        assert measure(crowded, f"{status}_share") == pytest.approx(share)
        assert share > 0
    assert 0 < measure(crowded, "retries_per_request") <= 1


def test_services_without_clients_have_no_such_rows(served: Result) -> None:
    """Goal: what does not apply is left out. Method: a service of patient clients."""
    measures = set(served.tables["service"]["measure"])
    assert not measures & {"rejected_share", "timed_out_share", "cancelled_share", "retries_per_request"}


def test_bytes_by_level_add_up(served: Result, crowded: Result) -> None:
    """Goal: bytes by level and kind are those of the measures, and no level is busier than the passes. Method: sums
    over kinds against the rows of the service (one window: equal; two: means of ratios, near); writing KV takes at
    least what each token of an answer leaves in the cache."""
    for result, near in ((crowded, 1e-9), (served, 0.2)):
        traffic = result.tables["traffic"]
        by_level = traffic.groupby("level", sort=False)[["bytes_per_token", "busy_share"]].sum(min_count=1)
        for name, level in (("hbm", "hbm"), ("link", "ici"), ("on_chip", "vmem")):
            moved = float(by_level.loc[level, "bytes_per_token"])
            assert measure(result, f"{name}_bytes_per_token") == pytest.approx(moved, rel=near)
        assert (by_level["busy_share"].dropna() <= 1).all()
        assert math.isnan(by_level.loc["cmem", "bytes_per_token"])
        written = traffic[(traffic["level"] == "hbm") & (traffic["kind"] == "kv_written")]["bytes_per_token"].iloc[0]
        assert written >= MODELS["llama3_70b"].kv_bytes_per_token()
    floors = served.tables["token_floor"]
    assert (floors["floor_s"] <= floors["seconds_per_token"]).all()
    assert set(floors["chips"]) == {32, 64, 128, 256, 512, 1024}


def test_tokens_per_chip_second(served: Result) -> None:
    """Goal: throughput per chip. Method: tokens per second over the chips of three slices of 128."""
    per_chip = measure(served, "tokens_per_chip_s")
    assert per_chip == pytest.approx(measure(served, "tokens_per_s") / (3 * 128))


def test_kv_memory_without_tokens_is_told_by_reason(served: Result, crowded: Result) -> None:
    """Goal: waste is a measure of every run, and what a token takes in the cache. Method: paged caches reserve nothing
    and lose no room between pieces; inside, at most 15 places of the last block of a request, so under 16 over the
    shortest mean context; bytes by hand; the tail of the gaps lies above their 99th percentile."""
    for result in (served, crowded):
        assert measure(result, "kv_reserved_share") == measure(result, "kv_external_share") == 0
        assert 0 < measure(result, "kv_internal_share") < 0.04
        assert measure(result, "itl_p999_s") >= measure(result, "itl_p99_s")
        assert measure(result, "recomputed_tokens_per_request") == 0
    replicated = MODELS["llama3_70b"].kv_bytes_per_token()
    assert measure(served, "kv_bytes_per_token") % replicated == 0
    assert measure(served, "throughput_back_s") >= 0


def test_latencies_are_told_without_a_load_curve(crowded: Result) -> None:
    """Goal: every run of a service tells how its latencies are spread. Method: at its own load, rising in the share."""
    rows = crowded.tables["latencies"]
    assert rows["load"].unique() == pytest.approx([1.6])
    assert set(rows["measure"]) == {"ttft", "tpot", "itl", "end_to_end"}
    for _, mine in rows.groupby("measure"):
        assert mine.sort_values("share")["seconds"].is_monotonic_increasing
    median = rows[(rows["measure"] == "itl") & (rows["share"] == 0.5)]["seconds"].iloc[0]
    assert median == pytest.approx(measure(crowded, "itl_p50_s"), rel=0.01)
