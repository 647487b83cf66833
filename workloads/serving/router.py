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


Router = RandomRouter | RoundRobin | LeastOutstanding
