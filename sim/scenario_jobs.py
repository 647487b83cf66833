"""The sections of a pod in operation: which jobs come, who is next and where, what is saved, who keeps spares."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from sim.job_policies import FixedCheckpoints, NoCheckpoints, YoungCheckpoints
from sim.lifetimes import Empirical, Exponential, Gamma, Lognormal, Mixture, Weibull
from sim.scenario_parts import Count, Section, kind_or
from topology.policies import BestFit, FirstFit, Folding
from topology.units import Unit
from workloads.jobs.defragmentation import MakeRoom, NoDefragmentation
from workloads.jobs.demand import JobTraits
from workloads.jobs.durations import PhillyDurations
from workloads.jobs.job import JobKind
from workloads.jobs.job_arrivals import GammaArrivals, PoissonArrivals, WeeklyArrivals
from workloads.jobs.profiles import PROFILES
from workloads.jobs.queue_policies import Easy, FairShare, Fifo, Priority, ShortestFirst
from workloads.jobs.slice_mix import November2022, SlicesByShare
from workloads.jobs.slice_rules import Exact, RoundUp, ShareOfMachine

Demand = Annotated[float, Unit("1", low=0.0, high=100.0, open_ends=True)]
"""Chip-time asked for as a share of the pod's; above 1 is more than there is."""

Arrivals = Annotated[
    Annotated[PoissonArrivals, Tag("poisson")]
    | Annotated[GammaArrivals, Tag("gamma")]
    | Annotated[WeeklyArrivals, Tag("weekly")],
    kind_or("poisson"),
]
Slices = Annotated[
    Annotated[November2022, Tag("november_2022")] | Annotated[SlicesByShare, Tag("shares")], kind_or("november_2022")
]
Durations = Annotated[
    Annotated[Exponential, Tag("exponential")]
    | Annotated[Weibull, Tag("weibull")]
    | Annotated[Lognormal, Tag("lognormal")]
    | Annotated[Gamma, Tag("gamma")]
    | Annotated[Empirical, Tag("empirical")]
    | Annotated[Mixture, Tag("mixture")]
    | Annotated[PhillyDurations, Tag("philly_2017_11")],
    kind_or("lognormal"),
]
Rules = Annotated[
    Annotated[RoundUp, Tag("round_up")]
    | Annotated[Exact, Tag("exact")]
    | Annotated[ShareOfMachine, Tag("share_of_machine")],
    kind_or("round_up"),
]
Queues = Annotated[
    Annotated[Fifo, Tag("fifo")]
    | Annotated[ShortestFirst, Tag("shortest_first")]
    | Annotated[Priority, Tag("priority")]
    | Annotated[FairShare, Tag("fair_share")]
    | Annotated[Easy, Tag("easy")],
    kind_or("fifo"),
]
Placements = Annotated[
    Annotated[FirstFit, Tag("first_fit")] | Annotated[BestFit, Tag("best_fit")] | Annotated[Folding, Tag("folding")],
    kind_or("first_fit"),
]
Defragmentations = Annotated[
    Annotated[NoDefragmentation, Tag("none")] | Annotated[MakeRoom, Tag("make_room")], kind_or("make_room")
]
Checkpoints = Annotated[
    Annotated[NoCheckpoints, Tag("none")]
    | Annotated[FixedCheckpoints, Tag("fixed")]
    | Annotated[YoungCheckpoints, Tag("young")],
    kind_or("fixed"),
]

JOB_PLUG_INS: dict[str, tuple[Any, ...]] = {
    "jobs.streams.N.arrivals": (PoissonArrivals, GammaArrivals, WeeklyArrivals),
    "jobs.streams.N.slices": (November2022, SlicesByShare),
    "jobs.streams.N.durations": (PhillyDurations, Exponential, Weibull, Lognormal, Gamma, Empirical, Mixture),
    "jobs.log.rule": (RoundUp, Exact, ShareOfMachine),
    "scheduling.queue": (Fifo, ShortestFirst, Priority, FairShare, Easy),
    "scheduling.placement": (FirstFit, BestFit, Folding),
    "scheduling.defragmentation": (NoDefragmentation, MakeRoom),
    "checkpoint": (NoCheckpoints, FixedCheckpoints, YoungCheckpoints),
}
"""Plug-ins of a pod in operation by the key at which a scenario chooses one of them."""


class JobStream(Section):
    """Jobs that arrive by a law, each for a slice of the mix and a time of work."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")] = "jobs"
    """Name of the stream; its draws bear it."""
    kind: JobKind = JobKind.TRAINING
    """What the jobs do: `training`, `batch` or `serving`."""
    arrivals: Arrivals | None = None
    """When jobs arrive; or give `load`."""
    load: Demand | None = None
    """Poisson arrivals at the rate at which the jobs ask for this share of the pod's chip-time."""
    slices: Slices = November2022()
    """Which slice each job asks for."""
    durations: Durations
    """How long each job works, stages and losses aside."""
    priority: int = 0
    """Higher goes first, where the queue knows priorities."""
    owner: str = ""
    """Whose jobs they are, for fair share."""
    profile: str | None = None
    """A named set of slice and delays: `tight`, `wide` or `quick`; takes the place of `slices`."""
    request_factor: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """What owners say that a job takes, over what it takes."""

    def traits(self, reroute_opt_in: float) -> JobTraits:
        """What the jobs have in common, as the room of jobs takes it."""
        return JobTraits(
            kind=self.kind,
            priority=self.priority,
            owner=self.owner,
            profile=self.profile or "",
            request_factor=self.request_factor,
            reroute_opt_in=reroute_opt_in,
        )

    @property
    def mix(self) -> November2022 | SlicesByShare:
        """The mix of slices; of a profile its one slice."""
        return self.slices if self.profile is None else SlicesByShare(shares={PROFILES[self.profile].slice: 1.0})


class JobLogSection(Section):
    """Jobs as they were submitted, from a file of your own."""

    path: str | None = None
    """The file; `.gz` is read too."""
    format: Literal["swf", "philly", "helios"] = "swf"
    """`swf`: Standard Workload Format. `philly`: the reduced table of the Philly trace. `helios`: a Helios
    cluster's `cluster_log.csv`."""
    rule: Rules = RoundUp()
    """How processors become slices."""
    time_scale: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Submit times are multiplied by it; below 1 the load grows."""
    kind: JobKind = JobKind.TRAINING
    """What the jobs do."""


class JobsSection(Section):
    """Which jobs a pod in operation gets."""

    streams: tuple[JobStream, ...] = ()
    """Jobs by laws."""
    log: JobLogSection | None = None
    """Jobs of a log, beside the streams."""
    always: dict[str, Count] = Field(default_factory=dict)
    """Jobs without end that are there from the start, such as `{8x8x16: 3}`."""


class SchedulingSection(Section):
    """Who is next, and where."""

    queue: Queues = Fifo()
    """Who is next: the queue policy."""
    placement: Placements = FirstFit()
    """Where: the placement policy."""
    defragmentation: Defragmentations = NoDefragmentation()
    """Whether running jobs are moved for one that waits although enough chips are free."""
