"""Failures that are no renewal of one component: bad hosts, common causes, hidden faults, flapping links.

Frozen values whose fields are the keys of a scenario; none happens unless named. Onsets are without memory and start
anew with the run (assumption); a component that is out when its onset comes is spared. Rates and lengths without a
source are for the user to write.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from sim.lifetimes import Exponential, Law
from sim.repair_policies import HOUR_S, check_above_zero, check_counts, check_delays, check_shares
from topology.units import ClosedShare, PerSecond, PositiveSeconds, Seconds

POWER_DOMAIN_RACKS = 8
"""Racks of one power domain (assumption of the design)."""


def four_hours() -> Exponential:
    """The law of repairs and common outages unless one is named (assumption)."""
    return Exponential(mean=4 * HOUR_S)


def _check_mean(policy: object, name: str) -> None:
    law = getattr(policy, name)
    try:
        _ = None if law is None else law.mean_s
    except ValueError:
        raise ValueError(f"{name} has no mean: write one, such as `mean: 4 h`") from None


@dataclass(frozen=True, kw_only=True)
class BadHosts:
    """A share of hosts is bad and fails `factor` times as often: its lives are that much shorter.

    Of failures of bad hosts the share 1 - 1 / factor is `systematic` (the cause in the log), the rest is that of any
    host. Without a two-stage repair a bad host stays bad until it is retired and replaced. Defaults: AIReSim, arXiv
    2603.07041, default table, where systematic failures come five times as often as the others, and beside them.
    """

    share: ClosedShare = 0.15
    factor: float = 6.0

    def __post_init__(self) -> None:
        """Refuse what is no share, and factors below 1."""
        check_shares(self, "share")
        if not (math.isfinite(self.factor) and self.factor >= 1):
            raise ValueError(f"factor of {self.factor:g}: write a number of at least 1, such as `factor: 6`")

    def is_systematic(self, u: float) -> bool:
        """Whether a failure of a bad host comes of its being bad, from a uniform."""
        return u < 1.0 - 1.0 / self.factor


@dataclass(frozen=True, kw_only=True)
class PodEvents:
    """Everything goes down at one instant, `rate` times a second, for as long as `outage` says."""

    rate: PerSecond
    outage: Law = field(default_factory=four_hours)

    def __post_init__(self) -> None:
        """Refuse what is no rate, and a law without a mean."""
        check_above_zero(self, "rate")
        _check_mean(self, "outage")


@dataclass(frozen=True, kw_only=True)
class PowerDomainEvents(PodEvents):
    """The racks of one power domain go down at one instant; `rate` is per domain of `racks` racks (assumption: 8)."""

    racks: int = POWER_DOMAIN_RACKS

    def __post_init__(self) -> None:
        """Refuse what is no rate or number, and a law without a mean."""
        super().__post_init__()
        check_counts(self, 1, "racks")


@dataclass(frozen=True, kw_only=True)
class HiddenFault:
    """A fault of a host that takes nothing down: `rate` per host in service; found by screening, preflight, or itself.

    `noticed_after` is the time until somebody notices without a test (never, where left out). A host that is found is
    mended at once (`mend`: it is taken out, its job moves) or kept as degraded (`keep`).
    """

    rate: PerSecond
    noticed_after: Law | None = None
    repair: Law = field(default_factory=four_hours)
    when_found: Literal["mend", "keep"] = "mend"

    def __post_init__(self) -> None:
        """Refuse what is no rate, laws without a mean and unknown words."""
        check_above_zero(self, "rate")
        _check_mean(self, "noticed_after")
        _check_mean(self, "repair")
        if self.when_found not in ("mend", "keep"):
            raise ValueError(f"when_found must be mend or keep, not {self.when_found!r}")


@dataclass(frozen=True, kw_only=True)
class SlowHosts(HiddenFault):
    """Slow hosts: a slice runs at the pace of its slowest host, `speed` of the healthy one (assumption)."""

    speed: ClosedShare = 0.8

    def __post_init__(self) -> None:
        """Refuse what is no rate or speed, laws without a mean and unknown words."""
        super().__post_init__()
        if not 0 < self.speed < 1:
            raise ValueError(f"speed must lie strictly between 0 and 1, not {self.speed}")


@dataclass(frozen=True, kw_only=True)
class SilentCorruption(HiddenFault):
    """Silent corruption: work since the onset is poisoned, and lost when the host is found."""


@dataclass(frozen=True, kw_only=True)
class FlappingLinks:
    """Links of one kind that go down and up: from its onset on a link is down for `length` once per `every`.

    After `tolerated` flaps it is known to flap and is mended. `rate` is per link (assumption: flaps are evenly spaced).
    """

    rate: PerSecond
    every: PositiveSeconds = 600.0
    length: Seconds = 2.0
    tolerated: int = 3
    repair: Law = field(default_factory=four_hours)

    def __post_init__(self) -> None:
        """Refuse what is no rate, time or number, flaps longer than their distance, and a law without a mean."""
        check_above_zero(self, "rate", "every")
        check_delays(self, "length")
        check_counts(self, 1, "tolerated")
        _check_mean(self, "repair")
        if self.length >= self.every:
            raise ValueError(f"a length of {self.length:g} s: write one shorter than every {self.every:g} s")


@dataclass(frozen=True, kw_only=True)
class OtherFailures:
    """All failures beside the renewals of single components; None is off."""

    bad_hosts: BadHosts | None = None
    power_domain: PowerDomainEvents | None = None
    pod: PodEvents | None = None
    slow_hosts: SlowHosts | None = None
    corruption: SilentCorruption | None = None
    flapping_in_rack_links: FlappingLinks | None = None
    flapping_optical_ends: FlappingLinks | None = None

    @property
    def has_hidden(self) -> bool:
        """Whether hosts can have faults that tests find."""
        return self.slow_hosts is not None or self.corruption is not None

    @property
    def is_off(self) -> bool:
        """Whether nothing but the renewals of single components ever fails."""
        return self == OtherFailures()
