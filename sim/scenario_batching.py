"""How passes of a service are filled: the kinds of the section `batching` of a service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, Tag

from sim.scenario_parts import Count, kind_or
from topology.units import BytesPerSecond, Unit


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
    prompts, the others decode; KV moves between them."""

    kind: Literal["disaggregated"] = "disaggregated"
    parts: Annotated[int, Field(ge=2, le=64)] = 2
    prefill_parts: Annotated[int, Field(ge=1, le=63)] = 1
    link: BytesPerSecond
    budget: Count | None = None


BatchingSection = Annotated[
    Annotated[ContinuousSection, Tag("continuous")]
    | Annotated[ChunkedPrefillSection, Tag("chunked_prefill")]
    | Annotated[StaticSection, Tag("static")]
    | Annotated[DisaggregatedSection, Tag("disaggregated")],
    kind_or("continuous"),
]
