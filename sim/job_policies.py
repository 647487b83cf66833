"""Policies of the work of jobs: when it is made safe, and what is kept in reserve for a loss.

Frozen values whose fields are the keys of a scenario's sections `checkpoint` and `spares`. The default delays are
assumptions of ours, each editable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

from topology.units import Seconds

Mode = Literal["blocking", "asynchronous"]


def _check_times(policy: object) -> None:
    """Raise ValueError unless every time among the fields of `policy` is finite and at least 0 s."""
    for item in fields(policy):  # type: ignore[arg-type]
        value = getattr(policy, item.name)
        if isinstance(value, float | int) and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{item.name} must be a finite time of at least 0 s, not {value}")


def young_interval_s(mean_between_losses_s: float, save_s: float) -> float:
    """Young's interval sqrt(2 M C) between checkpoints in seconds (J. W. Young, CACM 17(9), 1974)."""
    return math.sqrt(2.0 * mean_between_losses_s * save_s)


@dataclass(frozen=True, kw_only=True)
class NoCheckpoints:
    """Nothing is saved: a loss undoes all the running of a job."""

    kind: Literal["none"] = "none"

    @property
    def save_s(self) -> float:
        """Seconds until a checkpoint is complete."""
        return 0.0

    @property
    def stall_s(self) -> float:
        """Seconds for which a checkpoint stops the job."""
        return 0.0

    def interval_s(self, mean_between_losses_s: float) -> float | None:
        """Seconds of running between checkpoints of a job with this mean time between losses: never."""
        return None


@dataclass(frozen=True, kw_only=True)
class _Saving:
    """What checkpoints cost: complete after `save` s; `blocking` stops the job for all of it, else for `stall` s."""

    save: Seconds = 60.0
    stall: Seconds = 0.0
    mode: Mode = "blocking"

    def __post_init__(self) -> None:
        """Refuse what is no time, and a stall longer than the save."""
        _check_times(self)
        if self.stall > self.save:
            raise ValueError(f"a stall of {self.stall} s is longer than the save of {self.save} s that it is a part of")

    @property
    def save_s(self) -> float:
        """Seconds until a checkpoint is complete."""
        return self.save

    @property
    def stall_s(self) -> float:
        """Seconds for which a checkpoint stops the job."""
        return self.save if self.mode == "blocking" else self.stall


@dataclass(frozen=True, kw_only=True)
class FixedCheckpoints(_Saving):
    """A checkpoint after every `interval` s of running; complete after `save` s.

    `blocking` stops the job for all of `save`; `asynchronous` for `stall` s, and the job runs on while the rest is
    written. What is saved is the state at the start of the checkpoint.
    """

    kind: Literal["fixed"] = "fixed"
    interval: Seconds = 1800.0

    def __post_init__(self) -> None:
        """Refuse what is no time, and an interval of nothing."""
        super().__post_init__()
        if self.interval <= 0:
            raise ValueError("interval must be above 0 s: leave checkpoints out with kind none")

    def interval_s(self, mean_between_losses_s: float) -> float | None:
        """Seconds of running between the starts of checkpoints; one save at a time."""
        return self.interval if self.mode == "blocking" else max(self.interval, self.save)


@dataclass(frozen=True, kw_only=True)
class YoungCheckpoints(_Saving):
    """Checkpoints at Young's interval for the rate at which the job is lost: sqrt(2 M C), C what one costs.

    C is the time for which a checkpoint stops the job; asynchronous ones follow each other at least `save` s apart.
    A job that is never lost saves nothing.
    """

    kind: Literal["young"] = "young"

    def __post_init__(self) -> None:
        """Refuse what is no time, and a save of nothing."""
        super().__post_init__()
        if self.save <= 0:
            raise ValueError("save must be above 0 s: Young's interval for checkpoints that cost nothing is nothing")

    def interval_s(self, mean_between_losses_s: float) -> float | None:
        """Seconds of running between the starts of checkpoints of a job with this mean time between losses."""
        if not math.isfinite(mean_between_losses_s):
            return None
        best_s = young_interval_s(mean_between_losses_s, self.stall_s)
        return best_s if self.mode == "blocking" else max(best_s, self.save)


CheckpointPolicy = NoCheckpoints | FixedCheckpoints | YoungCheckpoints


@dataclass(frozen=True, kw_only=True)
class SparesPolicy:
    """Cubes (on `any_host` as many hosts) that the queue may not take: they replace what jobs lose.

    `cold`: a spare takes every stage of a start. `warm`: it has been through preflight before. `hot`: it holds the live
    state too, so that a loss undoes nothing and instead of restoring takes `swap` s (assumption: minutes at most).
    """

    kind: Literal["none", "cold", "warm", "hot"] = "none"
    cubes: int = 0
    swap: Seconds = 60.0

    def __post_init__(self) -> None:
        """Refuse numbers that do not fit the kind."""
        _check_times(self)
        if self.kind not in ("none", "cold", "warm", "hot"):
            raise ValueError(f"kind must be none, cold, warm or hot, not {self.kind!r}")
        if isinstance(self.cubes, bool) or not isinstance(self.cubes, int) or self.cubes < 0:
            raise ValueError(f"{self.cubes} spare cubes: write a whole number of at least 0")
        if (self.kind == "none") != (self.cubes == 0):
            raise ValueError(f"kind {self.kind} with {self.cubes} cubes: name both a kind and cubes, or neither")
