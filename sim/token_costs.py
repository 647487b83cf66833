"""Rows of the tables `traffic` and `token_floor`, from what a replica costs: for runs and for `opticube cost`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workloads.costs.levels import Level

Row = dict[str, Any]
KINDS = ("weights", "kv_read", "kv_written", "activations")
KV_MOVED = "kv_moved"


@dataclass(frozen=True, kw_only=True)
class SliceParts:
    """A decode step on one slice: seconds by part, and of each part what no number of chips takes away."""

    shape: str
    chips: int
    fits: bool
    parts_s: Mapping[str, float]
    floor_s: Mapping[str, float]


def traffic_rows(
    service: str,
    ladder: Sequence[Level],
    chips: int,
    bytes_per_token: Mapping[str, Mapping[str, float]],
    s_per_token: float,
) -> list[Row]:
    """A row per level and kind; `s_per_token`: the time that passes take per token. Unknown rates and bytes are nan."""
    rows: list[Row] = []
    for level in ladder:
        mine = bytes_per_token.get(level.name)
        kinds = KINDS if mine is None or KV_MOVED not in mine else (*KINDS, KV_MOVED)
        for kind in kinds:
            moved = math.nan if mine is None else float(mine.get(kind, 0.0))
            seconds = moved / (chips * level.bytes_per_s) if level.bytes_per_s else math.nan
            rows.append(
                {
                    "service": service,
                    "level": level.name,
                    "kind": kind,
                    "bytes_per_token": moved,
                    "seconds_per_token": seconds,
                    "busy_share": seconds / s_per_token,
                }
            )
    return rows


def floor_rows(service: str, slices: Iterable[SliceParts]) -> list[Row]:
    """A row per slice and part; parts that take no time on any slice are left out."""
    known = list(slices)
    taking = [part for part in (known[0].parts_s if known else ()) if any(each.parts_s[part] > 0 for each in known)]
    return [
        {
            "service": service,
            "shape": each.shape,
            "chips": each.chips,
            "fits": each.fits,
            "part": part,
            "seconds_per_token": seconds,
            "floor_s": min(each.floor_s.get(part, 0.0), seconds),
        }
        for each in known
        for part, seconds in ((part, each.parts_s[part]) for part in taking)
    ]
