"""The four flows of a sweep point, a row per figure: information, resource, fault, cost (design: measures, section 4).

Everything is taken from what the studies of the point have measured; a figure whose study is absent stays blank and
says which study would know it. Rows of the flow `prices` hold what money was counted with, mark and source beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sim.build import Setup
from sim.histories import US_PER_S
from sim.metrics.uses import Use
from sim.prices import PRICE_SOURCES, PRICE_UNITS, S_PER_YEAR, STATIC, MachineCost, machine_cost
from sim.studies.delivered import DeliveredSample
from sim.trace import Stage
from topology.provenance import Mark

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]

MEMORY_BOUND = ("weights", "own_kv_reads", "others_kv_reads")
"""Categories of the ledger of requests in which the memory of the chips is what is waited for."""
BYTES_BY_LEVEL = ("on_chip_bytes_per_token", "hbm_bytes_per_token", "link_bytes_per_token", "network_bytes_per_token")
"""Measures of services: what a token moves, level by level."""
TAKEN_BY_FAILURES = (
    Use.DOWN, Use.STRANDED, Use.LOST, Use.DETECTING, Use.EVICTING, Use.WAITING, Use.RECONFIGURING, Use.PREFLIGHT,
    Use.RESTORING,
)  # fmt: skip
"""Uses of chip-hours that would be others if nothing failed; what a job waits for its first slice is among them."""
RECOVERING = (Stage.EVICTING, Stage.WAITING, Stage.RECONFIGURING, Stage.PREFLIGHT, Stage.RESTORING)
MILLION = 1e6
MARK_WORDS = {
    Mark.VERIFIED: "published", Mark.SECONDARY: "reported", Mark.DERIVED: "derived", Mark.ASSUMED: "assumption"
}  # fmt: skip
NO_SERVING = "the scenario has no `serving`"
NO_OPERATIONS = "the scenario has no `study.operations`"
NO_JOBS = "the scenario has neither `study.delivered` nor `study.operations`"


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What failed and what it took, over some replications: counts, seconds over all losses, hours of chips."""

    failures: float
    losses: float
    chips_hit: float
    detect_s: float
    recover_s: float
    chip_hours: float
    days: float


@dataclass(frozen=True, kw_only=True)
class _Point:
    """The rows that the studies of one point have made, and what a machine like it costs."""

    setup: Setup
    rows: Rows
    delivered: Mapping[int, Sequence[DeliveredSample]]
    cost: MachineCost = field(init=False)

    def __post_init__(self) -> None:
        scenario, setup = self.setup.scenario, self.setup
        cost = machine_cost(scenario.prices, setup.pod, setup.fabric, scenario.repair.crews)
        object.__setattr__(self, "cost", cost)

    def services(self) -> list[str]:
        """Names of the services, in order."""
        return list(dict.fromkeys(str(row["service"]) for row in self.rows.get("service", ())))

    def service_row(self, service: str, measure: str) -> Row | None:
        """The row of one measure of a service."""
        rows = self.rows.get("service", ())
        return next((row for row in rows if row["service"] == service and row["measure"] == measure), None)


def flow_rows(
    setup: Setup, rows: Rows, delivered: Mapping[int, Sequence[DeliveredSample]], host_availability: float
) -> list[Row]:
    """Rows of the table `flows` of one sweep point, from the rows of its other tables."""
    point = _Point(setup=setup, rows=rows, delivered=delivered)
    place = {"fabric": setup.fabric.value, "host_availability": host_availability}
    flows = {
        "information": _information,
        "resource": _resource,
        "fault": _fault,
        "cost": _cost,
        "prices": _prices,
    }
    return [place | {"flow": name} | row for name, made in flows.items() for row in made(point)]


def _row(measure: str, unit: str, value: float | None, note: str = "", **others: Any) -> Row:
    row: Row = {"slice_chips": None, "service": None, "measure": measure, "unit": unit, "value": value}
    return row | {"ci_low": None, "ci_high": None, "note": note} | others


# Information: what of a request's time waits for memory, and how many bytes a token moves -----------------------------


def _information(point: _Point) -> Iterator[Row]:
    services = point.services()
    if not services:
        yield _row("memory_bound_share", "1", None, NO_SERVING)
    for service in services:
        rows = [r for r in point.rows.get("ledger", ()) if r["service"] == service and r["scope"] == "all"]
        share = sum(row["share"] for row in rows if row["category"] in MEMORY_BOUND) if rows else None
        note = "reading weights, own and others' KV cache" if rows else "no replica is ever up"
        yield _row("memory_bound_share", "1", share, note, service=service)
        for measure in BYTES_BY_LEVEL:
            found = point.service_row(service, measure)
            if found is not None:
                bounds = {name: found[name] for name in ("ci_low", "ci_high")}
                yield _row(measure, "byte", found["value"], "per token of an answer", service=service, **bounds)


# Resource: from the arrival of a job to its slice, and what is free but of no use -------------------------------------


def _resource(point: _Point) -> Iterator[Row]:
    for measure, unit, shown in (("wait_mean_s", "s", "arrival_to_slice_s"), ("fragmentation", "1", "fragmentation")):
        row = next((row for row in point.rows.get("operations", ()) if row["measure"] == measure), None)
        if row is None:
            yield _row(shown, unit, None, NO_OPERATIONS)
            continue
        note = "mean over jobs" if unit == "s" else "of the free chip-time of sound cubes, while a job waits"
        yield _row(shown, unit, row["value"], note, ci_low=row["ci_low"], ci_high=row["ci_high"])
    for row in point.rows.get("chip_hours", ()):
        if row["use"] == Use.FRAGMENTED:
            note = "slices of this size in demand without end"
            yield _row("chips_fragmented_share", "1", row["share"], note, slice_chips=row["slice_chips"])


# Fault: how far one reaches, how soon it is known, how long the way back is, what it takes ----------------------------


def _fault(point: _Point) -> Iterator[Row]:
    found: list[tuple[int | None, Faults | None]] = [(None, _faults_of_operations(point))]
    found += [(chips, _faults_of_delivered(point, own)) for chips, own in point.delivered.items()]
    known = [(chips, faults) for chips, faults in found if faults is not None]
    if not known:
        yield from (_row(name, unit, None, NO_JOBS) for name, unit, _ in _FAULT_FIGURES)
    for chips, faults in known:
        yield from _fault_rows(faults, chips)


_FAULT_FIGURES = (
    ("failures_per_day", "1/day", ""),
    ("blast_radius_chips", "chips", "chips of the jobs that one failure stops, those that stop none among them"),
    ("detect_s", "s", "per loss of a running job"),
    ("recover_s", "s", "per loss: evicted, waiting, circuits, tests, restored"),
    ("chip_hours_lost_per_failure", "chip h", "down, stranded, recovering, undone"),
)


def _fault_rows(faults: Faults, chips: int | None) -> Iterator[Row]:
    by_failure, by_loss = (1.0 / count if count else math.nan for count in (faults.failures, faults.losses))
    values = (
        faults.failures / faults.days,
        faults.chips_hit * by_failure,
        faults.detect_s * by_loss,
        faults.recover_s * by_loss,
        faults.chip_hours * by_failure,
    )
    for (measure, unit, note), value in zip(_FAULT_FIGURES, values, strict=True):
        blank = math.isnan(value)
        why = "nothing failed" if not faults.failures else "no running job was lost"
        yield _row(measure, unit, None if blank else value, why if blank else note, slice_chips=chips)


def _faults_of_operations(point: _Point) -> Faults | None:
    """From the tables of the pod in operation."""
    uses = point.rows.get("operations_chip_hours", ())
    if not uses:
        return None
    felt, stages = point.rows.get("failures_felt", ()), point.rows.get("recovery_stages", ())
    losses = sum(row["jobs_lost"] for row in felt)
    per_loss = {str(row["stage"]): float(row["seconds_per_loss"]) for row in stages}
    return Faults(
        failures=sum(row["failures"] for row in felt),
        losses=losses,
        chips_hit=sum(row["failures"] * row["chips_per_failure"] for row in felt),
        detect_s=losses * per_loss.get(Stage.DETECTING, 0.0),
        recover_s=losses * sum(per_loss.get(stage, 0.0) for stage in RECOVERING),
        chip_hours=sum(row["chip_hours"] for row in uses if row["use"] in TAKEN_BY_FAILURES),
        days=sum(row["chip_hours"] for row in uses) / (24.0 * point.setup.pod.chips),
    )


def _faults_of_delivered(point: _Point, samples: Sequence[DeliveredSample]) -> Faults:
    """Sums over the replications of slices in demand without end."""
    blast = [one for sample in samples for one in sample.blast.values()]
    chip_us = {use: sum(sample.chip_us[use] for sample in samples) for use in samples[0].chip_us}
    recovery_us = {stage: sum(sample.recovery_us[stage] for sample in samples) for stage in Stage}
    hours = 3600.0 * US_PER_S
    return Faults(
        failures=sum(one.failures for one in blast),
        losses=sum(one.jobs for one in blast),
        chips_hit=sum(one.chips for one in blast),
        detect_s=recovery_us[Stage.DETECTING] / US_PER_S,
        recover_s=sum(recovery_us[stage] for stage in RECOVERING) / US_PER_S,
        chip_hours=sum(chip_us[use.value] for use in TAKEN_BY_FAILURES) / hours,
        days=sum(chip_us.values()) / (24.0 * hours * point.setup.pod.chips),
    )


# Cost: capital, power, and what a useful hour and a million tokens in time come to ------------------------------------


def _cost(point: _Point) -> Iterator[Row]:
    cost, crews = point.cost, point.setup.scenario.repair.crews
    links = "cabled ends between cubes" if point.setup.fabric in STATIC else "switches, optical ends, fibres"
    links = links if cost.links_usd else "nothing joins cubes"
    yield _row("capital_usd", "USD", cost.capital_usd, "the pod")
    yield _row("links_capital_share", "1", cost.links_share, links)
    yield _row("power_w", "W", cost.power_w, "mean, without the hall")
    yield _row("links_power_share", "1", cost.links_power_share, links)
    counted = "crews are without limit and not counted" if crews is None else f"{crews} crews among it"
    yield _row("usd_per_year", "USD", cost.usd_per_year, f"capital over its life, electricity; {counted}")
    yield from _useful_hours(point)
    services = point.services()
    if not services:
        yield _row("usd_per_million_tokens_in_time", "USD", None, NO_SERVING)
    for service in services:
        yield from _tokens(point, service)


def _useful_hours(point: _Point) -> Iterator[Row]:
    """Money per chip-hour of running that was kept, by study and slice size."""
    uses = [*point.rows.get("chip_hours", ()), *point.rows.get("operations_chip_hours", ())]
    if not uses:
        yield _row("usd_per_useful_chip_hour", "USD", None, NO_JOBS)
    for row in uses:
        if row["use"] == Use.USEFUL:
            share, chips = float(row["share"]), row.get("slice_chips")
            value = point.cost.usd_per_chip_hour / share if share > 0 else None
            note = "jobs of the mix" if chips is None else "slices of this size in demand without end"
            yield _row(
                "usd_per_useful_chip_hour", "USD", value, note if share > 0 else "nothing ran", slice_chips=chips
            )


def _tokens(point: _Point, service: str) -> Iterator[Row]:
    """Chip-seconds and money of a million tokens in time; their interval is that of the share of tokens in time."""
    per_token, in_time = (point.service_row(service, name) for name in ("chip_s_per_token_in_time", "tokens_in_time"))
    assert per_token is not None
    assert in_time is not None
    chip_s = MILLION * float(per_token["value"])
    if not math.isfinite(chip_s):
        for measure, unit in (
            ("chip_s_per_million_tokens_in_time", "chip s"),
            ("usd_per_million_tokens_in_time", "USD"),
        ):
            yield _row(measure, unit, None, "no token is in time", service=service)
        return
    usd_per_chip_s = point.cost.usd_per_year / S_PER_YEAR * paid_chips_share(point.setup)
    shared = "its own chips" if point.setup.scenario.jobs is not None else "the whole pod, shared by chips"
    for measure, unit, scale, note in (
        ("chip_s_per_million_tokens_in_time", "chip s", 1.0, "chips of its replicas"),
        ("usd_per_million_tokens_in_time", "USD", usd_per_chip_s, f"{shared}, up or down"),
    ):
        bounds = [_inverse(in_time["value"], in_time[name]) for name in ("ci_high", "ci_low")]
        value = scale * chip_s
        low, high = (None if bound is None else value * bound for bound in bounds)
        yield _row(measure, unit, value, note, service=service, ci_low=low, ci_high=high)


def paid_chips_share(setup: Setup) -> float:
    """Pods that one chip of a service pays for: where nothing but services is on the pod, they pay for all of it."""
    scenario = setup.scenario
    assert scenario.serving is not None
    served = sum(service.replicas * service.shape().chips for service in scenario.serving.services)
    return 1.0 / (setup.pod.chips if scenario.jobs is not None else served)


def _inverse(value: float, bound: float | None) -> float | None:
    """By how much a cost per token is higher at a bound of the share of tokens in time."""
    return None if bound is None or math.isnan(bound) or bound <= 0 else value / bound


def _prices(point: _Point) -> Iterator[Row]:
    """What money was counted with: a price that is not the default is the user's own."""
    given = point.setup.scenario.prices
    defaults = type(given)()
    for source in PRICE_SOURCES:
        value = getattr(given, source.field)
        own = value != getattr(defaults, source.field)
        note = "yours" if own else f"{MARK_WORDS[source.mark]}: {source.text}"
        yield _row(source.field, PRICE_UNITS[source.field], value, note)
