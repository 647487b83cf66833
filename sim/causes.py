"""Causes of waiting that could be avoided, and how a scenario reads without each of them.

*Inherent* is what the same job or request would take alone on a sound machine; everything else has a cause. A cause
names the uses of chip-hours, or the categories of the ledger of requests, that it is booked under.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sim.metrics.uses import Use
from sim.scenario import Scenario
from sim.studies.flows import TAKEN_BY_FAILURES

Settings = Mapping[str, object]
"""Values at keys; None takes a key out."""
ALONE = 1e-3
"""Share of its rate at which a service's requests meet nobody else."""
ROOMY = 64.0
"""So many times its memory lets a chip's cache never fill."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause: its name, what it is booked under, and the settings that remove it (empty: it is not there)."""

    name: str
    booked: tuple[str, ...]
    without: Callable[[Scenario], Settings]


def _detection(scenario: Scenario) -> Settings:
    return {"health.detection": "0 s", "health.detection_of": None, "health.poll": "0 s"}


def _preflight(scenario: Scenario) -> Settings:
    return {"recovery.preflight": "0 s", "health.preflight": None}


def _crews(scenario: Scenario) -> Settings:
    limited = scenario.repair.crews is not None or scenario.repair != type(scenario.repair)()
    return {"repair.crews": None, "repair.crews_of": None, "repair.parts": None} if limited else {}


def _light(scenario: Scenario) -> Settings:
    failures = scenario.failures
    names = ("ocs", "optical_end", "flapping_optical_ends")
    return {f"failures.{name}": None for name in names if getattr(failures, name) is not None}


def _hardware(scenario: Scenario) -> Settings:
    failures = scenario.failures
    names = ("host", "rack", "in_rack_link", "power_domain", "pod", "flapping_in_rack_links", "log", "bad_hosts",
             "slow_hosts", "corruption")  # fmt: skip
    return {f"failures.{name}": None for name in names if getattr(failures, name) is not None}


def _drains(scenario: Scenario) -> Settings:
    return {"maintenance": None} if scenario.maintenance.is_on else {}


def _saving(scenario: Scenario) -> Settings:
    if scenario.study.operations is None or scenario.checkpoint.kind == "none":
        return {}
    return {"checkpoint": {"kind": "fixed", "interval": "10 min", "save": "0 s", "stall": "0 s"}}


def _delay(name: str) -> Callable[[Scenario], Settings]:
    return lambda scenario: {f"recovery.{name}": "0 s"}


JOB_CAUSES = (
    Cause(name="detection", booked=(Use.DETECTING,), without=_detection),
    Cause(name="eviction", booked=(Use.EVICTING,), without=_delay("evict")),
    Cause(name="circuits", booked=(Use.RECONFIGURING,), without=_delay("circuits")),
    Cause(name="tests before a start", booked=(Use.PREFLIGHT,), without=_preflight),
    Cause(name="restoring", booked=(Use.RESTORING,), without=_delay("restore")),
    Cause(name="saving and lost work", booked=(Use.CHECKPOINTING, Use.LOST), without=_saving),
    Cause(name="waiting for crews and parts", booked=(), without=_crews),
    Cause(name="planned drains", booked=(Use.DRAINED,), without=_drains),
    Cause(name="failing light", booked=(Use.SLOWED,), without=_light),
    Cause(
        name="failing hosts, racks, cables", booked=(*map(str, TAKEN_BY_FAILURES), Use.FRAGMENTED), without=_hardware
    ),
)
"""Causes that take chip-hours from jobs. What a failing host takes is booked under every stage of recovery, and
under `fragmented` where the cubes left over make no whole slice."""


def _replicas_down(scenario: Scenario) -> Settings:
    serving = scenario.serving
    return {"serving.weights": "healthy"} if serving is not None and serving.weights == "availability" else {}


def _memory(scenario: Scenario) -> Settings:
    """Chips like those of each service, with more memory."""
    assert scenario.serving is not None
    settings: dict[str, object] = {}
    for index, service in enumerate(scenario.serving.services):
        room = f"{ROOMY * scenario.catalogue.chips[service.chip].hbm_bytes!r} byte"
        if service.chip in scenario.chips:
            settings[f"chips.{service.chip}.hbm_bytes"] = room
        else:
            settings[f"chips.roomy_{index}"] = {"like": service.chip, "hbm_bytes": room}
            settings[f"serving.services.{index}.chip"] = f"roomy_{index}"
    return settings


def _others(scenario: Scenario) -> Settings:
    """So few requests that each is alone; a trace keeps its own rate."""
    assert scenario.serving is not None
    services = scenario.serving.services
    if any(service.rate is None for service in services):
        return {}
    return {
        f"serving.services.{index}.rate": f"{ALONE * float(service.rate or 0.0)!r} 1/s"
        for index, service in enumerate(services)
    }


SERVICE_CAUSES = (
    Cause(
        name="replicas that are down",
        booked=("no_replica_up", "undetected_dead_replica", "recompute"),
        without=_replicas_down,
    ),
    Cause(name="a full cache", booked=("kv_blocked", "swap"), without=_memory),
    Cause(
        name="other requests", booked=("router_queue", "kv_blocked", "interference", "others_kv_reads"), without=_others
    ),
)
"""Causes that make requests wait; their rates are those of the service as it is."""
