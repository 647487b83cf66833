"""Values replication by replication, and what is said of the draws behind them: what two runs are compared by."""

from __future__ import annotations

import numpy as np
import pytest

from sim.build import build_setup
from sim.result import Result
from sim.scenario import Scenario, expand
from sim.simulation import run
from sim.streams import Streams
from sim.studies.draws import NotedStreams, streams_digest
from tests.run.cases import MACHINE, OPERATED, SERVED, loaded


def streams_of(scenario: Scenario) -> str:
    """Digest of the streams of all points."""
    return streams_digest([build_setup(point.scenario) for point in expand(scenario)])


def test_services_have_a_value_per_group(served: Result) -> None:
    """Goal: replications carry what the estimate does. Method: three histories and two windows make two groups, so of
    two histories each measure that is linear in them is the mean of its groups, to the last bits; a capacity, which is
    found once, has no replications."""
    singles = run(loaded(SERVED, "study.availability.replications=2"), workers=1).tables
    values = singles["service_replications"]
    assert values["replication"].drop_duplicates().tolist() == [0, 1]
    means = values.groupby(["fabric", "measure"])["value"].mean()
    for row in singles["service"].to_dict("records"):
        if row["measure"] in ("all_replicas_up", "replicas_up_mean", "losses_per_day"):
            assert means[row["fabric"], row["measure"]] == pytest.approx(row["value"], rel=1e-12)
    spread = values.groupby(["fabric", "measure"])["value"].nunique()
    assert "capacity_requests_per_s" not in means.index.get_level_values("measure")
    assert (spread[:, "tokens_in_time"] == 2).all()
    assert served.tables["service_replications"].groupby(["fabric", "measure"]).size().eq(2).all()


def test_a_large_job_has_a_value_per_run(operated: Result) -> None:
    """Goal: runs of one very large job can be paired too. Method: the mean of the single values is the estimate."""
    singles = operated.tables["replications"].query("form == 'large_job_total_s'")["value"]
    table = operated.tables["large_job"].set_index("measure")["value"]
    assert len(singles) == 2
    assert singles.mean() == pytest.approx(table["large_job_total_s"], rel=1e-12)


def test_replayed_large_jobs_equal_the_stored_ones(operated: Result) -> None:
    """Goal: a replication of a large job can be replayed. Method: rows of replication 1 against the table."""
    from sim.commands import replayed_rows

    rows = [row for row in replayed_rows(operated.scenario, 1) if row["form"].startswith("large_job_")]
    assert len(rows) == 9
    stored = operated.tables["replications"].query("replication == 1").set_index("form")["value"]
    assert all(row["value"] == stored[row["form"]] for row in rows)


def test_streams_are_known_by_name_and_seed(machine: Result) -> None:
    """Goal: the digest of streams tells other random numbers, not other laws. Method: another rate, repair, load and
    slice size keep it; another seed, a population more, or a job stream under another name change it."""
    own = streams_of(loaded(MACHINE))
    assert machine.manifest["streams"] == own
    assert streams_of(loaded(MACHINE, "failures.rack.failure_rate=3 %/day", "failures.ocs.repair.mean=12 h")) == own
    assert streams_of(loaded(MACHINE, "run.seed=6")) != own
    assert streams_of(loaded(MACHINE, "failures.rack=null")) != own
    jobs = streams_of(loaded(OPERATED))
    assert streams_of(loaded(OPERATED, "jobs.streams.0.load=30 %")) == jobs
    assert streams_of(loaded(OPERATED, "jobs.streams.1.name=slow")) != jobs
    chat = streams_of(loaded(SERVED))
    assert streams_of(loaded(SERVED, "serving.services.0.load=0.5")) == chat
    assert streams_of(loaded(SERVED, "serving.services.0.name=talk")) != chat


def test_noted_streams_are_the_streams() -> None:
    """Goal: noting changes no draw. Method: the same numbers from both, and the names in order."""
    noted = NotedStreams(3, 1)
    assert np.array_equal(noted.uniforms("a", 2, 5), Streams(3, 1).uniforms("a", 2, 5))
    assert np.array_equal(noted.generator("b").random(2), Streams(3, 1).generator("b").random(2))
    assert list(noted.names) == ["a", "b"]


def test_failure_draws_are_told_without_a_study_of_availability(operated: Result) -> None:
    """Goal: pods in operation say which failures they met. Method: another rate and another seed change the digest, a
    setting of jobs does not."""
    own = operated.manifest["failure_draws"]
    quick = ("study.operations.horizon=1 d", "study.large_job=null")
    assert run(loaded(OPERATED, *quick, "jobs.streams.0.load=30 %"), workers=1).manifest["failure_draws"] == own
    assert run(loaded(OPERATED, *quick, "run.seed=2"), workers=1).manifest["failure_draws"] != own
    assert (
        run(loaded(OPERATED, *quick, "failures.host.failure_rate=1 %/day"), workers=1).manifest["failure_draws"] != own
    )
