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
    """A row per level and kind; `s_per_token`: the time that passes take per token. Unknown rates and bytes are nan.

    What moves over links that the ladder does not hold (to other parts, to a remote store) comes before the last level.
    """
    rows: list[Row] = []
    names = [level.name for level in ladder]
    beyond = [name for name, mine in bytes_per_token.items() if name not in names and sum(mine.values()) > 0]
    others = [Level(name=name, bytes=None, bytes_per_s=None) for name in beyond]
    for level in (*ladder[:-1], *others, *ladder[-1:]):
        mine = bytes_per_token.get(level.name)
        kinds = (*KINDS, KV_MOVED) if mine is not None and KV_MOVED in mine else KINDS
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
