"""Demand: jobs drawn from laws of arrivals, slices and durations, and sizes that are always in demand.

Draw k of each stream belongs to job k, whatever is rejected or decided later, so that comparisons are paired.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from topology.pod import CHIPS_PER_HOST, AnyPod, FlatPod
from topology.shape import Shape, parse_shape
from topology.units import ClosedShare
from workloads.jobs.durations import DurationLaw
from workloads.jobs.job import Job, JobKind, make_job
from workloads.jobs.job_arrivals import ArrivalLaw, Uniforms, arrivals_before
from workloads.jobs.job_plan import US_PER_S, to_clock_us

ARRIVALS, SLICES, DURATIONS, OPT_IN = "arrivals", "slices", "durations", "reroute_opt_in"


class Mix(Protocol):
    """Which slice each job asks for."""

    def shapes(self, u: NDArray[np.float64]) -> list[Shape]:
        """One shape per uniform."""


@dataclass(frozen=True, kw_only=True)
class JobTraits:
    """What all drawn jobs of one stream have in common.

    `request_factor`: what owners say a job takes, over what it takes (1: they know). `reroute_opt_in`: share of jobs
    that run around dead light.
    """

    kind: JobKind = JobKind.TRAINING
    priority: int = 0
    owner: str = ""
    profile: str = ""
    request_factor: float = 1.0
    reroute_opt_in: ClosedShare = 0.95

    def __post_init__(self) -> None:
        """Refuse factors and shares that are none."""
        if not (math.isfinite(self.request_factor) and self.request_factor > 0):
            raise ValueError(f"request_factor of {self.request_factor:g}: write a number above 0, such as 1.5")
        if not 0 <= self.reroute_opt_in <= 1:
            raise ValueError(f"reroute_opt_in of {self.reroute_opt_in:g}: write a share between 0 and 1")


def job_of_shape(
    number: int, pod: AnyPod, shape: Shape, traits: JobTraits, *, opted_in: bool, **times: int | None
) -> Job:
    """A job for a slice of this shape (on a flat pod: of as many chips)."""
    return make_job(
        number,
        pod,
        shape.chips,
        shape=None if isinstance(pod, FlatPod) else shape,
        reroute_opt_in=opted_in,
        kind=traits.kind,
        priority=traits.priority,
        owner=traits.owner,
        profile=traits.profile,
        **times,  # type: ignore[arg-type]
    )


def draw_jobs(
    pod: AnyPod,
    *,
    arrivals: ArrivalLaw,
    slices: Mix,
    durations: DurationLaw,
    horizon_us: int,
    uniforms: Uniforms,
    traits: JobTraits | None = None,
    stream: str = "jobs",
    first_number: int = 0,
) -> list[Job]:
    """All jobs that arrive before the horizon, numbered from `first_number`, in order of arrival.

    `uniforms(name, block, count)` are asked for under `stream`.arrivals, .slices, .durations and .reroute_opt_in.
    """
    traits = JobTraits() if traits is None else traits
    times_s = arrivals_before(arrivals, horizon_us / US_PER_S, uniforms, f"{stream}.{ARRIVALS}").tolist()
    count = len(times_s)
    shapes = slices.shapes(uniforms(f"{stream}.{SLICES}", 0, count))
    work_s = durations.quantile_s(uniforms(f"{stream}.{DURATIONS}", 0, count)).tolist()
    opted_in = (uniforms(f"{stream}.{OPT_IN}", 0, count) < traits.reroute_opt_in).tolist()
    jobs = []
    for place, (time_s, shape, work) in enumerate(zip(times_s, shapes, work_s, strict=True)):
        jobs.append(
            job_of_shape(
                first_number + place,
                pod,
                shape,
                traits,
                opted_in=opted_in[place],
                arrival_us=min(to_clock_us(time_s, f"{stream}.{ARRIVALS}"), horizon_us - 1),
                work_us=to_clock_us(work, f"{stream}.{DURATIONS}"),
                requested_us=to_clock_us(work * traits.request_factor, f"{stream}.{DURATIONS}"),
            )
        )
    return jobs


def jobs_always_in_demand(
    pod: AnyPod,
    slices: Mapping[str, int],
    *,
    uniforms: Uniforms,
    traits: JobTraits | None = None,
    stream: str = "demand",
    first_number: int = 0,
) -> list[Job]:
    """So many jobs without end of each shape, all there from the start, as `slices: {8x8x16: 3}`.

    InputError for a shape that is none and for a number below 1 or beyond the chips of the pod.
    """
    traits = JobTraits() if traits is None else traits
    shapes: list[Shape] = []
    for text, count in slices.items():
        shape = parse_shape(text, f"{stream}.{text}")
        if isinstance(count, bool) or not 1 <= count <= pod.hosts * CHIPS_PER_HOST:
            raise refuse(f"{stream}.{text}", f"{count} jobs", f"write a whole number between 1 and {pod.chips}")
        shapes += [shape] * count
    opted_in = (uniforms(f"{stream}.{OPT_IN}", 0, len(shapes)) < traits.reroute_opt_in).tolist()
    return [
        job_of_shape(first_number + place, pod, shape, traits, opted_in=opted_in[place])
        for place, shape in enumerate(shapes)
    ]
