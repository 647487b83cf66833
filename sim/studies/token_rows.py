"""Rows of the tables about single tokens of a service."""

from __future__ import annotations

from typing import Any

from sim.studies.lives import RequestLife
from sim.studies.serving import ServiceOutcome
from workloads.serving.fields import LEDGER

Row = dict[str, Any]


def rows_of_tokens(outcome: ServiceOutcome) -> dict[str, list[Row]]:
    """Rows of one service by table."""
    return {"request_life": [] if outcome.life is None else life_rows(outcome.section.name, outcome.life)}


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
