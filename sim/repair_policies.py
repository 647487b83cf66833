"""Policies of what surrounds failures: preflight, screening, crews by kind, spare parts, two-stage repair, maintenance.

Frozen values whose fields are the keys of a scenario. All are off unless named. Where a default stands without a source
it is an assumption of ours. Kinds of component are given by name, as in `sim.policies`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

from sim.lifetimes import Exponential, Law
from topology.units import ClosedShare, PerSecond, PositiveSeconds, Seconds

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def check_delays(policy: object, *names: str) -> None:
    """Raise ValueError unless the named fields of `policy` are finite times of at least 0 s, or None."""
    for name in names:
        value = getattr(policy, name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a finite time of at least 0 s, not {value}")


def check_above_zero(policy: object, *names: str) -> None:
    """Raise ValueError unless the named fields of `policy` are finite numbers above 0."""
    for name in names:
        value = getattr(policy, name)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} of {value:g}: write a finite number above 0")


def check_shares(policy: object, *names: str) -> None:
    """Raise ValueError unless the named fields of `policy` lie in [0, 1]."""
    for name in names:
        value = getattr(policy, name)
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must lie in [0, 1], not {value}")


def check_counts(policy: object, least: int, *names: str) -> None:
    """Raise ValueError unless the named fields of `policy` are whole numbers of at least `least`, or None."""
    for name in names:
        value = getattr(policy, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise ValueError(f"{name} of {value}: write a whole number of at least {least}")


# Health -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FalseAlarms:
    """Healthy hosts that are taken out by mistake: `rate` per host in service, back after a `check` that finds nothing.

    Alarms come without memory (assumption) and are known at once.
    """

    rate: PerSecond
    check: Seconds = 600.0

    def __post_init__(self) -> None:
        """Refuse what is no rate or time."""
        check_above_zero(self, "rate")
        check_delays(self, "check")


@dataclass(frozen=True, kw_only=True)
class PreflightTest:
    """One test of a slice: its time, the share of hidden faults that it finds, the share of good slices it refuses."""

    time: Seconds = 0.0
    coverage: ClosedShare = 0.0
    false_alarms: ClosedShare = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no time or share."""
        check_delays(self, "time")
        check_shares(self, "coverage", "false_alarms")


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """The tests before every start, one after the other: end to end (run something), intent-driven (compare with plan).

    They find a hidden fault independently of each other (assumption). The time takes the place of `recovery.preflight`.
    """

    end_to_end: PreflightTest = field(default_factory=PreflightTest)
    intent_driven: PreflightTest = field(default_factory=PreflightTest)

    @property
    def time_s(self) -> float:
        """Seconds of both tests."""
        return self.end_to_end.time + self.intent_driven.time

    @property
    def coverage(self) -> float:
        """Share of hidden faults that at least one test finds."""
        return 1.0 - (1.0 - self.end_to_end.coverage) * (1.0 - self.intent_driven.coverage)

    @property
    def false_alarms(self) -> float:
        """Share of good slices that at least one test refuses."""
        return 1.0 - (1.0 - self.end_to_end.false_alarms) * (1.0 - self.intent_driven.false_alarms)

    def finds(self, u: float) -> bool:
        """Whether a hidden fault is found, from a uniform."""
        return u < self.coverage

    def refuses(self, u: float) -> bool:
        """Whether a good slice is refused, from a uniform."""
        return u < self.false_alarms


@dataclass(frozen=True, kw_only=True)
class Screening:
    """Every host is tested in the background once per `every`, host h of H at phase h / H (assumption).

    `coverage` is the share of hidden faults that one test finds, `false_alarms` the share of good hosts it takes out.
    """

    every: PositiveSeconds
    coverage: ClosedShare = 0.9
    false_alarms: ClosedShare = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no time or share."""
        check_above_zero(self, "every")
        check_shares(self, "coverage", "false_alarms")

    def found_after_us(self, onset_us: int, phase: float, u: float) -> int | None:
        """Microseconds from the onset of a hidden fault to the test that finds it, or None where none ever does.

        `phase` in [0, 1) places the host's tests; the number of tests is geometric, by inversion of the uniform `u`.
        """
        if self.coverage <= 0:
            return None
        missed = 0 if self.coverage >= 1 else int(math.log1p(-u) / math.log1p(-self.coverage))
        every_us = max(1, round(self.every * 1e6))
        return every_us - (onset_us - round(phase * every_us)) % every_us + missed * every_us


# Repair -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CrewsOf:
    """Crews that work on one kind alone; a kind that is not named is served by the common `crews`."""

    host: int | None = None
    rack: int | None = None
    in_rack_link: int | None = None
    optical_end: int | None = None
    ocs: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers of crews that are no whole numbers of at least 1."""
        check_counts(self, 1, *(item.name for item in fields(self)))


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Spare parts of one kind: every repair takes one from the `stock` and orders another, which takes `lead_time`."""

    stock: int
    lead_time: Seconds = 7 * DAY_S

    def __post_init__(self) -> None:
        """Refuse what is no number or time."""
        check_counts(self, 0, "stock")
        check_delays(self, "lead_time")


@dataclass(frozen=True, kw_only=True)
class PartsOf:
    """Spare parts by kind; a kind that is not named never lacks any."""

    host: Parts | None = None
    rack: Parts | None = None
    in_rack_link: Parts | None = None
    optical_end: Parts | None = None
    ocs: Parts | None = None


@dataclass(frozen=True, kw_only=True)
class TwoStage:
    """Imperfect repair of hosts: automated, then in `manual_share` of cases manual; takes the place of the repair law.

    The last stage decides whether a bad host stays bad; a good host stays good. Only manual repair needs a crew
    (assumption). Defaults and the rule: AIReSim, arXiv 2603.07041, default table and its published code.
    """

    automated: Law = field(default_factory=lambda: Exponential(mean=2 * HOUR_S))
    manual_share: ClosedShare = 0.8
    manual: Law = field(default_factory=lambda: Exponential(mean=2 * DAY_S))
    automated_leaves_bad: ClosedShare = 0.4
    manual_leaves_bad: ClosedShare = 0.2

    def __post_init__(self) -> None:
        """Refuse shares outside their range and laws without a mean."""
        check_shares(self, "manual_share", "automated_leaves_bad", "manual_leaves_bad")
        for name in ("automated", "manual"):
            try:
                getattr(self, name).mean_s  # noqa: B018
            except ValueError:
                raise ValueError(f"{name} repair has no mean: write one, such as `mean: 2 h`") from None

    @property
    def mean_s(self) -> float:
        """Mean of both stages in seconds."""
        return self.automated.mean_s + self.manual_share * self.manual.mean_s

    @property
    def leaves_bad(self) -> float:
        """Probability that a bad host is still bad after its repair."""
        return (1.0 - self.manual_share) * self.automated_leaves_bad + self.manual_share * self.manual_leaves_bad

    def is_manual(self, u: float) -> bool:
        """Whether manual repair follows, from a uniform."""
        return u < self.manual_share

    def stays_bad(self, u: float, *, manual: bool) -> bool:
        """Whether a bad host is still bad, from a uniform."""
        return u < (self.manual_leaves_bad if manual else self.automated_leaves_bad)


@dataclass(frozen=True, kw_only=True)
class Retirement:
    """A component that fails `after` times `within` a time is retired instead of repaired.

    A new one is in its place `replaced_after` its detection; without that the place stays empty.
    """

    after: int = 3
    within: PositiveSeconds = 30 * DAY_S
    replaced_after: Seconds | None = None

    def __post_init__(self) -> None:
        """Refuse what is no number or time."""
        check_counts(self, 1, "after")
        check_above_zero(self, "within")
        check_delays(self, "replaced_after")

    def retires(self, failures_us: list[int]) -> bool:
        """Whether a component with failures at these instants (in order, the last just now) is retired."""
        return len(failures_us) >= self.after and failures_us[-1] - failures_us[-self.after] <= round(self.within * 1e6)


# Maintenance --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Rolling:
    """Planned drains, component after component: rounds start at `first` and then once per `every`.

    Each component is out for `length`, announced `notice` before; within a round the next `at_once` follow when those
    before them are due back. The limit `at_once` holds also when work is late.
    """

    every: PositiveSeconds
    length: PositiveSeconds = 4 * HOUR_S
    notice: Seconds = DAY_S
    at_once: int = 1
    first: Seconds = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no number or time."""
        check_above_zero(self, "every", "length")
        check_delays(self, "notice", "first")
        check_counts(self, 1, "at_once")

    def starts_s(self, count: int, round_number: int) -> list[float]:
        """Planned starts of the drains of components 0 to count - 1 in a round, in seconds.

        Raises ValueError when a round of so many components takes longer than `every`.
        """
        groups = -(-count // self.at_once)
        if groups * self.length > self.every:
            raise ValueError(
                f"a round of {count} drains, {self.at_once} at once, takes {groups * self.length:g} s, longer than "
                f"every {self.every:g} s: write a longer `every`, a shorter `length` or more `at_once`"
            )
        start_s = self.first + round_number * self.every
        return [start_s + (component // self.at_once) * self.length for component in range(count)]


@dataclass(frozen=True, kw_only=True)
class MaintenancePolicy:
    """Rolling maintenance of cubes and of switches, each with notice and a limit at once; none unless named."""

    cubes: Rolling | None = None
    switches: Rolling | None = None

    @property
    def is_on(self) -> bool:
        """Whether anything is ever drained."""
        return self.cubes is not None or self.switches is not None
