"""Names of the measures that an `expect:` may bound: their unit, and which section of a scenario produces them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from topology.units import Unit

if TYPE_CHECKING:
    from sim.scenario import Scenario
    from sim.scenario_services import ServiceSection


@dataclass(frozen=True, kw_only=True)
class MeasureName:
    """A measure of a run's summary: its unit, the key of a scenario that it `needs`, and where that is found."""

    unit: str
    needs: str
    is_produced: Callable[[Scenario], bool]
    sizes: Callable[[Scenario], tuple[int, ...]]


def _no_sizes(scenario: Scenario) -> tuple[int, ...]:
    return ()


def _availability_sizes(scenario: Scenario) -> tuple[int, ...]:
    return scenario.study.availability.slice_chips if scenario.study.availability is not None else ()


def _delivered_sizes(scenario: Scenario) -> tuple[int, ...]:
    return scenario.study.delivered.slice_chips if scenario.study.delivered is not None else ()


def _of_availability(unit: str = "1", *, light: bool = False, per_size: bool = True) -> MeasureName:
    def is_produced(scenario: Scenario) -> bool:
        return scenario.study.availability is not None and (not light or scenario.failures.ocs is not None)

    needs = "failures.ocs" if light else "study.availability"
    sizes = _availability_sizes if per_size else _no_sizes
    return MeasureName(unit=unit, needs=needs, is_produced=is_produced, sizes=sizes)


def _of_delivered() -> MeasureName:
    return MeasureName(
        unit="1",
        needs="study.delivered",
        is_produced=lambda scenario: scenario.study.delivered is not None,
        sizes=_delivered_sizes,
    )


def _of_promise(unit: str) -> MeasureName:
    return MeasureName(
        unit=unit,
        needs="study.promise",
        is_produced=lambda scenario: scenario.study.promise is not None,
        sizes=_no_sizes,
    )


def _of_service(unit: str) -> MeasureName:
    return MeasureName(
        unit=unit, needs="serving", is_produced=lambda scenario: scenario.serving is not None, sizes=_no_sizes
    )


USES = (
    "drained", "down", "detecting", "evicting", "waiting", "reconfiguring", "preflight", "restoring", "migrating",
    "checkpointing", "held_idle", "useful", "slowed", "lost", "stranded", "spare", "blocked", "fragmented", "empty",
    "unaccounted",
)  # fmt: skip
"""Uses of chip-hours, in the order in which they are accounted (design: measures, section 2)."""

SERVICE_UNITS = {
    "request_mean_s": "s", "tokens_in_time": "1", "slo_attainment": "1", "tokens_per_s": "1/s", "requests_per_s": "1/s",
    "offered_requests_per_s": "1/s", "capacity_requests_per_s": "1/s", "load_of_capacity": "1",
    "replicas_up_mean": "replicas", "all_replicas_up": "1", "ttft_p50_s": "s", "ttft_p99_s": "s", "tpot_p50_s": "s",
    "tpot_p99_s": "s", "itl_p50_s": "s", "itl_p99_s": "s", "itl_p999_s": "s", "end_to_end_p50_s": "s",
    "end_to_end_p99_s": "s", "batch_mean": "sequences", "kv_occupancy": "1", "kv_bytes_per_token": "byte",
    "kv_reserved_share": "1", "kv_internal_share": "1", "kv_external_share": "1",
    "recomputed_tokens_per_request": "tokens", "throughput_back_s": "s", "chip_s_per_token_in_time": "chip s",
    "losses_per_day": "1/day", "tokens_missed_per_loss": "tokens", "requests_caught_per_loss": "requests",
    "tokens_recomputed_per_loss": "tokens", "queue_stable": "1", "queue_backlogged": "1", "queue_overloaded": "1",
    "simulated_share": "1", "goodput_rate_requests_per_s": "1/s", "prefix_hit_share": "1",
    "prefix_hit_share_host": "1", "prefix_hit_share_remote": "1", "host_link_bytes_per_token": "byte",
    "remote_bytes_per_token": "byte", "host_full_share": "1",
    "tokens_per_chip_s": "tokens/s", "on_chip_bytes_per_token": "byte", "hbm_bytes_per_token": "byte",
    "link_bytes_per_token": "byte", "network_bytes_per_token": "byte", "rejected_share": "1",
    "answered_after_disturbance": "1", "answered_undisturbed": "1",
    "timed_out_share": "1", "cancelled_share": "1", "retries_per_request": "retries",
    "drafts_accepted_share": "1", "samples_joined_share": "1", "copied_blocks_per_request": "blocks",
}  # fmt: skip
"""Measures of a service with their units."""

SERVICE_HIGHER = (
    "tokens_in_time", "slo_attainment", "tokens_per_s", "requests_per_s", "capacity_requests_per_s",
    "replicas_up_mean", "all_replicas_up", "queue_stable", "goodput_rate_requests_per_s", "prefix_hit_share",
    "tokens_per_chip_s", "answered_after_disturbance", "answered_undisturbed",
)  # fmt: skip
SERVICE_LOWER = (
    "request_mean_s", "ttft_p50_s", "ttft_p99_s", "tpot_p50_s", "tpot_p99_s", "itl_p50_s", "itl_p99_s",
    "itl_p999_s", "kv_reserved_share", "kv_internal_share", "kv_external_share", "recomputed_tokens_per_request",
    "throughput_back_s", "end_to_end_p50_s", "end_to_end_p99_s", "chip_s_per_token_in_time", "losses_per_day",
    "tokens_missed_per_loss", "requests_caught_per_loss", "tokens_recomputed_per_loss", "queue_backlogged",
    "queue_overloaded", "rejected_share", "timed_out_share", "cancelled_share", "retries_per_request",
    "on_chip_bytes_per_token", "hbm_bytes_per_token", "link_bytes_per_token", "network_bytes_per_token",
)  # fmt: skip
"""Measures of a service by which way is an improvement; for what is not named, neither is."""

CLIENT_MEASURES = ("rejected_share", "timed_out_share", "cancelled_share", "retries_per_request")
"""Measures of services whose clients act, or that turn requests away."""

BEST = "best"
"""In a named combination of swept values: the value with which the measure is best."""

OPERATIONS_MEASURES: dict[str, tuple[str, str | None]] = {
    "goodput": ("1", "higher"), "goodput_scheduling": ("1", "higher"), "goodput_runtime": ("1", "higher"),
    "goodput_program": ("1", "higher"), "utilisation": ("1", "higher"), "fragmentation": ("1", "lower"),
    "ettr": ("1", "higher"), "wait_mean_s": ("s", "lower"), "slowdown_mean": ("1", "lower"),
    "completion": ("1", "higher"), "jobs_arrived": ("jobs", None), "jobs_rejected": ("jobs", "lower"),
    "jobs_finished": ("jobs", "higher"), "job_losses_per_day": ("1/day", "lower"),
    "preemptions_per_day": ("1/day", None), "moves_per_day": ("1/day", None), "circuits_per_day": ("1/day", None),
    "reroute_share": ("1", "lower"), "promise_kept": ("1", "higher"),
}  # fmt: skip
"""Measures of a pod in operation with their units and which way is better (design: measures, section 2)."""

SHARED_POD_MEASURES: dict[str, tuple[str, str | None]] = {
    "pod_tokens_in_time": ("1", "higher"), "pod_replicas_wanted": ("replicas", None),
    "pod_replicas_up": ("replicas", None), "pod_start_mean_s": ("s", "lower"),
    "training_chip_hours_per_day": ("chip h/day", "higher"), "training_useful_share": ("1", "higher"),
    "serving_chip_hours_per_day": ("chip h/day", None), "cubes_moved_per_day": ("1/day", None),
    "made_way_per_day": ("1/day", None), "pod_losses_per_day": ("1/day", "lower"),
    "pod_usd_per_million_tokens": ("USD", "lower"), "training_usd_per_chip_hour": ("USD", "lower"),
}  # fmt: skip
"""Measures of a pod that serves and trains, with their units and which way is better; the first four of each service,
and `pod_usd_per_million_tokens`.

`training_chip_hours_per_day` counts useful chip-hours: what losses undo, slowness and every stage but running are not.
Money: each side pays for the year of the machine by the chip-hours that it holds (an assumption).
"""
GAINS = ("pod_tokens_in_time", "training_chip_hours_per_day")
"""Measures of which the summary tells by how much the shared machine is better than each of the others."""

MONEY_UNITS = {
    "usd_per_year": "USD", "usd_per_useful_chip_hour": "USD", "usd_per_million_tokens_in_time": "USD",
}  # fmt: skip
"""Figures of the flow of cost that the summary has too."""

FLEET_MEASURES: dict[str, tuple[str, str | None]] = {
    "fleet_utilisation": ("1", "higher"), "fleet_useful_share": ("1", "higher"), "fleet_wait_mean_s": ("s", "lower"),
    "fleet_completion": ("1", "higher"), "fleet_jobs_arrived": ("jobs", None), "fleet_jobs_rejected": ("jobs", "lower"),
    "fleet_losses_per_day": ("1/day", "lower"), "fleet_spread": ("1", None),
}  # fmt: skip
"""Measures of several pods behind one queue; `fleet_spread`: utilisation of the fullest pod less that of the emptiest.
"""

QUEUE_MEASURES: dict[str, tuple[str, str | None]] = {
    **{name: FLEET_MEASURES[name] for name in (
        "fleet_wait_mean_s", "fleet_utilisation", "fleet_useful_share", "fleet_completion", "fleet_losses_per_day",
        "fleet_spread",
    )}, "fleet_moves_per_day": ("1/day", None),
}  # fmt: skip
"""Measures by which pods with queues of their own and pods behind one queue are compared; `fleet_moves_per_day`: jobs
that went on on another pod."""

LARGE_JOB_MEASURES: dict[str, tuple[str, str | None]] = {
    "large_job_total_s": ("s", "lower"), "large_job_productive_share": ("1", "higher"),
    "large_job_failures": ("failures", None), "large_job_random": ("failures", None),
    "large_job_systematic": ("failures", None), "large_job_manual_repairs": ("repairs", None),
    "large_job_selections": ("selections", None), "large_job_spares_taken": ("spares", None),
    "large_job_waiting_s": ("s", "lower"),
}  # fmt: skip
"""Measures of one very large job with their units and which way is better."""


class PassMeasure(NamedTuple):
    """A measure of a row of the table `passes`: its unit, which way is better, the column that it is."""

    unit: str
    better: str | None
    column: str


PASS_MEASURES = {
    "step_s": PassMeasure("s", "lower", "step_s"),
    "prefill_s": PassMeasure("s", "lower", "prefill_s"),
    "chip_s_per_token": PassMeasure("chip s", "lower", "chip_s_per_token"),
    "slice_of_pass_chips": PassMeasure("chips", "lower", "chips"),
    "maximum_context_tokens": PassMeasure("tokens", "higher", "maximum_context_tokens"),
    "kv_overtakes_tokens": PassMeasure("tokens", None, "kv_overtakes_tokens"),
}
"""Measures of single passes, by row of the grid."""
ERROR_MEASURES = ("error_mean", "error_worst", "error_mean_beyond_rounding", "error_worst_beyond_rounding")
"""Measures of a group of measured times: sizes of the errors of what is computed."""


def _of_passes(unit: str, part: str) -> MeasureName:
    def is_produced(scenario: Scenario) -> bool:
        return scenario.study.passes is not None and bool(getattr(scenario.study.passes, part))

    return MeasureName(unit=unit, needs=f"study.passes.{part}", is_produced=is_produced, sizes=_no_sizes)


def _of_large_job(unit: str) -> MeasureName:
    return MeasureName(
        unit=unit,
        needs="study.large_job",
        is_produced=lambda scenario: scenario.study.large_job is not None,
        sizes=_no_sizes,
    )


def _of_operations(unit: str) -> MeasureName:
    return MeasureName(
        unit=unit,
        needs="study.operations",
        is_produced=lambda scenario: scenario.study.operations is not None,
        sizes=_no_sizes,
    )


def _always(unit: str) -> MeasureName:
    return MeasureName(unit=unit, needs="study", is_produced=lambda scenario: True, sizes=_no_sizes)


def _of_shared_pod(unit: str) -> MeasureName:
    return MeasureName(
        unit=unit,
        needs="study.shared_pod",
        is_produced=lambda scenario: scenario.study.shared_pod is not None,
        sizes=_no_sizes,
    )


def _of_fleet(unit: str) -> MeasureName:
    return MeasureName(
        unit=unit,
        needs="study.fleet",
        is_produced=lambda scenario: scenario.study.fleet is not None,
        sizes=_no_sizes,
    )


def _over(other: str, unit: str) -> MeasureName:
    def is_produced(scenario: Scenario) -> bool:
        study = scenario.study.shared_pod
        return study is not None and study.machines[0] == "shared" and other in study.machines

    return MeasureName(
        unit=unit, needs=f"study.shared_pod.machines: [shared, {other}]", is_produced=is_produced, sizes=_no_sizes
    )


def _of_chip_hours(unit: str = "chip h") -> MeasureName:
    """Chip-hours come from either study of jobs."""

    def is_produced(scenario: Scenario) -> bool:
        return scenario.study.delivered is not None or scenario.study.operations is not None

    return MeasureName(unit=unit, needs="study.delivered", is_produced=is_produced, sizes=_delivered_sizes)


def _of_some_service(unit: str, needs: str, has: Callable[[ServiceSection], bool]) -> MeasureName:
    """A measure of services that have something."""

    def is_produced(scenario: Scenario) -> bool:
        return scenario.serving is not None and any(map(has, scenario.serving.services))

    return MeasureName(unit=unit, needs=f"serving.services.0.{needs}", is_produced=is_produced, sizes=_no_sizes)


def waste_is_measured(service: ServiceSection) -> bool:
    """Whether KV memory that holds no token is told by reason: in closed form, by passes of one token per sequence."""
    return service.batching.kind != "static" and service.speculation is None


def swaps_or_tiers(service: ServiceSection) -> bool:
    """Whether KV of a service goes over host links."""
    return service.preemption.kind == "swap" or service.tiers is not None


MEASURES: dict[str, MeasureName] = {
    "expected": _of_availability(),
    "guaranteed": _of_availability(),
    "expected_with_light": _of_availability(light=True),
    "cliff_chips": _of_availability("chips", per_size=False),
    "delivered": _of_delivered(),
    **{f"chip_hours_{use}": _of_chip_hours() for use in USES},
    "cubes_for_promise": _of_promise("cubes"),
    **{name: _of_service(unit) for name, unit in SERVICE_UNITS.items()},
    **{
        name: _of_some_service(SERVICE_UNITS[name], "clients: {patience: 30 s}", lambda service: service.has_clients)
        for name in CLIENT_MEASURES
    },
    **{
        name: MeasureName(
            unit="1",
            needs="serving.disturbance",
            is_produced=lambda scenario: scenario.serving is not None and scenario.serving.disturbance is not None,
            sizes=_no_sizes,
        )
        for name in ("answered_after_disturbance", "answered_undisturbed")
    },
    **{
        f"kv_{reason}_share": _of_some_service("1", "batching: {kind: continuous}", waste_is_measured)
        for reason in ("reserved", "internal", "external")
    },
    "prefix_hit_share": _of_some_service(
        "1", "cache: {kind: prefix_sharing}", lambda service: service.cache.kind == "prefix_sharing"
    ),
    "prefix_hit_share_host": _of_some_service("1", "tiers", lambda service: service.tiers is not None),
    "prefix_hit_share_remote": _of_some_service("1", "tiers", lambda service: service.tiers is not None),
    "remote_bytes_per_token": _of_some_service("byte", "tiers", lambda service: service.tiers is not None),
    "host_link_bytes_per_token": _of_some_service("byte", "preemption: {kind: swap}", swaps_or_tiers),
    "host_full_share": _of_some_service(
        "1", "preemption: {kind: swap}", lambda service: service.preemption.kind == "swap"
    ),
    "drafts_accepted_share": _of_some_service("1", "speculation", lambda service: service.speculation is not None),
    "samples_joined_share": _of_some_service("1", "samples: 4", lambda service: service.samples > 1),
    "copied_blocks_per_request": _of_some_service("blocks", "samples: 4", lambda service: service.samples > 1),
    "goodput_rate_requests_per_s": MeasureName(
        unit="1/s",
        needs="serving.load_curve",
        is_produced=lambda scenario: scenario.serving is not None and scenario.serving.load_curve is not None,
        sizes=_no_sizes,
    ),
    "usd_per_year": _always("USD"),
    "usd_per_useful_chip_hour": _of_chip_hours("USD"),
    "usd_per_million_tokens_in_time": _of_service("USD"),
    **{name: _of_large_job(unit) for name, (unit, _) in LARGE_JOB_MEASURES.items()},
    **{name: _of_passes("1", "tables") for name in ERROR_MEASURES},
    **{name: _of_passes(key.unit, "grid") for name, key in PASS_MEASURES.items()},
    **{name: _of_operations(unit) for name, (unit, _) in OPERATIONS_MEASURES.items()},
    **{name: _of_fleet(unit) for name, (unit, _) in FLEET_MEASURES.items()},
    **{name: _of_shared_pod(unit) for name, (unit, _) in SHARED_POD_MEASURES.items()},
    **{
        f"{name}_over_{other}": _over(other, SHARED_POD_MEASURES[name][0])
        for name in GAINS
        for other in ("fixed", "fixed_equal_money")
    },
}
"""Every measure by name."""


def bound_unit(measure: str) -> Unit:
    """How a bound on `measure` is written: with a unit for times and rates, bare for counts, either way for shares."""
    unit = MEASURES[measure].unit
    if unit == "1":
        return Unit("1", low=0.0, high=1.0)
    return Unit(unit) if unit in ("s", "1/s") else Unit("1")
