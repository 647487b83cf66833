"""What the keys of a pod in operation must hold together: jobs, their logs and laws, spares, the study."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sim.job_plans import arrivals_of
from sim.scenario_faults import nearest
from sim.strict_yaml import KeyPath
from topology.errors import InputError
from topology.pod import SWITCHES_PER_POD, AnyPod, Pod
from topology.shape import parse_shape
from workloads.jobs.profiles import PROFILES

if TYPE_CHECKING:
    from sim.scenario import Scenario
    from sim.scenario_jobs import JobStream

Problem = tuple[KeyPath, str, str]

JOBS_MAX = 500_000
"""Most jobs of one stream in one replication."""
JOB_LOGS = {
    "swf": "logs in this format: Parallel Workloads Archive (https://www.cs.huji.ac.il/labs/parallel/workload/)",
    "helios": "the trace: https://github.com/S-Lab-System-Group/HeliosData (data/CLUSTER/cluster_log.csv)",
    "philly": "the trace: https://github.com/msr-fiddle/philly-traces (reduced: pkusys/ElasticFlow, philly.csv)",
}
"""Where job logs are published, by format."""


def maintenance_problems(scenario: Scenario, pod: AnyPod) -> Iterator[Problem]:
    """A round of drains must be over before the next begins."""
    counts = {
        "cubes": pod.cubes if isinstance(pod, Pod) else 0,
        "switches": SWITCHES_PER_POD if scenario.pod.fabric.has_light else 0,
    }
    for name, count in counts.items():
        rolling = getattr(scenario.maintenance, name)
        if rolling is None:
            continue
        if not count:
            yield ("maintenance", name), f"this machine has no {name}", "remove it"
            continue
        try:
            rolling.starts_s(count, 0)
        except ValueError as error:
            what, _, write = str(error).partition(": ")
            yield ("maintenance", name), what, write


def job_problems(scenario: Scenario, pod: AnyPod) -> Iterator[Problem]:
    """All problems of the jobs of one scenario without a sweep."""
    jobs, study, shared, fleet = (
        scenario.jobs,
        scenario.study.operations,
        scenario.study.shared_pod,
        scenario.study.fleet,
    )
    if fleet is not None and jobs is None:
        yield ("study", "fleet"), "no jobs are named", "write `jobs:` with streams, a log or always"
    if fleet is not None and scenario.failures.log is not None:
        yield ("failures", "log"), "the log of one machine is not that of several pods", "write laws, such as `host:`"
    if study is not None and jobs is None:
        yield ("study", "operations"), "no jobs are named", "write `jobs:` with streams, a log or always"
    if jobs is None:
        return
    horizon_s = max((asked.horizon for asked in (study, shared, fleet) if asked is not None), default=0.0)
    if not horizon_s:
        yield ("jobs",), "nobody asks about these jobs", "write `study: {operations: {horizon: 30 d}}`"
        return
    if not jobs.streams and jobs.log is None and not jobs.always:
        yield ("jobs",), "there are no jobs", "write `streams:`, `log:` or `always:`"
    names = [stream.name for stream in jobs.streams]
    for index, stream in enumerate(jobs.streams):
        path: KeyPath = ("jobs", "streams", index)
        if stream.name in names[:index]:
            yield (*path, "name"), f"`{stream.name}` names two streams", "write another name"
        yield from _stream(stream, path, pod, horizon_s, 1 if fleet is None else fleet.pods)
    yield from _job_log(scenario)
    for text, count in jobs.always.items():
        yield from _slices(("jobs", "always", text), text, count, pod)
    yield from _spares(scenario, pod)
    promise = None if study is None else study.promise
    for text, count in promise.slices.items() if promise is not None else ():
        yield from _slices(("study", "operations", "promise", "slices", text), text, count, pod)


def _stream(stream: JobStream, path: KeyPath, pod: AnyPod, horizon_s: float, pods: int) -> Iterator[Problem]:
    """One law of arrivals, a profile that exists, a mean where a load needs one, no more jobs than can be played."""
    if stream.profile is not None and stream.profile not in PROFILES:
        yield (*path, "profile"), f"profile `{stream.profile}` is not known", nearest(stream.profile, list(PROFILES))
        return
    if (stream.arrivals is None) == (stream.load is None):
        yield path, "a stream needs either `arrivals` or `load`", "write for example `load: 80 %`"
        return
    try:
        mean_s = stream.durations.mean_s
    except ValueError:
        yield (*path, "durations"), "the law has no mean", "write one, such as `mean: 8 h`"
        return
    if not mean_s > 0:
        yield (*path, "durations"), "jobs of no work", "write a mean above 0 s"
        return
    expected = arrivals_of(stream, pod, pods).rate * horizon_s
    if expected > JOBS_MAX:
        where = (*path, "load" if stream.arrivals is None else "arrivals")
        what = f"about {expected:,.0f} jobs in each replication"
        yield where, what, f"write a lower rate, longer jobs or a shorter horizon: at most {JOBS_MAX:,} jobs"


def _job_log(scenario: Scenario) -> Iterator[Problem]:
    log = scenario.jobs.log if scenario.jobs is not None else None
    if log is None:
        return
    if log.path is None:
        advice = f"set it with `--set jobs.log.path=FILE`; {JOB_LOGS[log.format]}"
        yield ("jobs", "log"), "no file is named, and opticube ships none", advice
    elif not Path(log.path).is_file():
        yield ("jobs", "log", "path"), f"there is no file `{log.path}`", f"check the path; {JOB_LOGS[log.format]}"


def _slices(path: KeyPath, text: str, count: int, pod: AnyPod) -> Iterator[Problem]:
    """Slices that the pod can have."""
    try:
        shape = parse_shape(text)
    except InputError as error:
        yield path, error.faults[0].what, error.faults[0].write
        return
    if shape.chips > pod.chips:
        yield path, f"a slice of {shape.chips:,} chips is larger than the pod of {pod.chips:,}", "write a smaller one"
    elif count > pod.chips:
        yield path, f"{count:,} jobs on {pod.chips:,} chips", f"write at most {pod.chips}"


def _spares(scenario: Scenario, pod: AnyPod) -> Iterator[Problem]:
    """Spares are a part of the pod."""
    spares, there = scenario.spares.cubes, pod.cubes if isinstance(pod, Pod) else pod.hosts
    if spares >= there:
        what = f"{spares:,} spares leave nothing of {there:,} for jobs"
        yield ("spares", "cubes"), what, f"write at most {there - 1}"
