"""What fits where: a pure picture of the free chips of a pod, on which a queue policy tries out what it has in mind.

A `Fitting` never changes. `after_start` and `after_end` give other ones, on copies of the masks, and each answer is
remembered; so whoever carries out a decision follows the same steps and gets the same places without searching again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from topology.fabric import Fabric
from topology.placement import Placement, usable_cubes
from topology.pod import CHIPS_PER_HOST, HOSTS_PER_CUBE, AnyPod, FlatPod, Pod
from topology.shape import Shape
from workloads.jobs.job import Job, JobKind

Mask = NDArray[np.bool_]
Chips = NDArray[np.uint8]


class PlacementPolicy(Protocol):
    """Where a slice goes: pure, and asked with fresh masks."""

    def choose(
        self, fabric: Fabric, pod: Pod, shape: Shape, free_hosts: Mask, avoid_cubes: Mask | None = None
    ) -> Placement | None:
        """The place of a slice of `shape` on the free hosts (H,), or None.

        `avoid_cubes` (C,): for slices of whole cubes those to take last; for smaller ones those that are of no use to
        slices of whole cubes, worth taking first.
        """


class RejectReason(StrEnum):
    """Why a job does not fit: too few chips, or enough of them but not in its shape."""

    SHAPE = "shape"
    RESOURCE = "resource"


class Spot(NamedTuple):
    """Where a job goes: its hosts; for whole cubes also these, in order along x, y, z of the shape that is formed."""

    hosts: tuple[int, ...]
    cubes: tuple[int, ...] = ()
    shape: Shape | None = None


Held = tuple[NDArray[np.int64], int]
"""The hosts that a job holds and how many chips on each."""


class _Started(NamedTuple):
    """The last job that has started in a picture, and those before it."""

    before: _Started | None
    job: int
    held: Held


def nothing_held(job: int) -> Held:
    """On an empty pod no job holds anything."""
    raise KeyError(job)


class Fitting:
    """Free chips of a pod at one instant, and questions to them."""

    def __init__(
        self,
        *,
        fabric: Fabric,
        pod: AnyPod,
        placement: PlacementPolicy,
        free_chips: Chips,
        usable: Mask,
        dark_cubes: Mask | None = None,
        flawed_cubes: Mask | None = None,
        switch_out: bool = False,
        serving_hosts: Mask | None = None,
        held: Callable[[int], Held] = nothing_held,
    ) -> None:
        """`free_chips` (H,) no job holds; `usable` (H,) hosts are up and not drained.

        `dark_cubes` (C,) have a dead optical end; `flawed_cubes` (C,) a component known to be slow or to flap: slices
        of whole cubes take them last; `switch_out`: a switch is dead; `serving_hosts` (H,) are for serving jobs and for
        nobody else, where the pod is divided; `held` gives what a job holds.
        """
        self._fabric = fabric
        self._pod = pod
        self._placement = placement
        self._free_chips = free_chips
        self._usable = usable
        self._dark = dark_cubes
        self._flawed = flawed_cubes
        self._switch_out = switch_out
        self._serving_hosts = serving_hosts
        self._held = held
        self._started: _Started | None = None
        self._spots: dict[tuple[Shape | None, int, int, bool, bool], Spot | None] = {}
        self._after_start: dict[int, Fitting | None] = {}

    @property
    def fabric(self) -> Fabric:
        """How cubes may be joined."""
        return self._fabric

    @property
    def pod(self) -> AnyPod:
        """The pod."""
        return self._pod

    @property
    def switch_out(self) -> bool:
        """Whether a switch is dead."""
        return self._switch_out

    @property
    def held_chips(self) -> Chips:
        """(H,): chips that jobs hold on each host."""
        return np.asarray(CHIPS_PER_HOST - self._free_chips, dtype=np.uint8)

    @property
    def usable_hosts(self) -> Mask:
        """(H,): hosts that are up and not drained, held or not."""
        return self._usable.copy()

    @property
    def free_chips(self) -> int:
        """Chips that are free on usable hosts."""
        return int(self._free_chips[self._usable].sum())

    def free_hosts(self) -> Mask:
        """Hosts (H,) that are usable and of which no job holds anything."""
        return np.asarray(self._usable & (self._free_chips == CHIPS_PER_HOST), dtype=np.bool_)

    def without(self, hosts: Mask) -> Fitting:
        """The picture in which these hosts (H,) are not to be had."""
        return Fitting(
            fabric=self._fabric,
            pod=self._pod,
            placement=self._placement,
            free_chips=self._free_chips,
            usable=self._usable & ~hosts,
            dark_cubes=self._dark,
            flawed_cubes=self._flawed,
            switch_out=self._switch_out,
            serving_hosts=self._serving_hosts,
            held=self._held,
        )

    def is_barred(self, job: Job) -> bool:
        """Whether a dead switch keeps this job from running anywhere in the pod, whatever is free."""
        if not self._switch_out or job.reroute_opt_in or not self._fabric.has_light:
            return False
        return job.shape is not None and not job.shape.is_sub_cube

    def masks(self, job: Job) -> tuple[Mask, Mask | None]:
        """Hosts (H,) that a job may take, and `avoid_cubes` (C,) as `PlacementPolicy.choose` has it."""
        free: Mask = (self._free_chips >= job.chips_per_host) & self._usable
        if self._serving_hosts is not None:
            free &= self._serving_hosts if job.kind is JobKind.SERVING else ~self._serving_hosts
        if self._fabric is Fabric.ANY_HOST or job.shape is None:
            return free, None
        if job.hosts < HOSTS_PER_CUBE:
            whole = usable_cubes(self._usable)
            return free, ~whole if self._dark is None else ~whole | self._dark
        if self._dark is None:
            return free, self._flawed
        if job.reroute_opt_in:
            return free, self._dark if self._flawed is None else self._dark | self._flawed
        uses_ends = self._fabric.has_light or job.hosts > HOSTS_PER_CUBE
        return (free & ~np.repeat(self._dark, HOSTS_PER_CUBE) if uses_ends else free), self._flawed

    def spot(self, job: Job) -> Spot | None:
        """Where the placement policy puts the job now, or None."""
        key = (job.shape, job.hosts, job.chips_per_host, job.reroute_opt_in, job.kind is JobKind.SERVING)
        if key not in self._spots:
            self._spots[key] = self._find(job)
        return self._spots[key]

    def _find(self, job: Job) -> Spot | None:
        free, avoid = self.masks(job)
        return None if self.is_barred(job) else self._choose(job, free, avoid)

    def spot_within(self, job: Job, hosts: NDArray[np.int64]) -> Spot | None:
        """Where the placement policy puts the job if it may take none but these hosts, or None."""
        free, avoid = self.masks(job)
        allowed = np.zeros(len(free), dtype=np.bool_)
        allowed[hosts] = True
        return None if self.is_barred(job) else self._choose(job, free & allowed, avoid)

    def _choose(self, job: Job, free: Mask, avoid: Mask | None) -> Spot | None:
        if np.count_nonzero(free) < job.hosts:
            return None
        if job.shape is None or isinstance(self._pod, FlatPod):
            return Spot(tuple(np.flatnonzero(free)[: job.hosts].tolist()))
        placement = self._placement.choose(self._fabric, self._pod, job.shape, free, avoid)
        if placement is None:
            return None
        any_host = self._fabric is Fabric.ANY_HOST
        return Spot(placement.hosts, placement.cubes, None if any_host else placement.shape)

    def fits(self, job: Job) -> bool:
        """Whether the job could start now."""
        return self.spot(job) is not None

    def reason(self, job: Job) -> RejectReason | None:
        """Why the job does not fit now; None where it does."""
        if self.fits(job):
            return None
        free, _ = self.masks(job)
        return RejectReason.RESOURCE if np.count_nonzero(free) < job.hosts else RejectReason.SHAPE

    def after_start(self, job: Job) -> Fitting | None:
        """The picture once the job has started where the placement policy puts it; None where it does not fit."""
        if job.id not in self._after_start:
            spot = self.spot(job)
            self._after_start[job.id] = None if spot is None else self.with_job(job, spot)
        return self._after_start[job.id]

    def with_job(self, job: Job, spot: Spot) -> Fitting:
        """The picture once the job holds this spot, which has to be free. What did not fit before does not fit now."""
        hosts = np.array(spot.hosts, dtype=np.int64)
        free = self._free_chips.copy()
        if not (free[hosts] >= job.chips_per_host).all():
            raise ValueError(f"job {job.id} can not start on hosts {spot.hosts}: some are taken")
        free[hosts] -= job.chips_per_host
        after = self._copy(free, _Started(self._started, job.id, (hosts, job.chips_per_host)))
        after._spots = {slice_: None for slice_, found in self._spots.items() if found is None}
        return after

    def after_end(self, jobs: Iterable[int]) -> Fitting:
        """The picture once these jobs, by number, have given back what they hold."""
        free = self._free_chips.copy()
        for job in jobs:
            hosts, chips = self.held_by(job)
            free[hosts] += chips
            if free[hosts].max() > CHIPS_PER_HOST:
                raise ValueError(f"job {job} has given back what it holds already")
        return self._copy(free, self._started)

    def held_by(self, job: int) -> Held:
        """The hosts that a job holds in this picture and the chips on each; KeyError where it holds none."""
        link = self._started
        while link is not None:
            if link.job == job:
                return link.held
            link = link.before
        return self._held(job)

    def _copy(self, free_chips: Chips, started: _Started | None) -> Fitting:
        other = Fitting(
            fabric=self._fabric,
            pod=self._pod,
            placement=self._placement,
            free_chips=free_chips,
            usable=self._usable,
            dark_cubes=self._dark,
            flawed_cubes=self._flawed,
            switch_out=self._switch_out,
            serving_hosts=self._serving_hosts,
            held=self._held,
        )
        other._started = started
        return other


def empty_fitting(
    fabric: Fabric, pod: AnyPod, placement: PlacementPolicy, serving_hosts: Mask | None = None
) -> Fitting:
    """A pod that is whole and free: what does not fit here never does."""
    return Fitting(
        fabric=fabric,
        pod=pod,
        placement=placement,
        free_chips=np.full(pod.hosts, CHIPS_PER_HOST, dtype=np.uint8),
        usable=np.ones(pod.hosts, dtype=np.bool_),
        serving_hosts=serving_hosts,
    )
