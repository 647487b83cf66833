"""The study `operations`: every chip-hour in exactly one use, pictures and words, sweeps, refusals of bad input."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from sim.build import build_setup
from sim.cli import command_status
from sim.measure_names import OPERATIONS_MEASURES
from sim.metrics.cube_story import cube_stretches
from sim.metrics.intervals import mean_estimate
from sim.metrics.jobs import losses
from sim.report.plots import draw_pictures
from sim.result import Result
from sim.scenario import expand, load_scenario
from sim.simulation import run
from sim.studies.operations import play_operations, sample_operations
from sim.trace import Trace
from tests.scenario.bad_scenarios import Case
from topology.errors import InputError

SCENARIO = """\
name: month
pod: {cubes: 8, grid: 2x2x2}
failures:
  host: {failure_rate: 0.5 %/day, availability: 99 %}
  optical_end: {failure_rate: 0.05 %/day, repair: {kind: exponential, mean: 4 h}}
  ocs: {failure_rate: 0.5 %/day, repair: {kind: exponential, mean: 24 h}}
sweep:
  pod.fabric: [reconfigurable, static_contiguous]
jobs:
  streams:
    - name: mix
      load: 70 %
      slices: {kind: shares, shares: {4x4x8: 1, 4x4x4: 2, 2x2x4: 2, 8x8x16: 0.05}}
      durations: {kind: lognormal, mean: 6 h, cv: 1}
  always: {4x4x4: 1}
scheduling: {queue: {kind: easy}}
checkpoint: {kind: fixed, interval: 1 h, save: 60 s}
spares: {kind: none}
study:
  operations: {horizon: 10 d, replications: 3}
run: {seed: 3, warmup: 1 d}
"""


@pytest.fixture(scope="module")
def scenario_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scenario as a file."""
    path = tmp_path_factory.mktemp("operations") / "month.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def result(scenario_file: Path) -> Result:
    """The scenario, run once."""
    return run(load_scenario(scenario_file), workers=1)


def test_every_chip_hour_is_in_one_use(result: Result) -> None:
    """Goal: nothing is left over. Method: uses add up to the pod; `unaccounted` is 0, also in the summary."""
    for _, rows in result.tables["operations_chip_hours"].groupby("fabric"):
        assert rows["chip_hours"].sum() == pytest.approx(8 * 64 * 9 * 24, rel=1e-12)
        assert rows.loc[rows["use"] == "unaccounted", "chip_hours"].tolist() == [0.0]
    summary = result.tables["summary"]
    assert summary.loc[summary["measure"] == "chip_hours_unaccounted", "value"].tolist() == [0.0, 0.0]
    useful = summary.loc[summary["measure"] == "chip_hours_useful", "value"]
    goodput = summary.loc[summary["measure"] == "goodput", "value"]
    assert (useful / (8 * 64 * 9 * 24)).tolist() == pytest.approx(goodput.tolist(), rel=1e-9)


def test_fabrics_are_compared_in_pairs(result: Result) -> None:
    """Goal: what a fabric is worth is told with the interval of the paired differences. Method: every measure from
    `replications` by hand; months with nothing to measure are left out."""
    table = result.tables["differences"]
    assert set(table["compared"]) == {"pod.fabric"}
    assert set(table["against"]) == {"static_contiguous"}
    rows = table.set_index("form")
    months = result.tables["replications"]
    assert set(rows.index) <= set(OPERATIONS_MEASURES)
    for form in ("goodput", "wait_mean_s", "ettr", "circuits_per_day"):
        mine = months[months["form"] == form].sort_values("replication")
        values = {fabric: rows["value"].to_numpy() for fabric, rows in mine.groupby("fabric")}
        due = mean_estimate(values["reconfigurable"] - values["static_contiguous"])
        found = rows.loc[form, ["difference", "ci_low", "ci_high"]].astype(float).to_numpy()
        assert found == pytest.approx([due.value, due.ci_low, due.ci_high])
        assert rows.loc[form, "replications"] == 3


def test_swept_values_are_compared_with_the_first(scenario_file: Path, tmp_path: Path) -> None:
    """Goal: what a crew is worth, on the same bad luck. Method: repairs swept on one fabric; losses are fewer or more,
    in pairs; a replication is replayed to the last bit."""
    sweep = "sweep={repair.crews: [1, 4], pod.fabric: [reconfigurable, static_contiguous]}"
    overrides = [sweep, "study.operations={horizon: 6 d, replications: 2}"]
    result = run(load_scenario(scenario_file, overrides), workers=1, out=tmp_path / "run")
    table = result.tables["differences"]
    crews = table[(table["compared"] == "repair.crews") & (table["form"] == "goodput")]
    assert crews[["fabric", "against", "repair.crews"]].to_numpy().tolist() == [
        ["reconfigurable", "1", "4"],
        ["static_contiguous", "1", "4"],
    ]
    months = result.tables["replications"]
    mine = months[(months["form"] == "goodput") & (months["fabric"] == "reconfigurable")]
    means = mine.groupby("repair.crews")["value"].mean()
    assert crews["difference"].iloc[0] == pytest.approx(means["4"] - means["1"], abs=1e-12)
    fabrics = table[table["compared"] == "pod.fabric"]
    assert set(fabrics["repair.crews"]) == {"1", "4"}
    assert command_status(["replay", str(tmp_path / "run"), "--point", "2", "--replication", "1"]) == 0


def test_the_promise_of_a_month(scenario_file: Path) -> None:
    """Goal: a promise is followed month by month. Method: six cubes of eight as three slices, 90 % of 40 days; the
    table agrees with the measure; it is in the words of the run; a promise larger than the pod is refused."""
    promise = "study.operations={horizon: 40 d, replications: 2, promise: {slices: {4x4x8: 3}, time_share: 90 %}}"
    result = run(load_scenario(scenario_file, [promise, "jobs={always: {4x4x4: 1}}"]), workers=1)
    months = result.tables["promise_months"]
    assert months["end_s"].tolist() == [31 * 86_400.0, 40 * 86_400.0] * 2
    assert ((months["held"] > 0) & (months["held"] <= 1)).all()
    measures = result.tables["operations"]
    kept = measures[measures["measure"] == "promise_kept"].set_index("fabric")["value"]
    for fabric, rows in months.groupby("fabric"):
        assert rows["kept"].mean() == pytest.approx(kept[fabric])
    assert "The promise of three 128-chip slices for 90 % of the month could be kept in" in result.sentence
    with pytest.raises(InputError, match=r"study\.operations\.promise\.slices\.16x16x16: a slice of 4,096 chips"):
        load_scenario(scenario_file, [promise.replace("4x4x8: 3", "16x16x16: 1")])


def test_jobs_that_the_pod_can_never_hold_are_reported(result: Result) -> None:
    """Goal: a job larger than the pod is a reported rejection. Method: 16-cube jobs on 8 cubes."""
    sizes = result.tables["job_sizes"]
    large = sizes[sizes["slice_chips"] == 1024]
    assert (large["rejected"] == large["arrived"]).all()
    assert (sizes.loc[sizes["slice_chips"] < 1024, "rejected"] == 0).all()


def test_runs_do_not_depend_on_workers(scenario_file: Path, result: Result) -> None:
    """Goal: the same tables whoever computes them. Method: two processes against one."""
    other = run(load_scenario(scenario_file), workers=2)
    for name, table in result.tables.items():
        assert table.equals(other.tables[name]), name


def test_pictures_words_and_page(scenario_file: Path, result: Result, tmp_path: Path) -> None:
    """Goal: the study is seen and read. Method: pictures with their words, sentences, the picture of a load sweep."""
    pictures = draw_pictures(result.tables)
    assert list(pictures) == ["operations", "recovery", "cubes"]
    assert all(len(picture.alt) > 60 for picture in pictures.values())
    assert "goodput is" in result.sentence
    swept = run(
        load_scenario(
            scenario_file,
            [
                "sweep={pod.fabric: [reconfigurable], jobs.streams.0.load: [30 %, 60 %]}",
                "study.operations.replications=2",
            ],
        ),
        workers=1,
    )
    assert "wait" in draw_pictures(swept.tables, narrow=False)


def test_rates_per_day_are_of_what_happens_after_the_warm_up(scenario_file: Path) -> None:
    """Goal: events and days belong together, whoever arrived before. Method: counts of the log's rows after it."""
    setup = build_setup(expand(load_scenario(scenario_file, ["run.warmup=4 d"]))[0].scenario)
    _, trace = play_operations(setup, 0)
    measures, warmup_us = sample_operations(setup, 0).measures, 4 * 86_400_000_000
    made = sum(row[6] for row in trace.rows if row[1] == "connect" and row[0] >= warmup_us)
    assert measures["circuits_per_day"] == pytest.approx(made / 6)
    lost = [loss for loss in losses(trace) if loss.lost_us >= warmup_us]
    assert measures["job_losses_per_day"] == pytest.approx(len(lost) / 6)
    assert {loss.job for loss in lost} & set(trace_jobs_before(trace, warmup_us))


def trace_jobs_before(trace: Trace, until_us: int) -> list[int]:
    """Jobs that arrived before an instant."""
    return [row[4] for row in trace.rows if row[1] == "submit" and row[0] < until_us]


def test_jobs_of_a_log_that_fit_nowhere_are_told(scenario_file: Path, tmp_path: Path) -> None:
    """Goal: what does not fit is reported. Method: a log of three jobs, one of odd size under the exact rule."""
    lines = [f"{n} {n} -1 60 {size} -1 -1 {size} 60 -1 1 1 1 1 1 1 -1 -1" for n, size in ((1, 64), (2, 65), (3, 64))]
    log = tmp_path / "jobs.swf"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    jobs = f"jobs={{log: {{path: {log}, rule: {{kind: exact}}}}}}"
    result = run(load_scenario(scenario_file, [jobs, "run.warmup=0 s", "study.operations.replications=2"]), workers=1)
    assert "jobs of the log left out: 1, the rule has no slice for them" in result.warnings
    measures = result.tables["operations"]
    assert (measures.loc[measures["measure"] == "jobs_arrived", "value"] == 2).all()


def test_the_story_of_cubes_agrees_with_the_chip_hours(scenario_file: Path) -> None:
    """Goal: the picture shows what the tables count. Method: chip-time of drained, unusable and held whole cubes."""
    setup = build_setup(expand(load_scenario(scenario_file, ["run.warmup=0 s"]))[0].scenario)
    _, trace = play_operations(setup, 0)
    stretches = list(cube_stretches(trace, 10**9))
    for cube in range(8):
        own = sorted((stretch for stretch in stretches if stretch.cube == cube), key=lambda one: one.start_us)
        assert all(before.end_us <= after.start_us for before, after in itertools.pairwise(own))
    running = {}
    for interval in trace.stage_intervals():
        if interval.stage.value in ("running", "checkpointing"):
            running[interval.job] = running.get(interval.job, 0) + interval.end_us - interval.start_us
    whole = {placed.job: len(placed.cubes) for placed in trace.placements if placed.cubes}
    told = dict.fromkeys(whole, 0)
    for stretch in stretches:
        if stretch.what == "running" and stretch.job in told:
            told[stretch.job] += stretch.end_us - stretch.start_us
    # a cube on which a running job holds and a host has just died is told as unusable for that instant only
    assert told == {job: cubes * running.get(job, 0) for job, cubes in whole.items()}


def test_no_jobs_and_none_that_finish(scenario_file: Path, tmp_path: Path) -> None:
    """Goal: what did not happen has no value, and a report all the same. Method: no arrivals; jobs of ten years."""
    base = [
        "sweep={pod.fabric: [reconfigurable]}",
        "study.operations={horizon: 2 d, replications: 2}",
        "run.warmup=0 s",
    ]
    none = ["jobs.always=null", "jobs.streams.0.load=null", "jobs.streams.0.arrivals={kind: poisson, rate: 1e-6 /year}"]
    empty = run(load_scenario(scenario_file, [*base, *none]), out=tmp_path / "none", workers=1)
    measures = empty.tables["operations"].set_index("measure")["value"]
    assert measures[["wait_mean_s", "slowdown_mean", "ettr", "goodput_program"]].isna().all()
    assert measures["goodput"] == measures["jobs_arrived"] == 0
    assert "no job has arrived" in empty.sentence
    assert (tmp_path / "none" / "report.html").stat().st_size > 10_000
    long = [*base, "jobs.streams.0.durations={kind: exponential, mean: 3650 d}", "jobs.streams.0.load=5000 %"]
    unfinished = run(load_scenario(scenario_file, long), workers=1).tables["operations"].set_index("measure")["value"]
    assert unfinished[["slowdown_mean"]].isna().all()
    assert unfinished["goodput"] > 0


def test_two_stages_are_there_from_the_start(scenario_file: Path) -> None:
    """Goal: a stationary start knows both stages of repair. Method: stages of 10 s instead of days: next to no host is
    down at the start, and the machine says so."""
    stages = "{automated: {kind: exponential, mean: 10 s}, manual: {kind: exponential, mean: 10 s}}"
    host = "failures.host={failure_rate: 20 %/day}"
    setup = build_setup(
        expand(load_scenario(scenario_file, [host, f"repair.two_stage={stages}", "repair.crews=null"]))[0].scenario
    )
    assert setup.odds.host > 0.9999
    _, trace = play_operations(setup, 0)
    assert sum(row[0] == 0 and row[1] == "fail" and row[2] == "host" for row in trace.rows) == 0


BAD = [
    Case("no jobs", "jobs:\n", "serving: null\njobs: null\nother:\n", "", "unknown key `other`"),
    Case(
        "nobody asks",
        "  operations: {horizon: 10 d, replications: 3}\n",
        "  promise: {slices: {4x4x4: 1}}\n",
        "jobs",
        "nobody asks about these jobs",
    ),
    Case("no arrivals", "      load: 70 %\n", "", "jobs.streams.0", "a stream needs either `arrivals` or `load`"),
    Case(
        "both",
        "      load: 70 %\n",
        "      load: 70 %\n      arrivals: {rate: 1 /h}\n",
        "jobs.streams.0",
        "a stream needs either",
    ),
    Case("load of nothing", "load: 70 %", "load: 0 %", "jobs.streams.0.load", "must be above it"),
    Case("load without unit", "load: 70 %", "load: plenty", "jobs.streams.0.load", ""),
    Case("too many jobs", "mean: 6 h", "mean: 1 ms", "jobs.streams.0.load", "jobs in each replication"),
    Case(
        "no duration",
        "      durations: {kind: lognormal, mean: 6 h, cv: 1}\n",
        "",
        "jobs.streams.0",
        "key `durations` is missing",
    ),
    Case(
        "no mean",
        "durations: {kind: lognormal, mean: 6 h, cv: 1}",
        "durations: {kind: exponential}",
        "jobs.streams.0.durations",
        "no mean",
    ),
    Case("bad shape", "{4x4x8: 1, ", "{4x4x9: 1, ", "jobs.streams.0.slices", "4x4x9"),
    Case(
        "no shares",
        "{4x4x8: 1, 4x4x4: 2, 2x2x4: 2, 8x8x16: 0.05}",
        "{4x4x8: 0}",
        "jobs.streams.0.slices",
        "shares are 0",
    ),
    Case("negative share", "4x4x8: 1", "4x4x8: -1", "jobs.streams.0.slices", "at least 0"),
    Case("unknown mix", "kind: shares, shares", "kind: sharks, shares", "jobs.streams.0.slices", "sharks"),
    Case(
        "unknown profile",
        "      load: 70 %\n",
        "      load: 70 %\n      profile: wiide\n",
        "jobs.streams.0.profile",
        "`wide`",
    ),
    Case(
        "unknown kind", "    - name: mix\n", "    - name: mix\n      kind: gaming\n", "jobs.streams.0.kind", "training"
    ),
    Case(
        "name twice",
        "  always:",
        "    - {name: mix, load: 1 %, durations: {mean: 1 h, cv: 1}}\n  always:",
        "jobs.streams.1.name",
        "names two streams",
    ),
    Case("bad name", "name: mix", "name: Mix!", "jobs.streams.0.name", ""),
    Case(
        "always too large", "always: {4x4x4: 1}", "always: {16x16x16: 1}", "jobs.always.16x16x16", "larger than the pod"
    ),
    Case("always no shape", "always: {4x4x4: 1}", "always: {big: 1}", "jobs.always.big", ""),
    Case("always none", "always: {4x4x4: 1}", "always: {4x4x4: 0}", "jobs.always.4x4x4", ""),
    Case("log without file", "  always: {4x4x4: 1}", "  log: {format: swf}", "jobs.log", "--set jobs.log.path=FILE"),
    Case(
        "log not there",
        "  always: {4x4x4: 1}",
        "  log: {path: nowhere.swf}",
        "jobs.log.path",
        "there is no file `nowhere.swf`",
    ),
    Case("log format", "  always: {4x4x4: 1}", "  log: {path: x, format: slurm}", "jobs.log.format", "swf"),
    Case("time scale", "  always: {4x4x4: 1}", "  log: {path: x, time_scale: 0}", "jobs.log.time_scale", ""),
    Case("queue", "kind: easy", "kind: esy", "scheduling.queue", "esy"),
    Case("queue option", "kind: easy", "kind: easy, order: size", "scheduling.queue", "arrival"),
    Case("checkpoint interval", "interval: 1 h", "interval: 0 s", "checkpoint", "above 0 s"),
    Case("checkpoint stall", "save: 60 s", "save: 60 s, stall: 61 s", "checkpoint", "longer than the save"),
    Case("checkpoint kind", "kind: fixed", "kind: sometimes", "checkpoint", "sometimes"),
    Case("spares without kind", "spares: {kind: none}", "spares: {cubes: 2}", "spares", "name both a kind and cubes"),
    Case(
        "spares of all", "spares: {kind: none}", "spares: {kind: cold, cubes: 8}", "spares.cubes", "leave nothing of 8"
    ),
    Case(
        "maintenance too dense",
        "spares: {kind: none}",
        "maintenance: {cubes: {every: 1 d, length: 4 h}}",
        "maintenance.cubes",
        "a round of 8 drains",
    ),
    Case(
        "static pods have no switches",
        "spares: {kind: none}",
        "maintenance: {switches: {every: 90 d}}",
        "maintenance.switches",
        "this machine has no switches",
    ),
    Case(
        "two repairs of hosts",
        "host: {failure_rate: 0.5 %/day, availability: 99 %}",
        "host: {failure_rate: 0.5 %/day, repair: {kind: exponential, mean: 1 h}}",
        "failures.host.repair",
        "is the repair of hosts already",
        ("repair.two_stage={manual_share: 80 %}",),
    ),
    Case(
        "parts of what never fails",
        "spares: {kind: none}",
        "repair: {parts: {rack: {stock: 1}}}",
        "repair.parts.rack",
        "no rack fails",
    ),
    Case("bad hosts", "failures:\n", "failures:\n  bad_hosts: {share: 140 %}\n", "failures.bad_hosts.share", ""),
    Case(
        "slow hosts",
        "failures:\n",
        "failures:\n  slow_hosts: {rate: 1 /year, speed: 100 %}\n",
        "failures.slow_hosts",
        "strictly between",
    ),
    Case(
        "flaps",
        "failures:\n",
        "failures:\n  flapping_in_rack_links: {rate: 1 /year, every: 1 s, length: 2 s}\n",
        "failures.flapping_in_rack_links",
        "shorter than every",
    ),
    Case(
        "curves do not see it",
        "  operations: {",
        "  availability: {}\n  operations: {",
        "study.availability",
        "does not see `maintenance`",
        ("maintenance.cubes.every=30 d",),
    ),
    Case("warm-up", "warmup: 1 d", "warmup: 10 d", "study.operations.horizon", "within the warm-up"),
    Case("horizon", "horizon: 10 d", "horizon: 0 d", "study.operations.horizon", ""),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_bad_jobs_are_refused(case: Case, tmp_path: Path) -> None:
    """Goal: each fault is told with its key and what to write. Method: edits of a good scenario."""
    assert isinstance(case.new, str)
    assert case.old in SCENARIO
    path = tmp_path / "bad.yaml"
    path.write_text(SCENARIO.replace(case.old, case.new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_scenario(path, case.options)
    told = [fault for fault in caught.value.faults if case.place in str(fault) and case.says in str(fault)]
    assert told, "\n".join(map(str, caught.value.faults))
