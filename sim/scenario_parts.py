"""The sections of a scenario but serving: what keys there are, their units and defaults.

Types only: what a single key may hold. What keys must hold together is checked in `sim.scenario_checks`, so that each
such fault is printed with the path of the key to change. Texts under the fields are the documentation of the keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from sim.histories import ComponentKind
from sim.large_job import LargeJob
from sim.lifetimes import Empirical, Exponential, Gamma, Lognormal, Mixture, Weibull
from sim.other_failures import (
    BadHosts,
    FlappingLinks,
    OtherFailures,
    PodEvents,
    PowerDomainEvents,
    SilentCorruption,
    SlowHosts,
)
from sim.picture_names import PictureName
from sim.quantities import AdviceError
from sim.repair_policies import TwoStage
from topology.errors import InputError
from topology.fabric import Fabric
from topology.pod import AnyPod, FlatPod, Pod, pod_of_generation
from topology.shape import parse_shape, shape_of_chips
from topology.units import PerSecond, PositiveSeconds, Seconds, Share

EIGHT_SIZES = (64, 128, 256, 512, 1024, 2048, 3072, 4096)
"""Slice sizes in chips for which curves are drawn unless a scenario says otherwise."""


class Section(BaseModel):
    """Base of all sections: frozen, no unknown keys, documented by the texts under its fields.

    The schema takes those texts from the source when it is asked for (`sim.scenario`): to let pydantic read them at
    every import costs each command a quarter of a second.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def kind_or(default: str) -> Discriminator:
    """Choose a plug-in by its key `kind`, or `default` where a mapping leaves it out."""

    def chosen(value: Any) -> str | None:
        if isinstance(value, Mapping):
            return str(value.get("kind", default))
        return getattr(value, "kind", None)

    return Discriminator(chosen)


def chips_of(value: object) -> object:
    """Chips of a slice from `1024`, `8x8x16` or `v4-2048` (cores); AdviceError says what to write instead."""
    try:
        if isinstance(value, str):
            return parse_shape(value).chips
        if isinstance(value, int) and not isinstance(value, bool):
            return shape_of_chips(value).chips
    except InputError as error:
        raise AdviceError(error.faults[0].what, error.faults[0].write) from None
    raise AdviceError(f"{value!r} is no number of chips", "write for example `1024`, `8x8x16` or `v4-2048`")


def shape_text(value: object) -> object:
    """The text of a shape in its standard form, `v4-2048` read as cores; AdviceError says what to write instead."""
    try:
        return str(parse_shape(value))
    except InputError as error:
        raise AdviceError(error.faults[0].what, error.faults[0].write) from None


def grid_text(value: object) -> object:
    """The text of a grid of cubes such as `4x4x4`, checked to be three whole numbers of at least 1."""
    parts = value.split("x") if isinstance(value, str) else []
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and 0 < int(part) < 10_000 for part in parts):
        raise AdviceError(f"`{value}` is no grid of cubes", "write cubes along X, Y and Z, such as `4x4x4`")
    return "x".join(str(int(part)) for part in parts)


Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Replications = Annotated[int, Field(ge=1, le=100_000)]
Cubes = Annotated[int, Field(ge=1, le=10_000)]
Hosts = Annotated[int, Field(ge=1, le=160_000)]
SliceChips = Annotated[int, BeforeValidator(chips_of, json_schema_input_type=int | str)]
ShapeText = Annotated[str, BeforeValidator(shape_text, json_schema_input_type=str)]
GridText = Annotated[str, BeforeValidator(grid_text, json_schema_input_type=str)]
Law = Annotated[
    Annotated[Exponential, Tag("exponential")]
    | Annotated[Weibull, Tag("weibull")]
    | Annotated[Lognormal, Tag("lognormal")]
    | Annotated[Gamma, Tag("gamma")]
    | Annotated[Empirical, Tag("empirical")]
    | Annotated[Mixture, Tag("mixture")],
    kind_or("exponential"),
]


class PodSection(Section):
    """The machine: a generation by name, or any number of cubes, or a flat machine of hosts; and how it is wired."""

    kind: Literal["cubes", "flat"] = "cubes"
    """`cubes`: a pod of cubes of 64 chips. `flat`: hosts of 4 chips without cubes or torus, for comparison."""
    generation: str | None = None
    """A pod by name: `v4` (64 cubes), `v5p` (140), `tpu7x` (144). v4 where neither this nor `cubes` is given."""
    cubes: Cubes | None = None
    """Number of cubes, in place of a generation."""
    grid: GridText | None = None
    """How the cubes of a static pod are cabled, in cubes, such as `4x4x4`; the most cubic one if left out
    (assumption)."""
    ports: Count | None = None
    """Ports of each of the 48 switches, two for every cube; 136, or 2 x cubes + 8 where that is more (assumption), if
    left out."""
    hosts: Hosts | None = None
    """Number of hosts of a flat machine."""
    fabric: Fabric = Fabric.RECONFIGURABLE
    """`reconfigurable` (any usable cubes), `static_aligned` (fixed blocks), `static_contiguous` (boxes of the torus of
    cubes), `any_host` (any hosts: an ideal switch). A flat machine has `any_host`."""

    def build(self) -> AnyPod:
        """The pod that is meant; InputError where its parts do not fit together."""
        if self.kind == "flat":
            return FlatPod(hosts=self.hosts or 0)
        ports = self.ports or 0
        if self.cubes is None:
            pod = pod_of_generation(self.generation or "v4")
            return replace(pod, ports=ports) if ports else pod
        if self.grid is None:
            return Pod(cubes=self.cubes, ports=ports)
        x, y, z = (int(part) for part in self.grid.split("x"))
        return Pod(cubes=self.cubes, grid=(x, y, z), ports=ports)


class ComponentSection(Section):
    """How one kind of component fails and is repaired; two of failure rate, availability and repair fix the third."""

    failure_rate: PerSecond | None = None
    """Failures per time in service, such as `0.08 %/day`; the mean life is its inverse."""
    availability: Share | None = None
    """Long-run share of time up, detection and repair counted as down."""
    life: Law | None = None
    """Law of the time from one return to service to the next failure; exponential where it is left out."""
    repair: Law | None = None
    """Law of the repair. With an availability: without detection, diagnosis and burn-in. Without one: with them."""

    def given(self) -> dict[str, Any]:
        """What is said here, as `sim.histories.failure_mode` takes it."""
        return {
            "failure_rate_per_s": self.failure_rate,
            "availability": self.availability,
            "life": self.life,
            "repair": self.repair,
        }


class LogSection(Section):
    """Outages of hosts as they happened, from a file of your own."""

    path: str | None = None
    """The file; `.gz` is read too."""
    format: Literal["auto", "generic", "lanl", "lanl_down_time", "gpu_faults"] = "auto"
    """`auto`: as the file looks. `generic`: CSV with component,id,start,end[,cause][,cube]. `lanl`: the failure data of
    Los Alamos, start to end. `lanl_down_time`: the same by its column of minutes.
    `gpu_faults`: the GPU server fault trace (JSON)."""
    components: Count | None = None
    """How many components the log is about, those without an outage included; the log's own number if it has one."""
    window: tuple[str, str] | None = None
    """First and last instant that count, as dates or as times from the start; from first to last start if left out."""
    log_time: Literal["occurred", "detected"] = "detected"
    """Whether a start is the failure itself, or its detection (then no second detection delay is added)."""
    causes: tuple[str, ...] = ()
    """Keep only outages of these causes; all where it is empty."""
    place: Literal["by_number", "shuffled"] = "by_number"
    """`by_number`: node k of the log is host k. `shuffled`: names are dealt to hosts by seeded shuffles."""
    shuffles: Replications = 1
    """How many shuffles; the spread over them is printed."""


class FailuresSection(Section):
    """What fails. A component that is not named here never fails."""

    host: ComponentSection | None = None
    """Hosts, 16 per cube: the machine that carries 4 chips."""
    rack: ComponentSection | None = None
    """Racks, one per cube: power and cooling; takes its 16 hosts down at one instant."""
    in_rack_link: ComponentSection | None = None
    """Copper cables inside a rack, 80 per cube; a dead one takes its cube down."""
    optical_end: ComponentSection | None = None
    """Fibre and transceiver at one of the 96 face positions of a cube; a dead one cuts one circuit."""
    ocs: ComponentSection | None = None
    """Optical circuit switches, 48 per pod; a dead one cuts one link position of one dimension in every slice."""
    log: LogSection | None = None
    """Replay a log of host outages in place of `host`."""
    bad_hosts: BadHosts | None = None
    """Hosts that fail more often than others."""
    power_domain: PowerDomainEvents | None = None
    """Events that take all racks of a power domain down at one instant."""
    pod: PodEvents | None = None
    """Events that take the whole pod down at one instant."""
    slow_hosts: SlowHosts | None = None
    """Hosts that slow their slice down, unseen."""
    corruption: SilentCorruption | None = None
    """Hosts that compute wrong results, unseen."""
    flapping_in_rack_links: FlappingLinks | None = None
    """Cables inside racks that go down and up."""
    flapping_optical_ends: FlappingLinks | None = None
    """Optical ends that go down and up."""

    def given(self, kind: ComponentKind, two_stage: TwoStage | None) -> dict[str, Any]:
        """What is said of a named kind, as `sim.histories.failure_mode` takes it.

        Hosts that are repaired in two stages are out for the mean of both: so the run finds them at its start, and what
        is left of a repair then is drawn as if it were exponential.
        """
        said: dict[str, Any] = getattr(self, kind.value).given()
        if kind is ComponentKind.HOST and two_stage is not None and said["repair"] is None:
            said["repair"] = Exponential(mean=two_stage.mean_s)
        return said

    @property
    def others(self) -> OtherFailures:
        """All failures beside the renewals of single components."""
        return OtherFailures(**{item.name: getattr(self, item.name) for item in fields(OtherFailures)})

    def named(self) -> dict[ComponentKind, ComponentSection]:
        """The components that fail by a law, in the order of events at one instant."""
        sections = {kind: getattr(self, kind.value) for kind in ComponentKind}
        return {kind: section for kind, section in sections.items() if section is not None}


class AvailabilityStudy(Section):
    """Curves of `expected` and `guaranteed` over slice sizes, from failure histories alone."""

    slice_chips: Annotated[tuple[SliceChips, ...], Field(min_length=1)] = EIGHT_SIZES
    """Slice sizes, in chips."""
    time_share: Share = 0.97
    """The share of time for which `guaranteed` must hold."""
    horizon: PositiveSeconds = 365 * 86400.0
    """Simulated time of each replication (a log gives its own window instead)."""
    replications: Replications = 64
    """Independent histories; at least 2 give an interval."""


class DeliveredStudy(Section):
    """What jobs without end in demand get, with every stage of recovery: `delivered` and the chip-hours by use."""

    slice_chips: Annotated[tuple[SliceChips, ...], Field(min_length=1)] = (64, 1024, 3072)
    """Slice sizes, in chips."""
    horizon: PositiveSeconds = 90 * 86400.0
    """Simulated time of each replication."""
    replications: Replications = 8
    """Independent histories; at least 2 give an interval."""


class PromiseStudy(Section):
    """How many cubes it takes to hold a set of slices for a share of time, and the cliff of each fabric."""

    slices: Annotated[dict[str, Count], Field(min_length=1)]
    """How many slices of which shape, such as `{8x8x16: 3}`."""
    time_share: Share = 0.97
    """The share of time for which all of them must be held at once."""


class OperationsStudy(Section):
    """A pod in operation: jobs arrive, wait, run, are lost, recover and finish; every chip-hour accounted for."""

    horizon: PositiveSeconds = 30 * 86400.0
    """Simulated time of each replication."""
    replications: Replications = 8
    """Independent months; at least 2 give an interval."""
    promise: PromiseStudy | None = None
    """Slices that are looked at month by month: could the pod have held them all at once?"""


class LargeJobStudy(Section):
    """One very large job on flat servers that fail only while they compute; nothing else of the scenario matters."""

    job: LargeJob = LargeJob()
    """The job, its servers and its delays."""
    replications: Replications = 30
    """Independent runs; at least 2 give an interval."""


class RunSection(Section):
    """How the simulation runs."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """The one seed; a replication is a number beside it."""
    warmup: Seconds = 0.0
    """Time at the start that is simulated and not measured. Chip-hours, failures, losses and the productive share of
    jobs are those of the time after it; waits, slowdowns and counts are those of the jobs that arrive after it."""
    start: Literal["stationary", "new"] = "stationary"
    """`stationary`: the machine is found in its long-run state. `new`: everything starts new and up."""
    pictures: tuple[PictureName, ...] | None = None
    """Pictures that are drawn of the run; all that it has something for, unless named here (`[]`: none)."""


class Expectation(Section):
    """A bound that the run must meet, at every point that matches; otherwise it ends with status 1."""

    measure: str
    """A measure of the run's summary, such as `guaranteed`."""
    at_least: float | str | None = None
    """Lower bound, in the unit of the measure, such as `74 %` or `10 s`."""
    at_most: float | str | None = None
    """Upper bound."""
    fabric: Fabric | None = None
    """Only for this fabric."""
    slice_chips: SliceChips | None = None
    """Only for this slice size."""
    service: str | None = None
    """Only for this service; of `study.passes` for this group of times, or this line of the grid."""
    host_availability: Share | None = None
    """Only at this availability of hosts."""
