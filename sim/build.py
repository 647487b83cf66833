"""From a scenario to the parts of a machine: the only place that knows how sections become populations and policies."""

from __future__ import annotations

from dataclasses import dataclass

from sim.closed_forms import CubeOdds
from sim.condition import component_counts
from sim.histories import US_PER_S, ComponentKind, FailureMode, Lives, Outages, draw_outages, failure_mode
from sim.scenario import Scenario
from sim.streams import Streams
from topology.fabric import Fabric
from topology.pod import AnyPod


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The parts of one sweep point: the pod and its fabric, and every population that fails."""

    scenario: Scenario
    pod: AnyPod
    fabric: Fabric
    modes: tuple[FailureMode, ...]

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
        """Whether closed forms hold: stationary, without a log, crews without limit."""
        scenario = self.scenario
        return scenario.failures.log is None and scenario.repair.crews is None and scenario.run.start == "stationary"

    def histories(self, replication: int, horizon_us: int) -> list[Outages]:
        """Outages of every population up to the horizon, crews without limit."""
        streams = self.streams(replication)
        return [draw_outages(Lives(mode, streams), horizon_us) for mode in self.modes]


def build_setup(scenario: Scenario) -> Setup:
    """Build the parts of a sweep point (a scenario without a sweep); raises InputError where they do not fit."""
    pod = scenario.pod.build()
    counts = component_counts(pod)
    modes = tuple(
        failure_mode(
            kind,
            counts[kind],
            failure_rate_per_s=section.failure_rate,
            availability=section.availability,
            life=section.life,
            repair=section.repair,
            rest_s=scenario.health.rest_s(kind.value),
            stationary=scenario.run.start == "stationary",
        )
        for kind, section in scenario.failures.named().items()
    )
    return Setup(scenario=scenario, pod=pod, fabric=scenario.pod.fabric, modes=modes)


def seconds_to_us(seconds: float) -> int:
    """Whole microseconds."""
    return round(seconds * US_PER_S)
