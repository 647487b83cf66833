"""Policies of health, repair and recovery: frozen values whose fields are the keys of a scenario's sections.

A policy is pure: it answers a question and changes nothing. Kinds of component are given by name (`host`, `rack`,
`in_rack_link`, `optical_end`, `ocs`). The default delays are assumptions of ours, each editable; published neighbours
are in the documentation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Literal

from sim.other_failures import OtherFailures
from sim.repair_policies import (
    CrewsOf,
    FalseAlarms,
    MaintenancePolicy,
    PartsOf,
    Preflight,
    Retirement,
    Screening,
    TwoStage,
    check_delays,
)
from topology.units import ClosedShare, Seconds

LIGHT_KINDS = ("optical_end", "ocs")
"""Components that carry light: they can be routed around, and they never decide whether a cube is usable."""

REPAIR_ORDER = ("ocs", "rack", "optical_end", "in_rack_link", "host")
"""Who is repaired first when crews are scarce: a switch hurts every slice, a host one (assumption)."""


@dataclass(frozen=True, kw_only=True)
class DetectionOf:
    """Detection delays of single kinds of component; a kind that is not named takes the policy's `detection`."""

    host: Seconds | None = None
    rack: Seconds | None = None
    in_rack_link: Seconds | None = None
    optical_end: Seconds | None = None
    ocs: Seconds | None = None

    def __post_init__(self) -> None:
        """Refuse delays that are no times."""
        check_delays(self, *(item.name for item in fields(self)))


@dataclass(frozen=True, kw_only=True)
class HealthPolicy:
    """How soon a failure is known and what surrounds its repair: seconds of detection, diagnosis and burn-in.

    With `poll` a failure is known at the first whole multiple of it after `detection` (one clock for all: assumption).
    The rest is off unless named; `accept_degraded` says whether new slices may take degraded cubes.
    """

    detection: Seconds = 60.0
    detection_of: DetectionOf = field(default_factory=DetectionOf)
    poll: Seconds = 0.0
    diagnosis: Seconds = 0.0
    burn_in: Seconds = 0.0
    false_alarms: FalseAlarms | None = None
    preflight: Preflight | None = None
    screening: Screening | None = None
    accept_degraded: bool = True

    def __post_init__(self) -> None:
        """Refuse delays that are no times."""
        check_delays(self, "detection", "poll", "diagnosis", "burn_in")

    def detection_s(self, kind: str) -> float:
        """Mean seconds from the failure of a component of `kind` to the instant at which it is believed down."""
        own: float | None = getattr(self.detection_of, kind)
        return (self.detection if own is None else own) + self.poll / 2

    def detected_after_us(self, kind: str, failed_us: int) -> int:
        """Microseconds from a failure at `failed_us` to the instant at which it is believed down."""
        own: float | None = getattr(self.detection_of, kind)
        seen_us = failed_us + round((self.detection if own is None else own) * 1e6)
        poll_us = round(self.poll * 1e6)
        return seen_us - failed_us if poll_us == 0 else -(-seen_us // poll_us) * poll_us - failed_us

    @property
    def gives_false_alarms(self) -> bool:
        """Whether hosts that are in order may be taken out."""
        return (
            self.false_alarms is not None
            or (self.preflight is not None and self.preflight.false_alarms > 0)
            or (self.screening is not None and self.screening.false_alarms > 0)
        )

    def rest_s(self, kind: str) -> float:
        """Seconds of an outage beside the repair itself: detection, diagnosis and burn-in."""
        return self.detection_s(kind) + self.diagnosis + self.burn_in


@dataclass(frozen=True, kw_only=True)
class HealthWithLog(HealthPolicy):
    """The same beside a log whose starts are detections: its kinds are known at once, whatever delays and polls say."""

    detected: tuple[str, ...] = ()

    def detection_s(self, kind: str) -> float:
        """0 for the kinds of the log."""
        return 0.0 if kind in self.detected else HealthPolicy.detection_s(self, kind)

    def detected_after_us(self, kind: str, failed_us: int) -> int:
        """0 for the kinds of the log."""
        return 0 if kind in self.detected else HealthPolicy.detected_after_us(self, kind, failed_us)


def with_detections(health: HealthPolicy, kinds: Iterable[str]) -> HealthWithLog:
    """The policy of health beside a log of detections of these kinds."""
    return HealthWithLog(**{item.name: getattr(health, item.name) for item in fields(health)}, detected=tuple(kinds))


@dataclass(frozen=True, kw_only=True)
class RepairPolicy:
    """How many crews repair at once; None is without limit. Waiting work is taken by kind, switches first.

    `crews_of` gives kinds crews of their own. Spare parts, two stages and retirement are off unless named.
    """

    crews: int | None = None
    crews_of: CrewsOf = field(default_factory=CrewsOf)
    parts: PartsOf = field(default_factory=PartsOf)
    two_stage: TwoStage | None = None
    retire: Retirement | None = None

    def __post_init__(self) -> None:
        """Refuse a number of crews that is no whole number of at least 1."""
        if self.crews is not None and (isinstance(self.crews, bool) or self.crews < 1):
            raise ValueError(f"{self.crews} crews: write a whole number of at least 1, or leave it out for no limit")

    def crews_for(self, kind: str) -> int | None:
        """Crews that repair `kind`, alone or with others; None is without limit."""
        own: int | None = getattr(self.crews_of, kind)
        return self.crews if own is None else own

    @property
    def is_unlimited(self) -> bool:
        """Whether a repair never waits and always mends: no limit on crews or parts, one stage, nobody retired."""
        return self == RepairPolicy()

    def rank(self, kind: str) -> int:
        """Place of `kind` in the queue for crews: the lowest is served first, equals in order of arrival."""
        return REPAIR_ORDER.index(kind)


class Response(StrEnum):
    """What a job does after a loss: keep its cubes, replace the bad ones, move to others, or give all back and wait."""

    REROUTE = "reroute"
    REPLACE = "replace"
    MOVE = "move"
    WAIT = "wait"


@dataclass(frozen=True, kw_only=True)
class RecoveryPolicy:
    """Delays of the recovery of a job, and the choice between rerouting, replacing, moving and waiting.

    `evict` s empties the hosts of the slice, `circuits` s sets light paths and discovers links (or loads other routes),
    `preflight` s tests the slice, `restore` s compiles and loads the state. `reroute_opt_in` is the share of jobs
    that agree to run around dead light paths, at `rerouted_speed` of the healthy speed (assumption); with a
    `reroute_traffic` at what the routing room finds for the slice, the dimension of what is dead and that traffic, for
    which a healthy step waits `reroute_network_share` of its time (assumption: all of it). A share `failure` of starts
    fails at the end of its stages and goes through them again. A job that lost hardware stays on its slice for up to
    `hold` s, in case the repair comes first.
    """

    evict: Seconds = 30.0
    circuits: Seconds = 10.0
    preflight: Seconds = 180.0
    restore: Seconds = 600.0
    replace: Literal["replace_one", "move_all"] = "replace_one"
    reroute_opt_in: ClosedShare = 0.95
    rerouted_speed: ClosedShare = 0.95
    reroute_traffic: Literal["none", "all_to_all", "rings"] = "none"
    reroute_network_share: ClosedShare = 1.0
    failure: ClosedShare = 0.0
    hold: Seconds = 0.0

    def __post_init__(self) -> None:
        """Refuse delays that are no times and shares outside their range."""
        check_delays(self, "evict", "circuits", "preflight", "restore", "hold")
        if self.replace not in ("replace_one", "move_all"):
            raise ValueError(f"replace must be replace_one or move_all, not {self.replace!r}")
        if not 0 <= self.reroute_opt_in <= 1:
            raise ValueError(f"reroute_opt_in must lie in [0, 1], not {self.reroute_opt_in}")
        if not 0 <= self.failure < 1:
            raise ValueError(f"failure must lie in [0, 1), not {self.failure}: a start that never succeeds never ends")
        if self.reroute_traffic not in ("none", "all_to_all", "rings"):
            raise ValueError(f"reroute_traffic must be none, all_to_all or rings, not {self.reroute_traffic!r}")
        if not 0 <= self.reroute_network_share <= 1:
            raise ValueError(f"reroute_network_share must lie in [0, 1], not {self.reroute_network_share}")
        if not 0 < self.rerouted_speed <= 1:
            raise ValueError(f"rerouted_speed must lie in (0, 1], not {self.rerouted_speed}")

    def respond(self, *, hardware: bool, switch: bool, opted_in: bool, can_replace: bool) -> Response:
        """What a job does once its loss is known (design of recovery, table by fabric).

        `hardware`: a host, rack or in-rack link of its slice is out; `switch`: a switch is out; neither: an optical
        end is. `opted_in`: it may route around dead light. `can_replace`: the fabric can join other cubes or hosts to
        those that are still good.
        """
        if not hardware and opted_in:
            return Response.REROUTE
        if switch and not opted_in:
            return Response.WAIT
        if not can_replace:
            return Response.WAIT
        return Response.REPLACE if self.replace == "replace_one" else Response.MOVE


def with_preflight(recovery: RecoveryPolicy, health: HealthPolicy) -> RecoveryPolicy:
    """The policy of recovery with the time of health's preflight tests, where there are any."""
    return recovery if health.preflight is None else replace(recovery, preflight=health.preflight.time_s)


def why_no_closed_form(
    *,
    health: HealthPolicy,
    repair: RepairPolicy,
    others: OtherFailures | None = None,
    maintenance: MaintenancePolicy | None = None,
    replays_log: bool = False,
    stationary: bool = True,
) -> str:
    """What keeps the closed forms of availability from holding, in words; empty where they hold (design of measures 1).

    They count independent components in the long run, down for as long as their own law says.
    """
    reasons = {
        "the run starts with new components": not stationary,
        "a log is replayed": replays_log,
        "repairs wait, take parts or stages, or components are retired": not repair.is_unlimited,
        "false alarms take out what is in order": health.gives_false_alarms,
        "failures are correlated, hidden or flap, or some hosts are bad": others is not None and not others.is_off,
        "cubes or switches are drained": maintenance is not None and maintenance.is_on,
    }
    return next((words for words, holds in reasons.items() if holds), "")
