"""Rows of the tables about single tokens of a service."""

from __future__ import annotations

from typing import Any

from sim.metrics.intervals import Estimate, mean_estimate
from sim.studies.lives import RequestLife
from sim.studies.serving import ServiceOutcome
from sim.studies.token_costs import TokenCosts
from sim.token_costs import floor_rows, traffic_rows
from workloads.serving.fields import LEDGER
from workloads.serving.served_traffic import Totals

Row = dict[str, Any]


def rows_of_tokens(outcome: ServiceOutcome) -> dict[str, list[Row]]:
    """Rows of one service by table."""
    name, tokens = outcome.section.name, outcome.tokens
    rows: dict[str, list[Row]] = {"request_life": [] if outcome.life is None else life_rows(name, outcome.life)}
    if tokens is not None:
        s_per_token = sum(each.busy_s for each in tokens.traffic) / sum(each.tokens for each in tokens.traffic)
        rows["traffic"] = traffic_rows(name, tokens.ladder, tokens.chips, mean_traffic(tokens), s_per_token)
        rows["token_floor"] = floor_rows(name, tokens.slices)
    return rows


def mean_traffic(tokens: TokenCosts) -> Totals:
    """Bytes per token by level and kind, over all repetitions."""
    made = sum(each.tokens for each in tokens.traffic)
    total: Totals = {}
    for each in tokens.traffic:
        for level, kinds in each.bytes.items():
            mine = total.setdefault(level, {})
            for kind, moved in kinds.items():
                mine[kind] = mine.get(kind, 0.0) + moved / made
    return total


def token_measures(outcome: ServiceOutcome) -> dict[str, Estimate]:
    """Bytes per token by level, all replicas up: the mean over repetitions; nothing where no token was made."""
    tokens = outcome.tokens
    if tokens is None:
        return {}
    levels = {
        "on_chip_bytes_per_token": (tokens.ladder[0].name,) if tokens.ladder[0].name != "hbm" else (),
        "hbm_bytes_per_token": ("hbm",),
        "link_bytes_per_token": ("ici", "nvlink"),
        "network_bytes_per_token": ("network",),
    }
    return {
        measure: mean_estimate([sum(each.bytes_per_token(name) for name in names) for each in tokens.traffic])
        for measure, names in levels.items()
        if names
    }


def life_rows(service: str, life: RequestLife) -> list[Row]:
    """Rows of the table `request_life`."""
    return [
        {
            "service": service,
            "request": life.request,
            "token": each.number,
            "at_ns": each.at_ns,
            "gap_ns": each.gap_ns,
            "replica": each.replica,
            "sequences": each.sequences,
            "prompt_tokens": each.prompt_tokens,
            "reason": each.reason,
            **{f"{name}_ns": int(time_ns) for name, time_ns in zip(LEDGER, each.ledger_ns, strict=True)},
        }
        for each in life.tokens
    ]
