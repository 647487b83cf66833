"""Drawn jobs: rates, bursts, hours and weekdays, mixes, durations; the same draws whatever is asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sim.lifetimes import Lognormal, Weibull
from sim.streams import Streams
from topology.errors import InputError
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS, FlatPod, Pod
from topology.policies import FirstFit
from workloads.jobs.demand import JobTraits, draw_jobs, jobs_always_in_demand
from workloads.jobs.durations import PhillyDurations
from workloads.jobs.job import Job, JobKind, make_job
from workloads.jobs.job_arrivals import AnyArrivals, GammaArrivals, PoissonArrivals, WeeklyArrivals, arrivals_before
from workloads.jobs.job_plan import JobPlan, plan_of
from workloads.jobs.profiles import PROFILES, JobProfile
from workloads.jobs.slice_mix import NOVEMBER_2022_PERCENT, November2022, SlicesByShare

DAY_S = 86400.0
V4 = POD_GENERATIONS["v4"]
RATE = 139 / DAY_S
DAYS = 7 * 200
LAWS: list[AnyArrivals] = [PoissonArrivals(rate=RATE), GammaArrivals(rate=RATE, cv=3.0), WeeklyArrivals(rate=RATE)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_rates_are_kept(law: AnyArrivals) -> None:
    """Goal: the mean rate. Method: 200 weeks; the count is within 5 standard deviations (cv sqrt(n)) of the rate's."""
    times = arrivals_before(law, DAYS * DAY_S, Streams(1, 0).uniforms, "jobs.arrivals")
    expected = 139 * DAYS
    cv = law.cv if isinstance(law, GammaArrivals) else 1.0
    assert abs(len(times) - expected) < 5 * cv * math.sqrt(expected)
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 0
    assert times[-1] < DAYS * DAY_S


def test_gaps_have_the_law_s_variation() -> None:
    """Goal: bursts. Method: coefficient of variation of 190,000 gaps: 1 within 1 %, 3 within 3 %."""
    for law, cv in ((LAWS[0], 1.0), (LAWS[1], 3.0)):
        gaps = np.diff(arrivals_before(law, DAYS * DAY_S, Streams(2, 0).uniforms, "jobs.arrivals"))
        assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.01 * cv)


def test_hours_and_weekends() -> None:
    """Goal: the weekly rate. Method: counts by hour of the week against the stated rate, within 5 standard deviations
    of a Poisson count."""
    law = WeeklyArrivals(rate=RATE, swing=0.5, peak_hour=15.0, weekend=0.5)
    times = arrivals_before(law, DAYS * DAY_S, Streams(3, 0).uniforms, "jobs.arrivals")
    hour = np.arange(168)
    rate = (1 + 0.5 * np.cos(2 * np.pi * (hour % 24 + 0.5 - 15) / 24)) * np.where(hour >= 120, 0.5, 1.0)
    expected = rate / rate.sum() * 139 * DAYS
    counts = np.bincount((times / 3600).astype(int) % 168, minlength=168)
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_draws_do_not_depend_on_what_else_is_asked() -> None:
    """Goal: paired comparisons. Method: a longer horizon appends; twice the rate halves all times; another mix leaves
    arrivals and work alone."""

    def drawn(days: float, rate: float = RATE, mix: November2022 | SlicesByShare | None = None) -> list[Job]:
        return draw_jobs(V4, arrivals=PoissonArrivals(rate=rate), slices=mix or November2022(),
                         durations=Weibull(shape=0.7, mean=5 * 3600.0), horizon_us=round(days * DAY_S * 1e6),
                         uniforms=Streams(4, 0).uniforms)  # fmt: skip

    short, long, fast = drawn(5), drawn(10), drawn(5, 2 * RATE)
    assert long[: len(short)] == short
    assert [job.work_us for job in fast[:100]] == [job.work_us for job in long[:100]]
    assert [job.arrival_us for job in fast[:100]] == pytest.approx([job.arrival_us / 2 for job in long[:100]], abs=2)
    other = drawn(5, mix=SlicesByShare(shares={"4x4x4": 1.0}))
    assert [(job.arrival_us, job.work_us) for job in other] == [(job.arrival_us, job.work_us) for job in short]
    assert {job.chips for job in other} == {64}


def test_the_mix_of_november_2022() -> None:
    """Goal: the published table, in both readings. Method: it adds up to 97.5 as printed; 100,000 draws: shares of jobs
    within 5 standard deviations; by chip-time the shares of chips are those of the table."""
    assert sum(NOVEMBER_2022_PERCENT.values()) == pytest.approx(97.5)
    u = Streams(5, 0).uniforms("jobs.slices", 0, 100_000)
    counted = Counter(str(shape) for shape in November2022().shapes(u))
    for text, percent in NOVEMBER_2022_PERCENT.items():
        share = percent / 97.5
        assert abs(counted[text] / 1e5 - share) < 5 * math.sqrt(share / 1e5), text
    by_time = November2022(by="chip_time").shapes(u)
    chips = sum(shape.chips for shape in by_time)
    cubes = sum(shape.chips for shape in by_time if str(shape) == "4x4x4") / chips
    assert cubes == pytest.approx(13.9 / 97.5, rel=0.2)
    mean = np.mean([shape.chips for shape in November2022().shapes(u)])
    assert mean == pytest.approx(400, rel=0.05), "about 400 chips, if the per cent are of slices (fabric reference 2.3)"


def test_durations() -> None:
    """Goal: laws of lives serve, and the table of a real cluster. Method: quantiles and a mean."""
    law = PhillyDurations()
    assert law.quantile_s([0.0, 0.5, 0.9]).tolist() == pytest.approx([1, 452, 15663])
    assert PhillyDurations(longest=3600.0).quantile_s(0.99).tolist() == 3600
    u = (np.arange(100_000) + 0.5) / 100_000
    assert law.quantile_s(u).mean() == pytest.approx(11717.81, rel=0.02), "the log's mean"
    traits = JobTraits(request_factor=2.0, kind=JobKind.BATCH, priority=3, owner="x", profile="tight")
    jobs = draw_jobs(
        Pod(cubes=4),
        arrivals=PoissonArrivals(rate=RATE),
        slices=SlicesByShare(shares={"1x1x1": 2, "4x4x4": 1}),
        durations=Lognormal(mean=3600.0, cv=1.0),
        horizon_us=round(400 * DAY_S * 1e6),
        uniforms=Streams(1, 0).uniforms,
        traits=traits,
        first_number=7,
    )
    assert np.mean([job.work_us or 0 for job in jobs]) == pytest.approx(3600e6, rel=0.03)
    assert jobs[0].requested_us == pytest.approx(2 * (jobs[0].work_us or 0), abs=2)
    assert (jobs[0].id, jobs[0].kind, jobs[0].priority, jobs[0].owner, jobs[0].profile) == (7, "batch", 3, "x", "tight")
    assert np.mean([job.reroute_opt_in for job in jobs]) == pytest.approx(0.95, abs=0.01)


def test_sizes_always_in_demand_and_plans() -> None:
    """Goal: demand without end beside jobs that come and go. Method: counts; a plan rejects what no pod could hold."""
    uniforms = Streams(1, 0).uniforms
    endless = jobs_always_in_demand(V4, {"8x8x16": 3, "4x4x4": 2}, uniforms=uniforms)
    assert [(job.id, job.chips, job.work_us, job.arrival_us) for job in endless] == [
        (0, 1024, None, 0), (1, 1024, None, 0), (2, 1024, None, 0), (3, 64, None, 0), (4, 64, None, 0),
    ]  # fmt: skip
    plan = plan_of([*endless[::-1], make_job(9, V4, 8192)], Fabric.RECONFIGURABLE, V4, FirstFit())
    assert [job.id for job in plan.jobs] == [0, 1, 2, 3, 4]
    assert [(one.reason, one.first) for one in plan.rejected] == [("resource", 9)]
    assert jobs_always_in_demand(FlatPod(hosts=64), {"4x4x4": 1}, uniforms=uniforms)[0].shape is None
    with pytest.raises(ValueError, match="in order of arrival"):
        JobPlan(jobs=(endless[1], endless[0]))


def test_profiles() -> None:
    """Goal: three kinds of job on one pod. Method: their slices fit it; what is none is refused."""
    assert {name: profile.shape.chips for name, profile in PROFILES.items()} == {
        "tight": 512,
        "wide": 2048,
        "quick": 64,
    }
    assert sum(profile.shape.chips for profile in PROFILES.values()) <= V4.chips
    bad: list[dict[str, Any]] = [{"slice": "5x5x5"}, {"all_to_all": 2.0}, {"restore": -1.0}, {"name": ""}]
    for values in bad:
        with pytest.raises((ValueError, InputError)):
            JobProfile(**{"name": "x", "slice": "4x4x4", **values})


@pytest.mark.parametrize(
    "make",
    [
        lambda: PoissonArrivals(rate=0.0),
        lambda: PoissonArrivals(rate=math.inf),
        lambda: GammaArrivals(rate=1.0, cv=0.0),
        lambda: WeeklyArrivals(rate=1.0, swing=1.5),
        lambda: WeeklyArrivals(rate=1.0, weekend=-0.1),
        lambda: WeeklyArrivals(rate=1.0, peak_hour=24.0),
        lambda: WeeklyArrivals(rate=1.0, cv=99.0),
        lambda: SlicesByShare(shares={}),
        lambda: SlicesByShare(shares={"4x4x4": -1.0}),
        lambda: SlicesByShare(shares={"4x4x4": 0.0}),
        lambda: SlicesByShare(shares={"4x4x5": 1.0}),
        lambda: November2022(by="hours"),
        lambda: PhillyDurations(longest=0.0),
        lambda: JobTraits(request_factor=0.0),
        lambda: JobTraits(reroute_opt_in=2.0),
        lambda: jobs_always_in_demand(V4, {"4x4x4": 0}, uniforms=Streams(1, 0).uniforms),
        lambda: jobs_always_in_demand(V4, {"cube": 1}, uniforms=Streams(1, 0).uniforms),
        lambda: arrivals_before(PoissonArrivals(rate=1e6), 1e9, Streams(1, 0).uniforms, "jobs.arrivals"),
    ],
)
def test_impossible_demand_is_refused(make: Callable[[], object]) -> None:
    """Goal: nonsense stops early, with what to write. Method: one bad value at a time."""
    with pytest.raises((ValueError, InputError), match=r"write|must be"):
        make()
