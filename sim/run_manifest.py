"""The shape of `manifest.json`, so that a file that was changed by hand, or cut off, is refused in words."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Digests = dict[str, str]


class _Point(BaseModel):
    """One sweep point; what is swept stands beside it, as texts."""

    model_config = ConfigDict(strict=True, extra="allow")
    __pydantic_extra__: dict[str, str]

    point: Annotated[int, Field(ge=0)]
    host_availability: float


class _Limits(BaseModel):
    """The promise of a service."""

    model_config = ConfigDict(strict=True, extra="forbid")

    ttft_s: float
    tpot_s: float
    attainment: float


class _Manifest(BaseModel):
    """What is read of a manifest; more may stand in it."""

    model_config = ConfigDict(strict=True)

    name: str
    description: str
    version: str
    seed: int
    wall_time_s: float
    points: Annotated[list[_Point], Field(min_length=1)]
    settings: list[Annotated[list[str], Field(min_length=3, max_length=3)]]
    limits: dict[str, _Limits]
    warnings: list[str]
    hall: Annotated[list[Annotated[int, Field(ge=1, le=100_000)]], Field(min_length=3, max_length=3)] | None = None
    tables: Digests = {}
    failure_draws: Digests = {}
    streams: str = ""
    pictures: list[str] | None = None


def manifest_flaw(manifest: object) -> str | None:
    """The first thing that is wrong with a manifest, as `where: what`; None where it can be used."""
    try:
        _Manifest.model_validate(manifest)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))[:80]}: {first['msg'][:120]}"
    return None
