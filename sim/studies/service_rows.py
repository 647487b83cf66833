"""Rows of the tables about services: windows weighted by the time that a fabric keeps each number of replicas up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.build import Setup
from sim.histories import US_PER_S
from sim.measure_names import SERVICE_HIGHER, SERVICE_LOWER, SERVICE_UNITS, swaps_or_tiers, waste_is_measured
from sim.metrics.intervals import Estimate, mean_estimate
from sim.metrics.replicas import ReplicaTimes
from sim.studies.load_rows import rows_of_load
from sim.studies.serving import ServiceOutcome, ServingOutcome
from sim.studies.token_rows import rows_of_tokens, token_measures
from sim.studies.windows import SteadyWindow
from topology.fabric import Fabric
from workloads.serving import fields
from workloads.serving.fields import LEDGER
from workloads.serving.logbins import percentile_s
from workloads.serving.measures import QueueVerdict, ServiceMeasures

Row = dict[str, Any]
Floats = NDArray[np.float64]

PARTS_OF_WEIGHT = 1_000_000_000
"""Weights of histograms in whole parts, so that merged histograms stay integers."""
WAITS_FOR_REPAIR = (Fabric.STATIC_ALIGNED, Fabric.STATIC_CONTIGUOUS)
S_PER_DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Weighted:
    """One service on one fabric: `weights` (replications, replicas + 1) are shares of time.

    `history_s` is the length of all histories together, infinite where there are none.
    """

    outcome: ServiceOutcome
    weights: Floats
    losses_per_s: Estimate
    waits_for_repair: bool
    history_s: float

    @property
    def mean_weights(self) -> Floats:
        """Share of time with m = 0 .. wanted replicas up."""
        return np.asarray(self.weights.mean(axis=0))

    def mean_of(self, of: Callable[[SteadyWindow], float], nothing: float = 0.0) -> Estimate:
        """A linear measure over the horizon: half-widths of weights and of windows are added in quadrature."""
        values = self.outcome.values(of, nothing)
        by_history = mean_estimate(self.weights @ values.mean(axis=0))
        by_window = mean_estimate(values @ self.mean_weights)
        half = math.hypot(
            *(0.0 if math.isnan(part.half_width) else part.half_width for part in (by_history, by_window))
        )
        return _estimate(by_history.value, half, max(by_history.n, by_window.n))

    def missed_share(self) -> Estimate:
        """Tokens in time that losses take beside the steady windows, as a share of the tokens offered."""
        losses = self.outcome.losses
        if not losses:
            return Estimate(value=0.0)
        let_in = self.outcome.let_in_per_s(self.outcome.section.replicas) / self.outcome.rate_per_s
        missed = mean_estimate(
            [let_in * self._missed(index) / losses[index].offered_tokens_per_s for index in range(len(losses))]
        )
        rate = self.losses_per_s
        parts = (rate.value * _half(missed), _half(rate) * missed.value)
        return _estimate(rate.value * missed.value, math.hypot(*parts), missed.n)

    def _missed(self, index: int) -> int:
        loss = self.outcome.losses[index]
        return loss.tokens_missed_beside_repair if self.waits_for_repair else loss.tokens_missed_with_spare

    def missed_per_loss(self) -> Estimate:
        """Tokens in time that one loss takes beside the steady windows."""
        return mean_estimate([self._missed(index) for index in range(len(self.outcome.losses))])

    def percentile(self, histogram: int, share: float) -> Estimate:
        """A percentile over requests of all windows by their weights; the interval is over repetitions."""
        steady = self.outcome.steady
        repetitions = len(steady[0])
        pooled = [self.outcome.pooled(m) for m in range(1, len(steady) + 1)]
        value = self._percentile(histogram, share, pooled)
        if repetitions < 2 or not math.isfinite(value):
            return Estimate(value=value, n=repetitions)
        singles = [
            self._percentile(histogram, share, [windows[j].measures for windows in steady]) for j in range(repetitions)
        ]
        if not all(map(math.isfinite, singles)):
            return Estimate(value=value, n=repetitions)
        return _estimate(value, _half(mean_estimate(singles)), repetitions)

    def _percentile(self, histogram: int, share: float, measures: Sequence[ServiceMeasures]) -> float:
        """Merge whole parts of the histograms; requests that meet no replica never get a first token."""
        is_ttft = histogram == fields.H_TTFT
        censored = int(self.mean_weights[0] * PARTS_OF_WEIGHT) if is_ttft else 0
        merged: NDArray[np.int64] | None = None
        for weight, part in zip(self.mean_weights[1:], measures, strict=True):
            counts, open_ended = part.histograms[histogram], part.count("censored_ttft") if is_ttft else 0
            total = int(counts.sum()) + open_ended
            if total == 0 or weight == 0.0:
                continue
            scaled = (counts * (float(weight) * PARTS_OF_WEIGHT / total)).astype(np.int64)
            censored += int(open_ended * float(weight) * PARTS_OF_WEIGHT / total)
            merged = scaled if merged is None else merged + scaled
        if merged is None:
            return math.inf if censored else math.nan
        return float(percentile_s(merged, share, censored))


def _estimate(value: float, half: float, n: int) -> Estimate:
    if half == 0.0:
        return Estimate(value=value, n=n)
    return Estimate(value=value, ci_low=value - half, ci_high=value + half, n=n)


def _half(estimate: Estimate) -> float:
    return 0.0 if math.isnan(estimate.half_width) else estimate.half_width


def weighted_services(setup: Setup, outcome: ServingOutcome, replicas: ReplicaTimes | None) -> list[Weighted]:
    """Every service with its weights on the fabric of `setup`; without histories all replicas are up all the time."""
    found = []
    for index, service in enumerate(outcome.services):
        if replicas is None:
            weights = np.zeros((1, service.section.replicas + 1))
            weights[0, -1] = 1.0
            losses = Estimate(value=0.0)
        else:
            times = replicas.of_service(index)
            weights = times / times.sum(axis=1, keepdims=True)
            losses = replicas.losses_per_s(index)
        found.append(
            Weighted(
                outcome=service,
                weights=weights,
                losses_per_s=losses,
                waits_for_repair=setup.fabric in WAITS_FOR_REPAIR,
                history_s=math.inf if replicas is None else float(replicas.time_us.sum()) / US_PER_S,
            )
        )
    return found


def serving_rows(
    setup: Setup, outcome: ServingOutcome, replicas: ReplicaTimes | None, host_availability: float
) -> dict[str, list[Row]]:
    """Rows of the tables service, ledger, slice_sizes, failure_story and of the load for one sweep point."""
    common: Row = {"fabric": setup.fabric.value, "host_availability": host_availability}
    rows: dict[str, list[Row]] = {"service": [], "ledger": [], "slice_sizes": [], "failure_story": []}
    for weighted in weighted_services(setup, outcome, replicas):
        named = common | {"service": weighted.outcome.section.name}
        rows["service"] += [named | row for row in _measure_rows(weighted)]
        rows["ledger"] += [named | row for row in _ledger_rows(setup, weighted)]
        rows["slice_sizes"] += slice_size_rows(weighted.outcome)
        rows["failure_story"] += story_rows(weighted.outcome)
        if weighted.outcome.disturbance is not None:
            rows.setdefault("disturbance", []).extend(weighted.outcome.disturbance.rows(named["service"]))
        for name, more in (rows_of_load(weighted.outcome) | rows_of_tokens(weighted.outcome)).items():
            rows.setdefault(name, []).extend(more)
    return rows


def service_measures(weighted: Weighted) -> dict[str, Estimate]:
    """Every measure of one service by name."""
    outcome, section = weighted.outcome, weighted.outcome.section
    in_time, missed = weighted.mean_of(lambda window: window.tokens_in_time), weighted.missed_share()
    in_time = _estimate(max(0.0, in_time.value - missed.value), math.hypot(_half(in_time), _half(missed)), in_time.n)
    capacity = section.replicas * outcome.own.capacity_per_s
    up = np.arange(section.replicas + 1, dtype=np.float64)
    found = {
        "tokens_in_time": in_time,
        "slo_attainment": weighted.mean_of(lambda window: window.attainment),
        "tokens_per_s": weighted.mean_of(lambda window: window.tokens_per_s),
        "requests_per_s": weighted.mean_of(lambda window: window.requests_per_s),
        "offered_requests_per_s": Estimate(value=outcome.rate_per_s),
        "capacity_requests_per_s": Estimate(value=capacity),
        "load_of_capacity": Estimate(value=outcome.rate_per_s / (section.replicas * outcome.own.saturated_per_s)),
        "replicas_up_mean": mean_estimate(weighted.weights @ up),
        "all_replicas_up": mean_estimate(weighted.weights[:, -1]),
        "batch_mean": weighted.mean_of(lambda window: window.measures.batch_mean),
        "kv_occupancy": weighted.mean_of(lambda window: window.measures.kv_occupancy),
        "kv_bytes_per_token": Estimate(value=outcome.steady[0][0].measures.kv_bytes_per_token),
        "recomputed_tokens_per_request": weighted.mean_of(lambda window: window.recomputed_per_request),
        "request_mean_s": _request_mean(weighted),
    }
    for name, histogram in (
        ("ttft", fields.H_TTFT),
        ("tpot", fields.H_TPOT),
        ("itl", fields.H_ITL),
        ("end_to_end", fields.H_END_TO_END),
    ):
        for percent in (50, 99):
            found[f"{name}_p{percent}_s"] = weighted.percentile(histogram, percent / 100)
    found["itl_p999_s"] = weighted.percentile(fields.H_ITL, 0.999)
    offered = outcome.pooled(section.replicas)
    offered_tokens_per_s = outcome.rate_per_s * offered.count("offered_tokens") / max(offered.offered, 1)
    chips = section.replicas * section.shape().chips
    tokens_s = offered_tokens_per_s * in_time.value
    found["chip_s_per_token_in_time"] = Estimate(value=chips / tokens_s if tokens_s > 0 else math.inf)
    found["tokens_per_chip_s"] = weighted.mean_of(lambda window: window.tokens_per_s / chips)
    found |= token_measures(outcome)
    found |= _client_measures(weighted)
    found |= _loss_measures(weighted)
    for verdict in QueueVerdict:
        found[f"queue_{verdict.value}"] = Estimate(value=_verdict_share(weighted, verdict))
    simulated_s = sum(window.measures.window_ns for windows in outcome.steady for window in windows) * 1e-9
    found["simulated_share"] = Estimate(value=simulated_s / weighted.history_s)
    if section.cache.kind == "prefix_sharing":
        found["prefix_hit_share"] = weighted.mean_of(lambda window: window.measures.prefix_hit_share)
    found |= _memory_measures(weighted)
    if outcome.disturbance is not None:
        found |= outcome.disturbance.measures()
    if outcome.curve.goodput_rate is not None:
        found["goodput_rate_requests_per_s"] = outcome.curve.goodput_rate
    return found


def _memory_measures(weighted: Weighted) -> dict[str, Estimate]:
    """KV memory that holds no token; KV that moves between memories, where a service lets it."""
    section = weighted.outcome.section
    found: dict[str, Estimate] = {}
    if waste_is_measured(section):
        for reason in ("reserved", "internal", "external"):
            found[f"kv_{reason}_share"] = weighted.mean_of(partial(_waste, reason))
    if section.tiers is not None:
        found["prefix_hit_share_host"] = weighted.mean_of(lambda window: window.measures.lower_hit_share("host"))
        found["prefix_hit_share_remote"] = weighted.mean_of(lambda window: window.measures.lower_hit_share("remote"))
        found["remote_bytes_per_token"] = weighted.mean_of(lambda window: window.measures.remote_bytes_per_token)
    if section.preemption.kind == "swap":
        found["host_full_share"] = weighted.mean_of(lambda window: window.measures.host_full_share)
    if section.speculation is not None:
        found["drafts_accepted_share"] = weighted.mean_of(lambda window: window.measures.drafts_accepted_share)
    if section.samples > 1:
        found["samples_joined_share"] = weighted.mean_of(lambda window: window.measures.samples_joined_share)
        found["copied_blocks_per_request"] = weighted.mean_of(lambda window: window.measures.copied_blocks_per_request)
    if swaps_or_tiers(section):
        found["host_link_bytes_per_token"] = weighted.mean_of(lambda window: window.measures.host_link_bytes_per_token)
    return found


def _waste(reason: str, window: SteadyWindow) -> float:
    return window.measures.kv_waste[reason]


def _client_measures(weighted: Weighted) -> dict[str, Estimate]:
    """What became of requests whose clients do not wait for ever, or that a limit turns away, of those offered."""
    if not weighted.outcome.section.has_clients:
        return {}

    def per_offered(count: Callable[[ServiceMeasures], int]) -> Estimate:
        return weighted.mean_of(lambda window: count(window.measures) / max(window.measures.offered, 1))

    return {
        "rejected_share": per_offered(lambda measures: measures.count("rejected")),
        "timed_out_share": per_offered(lambda measures: measures.count("timed_out")),
        "cancelled_share": per_offered(lambda measures: measures.count("cancelled")),
        "retries_per_request": per_offered(lambda measures: measures.count("attempts") - measures.requests_in_ledger),
    }


def _request_mean(weighted: Weighted) -> Estimate:
    """Mean seconds of a request while a replica is up: the sum of the ledger."""
    up = 1.0 - float(weighted.mean_weights[0])
    if up <= 0:
        return Estimate(value=math.nan)
    whole = weighted.mean_of(lambda window: sum(window.measures.ledger_s_per_request().values()))
    return _estimate(whole.value / up, _half(whole) / up, whole.n)


def _loss_measures(weighted: Weighted) -> dict[str, Estimate]:
    rate, losses = weighted.losses_per_s, weighted.outcome.losses
    found = {"losses_per_day": _estimate(rate.value * S_PER_DAY, _half(rate) * S_PER_DAY, rate.n)}
    if losses:
        found["tokens_missed_per_loss"] = weighted.missed_per_loss()
        found["requests_caught_per_loss"] = mean_estimate([loss.caught for loss in losses])
        if not weighted.waits_for_repair:
            found["throughput_back_s"] = mean_estimate([loss.throughput_back_s for loss in losses])
        found["tokens_recomputed_per_loss"] = mean_estimate([loss.recomputed_tokens for loss in losses])
    return found


def _verdict_share(weighted: Weighted, verdict: QueueVerdict) -> float:
    """Share of time in states whose queue has this verdict; with no replica up the queue only grows."""
    share = float(weighted.mean_weights[0]) if verdict is QueueVerdict.OVERLOADED else 0.0
    for m, weight in enumerate(weighted.mean_weights[1:], start=1):
        share += float(weight) if _verdict_of(weighted.outcome, m) is verdict else 0.0
    return share


def _verdict_of(outcome: ServiceOutcome, replicas: int) -> QueueVerdict:
    """Verdict of the queue with so many replicas up: overloaded where more arrives than they could ever serve."""
    if outcome.let_in_per_s(replicas) > replicas * outcome.own.saturated_per_s:
        return QueueVerdict.OVERLOADED
    return outcome.pooled(replicas).verdict


def _measure_rows(weighted: Weighted) -> list[Row]:
    rows: list[Row] = []
    for measure, estimate in service_measures(weighted).items():
        better = "higher" if measure in SERVICE_HIGHER else "lower" if measure in SERVICE_LOWER else None
        bounds = [None if math.isnan(bound) else bound for bound in (estimate.ci_low, estimate.ci_high)]
        row: Row = {"measure": measure, "unit": SERVICE_UNITS[measure], "value": estimate.value, "n": estimate.n}
        rows.append(row | {"ci_low": bounds[0], "ci_high": bounds[1], "better": better})
    return rows


def _ledger_rows(setup: Setup, weighted: Weighted) -> list[Row]:
    """Mean seconds of a request by category while a replica is up; and of those caught in the failure told."""
    weights = weighted.mean_weights[1:]
    rows: list[Row] = []
    if weights.sum() > 0:
        parts = [weighted.outcome.pooled(m).ledger_s_per_request() for m in range(1, len(weights) + 1)]
        total = {
            name: sum(float(weight) * part[name] for weight, part in zip(weights, parts, strict=True)) / weights.sum()
            for name in LEDGER
        }
        rows += _scope_rows("all", total)
    for story in weighted.outcome.stories:
        if story.fabric is setup.fabric and story.caught:
            rows += _scope_rows("caught", story.caught_ledger_s)
    return rows


def _scope_rows(scope: str, seconds: dict[str, float]) -> list[Row]:
    whole = sum(seconds.values())
    return [
        {
            "scope": scope,
            "category": category,
            "seconds_per_request": value,
            "share": value / whole if whole > 0 else 0.0,
        }
        for category, value in seconds.items()
    ]


def slice_size_rows(outcome: ServiceOutcome) -> list[Row]:
    """Rows of the table `slice_sizes`: one replica alone on each shape of the ladder."""
    rows: list[Row] = []
    for calibration, measures in zip(outcome.ladder, outcome.ladder_windows, strict=True):
        row: Row = {
            "service": outcome.section.name,
            "shape": calibration.shape,
            "chips": calibration.chips,
            "fits": calibration.fits,
            "meets": calibration.meets,
        }
        latencies: tuple[float | None, ...] = (None, None, None)
        per_token: float | None = None
        if measures is not None:
            latencies = (measures.ttft_s(0.5), measures.ttft_s(0.99), measures.tpot_s(0.5))
            # without limits: what a token costs when requests never run out, whatever their latency
            tokens_s = calibration.saturated_per_s * measures.count("offered_tokens") / max(measures.offered, 1)
            per_token = calibration.chips / tokens_s if tokens_s > 0 else None
        capacity = calibration.capacity_per_s if calibration.fits else None
        row |= dict(zip(("ttft_p50_s", "ttft_p99_s", "tpot_p50_s"), latencies, strict=True))
        row |= {
            "capacity_requests_per_s": capacity,
            "requests_per_s_per_1024_chips": None if capacity is None else capacity * 1024 / calibration.chips,
            "chip_s_per_token": per_token,
        }
        rows.append(row)
    return rows


def story_rows(outcome: ServiceOutcome) -> list[Row]:
    """Rows of the table `failure_story`: second by second on both fabrics."""
    rows: list[Row] = []
    for story in outcome.stories:
        before_us = 0
        for look in story.looks:
            rows.append(
                {
                    "fabric": story.fabric.value,
                    "service": story.service,
                    "t_s": (before_us - story.lost_us) / US_PER_S,
                    "tokens_per_s": look.tokens / ((look.time_us - before_us) / US_PER_S),
                    "stage": look.stage.value,
                    "replicas_up": look.replicas_up,
                }
            )
            before_us = look.time_us
    return rows
