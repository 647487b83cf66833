"""Router plug-ins: which replica, among those believed up, takes a request.

The kernel routes inside its loop, so a router is a value with a code; `replica_of` says the same rule in plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workloads.serving import fields as f


@dataclass(frozen=True, kw_only=True)
class RandomRouter:
    """Each replica is as likely as any other."""

    kind: Literal["random"] = "random"

    @property
    def code(self) -> int:
        """What the kernel calls it."""
        return f.ROUTE_RANDOM

    def replica_of(self, believed: Sequence[bool], outstanding: Sequence[int], last: int, luck: int) -> int | None:
        """The n-th replica believed up, n = luck x (their number) / 2^40; None when none is."""
        up = [r for r, is_up in enumerate(believed) if is_up]
        return up[(luck * len(up)) >> f.LUCK_BITS] if up else None


@dataclass(frozen=True, kw_only=True)
class RoundRobin:
    """One after the other."""

    kind: Literal["round_robin"] = "round_robin"

    @property
    def code(self) -> int:
        """What the kernel calls it."""
        return f.ROUTE_ROUND_ROBIN

    def replica_of(self, believed: Sequence[bool], outstanding: Sequence[int], last: int, luck: int) -> int | None:
        """The next replica believed up after the `last` one that was routed to; None when none is."""
        count = len(believed)
        turns = ((last + step) % count for step in range(1, count + 1))
        return next((r for r in turns if believed[r]), None)


@dataclass(frozen=True, kw_only=True)
class LeastOutstanding:
    """The replica with the fewest requests routed to it and unfinished; ties to the lowest index."""

    kind: Literal["least_outstanding"] = "least_outstanding"

    @property
    def code(self) -> int:
        """What the kernel calls it."""
        return f.ROUTE_LEAST_OUTSTANDING

    def replica_of(self, believed: Sequence[bool], outstanding: Sequence[int], last: int, luck: int) -> int | None:
        """The replica believed up with the least `outstanding`; None when none is."""
        up = [r for r, is_up in enumerate(believed) if is_up]
        return min(up, key=lambda r: (outstanding[r], r)) if up else None


@dataclass(frozen=True, kw_only=True)
class PrefixAffine:
    """The replica whose cache holds the longest leading run of the prompt; ties to the fewest outstanding requests.

    Further ties go to the lowest index. A replica with more than `guard` requests above the fewest outstanding is left
    out, so that a popular prefix does not draw all requests to one replica (the default of 8 is our assumption).
    """

    kind: Literal["prefix_affine"] = "prefix_affine"
    guard: int = 8

    def __post_init__(self) -> None:
        """Refuse a guard that leaves nobody."""
        if self.guard < 0:
            raise ValueError(f"guard of {self.guard}: write a whole number of at least 0")

    @property
    def code(self) -> int:
        """What the kernel calls it."""
        return f.ROUTE_PREFIX_AFFINE

    def replica_of(self, believed: Sequence[bool], outstanding: Sequence[int], runs: Sequence[int]) -> int | None:
        """The replica believed up with the longest of the `runs` (pieces found in its cache), of those not too busy."""
        up = [r for r, is_up in enumerate(believed) if is_up]
        fewest = min((outstanding[r] for r in up), default=0)
        near = [r for r in up if outstanding[r] <= fewest + self.guard]
        return min(near, key=lambda r: (-runs[r], outstanding[r], r)) if near else None


@dataclass(frozen=True, kw_only=True)
class CentralQueue:
    """One queue for all replicas: each takes the next request at its own boundary; ties to the lowest index."""

    kind: Literal["central"] = "central"

    @property
    def code(self) -> int:
        """What the kernel calls it."""
        return f.ROUTE_CENTRAL

    def replica_of(self, believed: Sequence[bool], outstanding: Sequence[int], last: int, luck: int) -> int | None:
        """None at the arrival: the request waits in the router until a replica takes it."""
        return None


@dataclass(frozen=True, kw_only=True)
class SloAware:
    """The replica with the least predicted time to first token (see `prediction`); ties to the lowest index."""

    kind: Literal["slo_aware"] = "slo_aware"

    @property
    def code(self) -> int:
        """What the kernel calls it."""
        return f.ROUTE_SLO_AWARE

    def replica_of(self, believed: Sequence[bool], predicted_ns: Sequence[float]) -> int | None:
        """The replica believed up with the least of `predicted_ns`; None when none is."""
        up = [r for r, is_up in enumerate(believed) if is_up]
        return min(up, key=lambda r: (predicted_ns[r], r)) if up else None


Router = RandomRouter | RoundRobin | LeastOutstanding | PrefixAffine | CentralQueue | SloAware
