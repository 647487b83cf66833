"""From a scenario to the parts of a machine: the only place that knows how sections become populations and policies."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sim.closed_forms import CubeOdds
from sim.condition import component_counts
from sim.failure_logs import FailureLog, placed_by_number, placed_by_shuffle, read_failure_logs
from sim.histories import US_PER_S, ComponentKind, FailureMode, Lives, Outages, draw_outages, failure_mode
from sim.policies import HealthPolicy, why_no_closed_form, with_detections
from sim.scenario import Scenario
from sim.streams import Streams
from topology.errors import InputError, refuse
from topology.fabric import Fabric
from topology.pod import AnyPod


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The parts of one sweep point: the pod and its fabric, every population that fails by a law, logs to replay."""

    scenario: Scenario
    pod: AnyPod
    fabric: Fabric
    modes: tuple[FailureMode, ...]
    logs: tuple[FailureLog, ...] = ()

    def streams(self, replication: int) -> Streams:
        """The random streams of one replication."""
        return Streams(self.scenario.run.seed, replication)

    def mode(self, kind: ComponentKind) -> FailureMode | None:
        """The population of a kind, or None where it never fails."""
        return next((mode for mode in self.modes if mode.kind is kind), None)

    @property
    def odds(self) -> CubeOdds:
        """Long-run availabilities of what a usable cube needs."""
        up = {kind: mode.availability if (mode := self.mode(kind)) else 1.0 for kind in ComponentKind}
        return CubeOdds(
            host=up[ComponentKind.HOST],
            rack=up[ComponentKind.RACK],
            in_rack_link=up[ComponentKind.IN_RACK_LINK],
        )

    @property
    def is_independent(self) -> bool:
        """Whether closed forms hold: stationary, without a log, repair without limits, nothing but renewals."""
        scenario = self.scenario
        return not why_no_closed_form(
            health=scenario.health,
            repair=scenario.repair,
            others=scenario.failures.others,
            maintenance=scenario.maintenance,
            replays_log=scenario.failures.log is not None,
            stationary=scenario.run.start == "stationary",
        )

    @property
    def kinds(self) -> list[ComponentKind]:
        """Every kind of component that fails, by a law or in a log."""
        return [*(mode.kind for mode in self.modes), *(log.kind for log in self.logs)]

    @property
    def log_window_us(self) -> int | None:
        """Length of the window of the logs, or None without one."""
        return self.logs[0].window_us if self.logs else None

    @property
    def health(self) -> HealthPolicy:
        """The policy of health; a log of detected failures needs no second detection."""
        health, section = self.scenario.health, self.scenario.failures.log
        if section is None or section.log_time == "occurred":
            return health
        return with_detections(health, (log.kind.value for log in self.logs))

    def logged(self, replication: int) -> list[Outages]:
        """The outages of the logs, placed on this machine; a replication is the number of a shuffle."""
        section, counts = self.scenario.failures.log, component_counts(self.pod)
        placed: list[Outages] = []
        for log in self.logs:
            count = counts[log.kind]
            if section is not None and section.place == "shuffled":
                index = placed_by_shuffle(log, count, self.scenario.run.seed, replication)
            else:
                index = placed_by_number(log, count)
            placed.append(log.outages(index, count))
        return placed

    def histories(self, replication: int, horizon_us: int) -> list[Outages]:
        """Outages of every population up to the horizon, crews without limit."""
        streams = self.streams(replication)
        drawn = [draw_outages(Lives(mode, streams), horizon_us) for mode in self.modes]
        return [*drawn, *self.logged(replication)]


def build_setup(scenario: Scenario) -> Setup:
    """Build the parts of a sweep point (a scenario without a sweep); raises InputError where they do not fit."""
    pod = scenario.pod.build()
    counts = component_counts(pod)
    modes = tuple(
        failure_mode(
            kind,
            counts[kind],
            **scenario.failures.given(kind, scenario.repair.two_stage),
            rest_s=scenario.health.rest_s(kind.value),
            stationary=scenario.run.start == "stationary",
        )
        for kind in scenario.failures.named()
    )
    setup = Setup(scenario=scenario, pod=pod, fabric=scenario.pod.fabric, modes=modes, logs=_read_logs(scenario))
    _check_logs(setup)
    return setup


def _check_logs(setup: Setup) -> None:
    """Refuse logs that do not fit the machine or the warm-up, before anything runs."""
    window_us, warmup_us = setup.log_window_us, seconds_to_us(setup.scenario.run.warmup)
    if window_us is not None and window_us <= warmup_us:
        what = f"the window of the log, {window_us / US_PER_S:g} s, ends within the warm-up"
        raise refuse("run.warmup", what, "write a shorter warm-up or a longer window")
    setup.logged(0)


def _read_logs(scenario: Scenario) -> tuple[FailureLog, ...]:
    section = scenario.failures.log
    if section is None or section.path is None:
        return ()
    try:
        logs = read_failure_logs(
            section.path,
            log_format=None if section.format == "auto" else section.format,
            components=section.components,
            window=section.window,
            causes=section.causes,
        )
    except InputError as error:
        named = [
            replace(fault, where=f"failures.log.{fault.where}") for fault in error.faults if fault.where == "window"
        ]
        raise InputError(named or error.faults) from None
    twice = [log.kind for log in logs if getattr(scenario.failures, log.kind.value) is not None]
    if twice:
        raise refuse(
            f"failures.{twice[0]}", f"{section.path} holds outages of this kind already", "remove one of the two"
        )
    return logs


def replications_of(scenario: Scenario, asked: int) -> int:
    """Replications of a study that asks for so many; of a log as many as there are shuffles."""
    log = scenario.failures.log
    return asked if log is None else log.shuffles


def seconds_to_us(seconds: float) -> int:
    """Whole microseconds."""
    return round(seconds * US_PER_S)
