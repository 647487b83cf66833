"""The effective configuration of a scenario: what was derived, and which values are assumptions of ours.

Each line is (label, value, mark); the mark names the source, or is `assumption` where the value is ours and editable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sim.histories import FailureMode, failure_mode
from sim.job_plans import arrivals_of
from sim.prices import PricesSection
from sim.report.words import number, percent, seconds
from sim.scenario import Scenario, asks_passes_alone
from sim.scenario_services import ServiceSection
from topology.pod import FlatPod
from topology.shape import shape_of_chips
from workloads.load.replay import TraceRequests

Setting = tuple[str, str, str]

ASSUMPTION = "assumption"
RETURNS = {"arrival": "arrival of a turn", "answer": "end of its answer"}
_DEFAULT_DELAYS = {"evict": 30.0, "circuits": 10.0, "preflight": 180.0, "restore": 600.0}


def effective_settings(scenario: Scenario) -> list[Setting]:
    """The lines of the effective configuration, in the order of the scenario's sections."""
    if asks_passes_alone(scenario):
        return list(_passes(scenario))
    return [
        *_pod(scenario),
        *_failures(scenario),
        *_recovery(scenario),
        *_study(scenario),
        *_operations(scenario),
        *_passes(scenario),
        *_serving(scenario),
        *_prices(scenario),
    ]


def _pod(scenario: Scenario) -> Iterator[Setting]:
    pod = scenario.pod.build()
    if isinstance(pod, FlatPod):
        yield "pod", f"{pod.hosts:,} hosts, {pod.chips:,} chips, without cubes", ""
    else:
        grid = "x".join(map(str, pod.grid))
        stated = scenario.pod.grid is not None or pod.cubes == 64
        yield "pod", f"{pod.name}: {pod.cubes} cubes, {pod.chips:,} chips", ""
        yield "grid of cubes", grid, "" if stated else ASSUMPTION
        yield "ports per switch", f"{pod.switch_ports}", "" if pod.cubes <= 64 else ASSUMPTION
    fabrics = scenario.sweep.get("pod.fabric") or (scenario.pod.fabric.value,)
    yield "fabric", ", ".join(str(fabric) for fabric in fabrics), ""


def _modes(scenario: Scenario) -> Iterator[tuple[str, FailureMode]]:
    for kind in scenario.failures.named():
        given = scenario.failures.given(kind, scenario.repair.two_stage)
        yield kind.value, failure_mode(kind, 1, **given, rest_s=scenario.health.rest_s(kind.value))


def _failures(scenario: Scenario) -> Iterator[Setting]:
    for kind, mode in _modes(scenario):
        values = scenario.sweep.get(f"failures.{kind}.availability")
        if values:
            yield f"{kind} availability", ", ".join(str(value) for value in values), "swept"
        else:
            words = f"{percent(mode.availability)}: {mode.life.kind} life of {seconds(mode.life.mean_s)}"
            yield f"{kind} availability", f"{words}, out for {seconds(mode.outage_mean_s)} each time", ""
    log = scenario.failures.log
    if log is not None:
        yield "failure log", f"{log.path} ({log.format}), placed {log.place}", ""
    if log is None and not scenario.failures.named():
        yield "failures", "nothing fails", ""


def _recovery(scenario: Scenario) -> Iterator[Setting]:
    health, recovery = scenario.health, scenario.recovery
    yield "detection", seconds(health.detection), ASSUMPTION if health.detection == 60.0 else ""
    for name, default in _DEFAULT_DELAYS.items():
        value: float = getattr(recovery, name)
        if name == "preflight" and health.preflight is not None:
            value, default = health.preflight.time_s, -1.0
        yield name, seconds(value), ASSUMPTION if value == default else ""
    yield "reroute opt-in", percent(recovery.reroute_opt_in), ASSUMPTION if recovery.reroute_opt_in == 0.95 else ""
    if recovery.reroute_traffic == "none":
        yield "rerouted speed", percent(recovery.rerouted_speed), ASSUMPTION if recovery.rerouted_speed == 0.95 else ""
    else:
        traffic = recovery.reroute_traffic.replace("_", "-")
        share = percent(recovery.reroute_network_share)
        yield "rerouted speed", f"by the routes left for {traffic}, {share} of a step", ""
    yield "repair crews", "no limit" if scenario.repair.crews is None else str(scenario.repair.crews), ""
    yield from _further(scenario)


FURTHER = (
    "failures.bad_hosts", "failures.power_domain", "failures.pod", "failures.slow_hosts", "failures.corruption",
    "failures.flapping_in_rack_links", "failures.flapping_optical_ends", "health.false_alarms", "health.preflight",
    "health.screening", "repair.crews_of", "repair.parts", "repair.two_stage", "repair.retire", "maintenance.cubes",
    "maintenance.switches",
)  # fmt: skip
"""Sections that are off unless named: printed where they are on."""


def _further(scenario: Scenario) -> Iterator[Setting]:
    """What is on beside renewals, detection and recovery, each section in one line."""
    written = scenario.model_dump(mode="json", exclude_none=True)
    for key in FURTHER:
        section, _, name = key.partition(".")
        value = written[section].get(name) if name else written[section]
        text = ", ".join(_flat(value)) if isinstance(value, dict) else ""
        if text:
            yield key, text, ""


def _flat(value: dict[str, Any]) -> Iterator[str]:
    """A mapping as words: `rate 0.01 %/day, repair kind exponential, repair mean 4 h`."""
    for key, part in value.items():
        if isinstance(part, dict):
            yield from (f"{key} {text}" for text in _flat(part))
        else:
            yield f"{key} {part}"


def _study(scenario: Scenario) -> Iterator[Setting]:
    study = scenario.study
    for name, part in (("availability", study.availability), ("delivered", study.delivered)):
        if part is not None:
            shapes = ", ".join(f"{chips} ({shape_of_chips(chips)})" for chips in part.slice_chips)
            yield f"{name}: slices", shapes, ""
            yield f"{name}: replications", _histories(scenario, part.replications, part.horizon), ""
    if study.promise is not None:
        slices = ", ".join(f"{count} x {shape}" for shape, count in study.promise.slices.items())
        yield "promise", f"{slices}, {percent(study.promise.time_share)} of the time", ""


def _passes(scenario: Scenario) -> Iterator[Setting]:
    """Which passes are costed: measured ones, and the lists of the grid."""
    study = scenario.study.passes
    if study is None:
        return
    for table in study.tables:
        yield f"times of {table.group}", f"{len(table.rows)} from {table.source}", table.mark or ""
    if study.grid is not None:
        for key in ("models", "chips", "slices", "batches", "contexts"):
            yield f"passes: {key}", ", ".join(f"{value}" for value in getattr(study.grid, key)), ""
        formats = f"weights {study.grid.weights}, cache {study.grid.kv}, {study.grid.layout}, {study.grid.attention}"
        yield "passes: formats", formats, ""


def _operations(scenario: Scenario) -> Iterator[Setting]:
    """Which jobs come, who is next, what is saved: only where a pod in operation, or several, are asked for."""
    studies, jobs = (scenario.study.operations, scenario.study.shared_pod, scenario.study.fleet), scenario.jobs
    fleet = scenario.study.fleet
    if jobs is None or not any(studies):
        return
    pod = scenario.pod.build()
    for stream in jobs.streams:
        law = arrivals_of(stream, pod, 1 if fleet is None else fleet.pods)
        asked = "" if stream.load is None else f" ({percent(stream.load)} of all chip-time)"
        yield f"jobs {stream.name}: arrivals", f"{law.rate * 86_400:.4g} a day{asked}", ""
        mix = f"{stream.mix.mean_chips:.4g} chips and {seconds(stream.durations.mean_s)} of work on average"
        yield f"jobs {stream.name}: size", f"{stream.mix.kind}, {stream.durations.kind}: {mix}", ""
    if jobs.log is not None:
        yield "jobs: log", f"{jobs.log.path} ({jobs.log.format}), slices by the rule {jobs.log.rule.kind}", ""
    for shape, count in jobs.always.items():
        yield "jobs without end", f"{count} x {shape}", ""
    scheduling = scenario.scheduling
    moves = "" if scheduling.defragmentation.kind == "none" else ", jobs are moved to make room"
    yield "scheduling", f"{scheduling.queue.kind}, {scheduling.placement.kind}{moves}", ""
    yield "checkpoints", scenario.checkpoint.kind, ""
    if scenario.spares.cubes:
        yield "spares", f"{scenario.spares.cubes} cubes, {scenario.spares.kind}", ""
    for name, study in zip(("operations", "shared pod", "several pods"), studies, strict=True):
        if study is not None:
            yield f"{name}: replications", _histories(scenario, study.replications, study.horizon), ""
    if fleet is not None:
        yield "several pods", f"{fleet.pods}, jobs are placed on one by {fleet.placement.kind}", ""
        if fleet.one_queue is not None:
            rule = fleet.one_queue
            after = f"lost jobs go on elsewhere after {seconds(rule.transfer)}" if rule.elsewhere else "lost jobs stay"
            yield "one queue for all pods", f"{rule.choice.kind} pod first, {after}", ""
    yield from _replicas(scenario)


def _replicas(scenario: Scenario) -> Iterator[Setting]:
    """How the replicas of a shared pod come and go."""
    study = scenario.study.shared_pod
    for service in study.services if study is not None else ():
        asked = f"{service.demand.kind} demand, {service.scaling.kind}, {service.least} to {service.most} replicas"
        yield f"{service.name}: replicas", asked, ""
        rate = f"weights at {service.weights_rate / 1e9:.3g} GB/s per host"
        delays = f"drain {seconds(service.drain)}, {rate}, ready after {seconds(service.ready)} more"
        yield f"{service.name}: delays", delays, ASSUMPTION


def _histories(scenario: Scenario, replications: int, horizon_s: float) -> str:
    log = scenario.failures.log
    if log is None:
        return f"{replications} of {seconds(horizon_s)}"
    return "the window of the log" + (
        f", {log.shuffles} shuffles of its names" if log.place == "shuffled" else ", once"
    )


def _serving(scenario: Scenario) -> Iterator[Setting]:
    for service in scenario.serving.services if scenario.serving is not None else ():
        yield from _service(service)


def _lengths(service: ServiceSection) -> Iterator[Setting]:
    """What a file of requests holds, and who comes back."""
    law = service.requests
    source = law if isinstance(law, TraceRequests) else getattr(law, "pairs", None)
    if source is not None:
        trace = source.trace
        failed = f"; {trace.failed_rows:,} failed rows are left out" if trace.failed_rows else ""
        yield f"{service.name}: trace", f"{trace.format}, {trace.requests.count:,} requests{failed}", ""
    sessions = getattr(law, "sessions", None)
    if sessions is not None:
        back = f"back {seconds(sessions.return_mean)} after the {RETURNS[sessions.return_after]}"
        context = f"at most {sessions.max_context:,} tokens with the history"
        yield f"{service.name}: sessions", f"{number(sessions.mean_turns)} turns, {back}, {context}", ""


def _service(service: ServiceSection) -> Sequence[Setting]:
    shape = service.shape()
    if service.load is not None:
        arrivals = f"{percent(service.load)} of capacity"
    else:
        arrivals = f"{number(service.rate)} requests/s" if service.rate is not None else "as in the trace"
    samples = f", {service.samples} answers to each prompt" if service.samples > 1 else ""
    slo = service.slo
    limits = (
        f"first token in {seconds(slo.ttft)}, later ones in {seconds(slo.tpot)} each, for {percent(slo.attainment)}"
    )
    rules = f"{service.batching.kind}, {service.router} router, {service.layout} decode, {service.attention} attention"
    memory = f"weights {service.weights}, KV {service.kv}, {percent(service.utilisation)} of memory used"
    return [
        (f"{service.name}: slices", f"{service.replicas} x {shape} ({shape.chips} chips) of {service.chip}", ""),
        (f"{service.name}: model", f"{service.model}, {memory}", ""),
        (f"{service.name}: requests", f"{service.requests.kind}, {arrivals}{samples}", ""),
        *_lengths(service),
        (f"{service.name}: limits", limits, ""),
        (f"{service.name}: rules", f"{rules}, batch of at most {service.max_batch}", ""),
    ]


def _prices(scenario: Scenario) -> Iterator[Setting]:
    """The prices that carry most of the money, in one line; all of them stand in the report."""
    given = scenario.prices
    parts = (("chip", given.chip), ("switch", given.switch), ("optical end", given.optical_end))
    text = ", ".join(f"{name} {number(value)} USD" for name, value in parts)
    mark = ASSUMPTION if given == PricesSection() else ""
    yield "prices", f"{text}, {given.electricity:g} USD/kWh, over {seconds(given.life)}", mark
