"""How passes of a service are filled: the kinds of the section `batching` of a service."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field, Tag

from sim.scenario_parts import Count, kind_or
from topology.shape import Shape
from topology.units import Unit
from workloads.catalogue.chip import Chip, Interconnect
from workloads.collectives import SliceNetwork, circuit_slice

PartLink = Annotated[float, Unit("byte/s", low=1e6, high=1e18)]
"""Bounds far outside of any machine: below them the transfers of a window take longer than its clock tells."""


@dataclass(frozen=True, kw_only=True)
class ContinuousSection:
    """Requests join and leave at every pass; whole prompts are computed in the pass that admits them."""

    kind: Literal["continuous"] = "continuous"


@dataclass(frozen=True, kw_only=True)
class ChunkedPrefillSection:
    """As continuous, but a pass carries at most `budget` tokens: decodes first, prompts in chunks with what is left."""

    kind: Literal["chunked_prefill"] = "chunked_prefill"
    budget: Count


@dataclass(frozen=True, kw_only=True)
class StaticSection:
    """A batch is formed from the queue of an empty replica, padded, and held until its longest answer ends."""

    kind: Literal["static"] = "static"
    wait: Annotated[float, Unit("s", low=0.0, high=86_400.0)] = 0.0


@dataclass(frozen=True, kw_only=True)
class DisaggregatedSection:
    """The slice of a replica is cut along its longest side into equal parts, each with the whole model: some compute
    prompts, the others decode; KV moves between them, `over` the network, each part a slice of its own whose axes wrap
    around, or over ICI inside the one slice, whose parts are open along the side that was cut."""

    kind: Literal["disaggregated"] = "disaggregated"
    parts: Annotated[int, Field(ge=2, le=64)] = 2
    prefill_parts: Annotated[int, Field(ge=1, le=63)] = 1
    over: Literal["network", "ici"] = "network"
    link: PartLink | None = None
    budget: Count | None = None


BatchingSection = Annotated[
    Annotated[ContinuousSection, Tag("continuous")]
    | Annotated[ChunkedPrefillSection, Tag("chunked_prefill")]
    | Annotated[StaticSection, Tag("static")]
    | Annotated[DisaggregatedSection, Tag("disaggregated")],
    kind_or("continuous"),
]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the slice of a disaggregated replica: its sides, and chips on each of the two faces that are cut."""

    axes: tuple[int, int, int]
    cut_axis: int

    @classmethod
    def of(cls, shape: Shape, parts: int) -> Part | None:
        """A slice of `shape` cut into `parts` along its longest side; None where that is no whole number of chips."""
        sides = list(shape.dimensions)
        longest = max(range(3), key=lambda axis: (sides[axis], axis))
        sides[longest], rest = divmod(sides[longest], parts)
        return None if rest else cls(axes=(sides[0], sides[1], sides[2]), cut_axis=longest)

    def network(self, over: Literal["network", "ici"], whole: Shape) -> SliceNetwork:
        """Its circuits: a slice of its own, or what a slice of shape `whole` leaves it, open along the cut."""
        own = circuit_slice(self.axes)
        if over == "network":
            return own
        wraps = circuit_slice(whole.dimensions).wraps
        return replace(own, wraps=tuple(wrap and axis != self.cut_axis for axis, wrap in enumerate(wraps)))

    def link_bytes_per_s(self, over: Literal["network", "ici"], chip: Chip) -> float | None:
        """What the links of the part carry to another, one way: those of both faces, or the network of all its chips;
        None where no source tells the network of the chip, or its chips are not on a torus."""
        chips = math.prod(self.axes)
        if over == "network":
            return None if chip.network_bytes_per_s is None else chips * chip.network_bytes_per_s
        if chip.interconnect is not Interconnect.TORUS:
            return None
        return 2 * (chips // self.axes[self.cut_axis]) * chip.link_bytes_per_s
