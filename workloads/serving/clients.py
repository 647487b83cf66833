"""Clients of a service: their patience, retries and cancellations, and the limits of admission that they meet.

The rules are told in `client_events`, the prediction of a time to first token in `prediction`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from workloads.serving.fields import CLASSES

LONGEST_S = 1e8
"""Three years: well inside the clock of int64 nanoseconds."""
MOST_ATTEMPTS = 16
"""A limit of ours: after 15 doublings a backoff of a second is nine hours, and draws above belong to drafts."""
MOST_CLASSES = CLASSES
"""A limit of ours: every replica keeps a place in its queue for each class."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """A client leaves when `limit_s` after sending an attempt it is not yet admitted, has no token, or no full answer.

    `until` names which: `admission` (it leaves only from a queue), `first_token`, `answer` (the last two also while its
    request runs).
    """

    limit_s: float
    until: Literal["admission", "first_token", "answer"] = "first_token"

    def __post_init__(self) -> None:
        """Refuse what is no time."""
        _check_time("limit_s", self.limit_s)


@dataclass(frozen=True, kw_only=True)
class Retries:
    """A client whose attempt timed out or was rejected sends it again, `attempts` times in all.

    It waits for `backoff_s` x 2^(k - 1) x (1 - `jitter` x u) after attempt k.
    """

    attempts: int = 1
    backoff_s: float = 1.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a backoff that is no time at its longest, and a jitter that is no share."""
        if not 1 <= self.attempts <= MOST_ATTEMPTS:
            raise ValueError(f"attempts must lie between 1 and {MOST_ATTEMPTS}, not {self.attempts}")
        _check_time("backoff_s x 2^(attempts - 1)", self.backoff_s * 2.0 ** (self.attempts - 1))
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be a share in [0, 1], not {self.jitter:g}")


@dataclass(frozen=True, kw_only=True)
class Cancellations:
    """A `share` of the users cancel, after a time since the first arrival that is exponential with mean `mean_s`."""

    share: float
    mean_s: float

    def __post_init__(self) -> None:
        """Refuse what is no share and no time."""
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must lie in [0, 1], not {self.share:g}")
        _check_time("mean_s", self.mean_s)

    def after_ns(self, u: NDArray[np.float64], never_ns: int) -> NDArray[np.int64]:
        """When each user cancels, by one uniform each, in ns after the arrival (at least 1); `never_ns` for most."""
        after_s = -self.mean_s * np.log1p(-np.minimum(u / max(self.share, 1e-300), 1 - 2.0**-53))
        return np.where(u < self.share, np.maximum(1, np.rint(after_s * 1e9)), never_ns).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Clients:
    """What clients do; by default they wait for ever and never come twice."""

    patience: Patience | None = None
    retries: Retries = field(default_factory=Retries)
    cancellations: Cancellations | None = None


@dataclass(frozen=True, kw_only=True)
class Admission:
    """Limits at the arrival of an attempt, at the replica that it is routed to; None is no limit.

    `max_queue`: requests that wait there; `max_outstanding`: that wait or run there; `max_predicted_ttft_s`: early
    rejection. With a central queue they hold for that queue; while no replica is up, for those who wait for one.
    """

    max_queue: int | None = None
    max_outstanding: int | None = None
    max_predicted_ttft_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse limits that let nobody in."""
        for name in ("max_queue", "max_outstanding"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ValueError(f"{name} must be at least 1, not {limit}")
        if self.max_predicted_ttft_s is not None:
            _check_time("max_predicted_ttft_s", self.max_predicted_ttft_s)


def check_shares(priorities: tuple[float, ...]) -> None:
    """Raise ValueError unless shares of classes are positive and add up to 1 (or there are none)."""
    if not priorities:
        return
    if len(priorities) > MOST_CLASSES:
        raise ValueError(f"at most {MOST_CLASSES} classes of priority, not {len(priorities)}")
    if not all(share > 0 for share in priorities) or not math.isclose(sum(priorities), 1.0, abs_tol=1e-9):
        raise ValueError(f"shares of priorities must be above 0 and add up to 1, not {list(priorities)}")


def _check_time(name: str, seconds: float) -> None:
    if not 1e-9 <= seconds <= LONGEST_S:
        raise ValueError(f"{name} must lie between 1e-9 and {LONGEST_S:g} s, not {seconds:g}")
