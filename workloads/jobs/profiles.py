"""Job profiles: named sets of a slice, its traffic and its delays, to be mixed on one pod. All figures: assumption."""

from __future__ import annotations

import math
from dataclasses import dataclass

from topology.shape import Shape, parse_shape
from topology.units import ClosedShare, Seconds


@dataclass(frozen=True, kw_only=True)
class JobProfile:
    """A kind of job: its slice, what share of its traffic is all-to-all, and delays that differ from the policy's.

    `preflight` and `restore` stand in for those of the recovery policy, `checkpoint_save` for the checkpoint policy's
    (None: as there). The rest of the traffic is all-reduce along the rings of the slice.
    """

    name: str
    slice: str
    all_to_all: ClosedShare = 0.0
    preflight: Seconds | None = None
    restore: Seconds | None = None
    checkpoint_save: Seconds | None = None

    def __post_init__(self) -> None:
        """Refuse slices, shares and times that are none."""
        parse_shape(self.slice)
        if not self.name:
            raise ValueError("a profile without a name: write one, such as `name: tight`")
        if not 0 <= self.all_to_all <= 1:
            raise ValueError(f"all_to_all of {self.all_to_all:g}: write a share between 0 and 1")
        for field in ("preflight", "restore", "checkpoint_save"):
            value = getattr(self, field)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{field} of {value:g} s: write a time of at least 0 s")

    @property
    def shape(self) -> Shape:
        """The slice as a shape."""
        return parse_shape(self.slice)


PROFILES: dict[str, JobProfile] = {
    profile.name: profile
    for profile in (
        JobProfile(name="tight", slice="8x8x8", all_to_all=0.5, preflight=180.0, restore=600.0, checkpoint_save=60.0),
        JobProfile(
            name="wide", slice="8x16x16", all_to_all=0.1, preflight=180.0, restore=1200.0, checkpoint_save=120.0
        ),
        JobProfile(name="quick", slice="4x4x4", all_to_all=0.1, preflight=30.0, restore=60.0, checkpoint_save=5.0),
    )
}
"""tight: much all-to-all on 512 chips, the most cubic shape. wide: 2,048 chips of data-parallel training, much state to
load. quick: one cube that is up again in a minute and a half."""
