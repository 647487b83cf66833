"""Rows of the tables about the load of a service: its single requests, and what happens as they come faster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sim.studies.load_curve import CurvePoint
from sim.studies.serving import ServiceOutcome
from workloads.requests import Requests
from workloads.serving.measures import QueueVerdict, ServiceMeasures

Row = dict[str, Any]
STATUS = ("unfinished", "completed", "unfinished", "refused", "failed", "rejected", "timed_out", "cancelled")
"""Of the kernel's numbers; whoever is still in the system at the end is unfinished."""


SHARES = (0.01, *(round(0.05 * step, 2) for step in range(1, 20)), 0.975, 0.99, 0.995, 0.999)
"""Shares at which distributions of latencies are told."""


def rows_of_load(outcome: ServiceOutcome) -> dict[str, list[Row]]:
    """Rows of one service by table."""
    return {
        "requests": request_rows(outcome),
        "load_curve": [_curve_row(outcome, point) for point in outcome.curve.points],
        "latencies": latency_rows(outcome),
    }


def latency_rows(outcome: ServiceOutcome) -> list[Row]:
    """Rows of the table `latencies`: of the load curve, without one of the service at its own load, all replicas up."""
    curve = [(point.load, point.pooled) for point in outcome.curve.points if not point.is_knee]
    if not curve:
        capacity = outcome.section.replicas * outcome.own.capacity_per_s
        load = outcome.rate_per_s / capacity if capacity > 0 else math.nan
        curve = [(load, outcome.pooled(outcome.section.replicas))]
    return [row for load, pooled in curve for row in _latency_rows(outcome, load, pooled)]


def _curve_row(outcome: ServiceOutcome, point: CurvePoint) -> Row:
    attainment, pooled = point.attainment, point.pooled
    tokens_per_s = point.rate_per_s * pooled.count("in_time_tokens") / max(pooled.offered, 1)
    ends = (attainment.ci_low, attainment.ci_high)
    bounds = [None if math.isnan(end) else min(max(end, 0.0), 1.0) for end in ends]  # a share
    most_per_s = outcome.section.replicas * outcome.own.saturated_per_s
    queue = QueueVerdict.OVERLOADED if point.rate_per_s > most_per_s else pooled.verdict
    return {
        "service": outcome.section.name,
        "load": point.load,
        "offered_requests_per_s": point.rate_per_s,
        "slo_attainment": attainment.value,
        "ci_low": bounds[0],
        "ci_high": bounds[1],
        "goodput_requests_per_s": point.rate_per_s * attainment.value,
        "tokens_in_time_per_s": tokens_per_s,
        "ttft_p50_s": pooled.ttft_s(0.5),
        "ttft_p99_s": pooled.ttft_s(0.99),
        "tpot_p50_s": pooled.tpot_s(0.5),
        "tpot_p99_s": pooled.tpot_s(0.99),
        "itl_p99_s": pooled.itl_s(0.99),
        "queue": queue.value,
        "is_goodput_rate": point.is_knee,
        "n": len(point.windows),
    }


def _latency_rows(outcome: ServiceOutcome, load: float, pooled: ServiceMeasures) -> list[Row]:
    kinds = {"ttft": pooled.ttft_s, "tpot": pooled.tpot_s, "itl": pooled.itl_s, "end_to_end": pooled.end_to_end_s}
    common = {"service": outcome.section.name, "load": load}
    return [
        common | {"measure": name, "share": share, "seconds": seconds_of(share)}
        for name, seconds_of in kinds.items()
        for share in SHARES
    ]


def request_rows(outcome: ServiceOutcome) -> list[Row]:
    """Rows of the table `requests`; none where the scenario does not ask for records."""
    window = outcome.steady[-1][0]
    requests, record = window.recorded, window.measures.record
    if requests is None or record is None:
        return []
    prefixes = _prefix_texts(requests)
    arrival_ns = record.arrival_ns[: requests.count]
    order = [number for number in np.argsort(arrival_ns, kind="stable").tolist() if arrival_ns[number] >= 0]
    return [
        {
            "service": outcome.section.name,
            "request": number,
            "arrival_ns": int(record.arrival_ns[number]),
            "input_tokens": int(requests.input_tokens[number]),
            "output_tokens": int(requests.output_tokens[number]),
            "first_token_ns": _known(int(record.first_token_ns[number])),
            "last_token_ns": _known(int(record.finish_ns[number])) if record.status[number] == 1 else None,
            "tokens": int(record.tokens[number]),
            "gaps_ns": _gaps_text(window.token_ns, number),
            "status": STATUS[int(record.status[number])],
            "attempts": max(1, int(record.attempts[number])),
            "replica": int(record.replica[number]),
            "evictions": int(record.evictions[number]),
            "prefix_blocks": prefixes[number],
            "prefix_block_tokens": requests.hash_block_tokens,
        }
        for number in order
    ]


def _gaps_text(token_ns: Sequence[Sequence[int]], number: int) -> str | None:
    """Gaps between the tokens of a request; empty without two tokens, None where its tokens are not told."""
    if number >= len(token_ns):
        return None
    return " ".join(str(after - before) for before, after in pairwise(token_ns[number]))


def _known(time_ns: int) -> int | None:
    return time_ns if time_ns >= 0 else None


def _prefix_texts(requests: Requests) -> list[str | None]:
    """Prefix hashes by request as text, numbered anew from 0 in order of their numbers."""
    if requests.hash_ids is None or requests.hash_offsets is None:
        return [None] * requests.count
    _, numbers = np.unique(requests.hash_ids, return_inverse=True)
    cuts = requests.hash_offsets.tolist()
    return [" ".join(map(str, numbers[start:end].tolist())) for start, end in pairwise(cuts)]
