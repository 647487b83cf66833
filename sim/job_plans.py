"""From the section `jobs` of a scenario to the jobs of one replication: laws drawn, logs read, sizes in demand."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from sim.streams import Streams
from topology.fabric import Fabric
from topology.pod import AnyPod
from workloads.jobs.demand import draw_jobs, jobs_always_in_demand
from workloads.jobs.gpu_clusters import read_helios, read_philly
from workloads.jobs.job import Job
from workloads.jobs.job_arrivals import ArrivalLaw, PoissonArrivals
from workloads.jobs.job_log import JobLog
from workloads.jobs.job_plan import JobPlan, Rejected, plan_from_log
from workloads.jobs.swf import read_swf

if TYPE_CHECKING:
    from sim.scenario import Scenario
    from sim.scenario_jobs import JobLogSection, JobStream


def arrivals_of(stream: JobStream, pod: AnyPod, pods: int = 1) -> ArrivalLaw:
    """The law of arrivals of a stream; of a load the Poisson law whose jobs ask for that share of all chip-time."""
    if stream.arrivals is not None:
        return stream.arrivals
    assert stream.load is not None, "a stream has arrivals or a load"
    return PoissonArrivals(rate=stream.load * pods * pod.chips / (stream.mix.mean_chips * stream.durations.mean_s))


def plan_jobs(
    scenario: Scenario, pod: AnyPod, fabric: Fabric, streams: Streams, horizon_us: int, pods: int = 1
) -> JobPlan:
    """All jobs of one replication in order of arrival, numbered without gaps in their sections' order.

    Those that the pod could never hold stay in: the machine rejects them when they arrive, and the log says so. What a
    log's rule has no slice for is listed in the plan. `pods`: so many pods of this kind share the load.
    """
    section, opt_in = scenario.jobs, scenario.recovery.reroute_opt_in
    assert section is not None
    jobs: list[Job] = []
    for stream in section.streams:
        jobs += draw_jobs(
            pod,
            arrivals=arrivals_of(stream, pod, pods),
            slices=stream.mix,
            durations=stream.durations,
            horizon_us=horizon_us,
            uniforms=streams.uniforms,
            traits=stream.traits(opt_in),
            stream=f"jobs.{stream.name}",
            first_number=len(jobs),
        )
    if section.always:
        jobs += jobs_always_in_demand(
            pod, section.always, uniforms=streams.uniforms, stream="jobs.always", first_number=len(jobs)
        )
    rejected: tuple[Rejected, ...] = ()
    if section.log is not None:
        log = read_job_log(section.log)
        opted_in = streams.uniforms("jobs.log.reroute_opt_in", 0, log.count) < opt_in
        placement = scenario.scheduling.placement
        plan = plan_from_log(
            log, fabric, pod, section.log.rule, placement,
            time_scale=section.log.time_scale, kind=section.log.kind, reroute_opt_in=opted_in.tolist(),
        )  # fmt: skip
        first = len(jobs)
        jobs += [replace(job, id=first + job.id) for job in plan.jobs]
        rejected = plan.rejected
    return JobPlan(jobs=tuple(sorted(jobs, key=lambda job: (job.arrival_us, job.id))), rejected=rejected)


def read_job_log(section: JobLogSection) -> JobLog:
    """The log that a section names; InputError for a file that is none."""
    assert section.path is not None
    return _read(section.path, section.format)


@lru_cache(maxsize=4)
def _read(path: str, form: str) -> JobLog:
    if form == "helios":
        return read_helios(path)
    return read_philly(path) if form == "philly" else read_swf(path).jobs()
