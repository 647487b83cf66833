"""The section `study`: which questions are asked of the machine; and the pod that serves and trains.

The plain studies are in `sim.scenario_parts`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from sim.scenario_faults import FOLDER_NAME
from sim.scenario_parts import (
    AvailabilityStudy,
    Count,
    Cubes,
    DeliveredStudy,
    LargeJobStudy,
    OperationsStudy,
    PromiseStudy,
    Replications,
    Section,
    ShapeText,
    kind_or,
)
from sim.scenario_passes import PassesStudy
from topology.units import Bytes, BytesPerSecond, PositiveSeconds, Seconds, Unit
from workloads.autoscaling import Ahead, FixedReplicas, Follow
from workloads.jobs.fleet import EmptiestPod, FirstPod, Fullest, FullestPod, LeastLoaded, TakingTurns
from workloads.load.rates import DiurnalRate, StepRates, TraceRates

RequestRate = Annotated[float, Unit("1/s", high=1e6, open_ends=True)]

Demands = Annotated[
    Annotated[DiurnalRate, Tag("diurnal")] | Annotated[StepRates, Tag("steps")] | Annotated[TraceRates, Tag("trace")],
    kind_or("diurnal"),
]
Scalings = Annotated[
    Annotated[Follow, Tag("follow")] | Annotated[Ahead, Tag("ahead")] | Annotated[FixedReplicas, Tag("fixed")],
    kind_or("follow"),
]
FleetPolicies = Annotated[
    Annotated[Fullest, Tag("fullest")]
    | Annotated[LeastLoaded, Tag("least_loaded")]
    | Annotated[TakingTurns, Tag("taking_turns")],
    kind_or("least_loaded"),
]
PodChoices = Annotated[
    Annotated[FirstPod, Tag("first")] | Annotated[EmptiestPod, Tag("emptiest")] | Annotated[FullestPod, Tag("fullest")],
    kind_or("fullest"),
]
STUDY_PLUG_INS = {
    "study.fleet.placement": (Fullest, LeastLoaded, TakingTurns),
    "study.fleet.one_queue.choice": (FirstPod, EmptiestPod, FullestPod),
    "study.shared_pod.services.N.demand": (DiurnalRate, StepRates, TraceRates),
    "study.shared_pod.services.N.scaling": (Follow, Ahead, FixedReplicas),
}
"""Plug-ins of studies by the key at which a scenario chooses one of them."""

MachineKind = Literal["shared", "fixed", "fixed_equal_money"]
MACHINES: tuple[MachineKind, ...] = ("shared", "fixed", "fixed_equal_money")


class SharedService(Section):
    """A service whose replicas come and go with the hour."""

    name: Annotated[str, Field(pattern=FOLDER_NAME)]
    """Its name. A service of this name under `serving.services` gives the slice of a replica, its weights, and what it
    serves in time, token by token; without one, `slice` and `replica_rate` do."""
    slice: ShapeText | None = None
    """Shape of the slice of one replica, where no service of `serving` gives it."""
    replica_rate: RequestRate | None = None
    """Requests per second that one replica serves in time, and no more, where no service of `serving` says so."""
    demand: Demands
    """Requests per second over time: `diurnal`, `steps` over and over, or a `trace` of rates in a file."""
    scaling: Scalings = Follow()
    """How many replicas are wanted: `follow` the rate of now, `ahead` of what is to come, or a `fixed` number."""
    every: PositiveSeconds = 60.0
    """Time between two looks at the demand."""
    least: Annotated[int, Field(ge=0, le=100_000)] = 1
    """Fewest replicas that are wanted."""
    most: Count
    """Most replicas that are wanted."""
    cubes: Cubes
    """Cubes of this service where the pod is divided for good: as many replicas as they hold are always on."""
    drain: Seconds = 60.0
    """Time in which a replica that leaves finishes its requests."""
    weights: Bytes | None = None
    """Bytes of the weights of one replica; the model's where a service of `serving` names it, else nothing."""
    weights_rate: BytesPerSecond = 1e9
    """Bytes per second at which each host gets its part of the weights, over network and host link."""
    ready: Seconds = 60.0
    """Time to start the server and to compile, before or after the weights."""
    priority: int = 100
    """Priority of replicas in the queue of the pod; jobs of lower priority make way."""


class SharedPodStudy(Section):
    """Replicas follow the day's demand beside the jobs of `jobs`: a shared pod against one that is divided for good."""

    services: Annotated[tuple[SharedService, ...], Field(min_length=1)]
    """The services."""
    machines: Annotated[tuple[MachineKind, ...], Field(min_length=1)] = MACHINES
    """`shared`: the pod of the scenario, every cube for whoever needs it. `fixed`: as many cubes without switches, the
    first for serving, the others for training, all replicas always on. `fixed_equal_money`: the same, with as many
    cubes, wired by cables, as cost what the shared pod does by `prices`."""
    horizon: PositiveSeconds = 14 * 86400.0
    """Simulated time of each replication."""
    replications: Replications = 8
    """Independent runs; at least 2 give an interval."""


class WorthStudy(Section):
    """What single changes of the scenario are worth; `opticube worth SCENARIO` answers, `opticube run` does not."""

    knobs: Annotated[dict[str, str], Field(min_length=1)]
    """Changes by name, such as `{one more crew: repair.crews=+1}`: a value, a step (`+1`) or a factor (`x2`); several
    keys of one change are separated by `;`."""


class OneQueueSection(Section):
    """The same pods once more, on the same draws: jobs wait together and start on the first pod that takes them.

    What a job that fits nowhere does to those behind it is as `scheduling.queue` says: `fifo` or `easy`.
    """

    choice: PodChoices = FullestPod()
    """Which pods are asked first: the `first`, the `emptiest`, or the `fullest` (best fit)."""
    elsewhere: bool = True
    """A job that waits on its pod after a loss may go on on another pod, from its last checkpoint."""
    transfer: Seconds = 600.0
    """Time in which its checkpoint gets to the other pod, before all that a start takes (an assumption)."""


class FleetStudy(Section):
    """Several pods like that of the scenario, with the jobs of `jobs`; a `load` is a share of all."""

    pods: Annotated[int, Field(ge=1, le=1000)]
    """How many."""
    placement: FleetPolicies = LeastLoaded()
    """On which pod a job goes when it arrives, for good: the `least_loaded`, the `fullest` in which it fits, or each
    in turn (`taking_turns`), by what owners say; failures are not foreseen."""
    one_queue: OneQueueSection | None = None
    """Where it is there, pods with queues of their own are compared with pods behind one queue."""
    horizon: PositiveSeconds = 30 * 86400.0
    """Simulated time of each replication."""
    replications: Replications = 1
    """Independent runs; at least 2 give an interval."""


class StudySection(Section):
    """Which questions are asked of the machine."""

    availability: AvailabilityStudy | None = None
    """Curves of slice availability."""
    delivered: DeliveredStudy | None = None
    """Slices as jobs hold them, through failures and recovery."""
    promise: PromiseStudy | None = None
    """Cubes needed for a promise."""
    operations: OperationsStudy | None = None
    """A pod in operation, with the jobs of the section `jobs`."""
    large_job: LargeJobStudy | None = None
    """One very large job on flat servers."""
    passes: PassesStudy | None = None
    """Single passes of language models: against times of others, and over models, slices, batches and contexts."""
    fleet: FleetStudy | None = None
    """Several pods behind one queue."""
    shared_pod: SharedPodStudy | None = None
    """A pod that serves and trains, with the jobs of the section `jobs` beside replicas that follow demand."""
    worth: WorthStudy | None = None
    """What single changes are worth."""
